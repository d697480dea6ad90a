"""Noise on the integers for answers in order: which noise, and what is published near the ends.

The noise is the best staircase (:mod:`release.noise.solvers.staircase`). Clamping alone is not the
best treatment of the ends: the lowest outcome also stands for all that fell below it. So each
outcome may be published as the answer that loses least under the uniform prior; for neighbors one
apart no mechanism at all then loses less (Ghosh, Roughgarden and Sundararajan 2009).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.domain import Codes
from release.exact.integer import IntegerMechanism
from release.exact.integer_noise import IntegerNoise, Run
from release.exact.losses import power_of
from release.exact.mechanism import BoundOf
from release.exact.numbers import exp_below_any_verifier
from release.noise.design import GAIN, Asked, Design
from release.noise.solvers.staircase import staircase

STAIRCASE = "staircase"
"""The method of this noise, by its name."""


def design_integer(question: Asked) -> Design[IntegerMechanism]:
    """The staircase with the best treatment of the ends, proved.

    Raises:
        DesignError: ε is too small for the distances of neighbors.
    """
    steps, power = question.sensitivity.apart or (), power_of(question.loss)
    try:
        found = staircase(steps, question.guarantee.epsilon, power)
    except ValueError as error:
        raise DesignError(f"no noise for the {question.guarantee}: {error}") from error
    ratio = exp_below_any_verifier(question.guarantee.epsilon)
    if found.noise.deltas(steps, ratio).approximate > question.guarantee.delta:
        raise DesignError(
            f"epsilon is too small for neighbors {max(steps)} apart; raise it or clamp tighter"
        )
    mechanism = with_ends(found.noise, question.domain.size, power)
    return Design(
        mechanism=mechanism,
        sensitivity=question.sensitivity,
        guarantee=question.guarantee,
        loss=question.loss,
        method=STAIRCASE,
        objective=mechanism.expected_loss(question.loss, question.domain),
        lower_bound=found.lower_bound if question.guarantee.delta == 0 else Fraction(0),
        bound_of=BoundOf.INTEGERS,
        noise_loss=found.loss,
        name=IntegerMechanism.family,
    )


def with_ends(noise: IntegerNoise, answers: int, power: int) -> IntegerMechanism:
    """Clamped noise, with a table at each end where that gains more than :data:`GAIN`."""
    clamped = IntegerMechanism(noise, answers)
    outcomes, codes = clamped.outcomes, clamped.listed
    best = coarser(outcomes.best(power) - codes, noise, power) + codes
    best = np.clip(best, 0, codes.size - 1)
    remapped, plain = (clamped.mean(outcomes.losses(power, each)) for each in (best, codes))
    if remapped >= (1 - GAIN) * plain:
        return clamped
    low, high = tables(best - codes)
    return IntegerMechanism(noise, answers, low, high)


def coarser(shifts: Codes, noise: IntegerNoise, power: int) -> Codes:
    """The shifts in steps of about 1/50 of the noise, which cost a ten-thousandth near the ends."""
    step = max(1, int(float(noise.moment(max(power, 1))) ** (1 / max(power, 1)) / 50))
    return np.asarray(np.round(shifts / step), dtype=np.int64) * step


def tables(shifts: Codes) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """What is added to the first outcomes and to the last, in runs, as far as it is not 0.

    ``shifts`` has a number for each outcome.
    """
    half = shifts.size // 2
    low, high = runs_of(shifts[:half]), runs_of(shifts[half:])
    return low[:-1] if low[-1:] and low[-1][1] == 0 else low, high[1:] if high[0][1] == 0 else high


def runs_of(values: Codes) -> tuple[Run, ...]:
    """The values in runs of equal ones: how many, and which."""
    if not values.size:
        return ()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    lengths = np.diff(np.append(starts, values.size))
    return tuple(zip(lengths.tolist(), values[starts].tolist(), strict=True))
