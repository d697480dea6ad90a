"""The verifier in one file: the sample release of the formats, with one thing changed."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from release.verification import standalone
from tests.sample import FOLDER
from tests.verification.standalone.alone import Plain, asked, plain_spec, refused, set_in

PUBLIC, AUDITOR = FOLDER / "public" / "small", FOLDER / "auditor" / "small"
RECORD = "release.json"
KEY = standalone.read_key((FOLDER / "key.pub").read_text("utf-8"))


@cache
def stored() -> standalone.Release:
    """The sample, read once with all that there is."""
    return standalone.Release(PUBLIC, AUDITOR, standalone.Trust((KEY,), (), FOLDER / "ledger"))


@pytest.fixture
def sample() -> standalone.Release:
    """A copy of the sample to change."""
    own = copy.copy(stored())
    own.record, own.files = copy.deepcopy(own.record), dict(own.files)
    own.proved, own.missing, own.tested = [], [], []
    return own


def test_all_of_the_sample_is_proved() -> None:
    found = stored()
    assert (
        found.missing == ["that the ledger only grew: give --witness KEY of one that cosigned"][1:]
    )
    names = ["the_count", "the_mode", "the_binned", "commonest", "total"]
    assert found.proved == [
        "a key signed every file, and a signed ledger holds the commit",
        "the ledger is intact, reserved the charge, and kept every cap",
        "release.json says what the spec says",
        "every condition looks at one row of declared columns at a time",
        *(f"{name}: the mechanism satisfies its guarantee" for name in names),
        "the charges follow from the spec, and their total keeps its cap",
    ]
    assert found.tested == ["the SHA-256 of 17 files"]


NOT_SIGNED = "who published this: no ledger, so nothing is signed"
WHO, WHOSE = (
    "who signed: give --trust KEY or --ledger DIR",
    "whose ledger this is: give --trust KEY",
)
PAID = "that the charge was reserved: give --ledger DIR"
GREW = "that the ledger only grew: give --witness KEY of one that cosigned"
LEDGER = FOLDER / "ledger"


@pytest.mark.parametrize(
    ("keys", "folder", "require", "missing"),
    [
        ((), None, "none", []),
        ((), None, "signed", [WHO]),
        ((KEY,), None, "signed", []),
        ((KEY,), None, "paid", [PAID]),
        ((), LEDGER, "none", []),
        ((), LEDGER, "signed", [WHOSE]),
        ((), LEDGER, "paid", [WHOSE]),
        ((KEY,), LEDGER, "paid", []),
        ((KEY,), LEDGER, "witnessed", [GREW]),
    ],
)
def test_what_is_missing_depends_on_what_is_asked(
    keys: tuple[standalone.Key, ...],
    folder: Path | None,
    require: str,
    missing: list[str],
    sample: standalone.Release,
) -> None:
    sample.trust = standalone.Trust(keys, (), folder, require)
    sample.ledger = None if folder is None else stored().ledger
    sample.check_provenance()
    assert sample.missing == missing


def test_what_is_unsigned_is_proved_by_no_key(sample: standalone.Release) -> None:
    sample.sequence = sample.ledger = None
    sample.trust = standalone.Trust()
    sample.check_provenance()
    assert sample.missing == [NOT_SIGNED]
    for keys, ledger in (((KEY,), None), ((), stored().ledger)):
        sample.trust, sample.ledger = standalone.Trust(keys), ledger
        with refused("release.json: ledger.sequence: found None, expected an entry"):
            sample.check_provenance()


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("release_id", "other", "release_id"),
        ("title", "Large", "title"),
        ("license", "none", "license"),
        ("privacy.unit", "kind", "privacy.unit"),
        ("privacy.neighbors", "add_remove", "privacy.neighbors"),
        ("privacy.max_rows_per_unit", 4, "privacy.max_rows_per_unit"),
        ("privacy.fixed", ["day"], "privacy.fixed"),
        ("privacy.enforced_by", "", "privacy.enforced_by"),
        ("privacy.adjacency_text", lambda text: text + ".", "privacy.adjacency_text"),
        ("ledger.scope", "others", "ledger.scope"),
        ("sampling.source", "seed", "sampling"),
        ("guarantee.kind", "worst-case", "guarantee.kind"),
        ("withheld", [], "withheld"),
        ("withheld", standalone.WITHHELD, "withheld"),
        ("limits", standalone.LIMITS[1:], "limits"),
        ("invariants", ["all"], "invariants"),
        ("post_processing", ["all"], "post_processing"),
        ("published", "2026-02-30", "published: found 2026-02-30"),
        ("software.environment.extras", ["flows", "fast"], "software.environment.extras"),
        ("software.environment.extras", ["fast", "fast"], "software.environment.extras"),
        ("queries.0.name", "other", "queries"),
        ("queries", lambda listed: listed[:4], "queries"),
        ("queries", lambda listed: [*listed[1:], listed[0]], "queries"),
        ("tabulations", [], "tabulations"),
        ("queries.0.kind", "mode", "the_count.kind"),
        ("queries.0.by", [], "the_count.by"),
        ("queries.0.domain", {"ordered": {"min": 0, "max": 6}}, "the_count.domain"),
        ("queries.0.definition", "approximate", "the_count.definition"),
        ("queries.0.epsilon", "1.0", "the_count.epsilon"),
        ("queries.0.delta", "0.1", "the_count.delta"),
        ("queries.0.sensitivity_source", "declared", "the_count.sensitivity_source"),
        ("queries.1.guarantee_kind", "worst-case", "the_mode.guarantee_kind"),
        ("queries.0.guarantee_kind", "instance-specific", "the_count.guarantee_kind"),
        ("queries.1.mechanism", "channel", "the_mode.mechanism"),
        ("queries.2.mechanism", "integer", "the_binned.mechanism"),
        ("queries.0.mechanism_file", {"commitment": "x"}, "the_count: committed"),
        ("queries.1.mechanism_file", {"path": "x"}, "the_mode: committed"),
    ],
)
def test_a_record_says_what_the_spec_says(
    place: str, value: Any, says: str, sample: standalone.Release
) -> None:
    sample.check_record()
    set_in(sample.record, place, value)
    with refused(f"{RECORD}: {says}"):
        sample.check_record()


def test_a_record_without_an_environment_is_read(sample: standalone.Release) -> None:
    sample.record["software"]["environment"] = None
    sample.check_record()
    sample.sequence = None
    sample.record["withheld"] = standalone.WITHHELD
    sample.check_record()


@pytest.mark.parametrize(
    ("privacy", "text"),
    [
        ({"fixed": ["place"]}, ", which keeps its place"),
        ({"fixed": ["place", "day"]}, ", which keeps its place and day"),
        ({"replacement": "domain"}, standalone.WITHIN),
        ({"fixed": ["day"], "replacement": "domain"}, f", which keeps its day{standalone.WITHIN}"),
        ({"replacement": "observed"}, ""),
    ],
)
def test_the_neighbors_are_told_in_words(
    privacy: Plain, text: str, sample: standalone.Release
) -> None:
    plain = json.loads(sample.files["spec.json"])
    plain["privacy"] |= privacy
    sample.spec = standalone.Spec(plain)
    sample.record["privacy"]["fixed"] = privacy.get("fixed", [])
    sample.record["privacy"]["adjacency_text"] += text
    sample.check_record()


def claimed(**fields: Any) -> standalone.Query:
    return standalone.Spec(plain_spec(asked("count") | fields)).query("own")


def entry_of(query: standalone.Query, mechanism: str) -> Plain:
    definition, epsilon, delta = query.claimed({"definition": "pure", "epsilon": "1", "delta": "0"})
    seen = query.source == "empirical"
    return {
        **{"kind": query.kind, "by": [], "domain": query.domain, "definition": definition},
        **{"epsilon": standalone.exact(epsilon), "delta": standalone.exact(delta)},
        **{"sensitivity_source": query.source, "mechanism": mechanism},
        "guarantee_kind": "instance-specific" if seen else "worst-case",
        "mechanism_file": {"commitment": "c"} if seen else {"path": "p"},
    }


WIDE: Plain = {"domain": {"ordered": {"min": 0, "max": 21}}}
SEEN: Plain = {"sensitivity": "empirical"}


def weak(epsilon: str, delta: str = "0.1", definition: str = "approximate") -> Plain:
    return {"guarantee": {"definition": definition, "epsilon": epsilon, "delta": delta}}


@pytest.mark.parametrize(
    ("fields", "mechanism"),
    [
        (SEEN, "channel"),
        (SEEN | {"domain": {"ordered": {"min": 1, "max": 21}}}, "channel"),
        (SEEN | WIDE, "integer"),
        (SEEN | weak("0.001"), "channel"),
        (SEEN | weak("0.0009995"), "integer"),
        (SEEN | weak("0"), "none"),
        (SEEN | {"loss": "noise_squared"}, "none"),
        (SEEN | weak("1", "0.1", "probabilistic"), "none"),
        (SEEN | weak("1", "0", "probabilistic"), "channel"),
        (SEEN | {"kind": "mode", "of": "kind", "domain": {"cyclic": 4}}, "modular"),
        (SEEN | {"mechanism": "integer"}, "integer"),
        ({"mechanism": "channel"}, "channel"),
    ],
)
def test_the_mechanism_of_what_is_seen_follows_from_the_spec(
    fields: Plain, mechanism: str, sample: standalone.Release
) -> None:
    query = claimed(**fields)
    sample.check_entry(query, entry_of(query, mechanism))
    other = "integer" if mechanism == "channel" else "channel"
    with refused(f"{RECORD}: own.mechanism: found '{other}', expected '{mechanism}'"):
        sample.check_entry(query, entry_of(query, other))
    if fields.get("sensitivity") and "mechanism" not in fields:
        free = claimed(
            **fields | {"sensitivity": "global", "noise": "on_answer"} if "kind" in fields else {}
        )
        sample.check_entry(free, entry_of(free, "anything"))


@pytest.mark.parametrize(
    ("guarantee", "is_right"),
    [
        (weak("100"), True),
        (weak("100.1"), False),
        (weak("1", "0.999"), True),
        (weak("1", "1"), False),
        (weak("1", "0", "pure"), True),
        (weak("1", "0.1", "pure"), False),
    ],
)
def test_a_guarantee_lies_within_its_limits(
    guarantee: Plain, is_right: bool, sample: standalone.Release
) -> None:
    query = claimed(**guarantee)
    if is_right:
        sample.check_entry(query, entry_of(query, "integer"))
        return
    with refused(f"{RECORD}: own.epsilon, delta"):
        sample.check_entry(query, entry_of(query, "integer"))


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("queries.0.output.path", "data/total.parquet", f"{RECORD}: the_count.output.path"),
        ("queries.0.output.rows", 3, f"{RECORD}: the_count.output.rows"),
        ("queries.0.output.sha256", "0" * 64, "data/the_count.parquet: SHA-256 in release.json"),
        (
            "queries.0.mechanism_file.path",
            "mechanisms/total.json",
            f"{RECORD}: the_count.mechanism_file: found mechanisms/total.json",
        ),
        ("queries.0.mechanism_file.sha256", "0" * 64, "mechanisms/the_count.json: SHA-256"),
        ("queries", lambda listed: listed[:4], "SHA256SUMS: file set of release.json"),
    ],
)
def test_the_files_of_a_release_are_those_of_its_record(
    place: str, value: Any, says: str, sample: standalone.Release
) -> None:
    sample.check_files()
    set_in(sample.record, place, value)
    with refused(says):
        sample.check_files()


def test_a_mechanism_file_may_be_that_of_an_earlier_query(sample: standalone.Release) -> None:
    first, last = (sample.record["queries"][place]["mechanism_file"] for place in (0, 4))
    sums = sample.sums = dict(sample.sums)
    del sums[last["path"]]
    last.update(first)
    sample.check_files()
    sample.sequence = None
    with refused("SHA256SUMS: file set of release.json"):
        sample.check_files()
    for name in ("ledger.proof", "attestation.dsse.json"):
        del sums[name]
    sample.check_files()


def test_measured_tables_are_files_of_a_release(sample: standalone.Release) -> None:
    digest = "1" * 64
    output = {"path": "data/areas.parquet", "rows": 4, "sha256": digest}
    path = "measurements/m.parquet"
    file = {"path": "mechanisms/m.json", "sha256": digest}
    measured = {"name": "m", "cells": 4, "output": output | {"path": path}, "mechanism_file": file}
    declared = {"output": output | {"path": "data/known.parquet"}}
    sample.record["tabulations"] = [
        {"levels": [{"output": output}], "declared": [declared], "measured": [measured]}
    ]
    paths = [path, str(file["path"]), str(output["path"]), "data/known.parquet"]
    sample.sums = {**stored().sums, **dict.fromkeys(paths, digest)}
    sample.check_files()
    for name in paths:
        sample.sums = {**stored().sums, **dict.fromkeys(set(paths) - {name}, digest)}
        with refused(f"{name}: SHA-256 in release.json"):
            sample.check_files()


def envelope(sample: standalone.Release, change: Callable[[Plain], object]) -> None:
    plain = json.loads(sample.files[standalone.ATTESTATION])
    change(plain)
    sample.files[standalone.ATTESTATION] = rfc8785.dumps(plain)


def test_an_attestation_is_of_all_files_but_itself(sample: standalone.Release) -> None:
    sample.check_attestation([KEY])
    sample.sums = dict(sample.sums) | {"more": "0" * 64}
    for keys in ([], [KEY]):
        with refused(f"{standalone.ATTESTATION}: payload"):
            sample.check_attestation(keys)
    sample.sums = stored().sums
    other = KEY._replace(key=standalone.BASE_POINT[1].to_bytes(32, "little"))
    with refused(f"{standalone.ATTESTATION}: signature"):
        sample.check_attestation([other])
    sample.check_attestation([other, KEY])
    named = other._replace(key=b"\2" * 32)
    envelope(
        sample, lambda e: e["signatures"][0].update(keyid=hashlib.sha256(named.key).hexdigest())
    )
    with refused(f"{standalone.ATTESTATION}: signature"):
        sample.check_attestation([KEY, named])
    sample.check_attestation([])
    envelope(sample, lambda plain: plain.update(payloadType="text/plain"))
    with refused(f"{standalone.ATTESTATION}: payloadType"):
        sample.check_attestation([])


def test_a_proof_leads_to_its_checkpoint(sample: standalone.Release) -> None:
    proof = sample.files["ledger.proof"].decode()
    index = proof.split("\nindex ")[1].split("\n")[0]
    assert index == "2"

    def check(old: str, new: str, says: str) -> None:
        assert old in proof
        sample.files["ledger.proof"] = proof.replace(old, new, 1).encode()
        for ledger in (None, stored().ledger):
            sample.ledger = ledger
            sample.trust = standalone.Trust((KEY,), (), LEDGER if ledger else None)
            with refused(f"ledger.proof: {says}"):
                sample.check_provenance()

    check("index 2", "index 3", "index, origin: found (3, 'example.org/dp')")
    check("index 2", "index 1", "path")
    lines = proof.split("\n")
    check(lines[3] + "\n", "", "path")
    swapped = lines[3][:3] + ("A" if lines[3][3] != "A" else "B") + lines[3][4:]
    check(lines[3], swapped, "root")
    check("\n3\n", "\n4\n", "signature")


def renamed(entries: list[Plain], place: int, **fields: Any) -> list[Plain]:
    return [entry | (fields if n == place else {}) for n, entry in enumerate(entries)]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": "store"}, "entry 1.kind"),
        ({"release_id": "other"}, "entry 1.release_id"),
        ({"scope": "other"}, "entry 1.scope"),
        ({"epsilon": "9.4"}, "entry 1.epsilon"),
        ({"delta": "0.1"}, "entry 1.delta"),
    ],
)
def test_the_entry_that_pays_is_of_this_release(
    fields: Plain, says: str, sample: standalone.Release
) -> None:
    ledger = sample.ledger = copy.copy(stored().ledger)
    assert ledger is not None
    ledger.entries = renamed(ledger.entries, 1, **fields)
    with refused(f"ledger: {says}"):
        sample.check_provenance()


def test_no_entry_between_names_the_release(sample: standalone.Release) -> None:
    ledger = sample.ledger = copy.copy(stored().ledger)
    assert ledger is not None
    ledger.entries = [*ledger.entries[:2], {"release_id": "small"}, *ledger.entries[2:]]
    ledger.committed, ledger.keys = {"small": 3}, [*ledger.keys, ledger.keys[-1]]
    ledger.check_checkpoint = lambda *_: ("", 4, b"", set())  # type: ignore[method-assign]
    with refused("ledger: entries between: found {'release_id': 'small'}"):
        sample.check_provenance()
    ledger.entries[2] = {"release_id": "other"}
    sample.check_provenance()
    ledger.said = ledger.said | {"revise": {"small": "newer"}}
    sample.check_provenance()
    assert sample.tested == ["the ledger: revised, newer takes its place"]
    ledger.said = ledger.said | {"withdraw": {"small": ""}}
    with refused("ledger: commit: found small"):
        sample.check_provenance()
    ledger.check_checkpoint = lambda *_: ("", 3, b"", set())  # type: ignore[method-assign]
    with refused("checkpoint: size"):
        sample.check_provenance()


def bundle(folder: Path) -> Path:
    return Path(shutil.copytree(AUDITOR, folder / "small"))


def test_an_auditor_bundle_is_found_by_its_name(tmp_path: Path, sample: standalone.Release) -> None:
    own = bundle(tmp_path)
    data = (own / "mechanisms" / "the_mode.json").read_bytes()
    opened = {"mechanisms/the_mode.json": data}
    assert sample.open_auditor(own) == sample.open_auditor(tmp_path) == opened
    assert sample.open_auditor(None) == {}
    (own / "more").write_text("x")
    with refused("auditor bundle: files"):
        sample.open_auditor(own)


def test_an_opening_is_that_of_the_record(tmp_path: Path, sample: standalone.Release) -> None:
    own = bundle(tmp_path)
    path = own / "openings.json"
    plain = json.loads(path.read_bytes())
    inner = plain["openings"]["mechanisms/the_mode.json"]
    for change, says in (
        ({"release_id": "other"}, "openings.json: release_id"),
        ({"schema": "dp-release/openings/v2"}, "openings.json: schema"),
        ({"openings": {}}, "openings.json: openings"),
        ({"openings": {"mechanisms/other.json": inner}}, "openings.json: openings"),
    ):
        path.write_bytes(rfc8785.dumps(plain | change))
        with refused(says):
            sample.open_auditor(own)
    other = "hmac-sha256:" + "0" * 64
    for change in ({"commitment": other}, {"key": "0" * 64}):
        path.write_bytes(
            rfc8785.dumps(plain | {"openings": {"mechanisms/the_mode.json": inner | change}})
        )
        with refused("mechanisms/the_mode.json: commitment"):
            sample.open_auditor(own)
    data = (own / "mechanisms" / "the_mode.json").read_bytes()
    value = hmac.new(bytes(32), data, hashlib.sha256).hexdigest()
    assert sample.record["queries"][1]["mechanism_file"]["commitment"] != f"hmac-sha256:{value}"


@pytest.mark.parametrize(
    ("place", "value", "is_read"),
    [
        ("query", "other", False),
        ("source", "global", False),
        ("neighbors", "add_remove", False),
        ("group", [5], False),
        ("sensitivity", [[1]], False),
        ("distances", [1], False),
        ("distances", None, True),
        ("schema", "dp-release/sensitivity/v2", False),
    ],
)
def test_a_sensitivity_file_says_what_the_mechanism_says(
    place: str, value: Any, is_read: bool, sample: standalone.Release
) -> None:
    path = "sensitivity/the_mode.json"
    plain = json.loads((AUDITOR / path).read_bytes())
    mechanism = json.loads((AUDITOR / "mechanisms" / "the_mode.json").read_bytes())
    plain[place] = value
    files = {path: rfc8785.dumps(plain)}
    if is_read:
        sample.check_sensitivity("the_mode", files, mechanism)
        return
    with refused(f"{path}: sensitivity"):
        sample.check_sensitivity("the_mode", files, mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "integer", "distances": [[1, 1], [3, 4]]},
        {"mechanism": "channel", "pairs": [[0, 1], [1, 0], [0, 3], [3, 0], [5, 1], [1, 5]]},
    ],
)
def test_distances_of_neighbors_are_those_of_the_mechanism(
    mechanism: Plain, sample: standalone.Release
) -> None:
    named = {"schema": "dp-release/sensitivity/v1", "query": "q", "source": "empirical"}
    plain: Plain = {"neighbors": "replace_one", "group": [9], "distances": [1, 3, 4]}
    plain |= {"sensitivity": [[1], [3], [4], [5], [6], [8]]}

    def check(**change: Any) -> None:
        files = {"sensitivity/q.json": rfc8785.dumps(named | plain | change)}
        sample.check_sensitivity("q", files, mechanism | {"group": [9]})

    check()
    for change in ({"distances": [1, 3]}, {"sensitivity": [[1], [8]]}, {"distances": None}):
        with refused("sensitivity/q.json: sensitivity"):
            check(**change)
    files = {"sensitivity/q.json": b"{}"}
    far: Plain = {"mechanism": "integer", "distances": [[2, 3]], "group": [9]}
    with refused("sensitivity/q.json: distances: found [2, 3], expected 1 among them"):
        sample.check_sensitivity("q", files, far)
    with refused("sensitivity/q.json: distances: found 4503599627370496, expected at most 10^6"):
        wide: Plain = {"mechanism": "integer", "distances": [[1, 2**52]], "group": [2**53 - 1]}
        sample.check_sensitivity("q", files, wide)


def test_charges_are_counted_in_fractions(sample: standalone.Release) -> None:
    opened = {"mechanisms/the_mode.json": (AUDITOR / "mechanisms/the_mode.json").read_bytes()}
    charged = sample.read_queries(opened)
    assert [str(each.charge[0]) for each in charged] == ["2", "2", "2", "2", "3/2"]
    assert [each.touched for each in charged] == [2] * 5
    assert not any(each.delta or each.charge[1] for each in charged)
    found = [each.patterns for each in charged]
    rows = [[1, 1, 1], [2, 1], [3]]
    both = [sorted(a + b, reverse=True) for a in rows for b in rows if len(a + b) <= 2]
    assert found == [both, [], [[5, 5]], [[2, 2]], [[60, 60]]]
    assert sample.missing == []
    sample.read_queries({})
    assert sample.missing == ["the_mode: its mechanism is committed; give --auditor DIR"]
