"""Our certified composition beside dp_accounting's, OpenDP's and autodp's, in the same run.

Each charge is taken for the worst mechanism with its (ε, δ). dp_accounting rounds privacy losses
up to a grid and calculates in floats. Its steps here are its own default, 10⁻⁴, and half of ours,
on which it rounds no loss where the charges have a common divisor. OpenDP composes geometric noise
by its ρ, autodp by Rényi divergences; both are left out where they are not installed. Equal pure
charges have an exact answer, a binomial sum, which is calculated here in 60 decimals.

Then the noise of K counts that share (1, 10⁻⁶), whose masses dp_accounting takes as they are;
OpenDP's figure is that of its Gaussian noise with the same variance. Times are CPU seconds of this
process: the median of three, or a single run that takes over a second. About a minute.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial

from dp_accounting.pld import common, privacy_loss_distribution
from rival_accounts import (
    autodp_epsilon,
    converted,
    gaussian,
    is_installed,
    laplace_as_zcdp,
    opendp_epsilon,
    title,
)
from timing import timed

from release.budget.composed import step_of_budget
from release.exact.composition.charges import common_step, compose
from release.exact.composition.profile import pure_profile
from release.exact.composition.together import together
from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import certified_epsilon, difference_profile
from release.noise.composed.share import noise_for

DELTA = Fraction(1, 10**6)
STEP = 1e-4
MOST_AT_STEP = 500
"""So many different charges does dp_accounting compose on its default grid within seconds."""

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


def by_zcdp(charges: Charges) -> float:
    """OpenDP's figure for geometric noise with these ε; δ of a charge is 0."""
    measurements = [laplace_as_zcdp(float(1 / epsilon)) for epsilon, _ in charges]
    return float(converted(measurements, float(DELTA)).map(1)[0])


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
        "10,000 different": different(10**4),
    }


def binomial_delta(epsilon: Decimal, times: int, at: Decimal) -> Decimal:
    """δ at ``at`` of so many pure charges: Σ C(n, k)·(e^((n-k)ε) - e^(at+kε))₊ / (1 + e^ε)^n."""
    total = Decimal(0)
    for lower in range(times + 1):
        gain = (epsilon * (times - lower)).exp() - (at + epsilon * lower).exp()
        if gain > 0:
            total += math.comb(times, lower) * gain
    return total / (1 + epsilon.exp()) ** times


def binomial_epsilon(epsilon: str, times: int) -> Decimal:
    """The exact ε at δ of so many equal pure charges, to 20 places, with nothing of ours."""
    with localcontext(Context(prec=60)):
        one, most = Decimal(epsilon), Decimal(1) / 10**6
        low, high = Decimal(0), one * times
        while high - low > Decimal("1e-20"):
            middle = (low + high) / 2
            if binomial_delta(one, times, middle) <= most:
                high = middle
            else:
                low = middle
        return high


def compare_nights() -> None:
    """Print 365 nights at 0.05 by every account, beside the exact sum."""
    exact = float(binomial_epsilon("0.05", 365))
    figures = {"ours": ours([(Fraction("0.05"), Fraction(0))] * 365), "added up": 365 * 0.05}
    if is_installed("opendp"):
        figures["OpenDP, zCDP"] = opendp_epsilon(laplace_as_zcdp(20.0), 365, float(DELTA))
    if is_installed("autodp"):
        figures["autodp, pure by Rényi"] = autodp_epsilon("PureDP_Mechanism", 0.05, 365, 1e-6)
        figures["autodp, Laplace by Rényi"] = autodp_epsilon("LaplaceMechanism", 20, 365, 1e-6)
    print(f"365 nights of a count at ε = 0.05, δ = 10⁻⁶; the exact binomial sum is {exact:.9f}")
    for name, figure in figures.items():
        print(f"  {name:26} {figure:10.6f} = exact × {figure / exact:.8f}")


def noise_by_us(noise: IntegerNoise, count: int) -> float:
    """The ε that ``count`` counts with a noise satisfy together, certified."""
    difference_profile.cache_clear()
    step = step_of_budget(Fraction(1), count)
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


def beside(name: str, action: Callable[[], float], figure: float, seconds: float) -> None:
    """Print a rival's figure and time over ours."""
    other, other_seconds = timed(action)
    print(
        f"    {name:31} {other:10.6f}: ε {other / figure:.5f}×, time {other_seconds / seconds:.2f}×"
    )


def compare_charges(charges: Charges) -> None:
    """Print the comparison of charges."""
    mine, seconds = timed(lambda: ours(charges))
    kinds = Counter(charges)
    grid = common_step(kinds)
    print(f"    ours {mine:.6f} in {seconds:.3f} s, step {float(grid):.3g}")
    # dp_accounting's losses are multiples of its step: half of ours has them all.
    steps = dict.fromkeys((float(grid / 2), STEP))
    for step in steps:
        if step == STEP and len(kinds) > MOST_AT_STEP:
            continue
        beside(f"dp_accounting, step {step:.3g}", partial(theirs, charges, step), mine, seconds)
    if is_installed("opendp") and not any(delta for _, delta in charges):
        beside("OpenDP, zCDP", lambda: by_zcdp(charges), mine, seconds)


def compare_noise(count: int) -> None:
    """Print the comparison for noise of ``count`` counts."""
    noise = noise_for(count, Fraction(1), DELTA, 2)
    mine, seconds = timed(lambda: noise_by_us(noise, count))
    grid = float(step_of_budget(Fraction(1), count))
    print(f"  K = {count}: ours {mine:.6f} in {seconds:.3f} s, step {grid:.3g}")
    for step in (grid, STEP):
        by_them = partial(noise_by_them, noise, count, step)
        beside(f"dp_accounting, step {step:.3g}", by_them, mine, seconds)
    if is_installed("opendp"):
        wide = math.sqrt(noise.moment(2))
        beside(
            "OpenDP, Gaussian of its variance",
            lambda: opendp_epsilon(gaussian(wide), count, float(DELTA)),
            mine,
            seconds,
        )


def many_profiles() -> None:
    """Print how long 10,000 profiles of one grid take, as a ledger with the rule pld has them."""
    step = Fraction(1, 1000)
    one = pure_profile(Fraction("0.01"), step).distribution()
    figure, seconds = timed(lambda: float(one.repeated(10**4).epsilon_at(DELTA) or math.inf))
    print(f"10,000 equal profiles, step 0.001: ε {figure:.6f} in {seconds:.3f} s")
    parts = []
    for place in range(10**4):
        epsilon = Fraction(place + 1, 10**6)
        parts.append((pure_profile(epsilon, step).distribution(), 1))
    figure, seconds = timed(lambda: float(together(parts).epsilon_at(DELTA) or math.inf))
    print(f"10,000 different profiles, step 0.001: ε {figure:.6f} in {seconds:.3f} s")


def main() -> None:
    """Print the comparison."""
    print(", ".join(map(title, ("dp-accounting", "opendp", "autodp"))))
    compare_nights()
    print("ε of charges at δ = 10⁻⁶; ratios are the other's figure and CPU time over ours")
    for name, charges in cases().items():
        print(f"  {name}")
        compare_charges(charges)
    many_profiles()
    print("noise of K counts that share (1, 10⁻⁶)")
    for count in (10, 30, 100, 365):
        compare_noise(count)


if __name__ == "__main__":
    main()
