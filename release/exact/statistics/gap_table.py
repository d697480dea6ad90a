"""The commonest of few categories where a neighboring table may hold another unit in one's place.

The statistics of a cell are its scores: how many privacy units are in each of 2 to 6 public
categories. A unit has one row, so between neighboring tables at most one score falls and at most
one rises, each by 1. A unit that only leaves the cell, or only enters it, counts as well.

A mechanism here sees the *gaps* alone: how far each score is below the largest. Two categories have
a closed form, :class:`TwoCategories`. For more, :class:`GapTable` holds the chances as integers and
proves them pair by pair; where such a table comes from does not matter to the proof
(docs/design/selection-gap-tables.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations_with_replacement, product
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.numbers import exp_bounds
from release.exact.sampling import SYSTEM, RandomBytes, draw_geometric, draw_odd, random_below_power
from release.exact.statistics.mechanism import RATIO_ONE, StatisticMechanism, loss_above

Integers: TypeAlias = NDArray[np.int64]

_BITS = 62

TOTAL = 2**_BITS // 60 * 60
"""The sum of every row of a gap table.

A multiple of 1 to 6, so that any number of leaders can share what the others leave. All rows have
the same, so that ratios of chances are ratios of weights.
"""

FEWEST, MOST = 2, 6
"""How many categories a gap table may have."""

MOST_STATES = 2**15
"""How many states a gap table may have; the proof for so many takes about two seconds."""

# No gap changes by more between neighboring tables: the largest score and the category's own each
# move by 1.
_STEP = 2


@dataclass(frozen=True)
class TwoCategories(StatisticMechanism):
    """The category of the smaller score is published with the least chance that privacy allows.

    With ρ = ``ratio``/2^64 and scores g apart that chance is ρ^(g/2)/2 for even g, and
    ρ^((g-1)/2)·ρ/(1+ρ) for odd g. It is ε-private where ρ·e^ε ≥ 1; with equality no ε-private rule
    has a smaller chance at any g.

    Raises:
        ValueError: a ratio that is not in 1 … 2^64 - 1.
    """

    family = "two_categories"

    ratio: int

    def __post_init__(self) -> None:
        if not 0 < self.ratio < RATIO_ONE:
            raise ValueError(f"the ratio must be in 1 … 2^64 - 1, not {self.ratio}")

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.ratio)

    @property
    def inputs(self) -> int:
        """As :attr:`StatisticMechanism.inputs`: the two scores."""
        return 2

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`, for all scores and all their neighbors."""
        return loss_above(self.ratio) <= epsilon

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from scores of at least 0.

        Raises:
            ValueError: statistics that are not scores of two categories.
        """
        scores = _checked(statistics, 2)
        gaps = np.abs(scores[:, 0] - scores[:, 1])
        # All three are drawn for every cell: what a cell takes of the source tells no gap.
        reaches = draw_geometric(self.ratio, gaps.size, source) >= gaps // 2
        coin = random_below_power(1, gaps.size, source) == 1
        odd = draw_odd(self.ratio, gaps.size, source) == 1
        is_wrong = reaches & np.where(gaps % 2 == 0, coin, odd)
        leader = (scores[:, 1] > scores[:, 0]).astype(np.int64)
        return np.where(is_wrong, 1 - leader, leader)[:, np.newaxis]

    def chance_of_leader(self, lead: int) -> float:
        """The chance of a category that is ``lead`` above the other."""
        return float(1 - self.error_at_lead(lead))

    def error_at_lead(self, lead: int) -> Fraction:
        """The exact chance of the smaller score, ``lead`` ≥ 0 below the other; ½ for a tie.

        Raises:
            ValueError: a negative lead.
        """
        _check_lead(lead)
        ratio = Fraction(self.ratio, RATIO_ONE)
        return ratio ** (lead // 2) * (ratio / (1 + ratio) if lead % 2 else Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class GapTable(StatisticMechanism):
    """The chance of each category by the gaps of all of them, as integers over :data:`TOTAL`.

    A *state* is the list of the gaps from the smallest, which is 0, to the largest, gaps above
    ``cap`` counted as ``cap``. ``weights`` has shape (states, categories): the states in the order
    of :func:`states`, and in each the categories by increasing gap. Categories with equal gaps have
    equal weights, so it does not matter in which order they are taken.

    Raises:
        ValueError: sizes that are out of range, a wrong shape, a negative weight, a row that does
            not add up to the total, or unequal weights at equal gaps.
    """

    family = "gap_table"

    categories: int
    cap: int
    weights: Integers

    def __post_init__(self) -> None:
        if not FEWEST <= self.categories <= MOST:
            raise ValueError(f"a gap table has {FEWEST} to {MOST} categories")
        if not self.cap >= 1:
            raise ValueError("the cap of a gap table is at least 1")
        # Before any state is listed: a forged cap must cost nothing.
        if not count_states(self.categories, self.cap) <= MOST_STATES:
            raise ValueError(f"a gap table has at most {MOST_STATES} states")
        if self.weights.shape != (count_states(self.categories, self.cap), self.categories):
            raise ValueError("a gap table needs a row for each state, a weight for each category")
        if self.weights.dtype != np.int64:
            raise ValueError("the weights of a gap table are 64-bit integers")
        if not ((self.weights >= 0) & (self.weights <= TOTAL)).all():
            raise ValueError(f"a weight of a gap table is not in 0 … {TOTAL}")
        # Python integers, because a forged file may hold weights whose 64-bit sum wraps round.
        if set(map(sum, self.weights.tolist())) != {TOTAL}:
            raise ValueError(f"a row of a gap table does not add up to {TOTAL}")
        gaps = states(self.categories, self.cap)
        is_tie = gaps[:, 1:] == gaps[:, :-1]
        if not (self.weights[:, 1:] == self.weights[:, :-1])[is_tie].all():
            raise ValueError("a gap table has unequal weights at equal gaps")
        self.weights.setflags(write=False)

    # Written out: the equality of a dataclass would ask an array for one truth value.
    def __eq__(self, another: object) -> bool:
        return (
            isinstance(another, GapTable)
            and (self.categories, self.cap) == (another.categories, another.cap)
            and bool(np.array_equal(self.weights, another.weights))
        )

    def __hash__(self) -> int:
        return hash((self.categories, self.cap, self.weights.tobytes()))

    def law(self) -> forms.GapLaw:
        """As :meth:`StatisticMechanism.law`."""
        return forms.GapLaw(forms.MECHANISM, "gap_table", self.cap, self.weights.tolist())

    @property
    def inputs(self) -> int:
        """As :attr:`StatisticMechanism.inputs`: a score for each category."""
        return self.categories

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`: every pair of :func:`neighbor_places`."""
        low, _ = exp_bounds(epsilon)
        weights = self.weights.ravel()
        # For integers w ≤ v·num/den exactly where w ≤ ⌊v·num/den⌋. No weight is above TOTAL, so
        # the bound may be cut there, and fits 64 bits.
        bounds = (w * low.numerator // low.denominator for w in weights.tolist())
        allowed = np.array([min(TOTAL, bound) for bound in bounds], dtype=np.int64)
        before, after = neighbor_places(self.categories, self.cap)
        return bool((weights[before] <= allowed[after]).all())

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from scores of at least 0.

        Raises:
            ValueError: statistics that are not scores of so many categories.
        """
        order, row = self._rows_of(statistics)
        cumulative = np.cumsum(self.weights[row], axis=1)
        uniform = _uniform_below_total(len(row), source)
        place = (cumulative <= uniform[:, np.newaxis]).sum(axis=1, keepdims=True)
        return np.take_along_axis(order, place, axis=1)

    def chances(self, scores: Codes) -> list[Fraction]:
        """The exact chance of each category, by its code, from one row of scores.

        Raises:
            ValueError: what is not a score for each category.
        """
        order, row = self._rows_of(np.asarray(scores)[np.newaxis])
        weights = dict(zip(order[0].tolist(), self.weights[row[0]].tolist(), strict=True))
        return [Fraction(weights[code], TOTAL) for code in range(self.categories)]

    def _rows_of(self, statistics: Codes) -> tuple[Codes, Codes]:
        """The categories of each cell by increasing gap, and the row of its state."""
        scores = _checked(statistics, self.categories)
        gaps = np.minimum(scores.max(axis=1, keepdims=True) - scores, self.cap)
        order = np.argsort(gaps, axis=1, kind="stable")
        return order, _ranks(np.take_along_axis(gaps, order, axis=1), self.cap)

    def error_at_lead(self, lead: int) -> Fraction:
        """The exact chance of any other category than one that is ``lead`` above all others.

        The others are equal. With ``lead`` 0 all are, and the chance is that of all but one.

        Raises:
            ValueError: a negative lead.
        """
        _check_lead(lead)
        gaps = np.full((1, self.categories), min(lead, self.cap), dtype=np.int64)
        gaps[0, 0] = 0
        return 1 - Fraction(int(self.weights[_ranks(gaps, self.cap)[0], 0]), TOTAL)

    def chance_of_leader(self, lead: int) -> float:
        """The least chance of a category that is ``lead`` above the next, whatever the others."""
        gaps = states(self.categories, self.cap)
        here = gaps[:, 1] == min(lead, self.cap)
        return float(self.weights[here, 0].min() / TOTAL)


def permute_and_flip_error(ratio: Fraction, categories: int, lead: int) -> Fraction:
    """The exact chance that permute-and-flip errs where one category is ``lead`` above the others.

    It accepts a category with chance p = ``ratio``^gap; for scores that both fall and rise it is
    ε-private where ``ratio``²·e^ε ≥ 1. The leader is published with chance ∫₀¹ (1 - u·p)^(K-1) du =
    (1 - (1 - p)^K)/(K·p), K being ``categories``.

    Source: McKenna and Sheldon 2020.

    Raises:
        ValueError: a negative lead, or a ratio that is not in (0, 1].
    """
    _check_lead(lead)
    if not 0 < ratio <= 1:
        raise ValueError(f"the ratio must be above 0 and at most 1, not {ratio}")
    chance = ratio**lead
    return 1 - (1 - (1 - chance) ** categories) / (categories * chance)


def count_states(categories: int, cap: int) -> int:
    """How many states there are."""
    return comb(cap + categories - 1, categories - 1)


@lru_cache(maxsize=4)
def states(categories: int, cap: int) -> Integers:
    """All states, shape (states, categories): non-decreasing, first 0, in lexicographic order."""
    rest = combinations_with_replacement(range(cap + 1), categories - 1)
    flat = np.fromiter(chain.from_iterable(rest), dtype=np.int64).reshape(-1, categories - 1)
    gaps = np.concatenate([np.zeros((len(flat), 1), dtype=np.int64), flat], axis=1)
    gaps.setflags(write=False)
    return gaps


def first_places(gaps: Integers) -> Integers:
    """For each category how many have smaller gaps: where its gap first stands in the state."""
    smaller = gaps[:, np.newaxis, :] < gaps[:, :, np.newaxis]
    counts: Integers = smaller.sum(axis=2, dtype=np.int64)
    return counts


@lru_cache(maxsize=1)
def neighbor_places(categories: int, cap: int) -> tuple[Integers, Integers]:
    """All pairs of weights that one category may have in neighboring tables, as flat indices.

    The index is that of the category's first place in its state: equal gaps have equal weights. The
    pairs are sorted, each stands once and with its reverse, and none is of a weight with itself.

    Gaps up to ``cap`` + 2 are enough. No gap changes by more than 2, so one above that is above the
    cap afterwards too, whatever it is; and who leads afterwards is decided by gaps of at most 2.
    """
    wide = states(categories, cap + _STEP)
    size = count_states(categories, cap) * categories
    before = _flat_places(np.minimum(wide, cap), cap)
    pairs = []
    # The last index stands for no category: the unit was in none, or is in none now.
    for fallen, risen in product(range(categories + 1), repeat=2):
        if fallen == risen:
            continue
        gaps = np.concatenate([wide, np.zeros((len(wide), 1), dtype=np.int64)], axis=1)
        gaps[:, fallen] += 1
        gaps[:, risen] -= 1
        gaps = gaps[:, :categories]
        gaps = np.minimum(gaps - gaps.min(axis=1, keepdims=True), cap)
        after = _flat_places(gaps, cap)
        moved = before != after
        pairs.append(before[moved] * size + after[moved])
    both = np.sort(np.concatenate(pairs))
    both = both[np.append(True, both[1:] != both[:-1])]
    first, second = both // size, both % size
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


def _flat_places(gaps: Integers, cap: int) -> Integers:
    rows = _ranks(np.sort(gaps, axis=1), cap)
    places: Integers = rows[:, np.newaxis] * gaps.shape[1] + first_places(gaps)
    return places


def _ranks(sorted_gaps: Integers, cap: int) -> Integers:
    """The row of each state in the order of :func:`states`; shape (rows,)."""
    categories = sorted_gaps.shape[1]
    # Written in base cap + 1, states are in the order of their numbers.
    places = (cap + 1) ** np.arange(categories - 1, -1, -1, dtype=np.int64)
    numbers = states(categories, cap) @ places
    ranks: Integers = np.searchsorted(numbers, sorted_gaps @ places).astype(np.int64)
    return ranks


def _uniform_below_total(count: int, source: RandomBytes) -> Integers:
    """Uniform integers below the total: those above it, 2^-60 of all, are drawn again."""
    uniform = random_below_power(_BITS, count, source).astype(np.int64)
    while (again := np.flatnonzero(uniform >= TOTAL)).size:
        uniform[again] = random_below_power(_BITS, again.size, source)
    return uniform


def _check_lead(lead: int) -> None:
    if not lead >= 0:
        raise ValueError(f"a lead is at least 0, not {lead}")


def _checked(statistics: Codes, categories: int) -> Integers:
    if statistics.ndim != 2 or statistics.shape[1] != categories:
        raise ValueError(f"the statistics of a cell are the scores of {categories} categories")
    if not (statistics >= 0).all():
        raise ValueError("a score is a number of privacy units, at least 0")
    return statistics.astype(np.int64)
