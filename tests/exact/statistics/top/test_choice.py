"""The choice among the mechanisms: from declared sizes, and near the best where it was measured."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest

from release.exact.domain import Codes
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.choice import best_top
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram
from release.exact.statistics.top.peeled import PeeledTop
from tests.exact.statistics.top.tables import fixed_source

TopMechanism: TypeAlias = HistogramTop | CanonicalTop | PeeledTop


def made(name: str, epsilon: Fraction, bounds: CountBounds, members: int) -> TopMechanism:
    if name == "top_histogram":
        return HistogramTop(NoisyHistogram.fitted(epsilon, bounds), members)
    family = CanonicalTop if name == "top_canonical" else PeeledTop
    return family.fitted(epsilon, bounds, members)


def fitted_top(
    epsilon: Fraction, bounds: CountBounds, members: int, total: int | None = None
) -> TopMechanism:
    return made(best_top(epsilon, bounds, members, total), epsilon, bounds, members)


CASES: list[tuple[CountBounds, int, int | None, type[TopMechanism]]] = [
    (CountBounds(24, 1), 1, None, PeeledTop),
    (CountBounds(24, 1), 2, None, HistogramTop),
    (CountBounds(24, 1), 10, 10, HistogramTop),
    (CountBounds(24, 1, is_replaced=True), 10, 10**6, HistogramTop),
    (CountBounds(24, 2), 2, None, PeeledTop),
    (CountBounds(24, 24), 2, None, PeeledTop),
    (CountBounds(24, 2), 3, 10**6, HistogramTop),
    (CountBounds(24, 24), 10, 1000, CanonicalTop),
    (CountBounds(24, 24), 10, None, CanonicalTop),
    (CountBounds(24, 24), 10, 100, PeeledTop),
    (CountBounds(24, 8), 10, 100, HistogramTop),
    (CountBounds(1000, 1000), 3, 100, PeeledTop),
    (CountBounds(1000, 1000), 3, 1000, CanonicalTop),
]


@pytest.mark.parametrize(("bounds", "members", "total", "expected"), CASES)
def test_declared_sizes_choose(
    bounds: CountBounds, members: int, total: int | None, expected: type[TopMechanism]
) -> None:
    mechanism = fitted_top(Fraction(1), bounds, members, total)
    assert type(mechanism) is expected
    assert best_top(Fraction(1), bounds, members, total) == expected.family
    assert mechanism.satisfies(Fraction(1))
    assert not mechanism.satisfies(Fraction(99, 100))


@pytest.mark.parametrize(
    ("categories", "touched", "members", "least"),
    [
        (24, 24, 10, 0.35),
        (24, 24, 3, 7 / 12),
        (1000, 1000, 5, 0.45),
        (50, 5, 4, 1 / 2),
        (90, 5, 11, 2 / 5),
    ],
)
def test_a_draw_from_all_sets_needs_so_many_rows(
    categories: int, touched: int, members: int, least: float
) -> None:
    """By Zipf's law the last member has total/(k·H) of them, and bad sets weigh ln C(K, k)."""
    bounds = CountBounds(categories, touched)
    harmonic = math.log(categories) + 0.5772
    sets = math.log(math.comb(categories, members))
    needed = least * members * harmonic * bounds.range_of_losses(members) * sets
    assert best_top(Fraction(1), bounds, members, math.ceil(needed)) == "top_canonical"
    assert best_top(Fraction(1), bounds, members, math.floor(needed)) != "top_canonical"
    assert best_top(Fraction(1, 3), bounds, members, math.ceil(3 * needed)) == "top_canonical"
    assert best_top(Fraction(1, 3), bounds, members, math.floor(3 * needed)) != "top_canonical"


def test_weight_and_relation_count_for_nothing_where_they_widen_all_alike() -> None:
    for total in (50, 200, 1000):
        light = fitted_top(Fraction(2), CountBounds(24, 24), 10, total)
        heavy = fitted_top(Fraction(2), CountBounds(24, 24, 7), 10, 7 * total)
        replaced = fitted_top(Fraction(4), CountBounds(24, 24, is_replaced=True), 10, total)
        assert type(light) is type(heavy) is type(replaced)


@pytest.mark.parametrize("members", [0, 24])
def test_none_and_all_are_refused(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 23"):
        fitted_top(Fraction(1), CountBounds(24, 3), members)


def missed(counts: Codes, mechanism: TopMechanism, members: int) -> float:
    """The mean number of published categories that are rarer than the true last member."""
    drawn = mechanism.draw(np.tile(counts, (300, 1)), fixed_source(9))
    last = np.sort(counts)[-members]
    return float((counts[drawn] < last).sum(axis=1).mean())


@pytest.mark.parametrize(("touched", "last"), [(1, 3), (2, 6), (3, 8), (24, 4), (24, 20), (24, 80)])
@pytest.mark.parametrize("members", [3, 10])
def test_the_choice_misses_little_more_than_the_best(touched: int, last: int, members: int) -> None:
    bounds, epsilon = CountBounds(24, touched), Fraction(1)
    counts = np.rint(last * members / np.arange(1, 25)).astype(np.int64)
    candidates: list[TopMechanism] = [
        made(name, epsilon, bounds, members)
        for name in ("top_histogram", "top_canonical", "top_peeled")
    ]
    best = min(missed(counts, candidate, members) for candidate in candidates)
    chosen = missed(counts, fitted_top(epsilon, bounds, members, int(counts.sum())), members)
    # The targets are 1.1; what is above that is the chance of 300 draws.
    assert chosen <= 1.2 * best + 0.1
