"""The cascade beside the best gap tables of three and more categories, under replace-one.

*Question.* For two categories the cascade has the least error of all private rules, state by state
(docs/design/selection-gap-tables.md, section 2). For more this is not proved.

*Method.* A gap table is a point of a polytope: chances of the categories by state, with the ratio
of every neighboring pair at most e^ε. For each lead g a linear program finds the least error that
any private table has in the state (0, g, …, g), and another one the least sum over all states. A
rule may depend on more than gaps, but averaging it over all orders of the categories and all shifts
of the scores keeps its guarantee and the mean of its errors. The cap is small, and the cascade has
the same one, so both answer the same question.

*Finding.* State by state the cascade is not the best: for K = 5, ε = 2 another table errs 2.4 times
less at a lead of 4, and more elsewhere. Summed over all states no table is better, to ten digits,
for K = 3 and, at ε = 1 and 2, for K = 4 and 5. At ε = ½ a table is better by 1 in 10,000 (K = 4)
and 5 in 10,000 (K = 5). There is no proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.statistics.gap_states import (
    TOTAL,
    count_states,
    first_places,
    neighbor_places,
    states,
)
from release.exact.statistics.gap_table import cascade
from release.noise.solvers.program import Builder, solve

CASES = ((3, 8), (4, 6), (5, 5))
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))


@dataclass(frozen=True)
class Comparison:
    """The error at a lead: that of the cascade, and the least of all private gap tables."""

    lead: int
    cascade: float
    least: float

    @property
    def ratio(self) -> float:
        """How many times the least error the cascade has."""
        return self.cascade / self.least


def compared(categories: int, cap: int, epsilon: Fraction) -> list[Comparison]:
    """Both errors for every lead below the cap; none where the cascade is not private."""
    table = cascade(categories, cap, epsilon)
    if table is None:
        return []
    gaps = states(categories, cap)
    entries = []
    for lead in range(1, cap):
        wanted = [0, *[lead] * (categories - 1)]
        row = int(np.flatnonzero((gaps == wanted).all(axis=1))[0])
        own = float(1 - Fraction(int(table.weights[row, 0]), TOTAL))
        entries.append(Comparison(lead, own, least_error(categories, cap, epsilon, [row])))
    return entries


def in_all_states(categories: int, cap: int, epsilon: Fraction) -> float | None:
    """The cascade's errors of all states together, over the least sum of any private gap table."""
    table = cascade(categories, cap, epsilon)
    if table is None:
        return None
    followers = states(categories, cap) > 0
    own = sum(table.weights[followers].tolist()) / TOTAL
    return float(own) / least_error(categories, cap, epsilon, range(len(followers)))


def least_error(categories: int, cap: int, epsilon: Fraction, rows: Sequence[int]) -> float:
    """The least chance of publishing no leader, summed over states, over all private tables."""
    gaps = states(categories, cap)
    size = count_states(categories, cap)
    origin = np.arange(size)[:, None] * categories + first_places(gaps)
    before, after = neighbor_places(categories, cap)
    cost = np.zeros(size * categories)
    for row in rows:
        np.add.at(cost, origin[row][gaps[row] > 0], 1.0)
    builder = Builder()
    chances = builder.add_columns(cost)
    # Equal gaps have one variable, at the first of their places; the others stand nowhere.
    times = np.zeros((size, categories))
    for place in range(categories):
        np.add.at(times, (np.arange(size), origin[:, place] - np.arange(size) * categories), 1.0)
    for state in range(size):
        used = np.flatnonzero(times[state])
        columns = chances[state * categories + used]
        builder.add_row(columns, times[state, used], 1.0, equal=True)
    pairs = np.stack([chances[before], chances[after]], axis=1)
    builder.add_rows(pairs, np.array([1.0, -math.exp(epsilon)]), np.zeros(len(pairs)))
    solution = solve(builder.build(), arrays=True)
    if solution is None or not solution.finished:
        raise ArithmeticError("the linear program was not solved")
    return solution.objective


def main() -> None:
    """Print the largest ratio of each case."""
    print("error of the cascade over the least of all private gap tables, by the lead")
    for categories, cap in CASES:
        for epsilon in EPSILONS:
            entries = compared(categories, cap, epsilon)
            text = ", ".join(f"{entry.lead}: {entry.ratio:.6f}" for entry in entries)
            print(f"K = {categories}, cap {cap}, ε = {epsilon}: {text or 'no private cascade'}")
            print(f"  all states together: {in_all_states(categories, cap, epsilon)}", flush=True)


if __name__ == "__main__":
    main()
