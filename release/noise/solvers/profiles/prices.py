"""Prices of the budgets, and what the rest of a line costs at least under them.

Let each step μ of M have a price λ_μ ≥ 0 for a unit of mass that its constraints give up. The least
Σ mass + Σ λ·(given up) over all profiles is found by dynamic programming, because constraints reach
no farther than m elements. It is at most (1 + δ·Σ λ)·t for every feasible t = 1/f(0).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.noise.solvers.profiles.line import Integers, Line

UNIT = 2**10
"""Prices are whole numbers of 1/UNIT."""

_MOST_PRICE = 2**15
_AT_ONCE = 2**17
"""Sums that are made in one array."""

_SHARES = (0.3, 1.0, 2.0)
"""Of the best price: what is asked for a side, one for each."""
_OTHERS = (0.0, 0.05, 0.15)
"""Of the best price: what is asked for the steps that are not the largest."""

Prices = tuple[int, ...]
"""One for each step of a line."""


@dataclass(frozen=True)
class Rests:
    """For each position and state what the elements after it cost at least, at these prices."""

    line: Line
    prices: Prices
    tables: dict[int, Integers]

    @property
    def least(self) -> Fraction:
        """A lower bound of t in units of the scale."""
        whole = self.line.start * UNIT + int(self.tables[self.line.reach].min())
        return whole / (UNIT + self.line.delta * sum(self.prices))

    def allowance(self, most: int) -> int:
        """What a profile of t ≤ ``most`` may cost beyond the elements that are known."""
        whole = most * (UNIT + self.line.delta * sum(self.prices))
        return int(whole // 1) - self.line.start * UNIT


def rests(line: Line, prices: Prices) -> Rests:
    """The tables of all positions, from the last one backwards."""
    reach, last = line.reach, line.ring - 1
    paid = dict(zip(line.steps, prices, strict=True))
    table = np.zeros(line.shape(last), dtype=np.int64)
    tables = {last: table}
    for position in range(last, reach, -1):
        table = table + UNIT * line.masses[line.levels[position]]
        for away in range(1, reach):
            if paid.get(away, 0) or paid.get(-away, 0):
                between = _between(line, paid, position, away)
                axes = [1] * reach
                axes[reach - 1 - away], axes[-1] = between.shape
                table = table + between.reshape(axes)
        # Only the element that leaves the state is still to be compared, with the new one.
        table = _least_by_first(table, _between(line, paid, position, reach))
        tables[position - 1] = table
    return Rests(line, prices, tables)


def _between(line: Line, paid: dict[int, int], position: int, away: int) -> Integers:
    """What the constraints of ±``away`` that end at ``position`` cost, by both levels."""
    ahead, back = line.gives(position, away)
    return np.asarray(paid[away] * ahead + paid[-away] * back)


def _least_by_first(table: Integers, between: Integers) -> Integers:
    """The least of ``table`` plus ``between`` over the last axis, with a new axis in front."""
    if table.size * len(between) <= _AT_ONCE:
        rows = between.reshape(len(between), *[1] * (table.ndim - 1), -1)
        return np.asarray((table + rows).min(axis=-1))
    # Row by row: all sums at once would be an array of many times the table.
    return np.stack([(table + row).min(axis=-1) for row in between])


def best_price(line: Line, near: int) -> Rests:
    """The tables with the highest bound where the largest steps have one price, all others 0.

    The bound is concave in the price, and the search begins ``near``. A price that is only close
    to the best one makes the bound lower, never wrong.
    """
    best, step = rests(line, _spread(line, near)), max(1, near // 2)
    while step >= max(1, max(best.prices) // 64):
        price = max(best.prices)
        nearby = {min(_MOST_PRICE, price + step), max(0, price - step)} - {price}
        tables = [
            rests(line, _spread(line, price_of_largest)) for price_of_largest in sorted(nearby)
        ]
        better = max(tables, key=lambda table: table.least)
        if better.least > best.least:
            best = better
        else:
            step //= 4
    return best


def around(line: Line, best: Rests, most_states: float) -> list[Rests]:
    """Tables of further prices around the best ones, as many as ``most_states`` allow.

    A part of a profile that has used little of one budget is told by a bound with another price.
    """
    price, tables = max(best.prices), [best]
    for between, ahead, back in itertools.product(_OTHERS, _SHARES, _SHARES):
        # A table has an entry for each state of each position: memory is what ends here.
        if line.states * (len(tables) + 1) > most_states:
            break
        prices = _spread(line, int(ahead * price), int(back * price), int(between * price))
        if prices != best.prices:
            tables.append(rests(line, prices))
    return tables


def _spread(line: Line, ahead: int, back: int | None = None, between: int = 0) -> Prices:
    ends = {line.reach: ahead, -line.reach: ahead if back is None else back}
    return tuple(ends.get(step, between) for step in line.steps)
