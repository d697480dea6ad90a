"""A baseline's one parameter, fitted to a promise: as little noise as still keeps it.

The baselines are families with one parameter. Where the literature gives it for a promise, that is
taken; else it is searched, and every candidate is judged by the exact δ of its integers, so that
what is returned keeps the promise whatever the search did.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from release.errors import DesignError
from release.exact.channel import Channel
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
    geometric_clamped,
    geometric_modular,
    gumbel,
    modular,
    randomised_response,
    truncated,
)

_STEPS = 14
"""Halvings of a search, in logarithms: a parameter is found to about a thousandth."""

_ODDS = 2**12


@dataclass(frozen=True)
class Promise:
    """What a baseline has to keep, for ``answers`` answers."""

    answers: int
    sensitivity: Sensitivity
    guarantee: Guarantee

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
        return max(self.sensitivity.apart or (), default=1)

    def kept_by(self, made: Mechanism) -> bool:
        """Whether ``made`` satisfies the guarantee, exactly."""
        return made.satisfies(self.sensitivity, self.guarantee, self.ratio)


def fitted(name: str, promise: Promise) -> Mechanism:
    """The baseline ``name`` with as little noise as keeps the promise.

    Raises:
        DesignError: no parameter does, or ε is below 10⁻⁹.
    """
    guarantee = promise.guarantee
    # Their classical variances divide by both, as floats.
    if name in _WITH_DELTA and not (float(guarantee.epsilon) and float(guarantee.delta)):
        raise DesignError(f"{name} needs epsilon and delta above 0; found the {guarantee}")
    try:
        made = _FITS[name](promise)
        satisfied = made is not None and promise.kept_by(made)
    except ValueError as error:
        raise DesignError(f"{name} cannot be fitted: {error}") from error
    if made is None or not satisfied:
        raise DesignError(f"{name} cannot keep the {promise.guarantee}")
    return made


def _truncated(promise: Promise) -> Mechanism | None:
    share = promise.guarantee.epsilon / promise.farthest_on_line

    def make(weakness: Fraction) -> Channel:
        return truncated(geometric(weakness), promise.answers, promise.ratio)

    return _search(promise, make, share / 2, share)


def _data_independent(promise: Promise) -> Mechanism | None:
    """From the error rate of randomised response, which keeps ε, to next to none."""
    response = randomised_response(promise.answers, promise.guarantee.epsilon)
    if promise.guarantee.delta == 0:
        return Modular(response)
    most = 1 - response.mass(0)

    def make(weakness: Fraction) -> Modular:
        return Modular(data_independent(promise.answers, most / weakness))

    return _search(promise, make, Fraction(1), Fraction(10**6))


def _with_noise(
    promise: Promise, make: Callable[[Fraction], Mechanism], classical: float
) -> Mechanism | None:
    """``make`` of a parameter that grows with the noise, sought around its ``classical`` value."""
    if promise.guarantee.delta == 0 or promise.guarantee.definition is Definition.PURE:
        return None
    unit = Fraction(classical).limit_denominator(_ODDS)

    def weaker(weakness: Fraction) -> Mechanism:
        return make(unit / weakness)

    # The classical value is nearly always enough, and far more noise takes far longer to make.
    for strong in (Fraction(1), Fraction(1, 4), Fraction(1, 16)):
        found = _search(promise, weaker, strong, Fraction(64))
        if found is not None:
            return found
    return None


def _variance(promise: Promise, farthest: int) -> float:
    """σ² of the classical analysis (Dwork and Roth 2014, Theorem A.1): where a search begins."""
    epsilon, delta = float(promise.guarantee.epsilon), float(promise.guarantee.delta)
    return max(2 * math.log(1.25 / delta) * farthest**2 / epsilon**2, 0.1)


def is_closed_form(name: str) -> bool:
    """Whether a baseline is made for a guarantee without a search."""
    return name in ("geometric_clamped", "randomised_response")


def is_quick(name: str, promise: Promise) -> bool:
    """Whether a baseline is fitted in about a second: the wider its noise, the longer it takes."""
    if name.startswith("gaussian"):
        on_line = name == "gaussian_clamped"
        return _variance(promise, promise.farthest_on_line if on_line else promise.farthest) <= 2500
    if name.startswith("gumbel"):
        return 2 * promise.farthest_on_line / float(promise.guarantee.epsilon) <= 20
    return True


def _gaussian_clamped(promise: Promise) -> Mechanism | None:
    classical = _variance(promise, promise.farthest_on_line)
    return _with_noise(promise, lambda v: clamped(discrete_gaussian(v), promise.answers), classical)


def _gaussian_modular(promise: Promise) -> Mechanism | None:
    classical = _variance(promise, promise.farthest)

    def make(variance: Fraction) -> Modular:
        return Modular(modular(discrete_gaussian(variance), promise.answers))

    return _with_noise(promise, make, classical)


def _gumbel_clamped(promise: Promise) -> Mechanism | None:
    def make(scale: Fraction) -> Channel:
        # Beyond a few times the answers all are alike but the last, and nothing more is kept.
        within = min(max(float(scale), 0.05), 4.0 * promise.answers, 1000.0)
        return clamped(gumbel(within), promise.answers)

    epsilon = float(promise.guarantee.epsilon)
    return _with_noise(promise, make, 2 * promise.farthest_on_line / epsilon)


_FITS: dict[str, Callable[[Promise], Mechanism | None]] = {
    "geometric_clamped": lambda p: geometric_clamped(
        p.answers, p.guarantee.epsilon / p.farthest_on_line
    ),
    "geometric_truncated": _truncated,
    "geometric_modular": lambda p: Modular(
        geometric_modular(p.answers, p.guarantee.epsilon / p.farthest)
    ),
    "gaussian_clamped": _gaussian_clamped,
    "gaussian_modular": _gaussian_modular,
    "gumbel_clamped": _gumbel_clamped,
    "exponential": lambda p: exponential(p.answers, p.guarantee.epsilon / p.farthest_on_line),
    "randomised_response": lambda p: Modular(randomised_response(p.answers, p.guarantee.epsilon)),
    "data_independent": _data_independent,
}

_WITH_DELTA = ("gaussian_clamped", "gaussian_modular", "gumbel_clamped")

BASELINE_NAMES = tuple(_FITS)
"""All baselines that a spec may name."""


def _search(
    promise: Promise,
    make: Callable[[Fraction], Mechanism],
    strong: Fraction,
    weak: Fraction,
) -> Mechanism | None:
    """The weakest noise that keeps the promise, between two strengths; None where none does.

    Halving a logarithm: the ends are a factor of 10⁶ apart at most, 14 halvings leave a thousandth.
    """
    best = make(strong)
    if not promise.kept_by(best):
        return None
    for _ in range(_STEPS):
        middle = _between(strong, weak)
        if not strong < middle < weak:
            break
        made = make(middle)
        if promise.kept_by(made):
            strong, best = middle, made
        else:
            weak = middle
    return best


def _between(low: Fraction, high: Fraction) -> Fraction:
    """About the geometric mean, as a fraction of few digits."""
    return Fraction((float(low) * float(high)) ** 0.5).limit_denominator(_ODDS)
