"""Noise on the integers, clamped to the answers and remapped near their ends."""

from __future__ import annotations

from fractions import Fraction

from dp_release_verify import forms
from dp_release_verify.canonical import below_e
from dp_release_verify.losses import Profile
from dp_release_verify.mechanisms.base import Deltas, Mechanism, deltas_of, not_this_question
from dp_release_verify.mechanisms.noise import NoiseLaw
from dp_release_verify.reach import Reach

_NEAR = 2**22
"""Of more answers than these, the tables of the ends reach this far at most, both together."""

MOST_DISTANCES = 10**6


class Integers(Mechanism):
    """The published code of a true code a is min(N − 1, max(0, a + Z)), moved near the ends."""

    def __init__(
        self, file: str, law: forms.IntegersLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        if not reach.question.is_line:
            raise not_this_question(file, "integers")
        self.law = law
        self.noise = NoiseLaw(file, law.noise)
        count = len(self.distances)
        self.need(0 < count <= MOST_DISTANCES, "distances", count, f"1 to {MOST_DISTANCES}")

    def check(self) -> None:
        """The noise can be drawn exactly, and every outcome publishes a code."""
        self.noise.check()
        self._check_ends()

    def _check_ends(self) -> None:
        """The tables of the ends see the noisy code alone, and publish codes."""
        size = self.reach.question.size
        near = size if size <= _NEAR else _NEAR // 2
        low, high = self.law.ends.low, self.law.ends.high
        lengths = [sum(count for count, _ in runs) for runs in (low, high)]
        self.need(sum(lengths) <= size, "ends", lengths, f"at most {size} outcomes")
        for name, runs, start, first in (
            ("low", low, 0, 0),
            ("high", high, size - lengths[1], size - near),
        ):
            place, before = start, None
            for count, shift in runs:
                is_inside = first <= place + min(shift, 0)
                is_inside = is_inside and place + count + max(shift, 0) <= first + near
                right = count >= 1 and is_inside and shift != before
                self.need(right, f"ends.{name}", (count, shift), "runs that publish codes")
                place, before = place + count, shift

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps; the tables of the ends can raise a probabilistic δ above 0 to any."""
        if self.noise.is_far(self.distances):
            is_pure = self.noise.is_unimodal
            is_pure = is_pure and self.noise.is_pure_by_steps(self.distances, epsilon)
            approximate = Fraction(0 if is_pure else 1)
        else:
            compared = self.noise.compared(self.distances)
            approximate = deltas_of(compared, epsilon).approximate
        return Deltas(Fraction(approximate > 0), approximate)

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The profile of a cell that moves by up to ``far`` codes."""
        return self.noise.cell({each for each in self.distances if each <= far}, step)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """Whether one step of the largest change loses at most its part of ε."""
        below = below_e(epsilon / max(self.distances))
        return all(self.noise.pairs(sign).excess(below) == 0 for sign in (1, -1))
