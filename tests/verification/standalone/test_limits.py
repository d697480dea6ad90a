"""The verifier in one file: what would take it an hour, or all memory, is refused at once."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.records.keys.files import FileSigner
from release.verification import standalone
from tests.sample import FOLDER
from tests.verification.standalone.alone import (
    Plain,
    asked,
    plain_spec,
    query_of,
    refused,
    unpublished,
)
from tests.verification.standalone.test_ledger import (
    BASIC,
    FILTER,
    KEY,
    abort,
    change_key,
    genesis,
    read,
    reserve,
)
from tests.verification.standalone.test_tabulated import tabulated

PUBLIC = FOLDER / "public" / "small"


def test_memory_that_does_not_suffice_is_a_refusal_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(standalone, "Release", fill)
    assert standalone.main([str(PUBLIC)]) == 1
    assert capsys.readouterr().out == "refused: a file is not of its form: MemoryError: \n"


def oversized(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**30 + 1)


def test_a_ledger_is_read_from_plain_files_alone(tmp_path: Path) -> None:
    read(tmp_path, genesis())
    place = tmp_path / "00000001.json"
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), oversized):
        make(place)
        with refused("00000001.json: file: found none or another, expected a plain file of at"):
            standalone.Ledger(tmp_path)
        place.rmdir() if place.is_dir() else place.unlink()


def test_a_checkpoint_is_a_plain_file(tmp_path: Path) -> None:
    for entry in (FOLDER / "ledger").glob("*.json"):
        (tmp_path / entry.name).write_bytes(entry.read_bytes())
    trust = standalone.Trust((), (), tmp_path)
    with refused("checkpoint: file: found none or another"):
        standalone.Release(PUBLIC, None, trust)
    os.mkfifo(tmp_path / "checkpoint")
    with refused("checkpoint: file: found none or another"):
        standalone.Release(PUBLIC, None, trust)


def test_sixteen_keys_are_valid_at_once(tmp_path: Path) -> None:
    keys = [FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in range(3, 19)]
    added = [change_key("add", key, KEY) for key in keys]
    ledger = read(tmp_path / "right", genesis(), *added[:15])
    assert len(ledger.keys[-1]) == 16
    retired = [*added[:15], change_key("retire", keys[0], KEY), added[15]]
    assert len(read(tmp_path / "other", genesis(), *retired).keys[-1]) == 16
    with refused("00000016.json: key: found 17, expected at most 16 valid at once"):
        read(tmp_path / "wrong", genesis(), *added)


def test_a_group_of_more_than_a_million_is_that_of_a_count() -> None:
    wide = {"domain": {"ordered": {"min": 0, "max": 2**52}}}
    assert query_of(asked("count", **wide)).group == [2**52 + 1]
    large = {"domain": {"ordered": {"min": 1, "max": 10**6}}}
    for kind in ("mode", "quantiles"):
        assert query_of(asked(kind, **large)).group == [10**6]
        with refused("spec.json: own.domain: found [4503599627370497]"):
            query_of(asked(kind, **wide))
    grid = {"low": 0, "high": 10**6 - 1, "step": 1, "scale": "1"}
    summed = {k: each for k, each in asked("sum", of="kwh", grid=grid).items() if k != "bins"}
    assert query_of(summed).group == [10**6]
    with refused("spec.json: own.domain: found [1000001]"):
        query_of(summed | {"grid": grid | {"high": 10**6}})


def test_a_tuple_has_a_million_answers_at_most() -> None:
    for most, says in ((999, ""), (1000, "spec.json: own.domain: found [1000, 1001]")):
        sizes = {"a": 999, "b": most}
        parts = [
            unpublished("count", name, domain={"ordered": {"min": 0, "max": largest}})
            for name, largest in sizes.items()
        ]
        if not says:
            assert query_of(asked("tuple", of=["a", "b"]), *parts).group == [1000, 1000]
            continue
        with refused(says):
            query_of(asked("tuple", of=["a", "b"]), *parts)


def test_all_key_sets_have_two_million_keys_at_most() -> None:
    plain = plain_spec(asked("count"))
    half: Plain = {"range": [1, 2**20]}
    plain["keys"] = {"day": half, "kind": {"range": [1, 2**20 - 3]}, "place": ["a", "b", "c"]}
    sizes = standalone.Spec(plain).key_sizes([])
    assert sum(sizes.values()) == 2**21
    plain["keys"]["born"] = {"file": "days.csv"}
    standalone.Spec(plain)
    plain["keys"]["sort"] = ["x"]
    with refused("spec.json: keys: found 2097153 in all, expected at most 2097152"):
        standalone.Spec(plain)
    # A range that is none does not make room for others.
    plain["keys"]["sort"] = {"range": [9, 1]}
    plain["keys"]["kind"] = half
    with refused("spec.json: keys: found 2097155 in all"):
        standalone.Spec(plain)


def test_a_tabulation_names_a_million_categories_at_most() -> None:
    whole: Plain = {"range": [1, 2**18]}
    change: Plain = {
        "attributes": {"kind": whole},
        "groupings": {
            name: {"of": "kind", "classes": {"all": whole}} for name in ("age", "status")
        },
        "publish": {"land": [[]], "place": [["age"]]},
        "constraints": [{"impossible": {"kind": whole}}],
    }
    assert tabulated(change).categories == {"people": {"kind": 2**18, "age": 1, "status": 1}}
    named = {"range": [1, 2**18 + 1]}
    for more in (
        {"attributes": {"kind": named}},
        {"groupings": change["groupings"] | {"more": {"of": "kind", "classes": {"a": [1]}}}},
        {"constraints": [{"impossible": {"kind": named}}]},
        {"constraints": change["constraints"] + [{"impossible": {"kind": [1]}}]},
    ):
        with refused("spec.json: people: categories: found 1048577 in all, expected at most 1"):
            tabulated(change | more)
    with refused("spec.json: people: categories: found 315359232 in all"):
        tabulated(change | {"attributes": {f"k{i}": {"range": [1, 2**20]} for i in range(300)}})


def test_the_categories_of_a_tabulation_make_a_million_combinations_at_most() -> None:
    change: Plain = {"groupings": {}, "publish": {"land": [[]], "place": [[]]}}
    two: Plain = {"sort": {"range": [1, 2**10]}, "kind": {"range": [1, 2**10]}}
    assert tabulated(change | {"attributes": two})
    wrong: list[Any] = [{"range": [1, 2**10 + 1]}, []]
    for more in wrong:
        with refused("spec.json: people: combinations: found 2"):
            tabulated(change | {"attributes": two | {"kind": more}})
    many = {f"k{i}": ["x", "y"] for i in range(20_000)}
    with refused("spec.json: people: combinations: found 20000"):
        tabulated(change | {"attributes": many})


def test_charges_are_added_to_what_is_paid(tmp_path: Path) -> None:
    """Sums of fractions whose denominators are large and different are made once."""
    period = {"every": "month", "epsilon": "0.9", "delta": "0.9"}
    entries = [genesis(BASIC | {"period": period})]
    for number in range(150):
        tiny = f"1/{10**390 + 2 * number + 1}"
        entries.append(reserve(f"r{number}", tiny, delta=tiny))
    entries += [abort("r149", drawn=False), reserve("last", "0.5", delta="1/4")]
    ledger = read(tmp_path, *entries)
    standing = [Fraction(each["epsilon"]) for each in ledger.standing]
    assert len(standing) == 150
    paid = sum(standing[1:], standing[0])
    for day in ("", "2024", "2024-03", "2024-03-01"):
        assert ledger.paid["s", day, "epsilon"] == paid
        assert ledger.paid["s", day, "delta"] == paid - Fraction(1, 4)


def test_cuts_are_added_to_what_is_paid(tmp_path: Path) -> None:
    cap = FILTER | {"cuts": "0.3", "delta": "0.9", "epsilon": "3"}
    cuts = [reserve("a", moment="1", cut="0.1"), reserve("b", moment="1", cut="1/5")]
    ledger = read(tmp_path / "right", genesis(cap), *cuts)
    assert ledger.paid["s", "", "cut"] == Fraction(3, 10)
    freed = [*cuts, abort("a", drawn=False), reserve("c", moment="1", cut="0.1")]
    read(tmp_path / "freed", genesis(cap), *freed)
    with refused("00000003.json: cut: found 0.000001, expected 0.3 in all"):
        read(tmp_path / "wrong", genesis(cap), *cuts, reserve("c", moment="1", cut="0.000001"))


def eight(*declared: list[int]) -> standalone.Query:
    """Eight counts of up to a million rows, of which a unit changes so much alone."""
    sizes = {f"p{place}": size for place, size in enumerate((3, 3, 3, 3, 2, 2, 2, 2))}
    parts = [
        unpublished("count", name, domain={"ordered": {"min": 0, "max": size - 1}})
        for name, size in sizes.items()
    ]
    both = asked("tuple", of=list(sizes), sensitivity={"declared": list(declared)})
    return query_of(both, *parts, max_rows_per_unit=10**6)


def test_changes_that_are_not_declared_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(map(list, product(range(3), range(3), range(3), range(3), *[range(2)] * 4)))
    assert eight(*every).rows == 10**6
    monkeypatch.setattr(standalone.Query, "sensitivity", None)
    wide = eight(*(each for each in every if each not in ([1] * 8, [2] * 4 + [1] * 4)))
    assert wide.changes(1) == wide.changes(10**6) == [{0, 1, 2}] * 4 + [{0, 1}] * 4
    with refused("spec.json: declared sensitivity: found no row fits"):
        _ = wide.rows
    with refused("spec.json: declared sensitivity: found no row fits"):
        _ = eight([1] * 8).rows
