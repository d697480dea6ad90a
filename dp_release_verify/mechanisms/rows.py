"""Laws that are written out: noise in the group of the answers, and a row for each true answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import prod

from dp_release_verify import forms
from dp_release_verify.losses import Pairs, Profile
from dp_release_verify.mechanisms.base import (
    MOST_COMPARED,
    Deltas,
    Mechanism,
    deltas_of,
    not_this_question,
    profile_of,
)
from dp_release_verify.reach import Reach, Vector


class Modular(Mechanism):
    """The true code plus noise in the group: element η has the probability weight/total."""

    def __init__(
        self, file: str, law: forms.ModularLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        self.weights = law.weights
        self.group = reach.question.group
        self.need(len(self.weights) == prod(self.group), "weights", len(self.weights), self.group)
        self.total = sum(self.weights)

    def check(self) -> None:
        """The weights have a total that is drawn exactly, and are noise."""
        check_total(self, self.total, 10**78)
        self.need(max(self.weights) < self.total, "weights", "no noise", "noise")

    def _compared(self) -> Iterator[tuple[int, Pairs, int]]:
        size = len(self.weights)
        work = size * len(self.differences)
        self.need(work <= MOST_COMPARED, "weights", work, f"{MOST_COMPARED} numbers to compare")
        for vector in sorted(self.differences):
            moved = rolled(self.weights, self.group, vector)
            counts = Counter(zip(self.weights, moved, strict=True))
            nearest = min(vector[0], self.group[0] - vector[0])
            yield nearest, Pairs(counts, self.total), size

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps: the largest δ over all differences."""
        return deltas_of((pairs for _, pairs, _ in self._compared()), epsilon)

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The profile over the differences up to ``far``."""
        return profile_of(self._compared(), far, step)


class Channel(Mechanism):
    """A row of weights for each true code of an ordered domain."""

    def __init__(
        self, file: str, law: forms.ChannelLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        question = reach.question
        if not question.is_line:
            raise not_this_question(file, "channel")
        self.rows = law.rows
        self.size = question.size
        lengths = {len(row) for row in self.rows} | {len(self.rows)}
        self.need(lengths == {self.size}, "rows", sorted(lengths), self.size)
        self.total = sum(self.rows[0])

    def check(self) -> None:
        """The rows have one total that is drawn exactly, and are noise."""
        totals = {sum(row) for row in self.rows}
        self.need(len(totals) == 1, "rows", "different sums", "one sum")
        check_total(self, self.total, 2**62)
        largest = max(max(row) for row in self.rows)
        self.need(largest < self.total, "rows", "no noise", "noise")

    def _compared(self) -> Iterator[tuple[int, Pairs, int]]:
        pairs = self.size**2 * self.size
        self.need(pairs <= MOST_COMPARED, "rows", pairs, f"{MOST_COMPARED} numbers to compare")
        for a, b in permutations(range(self.size), 2):
            if abs(a - b) in self.distances:
                counts = Counter(zip(self.rows[a], self.rows[b], strict=True))
                yield abs(a - b), Pairs(counts, self.total), self.size

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps: the largest δ over all neighboring codes."""
        return deltas_of((pairs for _, pairs, _ in self._compared()), epsilon)

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The profile over the neighboring codes up to ``far`` apart."""
        return profile_of(self._compared(), far, step)


def check_total(mechanism: Mechanism, total: int, most: int) -> None:
    """A total is a power of two, so that random bits draw it exactly."""
    is_power = total >= 2 and total & (total - 1) == 0
    mechanism.need(is_power and total <= most, "total", total, f"a power of two up to {most}")


def rolled(weights: list[int], group: tuple[int, ...], by: Vector) -> list[int]:
    """The list whose element η is the weight of η + by, in row-major order."""
    inner = prod(group[1:])
    cut = by[0] * inner
    moved = weights[cut:] + weights[:cut]
    if len(group) == 1:
        return moved
    parts = []
    for start in range(0, len(moved), inner):
        parts += rolled(moved[start : start + inner], group[1:], by[1:])
    return parts
