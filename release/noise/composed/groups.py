"""What queries ask of a shared budget, and what they get.

Queries that ask for the same get the same noise, so they form a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import Pattern, undominated

PERMUTE_AND_FLIP, EXPONENTIAL, PURE = "permute_and_flip", "exponential_mechanism", "pure"
"""Families of mechanisms that are known by a pure ε."""


class Kind(Enum):
    """What is known of the mechanism of a query."""

    INTEGERS = "integers"
    """Noise on integers, which is made for the budget."""

    SELECTION = "selection"
    """One of public candidates by integer scores."""

    PURE = "pure"
    """A mechanism that is known by a pure ε alone."""


@dataclass(frozen=True)
class ShareRequest:
    """A query with a share of a budget, or with a target.

    Attributes:
        name: the query's.
        patterns: by how much one unit changes the cells of a query on integers.
        loss_power: 0 error rate, 1 absolute, 2 squared loss, of one published answer. That of a
            selection is how far its score lies below the best, in the worst case; its power is 1
            or 2, and 0 counts as 1.
        weight: of the expected loss in the sum that is made least; None with a target.
        target: the most expected loss; None with a weight.
        kind: what is known of the mechanism.
        candidates: of a selection, how many there are.
        spread: of a selection, the range of changes of scores.
        cells: of a selection or a pure mechanism, how many answers one unit changes.
        families: of a selection, those that may be chosen: permute-and-flip, the exponential
            mechanism, or both.
        loss_at_one: of a pure mechanism, its expected loss at ε = 1; it falls as ε^-power.
        together: what one unit changes in all cells together, in units of the most in one cell,
            where the mechanism loses in proportion; None takes it from ``patterns`` or ``cells``.

    Raises:
        ValueError: both or neither of weight and target, one that is not above 0, a unit that
            changes nothing, or a selection without its parameters.
    """

    name: str
    patterns: tuple[Pattern, ...] = ((1,),)
    loss_power: int = 2
    weight: Fraction | None = None
    target: Fraction | None = None
    kind: Kind = Kind.INTEGERS
    candidates: int = 0
    spread: int = 0
    cells: int = 1
    families: tuple[str, ...] = (PERMUTE_AND_FLIP,)
    loss_at_one: Fraction = Fraction(1)
    together: Fraction | None = None

    def __post_init__(self) -> None:
        is_shared, is_aimed = self.weight is not None, self.target is not None
        if is_shared == is_aimed or (self.weight or self.target or 0) <= 0:
            raise ValueError("a query needs a share or a target, above 0, and not both")
        if self.loss_power not in (0, 1, 2) or self.loss_at_one <= 0:
            raise ValueError("a loss is the error rate, absolute or squared, and above 0")
        # The empty pattern, of a unit that touches no cell, counts as false.
        if self.kind is Kind.INTEGERS and not any(undominated(self.patterns)):
            raise ValueError("a unit that changes no answer needs no noise")
        if self.kind is not Kind.INTEGERS and self.cells < 1:
            raise ValueError("a unit that changes no answer needs no noise")
        if self.kind is Kind.SELECTION and (self.candidates < 2 or self.spread < 1):
            raise ValueError("a selection needs two candidates and a spread of 1 or more")

    @property
    def most(self) -> int:
        """The most that one unit changes one answer on integers by."""
        return max(map(max, self.patterns))

    @property
    def times(self) -> Fraction:
        """How often the ε of one cell is charged, where losses are in proportion to changes."""
        if self.together is not None:
            return self.together
        if self.kind is Kind.INTEGERS:
            return Fraction(max(map(sum, self.patterns)), self.most)
        return Fraction(self.cells)

    @property
    def touched(self) -> int:
        """The most answers that one unit changes."""
        if self.kind is Kind.INTEGERS:
            return max(map(len, undominated(self.patterns)))
        return self.cells


@dataclass(frozen=True)
class Selected:
    """A mechanism that is known by its family and a pure ε for each answer.

    ``family`` is the class of release.exact.statistics, or "pure" for any pure mechanism.
    """

    family: str
    epsilon: Fraction


@dataclass(frozen=True)
class ShareResult:
    """The mechanism that a request gets.

    Attributes:
        name: the query's.
        mechanism: its noise, or its family and ε.
        pure_epsilon: a pure ε of one unit's whole effect on the query, where one is at hand.
        expected_loss: of one published answer, without clamping; rounded.
    """

    name: str
    mechanism: IntegerNoise | Selected
    pure_epsilon: Fraction | None
    expected_loss: float


@dataclass(frozen=True)
class RequestGroup:
    """Queries that ask for the same."""

    request: ShareRequest
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.names)


def grouped(requests: Sequence[ShareRequest]) -> tuple[RequestGroup, ...]:
    """Return the groups in the order of their first queries."""
    names: dict[ShareRequest, list[str]] = {}
    for request in requests:
        # Patterns that another one exceeds change no mechanism: they may not keep queries apart.
        patterns = undominated(request.patterns)
        alike = replace(request, name="", patterns=patterns)
        names.setdefault(alike, []).append(request.name)
    return tuple(RequestGroup(request, tuple(which)) for request, which in names.items())
