"""The least error of any private rule for the commonest category: a linear program over a box.

The box holds all count vectors of 0..most, and neighbors add or remove one row. A private rule on
all tables is one on these, so no rule errs less on average over the box. The edge of a small box
helps the program: it need not hide what lies beyond.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import exp, factorial, prod

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix


def box_states(categories: int, most: int) -> list[tuple[int, ...]]:
    """All counts of 0..most in descending order."""
    ascending = combinations_with_replacement(range(most + 1), categories)
    return [counts[::-1] for counts in ascending]


def arrangements(counts: tuple[int, ...]) -> int:
    """How many count vectors have these counts."""
    return factorial(len(counts)) // prod(factorial(counts.count(c)) for c in set(counts))


def box_optimum(categories: int, most: int, epsilon: float) -> float:
    """The least mean error over all counts of 0..most, add/remove: no private rule has less.

    A private rule on all counts is one on these. Permuting categories changes no error, so a rule
    that treats them alike is enough: one variable for each count of each state.
    """
    states = box_states(categories, most)
    index = {
        pair: place
        for place, pair in enumerate((state, c) for state in states for c in sorted(set(state)))
    }
    first, second = [], []
    for state, grown in product(states, range(categories)):
        more = state[grown] + 1
        if more > most:
            continue
        after = tuple(sorted((*state[:grown], more, *state[grown + 1 :]), reverse=True))
        for place, count in enumerate(state):
            here, there = index[state, count], index[after, more if place == grown else count]
            first += [here, there]
            second += [there, here]
    pairs = np.arange(len(first))
    ratios = csr_matrix(
        (
            np.concatenate([np.ones(pairs.size), np.full(pairs.size, -exp(epsilon))]),
            (np.concatenate([pairs, pairs]), np.concatenate([first, second])),
        ),
        shape=(pairs.size, len(index)),
    )
    rows = {state: place for place, state in enumerate(states)}
    shares = [state.count(count) for state, count in index]
    sums = csr_matrix(
        (shares, ([rows[state] for state, _ in index], range(len(index)))),
        shape=(len(states), len(index)),
    )
    whole = (most + 1) ** categories
    goal = [
        (count < state[0]) * state.count(count) * arrangements(state) / whole
        for state, count in index
    ]
    solved = linprog(
        goal,
        A_ub=ratios,
        b_ub=np.zeros(pairs.size),
        A_eq=sums,
        b_eq=np.ones(len(states)),
        bounds=(0, 1),
        method="highs-ipm",
    )
    if solved.status != 0:
        raise ArithmeticError(solved.message)
    return float(solved.fun)
