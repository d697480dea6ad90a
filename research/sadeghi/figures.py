"""Figures 1 to 4 of Sadeghi, Asoodeh and Calmon 2020."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import SupportsFloat

from research.programs import exact, noise_deltas
from research.published.clamping import discrete_gaussian
from research.published.integer_pmf import IntegerPmf
from research.published.sadeghi import CountLaw, count_law
from research.sadeghi.least_delta import least_delta
from research.sheet import Panel, Series, Shape, Sheet, Stroke

PAPER = "Sadeghi et al. 2020"
LOOSE = (
    "The printed δ is (2D+1)·δ̃, a bound from single outcomes. The exact hockey-stick δ of the "
    "same pmf is smaller throughout, by 1.1 to 8.1 times in these figures."
)


def _variance(noise: IntegerPmf) -> Fraction:
    return sum((noise.mass(k) * k * k for k in range(noise.low, noise.high + 1)), Fraction(0))


@lru_cache
def _gaussian_like(variance: float) -> IntegerPmf:
    """The discrete Gaussian with this variance; its parameter σ² found by bisection."""
    low, high = 1e-3, 4 * variance + 1
    # The variance grows with the parameter.
    for _ in range(40):
        middle = (low + high) / 2
        narrow = float(_variance(discrete_gaussian(exact(middle, 9)))) < variance
        low, high = (middle, high) if narrow else (low, middle)
    return discrete_gaussian(exact(high, 9))


def figure_1() -> Sheet:
    """The count distribution beside a discrete Gaussian of the same variance."""
    counts = count_law(6, Fraction("0.8"), Fraction("2.18"))
    variance = _variance(counts.noise)
    # Theirs takes the variance for the parameter σ² of Canonne et al.
    as_printed = discrete_gaussian(variance)
    matched = _gaussian_like(float(variance))
    spread = range(0, 5)
    series = (
        Series.of_function("count noise", spread, counts.noise.mass),
        Series.of_function("Gaussian, parameter = variance", spread, as_printed.mass),
        Series.of_function("Gaussian, variance equal", spread, matched.mass),
    )
    return Sheet(
        "sadeghi-01",
        "the count noise",
        f"{PAPER}, Figure 1",
        f"ε = 2.18, η = 0.8, D = 6: k = {counts.index}, δ̃ = {float(counts.claimed):.6f}",
        (Panel("probability of noise z ≥ 0", "z", "p(z)", series, Shape.BARS, log=True),),
        f"The count noise has {series[0].at(1):.5f} at ±1 and {series[0].at(2):.5f} at ±2; the "
        f"Gaussian drawn has {series[1].at(1):.5f} at ±1, one of equal variance "
        f"{series[2].at(1):.5f}.",
        (
            f"p(±1) = {float(counts.noise.mass(1)):.5f}, p(±2) = "
            f"{float(counts.noise.mass(2)):.5f}; its δ is {float(counts.delta):.5f}, where "
            f"(2D+1)·δ̃ = {float(counts.bound_delta):.5f}.",
            "The text's Gaussian, p(±1) = 0.11685, is the one whose parameter σ² is the count "
            f"noise's variance ({float(as_printed.mass(1)):.5f}). Its own variance is smaller, so "
            "the two are not compared at equal variance; that would be p(±1) = "
            f"{float(matched.mass(1)):.5f}.",
        ),
    )


def _shown(delta: SupportsFloat) -> float:
    """A δ for a logarithmic axis, where 0 has no place."""
    return max(1e-16, float(delta))


def _curves(
    label: str, axis: list[float], counts: Callable[[float], CountLaw]
) -> tuple[Series, Series]:
    """The bound and the exact δ of the count distributions along an axis."""
    bounds = Series.of_function(
        f"printed (2D+1)δ̃, {label}",
        axis,
        lambda x: _shown(counts(x).bound_delta),
        Stroke.DOTTED,
        pair=label,
    )
    deltas = Series.of_function(
        f"exact, {label}", axis, lambda x: _shown(counts(x).delta), pair=label
    )
    return bounds, deltas


@lru_cache(maxsize=512)
def _counts(reach: int, share: float, epsilon: float) -> CountLaw:
    return count_law(reach, exact(share), exact(epsilon))


def figure_2() -> Sheet:
    """δ by ε for η = 0.5."""
    epsilons = [k / 20 for k in range(4, 61)]
    series: list[Series] = []
    for reach in (4, 6, 8):
        series.extend(_curves(f"D = {reach}", epsilons, partial(_counts, reach, 0.5)))
    return Sheet(
        "sadeghi-02",
        "δ by ε",
        f"{PAPER}, Figure 2",
        "η = 0.5",
        (Panel("δ by ε", "ε", "δ", tuple(series), log=True),),
        f"(2D+1)δ̃ is a loose guarantee: at ε = 1.5, D = 8 it is {series[4].at(1.5):.2e}, exactly "
        f"δ is {series[5].at(1.5):.2e}.",
        (LOOSE, "The caption's values of D are not in the text; here 4, 6 and 8."),
    )


def figure_3() -> Sheet:
    """δ by η."""
    shares = [k / 40 for k in range(8, 39)]
    panels = []
    for epsilon in (1.1, 2.2):
        series: list[Series] = []
        for reach in (4, 6, 8):
            counts = partial(_counts, reach, epsilon=epsilon)
            series.extend(_curves(f"D = {reach}", shares, counts))
        panels.append(Panel(f"ε = {epsilon}", "η", "δ", tuple(series), log=True))
    even, likely = _counts(8, 0.5, 1.1), _counts(8, 0.8, 2.2)
    return Sheet(
        "sadeghi-03",
        "δ by η",
        f"{PAPER}, Figure 3",
        "ε = 1.1 and 2.2",
        tuple(panels),
        "The two guarantees that the text names hold, and half of their δ would do: D = 8, ε = "
        f"1.1, η = 0.5 has {float(even.bound_delta):.2e} by the bound and {float(even.delta):.2e} "
        "exactly.",
        (
            LOOSE,
            f"D = 8: (1.1, 10⁻³) at η = 0.5 is {float(even.bound_delta):.2e} by the bound and "
            f"{float(even.delta):.2e} exactly; (2.2, 5·10⁻⁷) at η = 0.8 is "
            f"{float(likely.bound_delta):.2e} and {float(likely.delta):.2e}.",
            "For small η the noise is likelier to be off by one than right, and Theorem 3 does not "
            "look at that: (2D+1)δ̃ is then no bound of what the law keeps by that theorem. The "
            "exact δ looks both ways.",
        ),
    )


def figure_4() -> Sheet:
    """Beside the discrete Gaussian of the same variance, and the best noise of that variance."""
    epsilons = [k / 20 for k in range(16, 61)]
    counts = partial(_counts, 6, 0.5)

    def variance(epsilon: float) -> float:
        return round(float(_variance(counts(epsilon).noise)), 6)

    def by_parameter(epsilon: float) -> float:
        gaussian = discrete_gaussian(_variance(counts(epsilon).noise))
        return _shown(noise_deltas(gaussian, epsilon).approximate)

    def by_variance(epsilon: float) -> float:
        gaussian = _gaussian_like(variance(epsilon))
        return _shown(noise_deltas(gaussian, epsilon).approximate)

    def best(epsilon: float) -> float:
        # Below the solver's tolerance it counts as 0, which the axis cannot show.
        return max(1e-9, least_delta(variance(epsilon), epsilon))

    series = (
        *_curves("count noise", epsilons, counts),
        Series.of_function(
            "Gaussian, parameter = variance",
            epsilons,
            by_parameter,
            Stroke.DOTTED,
            pair="Gaussian",
        ),
        Series.of_function("Gaussian, variance equal", epsilons, by_variance, pair="Gaussian"),
        Series.of_function("best noise of that variance", epsilons, best, Stroke.DASHED),
    )
    at_two = [line.at(2.0) for line in series]
    pure = next(e for e, delta in zip(epsilons, series[4].y, strict=True) if delta <= 1e-9)
    return Sheet(
        "sadeghi-04",
        "the count noise beside the discrete Gaussian",
        f"{PAPER}, Figure 4",
        "η = 0.5, D = 6; all matched to the count noise's variance at each ε",
        (Panel("δ by ε", "ε", "δ", series, log=True),),
        f"At ε = 2 and equal variance the count noise has δ = {at_two[1]:.2e}, the Gaussian "
        f"{at_two[3]:.2e}; from ε = {pure:.2f} on the best noise of that variance needs no δ.",
        (
            LOOSE,
            "The Gaussian's δ is exact in the paper already, by (45), so a bound is compared "
            "with an exact value. And the Gaussian has the variance as its parameter, so its own "
            "is smaller (Figure 1); both ways are drawn. They nearly coincide here: from a "
            "variance of ½ on the two differ by less than a thousandth.",
            "The best noise is that of a linear program: the least δ of any even noise with that "
            "variance. It is the noise that a release takes for an approximate guarantee and the "
            "squared loss, far from both ends. Drawn at 10⁻⁹ where it is 0: there geometric noise "
            "of that variance is pure.",
        ),
    )
