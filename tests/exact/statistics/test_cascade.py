"""The cascade against the linear program, permute-and-flip and the closed form of two."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from release.exact.statistics.cascade import public_cap
from release.exact.statistics.gap_states import TOTAL, first_places, neighbor_places, states
from release.exact.statistics.gap_table import GapTable, cascade
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.two_categories import TwoCategories

ONE = Fraction(1)
HALF = Fraction(1, 2)


def errors(table: GapTable) -> NDArray[np.float64]:
    """The chance of a category that does not lead, for each state."""
    follows = states(table.categories, table.cap) > 0
    return np.asarray((table.weights * follows).sum(axis=1) / TOTAL)


def permute_and_flip_errors(categories: int, cap: int, epsilon: Fraction) -> NDArray[np.float64]:
    """The same of permute-and-flip: ∫₀¹ p_s·Π(1 - u·p_t) du, a polynomial, by Gauss's rule."""
    gaps = states(categories, cap)
    nodes, weights = np.polynomial.legendre.leggauss(categories)
    nodes, weights = (nodes + 1) / 2, weights / 2
    chances = exp(-float(epsilon) / 2) ** gaps
    total = np.zeros(len(gaps))
    for place in range(categories):
        others = np.delete(chances, place, axis=1)
        accepted = np.prod(1 - nodes[:, np.newaxis] * others[:, np.newaxis, :], axis=2) @ weights
        total += np.where(gaps[:, place] > 0, chances[:, place] * accepted, 0)
    return total


def least_mean_error(categories: int, cap: int, epsilon: Fraction) -> float:
    """The least mean over the states of the chance to err, by HiGHS's interior point."""
    gaps = states(categories, cap)
    before, after = neighbor_places(categories, cap)
    size, pairs = gaps.size, np.arange(len(before))
    entries = np.concatenate([np.ones(len(pairs)), np.full(len(pairs), -exp(float(epsilon)))])
    rows, columns = np.concatenate([pairs, pairs]), np.concatenate([before, after])
    ratios = csr_matrix((entries, (rows, columns)), shape=(len(pairs), size))
    state = np.arange(size) // categories
    origin = state * categories + first_places(gaps).ravel()
    sums = csr_matrix((np.ones(size), (state, origin)), shape=(len(gaps), size))
    goal = np.bincount(origin, weights=(gaps > 0).ravel(), minlength=size) / len(gaps)
    solved = linprog(
        goal,
        A_ub=ratios,
        b_ub=np.zeros(len(pairs)),
        A_eq=sums,
        b_eq=np.ones(len(gaps)),
        bounds=(0, 1),
        method="highs-ipm",
    )
    assert solved.status == 0
    return float(solved.fun)


@pytest.mark.parametrize("epsilon", [HALF, ONE, Fraction(2)])
@pytest.mark.parametrize(("categories", "cap"), [(3, 8), (3, 16), (4, 6), (5, 4)])
def test_the_cascade_errs_as_little_as_the_linear_program(
    categories: int, cap: int, epsilon: Fraction
) -> None:
    table = cascade(categories, cap, epsilon)
    assert table is not None
    optimum = least_mean_error(categories, cap, epsilon)
    mean = errors(table).mean()
    assert optimum * (1 - 1e-6) <= mean <= 1.002 * optimum
    assert permute_and_flip_errors(categories, cap, epsilon).mean() >= 1.06 * optimum


@pytest.mark.parametrize(
    ("categories", "epsilon"),
    [(3, Fraction(1, 5)), (3, HALF), (3, ONE), (4, ONE), (5, Fraction(3, 2)), (6, Fraction(2))],
)
def test_the_cascade_is_never_worse_than_permute_and_flip(
    categories: int, epsilon: Fraction
) -> None:
    cap = public_cap(categories, epsilon)
    assert cap is not None
    table = cascade(categories, cap, epsilon)
    assert table is not None
    assert table.satisfies(epsilon)
    other = permute_and_flip_errors(categories, cap, epsilon)
    assert (errors(table) <= other * (1 + 1e-6)).all()


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), ONE, Fraction(3)])
def test_the_cascade_of_two_is_the_closed_form(epsilon: Fraction) -> None:
    table, best = cascade(2, 20, epsilon), TwoCategories(least_ratio(epsilon, 1))
    assert table is not None
    for lead in range(20):
        excess = table.error_at_lead(lead) - best.error_at_lead(lead)
        # A table may be a few of its units above; nothing private is below.
        assert -Fraction(1, 10**18) <= excess
        assert excess <= best.error_at_lead(lead) / 10**8 + Fraction(40, TOTAL)


def test_an_excess_of_gaps_is_still_private() -> None:
    """Weights fall to one unit of 2^-62 long before this cap, and are raised there."""
    table = cascade(3, 100, Fraction(2))
    assert table is not None
    assert 0 < table.weights.min() < 10


def test_there_is_no_cascade_where_it_is_not_private() -> None:
    assert cascade(5, 10, Fraction(1, 10)) is None
    assert cascade(4, 20, Fraction(1, 100)) is None


@pytest.mark.parametrize(
    ("categories", "epsilon", "cap"),
    [
        (3, "1", 32),
        (3, "2", 16),
        (3, "1/10", 254),
        (3, "9/100", None),
        (4, "1", 32),
        (4, "1/2", 56),
        (4, "2/5", None),
        (5, "1", 27),
        (5, "4/5", None),
        (6, "3/2", 17),
        (6, "1", None),
    ],
)
def test_the_public_cap(categories: int, epsilon: str, cap: int | None) -> None:
    assert public_cap(categories, Fraction(epsilon)) == cap


def test_what_has_no_cap_is_refused() -> None:
    with pytest.raises(ValueError, match="2 to 6"):
        public_cap(7, ONE)
    with pytest.raises(ValueError, match="above 0"):
        public_cap(3, Fraction(0))
