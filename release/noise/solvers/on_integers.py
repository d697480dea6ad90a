"""Noise on the integers for answers in order: which noise, and what is published near the ends.

The noise is the best staircase (:mod:`release.exact.integers.staircase`), and where the guarantee
has a δ, that of a program, stretched where
neighbors are far apart (:mod:`release.noise.solvers.approximate`). Clamping alone is not the
best treatment of the ends: the lowest outcome also stands for all that fell below it. So each
outcome may be published as the answer that loses least under the uniform prior; for neighbors one
apart no mechanism at all then loses less (Ghosh, Roughgarden and Sundararajan 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.bounds import Multipliers, lower_bound
from release.exact.channel import answer_costs
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Run
from release.exact.integers.outcomes import Outcomes
from release.exact.integers.staircase import mixture, staircase
from release.exact.losses import Loss, power_of
from release.exact.mechanism import BoundOf
from release.exact.numbers import exp_below_any_verifier
from release.noise.design import GAIN, Asked, Design
from release.noise.solvers.approximate import bounded_noise, stretched_noise

STAIRCASE, MIXTURE, PROGRAM = "staircase", "staircase mixed with the truth", "linear program"
STRETCHED = "linear program, stretched"
"""The methods of this noise, by their names."""

GEOMETRIC = "geometric, charged in proportion"
"""The method of noise that is chosen for its charge."""


def design_integer(question: Asked) -> Design[IntegerMechanism]:
    """The staircase with the best treatment of the ends, proved.

    Raises:
        DesignError: ε is too small for the distances of neighbors.
    """
    try:
        solution = _noise(question)
    except ValueError as error:
        raise DesignError(f"no noise for the {question.guarantee}: {error}") from error
    steps = question.sensitivity.distances or ()
    ratio = exp_below_any_verifier(question.guarantee.epsilon)
    if solution.noise.deltas(steps, ratio).approximate > question.guarantee.delta:
        raise DesignError(
            f"epsilon is too small for neighbors {max(steps)} apart; raise it or clamp tighter"
        )
    mechanism = _with_best_ends(solution.noise, question)
    return Design(
        mechanism=mechanism,
        sensitivity=question.sensitivity,
        guarantee=question.guarantee,
        loss=question.loss,
        method=solution.method,
        objective=mechanism.objective(question.loss, question.domain),
        lower_bound=solution.lower_bound,
        bound_of=BoundOf.INTEGERS,
        noise_loss=solution.loss,
        multipliers=solution.multipliers,
        solver=solution.solver,
        name=IntegerMechanism.family,
    )


@dataclass(frozen=True)
class _Found:
    """Noise, how it was found, its expected loss, and a bound for all noise."""

    noise: IntegerNoise
    method: str
    loss: Fraction
    lower_bound: Fraction
    multipliers: Multipliers | None = None
    solver: str = "none"


def _noise(question: Asked) -> _Found:
    """The noise of least expected loss.

    Raises:
        ValueError: as :func:`staircase`.
    """
    steps, power = question.sensitivity.distances or (), power_of(question.loss)
    epsilon, delta = question.guarantee.epsilon, question.guarantee.delta
    if delta and power:
        program = bounded_noise(steps, question.guarantee, power)
        if program is not None:
            multipliers = program.multipliers
            return _Found(
                program.noise, PROGRAM, program.loss, program.lower_bound, multipliers, "HiGHS"
            )
    pure = staircase(steps, epsilon, power)
    far = stretched_noise(steps, question.guarantee, power) if delta and power else None
    if far is not None and far.loss < (1 - GAIN) * pure.loss:
        return _Found(far.noise, STRETCHED, far.loss, far.lower_bound, solver="HiGHS")
    if not delta:
        return _Found(pure.noise, STAIRCASE, pure.loss, pure.lower_bound)
    noise = mixture(pure.noise, delta) if power == 0 else pure.noise
    loss = noise.moment(power)
    bound = min(loss, lower_bound(steps, epsilon, delta, power))
    return _Found(noise, MIXTURE if power == 0 else STAIRCASE, loss, bound)


def in_proportion(question: Asked) -> Design[IntegerMechanism] | None:
    """Geometric noise, where it errs no more than other noise of the same charge; else None.

    It loses the same part of ε for each step between neighbors, and is charged ``question.part`` of
    what other noise is (docs/design/mathematics.md 2.18), and no δ.
    """
    guarantee = question.guarantee
    if question.part == 1 or question.is_probabilistic or not question.is_line:
        return None
    steps, power = question.sensitivity.distances or (1,), power_of(question.loss)
    at_one_charge = replace(guarantee, epsilon=guarantee.epsilon * question.part)
    try:
        noise = staircase((1,), guarantee.epsilon / max(steps), power).noise
        rival = _noise(replace(question, guarantee=at_one_charge))
    except ValueError:
        return None
    loss = noise.moment(power)
    if loss > rival.loss:
        return None
    mechanism = _with_best_ends(noise, question)
    return Design(
        mechanism=mechanism,
        sensitivity=question.sensitivity,
        guarantee=question.guarantee,
        loss=question.loss,
        method=GEOMETRIC,
        objective=mechanism.objective(question.loss, question.domain),
        lower_bound=min(loss, lower_bound(steps, guarantee.epsilon, guarantee.delta, power)),
        bound_of=BoundOf.INTEGERS,
        noise_loss=loss,
        is_named=True,
        name=IntegerMechanism.family,
    )


def _with_best_ends(noise: IntegerNoise, question: Asked) -> IntegerMechanism:
    """The noise with the treatment of the ends that loses least under the question's loss."""
    size, power, loss = question.domain.size, power_of(question.loss), question.loss
    mechanism = with_ends(noise, size, power)
    if loss.prior is None and isinstance(loss, Loss):
        return mechanism
    rivals = [IntegerMechanism(noise, size)]
    if loss.prior is not None:
        rivals.append(_remapped(noise, loss.prior, power))
    return min(mechanism, *rivals, key=lambda each: each.objective(loss, question.domain))


def _remapped(noise: IntegerNoise, prior: tuple[Fraction, ...], power: int) -> IntegerMechanism:
    """Each outcome published as the answer that loses least under ``prior``.

    With geometric noise no mechanism then loses less (Ghosh, Roughgarden and Sundararajan 2009).
    """
    size, outcomes = len(prior), Outcomes(noise, len(prior))
    codes = np.arange(size, dtype=np.int64)
    joint = np.stack([float(prior[q]) * outcomes.row(q) for q in range(size)])
    costs = answer_costs(power, size).astype(np.float64)
    best = np.asarray((costs @ joint).argmin(axis=0), dtype=np.int64)
    # Outcomes that no likely answer leads to stay as they are.
    best = np.where(joint.sum(axis=0) > 0, best, codes)
    low, high = tables(best - codes)
    return IntegerMechanism(noise, size, low, high)


def with_ends(noise: IntegerNoise, answers: int, power: int) -> IntegerMechanism:
    """Clamped noise, with a table at each end where that gains more than :data:`GAIN`."""
    clamped = IntegerMechanism(noise, answers)
    outcomes, codes = clamped.outcomes, clamped.listed
    best = coarser(outcomes.best(power) - codes, noise, power) + codes
    best = np.clip(best, 0, codes.size - 1)
    if codes.size < answers:
        # What lies between the halves is not listed, so no table may reach into the other half.
        half = codes.size // 2
        best = np.where(codes < half, np.minimum(best, half - 1), np.maximum(best, half))
    remapped, plain = (clamped.mean(outcomes.losses(power, each)) for each in (best, codes))
    if remapped >= (1 - GAIN) * plain:
        return clamped
    low, high = tables(best - codes)
    return IntegerMechanism(noise, answers, low, high)


def coarser(shifts: Codes, noise: IntegerNoise, power: int) -> Codes:
    """The shifts in steps of about 1/50 of the noise, which cost a ten-thousandth near the ends."""
    spread = float(noise.moment(max(power, 1))) ** (1 / max(power, 1))
    step = max(1, int(min(spread, shifts.size) / 50))
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
