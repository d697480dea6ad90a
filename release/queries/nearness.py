"""How near the answers of a mechanism on a statistic are, as a function of a public fact.

What a mechanism on a statistic errs depends on the table: on the lead of the commonest category, on
the rows in a cell. So plan and report say the error for every lead, or for every number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.numbers import least_enough
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE, StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_choice import variances_in_rank
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop, Published
from release.exact.statistics.top.peeled import PeeledTop
from release.queries.on_statistic import OnStatisticQuery

LEVEL = 0.95

_ROWS = (10, 100, 1_000, 10_000, 100_000)
_POINTS = 25


@dataclass(frozen=True)
class Nearness:
    """``points`` are pairs of the public fact ``of`` and the ``figure`` there; all for one cell.

    ``near`` is the figure of the ``sentence``: the lead, the ranks or the error of 95 in 100.
    """

    of: str
    figure: str
    points: tuple[tuple[float, float], ...]
    sentence: str
    near: float
    by_powers: bool = False
    """Whether both axes of a picture are logarithmic."""

    @property
    def near_of(self) -> str:
        """What ``near`` is."""
        if self.by_powers:
            return f"{self.figure}, of 1,000 rows"
        return f"{self.of}, for at least 95 in 100"


def nearness_of(query: OnStatisticQuery, mechanism: StatisticMechanism) -> Nearness:
    """How near the answers of ``query`` are under its mechanism.

    Raises:
        TypeError: the mechanism is of no family that can be described.
    """
    if isinstance(mechanism, Selection):
        return _of_selection(query, mechanism)
    if isinstance(mechanism, NoisySums):
        return _of_sums(query, mechanism)
    if isinstance(mechanism, JointQuantiles):
        return _of_quantiles(mechanism)
    if isinstance(mechanism, QuantileTree):
        return _of_tree(mechanism)
    if isinstance(mechanism, HistogramTop | CanonicalTop | PeeledTop):
        return _of_top(query, mechanism)
    raise TypeError(f"no description of {mechanism.family}")


Selection: TypeAlias = PermuteAndFlip | ExponentialMechanism | TwoCategories | GapTable


def lead_for(mechanism: Selection, level: float = LEVEL) -> int:
    """The least lead with which a candidate is published with chance ``level``, come what may."""
    # The chance rises with the lead.
    return least_enough(lambda lead: mechanism.chance_of_leader(lead) >= level)


def _of_selection(query: OnStatisticQuery, mechanism: Selection) -> Nearness:
    enough = lead_for(mechanism)
    step = max(1, -(-2 * enough // _POINTS))
    leads = range(0, 2 * enough + step, step)
    chances = tuple((float(lead), mechanism.chance_of_leader(lead)) for lead in leads)
    scale = query.scores_a_row
    if scale is None:
        word = query.counted_word
        return Nearness(
            f"lead over the next, in {word}",
            "chance to publish the commonest",
            chances,
            f"a category that leads every other by {enough:,} {word} is published in at least 95 "
            "of 100 cases, whatever the counts are",
            near=enough,
        )
    rows = -(-enough // scale)
    return Nearness(
        "distance in rank, in rows",
        "chance to publish no answer so far off",
        tuple((lead / scale, chance) for lead, chance in chances),
        f"{query.rank_condition}the published answer is less than {rows:,} rows away from the "
        "wanted rank in at least 95 of 100 cases, whatever the values are",
        near=rows,
    )


Top: TypeAlias = HistogramTop | CanonicalTop | PeeledTop


def _of_top(query: OnStatisticQuery, mechanism: Top) -> Nearness:
    low, enough = 0, 1
    while _chance_of_all(mechanism, enough) < LEVEL:
        low, enough = enough, 2 * enough
    # Invariant: ``low`` is too little, ``enough`` is not.
    while low + 1 < enough:
        middle = (low + enough) // 2
        is_enough = _chance_of_all(mechanism, middle) >= LEVEL
        low, enough = (low, middle) if is_enough else (middle, enough)
    step = max(1, -(-2 * enough // _POINTS))
    leads = range(0, 2 * enough + step, step)
    points = tuple((float(lead), max(0.0, _chance_of_all(mechanism, lead))) for lead in leads)
    word, members = query.counted_word, mechanism.members
    if members == 1:
        first = f"a category that leads every other by {enough:,} {word} is published"
    else:
        first = (
            f"if all {members} lead every other category by {enough:,} {word}, then all of them "
            "are published"
        )
    return Nearness(
        f"lead over the first left out, in {word}",
        "chance that all are published, at least",
        points,
        f"{first} in at least 95 of 100 cases, whatever the counts are"
        f"{_count_error(mechanism, word)}",
        near=enough,
    )


def _count_error(mechanism: Top, word: str) -> str:
    """How far off the counts of a published histogram are, as the end of a sentence."""
    # The counts of the members alone are those whose noise is large, so this is not said of them.
    if not isinstance(mechanism, HistogramTop) or mechanism.counts is not Published.ALL:
        return ""
    radius = mechanism.histogram.noise.radius(LEVEL)
    return f"; each noisy count is within {radius:,} {word} of the true one in 95 of 100 cases"


def _chance_of_all(mechanism: Top, lead: int) -> float:
    """A lower bound of the chance that all members are published, each leading by ``lead``."""
    if isinstance(mechanism, HistogramTop):
        noise, members = mechanism.histogram.noise, mechanism.members
        rivals = mechanism.inputs - members
        # A member is overtaken where the two noises together bridge the lead.
        share = noise.right.fraction if noise.right else Fraction(0)
        return 1 - members * rivals * _of_two(float(share), lead)
    bounds, members = mechanism.bounds, mechanism.members
    if isinstance(mechanism, CanonicalTop):
        # The union bound over all other sets of as many categories.
        worse = math.comb(bounds.categories, members) - 1
        return 1 - worse * (mechanism.ratio / RATIO_ONE) ** lead
    # The union bound over the draws, each of which has one category fewer than the one before.
    missed = 0.0
    for drawn in range(members):
        remaining = bounds.categories - drawn
        single = PermuteAndFlip(max(2, remaining), 1, mechanism.ratio)
        missed += 1 - single.chance_of_leader(lead)
    return 1 - missed


def _of_two(ratio: float, lead: int) -> float:
    """P(Z - Z' ≥ ``lead``) for independent two-sided geometric noises."""
    if lead <= 0:
        return 1.0
    # The two-sided geometric law, convolved with itself.
    scale = (1 - ratio) ** 2 / (1 + ratio) ** 2
    beyond = ratio**lead / (1 - ratio)
    mean = lead + ratio / (1 - ratio)
    return scale * beyond * (mean + (1 + ratio**2) / (1 - ratio**2))


def _of_quantiles(mechanism: JointQuantiles) -> Nearness:
    """Where rows are spread evenly, distances from the ranks are a bridge of Laplace steps.

    Each step between two neighboring quantiles has the chance e^(-|step|/scale), and all steps add
    up to 0.
    """
    scale, steps = mechanism.row_scale, mechanism.outputs + 1
    reach = np.linspace(-25 * steps**0.5, 25 * steps**0.5, 4001)
    law = np.exp(-np.abs(reach))
    walks = [law]
    for _ in range(mechanism.outputs - 1):
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
    distances = np.linspace(0, 2 * rows, _POINTS)
    return _of_ranks(mechanism.outputs, rows, distances, np.interp(distances, far, chances))


def _of_tree(mechanism: QuantileTree) -> Nearness:
    """Where rows are spread evenly, a distance from a rank is the sum of many noises."""
    deviation = math.sqrt(max(variances_in_rank(mechanism)))
    rows = math.ceil(NormalDist().inv_cdf((1 + LEVEL) / 2) * deviation)
    distances = np.linspace(0, 2 * rows, _POINTS)
    within = [math.erf(distance / (math.sqrt(2) * deviation)) for distance in distances.tolist()]
    return _of_ranks(mechanism.outputs, rows, distances, np.array(within))


def _of_ranks(
    quantiles: int, rows: int, distances: NDArray[np.float64], within: NDArray[np.float64]
) -> Nearness:
    return Nearness(
        "distance in rank, in rows",
        "chance of each, at least, to be so near",
        tuple(zip(distances.tolist(), within.tolist(), strict=True)),
        f"each of the {quantiles} quantiles is within about {rows:,} rows of its rank in "
        "at least 95 of 100 cases, where values are spread evenly over the points",
        near=rows,
    )


def _of_sums(query: OnStatisticQuery, mechanism: NoisySums) -> Nearness:
    # In the unit of the published answers, which on a grid is its scale.
    most = float(mechanism.noise.radius(LEVEL))
    width = query.units or f"units of {query.name}"
    if mechanism.sums == 1:
        return Nearness(
            f"error, in {width}",
            "chance that it is no larger",
            _chances_within(mechanism, int(most)),
            f"a sum errs by at most {most:,.6g} {width} in 95 of 100 cases, before it is put into "
            "a bin",
            near=most,
        )
    # At either end of the clamp one of the two noises decides alone; between them less is left.
    points = tuple((float(rows), most / rows) for rows in _ROWS)
    return Nearness(
        "rows in the cell",
        f"error of 95 in 100, in {width}",
        points,
        f"a mean of 1,000 rows errs by at most {most / 1000:.3g} {width} in 95 of 100 cases, "
        "before it is put into a bin; of ten times the rows by a tenth of that",
        near=most / 1000,
        by_powers=True,
    )


def _chances_within(mechanism: NoisySums, most: int) -> tuple[tuple[float, float], ...]:
    """The chances of errors up to about twice ``most``, of one sum."""
    noise, step = mechanism.noise, max(1, -(-2 * most // _POINTS))
    points = []
    for error in range(0, 2 * most + step, step):
        points.append((float(error), 1 - noise.above(error) - noise.mirrored.above(error)))
    return tuple(points)
