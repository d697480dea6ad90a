"""The optimal (0, δ) noise for real-valued queries, and its exact twin on a grid.

On the real line the least E|noise|^p has a uniform density with an atom at 0 (Geng, Ding, Guo and
Kumar 2018, Theorem 3). A computer has no real line: what floating-point noise gives away is in
which doubles can come out at all (Mironov 2012). So real answers are published on a declared grid:
the true answer is rounded to a grid point before any noise, noise is a whole number of steps drawn
from integer weights (:func:`release.exact.sampling.draw_on_line`), and no float ever depends on
both. :func:`zero_delta_noise` is the optimum of the same class on the grid, exactly: as the grid
gets finer, its cost goes to Theorem 3's.

That class is of even densities that fall from 0 outwards, and the optimum is one among them only.
On a grid the linear program of :func:`release.noise.solve.design` with ε = 0 finds pmfs that do not
fall and cost up to 7 % less (docs/gallery, geng-theorem-3; tests/queries/test_real.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.pmf import DEFAULT_BITS
from release.noise.solvers.program import Floats
from research.published.integer_pmf import IntegerPmf

# Units of a step: with fewer, rounding would cost more than a thousandth.
_COARSEST = 2**10


@dataclass(frozen=True)
class ZeroDeltaDensity:
    """P_α: mass ``atom`` at 0 and density ``height`` on ±``half_width`` (their Figure 1)."""

    atom: float
    half_width: float
    height: float


def optimal_atom(delta: Fraction, power: Fraction) -> Fraction:
    """α* of Theorem 3: 0 up to δ = p/(p+1), then (p+1)·δ - p.

    Raises:
        ValueError: δ not in (0, 1), or p not above 0.
    """
    _check(delta, power)
    return max(Fraction(0), (power + 1) * delta - power)


def density(delta: Fraction, sensitivity: Fraction, power: Fraction) -> ZeroDeltaDensity:
    """The optimal P_α* for queries that neighbors move by up to ``sensitivity`` (Δ > 0)."""
    atom = optimal_atom(delta, power)
    half_width = (1 - atom) / (delta - atom) * sensitivity / 2
    return ZeroDeltaDensity(float(atom), float(half_width), float((delta - atom) / sensitivity))


def least_cost(delta: Fraction, sensitivity: Fraction, power: Fraction) -> float:
    """The least E|noise|^p of Theorem 3, in the query's units to the power p.

    For p = 1 this is Δ/4δ up to δ = 1/2 and (1-δ)·Δ beyond; for p = 2 Δ²/12δ² up to 2/3 and
    9/16·(1-δ)·Δ² beyond (their two corollaries).
    """
    _check(delta, power)
    d, p, wide = float(delta), float(power), float(sensitivity)
    if delta <= power / (power + 1):
        return math.pow(wide / (2 * d), p) / (p + 1)
    return math.pow((p + 1) * wide / (2 * p), p) * (1 - d)


def _check(delta: Fraction, power: Fraction) -> None:
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    if not power > 0:
        raise ValueError("the power must be above 0")


def zero_delta_noise(
    sensitivity: int, delta: Fraction, power: Fraction, bits: int = DEFAULT_BITS
) -> IntegerPmf:
    """The (0, δ) noise of least E|k|^p among even pmfs on the integers that fall from 0 outwards.

    Such a pmf is (0, δ)-differentially private for answers up to ``sensitivity`` (D) steps apart
    exactly if its D middle masses add up to at most δ: shifting by D uncovers those. So beside an
    atom a no mass is above h = min(a, (δ-a)/(D-1)), and the best pmf is level at h as far as there
    is mass. Its cost is convex in a (a linear program's value), with corners where the last step
    is whole, a + 2wh = 1: the best is the uniform pmf, a = δ/D, or the best whole w ≥ that one's.

    Masses are integers over 2^``bits``; rounding takes from the steps and adds to the end, so δ is
    kept exactly.

    Raises:
        ValueError: δ not in (0, 1), p not above 0, sensitivity below 1, more than 10⁷ steps, or a δ
            that leaves the steps too few units of 2^-``bits``.
    """
    _check(delta, power)
    if sensitivity < 1:
        raise ValueError("the sensitivity must be 1 step or more")
    # The continuous optimum takes the larger of these; the one on the grid is within a step of it.
    reach = sensitivity * max(1 / delta, (power + 1) / power) / 2
    if reach > 10**7:
        raise ValueError("the noise would take more than 10^7 steps; use a coarser grid")
    total = 2**bits
    budget = int(delta * total)
    if sensitivity == 1:
        return _level(budget, budget, total)
    atoms = [delta / sensitivity]
    whole = int((sensitivity / delta - 1) / 2) + 1
    costs = np.cumsum(np.arange(float(int(reach) + 4)) ** float(power))
    low, high = whole, max(whole, int(reach) + 2)
    # The cost is convex in w, so its least value lies where it stops falling.
    while low < high:
        middle = (low + high) // 2
        left, right = (_cost(_atom(w, sensitivity, delta), w, costs) for w in (middle, middle + 1))
        low, high = (low, middle) if left <= right else (middle + 1, high)
    atoms.append(_atom(low, sensitivity, delta))
    best = min(atoms, key=lambda a: _cost_of(a, (delta - a) / (sensitivity - 1), costs))
    mode = int(best * total)
    return _level(mode, min(mode, (budget - mode) // (sensitivity - 1)), total)


def _atom(steps: int, sensitivity: int, delta: Fraction) -> Fraction:
    """The a with a + 2·``steps``·(δ-a)/(D-1) = 1."""
    share = Fraction(2 * steps, sensitivity - 1)
    return (share * delta - 1) / (share - 1)


def _cost(atom: Fraction, steps: int, costs: Floats) -> float:
    return float((1 - atom) / steps) * float(costs[steps])


def _cost_of(atom: Fraction, height: Fraction, costs: Floats) -> float:
    """2·Σ h·k^p over the whole steps, and what is left on the next."""
    steps = int((1 - atom) / 2 / height)
    rest = float((1 - atom) / 2 - steps * height)
    return 2 * (float(height) * float(costs[steps]) + rest * float(costs[steps + 1] - costs[steps]))


def _level(mode: int, height: int, total: int) -> IntegerPmf:
    """``mode`` at 0, ``height`` each side while there is mass, the rest next to that."""
    # Both sides are alike, so an odd unit is dropped from the mode to the two ends.
    mode -= (total - mode) % 2
    height = min(height, mode)
    if height < _COARSEST:
        raise ValueError("delta is too near 0 or 1 for this many steps and bits; use more bits")
    steps, rest = divmod((total - mode) // 2, height)
    half = [Fraction(height, total)] * steps + ([Fraction(rest, total)] if rest else [])
    return IntegerPmf(-len(half), (*half[::-1], Fraction(mode, total), *half))
