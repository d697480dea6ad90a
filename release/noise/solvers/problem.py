"""What is asked of modular noise: sensitivity, guarantee, loss function and extra constraints."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from release.exact.domain import Codes, Group
from release.exact.losses import Loss, WorstCaseLoss
from release.exact.numbers import exp_below_any_verifier
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import Constraint
from release.noise.solvers.program import Floats

_LEAST_SCALE = 2.0**-33
"""The sum of the masses is a row with these coefficients, and smaller ones a solver drops."""


@dataclass(frozen=True)
class Problem:
    """The pmf of least expected cost is wanted, for this guarantee and these constraints."""

    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss | WorstCaseLoss
    steps: Codes
    """Distance d(η) of each element from the centre; -1 where unreachable."""
    constraints: tuple[Constraint, ...] = ()
    scaled: bool = True
    """Whether masses are solved for relative to the closed form, or as they are."""

    @classmethod
    def of(
        cls,
        sensitivity: Sensitivity,
        guarantee: Guarantee,
        loss: Loss | WorstCaseLoss,
        constraints: tuple[Constraint, ...] = (),
    ) -> Problem:
        """The problem with its distances."""
        group = sensitivity.group
        steps = group.steps_from_zero(sensitivity.shifts)
        if not loss.is_error_rate:
            # Every translate of a feasible pmf is feasible, and a table of costs need not be least
            # at zero. So the centre is where the translate of the closed form is cheapest.
            decay = np.where(steps < 0, 0.0, np.exp(-float(guarantee.epsilon) * steps))
            centre = best_translate(group, decay, loss.typical())
            steps = steps[group.moved(group.negative(group.shift(centre)))]
        return cls(sensitivity, guarantee, loss, steps, constraints)

    @property
    def group(self) -> Group:
        """The group of the answers."""
        return self.sensitivity.group

    @property
    def size(self) -> int:
        """The number of elements of the group."""
        return self.group.size

    @cached_property
    def exact_ratio(self) -> Fraction:
        """E, a rational below what every verifier may take for e^ε."""
        return exp_below_any_verifier(self.guarantee.epsilon)

    @cached_property
    def ratio(self) -> float:
        """E for a solver."""
        return float(self.exact_ratio)

    @cached_property
    def ratio_residue(self) -> float:
        """A little less than E - :attr:`ratio`: the next fifty bits of E."""
        rest = float(self.exact_ratio - Fraction(self.ratio))
        return float(np.nextafter(rest, -np.inf))

    @property
    def delta(self) -> float:
        """δ, for the solver only."""
        return float(self.guarantee.delta)

    @cached_property
    def costs(self) -> Floats:
        """ρ, for the solver only; of a worst-case loss the mean over the true answers."""
        return self.loss.typical()

    def loss_of_closed_form(self) -> float:
        """About the expected cost of the pure closed form."""
        # Unreachable elements have no mass, at ε = 0 too.
        decay = np.exp(-float(self.guarantee.epsilon) * np.maximum(self.steps, 0))
        decay = np.where(self.steps < 0, 0.0, decay)
        return float(self.costs @ decay / decay.sum())

    @property
    def is_plain(self) -> bool:
        """Whether each element has one cost and nothing else, so that far ones may be left out."""
        return isinstance(self.loss, Loss) and not self.constraints

    @property
    def is_even(self) -> bool:
        """Whether η and -η are alike in sensitivity, costs and distances."""
        group, shifts = self.group, self.sensitivity.shifts
        negatives = group.negatives()
        return (
            self.is_plain
            and set(map(group.negative, shifts)) == set(shifts)
            and np.array_equal(self.loss.numerators, self.loss.numerators[negatives])
            and np.array_equal(self.steps, self.steps[negatives])
        )

    @cached_property
    def scale(self) -> Floats:
        """s(η), a power of two about as large as the mass of each element, as far as floats go."""
        if not self.scaled:
            return np.ones(self.size)
        decay = np.exp(-float(self.guarantee.epsilon) * np.maximum(self.steps, 0))
        # Below this a float solver sees nothing anyway; the exact repair takes care of the rest.
        mass = np.maximum(decay, max(self.delta * 1e-4, _LEAST_SCALE))
        return np.exp2(np.round(np.log2(mass)))


def best_translate(group: Group, masses: Floats, costs: Floats) -> int:
    """The element c for which Σ_η costs(η)·masses(η-c) is least; the first of several."""
    # The sums for all c together are a circular correlation: a product of Fourier transforms.
    shape = group.moduli
    spectrum = np.conj(np.fft.rfftn(masses.reshape(shape))) * np.fft.rfftn(costs.reshape(shape))
    losses = np.fft.irfftn(spectrum, shape, axes=tuple(range(len(shape)))).reshape(-1)
    # Equal sums come out apart by rounding, and the choice must not depend on the platform.
    near = losses.min() + 1e-9 * max(1e-300, float(np.abs(losses).max()))
    return int(np.flatnonzero(losses <= near)[0])
