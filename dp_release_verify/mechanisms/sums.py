"""Noise on the sums that decide an answer: one for a sum, two for a mean."""

from __future__ import annotations

from fractions import Fraction

from dp_release_verify import forms
from dp_release_verify.canonical import below_e, loss_of
from dp_release_verify.losses import Profile, worst_case
from dp_release_verify.mechanisms.base import Deltas, Mechanism, not_this_question
from dp_release_verify.mechanisms.noise import MOST_WORK_IN_PROFILE, UNIT, NoiseLaw
from dp_release_verify.reach import Reach

MOST_SPREAD = 10**6


class NoisySums(Mechanism):
    """Each sum plus noise on the integers; the answer follows from the noisy sums."""

    def __init__(
        self, file: str, law: forms.SumsLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        question = reach.question
        if question.kind not in ("sum", "mean"):
            raise not_this_question(file, "noisy_sums")
        self.noise = NoiseLaw(file, law.noise)
        self.spread = reach.spread(reach.rows, question.neighbors.ways)
        self.is_one = question.kind == "sum"

    def check(self) -> None:
        """The noise can be drawn exactly."""
        self.noise.check()

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps: of one sum as noise on the integers; of two by their slope."""
        if not self.is_one:
            is_pure = self._loses_by_slope(epsilon)
            return Deltas(Fraction(not is_pure), Fraction(not is_pure))
        noise = self.noise
        distances = {self.spread}
        if not noise.is_unimodal:
            self.need(self.spread <= MOST_SPREAD, "spread", self.spread, f"{MOST_SPREAD} at most")
            distances = set(range(1, self.spread + 1))
        if noise.is_far(distances):
            is_pure = noise.is_unimodal and noise.is_pure_by_steps(distances, epsilon)
        else:
            below = below_e(epsilon)
            is_pure = all(pairs.excess(below) == 0 for pairs in noise.compared(distances))
        # Its losses are composed as those of a pure mechanism, so it has to be one.
        return Deltas(Fraction(not is_pure), Fraction(not is_pure))

    def _loses_by_slope(self, epsilon: Fraction) -> bool:
        """Whether each unit of change loses at most ln(1/ρ), and all of them at most ε."""
        period, ratio = self.noise.right
        if not period or self.noise.left != self.noise.right:
            return False
        loss = self.spread * loss_of(ratio)
        return loss <= epsilon and self.noise.falls_by(Fraction(UNIT, ratio))

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The profile of a cell: of one sum with unimodal noise its own, else the worst case."""
        if self.is_one and self.noise.is_unimodal:
            _, work, is_far = self.noise.work({self.spread})
            if not is_far and work <= MOST_WORK_IN_PROFILE:
                return self.noise.cell({self.spread}, step)
        return worst_case(epsilon, Fraction(0), step)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """Whether each unit of change loses its part of ε."""
        period, ratio = self.noise.right
        if not period:
            return False
        loss = self.spread * loss_of(ratio)
        return loss <= epsilon and self.noise.falls_by(Fraction(UNIT, ratio))
