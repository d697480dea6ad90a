"""How the true answers lie around the published ones, in columns and words of the released table.

The words follow from public files alone: the spec and a public mechanism. They hold for every
answer that could have been published, so they say nothing of those that were. A mechanism that
depends on the table is not public, and then there are no words.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release.bundle.answer_units import answer_unit
from release.bundle.files.laws import AnyMechanism
from release.exact.domain import AnswerDomain, Codes
from release.exact.intervals import reach
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.sums import NoisySums
from release.queries.intervals import LEVEL, Ends, released_interval
from release.spec.domains import Bins, Grid
from release.spec.query import PlainQuery, Query

INTERVAL = ("low", "high")
"""The columns of the ends of intervals, both included."""

LEVEL_TEXT = str(LEVEL)
"""In how many cases an interval holds the truth, for each cell by itself."""

END_TITLES = {
    "low": "lower end of the 95 % interval",
    "high": "upper end of the 95 % interval",
}

CONFIDENCE = "95% confidence, at every true answer"
"""What an interval promises; ``bounded`` says of which rows the true answer is."""


@dataclass(frozen=True, eq=False)
class Around:
    """Where the true answers lie around the published ones.

    Attributes:
        ends: of the interval of each cell, both included; shape (cells,) each.
        words: what people are told of all of them; None where there is nothing to say.
    """

    ends: Ends | None
    words: str | None


def around(query: Query, mechanism: AnyMechanism, outcomes: Codes, bounded: str) -> Around:
    """Where the true answers lie; ``outcomes`` is what was drawn, shape (cells, columns)."""
    ends = released_interval(query, mechanism, outcomes)
    return Around(ends, interval_words(query, mechanism, bounded))


def interval_words(query: Query, mechanism: AnyMechanism, bounded: str) -> str | None:
    """How far the interval of an answer reaches; None where answers have none.

    Of a mean the width depends on the noisy sums of its cell, so the words have no figure.
    ``bounded`` says which rows are read, empty where all are.

    Raises:
        ValueError: the mechanism is one of another domain.
    """
    domain = query.answers
    if not isinstance(query, PlainQuery) or not isinstance(domain, AnswerDomain):
        return None
    promise = f"{CONFIDENCE}{f' ({bounded})' if bounded else ''}"
    if isinstance(mechanism, NoisySums):
        return f"{_of_sums(query, mechanism)}{promise}"
    if isinstance(mechanism, StatisticMechanism):
        return None
    if mechanism.answers != domain.size:
        raise ValueError("the mechanism has another number of answers")
    farthest = reach(mechanism, domain, LEVEL)
    if farthest is None:
        return None
    return f"at most ±{answer_unit(query).amount(farthest)}: {promise}"


def _of_sums(query: PlainQuery, mechanism: NoisySums) -> str:
    if mechanism.sums > 1:
        return ""
    units = query.units or f"units of {query.name}"
    return f"at most ±{mechanism.noise.radius(LEVEL):,} {units}: "


def step_of(query: PlainQuery) -> Fraction:
    """The distance of neighboring answers of a sum, in the unit of its noise."""
    domain = getattr(query, "domain", None)
    if isinstance(domain, Grid):
        return Fraction(domain.grid.step)
    if isinstance(domain, Bins):
        return Fraction(domain.bins.high - domain.bins.low, domain.bins.count)
    raise TypeError(f"{query.name} has no steps")
