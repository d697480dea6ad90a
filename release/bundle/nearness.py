"""How near the answers of a mechanism on a statistic are, as a function of a public fact.

What a mechanism on a statistic errs depends on the table: on the lead of the commonest category, on
the rows in a cell. So plan and report say the error for every lead, or for every number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import NoisySums
from release.queries.statistics import OnStatisticQuery

LEVEL = 0.95

_ROWS = (10, 100, 1_000, 10_000, 100_000)
_POINTS = 25


@dataclass(frozen=True)
class Nearness:
    """``points`` are pairs of the public fact ``of`` and the ``figure`` there; all for one cell."""

    of: str
    figure: str
    points: tuple[tuple[float, float], ...]
    sentence: str
    by_powers: bool = False
    """Whether both axes of a picture are logarithmic."""


def nearness_of(query: OnStatisticQuery, mechanism: StatisticMechanism) -> Nearness:
    """How near the answers of ``query`` are under its mechanism.

    Raises:
        TypeError: the mechanism is of no family that can be described.
    """
    if isinstance(mechanism, PermuteAndFlip | TwoCategories | GapTable):
        return _of_selection(query, mechanism)
    if isinstance(mechanism, NoisySums):
        return _of_sums(query, mechanism)
    raise TypeError(f"no description of {mechanism.family}")


Selection: TypeAlias = PermuteAndFlip | TwoCategories | GapTable


def lead_for(mechanism: Selection, level: float = LEVEL) -> int:
    """The least lead with which a candidate is published with chance ``level``, come what may."""
    low, high = -1, 1
    while mechanism.chance_of_leader(high) < level:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if mechanism.chance_of_leader(middle) >= level else (middle, high)
    return high


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
            f"a category that leads every other by {enough} {word} is published in at least 95 of "
            "100 cases, whatever the counts are",
        )
    rows = -(-enough // scale)
    return Nearness(
        "distance in rank, in rows",
        "chance to publish no answer so far off",
        tuple((lead / scale, chance) for lead, chance in chances),
        f"the published answer is less than {rows} rows away from the wanted rank in at least 95 "
        "of 100 cases, whatever the values are",
    )


def _of_sums(query: OnStatisticQuery, mechanism: NoisySums) -> Nearness:
    most, width = mechanism.noise.radius(LEVEL), query.units or f"units of {query.name}"
    if mechanism.sums == 1:
        return Nearness(
            "rows in the cell",
            f"error of the sum, 95 in 100, in {width}",
            tuple((float(rows), float(most)) for rows in _ROWS),
            f"a sum errs by at most {most:,} {width} in 95 of 100 cases, before it is put into a "
            "bin",
            by_powers=True,
        )
    # At either end of the clamp one of the two noises decides alone; between them less is left.
    points = tuple((float(rows), most / rows) for rows in _ROWS)
    return Nearness(
        "rows in the cell",
        f"error of the mean, 95 in 100, in {width}",
        points,
        f"a mean of 1,000 rows errs by at most {most / 1000:.3g} {width} in 95 of 100 cases, "
        "before it is put into a bin; of ten times the rows by a tenth of that",
        by_powers=True,
    )
