"""Noise for K counts that share (1, 10⁻⁶): ours beside other libraries and other rules.

Each row is the variance of one count. "OpenDP" is what its own search finds: Gaussian noise as
zCDP, or geometric noise whose ε add up, the lesser. "autodp" is the least Gaussian noise by its
Rényi accountant, "dp_accounting" the least discrete Gaussian noise that its accountant allows on
its default grid, "analytic" the exactly accounted Gaussian. A library that is not installed has no
figure. Ours is the exact variance of the published integers, and the ε is certified. Sizes are
those of the noise in a mechanism file, times are seconds of one run. Takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from fractions import Fraction

from dp_accounting.pld import privacy_loss_distribution
from rival_accounts import (
    autodp_variance,
    gaussian,
    is_installed,
    opendp_scale,
    opendp_variance,
    title,
)
from zcdp import geometric_variance, rho_within

from release.budget.composed import step_of_budget
from release.exact.integers.noise import IntegerNoise
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.noise.composed.account import certified_epsilon
from release.noise.composed.families import family_of
from release.noise.composed.groups import ShareRequest
from release.noise.composed.laws import exponential_power
from release.noise.composed.search import Part, gaussian_deviation, searched
from release.noise.composed.share import SharedBudget, grid_step, noise_for, share_out

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
COUNTS = (1, 3, 5, 8, 10, 20, 30, 100, 365)
ALLOTMENTS = (((100, 1), (1, 9)), ((10, 1), (1, 99)), ((27, 4), (9, 4), (3, 4), (1, 4)))
"""Pairs of a weight and how many queries have it."""

LAW_COUNTS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 365)
Allotment = Sequence[tuple[int, int]]


def basic(count: int) -> float:
    """The variance of geometric noise with an equal part of ε."""
    return geometric_variance(1 / count)


def zcdp(count: int) -> float:
    """The variance of Gaussian noise with an equal part of ρ."""
    return count / (2 * rho_within(1.0, 1e-6))


def accounted(count: int) -> float:
    """The least variance of discrete Gaussian noise that dp_accounting allows."""

    def is_within(precision: float) -> bool:
        sigma = 1 / math.sqrt(precision)
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(sigma)
        return bool(one.self_compose(count).get_epsilon_for_delta(1e-6) <= 1)

    low, high = 0.9 / zcdp(count), 1.5 / zcdp(count)
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return 1 / low


def analytic(count: int) -> float:
    """The variance of continuous Gaussian noise, exactly accounted."""
    return count * gaussian_deviation(1.0, math.log(1e-6)) ** 2


def size(noise: IntegerNoise) -> int:
    """Bytes of the runs of the noise as they stand in a file."""
    return len(json.dumps([[str(length), str(weight)] for length, weight in noise.runs]))


def rivals(count: int) -> dict[str, float]:
    """The variances of others by what they are."""
    variances = {"basic": basic(count), "analytic": analytic(count)}
    if is_installed("opendp"):
        variances["OpenDP"] = opendp_variance(count, 1.0, 1e-6)
    if is_installed("autodp"):
        variances["autodp"] = autodp_variance(count, 1.0, 1e-6)
    variances["dp_accounting"] = accounted(count)
    return variances


def equal_queries() -> None:
    """K counts with squared loss."""
    for count in COUNTS:
        start = time.perf_counter()
        noise = noise_for(count, EPSILON, DELTA, 2)
        seconds = time.perf_counter() - start
        step = step_of_budget(EPSILON, count)
        certified = certified_epsilon([(noise, ((1,),), count)], DELTA, step)
        ours = float(noise.moment(2))
        print(
            f"  K = {count}: ours {ours:.2f}, certified ε {float(certified or 0):.6f}; "
            f"{len(noise.runs)} runs, {size(noise) / 1000:.1f} kB, {seconds:.2f} s"
        )
        figures = []
        for name, variance in rivals(count).items():
            figures.append(f"{name} {variance:.1f} ({variance / ours:.4f}×)")
        print("    " + ", ".join(figures))


def error_rates() -> None:
    """K counts that are exact as often as can be."""
    print("chance of an exact count: basic, ours")
    for count in (10, 30, 100):
        noise = noise_for(count, EPSILON, DELTA, 0)
        ratio = math.exp(-1 / count)
        print(f"  {count:4d}: {(1 - ratio) / (1 + ratio):.5f} {float(noise.mass(0)):.5f}")


def requests_of(allotment: Allotment) -> list[ShareRequest]:
    """Counts with these weights."""
    requests = []
    for weight, count in allotment:
        for place in range(count):
            requests.append(ShareRequest(f"{weight}-{place}", weight=Fraction(weight)))
    return requests


def weighted_by_opendp(allotment: Allotment) -> float:
    """Σ weight·variance of Gaussian noise whose variances go as w^-1/2, scaled by its search."""

    def measurements(scale: float) -> list[object]:
        found: list[object] = []
        for weight, count in allotment:
            found.extend([gaussian(scale * weight**-0.25)] * count)
        return found

    scale = opendp_scale(measurements, 1.0, 1e-6)
    return scale**2 * sum(math.sqrt(weight) * count for weight, count in allotment)


def weighted_queries() -> None:
    """Σ weight·variance where weights differ."""
    print("Σ weight·variance: Gaussian by the rule w^-1/2 (zCDP), equal noise of ours, ours")
    for allotment in ALLOTMENTS:
        requests = requests_of(allotment)
        start = time.perf_counter()
        found = share_out(requests, EPSILON, DELTA)
        seconds = time.perf_counter() - start
        ours = 0.0
        for request, one in zip(requests, found, strict=True):
            ours += float(request.weight or 0) * one.expected_loss
        # Variances ∝ w^-1/2 and Σ 1/(2·variance) = ρ give (Σ √w)²/2ρ.
        roots = sum(math.sqrt(weight) * count for weight, count in allotment)
        ruled = roots**2 / (2 * rho_within(1.0, 1e-6))
        alike = float(noise_for(len(requests), EPSILON, DELTA, 2).moment(2))
        equal = alike * sum(weight * count for weight, count in allotment)
        print(
            f"  {allotment}: {ruled:.0f} ({ruled / ours:.3f}×) {equal:.0f} ({equal / ours:.3f}×) "
            f"{ours:.0f}; {seconds:.2f} s, step {float(grid_step(requests, EPSILON)):.2g}"
        )
        if is_installed("opendp"):
            other = weighted_by_opendp(allotment)
            print(f"    OpenDP, its own search: {other:.0f} ({other / ours:.3f}×)")


def gaussian_composed(count: int, power: int) -> float:
    """The expected loss of the least discrete Gaussian noise that our account allows."""
    step = step_of_budget(EPSILON, count)
    low = gaussian_deviation(1.0, math.log(1e-6)) * math.sqrt(count)
    high = 1.05 * low
    low *= 0.95
    for _ in range(14):
        middle = math.sqrt(low * high)
        # p = 2: exp(-(η/t)²) has the variance t²/2.
        noise = exponential_power(Fraction(f"{middle * math.sqrt(2):.9e}"), Fraction(2))
        certified = certified_epsilon([(noise, ((1,),), count)], DELTA, step)
        low, high = (low, middle) if certified and certified <= EPSILON else (middle, high)
    return float(
        exponential_power(Fraction(f"{high * math.sqrt(2):.9e}"), Fraction(2)).moment(power)
    )


def best_power(count: int, loss_power: int) -> float:
    """The p of the noise that a search finds."""
    request = ShareRequest("", loss_power=loss_power, weight=Fraction(1))
    cap = SharedBudget(EPSILON, DELTA, step_of_budget(EPSILON, count), None).cap()
    return searched([Part(family_of(request), count, 1.0, None)], cap)[0].power


def laws() -> None:
    """From how many queries to how many each noise distribution pays."""
    for loss_power, name in ((2, "squared"), (1, "absolute")):
        print(f"expected {name} loss of K counts: p and ours; over it geometric noise added up,")
        print("  geometric noise composed, Gaussian noise composed")
        for count in LAW_COUNTS:
            ours = float(noise_for(count, EPSILON, DELTA, loss_power).moment(loss_power))
            added = geometric_noise(least_ratio(EPSILON / count, 1)).moment(loss_power)
            composed = noise_for(count, EPSILON, DELTA, 0).moment(loss_power)
            wide = gaussian_composed(count, loss_power)
            print(
                f"  {count:5d}: p {best_power(count, loss_power):.2f}, {ours:9.2f}; "
                f"{float(added) / ours:7.3f}× {float(composed) / ours:7.4f}× {wide / ours:7.4f}×"
            )


def small_budgets() -> None:
    """Wide noise: ε is small, or the queries are many."""
    print("variance at K, ε: zCDP as OpenDP composes, ours, ratio")
    for count, epsilon in ((10, "0.1"), (100, "0.1"), (100, "0.01"), (10_000, "1")):
        start = time.perf_counter()
        noise = noise_for(count, Fraction(epsilon), DELTA, 2)
        seconds = time.perf_counter() - start
        rival = count / (2 * rho_within(float(epsilon), 1e-6))
        ours = float(noise.moment(2))
        print(
            f"  {count:6d} {epsilon:>5}: {rival:12.0f} {ours:12.0f} {rival / ours:.3f}×; "
            f"{len(noise.runs)} runs, {size(noise) / 1000:.0f} kB, {seconds:.1f} s"
        )


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    print(", ".join(map(title, ("dp-accounting", "opendp", "autodp"))))
    print("variance of one of K counts; in brackets over ours")
    equal_queries()
    error_rates()
    weighted_queries()
    laws()
    small_budgets()


if __name__ == "__main__":
    main()
