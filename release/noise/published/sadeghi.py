"""Noise on a count with mean zero, a hard end, and a fixed chance of the truth.

It is the optimal noise of Sadeghi, Asoodeh and Calmon 2020 (Definition 2, Theorem 3) for counts of
at least D: it ends after D steps, so that no count of D or more becomes negative. Their δ̃ is about
single outcomes; what is claimed here is the δ of events, computed from the integers. Clamped to
the answers it is private for smaller counts too, but there its mean is no longer zero.

A spec may give D (``reach``) and the chance of the truth (``keep``). What it leaves out is fitted:
the largest chance of the truth that the guarantee allows, and the D of least expected loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from release.exact.integers.noise import MOST_BITS, IntegerNoise
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_up
from release.noise.published.fitted import Requirement

_REACHES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
"""The D that are tried, where the spec gives none."""

_STEPS = 16
"""Halvings of the chance of the truth: they find it to about 10⁻⁵."""


def lower_bounds(reach: int, keep: Fraction, ratio: Fraction) -> tuple[Fraction, ...]:
    """δ_1 … δ_{D+1}, none of which a pmf with these η and D can be below ((23) and (32)).

    ``reach`` is D, ``keep`` η in (0, 1), ``ratio`` e^ε.
    """
    b, c = 2 / (1 - keep), 2 * keep / (1 - keep)
    bounds = []
    # The sum of the powers E^0 … E^(k-1), and the sums with weights 1, 2, … and D, D-1, ….
    power = Fraction(1)
    whole = rising = falling = Fraction(0)
    for k in range(1, reach + 1):
        whole += power
        rising += power * k
        falling += power * (reach + 1 - k)
        power *= ratio
        bounds.append((c * whole - power) / (b * rising))
    # The last bound, (32), weighs the same powers the other way round.
    return (*bounds, 1 / (b * falling))


def error_shares(
    reach: int, keep: Fraction, ratio: Fraction, bounds: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """α*_1 … α*_D: the share of the errors that are ±i; ``bounds`` are :func:`lower_bounds`."""
    delta = max(bounds)
    index = bounds.index(delta) + 1
    b, c = 2 / (1 - keep), 2 * keep / (1 - keep)
    alphas = [Fraction(0)] * reach
    if index > reach:
        # Type II: from the outermost error inwards, α_i = E·α_{i+1} + b·δ with α_{D+1} = 0.
        alphas[-1] = b * delta
        for i in range(reach - 2, -1, -1):
            alphas[i] = ratio * alphas[i + 1] + b * delta
    else:
        # Type I: from the true count outwards, α_i = (α_{i-1} - b·δ)/E with c in place of α_0.
        last = c
        for i in range(index):
            last = alphas[i] = (last - b * delta) / ratio
    return tuple(alphas)


def count_noise(reach: int, keep: Fraction, ratio: Fraction) -> IntegerNoise:
    """The noise in integers; errors are rounded down, and the truth takes what is left."""
    shares = error_shares(reach, keep, ratio, lower_bounds(reach, keep, ratio))
    total = 1 << MOST_BITS
    weights = [int(share * (1 - keep) / 2 * total) for share in shares]
    # Noise ends at its last weight: ends without mass are no part of it.
    while not weights[-1]:
        weights.pop()
    runs = [(1, total - 2 * sum(weights))]
    for weight in weights:
        runs.append((1, weight))
    return IntegerNoise.symmetric(runs)


def law(requirement: Requirement) -> Mechanism:
    """The noise with the parameters of the spec, and what is left of them fitted.

    Raises:
        ValueError: neighbors are more than 1 apart, or no such noise satisfies the guarantee.
    """
    if requirement.sensitivity.distances != (1,):
        raise ValueError("it is for neighbors 1 apart; lower max_rows_per_unit, or count units")
    parameters = requirement.parameters
    reaches = (int(parameters["reach"]),) if "reach" in parameters else _REACHES
    best: tuple[Fraction, Mechanism] | None = None
    for reach in reaches:
        noise = _fitted(requirement, reach, parameters.get("keep"))
        if noise is None:
            continue
        loss = noise.moment(requirement.power or 0)
        # Beyond some D the chance of the truth no longer grows, and longer ends only cost.
        if best is not None and loss >= best[0]:
            break
        best = loss, requirement.clamped(noise)
    if best is None:
        raise ValueError(_refusal(requirement))
    return best[1]


def _fitted(requirement: Requirement, reach: int, keep: Fraction | None) -> IntegerNoise | None:
    """The noise with this chance of the truth, or with the largest; None where none satisfies."""
    ratio = requirement.ratio
    if keep is not None:
        noise = count_noise(reach, keep, ratio)
        return noise if requirement.is_satisfied_by(requirement.clamped(noise)) else None
    # Above that of geometric noise δ grows with the chance of the truth.
    low, high = max((ratio - 1) / (ratio + 1), Fraction(1, 1000)), Fraction(1)
    low = low.limit_denominator(10**6)
    best = count_noise(reach, low, ratio)
    if not requirement.is_satisfied_by(requirement.clamped(best)):
        return None
    for _ in range(_STEPS):
        middle = ((low + high) / 2).limit_denominator(10**6)
        noise = count_noise(reach, middle, ratio)
        if requirement.is_satisfied_by(requirement.clamped(noise)):
            low, best = middle, noise
        else:
            high = middle
    return best


def _refusal(requirement: Requirement) -> str:
    parameters, guarantee = requirement.parameters, requirement.guarantee
    if not {"reach", "keep"} <= parameters.keys():
        return "no reach and keep satisfy it; raise delta or epsilon"
    noise = count_noise(int(parameters["reach"]), parameters["keep"], requirement.ratio)
    delta = requirement.clamped(noise).deltas(requirement.sensitivity, guarantee.epsilon)
    needed = format_up(delta.under(guarantee.definition), 6)
    return f"with this reach and keep delta is {needed}; claim that, or change them"
