"""The verifier in one file: the charges of queries, by their keys and mechanisms, and profiles."""

from __future__ import annotations

import json
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest
import rfc8785

from release.verification import standalone
from tests.verification.standalone.alone import Plain, asked, plain_spec, refused
from tests.verification.standalone.test_tabulated import tabulated

NOTHING, STEP = Fraction(0), Fraction(1, 64)
WEAK: Plain = {"definition": "approximate", "epsilon": "1", "delta": "0.1"}
ONE_WAY: Plain = {"neighbors": "add_remove"}


def entry(cells: int, **fields: Any) -> Plain:
    own = {"name": "own", "by": [], "cells": cells, "epsilon": "1", "delta": "0.1"}
    return own | {"mechanism": "channel", "mechanism_file": {"path": "m"}} | fields


def read(
    spec: standalone.Spec, *entries: Plain, tables: list[Plain] | None = None
) -> tuple[list[standalone.Charged], list[str]]:
    """What is charged of a release with mechanisms that are not looked at, and what is missing."""
    release = object.__new__(standalone.Release)
    file = b'{"mechanism":"channel"}'
    release.spec, release.files = spec, {"m": file, "own": file}
    release.record = {"queries": list(entries)}
    if tables is not None:
        release.record["tabulations"] = [{"measured": tables, "table": "rows"}]
    release.missing, release.proved = [], []
    return release.read_queries({}), release.missing


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The δ that every mechanism uses: the last of this list."""
    deltas = [NOTHING]
    monkeypatch.setattr(standalone, "check_mechanism", lambda *_: (deltas[-1], None))
    return deltas


def counted(by: list[str], **fields: Any) -> standalone.Spec:
    privacy = {name: fields.pop(name) for name in ("fixed", "neighbors") if name in fields}
    plain = plain_spec(asked("count", by=by, guarantee=WEAK, **fields), **privacy)
    plain["privacy"]["max_rows_per_unit"] = 10**6
    return standalone.Spec(plain)


def test_a_delta_is_charged_as_far_as_it_is_used(used: list[Fraction]) -> None:
    spec = counted(["place"], max_rows_per_unit=2)
    own = entry(3, by=["place"])
    for delta, charged in (
        ("0", "0"),
        ("1/30", "0.033333333334"),
        ("0.05", "0.05"),
        ("0.0500000000001", "0.050000000001"),
        ("0.09", "0.09"),
        ("0.2", "0.1"),
    ):
        used.append(Fraction(delta))
        (found,), missing = read(spec, own)
        assert (found.query.name, missing) == ("own", [])
        assert found.delta == Fraction(charged)
        assert found.charge == (Fraction(3), 3 * Fraction(charged))
        assert (found.touched, found.patterns) == (3, [[2, 1, 1], [2, 2]])


def test_what_is_seen_is_charged_as_it_is_claimed(used: list[Fraction]) -> None:
    plain = plain_spec(asked("count", by=["place"], sensitivity="empirical", guarantee=WEAK))
    spec = standalone.Spec(plain)
    (found,), missing = read(spec, entry(3, by=["place"], mechanism_file={"commitment": "c"}))
    assert found.charge == (Fraction(3), Fraction(3, 10))
    assert (found.delta, found.patterns) == (Fraction(1, 10), [])
    assert found.mechanism is None
    assert missing == ["own: its mechanism is committed; give --auditor DIR"]


def test_keys_that_are_fixed_leave_one_cell(used: list[Fraction]) -> None:
    for fixed, touched in (([], 15), (["place"], 5), (["place", "day"], 1)):
        spec = counted(["place", "day"], fixed=fixed, max_rows_per_unit=100)
        (found,), missing = read(spec, entry(15, by=["place", "day"]))
        assert (found.touched, missing) == (touched, [])


def in_file(rows: int, *others: Plain, **fields: Any) -> standalone.Spec:
    plain = plain_spec(asked("count", by=["sort"], max_rows_per_unit=rows, **fields), *others)
    plain["keys"] = {"sort": {"file": "sort.csv"}, "born": {"file": "born.csv"}}
    plain["privacy"]["max_rows_per_unit"] = 10**6
    return standalone.Spec(plain)


UNREAD = "own: the number of keys in a file, which its charge needs"


@pytest.mark.parametrize(
    ("rows", "cells", "is_read"),
    [
        (3, 6, True),
        (3, 5, False),
        (3, 100, True),
        (10**6, 6 * 10**5, False),
        (10**6, 10**6, True),
    ],
)
def test_a_charge_that_more_keys_would_raise_is_not_proved(
    rows: int, cells: int, is_read: bool, used: list[Fraction]
) -> None:
    spec = in_file(rows, of="unit")
    (found,), missing = read(spec, entry(cells, by=["sort"]))
    assert found.touched == min(cells, 2 * rows)
    assert missing == ([] if is_read else [UNREAD])


@pytest.mark.parametrize(("cells", "is_read"), [(6 * 10**5, False), (10**6, True)])
def test_a_statement_touches_all_of_its_cells(
    cells: int, is_read: bool, used: list[Fraction]
) -> None:
    plain = plain_spec(asked("sql", by=["sort"], guarantee=WEAK))
    plain["keys"] = {"sort": {"file": "sort.csv"}}
    (found,), missing = read(standalone.Spec(plain), entry(cells, by=["sort"]))
    assert found.touched == cells
    assert missing == ([] if is_read else [UNREAD])


def test_keys_that_nothing_tells_leave_the_charges_open(used: list[Fraction]) -> None:
    plain = plain_spec(asked("count", by=["sort", "born"]))
    plain["keys"] = {"sort": {"file": "sort.csv"}, "born": {"file": "born.csv"}}
    found, missing = read(standalone.Spec(plain), entry(6, by=["sort", "born"]))
    assert found == []
    assert missing == ["the charges: the keys of ['sort', 'born'] stand in files"]


def test_a_measured_table_is_charged_as_a_count(used: list[Fraction]) -> None:
    used.append(Fraction(1, 100))
    for privacy, cells, touched, missing in (
        ({}, 12, 2, []),
        ({}, 1, 1, ["m: the number of areas, which its charge needs"]),
        (ONE_WAY, 1, 1, []),
    ):
        spec = tabulated({}, **privacy)
        table = entry(cells, name="m", mechanism_file={"path": "own"})
        (found,), told = read(spec, tables=[table])
        assert (found.query.name, found.query.is_table) == ("m", True)
        assert (found.touched, told) == (touched, missing)
        assert found.charge == (Fraction(touched), Fraction(touched, 100))
        assert (found.query.group, found.query.rows) == ([2**53 - 1], 1)
        assert found.entry == table | {"mechanism": "integer"}
        assert found.patterns == [[1] * touched]


VALUES = standalone.pure_values(Fraction(1), NOTHING, STEP)


def priced(name: str, values: list[int], epsilon: str = "1", **fields: Any) -> standalone.Charged:
    query = SimpleNamespace(name=name, source="global", is_composed=False, **fields)
    own = {"epsilon": epsilon, "mechanism_file": {"path": name}}
    return standalone.Charged(
        cast("standalone.Query", query),
        own,
        (NOTHING, lambda *_: values),
        1,
        NOTHING,
        (Fraction(epsilon), NOTHING),
        [[1]],
    )


def profiled(step: Any = None, *, is_exact: bool = False, **own: Plain) -> standalone.Release:
    """A release whose files hold these profiles."""
    release = object.__new__(standalone.Release)
    plain = plain_spec(asked("count"))
    plain["budget"] |= {"epsilon": "2", "composition": "pld" if is_exact else "basic"}
    release.spec, release.missing = standalone.Spec(plain), []
    release.record = {"composition": {"step": step}}
    release.figures = {"epsilon": "2", "delta": "0"}
    release.files = {name: rfc8785.dumps({"profile": profile}) for name, profile in own.items()}
    return release


def profile(values: list[int], step: str = "0.015625", **fields: Any) -> Plain:
    return {"step": step, "values": list(map(str, values)), "patterns": [[1]], **fields}


def test_profiles_are_recomputed_and_composed() -> None:
    both = [priced("a", VALUES), priced("b", VALUES)]
    release = profiled(a=profile(VALUES), b=profile(VALUES))
    whole = release.check_profiles(both)
    assert whole == standalone.all_of([(VALUES, 2)], STEP)
    assert release.missing == []
    alone = profiled(a=profile(VALUES)).check_profiles([both[0], both[0]])
    assert alone == whole
    assert profiled().check_profiles([]) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"step": "0.25"}, "a: profile.step: found '0.25', expected '0.015625'"),
        ({"patterns": [[2]]}, "a: profile.patterns: found [[2]], expected [[1]]"),
        ({"values": [*map(str, VALUES[:-1]), "1"]}, "a: profile.values"),
        ({"values": list(map(str, VALUES[:-1]))}, "a: profile.values"),
    ],
)
def test_a_profile_is_that_of_its_mechanism(change: Plain, says: str) -> None:
    with refused(says):
        profiled(a=profile(VALUES) | change).check_profiles([priced("a", VALUES)])


def test_a_profile_without_an_epsilon_has_steps_of_a_64th() -> None:
    zero = priced("a", [7, 0], "0")
    assert profiled(a=profile([7, 0])).check_profiles([zero]) is not None
    half = priced("a", [7, 0], "0.5")
    assert profiled(a=profile([7, 0], "0.0078125")).check_profiles([half]) is not None


def test_profiles_on_different_grids_are_not_composed() -> None:
    one, two = priced("a", [7, 0]), priced("b", [7, 0], "2")
    release = profiled(a=profile([7, 0]), b=profile([7, 0], "0.03125"))
    assert release.check_profiles([one, two]) is None
    assert release.missing == []


def test_a_rough_profile_leaves_the_total_open() -> None:
    release = profiled(a=profile(VALUES), b=profile([9]))
    assert release.check_profiles([priced("a", VALUES), priced("b", [])]) is None
    assert release.missing == ["b: a rough profile or a coarse grid"]


def test_not_all_are_composed_where_a_part_has_too_large_a_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 4096 queries of ε = 1, two have δ = 0.46 at ε = 0."""
    done, own = [], standalone.Losses.composed

    def composed(one: standalone.Losses, other: standalone.Losses) -> standalone.Losses:
        done.append(own(one, other))
        return done[-1]

    monkeypatch.setattr(standalone.Losses, "composed", composed)
    monkeypatch.setattr(standalone, "step_of", lambda *_: STEP)
    many = [priced("a", VALUES)] * 4096

    def check(epsilon: str, delta: str, *more: standalone.Charged, is_exact: bool = True) -> None:
        step = standalone.exact(STEP) if is_exact else None
        release = profiled(step, a=profile(VALUES), b=profile(VALUES[1:]))
        release.spec.composes_exactly = is_exact
        release.spec.plain["budget"]["delta"] = delta
        release.figures = {"epsilon": epsilon, "delta": delta}
        done.clear()
        release.check_profiles([*(more or many)])

    with refused("release.json: composition: found δ 0.46", "expected 0.4"):
        check("0", "0.4")
    assert len(done) == 1
    with refused("release.json: composition: found δ 0.99", "expected 0.99"):
        check("0", "0.99")
    assert 3 <= len(done) <= 6
    # Where the charges are added up, or the δ of a part is as large as may be, all is composed.
    check("2", "0", many[0], many[0])
    check("0", "0.4", many[0], many[0], is_exact=False)
    least = done[0].delta_at(Fraction(1, 2)) / standalone.PARTS
    check("0.5", standalone.up(least, 40), many[0], many[0])
    slack = Fraction(1, 10**20)
    check("0.5", standalone.up(least - slack, 40), many[0], many[0])
    with refused("release.json: composition: found δ"):
        check("0.5", standalone.up(least - slack - Fraction(1, 10**30), 40), many[0], many[0])
    with refused("release.json: composition: found δ 0.46", "expected 0.4"):
        check("0", "0.4", many[0], priced("b", VALUES[1:]))


def test_what_is_seen_has_no_profile() -> None:
    seen = priced("a", [7, 0])
    seen.query.source = "empirical"
    release = profiled(b=profile(VALUES))
    assert release.check_profiles([seen, priced("b", VALUES)]) is not None


def test_the_grid_of_an_exact_total_follows_from_the_spec() -> None:
    values = [7, 0]
    release = profiled("0.001", is_exact=True, a=profile(values, "0.001"))
    whole = release.check_profiles([priced("a", values)])
    assert whole is not None
    assert whole.step == Fraction(1, 1000)
    for step, is_exact in (("0.002", True), (None, True), ("0.001", False)):
        release = profiled(step, is_exact=is_exact, a=profile(values, "0.001"))
        with refused("release.json: composition.step"):
            release.check_profiles([priced("a", values)])
    assert profiled(None, is_exact=True).check_profiles([]) is None


def test_the_grid_of_a_tabulation_is_the_stated_one() -> None:
    for step in ("1/3", "0.001", "2"):
        release = profiled(step, m=profile([7, 0], step))
        release.spec = tabulated({})
        whole = release.check_profiles([priced("m", [7, 0])])
        assert whole is not None
        assert whole.step == Fraction(step)
    release = profiled("0", m=profile([7, 0], "0"))
    release.spec = tabulated({})
    with refused("release.json: composition.step: found 0, expected a number above 0"):
        release.check_profiles([priced("m", [7, 0])])
    assert json.loads(release.files["m"])["profile"]["step"] == "0"
