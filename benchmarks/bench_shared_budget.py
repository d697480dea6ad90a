"""Noise for K counts that share (1, 10⁻⁶): ours beside basic composition, zCDP and dp_accounting.

Each row is the variance of one count. "zCDP" is Gaussian noise with the tight conversion, as OpenDP
composes; "dp_accounting" is the least discrete Gaussian noise that its accountant allows, on its
default grid; "analytic" the exactly accounted Gaussian. Ours is the exact variance of the published
integers, and the ε is certified. Sizes are those of the noise in a mechanism file. Takes about two
minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from fractions import Fraction

from dp_accounting.pld import privacy_loss_distribution
from zcdp import rho_within

from release.exact.integer_noise import IntegerNoise
from release.noise.composed.account import certified_epsilon, step_for
from release.noise.composed.groups import ShareRequest
from release.noise.composed.search import gaussian_deviation
from release.noise.composed.share import grid_step, noise_for, share_out

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
COUNTS = (1, 3, 5, 8, 10, 20, 30, 100, 365)
ALLOTMENTS = (((100, 1), (1, 9)), ((10, 1), (1, 99)), ((27, 4), (9, 4), (3, 4), (1, 4)))
"""Pairs of a weight and how many queries have it."""


def geometric_variance(epsilon: float) -> float:
    """2r/(1 - r)² with r = e^-ε."""
    ratio = math.exp(-epsilon)
    return 2 * ratio / (1 - ratio) ** 2


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


def equal_queries() -> None:
    """K counts with squared loss."""
    print("K: basic, zCDP, analytic, dp_accounting | ours, its best rival over ours, certified ε")
    for count in COUNTS:
        start = time.perf_counter()
        noise = noise_for(count, EPSILON, DELTA, 2)
        seconds = time.perf_counter() - start
        step = step_for(EPSILON, count)
        certified = certified_epsilon([(noise, ((1,),), count)], DELTA, step)
        rivals = basic(count), zcdp(count), analytic(count), accounted(count)
        ours = float(noise.moment(2))
        print(
            f"  {count:4d}: {rivals[0]:10.1f} {rivals[1]:9.1f} {rivals[2]:9.1f} {rivals[3]:9.1f} | "
            f"{ours:9.2f} {min(rivals) / ours:7.4f}× {float(certified or 0):.6f}; "
            f"{len(noise.runs)} runs, {size(noise) / 1000:.1f} kB, {seconds:.2f} s"
        )


def error_rates() -> None:
    """K counts that are exact as often as can be."""
    print("chance of an exact count: basic, ours")
    for count in (10, 30, 100):
        noise = noise_for(count, EPSILON, DELTA, 0)
        ratio = math.exp(-1 / count)
        print(f"  {count:4d}: {(1 - ratio) / (1 + ratio):.5f} {float(noise.mass(0)):.5f}")


def weighted_queries() -> None:
    """Σ weight·variance where weights differ."""
    print("Σ weight·variance: Gaussian by the rule (zCDP), equal noise, ours")
    for allotment in ALLOTMENTS:
        requests = []
        for weight, count in allotment:
            for place in range(count):
                requests.append(ShareRequest(f"{weight}-{place}", weight=Fraction(weight)))
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
            f"  {allotment}: {ruled:.0f} {equal:.0f} {ours:.0f} "
            f"({min(ruled, equal) / ours:.3f}×, {seconds:.2f} s, "
            f"step {float(grid_step(requests, EPSILON)):.2g})"
        )


def small_budgets() -> None:
    """Wide noise: ε is small, or the queries are many."""
    print("K, ε: zCDP, ours, ratio")
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
    equal_queries()
    error_rates()
    weighted_queries()
    small_budgets()


if __name__ == "__main__":
    main()
