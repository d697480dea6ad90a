"""Several quantiles of one cell from one charge, which never cross: JointExp with exact draws.

The mechanism is Gillenwater, Joseph and Kulesza 2021 ("Differentially Private Quantiles", 3),
with public integers for weights and sub-levels for ties. docs/design/quantiles-proof.md proves the
guarantee. The least and the greatest row have no useful rank score: their shares are refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.numbers import over_one_denominator
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import (
    RATIO_BITS,
    RATIO_ONE,
    StatisticMechanism,
    least_ratio,
    loss_above,
)
from release.exact.statistics.nearness import (
    LEVEL,
    POINTS,
    Nearness,
    Wording,
    nearness_of_ranks,
)
from release.exact.statistics.ordered_paths import Paths, Positions
from release.exact.statistics.path_draws import draw_path
from release.exact.statistics.statistic import Ranks, Statistic

SUBLEVELS = 256
"""Sub-levels of a candidate, where nothing else is said."""

_MOST_ROWS = 2**40


class Quantiles(StatisticMechanism):
    """A mechanism that publishes a candidate for each of some shares of the rows of a cell."""

    candidates: int
    shares: tuple[Fraction, ...]

    @property
    def inputs(self) -> int:
        """The rows at each candidate."""
        return self.candidates

    @property
    def outputs(self) -> int:
        """A candidate for each share."""
        return len(self.shares)


@dataclass(frozen=True)
class JointQuantiles(Quantiles):
    """Quantiles at the ``shares`` α_1 < … < α_m of the rows of a cell, as candidates' numbers.

    D is the least common denominator of the shares and P_j = D·(α_j - α_(j-1)), j = 1..m+1, with
    α_0 = 0 and α_(m+1) = 1. A candidate has B = ``sublevels`` sub-levels, and each of its rows is
    spread evenly over them; n_j is how much of the N rows lies between the published sub-levels
    j-1 and j, in multiples of 1/2B. A non-decreasing tuple of sub-levels has the weight

        (``ratio`` / 2^64)^(2B·Σ_j |D·n_j - P_j·N|)

    and what is published of a sub-level is its candidate. ``spread`` is the most by which
    neighbors change Σ_j |D·n_j - P_j·N|: see :func:`spread_of`.

    Raises:
        ValueError: no candidate, share or sub-level; shares that do not ascend within (0, 1); a
            spread below 1, or a ratio outside 1..2^64-1.
    """

    family = "joint_quantiles"

    candidates: int
    shares: tuple[Fraction, ...]
    spread: int
    ratio: int
    sublevels: int = SUBLEVELS

    def __post_init__(self) -> None:
        if not (self.candidates >= 1 and self.sublevels >= 1 and self.spread >= 1):
            raise ValueError("candidates, sublevels and spread must be at least 1")
        check_shares(self.shares)
        if not 1 <= self.ratio < RATIO_ONE:
            raise ValueError("ratio must be between 1 and 2^64 - 1")

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> JointQuantiles:
        """As :meth:`StatisticMechanism.designed`."""
        ranks = Ranks.checked(statistic)
        return cls.with_spread(epsilon, ranks.inputs, ranks.shares, ranks.spread)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> JointQuantiles:
        """As :meth:`StatisticMechanism.of_law`."""
        ranks = Ranks.checked(statistic)
        return cls(ranks.inputs, ranks.shares, ranks.spread, law.ratio)

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.ratio)

    @classmethod
    def fitted(
        cls,
        epsilon: Fraction,
        candidates: int,
        shares: tuple[Fraction, ...],
        rows_per_unit: int,
        *,
        replaces: bool,
        sublevels: int = SUBLEVELS,
    ) -> JointQuantiles:
        """The mechanism with the least ratio that is proved to be pure ``epsilon``-private.

        ``rows_per_unit`` is the most rows of a unit in the cell, in either of two neighbors;
        ``replaces`` says whether neighbors replace a unit's rows, or add or remove them.

        Raises:
            ValueError: as the class, or ε is too small for a ratio of 64 bits.
        """
        spread = spread_of(shares, rows_per_unit, replaces=replaces)
        return cls.with_spread(epsilon, candidates, shares, spread, sublevels)

    @classmethod
    def with_spread(
        cls,
        epsilon: Fraction,
        candidates: int,
        shares: tuple[Fraction, ...],
        spread: int,
        sublevels: int = SUBLEVELS,
    ) -> JointQuantiles:
        """As :meth:`fitted`, from the ``spread``."""
        ratio = least_ratio(epsilon, _exponent(spread, sublevels))
        return cls(candidates, shares, spread, ratio, sublevels)

    @property
    def row_scale(self) -> float:
        """By how many rows' distance between ranks a chance falls by e, rounded."""
        return 1 / (2 * self.sublevels * sum(self.steps) * float(loss_above(self.ratio)))

    @property
    def variances(self) -> list[float]:
        """The variance of the distance of each quantile from its rank, in rows, rounded.

        Where rows are spread evenly the distances are a bridge of Laplace steps, of which there is
        one more than there are shares.
        """
        steps = len(self.shares) + 1
        return [2 * self.row_scale**2 * at * (steps - at) / steps for at in range(1, steps)]

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """P_1..P_(m+1), which add up to D."""
        return _steps(self.shares)

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether it is proved to be pure ``epsilon``-private, given its ``spread``."""
        return _exponent(self.spread, self.sublevels) * loss_above(self.ratio) <= epsilon

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`: losses grow with the exponent."""
        return self.satisfies(epsilon)

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return (
            f"{len(self.shares)} quantiles on {self.candidates} points, drawn together, proved for "
            f"scores that one unit moves by up to {self.spread}"
        )

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`.

        Where rows are spread evenly, distances from the ranks are a bridge of Laplace steps: each
        step between two neighboring quantiles has the chance e^(-|step|/scale), and all steps add
        up to 0.
        """
        scale, steps = self.row_scale, self.outputs + 1
        reach = np.linspace(-25 * steps**0.5, 25 * steps**0.5, 4001)
        law = np.exp(-np.abs(reach))
        walks = [law]
        for _ in range(self.outputs - 1):
            walks.append(np.convolve(walks[-1], law, mode="same"))
            # Only shares count below, and masses of many steps would grow without bound.
            walks[-1] /= walks[-1].max()
        # The quantile in the middle has the widest law.
        middle = steps // 2
        marginal = walks[middle - 1] * walks[steps - middle - 1]
        order = np.argsort(np.abs(reach), kind="stable")
        chances = np.cumsum(marginal[order]) / marginal.sum()
        far = np.abs(reach)[order] * scale
        rows = int(np.ceil(far[np.searchsorted(chances, LEVEL)]))
        distances = np.linspace(0, 2 * rows, POINTS)
        within = np.interp(distances, far, chances)
        return nearness_of_ranks(self.outputs, rows, distances, within)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Candidates' numbers, shape (cells, shares), no row of which descends.

        ``statistics`` has the rows at each candidate, shape (cells, candidates). Time grows with
        the logarithm of the rows, not with their number.

        Raises:
            ValueError: another shape, a negative number of rows, or more than 2^40 in a cell.
        """
        check_shape(statistics, self.candidates)
        totals = statistics.astype(np.float64).sum(axis=1)
        if (statistics < 0).any() or not (totals <= _MOST_ROWS).all():
            raise ValueError("rows at a candidate must be at least 0, and at most 2^40 in a cell")
        drawn = np.empty((len(statistics), self.outputs), dtype=np.int64)
        for cell, rows in enumerate(statistics.astype(np.int64)):
            drawn[cell] = draw_path(self._paths(rows), source) // self.sublevels
        return drawn

    def chances(self, rows: Codes) -> dict[tuple[int, ...], Fraction]:
        """The chance of each output on one cell, by enumerating all tuples of sub-levels.

        ``rows`` has shape (candidates,). Only for small numbers of candidates, rows and sub-levels.
        """
        paths = self._paths(rows)
        tuples = list(combinations_with_replacement(range(paths.positions.count), self.outputs))
        exponents = [paths.exponent(np.array(path)) for path in tuples]
        # A common factor of all weights is left out, for its size.
        least, most = min(exponents), max(exponents)
        weights: Counter[tuple[int, ...]] = Counter()
        for path, exponent in zip(tuples, exponents, strict=True):
            published = tuple(position // self.sublevels for position in path)
            weights[published] += self.ratio ** (exponent - least) << RATIO_BITS * (most - exponent)
        total = weights.total()
        return {published: Fraction(weight, total) for published, weight in weights.items()}

    def _paths(self, rows: Codes) -> Paths:
        """The tuples of sub-levels of one cell, with values D·(half-sublevels below)."""
        positions = Positions(rows, self.sublevels, sum(self.steps))
        halves = 2 * self.sublevels * int(rows.sum())
        return Paths(positions, tuple(step * halves for step in self.steps), self.ratio)


def check_shares(shares: tuple[Fraction, ...]) -> None:
    """Check that there are shares, which ascend within (0, 1).

    Raises:
        ValueError: they do not.
    """
    if not shares or min(_gaps(shares)) <= 0:
        raise ValueError("the shares of quantiles must ascend, above 0 and below 1")


def check_shape(statistics: Codes, candidates: int) -> None:
    """Check that statistics have the rows at each of the candidates, cell by cell.

    Raises:
        ValueError: another shape than (cells, candidates).
    """
    if statistics.ndim != 2 or statistics.shape[1] != candidates:
        raise ValueError("statistics need a row for each cell and a column for each candidate")


def spread_of(shares: tuple[Fraction, ...], rows_per_unit: int, *, replaces: bool) -> int:
    """The most by which neighbors change Σ_j |D·n_j - P_j·N|, whatever the number of shares.

    2k·(D - min P) where a unit's rows are added or removed, 2k·D where they are replaced, with k
    = ``rows_per_unit`` (docs/design/quantiles-proof.md, section 2).
    """
    steps = _steps(shares)
    return 2 * rows_per_unit * (sum(steps) - (0 if replaces else min(steps)))


def _gaps(shares: tuple[Fraction, ...]) -> list[Fraction]:
    """α_j - α_(j-1) for j = 1..m+1."""
    return [after - before for before, after in pairwise([Fraction(0), *shares, Fraction(1)])]


def _steps(shares: tuple[Fraction, ...]) -> tuple[int, ...]:
    # The gaps have the common denominator of the shares, which are sums of them.
    return over_one_denominator(_gaps(shares))[0]


def _exponent(spread: int, sublevels: int) -> int:
    """By how many powers of the ratio neighbors' chances differ at most.

    A weight changes by 2B·spread powers at most, and so does the sum of all weights.
    """
    return 2 * 2 * sublevels * spread
