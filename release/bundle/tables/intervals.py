"""How the true answers lie around the published ones, in words for the released table.

The words follow from public files alone: the spec and a public mechanism. They hold for every
answer that could have been published, so they say nothing of those that were. They are part of a
file that a verifier writes anew, so no float decides them. A mechanism that depends on the table
is not public, and then there are no words.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from release.bundle.answer_units import AnswerUnit, answer_unit
from release.exact.accuracy import IN_95_OF_100, credible_reach
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.statistics.sums import NoisySums
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.statistics import NoisySumsRecord
from release.spec.domains import Bins, Grid
from release.spec.query import PlainQuery, Query

CREDIBLE = "95% credible, uniform prior over the true answers"
CONFIDENCE = "95% confidence"

MOST_ANSWERS = 2000
"""Of more answers only noise on the integers has an interval, as in estimates."""


class Intervals:
    """The words of each query, computed once for all queries that share a mechanism."""

    def __init__(self) -> None:
        self._reaches: dict[tuple[str, Topology], int] = {}

    def words(self, query: Query, file: str, record: AnyMechanismRecord) -> str | None:
        """How far the interval of an answer reaches; None where answers have none.

        Of a mean the width depends on the noisy sums of its cell, so the words have no figure.

        Args:
            query: a query with a public mechanism.
            file: the path of the mechanism file, the same for queries that share it.
            record: what the file holds.

        Raises:
            ValueError: the file holds no mechanism, or one of another domain.
        """
        domain = query.answers
        if not isinstance(query, PlainQuery) or not isinstance(domain, AnswerDomain):
            return None
        if isinstance(record, NoisySumsRecord):
            return _of_sums(query, record.to_mechanism())
        if not isinstance(record, MechanismRecord) or domain.topology is Topology.NOMINAL:
            return None
        mechanism = record.to_mechanism()
        if mechanism.answers != domain.size:
            raise ValueError("the mechanism has another number of answers")
        key = file, domain.topology
        if key not in self._reaches:
            if domain.size <= MOST_ANSWERS:
                self._reaches[key] = credible_reach(mechanism, domain)
            elif isinstance(mechanism, IntegerMechanism):
                self._reaches[key] = mechanism.noise.radius_in_digits(IN_95_OF_100)
            else:
                return None
        return f"{_at_most(answer_unit(query), self._reaches[key])}: {CREDIBLE}"


def _at_most(unit: AnswerUnit, codes: int) -> str:
    return f"at most ±{unit.amount(codes)}"


def _of_sums(query: PlainQuery, mechanism: NoisySums) -> str:
    if mechanism.sums > 1:
        return CONFIDENCE
    reach = mechanism.noise.radius_in_digits(IN_95_OF_100)
    # ⌊x/s⌋ and ⌊(x + r)/s⌋ are at most ⌈r/s⌉ apart.
    codes = min(ceil(reach / step_of(query)), query.answers.size - 1)
    return f"{_at_most(answer_unit(query), codes)}: {CONFIDENCE}"


def step_of(query: PlainQuery) -> Fraction:
    """The distance of neighboring answers of a sum, in the unit of its noise."""
    domain = getattr(query, "domain", None)
    if isinstance(domain, Grid):
        return Fraction(domain.grid.step)
    if isinstance(domain, Bins):
        return Fraction(domain.bins.high - domain.bins.low, domain.bins.count)
    raise TypeError(f"{query.name} has no steps")
