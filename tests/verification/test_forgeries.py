"""Forgeries made from every field of every published file, by a forger who makes all else fit.

Each field is left out, set to zero, moved a little, given another type, and made longer. Hashes,
commitments, descriptions and sums are then made anew. What may change unnoticed in a release that
nobody signed is a list, and each of its entries is a line that the verdict calls asserted. In a
release that a trusted key has signed nothing may change.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import rfc8785
import yaml

from dp_release_verify.digests import commit, sha256
from release.budget.ledger import ScopeCap, create_ledger
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry
from release.bundle.statements import ATTESTATION, PROOF, SUMS
from release.errors import ReleaseError, VerificationError
from release.pipeline import Options, auditor_bundle, run_release
from release.queries.read import parse_spec
from release.records.keys.files import create_key
from release.records.models import ReleaseRecord, parse
from release.records.signing import PublicKey
from release.spec.load import SPEC_JSON, spec_json
from release.verification.checks import CHECKS, Level
from release.verification.provenance import Trust
from release.verification.verifier import verify
from tests.attempts import Tried
from tests.every import every
from tests.small import UNSIGNED, Row, Small, query, rewrite

PATH = tuple[str | int, ...]
ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}
WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
QUERIES = [
    query("count", sensitivity="global", where="wh > 4 AND NOT kind = 2"),
    query("count", name="by_channel", sensitivity="global", mechanism="channel", guarantee=WEAK),
    query("mode", name="committed", guarantee=WEAK),
    query("mode", name="flipped", **ON_STATISTIC),
    query("binned", name="summed", statistic="sum", **ON_STATISTIC),
    query("count", name="tops", of="kind", domain={"cyclic": 4}, sensitivity="global")
    | {"kind": "top", "k": 2},
    query("count", name="quarters", of="wh", sensitivity="global")
    | {"kind": "quantiles", "at": ["1/4", "3/4"], "domain": {"ordered": {"min": 0, "max": 8}}},
]
CAP = ScopeCap(scope="tests", epsilon="99", delta="0.9")
ORIGIN = "example.org/dp"


MAY_CHANGE = {
    "release.origin": (r"release\.json", "published|software"),
    # A single sum may have any noise that satisfies the guarantee; of others the least is proved.
    "mechanism.design": (r"mechanisms/.*", r"design\.(bound|method|notes|solver)|noise"),
    # No query has the key day; of the key place the order means nothing.
    "spec.unread": (
        r"spec\.yaml",
        r"budget|keys\.day|keys\.place$|tables\.rows\.path|queries\.[0-9]\.mechanism",
    ),
}
"""The lines that call a field asserted, with the files and the fields; nothing else may change."""

WHOLE_FILES = ("limits.noise", "report.words")
"""The same for answers and the report: of these any that are possible are accepted."""


def is_asserted(file: str, at: PATH) -> bool:
    """Whether a line of the verdict says that nothing but the curator's word stands for a field."""
    path = ".".join(map(str, at))
    return any(re.fullmatch(f, file) and re.match(p, path) for f, p in MAY_CHANGE.values())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an unsigned release, and one with the same release signed."""
    folder = tmp_path_factory.mktemp("forged")
    spec = Small(ROWS, QUERIES, fixed=["place"]).write(folder)
    run_release(spec, folder / "unsigned")
    signer = create_key(folder / "key")
    create_ledger(folder / "signed" / "ledger", signer, ORIGIN, (CAP,), "2024-01-01")
    run_release(spec, folder / "signed", options=Options(key=folder / "key"))
    (folder / "trusted").write_text(str(signer.public(ORIGIN)), "utf-8")
    return folder


def entries_of(tabulation: Any) -> list[Any]:
    """The entries of a tabulation in release.json, each with a table."""
    return [*tabulation["levels"], *tabulation["measured"], *tabulation["declared"]]


class Forger:
    """A copy of a release, and everything that follows from its files."""

    def __init__(self, source: Path, folder: Path) -> None:
        shutil.copytree(source, folder)
        (self.public,) = (folder / "public").iterdir()
        self.half = auditor_bundle(self.public)
        self.tops = (self.public,) if self.half is None else (self.public, self.half)
        self.first = self._files()

    def _files(self) -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for top in self.tops
            for path in top.rglob("*")
            if path.is_file()
        }

    def restore(self) -> None:
        """Put every file back as it was."""
        for path, data in self.first.items():
            path.write_bytes(data)

    def _edit(self, path: Path, change: Callable[[Any], None]) -> None:
        plain = json.loads(path.read_bytes())
        change(plain)
        path.write_bytes(rfc8785.dumps(plain))

    def fit(self, kept: Path) -> None:
        """Make all that depends on the files anew, but for the file that was forged."""
        commitments = {}
        half = self.half

        def open_anew(plain: Any) -> None:
            assert half is not None
            for name, opening in plain["openings"].items():
                data = (half / name).read_bytes()
                opening["commitment"] = commit(bytes.fromhex(opening["key"]), data)
                commitments[name] = opening["commitment"]

        def name_anew(plain: Any) -> None:
            for entry in plain["queries"]:
                table = self.public / entry["output"]["path"]
                entry["output"]["sha256"] = sha256(table.read_bytes())
                mechanism = entry["mechanism_file"]
                if "path" in mechanism:
                    file = self.public / mechanism["path"]
                    mechanism["sha256"] = sha256(file.read_bytes())
                else:
                    name = f"mechanisms/{entry['name']}.json"
                    mechanism["commitment"] = commitments.get(name, mechanism["commitment"])
            for tabulation in plain.get("tabulations", []):
                for entry in entries_of(tabulation):
                    for named in (entry["output"], entry.get("mechanism_file")):
                        if named is not None:
                            named["sha256"] = sha256((self.public / named["path"]).read_bytes())

        record = self.public / "release.json"
        if half is not None and kept != half / "openings.json":
            self._edit(half / "openings.json", open_anew)
        if kept != record:
            self._edit(record, name_anew)
        # Descriptions follow from the record, the spec and the tables alone.
        if kept.name in ("release.json", "spec.yaml") or kept.suffix == ".parquet":
            self._describe()
        if kept.name != SUMS:
            files = sorted(p for p in self.public.rglob("*") if p.is_file() and p.name != SUMS)
            sums = [f"{sha256(p.read_bytes())}  {p.relative_to(self.public)}\n" for p in files]
            (self.public / SUMS).write_text("".join(sums), "utf-8")

    def _describe(self) -> None:
        try:
            record = parse(ReleaseRecord, (self.public / "release.json").read_bytes())
            spec = parse_spec((self.public / "spec.yaml").read_bytes())
            tables = {output.path: self.public / output.path for output in record.outputs}
            sizes = {name: table.stat().st_size for name, table in tables.items()}
            (self.public / DATAPACKAGE).write_bytes(datapackage(spec, record, sizes))
            (self.public / REGISTRY).write_bytes(registry(spec, record))
            (self.public / SPEC_JSON).write_bytes(
                spec_json((self.public / "spec.yaml").read_bytes())
            )
        except (ReleaseError, ValueError, LookupError, OSError):
            # No record, or none that could be described: the verifier has to say so.
            pass

    def is_accepted(self, trust: Trust) -> bool:
        """Whether the release verifies; each refusal has the identifier of a line."""
        try:
            verify(self.public, self.half, trust)
        except VerificationError as error:
            assert error.identifier in CHECKS, str(error)
            return False
        return True


def places(value: Any, at: PATH = ()) -> Iterator[PATH]:
    """The path of every value but the whole; of a long list its first, second and last."""
    if at:
        yield at
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*at, name))
    if isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from places(value[index], (*at, index))


def others(value: Any) -> list[Any]:
    """Zero, a neighboring value, another type, a longer one."""
    if isinstance(value, bool):
        return [not value, 0, "true"]
    if isinstance(value, int):
        return [0, value + 1, value - 1, str(value), value * 10**9 + 1]
    if isinstance(value, str):
        return ["", "0", near(value), [value], len(value), value + value[-1:] * 2]
    if isinstance(value, list):
        return [[], value[::-1], {}, [*value, *value[-1:]], [*value, 0]]
    if isinstance(value, dict):
        return [{}, [], {**value, "more": 0}]
    return [0, "", [None]]


def near(text: str) -> str:
    """The text with its last digit or letter moved by one."""
    for place in reversed(range(len(text))):
        letter = text[place]
        if letter.isascii() and letter.isalnum():
            moved = chr(ord(letter) + (-1 if letter in "9zZf" else 1))
            return text[:place] + moved + text[place + 1 :]
    return text + "1"


def forged(plain: Any, at: PATH) -> Iterator[Any]:
    """The record with one field changed in every way; each is put back before the next."""
    inner = plain
    for step in at[:-1]:
        inner = inner[step]
    before = inner[at[-1]]
    for value in others(before):
        if value != before or type(value) is not type(before):
            inner[at[-1]] = value
            yield plain
    del inner[at[-1]]
    yield plain
    if isinstance(inner, list):
        inner.insert(int(at[-1]), before)
    else:
        inner[at[-1]] = before


def written(path: Path, plain: Any) -> bytes:
    if path.suffix == ".yaml":
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).encode()
    return bytes(rfc8785.dumps(plain))


def read(path: Path) -> Any:
    data = path.read_bytes()
    return yaml.safe_load(data) if path.suffix == ".yaml" else json.loads(data)


def structured(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".yaml"))


def attacked(
    forger: Forger,
    is_accepted: Callable[[], bool],
    part: int,
    parts: int,
    unread: Container[str] = (),
) -> dict[tuple[str, PATH], int]:
    """The fields that were changed and accepted, of one part of all; and how many were tried.

    Files that are ``unread`` stay as they are.
    """
    found: dict[tuple[str, PATH], int] = {}
    tried = 0
    for top in forger.tops:
        for path in structured(top):
            name, plain = str(path.relative_to(top)), read(path)
            if name in unread:
                continue
            canonical = written(path, plain)
            for at in list(places(plain))[part::parts]:
                for lie in forged(plain, at):
                    data = written(path, lie)
                    if data == canonical or says_the_same(path, canonical, data):
                        continue
                    path.write_bytes(data)
                    forger.fit(path)
                    tried += 1
                    if is_accepted():
                        found[name, at] = found.get((name, at), 0) + 1
                    forger.restore()
    found["", ()] = tried
    return found


def says_the_same(path: Path, one: bytes, two: bytes) -> bool:
    """Whether two texts of a spec are read as the same spec: 1 and "1", say."""
    if path.name != "spec.yaml":
        return False
    with suppress(ReleaseError):
        return parse_spec(one) == parse_spec(two)
    return False


PARTS = 6


@pytest.mark.parametrize("part", range(0, PARTS, every(6)))
def test_what_may_change_unnoticed_is_called_asserted(
    part: int, built: Path, tmp_path: Path, record_property: Tried
) -> None:
    forger = Forger(built / "unsigned", tmp_path / "out")
    forger.fit(Path())
    assert forger.is_accepted(UNSIGNED)
    found = attacked(forger, partial(forger.is_accepted, UNSIGNED), part, PARTS)
    tried = found.pop(("", ()))
    assert tried > 300
    record_property("tried", tried)
    record_property("passed", sum(found.values()))
    assert [(file, at) for file, at in found if not is_asserted(file, at)] == []


COMPOSED = [
    query("count", name="free", by=[], sensitivity="global", domain={"integers": {}}, share="1"),
    query("count", name="aimed", by=[], sensitivity="global", target="absolute <= 9"),
    query("mode", name="chosen", **ON_STATISTIC, share="1"),
    query("count", name="seen"),
]


def test_what_a_composed_release_states_is_recomputed(tmp_path: Path) -> None:
    """Of every field that composition reads; a sample, one lie in thirty."""
    for one in COMPOSED[:3]:
        one.pop("guarantee", None)
    spec = Small(ROWS, COMPOSED, fixed=["place"], max_rows_per_unit=1, budget=("3", "0.000001"))
    run_release(spec.write(tmp_path), tmp_path / "made")
    forger = Forger(tmp_path / "made", tmp_path / "out")
    forger.fit(Path())
    assert forger.is_accepted(UNSIGNED)
    found = attacked(forger, partial(forger.is_accepted, UNSIGNED), 0, 30)
    tried = found.pop(("", ()))
    assert tried > 100
    # Figures of accuracy that floats decide may differ in their last digits.
    assert [at for file, at in found if not (is_asserted(file, at) or at[0] == "accuracy")] == []


def test_the_list_of_what_may_change_is_short_and_each_is_asserted() -> None:
    identifiers = (*MAY_CHANGE, *WHOLE_FILES)
    assert len(identifiers) <= 5
    assert {CHECKS[identifier].level for identifier in identifiers} == {Level.ASSERTED}


def test_answers_and_the_report_are_the_curators(built: Path, tmp_path: Path) -> None:
    """Any possible answer is a possible release: noise cannot be told from a lie."""
    forger = Forger(built / "unsigned", tmp_path / "out")
    report = forger.public / "report.html"
    report.write_bytes(report.read_bytes() + b"<p>more</p>")
    forger.fit(report)
    assert forger.is_accepted(UNSIGNED)
    forger.restore()
    counted, other = parse_spec((forger.public / "spec.yaml").read_bytes()).released[:2]
    table = forger.public / "data" / f"{counted.name}.parquet"
    keys = (("a",), ("b",))
    for described, is_possible in ((counted, True), (other, False)):
        rewrite(table, "small", described, keys, [1, 2])
        forger.fit(table)
        assert forger.is_accepted(UNSIGNED) is is_possible
    for data in (b"", b"PAR1", table.read_bytes() + b"\0"):
        table.write_bytes(data)
        forger.fit(table)
        assert not forger.is_accepted(UNSIGNED)


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_of_a_signed_release_may_change(
    part: int, built: Path, tmp_path: Path, record_property: Tried
) -> None:
    forger = Forger(built / "signed", tmp_path / "out")
    trust = Trust(keys=(PublicKey.of((built / "trusted").read_text("utf-8")),))
    assert forger.is_accepted(trust)
    # A part of the fields here: every byte is flipped in test_provenance.
    found = attacked(forger, partial(forger.is_accepted, trust), part, 8 * PARTS)
    tried = found.pop(("", ()))
    assert tried > 30
    assert found == {}
    record_property("tried", tried)
    for path in (forger.public / ATTESTATION, forger.public / PROOF):
        data = path.read_bytes()
        for forgery in (b"", data[:-1], data + b"\n", data + data):
            path.write_bytes(forgery)
            forger.fit(path)
            assert not forger.is_accepted(trust)
            forger.restore()
