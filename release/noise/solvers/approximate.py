"""Noise on the integers for approximate guarantees with δ > 0: a linear program in a window.

Minimise E|η|^p over symmetric pmfs on -W..W with Σ_η max(0, f(η) - e^ε·f(η + s)) ≤ δ for every
distance s of neighbors. A pmf in a window is one on all integers, and the duals of the program
become multipliers whose bound speaks of all noise (:mod:`release.exact.bounds`); the window grows
until both meet. Work is counted in variables, so the same question has the same answer anywhere.

Where neighbors are too far apart for a program, the noise of a smaller one is stretched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from release.exact.bounds import MULTIPLIER_BITS, Multipliers
from release.exact.integers.noise import MOST_BITS, IntegerNoise, merged
from release.exact.numbers import exp_below_any_verifier
from release.exact.privacy import Guarantee
from release.noise.solvers.program import Builder, Floats, Numbers
from release.noise.solvers.refine import PLACES, Precise, refine, times_power

MOST_VARIABLES = 15_000
"""Of a program; it is solved in a few seconds."""

_LEAST_SCALE = -45
_SHARP = 1e-8


@dataclass(frozen=True)
class Bounded:
    """Noise on finitely many integers, its expected loss, and multipliers that bound all noise.

    Stretched noise has none, and its lower bound is 0.
    """

    noise: IntegerNoise
    loss: Fraction
    lower_bound: Fraction
    multipliers: Multipliers | None


# Plan asks once for the release and once beside other families; an answer takes up to some seconds.
@lru_cache(maxsize=64)
def bounded_noise(steps: tuple[int, ...], guarantee: Guarantee, power: int) -> Bounded | None:
    """The noise of least E|η|^``power``; None where the program would be too large."""
    best = None
    for reach in _reaches(steps, guarantee):
        noise = _solved(steps, guarantee, power, reach)
        if noise is None:
            continue
        if best is None or noise.loss - noise.lower_bound < best.loss - best.lower_bound:
            best = noise
        if float(best.loss - best.lower_bound) <= _SHARP * float(best.loss):
            break
    return best


def stretched_noise(steps: Sequence[int], guarantee: Guarantee, power: int) -> Bounded | None:
    """The best noise for neighbors 1 apart, stretched to neighbors up to ``steps[-1]`` apart.

    None where no program is small enough (docs/design/mathematics.md 1.5).
    """
    # Stretched weights are rounded once more, which takes a little of δ.
    tight = replace(guarantee, delta=guarantee.delta * (1 - Fraction(1, 2**20)))
    nearest = bounded_noise((1,), tight, power)
    noise = None if nearest is None else _stretched(nearest.noise, steps[-1])
    if noise is None or not _is_kept(noise, steps, guarantee):
        return None
    return Bounded(noise, noise.moment(power), Fraction(0), None)


def _stretched(noise: IntegerNoise, size: int) -> IntegerNoise:
    """Each mass spread evenly over ``size`` integers about the multiples of ``size``.

    ``noise`` is symmetric and has no tails. An integer halfway between two multiples has half of
    each one's share. What does not divide goes to 0.
    """
    weights = [weight for length, weight in noise.runs for _ in range(length)][-noise.low :]
    # Where weights rise by a solver's rounding they stay level: the noise is unimodal then.
    shares = [weight // (2 * size) for weight in accumulate(weights, min)]
    inside, halfway = size - 1 + size % 2, 1 - size % 2
    half = [(inside // 2 + 1, 2 * shares[0])]
    for nearer, farther in pairwise([*shares, 0]):
        half += [(halfway, nearer + farther), (inside, 2 * farther)]
    others = 2 * sum(length * weight for length, weight in half) - 2 * half[0][1]
    runs = [(1, noise.total - others), (half[0][0] - 1, half[0][1]), *half[1:]]
    return IntegerNoise.symmetric(merged(run for run in runs if all(run)))


def _is_kept(noise: IntegerNoise, steps: Sequence[int], guarantee: Guarantee) -> bool:
    ratio = exp_below_any_verifier(guarantee.epsilon)
    return noise.deltas(steps, ratio).approximate <= guarantee.delta


def _reaches(steps: Sequence[int], guarantee: Guarantee) -> Iterator[int]:
    """Half widths of windows, as far as the program is not too large."""
    if len(steps) > MOST_VARIABLES or not guarantee.delta:
        return
    farthest, epsilon = steps[-1], float(guarantee.epsilon)
    fall = math.log(1 / float(guarantee.delta)) / max(epsilon, 1e-9) + 2
    # At small ε the mass spreads over about 1/δ steps instead.
    reach = math.ceil(farthest * min(fall, 2 / float(guarantee.delta) + 2))
    while (2 * reach + 1) * len(steps) <= MOST_VARIABLES:
        yield reach
        reach += reach // 2 + 1


def _solved(steps: Sequence[int], guarantee: Guarantee, power: int, reach: int) -> Bounded | None:
    program = _Program(steps, guarantee, power, reach)
    refined = refine(program.builder.build())
    if refined is None:
        return None
    masses = times_power(refined.values[program.masses], program.exponents)
    noise = _rounded(masses, reach)
    if noise is None or not _is_kept(noise, steps, guarantee):
        return None
    multipliers = program.multipliers(refined.duals)
    loss = noise.moment(power)
    bound = multipliers.lower_bound(guarantee.epsilon, guarantee.delta, power)
    return Bounded(noise, loss, min(loss, bound), multipliers)


def _rounded(masses: Precise, reach: int) -> IntegerNoise | None:
    """The masses of 0..reach in integer weights; what rounding down leaves goes to 0."""
    total = 1 << MOST_BITS
    weights = [max(0, int(mass)) * total >> PLACES for mass in masses.tolist()]
    weights[0] = total - 2 * sum(weights[1:])
    if weights[0] < 0:
        return None
    while len(weights) > 1 and not weights[-1]:
        weights.pop()
    return IntegerNoise.symmetric(merged((1, weight) for weight in weights))


class _Program:
    """Columns x with f(k) = 2^exponents[k]·x(k), and one for each f(η) - e^ε·f(η + s) above 0."""

    def __init__(self, steps: Sequence[int], guarantee: Guarantee, power: int, reach: int) -> None:
        self.steps, self.reach, self.builder = steps, reach, Builder()
        k = np.arange(reach + 1)
        fall = float(guarantee.epsilon) * np.ceil(k / steps[-1]) / math.log(2)
        self.exponents: Floats = np.maximum(np.round(-fall), _LEAST_SCALE)
        times = np.where(k > 0, 2.0, 1.0)
        cost = (k > 0) * times if power == 0 else k.astype(np.float64) ** power * times
        scaled = cost * np.exp2(self.exponents)
        self.unit = 2.0 ** round(math.log2(max(float(scaled.max()), 1e-9)))
        self.masses = self.builder.add_columns(scaled / self.unit)
        self.builder.add_row(self.masses, times * np.exp2(self.exponents), 1.0, equal=True)
        # Rounding to integer weights moves δ by a few units for each integer.
        spare = Fraction(4 * (2 * reach + 3) * (3 + math.ceil(math.exp(guarantee.epsilon))), 2**62)
        delta = max(guarantee.delta - spare, guarantee.delta / 2)
        ratio = exp_below_any_verifier(guarantee.epsilon)
        first = float(ratio)
        self.ratio, self.residue = first, float(ratio - Fraction(first))
        self.rows: dict[int, Numbers] = {}
        for step in steps:
            self.rows[step] = self._violations(step, delta)

    def _violations(self, step: int, delta: Fraction) -> Numbers:
        """Rows f(η) - e^ε·f(η + step) ≤ t(η) for η = -reach..reach, and Σ t ≤ δ."""
        noise = np.arange(-self.reach, self.reach + 1)
        here, there = np.abs(noise), np.abs(noise + step)
        exponents = self.exponents[here]
        inside = there <= self.reach
        beyond = np.where(inside, self.exponents[np.minimum(there, self.reach)], 0.0)
        relative = np.exp2(beyond - exponents)
        limit = round(math.log2(float(delta)))
        unit = np.maximum(np.round((exponents + limit) / 2), exponents - 30)
        limit = max(limit, int(unit.max()) - 30)
        slack = self.builder.add_columns(np.zeros(noise.size))
        self.builder.add_row(slack, np.exp2(unit - limit), float(delta / Fraction(2) ** limit))
        columns = np.stack([self.masses[here], np.where(inside, there, -1), slack], axis=1)
        ones = np.ones(noise.size)
        values = np.stack([ones, -self.ratio * relative, -np.exp2(unit - exponents)], axis=1)
        residues = np.stack([0 * ones, -self.residue * relative, 0 * ones], axis=1)
        # Where η and η + step have one mass between them, both terms fall on one column.
        same = inside & (here == there)
        values[same, 0] += values[same, 1]
        residues[same, 0] += residues[same, 1]
        columns[same, 1] = -1
        return self.builder.add_rows(columns, values, np.zeros(noise.size), residues)

    def multipliers(self, duals: Precise) -> Multipliers:
        """The duals of the privacy rows, unscaled, as integers of at least 0."""
        noise = np.arange(-self.reach, self.reach + 1)
        exponents = self.exponents[np.abs(noise)]
        tables = {}
        for step, rows in self.rows.items():
            # A row was divided by the scale of its first mass; its price rises by as much.
            prices = times_power(-duals[rows], math.log2(self.unit) - exponents)
            table = np.maximum(prices, 0) >> (PLACES - MULTIPLIER_BITS)
            tables[step] = tuple(map(int, table.tolist()))
        return Multipliers(tables)
