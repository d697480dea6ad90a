"""Our certified composition beside dp_accounting's on the same charges, in the same run.

Both take each charge for the worst mechanism with its (ε, δ). dp_accounting rounds privacy losses
up to a grid and calculates in floats. Its steps here are its own default, 10⁻⁴, and half of ours,
on which it rounds no loss where the charges have a common divisor.

Then the noise of K counts that share (1, 10⁻⁶), whose masses both take as they are.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from dp_accounting.pld import common, privacy_loss_distribution
from timing import median_seconds

from release.exact.composition.charges import common_step, compose
from release.exact.integer_noise import IntegerNoise
from release.noise.composed.account import certified_epsilon, difference_profile, step_for
from release.noise.composed.share import noise_for

REPETITIONS = 3
DELTA = Fraction(1, 10**6)
STEP = 1e-4
Charges = list[tuple[Fraction, Fraction]]


def ours(charges: Charges) -> float:
    """The least ε at δ that is certified."""
    epsilon = compose(charges).epsilon_at(DELTA)
    return float("inf") if epsilon is None else float(epsilon)


def theirs(charges: Charges, step: float) -> float:
    """The pessimistic figure of dp_accounting, equal charges by its own self-composition."""
    composition = privacy_loss_distribution.identity(value_discretization_interval=step)
    for pair, times in sorted(Counter(charges).items()):
        distribution = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(*map(float, pair)),
            value_discretization_interval=step,
        )
        composition = composition.compose(distribution.self_compose(times))
    return float(composition.get_epsilon_for_delta(float(DELTA)))


def different(count: int) -> Charges:
    """Charges between 0 and 0.2 without a common grid, always the same ones."""
    source = random.Random(1)  # noqa: S311 - cases of a benchmark
    return [(Fraction(source.randrange(1, 10**6), 5 * 10**6), Fraction(0)) for _ in range(count)]


def cases() -> dict[str, Charges]:
    """Charges by what they are."""
    nothing, some = Fraction(0), Fraction(1, 10**9)
    return {
        "365 × (0.05, 0)": [(Fraction("0.05"), nothing)] * 365,
        "10,000 × (0.01, 0)": [(Fraction("0.01"), nothing)] * 10**4,
        "200 × (0.1, 10⁻⁹), 100 × (0.25, 0)": [(Fraction("0.1"), some)] * 200
        + [(Fraction("0.25"), nothing)] * 100,
        "100 different": different(100),
        "500 different": different(500),
        "2,000 different": different(2000),
    }


def timed(action: Callable[[], float]) -> tuple[float, float]:
    """A figure, and the median seconds of finding it."""
    return action(), median_seconds(action, REPETITIONS)


def noise_by_us(noise: IntegerNoise, count: int) -> float:
    """The ε that ``count`` counts with a noise satisfy together, certified."""
    difference_profile.cache_clear()
    step = step_for(Fraction(1), count)
    return float(certified_epsilon([(noise, ((1,),), count)], DELTA, step) or math.inf)


def noise_by_them(noise: IntegerNoise, count: int, step: float) -> float:
    """The same by dp_accounting, from the logarithms of the masses as floats."""
    reach = noise.radius(1 - 1e-15)
    logs = {place: math.log(noise.mass(place)) for place in range(-reach, reach + 1)}
    shifted = {place + 1: mass for place, mass in logs.items()}
    one = privacy_loss_distribution.from_two_probability_mass_functions(
        logs, shifted, value_discretization_interval=step
    )
    return float(one.self_compose(count).get_epsilon_for_delta(float(DELTA)))


def compare_noise() -> None:
    """Print the comparison for noise on integers."""
    print("noise of K counts that share (1, 10⁻⁶)")
    for count in (10, 30, 100, 365):
        noise = noise_for(count, Fraction(1), DELTA, 2)
        mine, seconds = timed(lambda noise=noise, count=count: noise_by_us(noise, count))  # type: ignore[misc]
        grid = float(step_for(Fraction(1), count))
        print(f"  K = {count}: ours {mine:.6f} in {seconds:.3f} s, step {grid:.3g}")
        for step in (grid, STEP):
            figure, their_seconds = timed(
                lambda noise=noise, count=count, step=step: noise_by_them(noise, count, step)  # type: ignore[misc]
            )
            print(
                f"    dp_accounting, step {step:<8.3g} {figure:.6f}: ε {figure / mine:.5f}×, "
                f"time {their_seconds / seconds:.2f}×"
            )


def main() -> None:
    """Print the comparison."""
    print(f"ε at δ = 10⁻⁶; ratios are dp_accounting over ours (median of {REPETITIONS})")
    for name, charges in cases().items():
        mine, seconds = timed(lambda charges=charges: ours(charges))  # type: ignore[misc]
        # dp_accounting's losses are multiples of its step: half of ours has them all.
        grid = common_step(Counter(charges)) / 2
        print(f"  {name}: ours {mine:.6f} in {seconds:.3f} s, step {float(2 * grid):.3g}")
        for step in dict.fromkeys((float(grid), STEP)):
            figure, their_seconds = timed(
                lambda charges=charges, step=step: theirs(charges, step)  # type: ignore[misc]
            )
            print(
                f"    dp_accounting, step {step:<8.3g} {figure:.6f}: ε {figure / mine:.5f}×, "
                f"time {their_seconds / seconds:.2f}×"
            )
    compare_noise()


if __name__ == "__main__":
    main()
