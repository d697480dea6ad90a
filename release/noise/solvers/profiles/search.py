"""The error rate under probabilistic guarantees on a ring, searched and proved in integers.

The levels of 2.7 in docs/design/mathematics.md, elements in a line (:mod:`line`), a bound by prices
of the budgets (:mod:`prices`), and all beginnings that it leaves (:mod:`labels`). Masses are
rounded down, so what is proved holds for the true ones. As in :mod:`levels`, levels from a depth on
count as no mass, and the depth grows until the bound is that of a pmf.

No solver is asked: the bound is a proof, by the theorem of 2.35 of the same document.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.pmf import Pmf
from release.noise.solvers.levels import masses_of_levels, pmf_of_levels
from release.noise.solvers.problem import Problem
from release.noise.solvers.profiles.labels import Profile, best_profile
from release.noise.solvers.profiles.line import SCALE, Line, line_of
from release.noise.solvers.profiles.prices import UNIT, around, best_price
from release.noise.solvers.program import Work

MOST_STATES = 2**25
"""Entries of all tables together: a quarter of a gigabyte."""

_SMALLEST = Fraction(1, 2048)
"""The share above the bound in which a better profile is looked for first."""

_NOTHING = Fraction(1, 10**8)
"""A difference of f(0) that counts as none; rounding masses down may cost as much."""

_STATES_A_UNIT = 4
"""Entries of a table that are work of one unit."""


@dataclass(frozen=True)
class Proof:
    """A pmf with the exact upper bound of f(0) over all pmfs with the guarantee.

    ``finished`` is false where the search ended before both met.
    """

    pmf: Pmf
    highest_mode: Fraction
    finished: bool = True


def search_profiles(problem: Problem, start: Pmf, work: Work, gap: Fraction) -> Proof | None:
    """The best pmf, ``start`` or a better one, with a proved bound; None where there is no bound.

    The problem is one of the error rate, centred at zero, with a probabilistic guarantee, δ > 0.
    """
    delta = problem.guarantee.delta
    best, highest = start, Fraction(1)
    masses = masses_of_levels(problem.guarantee.epsilon, 512)
    longest = 1 / best.mass(0)
    # t ≤ longest for the best pmf, so no level that is heavier than δ·longest gives anything up.
    fixed = bisect_left(masses, -delta * longest, key=lambda mass: -mass)
    depth, price, farthest = fixed + 3, UNIT, int(problem.steps.max()) + 1
    while depth <= len(masses):
        line = line_of(problem.sensitivity, problem.steps, delta, masses[:depth], fixed)
        if line is not None and not line.apart and depth < farthest < len(masses):
            # The sides meet: without the levels between them the bound would be of another ring.
            depth = farthest
            line = line_of(problem.sensitivity, problem.steps, delta, masses[:depth], fixed)
        if line is None or not _fits(line, longest):
            break
        least = _least_at_depth(line, 1 / best.mass(0), price, work)
        if least is None:
            break
        highest, price = min(highest, 1 / least.bound), least.price
        if least.profile is not None:
            better = pmf_of_levels(problem, _on_group(problem, line, least.profile))
            best = max(best, better, key=lambda pmf: pmf.mass(0))
        if highest - best.mass(0) <= max(gap * (1 - best.mass(0)), _NOTHING):
            return Proof(best, highest)
        depth += max(1, depth // 6)
    return Proof(best, highest, finished=False) if highest < 1 else None


def _fits(line: Line, longest: Fraction) -> bool:
    """Whether the tables fit the memory, and all sums 64 bits."""
    return 2 * line.states <= MOST_STATES and longest < 2**7 and line.delta > Fraction(1, 2**20)


@dataclass(frozen=True)
class _Least:
    """A lower bound of t, the profile that has it if it is a better one, and the price used."""

    bound: Fraction
    profile: Profile | None
    price: int


def _least_at_depth(line: Line, incumbent: Fraction, near: int, work: Work) -> _Least | None:
    """The least t of the line, if it is below the ``incumbent``'s; None where the work ends."""
    work.spend(30 * line.states / _STATES_A_UNIT)
    if work.is_over:
        return None
    best = best_price(line, near)
    most, share = int(incumbent * SCALE), _SMALLEST
    if best.least >= most:
        return _Least(Fraction(most, SCALE), None, near)
    price = max(best.prices)
    tables = around(line, best, MOST_STATES)
    work.spend(len(tables) * line.states / _STATES_A_UNIT)
    # A search up to a bound that is too low is cheap, and tells that t is above it.
    while True:
        reach = min(most, int(best.least * (1 + share)))
        profile, ended = best_profile(line, reach, tables, work)
        if not ended:
            return None
        if profile is not None and profile.least <= reach:
            return _Least(Fraction(profile.least, SCALE), profile, price)
        if reach == most:
            return _Least(Fraction(most, SCALE), None, price)
        if profile is not None:
            # The least is no more than that of any profile.
            most = min(most, profile.least)
        share = share * 3 / 2


def _on_group(problem: Problem, line: Line, profile: Profile) -> np.ndarray:
    """The level of each element of the group; -1 where there is no mass."""
    nearest = line.least_levels[: line.reach + 1]
    levels = np.array([*nearest.tolist(), *profile.levels], dtype=np.int64)
    levels[levels == line.nothing] = -1
    if not line.apart:
        return levels
    everywhere = np.full(problem.size, -1, dtype=np.int64)
    edge = (line.ring - 1 - line.reach) // 2
    everywhere[: edge + 1] = levels[: edge + 1]
    if edge:
        everywhere[-edge:] = levels[-edge:]
    return everywhere
