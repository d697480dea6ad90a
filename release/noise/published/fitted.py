"""A baseline fitted to a guarantee: as little noise as still satisfies it.

The baselines here are families with one parameter; others have a law in a file of their own. Where
the literature gives the parameter for a guarantee, that is taken; else it is searched. Every
candidate is judged by the exact δ of its integers, so that the result satisfies the guarantee,
whatever the search did.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, cast

from release.errors import DesignError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.numbers import exp_below_any_verifier
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.published.baselines import (
    clamped,
    data_independent,
    discrete_gaussian,
    exponential,
    geometric,
    geometric_modular,
    gumbel,
    modular,
    randomised_response,
    truncated,
)
from release.spec.mechanisms import MECHANISMS

# Halvings of a search, in logarithms: they find a parameter to about a thousandth.
_STEPS = 14

_ODDS = 2**12

_LEAST_VARIANCE = Fraction(1, 100)

_FINE = 1.02
"""The steps of a scan; each is a little more noise than the one before."""


@dataclass(frozen=True)
class Requirement:
    """The guarantee that a baseline for ``answers`` answers has to satisfy."""

    answers: int
    sensitivity: Sensitivity
    guarantee: Guarantee
    power: int | None = None
    """The loss as a power of the error; None of another loss."""
    parameters: Mapping[str, Fraction] = field(default_factory=dict)
    """What the spec fixes of the noise."""
    prior: tuple[Fraction, ...] | None = None
    """The public pmf of the true answers; None where the spec has none."""

    @property
    def ratio(self) -> Fraction:
        """The rational that stands for e^ε."""
        return exp_below_any_verifier(self.guarantee.epsilon)

    @property
    def farthest(self) -> int:
        """How far neighboring answers can be apart, at most; the shorter way round."""
        size = self.answers
        return max((min(s, size - s) for (s,) in self.sensitivity.shifts), default=1)

    @property
    def farthest_on_line(self) -> int:
        """How far neighboring answers can be apart on the line, at most."""
        return max(self.sensitivity.distances or (), default=1)

    @property
    def is_probabilistic(self) -> bool:
        """Whether the guarantee has a probabilistic δ, which clamping does not preserve."""
        return self.guarantee.definition is Definition.PROBABILISTIC and self.guarantee.delta > 0

    def clamped(self, noise: IntegerNoise) -> Mechanism:
        """The clamped noise; as a channel where the δ after clamping is what counts."""
        if self.is_probabilistic:
            return clamped(noise, self.answers)
        return IntegerMechanism(noise, self.answers)

    def is_satisfied_by(self, mechanism: Mechanism) -> bool:
        """Whether ``mechanism`` satisfies the guarantee, exactly."""
        return mechanism.satisfies(self.sensitivity, self.guarantee, self.ratio)


def fitted(name: str, requirement: Requirement) -> Mechanism:
    """The baseline ``name`` with as little noise as satisfies the guarantee.

    Raises:
        DesignError: no parameter does, or ε is below 10⁻⁹.
    """
    guarantee = requirement.guarantee
    # Their classical variances divide by both, as floats.
    if name in _WITH_DELTA and not (float(guarantee.epsilon) and float(guarantee.delta)):
        raise DesignError(f"{name} needs epsilon and delta above 0; found the {guarantee}")
    try:
        mechanism = (_FITS.get(name) or _law_of(name))(requirement)
        satisfied = mechanism is not None and requirement.is_satisfied_by(mechanism)
    except ValueError as error:
        raise DesignError(f"{name} cannot be fitted: {error}") from error
    if mechanism is None or not satisfied:
        raise DesignError(f"{name} cannot keep the {requirement.guarantee}")
    return mechanism


def _truncated(requirement: Requirement) -> Mechanism | None:
    # Redrawing costs at most as much again as the noise, so half of ε is always enough.
    share = requirement.guarantee.epsilon / requirement.farthest_on_line

    def make(weakness: Fraction) -> Mechanism:
        return truncated(geometric(weakness), requirement.answers, requirement.ratio)

    return _search(requirement, make, share / 2, share)


def _data_independent(requirement: Requirement) -> Mechanism | None:
    """From the error rate of randomised response, which keeps ε, to next to none."""
    response = randomised_response(requirement.answers, requirement.guarantee.epsilon)
    if requirement.guarantee.delta == 0:
        return Modular(response)
    most = 1 - response.mass(0)

    def make(weakness: Fraction) -> Modular:
        return Modular(data_independent(requirement.answers, most / weakness))

    return _search(requirement, make, Fraction(1), Fraction(10**6))


def _with_noise(
    requirement: Requirement, make: Callable[[Fraction], Mechanism], classical: float
) -> Mechanism | None:
    """``make`` of a parameter that grows with the noise, sought around its ``classical`` value."""
    if requirement.guarantee.delta == 0 or requirement.guarantee.definition is Definition.PURE:
        return None
    unit = Fraction(classical).limit_denominator(_ODDS)

    def weaker(weakness: Fraction) -> Mechanism:
        return make(unit / weakness)

    # The classical value is nearly always enough, and far more noise takes far longer to make.
    for strong in (Fraction(1), Fraction(1, 4), Fraction(1, 16)):
        mechanism = _search(requirement, weaker, strong, Fraction(64))
        if mechanism is not None:
            return mechanism
    return None


def _variance(requirement: Requirement, farthest: int) -> float:
    """σ² of the classical analysis (Dwork and Roth 2014, Theorem A.1): where a search begins."""
    epsilon, delta = float(requirement.guarantee.epsilon), float(requirement.guarantee.delta)
    return max(2 * math.log(1.25 / delta) * farthest**2 / epsilon**2, 0.1)


def is_closed_form(name: str) -> bool:
    """Whether a formula gives the baseline for a guarantee, without a search."""
    return name in ("geometric_clamped", "randomised_response")


def is_quick(name: str, requirement: Requirement) -> bool:
    """Whether a baseline is fitted in about a second: the wider its noise, the longer it takes."""
    if name.startswith("gaussian"):
        on_line = name == "gaussian_clamped"
        return (
            _variance(
                requirement, requirement.farthest_on_line if on_line else requirement.farthest
            )
            <= 2500
        )
    if name.startswith("gumbel"):
        return 2 * requirement.farthest_on_line / float(requirement.guarantee.epsilon) <= 20
    return True


def _gaussian(variance: Fraction) -> IntegerNoise:
    # Below a hundredth 0 has all of the mass, and e^{1/σ²} is beyond every table of powers.
    return discrete_gaussian(max(variance, _LEAST_VARIANCE))


def _gaussian_clamped(requirement: Requirement) -> Mechanism | None:
    classical = _variance(requirement, requirement.farthest_on_line)
    return _with_noise(requirement, lambda v: requirement.clamped(_gaussian(v)), classical)


def _gaussian_modular(requirement: Requirement) -> Mechanism | None:
    classical = _variance(requirement, requirement.farthest)

    def make(variance: Fraction) -> Modular:
        return Modular(modular(_gaussian(variance), requirement.answers))

    return _with_noise(requirement, make, classical)


def _gumbel_clamped(requirement: Requirement) -> Mechanism | None:
    def make(scale: Fraction) -> Mechanism:
        # Beyond a few times the answers the rows hardly change, and δ hardly falls.
        within = min(max(float(scale), 0.05), 4.0 * requirement.answers, 1e5)
        return requirement.clamped(gumbel(within))

    epsilon = float(requirement.guarantee.epsilon)
    return _with_noise(requirement, make, 2 * requirement.farthest_on_line / epsilon)


def _geometric_clamped(requirement: Requirement) -> Mechanism:
    epsilon = requirement.guarantee.epsilon / requirement.farthest_on_line
    # Clamping preserves every pure guarantee, and that implies the others.
    return IntegerMechanism(geometric(epsilon), requirement.answers)


Law: TypeAlias = Callable[[Requirement], Mechanism | None]
"""The noise for a requirement; None, or a ValueError that says why, where there is none."""

_FITS: dict[str, Law] = {
    "geometric_clamped": _geometric_clamped,
    "geometric_truncated": _truncated,
    "geometric_modular": lambda p: geometric_modular(p.answers, p.guarantee.epsilon / p.farthest),
    "gaussian_clamped": _gaussian_clamped,
    "gaussian_modular": _gaussian_modular,
    "gumbel_clamped": _gumbel_clamped,
    "exponential": lambda p: exponential(p.answers, p.guarantee.epsilon / p.farthest_on_line),
    "randomised_response": lambda p: Modular(randomised_response(p.answers, p.guarantee.epsilon)),
    "data_independent": _data_independent,
}

_WITH_DELTA = ("gaussian_clamped", "gaussian_modular", "gumbel_clamped")

BASELINE_NAMES = tuple(_FITS)
"""The baselines that are fitted here."""


def _law_of(name: str) -> Law:
    """The law of a mechanism that has a file of its own, loaded on use."""
    module, _, attribute = str(MECHANISMS[name].law).partition(":")
    return cast(Law, getattr(importlib.import_module(module), attribute))


def _search(
    requirement: Requirement,
    make: Callable[[Fraction], Mechanism],
    strong: Fraction,
    weak: Fraction,
) -> Mechanism | None:
    """The weakest noise that satisfies the guarantee, between two strengths; None where none does.

    A probabilistic δ jumps where a mass comes to violate the ratio, so that it may rise with the
    noise: there every strength is tried, in steps of two hundredths from the weakest on. Then a
    logarithm is halved: 14 halvings leave a thousandth of a factor of 10⁶.
    """
    # Invariant: ``best`` is made at ``strong`` and satisfies the guarantee.
    best = make(strong)
    if not requirement.is_satisfied_by(best):
        return None
    if requirement.is_probabilistic:
        strong, weak, best = _scanned(requirement, make, (strong, weak), best)
    for _ in range(_STEPS):
        middle = _between(strong, weak)
        if not strong < middle < weak:
            break
        mechanism = make(middle)
        if requirement.is_satisfied_by(mechanism):
            strong, best = middle, mechanism
        else:
            weak = middle
    return best


def _scanned(
    requirement: Requirement,
    make: Callable[[Fraction], Mechanism],
    ends: tuple[Fraction, Fraction],
    best: Mechanism,
) -> tuple[Fraction, Fraction, Mechanism]:
    """The first strength of a scan that satisfies the guarantee, the one before, its mechanism."""
    strong, weak = ends
    before = weak
    while before > strong:
        strength = max(strong, Fraction(float(before) / _FINE).limit_denominator(_ODDS))
        mechanism = make(strength)
        if requirement.is_satisfied_by(mechanism):
            return strength, before, mechanism
        before = strength if strength < before else strong
    return strong, weak, best


def _between(low: Fraction, high: Fraction) -> Fraction:
    """About the geometric mean, as a fraction of few digits."""
    return Fraction((float(low) * float(high)) ** 0.5).limit_denominator(_ODDS)
