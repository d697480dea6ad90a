"""Figures 1 to 4 of Sadeghi, Asoodeh and Calmon 2020."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from release.exact.integer_pmf import IntegerPmf
from release.noise.published.baselines import discrete_gaussian
from release.noise.published.sadeghi import CountLaw, count_law
from release.research.laws import exact, noise_deltas
from release.research.sheet import Panel, Series, Shape, Sheet

PAPER = "Sadeghi et al. 2020"
LOOSE = (
    "The printed δ is (2D+1)·δ̃, a bound from single outcomes. The exact hockey-stick δ of the "
    "same law is smaller throughout, by 1.1 to 8.1 times in these figures."
)


def _variance(noise: IntegerPmf) -> Fraction:
    return sum((noise.mass(k) * k * k for k in range(noise.low, noise.high + 1)), Fraction(0))


@lru_cache
def _gaussian_like(variance: float) -> IntegerPmf:
    """The discrete Gaussian with this variance; its parameter σ² found by bisection."""
    low, high = 1e-3, 4 * variance + 1
    for _ in range(40):
        middle = (low + high) / 2
        found = float(_variance(discrete_gaussian(Fraction(round(middle * 10**9), 10**9))))
        low, high = (middle, high) if found < variance else (low, middle)
    return discrete_gaussian(Fraction(round(high * 10**9), 10**9))


def figure_1() -> Sheet:
    """The count law beside a discrete Gaussian of the same variance."""
    found = count_law(6, Fraction("0.8"), Fraction("2.18"))
    variance = _variance(found.noise)
    # Theirs takes the variance for the parameter σ² of Canonne et al.
    as_printed = discrete_gaussian(variance)
    matched = _gaussian_like(float(variance))
    spread = range(0, 5)
    series = tuple(
        Series.of(label, spread, [float(law.mass(k)) for k in spread])
        for label, law in (
            ("count law", found.noise),
            ("discrete Gaussian, parameter σ² = variance", as_printed),
            ("discrete Gaussian, variance equal", matched),
        )
    )
    return Sheet(
        "sadeghi-01",
        "the count law",
        f"{PAPER}, Figure 1",
        f"ε = 2.18, η = 0.8, D = 6: k = {found.index}, δ̃ = {float(found.claimed):.6f}",
        (Panel("probability of noise z ≥ 0", "z", "p(z)", series, Shape.BARS, log=True),),
        (
            f"p(±1) = {float(found.noise.mass(1)):.5f}, p(±2) = "
            f"{float(found.noise.mass(2)):.5f}; the law's δ is {float(found.delta):.5f}, where "
            f"(2D+1)·δ̃ = {float(found.bound_delta):.5f}.",
            "The text's Gaussian, p(±1) = 0.11685, is the one whose parameter σ² is the count "
            f"law's variance ({float(as_printed.mass(1)):.5f}). Its own variance is smaller, so "
            "the two are not compared at equal variance; that would be p(±1) = "
            f"{float(matched.mass(1)):.5f}.",
        ),
    )


def _curves(laws: list[CountLaw], axis: list[float], label: str) -> tuple[Series, ...]:
    return (
        Series.of(f"(2D+1)δ̃, {label}", axis, [max(1e-16, float(law.bound_delta)) for law in laws]),
        Series.of(
            f"exact, {label}", axis, [max(1e-16, float(law.delta)) for law in laws], dashed=True
        ),
    )


def figure_2() -> Sheet:
    """δ by ε for η = 0.5."""
    epsilons = [k / 20 for k in range(4, 61, 2)]
    series: list[Series] = []
    for reach in (4, 6, 8):
        laws = [count_law(reach, Fraction(1, 2), exact(e)) for e in epsilons]
        series.extend(_curves(laws, epsilons, f"D = {reach}"))
    return Sheet(
        "sadeghi-02",
        "δ by ε",
        f"{PAPER}, Figure 2",
        "η = 0.5",
        (Panel("δ by ε", "ε", "δ", tuple(series), log=True),),
        (LOOSE, "The caption's values of D are not in the text; here 4, 6 and 8."),
    )


def figure_3() -> Sheet:
    """δ by η."""
    shares = [k / 40 for k in range(8, 39)]
    panels = []
    for epsilon in ("1.1", "2.2"):
        series: list[Series] = []
        for reach in (4, 6, 8):
            laws = [count_law(reach, exact(eta), Fraction(epsilon)) for eta in shares]
            series.extend(_curves(laws, shares, f"D = {reach}"))
        panels.append(Panel(f"ε = {epsilon}", "η", "δ", tuple(series), log=True))
    one, two = (
        count_law(8, Fraction(eta), Fraction(e)) for eta, e in (("0.5", "1.1"), ("0.8", "2.2"))
    )
    return Sheet(
        "sadeghi-03",
        "δ by η",
        f"{PAPER}, Figure 3",
        "ε = 1.1 and 2.2",
        tuple(panels),
        (
            LOOSE,
            f"D = 8: (1.1, 10⁻³) at η = 0.5 is {float(one.bound_delta):.2e} by the bound and "
            f"{float(one.delta):.2e} exactly; (2.2, 5·10⁻⁷) at η = 0.8 is "
            f"{float(two.bound_delta):.2e} and {float(two.delta):.2e}.",
            "For small η the law is likelier to be off by one than right, and Theorem 3 does not "
            "look at that: (2D+1)δ̃ is then no bound of what the law keeps by that theorem. The "
            "exact δ looks both ways.",
        ),
    )


def _delta(noise: IntegerPmf, epsilon: float) -> float:
    return max(1e-16, float(noise_deltas(noise, epsilon).approximate))


def figure_4() -> Sheet:
    """Beside the discrete Gaussian of the same variance."""
    epsilons = [k / 10 for k in range(8, 31, 2)]
    laws = [count_law(6, Fraction(1, 2), exact(e)) for e in epsilons]
    variances = [_variance(law.noise) for law in laws]
    by_parameter = [discrete_gaussian(variance) for variance in variances]
    by_variance = [_gaussian_like(round(float(variance), 6)) for variance in variances]
    series = (
        *_curves(laws, epsilons, "count law"),
        *(
            Series.of(
                label,
                epsilons,
                [_delta(noise, e) for noise, e in zip(noises, epsilons, strict=True)],
                marked=True,
            )
            for label, noises in (
                ("discrete Gaussian, parameter = variance", by_parameter),
                ("discrete Gaussian, variance equal", by_variance),
            )
        ),
    )
    return Sheet(
        "sadeghi-04",
        "the count law beside the discrete Gaussian",
        f"{PAPER}, Figure 4",
        "η = 0.5, D = 6; the Gaussian matched to the count law's variance at each ε",
        (Panel("δ by ε", "ε", "δ", series, log=True),),
        (
            LOOSE,
            "The Gaussian's δ is exact in the paper already, by (45), so a bound is compared "
            "with an exact value. And the Gaussian has the variance as its parameter, so its own "
            "is smaller (Figure 1); both ways are drawn.",
        ),
    )
