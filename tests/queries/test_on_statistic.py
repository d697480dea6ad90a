"""Noise on the statistic: the integers are those of the rows, and every neighbor is covered.

Nothing of the package's queries is used by the oracle: statistics are counted from lists of rows,
and guarantees are checked over all neighbors of all small tables, in exact arithmetic.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from release.at_work import reached
from release.exact.integers.noise import IntegerNoise
from release.exact.numbers import exp_bounds
from release.exact.statistics.gap_states import TOTAL, states
from release.exact.statistics.gap_table import GapTable
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.statistic import Statistic
from release.exact.statistics.sums import NoisySums
from release.noise.on_statistic import design_on_statistic
from release.queries.contributions import Contributions, statistics_in_blocks
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import read_spec
from release.queries.registry import statistic_of
from release.spec import kinds
from release.spec.declarations import Relation
from release.spec.kinds import AnyQuery
from tests.answers import answer, load
from tests.queries.test_kinds import kept_rows
from tests.small import Row, Small, query

GLOBAL = {"sensitivity": "global", "noise": "on_statistic"}
KINDS: dict[str, dict[str, Any]] = {
    "units": query("mode", **GLOBAL),
    "rows": query("mode", count="rows", **GLOBAL),
    "weight": query("mode", weight="wh", clamp=[-2, 3], **GLOBAL),
    "signed": query("mode", weight="wh", clamp=[-1, 1], **GLOBAL),
    "median": query("binned", statistic="median", **GLOBAL),
    "second_least": query("binned", statistic="min", rank=2, **GLOBAL),
    "second_largest": query("binned", statistic="max", rank=2, **GLOBAL),
    "sum": query("binned", **GLOBAL),
    "mean": query("binned", statistic="mean", **GLOBAL),
    "mean_on_grid": query("on_grid", statistic="mean", **GLOBAL),
}


def clamped(value: int, bounds: Sequence[int]) -> int:
    return min(max(value, bounds[0]), bounds[1])


def bin_of(value: int) -> int:
    """The six bins of 0 to 20, of values clamped to -5 to 15."""
    return min(clamped(clamped(value, (-5, 15)), (0, 20)) * 6 // 20, 5)


def by_counting(name: str, rows: list[Row]) -> list[int]:
    """The statistic of one cell, from the words of the format."""
    if name in {"units", "rows", "weight", "signed"}:
        return by_category(name, rows)
    present = [row["wh"] for row in rows if row["wh"] is not None]
    if name in {"sum", "mean", "mean_on_grid"}:
        values = [clamped(wh, (-5, 15)) for wh in present]
        if name == "mean_on_grid":
            # In half units: 0.3·wh / 0.5, to the nearest, ties to even as IEEE does.
            values = [clamped(round(wh * 0.3 * 2.0), (-5, 15)) for wh in present]
        if name == "sum":
            return [sum(values)]
        return [sum(value + 5 for value in values), sum(15 - value for value in values)]
    bins = sorted(map(bin_of, present))
    return [-off_rank(name, bins, candidate) for candidate in range(6)]


def by_category(name: str, rows: list[Row]) -> list[int]:
    counted: list[list[Row]] = [[], [], [], []]
    for row in rows:
        if row["kind"] is not None and 0 <= row["kind"] < 4:
            counted[row["kind"]].append(row)
    if name == "units":
        return [len({row["unit"] for row in own}) for own in counted]
    if name == "rows":
        return list(map(len, counted))
    weights = ([row["wh"] for row in own if row["wh"] is not None] for own in counted)
    bounds = (-2, 3) if name == "weight" else (-1, 1)
    return [sum(clamped(wh, bounds) for wh in own) for own in weights]


def off_rank(name: str, bins: list[int], candidate: int) -> int:
    below, upto = sum(b < candidate for b in bins), sum(b <= candidate for b in bins)
    above, down = len(bins) - upto, len(bins) - below
    if name == "median":
        return max(0, 2 * below - len(bins), len(bins) - 2 * upto)
    if name == "second_least":
        return max(0, below - 1, 2 - upto)
    return max(0, above - 1, 2 - down)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "unit": st.sampled_from(["u1", "u2", "u3", "u4"]),
            "place": st.sampled_from(["a", "b", "c"]),
            "day": st.integers(1, 2),
            "kind": st.one_of(st.none(), st.integers(-1, 4)),
            "wh": st.one_of(st.none(), st.integers(-30, 30).filter(lambda wh: wh % 5)),
        }
    ),
    min_size=1,
    max_size=12,
)


def test_every_kind_with_noise_on_its_sums_is_tried() -> None:
    models = kinds.query_models()
    with_noise_on_sums = {
        kind
        for kind, places in kinds.KINDS.items()
        if any(issubclass(models[place], OnStatisticQuery) for place in places.values())
    }
    # The neighbors of these two are tried beside their mechanisms, in tests/exact/statistics.
    assert with_noise_on_sums - {"top", "quantiles"} == {one["kind"] for one in KINDS.values()}


@pytest.mark.parametrize("name", KINDS)
@given(ROWS, st.sampled_from(["add_remove", "replace_one"]), st.integers(1, 3))
@settings(max_examples=12, deadline=None)
def test_statistics_are_those_of_the_rows(
    name: str, rows: list[Row], neighbors: str, most: int
) -> None:
    plain = KINDS[name]
    small = Small(rows, [plain], neighbors=neighbors, max_rows_per_unit=most)
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(small.write(Path(folder)))
        with load(spec_file) as tables:
            (run,) = answer(tables, spec_file)
    contributed = reached(run.answered).contributed
    assert isinstance(contributed, Contributions)
    statistic = statistic_of(spec_file.spec, run.query)
    (found,) = statistics_in_blocks(contributed, run.query, statistic)
    for place, key in enumerate("ab"):
        read = [row for row in read_rows(small, name, rows) if row["place"] == key]
        assert found[place].tolist() == by_counting(name, read), key


def read_rows(small: Small, name: str, rows: list[Row]) -> list[Row]:
    """The rows that the query reads: those that count are bounded first."""
    plain = dict(KINDS[name])
    kept: list[Row] = kept_rows(small, plain, rows)
    return kept


def asked(name: str) -> OnStatisticQuery:
    made = TypeAdapter(AnyQuery).validate_python(KINDS[name])
    assert isinstance(made, OnStatisticQuery)
    return made


def tables(most: int, units: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """For each unit its values; no values stand for a unit that is not there."""
    own = [
        values
        for count in range(most + 1)
        for values in itertools.combinations_with_replacement(range(4), count)
    ]
    return itertools.product(own, repeat=units)


def statistic_at(name: str, statistic: Statistic, table: Sequence[Sequence[int]]) -> list[int]:
    """The statistic of a table whose values are categories, or 5 times as many Wh."""
    wh = {"weight": lambda value: 5 * value, "signed": lambda value: value % 3 - 1}
    rows: list[Row] = [
        {"unit": f"u{unit}", "kind": value, "wh": wh.get(name, lambda v: 5 * v - 1)(value)}
        for unit, values in enumerate(table)
        for value in values
    ]
    return by_counting(name, rows)


@pytest.mark.parametrize("epsilon", ["1/2", "2"])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE])
@pytest.mark.parametrize(("most", "units"), [(1, 3), (2, 2)])
@pytest.mark.parametrize("name", [name for name in KINDS if name != "mean_on_grid"])
def test_every_neighbor_of_every_small_table(
    name: str, most: int, units: int, relation: Relation, epsilon: str
) -> None:
    statistic = asked(name).statistic(most, relation)
    guarantee = asked(name).claimed.to_guarantee()
    claimed = type(guarantee)(guarantee.definition, Fraction(epsilon), Fraction(0))
    mechanism = design_on_statistic(statistic, "best", claimed).mechanism
    above = exp_bounds(Fraction(epsilon))[1]

    @cache
    def chances(scores: tuple[int, ...]) -> list[Fraction]:
        if isinstance(mechanism, PermuteAndFlip):
            return mechanism.chances(np.array(scores))
        assert isinstance(mechanism, GapTable)
        gaps = max(scores) - np.array(scores)
        order = np.argsort(gaps, kind="stable")
        known = states(mechanism.categories, mechanism.cap)
        (row,) = np.flatnonzero((known == gaps[order]).all(axis=1))
        weights = np.zeros(len(scores), dtype=np.int64)
        weights[order] = mechanism.weights[row]
        return [Fraction(weight, TOTAL) for weight in weights.tolist()]

    pairs = set()
    for table in tables(most, units):
        here = tuple(statistic_at(name, statistic, table))
        # Units are alike, so that it is enough to change the first.
        for (changed,) in tables(most, 1):
            if relation is Relation.ADD_REMOVE and table[0] and changed:
                continue
            pairs.add((here, tuple(statistic_at(name, statistic, (changed, *table[1:])))))
    assert len(pairs) > 30
    for here, there in pairs:
        if isinstance(mechanism, NoisySums):
            assert loses_at_most(mechanism, here, there, above)
        else:
            for a, b in zip(chances(here), chances(there), strict=True):
                assert a <= above * b


def loses_at_most(
    mechanism: NoisySums, here: tuple[int, ...], there: tuple[int, ...], ratio: Fraction
) -> bool:
    """Whether no outcome is more than ``ratio`` times as likely: the product over the sums."""
    worst = Fraction(1)
    for a, b in zip(here, there, strict=True):
        worst *= largest_ratio(mechanism.noise, abs(a - b))
    return worst <= ratio


@cache
def largest_ratio(noise: IntegerNoise, apart: int) -> Fraction:
    """How much likelier an outcome is than ``apart`` further off, or nearer: the noise is alike."""
    ratios = [noise.mass(o) / noise.mass(o + apart) for o in range(-60 - apart, 61)]
    return max(*ratios, 1 / min(ratios))


def test_a_tighter_spread_would_not_do() -> None:
    """The range of scores is attained, so nothing is given away."""
    for name, relation in itertools.product(("units", "median", "second_least"), Relation):
        if relation is Relation.ATTRIBUTE:
            continue
        statistic = asked(name).statistic(1, relation)
        widest = 0
        for table in tables(1, 3):
            here = np.array(statistic_at(name, statistic, table))
            for (changed,) in tables(1, 1):
                if relation is Relation.ADD_REMOVE and table[0] and changed:
                    continue
                there = np.array(statistic_at(name, statistic, (changed, *table[1:])))
                step = there - here
                widest = max(widest, int(step.max() - step.min()))
        assert widest == statistic.spread, (name, relation)
