"""What the tests of the k commonest share: all small tables, and a fixed source of bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numpy as np
from scipy.stats import chisquare

from release.exact.sampling import RandomBytes
from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.top.bounds import CountBounds

UNITS = 3
CATEGORIES = 4

Counts = tuple[int, ...]
Chances = Mapping[tuple[int, ...], Fraction]
Output = TypeVar("Output", bound=Hashable)

RELATIONS = [
    CountBounds(CATEGORIES, touched, is_replaced=is_replaced)
    for touched in (1, 2, CATEGORIES)
    for is_replaced in (False, True)
]
"""Units with one category, with up to two and with any; both neighboring relations."""


def fixed_source(seed: int) -> RandomBytes:
    """Uniform bytes, the same ones in every run."""
    return np.random.default_rng(seed).bytes


def plus(one: Counts, other: Counts) -> Counts:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def single_units(bounds: CountBounds) -> list[Counts]:
    """The counts of every table of one unit."""
    rows = product(range(bounds.weight + 1), repeat=bounds.categories)
    return [row for row in rows if sum(map(bool, row)) <= bounds.touched]


def neighbors(bounds: CountBounds) -> Iterator[tuple[Counts, Counts]]:
    """The counts of all neighboring tables of up to three units, each unordered pair once or more.

    A unit that touches no category stands for one that is not there.
    """
    units = single_units(bounds)
    nobody = (0,) * bounds.categories
    others = {nobody}
    for _ in range(UNITS - 1):
        others = {plus(table, unit) for table in others for unit in units}
    for table, unit in product(others, units):
        for replacing in units if bounds.is_replaced else [nobody]:
            yield plus(table, unit), plus(table, replacing)


def largest_ratio(bounds: CountBounds, chances_of: Callable[[Counts], Chances]) -> Fraction:
    """The largest ratio of an output's chances over all neighbors, both ways."""
    distributions: dict[Counts, Chances] = {}
    largest = Fraction(1)
    for pair in set(neighbors(bounds)):
        for counts in pair:
            if counts not in distributions:
                distributions[counts] = chances_of(counts)
        here, there = distributions[pair[0]], distributions[pair[1]]
        for output, chance in here.items():
            # Products are compared before a quotient is reduced: reducing is slow.
            other = there[output]
            if chance > largest * other:
                largest = chance / other
            if other > largest * chance:
                largest = other / chance
    return largest


def power(ratio: int, spread: int) -> Fraction:
    """ρ^-spread, which the mechanism promises as the largest ratio."""
    return Fraction(RATIO_ONE, ratio) ** spread


def p_value(drawn: Sequence[Output], chances: Mapping[Output, Fraction]) -> float:
    """How likely frequencies at least as far from the chances are; every output is possible."""
    outputs = list(chances)
    assert set(drawn) <= set(outputs)
    if len(outputs) == 1:
        return 1.0
    expected = np.array([float(chances[output]) for output in outputs]) * len(drawn)
    counted = Counter(drawn)
    seen = [counted[output] for output in outputs]
    return float(chisquare(seen, expected * len(drawn) / expected.sum()).pvalue)
