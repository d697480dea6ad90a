"""One forged release for each check of the verifier: refused by that check, and by name.

A forger makes all else fit again, so nothing but the check in question can notice.
"""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import rfc8785
import yaml

from dp_release_verify.digests import sha256
from release.bundle.mechanisms import mechanism_record
from release.bundle.read import parse_mechanism, read_mechanism
from release.bundle.statements import SUMS
from release.bundle.tables.answers import released_bytes
from release.errors import VerificationError
from release.exact.channel import Channel
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.numbers import format_exact
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.pipeline import auditor_bundle, run_release
from release.queries.read import parse_spec
from release.records.models import canonical
from release.spec.losses import loss_of
from release.spec.query import Query
from release.verification import residual_noise, standalone
from release.verification.mechanisms import check_mechanism
from release.verification.verifier import Verdict, verify
from tests.small import UNSIGNED, Row, Small, query, rewrite, write_rows
from tests.verification.test_values import fit

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": i}
    for i in range(9)
]
MODULAR = {"sensitivity": "global", "mechanism": "modular"}
QUERIES = [
    query("count", name="total", **MODULAR),
    query("count", name="parts", by=["day", "place"], **MODULAR),
    query("count", name="days", by=["day"], **MODULAR),
    query("count", name="baseline", by=[], sensitivity="global", mechanism="geometric_clamped"),
    query("count", name="best", by=[], sensitivity="global"),
    query("count", name="rows", by=[], sensitivity="global", mechanism="channel"),
    query("count", name="held", by=[]),
    query("count", name="pinned", by=[], mechanism="modular"),
    query("mode", name="common"),
]


@pytest.fixture(scope="session")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a release with every family, public and committed."""
    folder = tmp_path_factory.mktemp("forged")
    plain = Small(ROWS, QUERIES, max_rows_per_unit=1).plain()
    plain["keys"]["day"] = {"file": "days.csv"}
    (folder / "days.csv").write_text("day\n1\n2\n")
    write_rows(folder / "rows.parquet", ROWS)
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
    run_release(folder / "spec.yaml", folder / "out")
    return folder / "out"


class Bundles:
    """A copy of both bundles, for a forger to change."""

    def __init__(self, out: Path) -> None:
        self.public = out / "public" / "small"
        auditor = auditor_bundle(self.public)
        assert auditor is not None
        self.auditor = auditor
        spec = parse_spec((self.public / "spec.yaml").read_bytes())
        self.queries: dict[str, Query] = {each.name: each for each in spec.released}

    def edit(self, path: Path, change: Callable[[dict[str, Any]], Any]) -> bytes:
        """Change a JSON file, and all that describes or sums it up."""
        plain = json.loads(path.read_bytes())
        change(plain)
        path.write_bytes(rfc8785.dumps(plain))
        fit(self.public)
        return path.read_bytes()

    def record(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change what release.json says of a query."""
        place = list(self.queries).index(name)
        self.edit(self.public / "release.json", lambda record: change(record["queries"][place]))

    def mechanism(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the file of a public mechanism, for all queries that share it."""
        path = f"mechanisms/{name}.json"
        data = self.edit(self.public / path, change)

        def renew(record: dict[str, Any]) -> None:
            for each in record["queries"]:
                if each["mechanism_file"].get("path") == path:
                    each["mechanism_file"].update(sha256=sha256(data))

        self.edit(self.public / "release.json", renew)

    def table(self, name: str, *keys: tuple[str, ...]) -> None:
        """Replace a released table by one that is written properly, of these keys."""
        path = self.public / "data" / f"{name}.parquet"
        data = rewrite(path, "small", self.queries[name], keys, [0] * len(keys))
        output = {"sha256": sha256(data), "rows": len(keys)}
        self.record(
            name, lambda record: (record.update(cells=len(keys)), record["output"].update(output))
        )

    def interval(self, name: str, interval: str | None) -> None:
        """Let a released table say this of its intervals, and be written properly otherwise."""
        path, query = self.public / "data" / f"{name}.parquet", self.queries[name]
        table = pq.read_table(path)
        keys = tuple(zip(*(table.column(by).to_pylist() for by in query.by), strict=True)) or ((),)
        codes = np.array(table.column("answer_code").to_pylist())
        data = released_bytes("small", query, keys, codes, interval)
        path.write_bytes(data)
        self.record(name, lambda record: record["output"].update(sha256=sha256(data)))

    def accepted(self) -> Verdict:
        """The verdict with the auditor's half."""
        return verify(self.public, self.auditor, UNSIGNED)

    def refused(self, auditor: Path | None = None) -> str:
        """The first failed check as "file: check", and what was found."""
        with pytest.raises(VerificationError) as caught:
            verify(self.public, auditor, UNSIGNED)
        return str(caught.value)


@pytest.fixture
def bundles(published_once: Path, tmp_path: Path) -> Bundles:
    shutil.copytree(published_once, tmp_path / "out")
    return Bundles(tmp_path / "out")


def test_a_verdict_lists_every_finding_of_a_release(bundles: Bundles) -> None:
    verdict = bundles.accepted()
    assert (verdict.release_id, verdict.unseen, verdict.complete) == ("small", [], True)
    worst, own = (
        "for the sensitivity that follows from the declared bounds",
        "differences of its committed sensitivity",
    )
    satisfies = "the mechanism satisfies pure ε = 1, δ = 0 for"
    ends = dict.fromkeys(["total", "parts", "days", "baseline", "best", "rows"], worst)
    ends |= dict.fromkeys(["held", "pinned", "common"], own)
    covers = ": the profile covers all that one unit can change, in "
    profiles = [told.split(covers)[0] for told in verdict.proved if covers in told]
    assert profiles == ["total", "parts", "days", "baseline", "best", "rows"]
    guarantees = [told for told in verdict.proved if covers not in told]
    charges, *mechanisms = [told for told in guarantees if ": no noise on" not in told]
    bounds = [told for told in verdict.proved if ": no noise on" in told]
    assert bounds
    assert all("has an expected" in told for told in bounds)
    assert charges == (
        "the charges of 9 queries add up to ε = 13, δ = 0, "
        "within the cap of the spec (basic composition)"
    )
    for (name, end), told in zip(ends.items(), mechanisms, strict=True):
        assert told.startswith(f"{name}: {satisfies} ")
        assert told.endswith(end)
    assert verdict.tested[:4] == [
        "the set of 19 files, and the SHA-256 of each, is the one that was published",
        "release.json is canonical, of its form, and says what the spec says",
        "released tables: declared columns, sorted keys, possible answers",
        "datapackage.json and registry.yaml say what release.json and the spec say",
    ]
    record = json.loads((bundles.public / "release.json").read_bytes())
    others = "that no other difference occurs between neighbors"
    origin, unread, *asserted = verdict.asserted
    assert origin.startswith("that it was made by dp-release ")
    assert unread.startswith("what no check reads of the spec: ")
    assert asserted == [
        f"held: {others}",
        f"pinned: {others}",
        f"common: {others}",
        "what mechanism files say of how a mechanism was found: method, solver, notes, and that no "
        "other modular noise or channel loses less than the lower bound",
        "that the keys of day, which the spec takes from a file, are public",
        "that the curator published this: nothing is signed",
        *record["limits"],
        "that report.html says in words and pictures what the files say, and what tables say of "
        "intervals",
    ]
    assert verdict.withheld == record["withheld"]
    unopened = verify(bundles.public, None, UNSIGNED)
    assert [told.split(":")[0] for told in unopened.unseen] == ["held", "pinned", "common"]


TOTALS = [
    *[("total", "parts"), ("days", "parts")],
    *[(each, parts) for each in ("baseline", "best", "rows") for parts in ("total", "parts")],
    *[(each, "days") for each in ("baseline", "best", "rows")],
]


def compared(verdict: Verdict) -> set[tuple[str, str]]:
    told = [line.partition(":")[0] for line in verdict.tested if "residuals" in line]
    pairs = [line.split(" minus the sums of ") for line in told]
    return {(total, parts) for total, parts in pairs}


def test_every_pair_of_public_counts_is_compared(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared(bundles.accepted()) == set(TOTALS)
    # Pairs of modular noise have a law, which is too long now; the others need none.
    monkeypatch.setattr(residual_noise, "_LONGEST", 1)
    assert compared(bundles.accepted()) == set(TOTALS[2:])


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("total", lambda q: q["output"].update(path="data/parts.parquet"), "total: output path"),
        ("total", lambda q: q["output"].update(sha256="0" * 64), "data/total.parquet: SHA-256"),
        ("total", lambda q: q["output"].update(rows=3), "data/total.parquet: rows"),
        (
            "total",
            lambda q: q["mechanism_file"].update(path="mechanisms/parts.json"),
            "total: mechanism path",
        ),
        (
            "total",
            lambda q: q["mechanism_file"].update(sha256="0" * 64),
            "mechanisms/total.json: SHA-256",
        ),
        (
            "pinned",
            lambda q: q.update(mechanism="channel"),
            "release.json: queries.pinned.mechanism: found 'channel', expected 'modular'",
        ),
        (
            "held",
            lambda q: q.update(mechanism="modular"),
            "release.json: queries.held.mechanism (of public inputs)",
        ),
        (
            "best",
            lambda q: q.update(mechanism="modular"),
            "release.json: queries.best.mechanism: found 'modular'",
        ),
        (
            "total",
            lambda q: q["charge"].update(delta="0.1"),
            "release.json: queries.total.charge.delta",
        ),
        (
            "held",
            lambda q: q["charge"].update(epsilon="0.5"),
            "release.json: queries.held.charge.epsilon",
        ),
    ],
)
def test_what_release_json_says_of_a_query_is_compared(
    name: str, change: Callable[[dict[str, Any]], Any], says: str, bundles: Bundles
) -> None:
    bundles.record(name, change)
    assert bundles.refused().startswith(f"{says}: " if "found" not in says else says)


def test_queries_stand_in_the_order_of_the_spec(bundles: Bundles) -> None:
    def exchange(record: dict[str, Any]) -> None:
        record["queries"][-2:] = record["queries"][:-3:-1]

    bundles.edit(bundles.public / "release.json", exchange)
    assert bundles.refused().startswith("release.json: queries: found ['total', ")


@pytest.mark.parametrize("file", ["datapackage.json", "registry.yaml"])
def test_a_description_that_says_something_else_is_refused(file: str, bundles: Bundles) -> None:
    text = (bundles.public / file).read_text("utf-8")
    (bundles.public / file).write_text(text.replace("Tests", "Nobody"), "utf-8")
    sums = (bundles.public / SUMS).read_text("ascii").splitlines()
    digest = sha256((bundles.public / file).read_bytes())
    renewed = [f"{digest}  {file}" if line.endswith(f"  {file}") else line for line in sums]
    assert renewed != sums
    (bundles.public / SUMS).write_text("\n".join([*renewed, ""]))
    assert bundles.refused().startswith(f"{file}: bytes: ")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: [], "file set"),
        (lambda lines: lines[::-1], "order"),
        (lambda lines: [*lines, lines[-1]], "format"),
        (lambda lines: [lines[0], *lines], "format"),
        (lambda lines: [*lines, "\n"], "format"),
        (lambda lines: lines[1:], "file set"),
        (lambda lines: ["é", *lines], "format"),
    ],
)
def test_sums_have_one_form(
    change: Callable[[list[str]], list[str]], says: str, bundles: Bundles
) -> None:
    lines = (bundles.public / SUMS).read_text("ascii").splitlines(keepends=True)
    (bundles.public / SUMS).write_text("".join(change(lines)), "utf-8")
    assert bundles.refused().startswith(f"{SUMS}: {says}: ")


def test_a_file_is_hashed_without_being_held(bundles: Bundles) -> None:
    """A sparse file of 2^30 bytes takes a few on the disk, and so may be part of any release."""
    size = 2**26
    with (bundles.public / "report.html").open("r+b") as file:
        file.truncate(size)
    tracemalloc.start()
    assert bundles.refused().startswith("report.html: SHA-256: ")
    assert tracemalloc.get_traced_memory()[1] < size // 4
    tracemalloc.stop()


def test_a_release_that_is_not_there_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="folder: found nothing"):
        verify(tmp_path / "nowhere", None, UNSIGNED)


PARTS = [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b")]


def test_a_table_has_every_combination_of_its_keys(bundles: Bundles) -> None:
    """Each day and each place is there; one pair of them, and so its count, is not."""
    bundles.table("parts", *PARTS)
    bundles.accepted()
    bundles.table("parts", *PARTS[:3])
    assert bundles.refused().startswith("data/parts.parquet: key combinations: found 3")


@pytest.mark.parametrize("key", ["02", "x", "2147483647"])
def test_keys_of_a_file_have_the_form_of_their_column(key: str, bundles: Bundles) -> None:
    """The key file is no part of a release, so the keys are known from the table alone."""
    keys = sorted([("1", "a"), ("1", "b"), (key, "a"), (key, "b")])
    bundles.table("parts", *keys)
    told = bundles.refused()
    assert told.startswith("data/parts.parquet: keys of day: ")
    assert told.endswith(", expected keys")


def test_tables_have_the_same_keys(bundles: Bundles) -> None:
    bundles.table("days", ("1",), ("3",))
    assert bundles.refused().startswith("data/days.parquet: keys of day: found ('1', '3')")


def test_tables_by_the_same_columns_have_the_same_keys(bundles: Bundles) -> None:
    """Those of the second are read as its own, though the first has been checked."""
    bundles.table("common", ("a",), ("c",))
    assert bundles.refused().startswith("data/common.parquet: keys of place: found ('a', 'c')")


def test_the_auditors_half_has_its_files_and_no_other(bundles: Bundles) -> None:
    more = bundles.auditor / "mechanisms" / "total.json"
    more.write_bytes((bundles.public / "mechanisms" / "total.json").read_bytes())
    assert bundles.refused(bundles.auditor).startswith(f"{bundles.auditor}: file set: ")


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        (
            "openings.json",
            lambda p: p["openings"].update(other=p["openings"]["mechanisms/held.json"]),
            "openings",
        ),
        ("openings.json", lambda p: p.update(release_id="other"), "release_id"),
        ("sensitivity/held.json", lambda p: p.update(distances=[1, 2]), "distances"),
        ("sensitivity/held.json", lambda p: p.pop("distances"), "distances"),
        ("sensitivity/pinned.json", lambda p: p.update(distances=[1]), "distances"),
        ("sensitivity/held.json", lambda p: p.update(query="pinned"), "query"),
        ("sensitivity/held.json", lambda p: p.update(source="global"), "source"),
        ("sensitivity/held.json", lambda p: p.update(neighbors="attribute"), "neighbors"),
        ("sensitivity/held.json", lambda p: p.update(group=[7]), "group"),
        ("sensitivity/held.json", lambda p: p.update(sensitivity=[[1]]), "sensitivity"),
    ],
)
def test_files_of_the_auditors_half_say_what_their_mechanism_says(
    file: str, change: Callable[[dict[str, Any]], Any], says: str, bundles: Bundles
) -> None:
    if says == "distances":
        stated = json.loads((bundles.auditor / file).read_bytes())
        assert stated.get("distances") == ([1] if "held" in file else stated.get("distances"))
    bundles.edit(bundles.auditor / file, change)
    assert bundles.refused(bundles.auditor).startswith(f"{file}: {says}: ")


def test_neighbors_of_a_public_query_are_compared_by_their_distance(bundles: Bundles) -> None:
    """In the group one step up is five steps down: a proof for these says nothing of the line."""
    asked = bundles.queries["rows"]
    rows = [[8 * (here == there) for there in range(6)] for here in range(6)]
    rows[0], rows[5] = [5, 0, 0, 0, 0, 3], [3, 0, 0, 0, 0, 5]
    channel, loss = Channel.of(rows), loss_of(asked)
    made = Design(
        mechanism=channel,
        sensitivity=Sensitivity.on_line(6, (5,)),
        guarantee=Guarantee(Definition.PURE, Fraction(1), Fraction(0)),
        loss=loss,
        method="forged",
        objective=channel.objective(loss, asked.answers),
    )
    data = canonical(mechanism_record(asked, made))
    assert made.sensitivity.shifts == ((1,), (5,))
    bundles.mechanism("rows", lambda plain: plain.update(json.loads(data)))
    told = bundles.refused()
    assert told == (
        "mechanisms/rows.json: sensitivity: found 1 missing, "
        "expected all that the declaration allows"
    )


def scaled(plain: dict[str, Any], bits: int) -> None:
    """The same law in smaller units."""
    plain["weights"] = [str(int(weight) << bits) for weight in plain["weights"]]
    plain["total"] = str(int(plain["total"]) << bits)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("total", lambda p: p["guarantee"].update(delta="0.1"), "delta"),
        ("total", lambda p: p["recomputed"].update(delta_probabilistic="0.1"), "delta_probabilis"),
        ("total", lambda p: p["recomputed"].update(delta_approximate="0.1"), "delta_approximate"),
        ("total", lambda p: p.update(sensitivity=[]), "sensitivity: found none"),
        ("total", lambda p: p.update(total="1" + "0" * 79), "size"),
        ("total", lambda p: scaled(p, 261 - int(p["total"]).bit_length()), "total"),
        ("baseline", lambda p: p["design"].update(method="linear program"), "design.method"),
        ("rows", lambda p: p.update(query="best"), "query"),
        ("total", lambda p: p["design"].update(loss="absolute"), "design.loss"),
    ],
)
def test_what_a_mechanism_says_of_itself_is_computed_again(
    name: str, change: Callable[[dict[str, Any]], Any], says: str, bundles: Bundles
) -> None:
    bundles.mechanism(name, change)
    assert bundles.refused().startswith(f"mechanisms/{name}.json: {says}")


def test_a_mechanism_is_of_the_family_that_the_spec_names(bundles: Bundles) -> None:
    path = bundles.public / "mechanisms" / "rows.json"
    record = read_mechanism(path.name, path)
    check_mechanism(path.name, record, bundles.queries["rows"])
    with pytest.raises(VerificationError) as caught:
        check_mechanism(path.name, record, bundles.queries["total"])
    assert (caught.value.check, caught.value.actual) == ("mechanism", "'channel'")


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("kind", lambda r: r.update(kind="TEST")),
        ("sampling.seeded", lambda r: r["sampling"].update(seeded=True)),
        *[
            (name, lambda r, name=name: r.update({name: "Another"}))
            for name in ("title", "curator", "contact", "purpose", "period", "license")
        ],
        ("privacy.unit", lambda r: r["privacy"].update(unit="place")),
        ("privacy.neighbors", lambda r: r["privacy"].update(neighbors="attribute")),
        ("privacy.max_rows_per_unit", lambda r: r["privacy"].update(max_rows_per_unit=2)),
        ("privacy.fixed", lambda r: r["privacy"].update(fixed=["place"])),
        ("privacy.adjacency_text", lambda r: r["privacy"].update(adjacency_text="none")),
        ("privacy.enforced_by", lambda r: r["privacy"].update(enforced_by="trust")),
        ("ledger.scope", lambda r: r["ledger"].update(scope="another")),
        ("withheld", lambda r: r["withheld"].pop()),
        ("limits", lambda r: r["limits"].pop()),
        ("invariants", lambda r: r["invariants"].append("the total is 9")),
        ("post_processing", lambda r: r["post_processing"].append("rounded")),
        ("published", lambda r: r.update(published="2024-02-30")),
        ("software.python", lambda r: r["software"].update(python="unit 17 has 9 rows")),
        ("software.highs", lambda r: r["software"].update(highs="1" * 41)),
        ("guarantee.kind", lambda r: r["guarantee"].update(kind="worst-case")),
        ("guarantee.definition", lambda r: r["guarantee"].update(definition="approximate")),
        ("guarantee.epsilon", lambda r: r["guarantee"].update(epsilon="1")),
        ("guarantee.delta", lambda r: r["guarantee"].update(delta="0.1")),
        ("composition.epsilon", lambda r: r["composition"].update(epsilon="1")),
        ("composition.delta", lambda r: r["composition"].update(delta="0.1")),
        ("queries.total.kind", lambda r: r["queries"][0].update(kind="mode")),
        ("queries.total.by", lambda r: r["queries"][0].update(by=["day"])),
        ("queries.total.domain", lambda r: r["queries"][0]["domain"]["ordered"].update(max=6)),
        ("queries.total.definition", lambda r: r["queries"][0].update(definition="approximate")),
        ("queries.total.epsilon", lambda r: r["queries"][0].update(epsilon="0.5")),
        ("queries.total.delta", lambda r: r["queries"][0].update(delta="0.1")),
        ("queries.total.parallel", lambda r: r["queries"][0].update(parallel=True)),
        (
            "queries.total.sensitivity_source",
            lambda r: r["queries"][0].update(sensitivity_source="declared"),
        ),
        (
            "queries.total.guarantee_kind",
            lambda r: r["queries"][0].update(guarantee_kind="instance-specific"),
        ),
    ],
)
def test_what_release_json_says_of_the_release_is_compared(
    says: str, change: Callable[[dict[str, Any]], Any], bundles: Bundles
) -> None:
    bundles.edit(bundles.public / "release.json", change)
    assert bundles.refused().startswith(f"release.json: {says}: ")


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("source", lambda used: used.update(source=used["source"][:-1])),
        ("source", lambda used: used.update(source=used["source"].upper())),
        ("source", lambda used: used.pop("source")),
        ("sha256", lambda used: used["environment"].update(sha256="0" * 63 + "g")),
        ("sha256", lambda used: used["environment"].pop("sha256")),
        ("environment", lambda used: used.update(environment="numpy==2.0")),
        ("environment", lambda used: used.pop("environment")),
        ("libraries", lambda used: used["environment"].update(libraries=["numpy==2.0"])),
        ("extras", lambda used: used["environment"].update(extras=["dev"])),
        ("extras", lambda used: used["environment"].update(extras=["flows", "fast"])),
        ("extras", lambda used: used["environment"].update(extras=["fast", "fast"])),
    ],
)
def test_a_malformed_name_of_the_software_is_refused_by_both_verifiers(
    says: str,
    change: Callable[[dict[str, Any]], Any],
    bundles: Bundles,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [str(bundles.public), "--auditor", str(bundles.auditor), "--require", "none"]
    assert standalone.main(words) == 0, capsys.readouterr().out
    bundles.edit(bundles.public / "release.json", lambda record: change(record["software"]))
    refusal = bundles.refused()
    assert refusal.startswith("release.json: "), refusal
    assert "software" in refusal, refusal
    assert says in refusal, refusal
    capsys.readouterr()
    assert standalone.main(words) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("refused: release.json: "), line
    assert "software" in line, line


def test_a_copy_may_have_any_name_and_a_release_has_that_of_its_spec(bundles: Bundles) -> None:
    other = bundles.public.with_name("small (1)")
    bundles.public = bundles.public.rename(other)
    assert bundles.accepted()
    bundles.edit(other / "release.json", lambda record: record.update(release_id="other"))
    assert bundles.refused() == "release.json: release_id: found 'other', expected 'small'"


def test_a_public_folder_holds_plain_files_and_no_deeper_folders(bundles: Bundles) -> None:
    more = bundles.public / "data" / "more"
    more.symlink_to(bundles.public / "spec.yaml")
    assert bundles.refused().startswith("data/more: file set: found a link")
    more.unlink()
    more.mkdir()
    assert bundles.refused().startswith("data/more: file set: found a folder")
    (more / "file").write_text("")
    fit(bundles.public)
    assert bundles.refused().startswith("data/more: file set: found a folder")
    shutil.rmtree(more)
    (bundles.public / "empty").mkdir()
    assert bundles.refused().startswith("empty: file set: found a folder")


def test_a_file_that_release_json_does_not_name_is_refused(bundles: Bundles) -> None:
    (bundles.public / "data" / "true_counts.parquet").write_text("17")
    assert bundles.refused().startswith(f"{SUMS}: file set: ")
    fit(bundles.public)
    assert bundles.refused().startswith(f"{SUMS}: file set of release.json: ")


@pytest.mark.parametrize("file", ["report.html", "data/total.parquet", "mechanisms/rows.json"])
def test_a_file_has_the_bytes_of_its_sum(file: str, bundles: Bundles) -> None:
    (bundles.public / file).write_bytes((bundles.public / file).read_bytes() + b"\n")
    assert bundles.refused().startswith(f"{file}: SHA-256: ")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("neighbors: replace_one", "neighbors: nobody", "spec.yaml: schema: "),
        ("epsilon: '1000'", "epsilon: '12'", "release.json: charges: "),
        ("place:\n  - a\n", "place:\n  - a\n  - a\n", "spec.yaml: keys: found keys.place: a key"),
    ],
)
def test_a_spec_is_one_that_allows_the_release(
    before: str, after: str, says: str, bundles: Bundles
) -> None:
    path = bundles.public / "spec.yaml"
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")
    fit(bundles.public)
    assert bundles.refused().startswith(says)


def test_a_committed_mechanism_is_the_one_that_was_committed_to(bundles: Bundles) -> None:
    file = bundles.auditor / "mechanisms" / "held.json"
    bundles.edit(file, lambda plain: plain["design"]["notes"].append("x"))
    assert bundles.refused(bundles.auditor).startswith("mechanisms/held.json: commitment: ")


def test_modular_noise_is_on_the_group_of_the_answers(bundles: Bundles) -> None:
    bundles.mechanism("total", lambda plain: plain.update(group=[2, 3]))
    assert bundles.refused().startswith("mechanisms/total.json: group: found (2, 3)")


def judged(out: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """The check that refuses a changed mechanism file, "" where none does."""
    public = out / "public" / "small"
    plain = json.loads((public / "mechanisms" / f"{name}.json").read_bytes())
    change(plain)
    spec = parse_spec((public / "spec.yaml").read_bytes())
    asked = {each.name: each for each in spec.released}[name]
    try:
        file = f"mechanisms/{plain['query']}.json"
        check_mechanism(file, parse_mechanism(file, rfc8785.dumps(plain)), asked)
    except VerificationError as error:
        return error.check
    return ""


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("total", lambda p: p["accuracy"].update(p_exact="0"), "accuracy.p_exact"),
        ("total", lambda p: p["accuracy"].update(mean_absolute="1"), "accuracy.mean_absolute"),
        ("total", lambda p: p["accuracy"].update(p_within_1="1"), "accuracy.p_within_1"),
        ("total", lambda p: p["weights"].pop(), "weights"),
        ("total", lambda p: p.update(weights=[p["total"], *["0"] * 5]), "δ"),
        ("total", lambda p: p.update(sensitivity=[[1]]), "sensitivity (complete, sorted)"),
        ("total", lambda p: p.update(sensitivity=[[5], [1]]), "sensitivity (complete, sorted)"),
        ("rows", lambda p: p["pairs"].pop(), "pairs (complete, sorted)"),
        ("total", lambda p: p["guarantee"].update(definition="approximate"), "definition"),
        ("total", lambda p: p["guarantee"].update(epsilon="2"), "epsilon"),
        (
            "total",
            lambda p: p["recomputed"].update(epsilon_everywhere="1"),
            "epsilon_everywhere",
        ),
        ("total", lambda p: p["design"].update(objective="0.1"), "design.objective"),
        ("total", lambda p: p["design"].update(bounded_loss="0.1"), "design.bounded_loss"),
        (
            "total",
            lambda p: p["design"].update(bound_of="noise on the integers"),
            "design.bound_of",
        ),
        ("best", lambda p: p["design"].update(bounded_loss="0.1"), "design.lower_bound"),
        (
            "best",
            lambda p: p["design"].update(multipliers=[{"distance": 1, "prices": ["0"]}]),
            "",
        ),
        (
            "best",
            lambda p: p["design"].update(multipliers=[{"distance": 1, "prices": ["0", "0"]}]),
            "design.multipliers",
        ),
        (
            "best",
            lambda p: p["design"].update(multipliers=[{"distance": 2, "prices": ["0"]}]),
            "design.multipliers.distance",
        ),
    ],
)
def test_every_figure_of_a_mechanism_is_computed_again(
    name: str, change: Callable[[dict[str, Any]], Any], says: str, published_once: Path
) -> None:
    assert judged(published_once, name, change) == says


def with_units(field: str, units: int) -> Callable[[dict[str, Any]], Any]:
    """A change that moves a figure of the design by units of 10^-18."""

    def change(plain: dict[str, Any]) -> None:
        value = (Fraction(plain["design"][field]) * 10**18) + units
        assert value.denominator == 1
        whole, rest = divmod(int(value), 10**18)
        plain["design"][field] = f"{whole}.{rest:018d}"

    return change


def fitting(field: str) -> Callable[[dict[str, Any]], Any]:
    """A figure moved by a unit, and the gap that follows from it."""

    def change(plain: dict[str, Any]) -> None:
        with_units(field, 1)(plain)
        design = plain["design"]
        gap = Fraction(design["bounded_loss"]) - Fraction(design["lower_bound"])
        design["gap"] = format_exact(gap)

    return change


def with_gap(units: int) -> Callable[[dict[str, Any]], Any]:
    """The gap that the two other figures give, and some units of 10^-18."""

    def change(plain: dict[str, Any]) -> None:
        design = plain["design"]
        # Room for a gap below what the figures give.
        with_units("lower_bound", -10)(plain)
        design["gap"] = format_exact(
            Fraction(design["bounded_loss"])
            - Fraction(design["lower_bound"])
            + Fraction(units, 10**18)
        )

    return change


@pytest.mark.parametrize(
    ("units", "says"),
    [(0, ""), (1, "design.gap"), (-1, "design.gap"), (10**9, "design.gap")],
)
def test_a_gap_is_what_the_two_other_figures_give(
    units: int, says: str, published_once: Path
) -> None:
    assert judged(published_once, "total", with_gap(units)) == says


def test_a_lower_bound_is_at_most_the_loss_and_that_of_integers_is_proved(
    published_once: Path,
) -> None:
    def equal(plain: dict[str, Any]) -> None:
        plain["design"] |= {"lower_bound": plain["design"]["bounded_loss"], "gap": "0"}

    def above(plain: dict[str, Any]) -> None:
        equal(plain)
        with_units("lower_bound", 1)(plain)

    def claimed(plain: dict[str, Any]) -> None:
        plain["design"]["bound"] = "solver"
        equal(plain)

    assert judged(published_once, "total", equal) == ""
    assert judged(published_once, "total", above) == "design.lower_bound"
    assert judged(published_once, "best", lambda plain: None) == ""
    assert judged(published_once, "best", fitting("bounded_loss")) == "design.bounded_loss"
    assert judged(published_once, "best", fitting("lower_bound")) == "design.lower_bound"
    assert judged(published_once, "best", claimed) == ""


@pytest.mark.parametrize(
    ("tenths", "says"), [(9, ""), (-9, ""), (13, "accuracy.p_exact"), (-13, "accuracy.p_exact")]
)
def test_figures_below_one_of_integers_may_be_off_by_the_tolerance(
    tenths: int, says: str, published_once: Path
) -> None:
    """They are rounded, and computed on machines that round in other ways."""

    def change(plain: dict[str, Any]) -> None:
        exact = Fraction(plain["accuracy"]["p_exact"])
        assert exact < Fraction(7, 10)
        off = IntegerMechanism.tolerance * Fraction(tenths, 10)
        plain["accuracy"]["p_exact"] = format_exact(exact + off)

    assert judged(published_once, "best", change) == says


def test_best_is_no_mechanism_that_wraps_round_an_order(bundles: Bundles) -> None:
    path = bundles.public / "mechanisms" / "total.json"
    with pytest.raises(VerificationError) as caught:
        check_mechanism(path.name, read_mechanism(path.name, path), bundles.queries["best"])
    assert caught.value.check == "mechanism"
    assert caught.value.expected == "one that cannot wrap round an order"
