"""The least variance of noise for K queries under a Rényi moment, by a convex program.

*Question.* K counts, each moved by at most 1, get independent noise f on the integers. Their losses
are composed by a Rényi moment of order α: K·D_α(f ‖ f(· + 1)) ≤ ρ. How small can the variance be?

*Method.* With M = e^((α-1)·ρ/K) the condition is Σ f(η)^α·f(η+1)^(1-α) ≤ M, which is convex in f.
For every u > 0 the tangent plane gives x^α·y^(1-α) ≥ α·u^(α-1)·x - (α-1)·u^α·y. With such planes in
place of the powers the program is linear, and its optimum is at most the least variance: a bound.
Mass outside a window is one variable at the least cost outside, and no plane speaks of it, so the
bound is one of all noise on the integers. Planes at discrete Gaussian noise of many widths come
first, then those at the program's own optima.

For α = 2 there is a closed form, Var ≥ 1/(M - 1) (Hammersley and Robbins 1950, Chapman and Robbins
1951), since the two means are 1 apart and M - 1 is the χ² distance.

*Finding.* For α = 2 and ρ/K = ¼ the bound is 3.523, the closed form 3.521 and discrete Gaussian
noise 4. For α = 4 and 8 the Gaussian is 1.39 and 1.91 times the bound. How much of that is due to a
low bound is not known.
"""

from __future__ import annotations

import math

import numpy as np

from release.noise.solvers.program import Builder, Floats, solve

CASES = ((2.0, 1.0), (2.0, 0.25), (4.0, 1.0), (4.0, 0.25), (8.0, 0.25))
"""Orders α, and ρ/K."""

_ROUNDS = 40
_WIDTHS = np.geomspace(0.6, 1.6, 21)
_FLOOR = 1e-9
_CLOSE = 1e-6
_LARGEST = 1e6


def least_variance(order: float, share: float) -> float:
    """A lower bound of the variance of all noise with this moment, a solver's float."""
    moment, scale = math.exp((order - 1) * share), order / (2 * share)
    reach = math.ceil(5 * math.sqrt(scale)) + 2
    noise = np.arange(-reach, reach + 1).astype(np.float64)
    cuts = [np.exp((2 * noise[:-1] + 1) / (2 * scale * width)) for width in _WIDTHS]
    bound = 0.0
    for _ in range(_ROUNDS):
        variance, masses = _solved(noise, cuts, order, moment)
        if bound and variance <= bound * (1 + _CLOSE):
            break
        bound = max(bound, variance)
        safe = np.maximum(masses, _FLOOR)
        cuts.append(safe[:-1] / safe[1:])
    return bound


def _solved(noise: Floats, cuts: list[Floats], order: float, moment: float) -> tuple[float, Floats]:
    """The least variance and its masses, with tangent planes in place of the powers."""
    builder, pairs = Builder(), noise.size - 1
    masses = builder.add_columns(noise**2)
    outside = builder.add_columns(np.array([(noise[-1] + 1) ** 2]))
    terms = builder.add_columns(np.zeros(pairs))
    everywhere = np.append(masses, outside)
    builder.add_row(everywhere, np.ones(everywhere.size), 1.0, equal=True)
    builder.add_row(terms, np.ones(pairs), moment)
    columns = np.stack([masses[:-1], masses[1:], terms], axis=1)
    for cut in cuts:
        # Any positive numbers give a valid plane; much larger ones a solver would not see.
        ratios = np.minimum(cut, _LARGEST ** (1 / order))
        ahead, back = order * ratios ** (order - 1), (order - 1) * ratios**order
        largest = np.maximum(1.0, np.maximum(ahead, back))
        values = np.stack([ahead, -back, -np.ones(pairs)], axis=1) / largest[:, None]
        builder.add_rows(columns, values, np.zeros(pairs))
    solution = solve(builder.build(), arrays=True)
    if solution is None or not solution.finished:
        raise ArithmeticError("the linear program was not solved")
    return solution.objective, np.maximum(solution.values[masses], 0)


def gaussian_variance(order: float, share: float) -> float:
    """The variance of discrete Gaussian noise with this moment, by bisection of its scale."""
    low, high = 1e-3, 1e6
    for _ in range(80):
        scale = math.sqrt(low * high)
        low, high = (low, scale) if _moment(scale, order) <= (order - 1) * share else (scale, high)
    noise, masses = _gaussian(high)
    return float((noise**2) @ masses)


def _gaussian(scale: float) -> tuple[Floats, Floats]:
    reach = math.ceil(12 * math.sqrt(scale)) + 12
    noise = np.arange(-reach, reach + 1).astype(np.float64)
    masses = np.exp(-(noise**2) / (2 * scale))
    return noise, masses / masses.sum()


def _moment(scale: float, order: float) -> float:
    """(α-1)·D_α of noise with weights e^(-η²/(2·scale)) and its translate by 1."""
    noise, _ = _gaussian(scale)
    whole = np.exp(-(noise**2) / (2 * scale)).sum()
    moved = np.exp(-(order * noise**2 + (1 - order) * (noise + 1) ** 2) / (2 * scale)).sum()
    return math.log(moved / whole)


def main() -> None:
    """Print the bound beside the discrete Gaussian."""
    print("variance: bound, 1/(e^(ρ/K) - 1), discrete Gaussian, and Gaussian over bound")
    for order, share in CASES:
        bound, gaussian = least_variance(order, share), gaussian_variance(order, share)
        print(
            f"α = {order:g}, ρ/K = {share:g}: {bound:.5f} {1 / math.expm1(share):.5f} "
            f"{gaussian:.5f} {gaussian / bound:.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
