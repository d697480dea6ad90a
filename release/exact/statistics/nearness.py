"""How near the answers of a mechanism on a statistic are, for all that a cell may hold.

What a mechanism on a statistic errs depends on the table: on the lead of the commonest category, on
the rows in a cell. These are confidential. So plan and report say the error for every lead, or for
every number of rows; what the cells really have is said by ``check``, to the curator alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from release.exact.numbers import least_enough

LEVEL = 0.95
"""The chance of which sentences say "95 of 100"."""

POINTS = 25
"""Of a curve about so many are computed."""


@dataclass(frozen=True)
class Wording:
    """What sentences about a query need to know of it.

    Attributes:
        width: the unit of its sums, such as "Wh".
        counted: what its scores count, in the plural.
        scores_a_row: what one row of distance in rank is in scores; None where scores are no ranks.
        rank_condition: in which cells a rank can be found at all, as the beginning of a sentence.
    """

    width: str
    counted: str = "rows"
    scores_a_row: int | None = None
    rank_condition: str = ""


@dataclass(frozen=True)
class Nearness:
    """``points`` are pairs of what a cell may hold, ``of``, and the ``figure`` there.

    ``near`` is the figure of the ``sentence``: the lead, the ranks or the error of 95 in 100.
    """

    of: str
    figure: str
    points: tuple[tuple[float, float], ...]
    sentence: str
    near: float
    short: str
    """The figure in two words."""
    by_powers: bool = False
    """Whether both axes of a picture are logarithmic."""

    @property
    def near_of(self) -> str:
        """What ``near`` is."""
        if self.by_powers:
            return f"{self.figure}, of 1,000 rows"
        return f"{self.of}, for at least 95 in 100"


def lead_for(chance_of_lead: Callable[[int], float]) -> int:
    """The least lead with which a candidate is published with the chance :data:`LEVEL`."""
    # The chance rises with the lead.
    return least_enough(lambda lead: chance_of_lead(lead) >= LEVEL)


def nearness_of_one(chance_of_leader: Callable[[int], float], wording: Wording) -> Nearness:
    """Of one candidate that is published: its chance, by how far it leads all others."""
    enough = lead_for(chance_of_leader)
    chances = _at_leads(chance_of_leader, enough)
    scale = wording.scores_a_row
    if scale is None:
        word = wording.counted
        return Nearness(
            f"lead over the next, in {word}",
            "chance to publish the commonest",
            chances,
            f"a category that leads every other by {enough:,} {word} is published in at least 95 "
            "of 100 cases, whatever the counts are",
            near=enough,
            short=f"lead of {enough:,}",
        )
    rows = -(-enough // scale)
    return Nearness(
        "distance in rank, in rows",
        "chance to publish no answer so far off",
        tuple((lead / scale, chance) for lead, chance in chances),
        f"{wording.rank_condition}the published answer is less than {rows:,} rows away from the "
        "wanted rank in at least 95 of 100 cases, whatever the values are",
        near=rows,
        short=f"{rows:,} rows off",
    )


def nearness_of_members(
    members: int, chance_of_all: Callable[[int], float], wording: Wording
) -> Nearness:
    """Of several categories: the chance that all are published, by how far each leads all the rest.

    ``chance_of_all`` bounds it from below, and may be below 0.
    """
    enough = lead_for(chance_of_all)
    points = [(lead, max(0.0, chance)) for lead, chance in _at_leads(chance_of_all, enough)]
    word = wording.counted
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
        tuple(points),
        f"{first} in at least 95 of 100 cases, whatever the counts are",
        near=enough,
        short=f"lead of {enough:,}",
    )


def nearness_of_ranks(
    quantiles: int, rows: int, distances: NDArray[np.float64], within: NDArray[np.float64]
) -> Nearness:
    """Of several quantiles: each is within ``rows`` of its rank with the chance :data:`LEVEL`.

    ``within`` has the chance for each of the ``distances`` in rank.
    """
    return Nearness(
        "distance in rank, in rows",
        "chance of each, at least, to be so near",
        tuple(zip(distances.tolist(), within.tolist(), strict=True)),
        f"each of the {quantiles} quantiles is within about {rows:,} rows of its rank in "
        "at least 95 of 100 cases, where values are spread evenly over the points",
        near=rows,
        short=f"{rows:,} rows off",
    )


def _at_leads(chance: Callable[[int], float], enough: int) -> tuple[tuple[float, float], ...]:
    step = max(1, -(-2 * enough // POINTS))
    return tuple((float(lead), chance(lead)) for lead in range(0, 2 * enough + step, step))
