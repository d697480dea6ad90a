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

from release.exact.pmf import DEFAULT_BITS
from release.noise.published.geng import check_zero_delta, zero_delta_levels
from research.published.integer_pmf import IntegerPmf


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
    check_zero_delta(delta, power)
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
    check_zero_delta(delta, power)
    d, p, wide = float(delta), float(power), float(sensitivity)
    if delta <= power / (power + 1):
        return math.pow(wide / (2 * d), p) / (p + 1)
    return math.pow((p + 1) * wide / (2 * p), p) * (1 - d)


def zero_delta_noise(
    sensitivity: int, delta: Fraction, power: Fraction, bits: int = DEFAULT_BITS
) -> IntegerPmf:
    """The (0, δ) noise of least E|k|^p among even pmfs on the integers that fall from 0 outwards.

    Masses are integers over 2^``bits``: those of :func:`zero_delta_levels`, as a pmf.

    Raises:
        ValueError: δ not in (0, 1), p not above 0, sensitivity below 1, more than 10⁷ steps, or a δ
            that leaves the steps too few units of 2^-``bits``.
    """
    levels = zero_delta_levels(sensitivity, delta, power, bits)
    half = [Fraction(levels.height, 2**bits)] * levels.steps
    half += [Fraction(levels.rest, 2**bits)] if levels.rest else []
    return IntegerPmf(-len(half), (*half[::-1], Fraction(levels.mode, 2**bits), *half))
