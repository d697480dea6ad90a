"""Every value of every record, changed by a forger who makes all that depends on it fit again.

A value that may change unnoticed is named here: a verifier takes it from the curator.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dp_release_verify.digests import commit, sha256
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry
from release.bundle.statements import SUMS
from release.errors import ReleaseError, VerificationError
from release.pipeline import auditor_bundle, run_release
from release.queries.read import parse_spec
from release.records.models import ReleaseRecord, parse
from release.verification.verifier import verify
from tests.small import UNSIGNED, Small, query

PATH = tuple[str | int, ...]

OTHERS = {
    "pure": ["approximate", "probabilistic"],
    "approximate": ["pure", "probabilistic"],
    "worst-case": ["instance-specific", "mixed"],
    "instance-specific": ["worst-case", "mixed"],
    "mixed": ["worst-case", "instance-specific"],
    "modular": ["channel"],
    "channel": ["modular"],
    "global": ["empirical", "declared"],
    "empirical": ["global", "declared"],
    "replace_one": ["add_remove", "attribute"],
    "count": ["mode", "sum"],
    "mode": ["count", "sum"],
    "RELEASE": ["TEST"],
    "place": ["day"],
    "os": ["test"],
    "proved": ["solver"],
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public folder of a release with a channel for all to see and a committed mechanism."""
    folder = tmp_path_factory.mktemp("values")
    rows = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
    ]
    weak = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
    queries = [query("count", sensitivity="global"), query("mode", guarantee=weak)]
    return run_release(Small(rows, queries, fixed=["place"]).write(folder), folder / "out").public


@pytest.fixture
def public(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built.parent.parent, tmp_path / "out")
    return tmp_path / "out" / "public" / built.name


def places(value: Any, at: PATH = ()) -> Iterator[PATH]:
    """The path of every value that holds no other, and of every list; of long ones the ends."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*at, name))
        return
    yield at
    if isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from places(value[index], (*at, index))


def others(value: Any) -> list[Any]:
    """Other values of the same kind, some of which a schema lets pass."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, str):
        return _other_texts(value)
    if value is None:
        return [1, "other"]
    lists = [[*value, "other"], [*value, [0]], [*value, *value[-1:]], value[:-1], value[::-1]]
    return [other for other in lists if other != value]


def _other_texts(text: str) -> list[str]:
    if text in OTHERS:
        return [*OTHERS[text], "other"]
    if len(text) > 60:
        return [text[:-1] + ("0" if text[-1] != "0" else "1")]
    try:
        number = Fraction(text)
    except ValueError:
        return [text + "x", "other"]
    return [f"{number + 1}", "0.5"] if number.denominator == 1 else ["1", "0"]


def value_at(plain: Any, path: PATH) -> Any:
    for step in path:
        plain = plain[step]
    return plain


def changed(plain: Any, path: PATH, value: Any) -> Any:
    plain = copy.deepcopy(plain)
    value_at(plain, path[:-1])[path[-1]] = value
    return plain


def fit(public: Path) -> None:
    """Make descriptions and sums fit the record again."""
    try:
        record = parse(ReleaseRecord, (public / "release.json").read_bytes())
        spec = parse_spec((public / "spec.yaml").read_bytes())
        tables = {each.output.path: public / each.output.path for each in record.queries}
        sizes = {name: table.stat().st_size for name, table in tables.items()}
        (public / DATAPACKAGE).write_bytes(datapackage(spec, record, sizes))
        (public / REGISTRY).write_bytes(registry(spec, record))
    except (ReleaseError, ValueError, LookupError, OSError):
        # No record at all, or none that could be described: the verifier has to say so.
        pass
    files = sorted(path for path in public.rglob("*") if path.is_file() and path.name != SUMS)
    sums = [f"{sha256(path.read_bytes())}  {path.relative_to(public)}\n" for path in files]
    (public / SUMS).write_text("".join(sums), "utf-8")


def accepted(public: Path) -> bool:
    try:
        verify(public, auditor_bundle(public), UNSIGNED)
    except VerificationError:
        return False
    return True


TAKEN_FROM_THE_CURATOR = {
    ("published",),
    ("software", "dp_release"),
    ("software", "duckdb"),
    ("software", "highs"),
    ("software", "python"),
    ("software", "source"),
    ("software", "environment", "extras"),
    ("software", "environment", "sha256"),
}


@pytest.mark.parametrize("third", range(3))
def test_every_value_of_a_release_record_counts(third: int, public: Path) -> None:
    path = public / "release.json"
    plain = json.loads(path.read_bytes())
    fit(public)
    assert accepted(public)
    free = set()
    for at in list(places(plain))[third::3]:
        for value in others(value_at(plain, at)):
            path.write_bytes(rfc8785.dumps(changed(plain, at, value)))
            fit(public)
            if accepted(public):
                free.add(at)
    assert free <= TAKEN_FROM_THE_CURATOR


@pytest.mark.parametrize("third", range(3))
def test_every_value_of_a_public_mechanism_counts(third: int, public: Path) -> None:
    file, record = public / "mechanisms" / "the_count.json", public / "release.json"
    plain, release = (json.loads(path.read_bytes()) for path in (file, record))
    free = set()
    for at in list(places(plain))[third::3]:
        for value in others(value_at(plain, at)):
            data = rfc8785.dumps(changed(plain, at, value))
            file.write_bytes(data)
            at_sum: PATH = ("queries", 0, "mechanism_file", "sha256")
            record.write_bytes(rfc8785.dumps(changed(release, at_sum, sha256(data))))
            fit(public)
            if accepted(public):
                free.add(at)
    assert {at[:2] for at in free} <= ASSERTED_OF_A_MECHANISM


ASSERTED_OF_A_MECHANISM = {
    ("design", "bound"),
    ("design", "method"),
    ("design", "notes"),
    ("design", "solver"),
}


@pytest.mark.parametrize("third", range(3))
def test_every_value_of_an_auditors_mechanism_counts(third: int, public: Path) -> None:
    """The forger has the opening's key, so commitments fit."""
    half = auditor_bundle(public)
    assert half is not None
    file, record = half / "mechanisms" / "the_mode.json", public / "release.json"
    plain, release = (json.loads(path.read_bytes()) for path in (file, record))
    openings = json.loads((half / "openings.json").read_bytes())
    opening: PATH = ("openings", "mechanisms/the_mode.json", "commitment")
    key = bytes.fromhex(value_at(openings, opening[:-1])["key"])
    free = set()
    for at in list(places(plain))[third::3]:
        for value in others(value_at(plain, at)):
            data = rfc8785.dumps(changed(plain, at, value))
            file.write_bytes(data)
            promise = commit(key, data)
            at_promise: PATH = ("queries", 1, "mechanism_file", "commitment")
            record.write_bytes(rfc8785.dumps(changed(release, at_promise, promise)))
            (half / "openings.json").write_bytes(rfc8785.dumps(changed(openings, opening, promise)))
            fit(public)
            if accepted(public):
                free.add(at)
    assert {at[:2] for at in free} <= ASSERTED_OF_A_MECHANISM


@pytest.mark.parametrize("name", ["sensitivity/the_mode.json", "openings.json"])
def test_every_value_beside_an_auditors_mechanism_counts(public: Path, name: str) -> None:
    half = auditor_bundle(public)
    assert half is not None
    plain = json.loads((half / name).read_bytes())
    for at in places(plain):
        for value in others(value_at(plain, at)):
            (half / name).write_bytes(rfc8785.dumps(changed(plain, at, value)))
            assert not accepted(public), at


def test_every_value_of_the_spec_counts_or_is_said_in_the_record(public: Path) -> None:
    """The descriptions are the curator's; what a query reads and promises is not."""
    path = public / "spec.yaml"
    text = path.read_text("utf-8")
    for before, after in (
        ("max_rows_per_unit: 3", "max_rows_per_unit: 4"),
        ("max_rows_per_unit: 3", "max_rows_per_unit: 2"),
        ("neighbors: replace_one", "neighbors: add_remove"),
        ("unit: unit", "unit: place"),
        ("epsilon: '1'", "epsilon: '2'"),
        ("epsilon: '1000'", "epsilon: '1.9'"),
        ("scope: tests", "scope: other"),
        ("cyclic: 4", "cyclic: 5"),
        ("max: 5", "max: 6"),
        ("sensitivity: empirical", "sensitivity: global"),
        ("name: the_mode", "name: the_other"),
        ("- a\n", "- c\n"),
        ("title: Small", "title: Large"),
        ("license: CC0-1.0", "license: CC-BY-4.0"),
        ("purpose: tests", "purpose: none"),
        ("period: '2024'", "period: '2025'"),
        ("curator: Tests", "curator: Nobody"),
        ("contact: nobody@example.org", "contact: somebody@example.org"),
        ("id: small", "id: other"),
        ("- place\n  max_cells", "- day\n  max_cells"),
    ):
        assert before in text, before
        path.write_text(text.replace(before, after), "utf-8")
        fit(public)
        assert not accepted(public), after
    path.write_text(text, "utf-8")
    fit(public)
    assert accepted(public)
