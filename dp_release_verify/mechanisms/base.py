"""What a verifier asks of a mechanism: that it is a law, what it keeps, and how it composes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dp_release_verify import forms
from dp_release_verify.canonical import SCALE, below_e
from dp_release_verify.errors import Refused, refuse_unless
from dp_release_verify.losses import Pairs, Profile, largest, rough_profile
from dp_release_verify.reach import Reach

MOST_COMPARED = 10**8
"""Numbers that are compared for one mechanism at most."""

MOST_IN_PROFILE = 3 * 10**5
MOST_COMPARED_IN_PROFILE = 10**7


@dataclass(frozen=True)
class Deltas:
    """The least δ that a mechanism keeps at one ε, under each definition.

    A mechanism is pure where the probabilistic one is 0.
    """

    probabilistic: Fraction
    approximate: Fraction

    def under(self, definition: str) -> Fraction:
        """The δ under a definition."""
        return self.approximate if definition == "approximate" else self.probabilistic


class Mechanism(ABC):
    """A law as it is published, for one question.

    Args:
        file: the file it stands in, for refusals.
        law: what the file says.
        reach: what one unit can change.
        found: of a committed law, how far neighbors of the very table move an answer.

    Raises:
        Refused: it cannot answer this question.
    """

    def __init__(
        self, file: str, law: object, reach: Reach, found: forms.Found | None = None
    ) -> None:
        self.file = file
        self.reach = reach
        self.found = found

    def need(self, holds: bool, place: str, found: object, needed: object) -> None:
        """Refuse the file if a condition does not hold."""
        refuse_unless(holds, self.file, place, found, needed)

    @abstractmethod
    def check(self) -> None:
        """Check that it is a law that can be drawn exactly.

        Raises:
            Refused: it is not.
        """

    @abstractmethod
    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps, for all that one unit can change of one cell.

        Raises:
            Refused: that is more work than the page allows.
        """

    @abstractmethod
    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The profile of a cell that one unit moves by ``far``; none if that is too much work.

        ``far`` is 0 where all that one unit can change is meant; ``epsilon`` is what it keeps.
        """

    def cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile:
        """The profile of a cell; from few of its δ where all of them are too much work."""
        found = self.exact_cell(far, step, epsilon)
        if found is not None:
            return found
        return rough_profile(lambda loss: self.deltas(loss).approximate, step)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """Whether a part of the change loses at most the same part of ε."""
        return False

    @cached_property
    def distances(self) -> set[int]:
        """How far neighbors are on a line: by the question, or as found in the table."""
        if self.found is None:
            return self.reach.distances
        stated = set(self.found.distances or ())
        last = self.reach.question.size - 1
        self.need(bool(stated) and max(stated) <= last, "distances", sorted(stated), "some")
        return stated

    @cached_property
    def differences(self) -> set[tuple[int, ...]]:
        """How far neighbors are in the group: by the question, or as found in the table."""
        if self.found is None:
            return self.reach.differences
        group = self.reach.question.group
        stated = {tuple(each) for each in self.found.differences or ()}
        right = bool(stated) and (0,) * len(group) not in stated
        right = right and all(len(vector) == len(group) for vector in stated)
        self.need(right, "differences", len(stated), f"some, of {len(group)} numbers each")
        for vector in stated:
            mirrored = tuple(-c % size for c, size in zip(vector, group, strict=True))
            right = right and mirrored in stated
            right = right and all(0 <= c < size for c, size in zip(vector, group, strict=True))
        self.need(right, "differences", len(stated), "differences, and their negatives")
        return stated


def deltas_of(compared: Iterable[Pairs], epsilon: Fraction) -> Deltas:
    """The largest δ of many pairs of laws."""
    ratio = below_e(epsilon)
    probabilistic = approximate = Fraction(0)
    for pairs in compared:
        above = Fraction(pairs.mass_above(ratio), pairs.total)
        probabilistic = max(probabilistic, above)
        excess = Fraction(pairs.excess(ratio), pairs.total * SCALE)
        approximate = max(approximate, excess)
    return Deltas(probabilistic, approximate)


def profile_of(
    compared: Iterable[tuple[int, Pairs, int]], far: int, step: Fraction
) -> Profile | None:
    """The largest profile of the pairs up to a distance; the third is how much was compared."""
    profiles: dict[frozenset[tuple[tuple[int, int], int]], Profile] = {}
    work = size = 0
    for distance, pairs, count in compared:
        if far and distance > far:
            continue
        size += count
        if size > MOST_COMPARED_IN_PROFILE:
            return None
        if pairs.key not in profiles:
            profiles[pairs.key] = pairs.profile(step)
            work += len(pairs.key) + len(profiles[pairs.key])
        if work > MOST_IN_PROFILE:
            return None
    return largest(list(profiles.values()), step)


def not_this_question(file: str, family: str) -> Refused:
    """The refusal of a family that cannot answer a question."""
    return Refused(file, "family", family, "one that answers this question")
