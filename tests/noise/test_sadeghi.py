"""The count mechanism of Sadeghi, Asoodeh and Calmon 2020."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.numbers import exp_bounds
from release.exact.sensitivity import line_pairs
from release.noise.published.sadeghi import count_law, crossovers, lower_bounds, solve_counts

SHARES = st.sampled_from(["0.1", "0.3", "0.5", "0.8", "0.95"]).map(Fraction)
EPSILONS = st.sampled_from(["0.2", "0.7", "1.1", "2.18", "3"]).map(Fraction)


def test_the_example_of_figure_1() -> None:
    """ε = 2.18, η = 0.8, D = 6: k = 3, δ̃ = 0.0049, p(±1) = 0.08987, p(±2) = 0.00960."""
    found = count_law(6, Fraction("0.8"), Fraction("2.18"))
    assert found.index == 3
    assert float(found.claimed) == pytest.approx(0.0049, abs=5e-5)
    for step in (1, -1):
        assert float(found.noise.mass(step)) == pytest.approx(0.08987, abs=5e-6)
        assert float(found.noise.mass(2 * step)) == pytest.approx(0.00960, abs=5e-6)
    assert not any(found.alphas[3:])
    second, third = crossovers(6, exp_bounds(Fraction("2.18"))[0])[1:3]
    assert (float(second), float(third)) == pytest.approx((8.1229, 7.8867), abs=5e-5)


@pytest.mark.parametrize(("epsilon", "keep", "delta"), [("1.1", "0.5", 1e-3), ("2.2", "0.8", 5e-7)])
def test_the_guarantees_that_are_named(epsilon: str, keep: str, delta: float) -> None:
    """(1.1, 10⁻³) at η = 0.5 and (2.2, 5·10⁻⁷) at η = 0.8, for D = 8; the exact δ is half of it."""
    found = count_law(8, Fraction(keep), Fraction(epsilon))
    assert float(found.bound_delta) <= delta
    assert found.delta < found.bound_delta / 2


def test_most_of_the_mass_is_near() -> None:
    """Section IV: η = 0.5, D = 8, ε = 1.5: within ±3 with probability 0.9945."""
    found = count_law(8, Fraction(1, 2), Fraction("1.5"))
    within = sum(found.noise.mass(k) for k in range(-3, 4))
    assert float(within) == pytest.approx(0.9945, abs=2e-4)


@given(st.integers(1, 9), SHARES, EPSILONS)
@settings(max_examples=80, deadline=None)
def test_the_explicit_law_is_one_and_keeps_what_it_says(
    reach: int, keep: Fraction, epsilon: Fraction
) -> None:
    found = count_law(reach, keep, epsilon)
    ratio = exp_bounds(epsilon)[0]
    assert sum(found.alphas) == 1
    assert found.noise.mass(0) == keep
    # Theorem 3 holds where ±1 is not too much likelier than 0.
    outwards = found.noise.mass(1) - ratio * keep <= found.claimed
    assert (found.outcome_delta == found.claimed) == outwards
    assert found.outcome_delta <= found.delta <= (2 * reach + 1) * found.outcome_delta
    c, bounds = 2 * keep / (1 - keep), lower_bounds(reach, keep, ratio)
    for k, crossover in enumerate(crossovers(reach, ratio)):
        assert (bounds[k] >= bounds[k + 1]) == (c >= crossover)


@pytest.mark.parametrize(
    ("most", "reach", "keep", "epsilon"),
    [(20, 6, 0.8, 2.18), (24, 8, 0.5, 1.1), (12, 3, 0.3, 0.7), (15, 5, 0.9, 1.0)],
)
def test_the_explicit_law_is_the_optimum_of_the_program(
    most: int, reach: int, keep: float, epsilon: float
) -> None:
    """Theorem 3, and more: one law for each count from D on does no better."""
    explicit = float(count_law(reach, Fraction(str(keep)), Fraction(str(epsilon))).claimed)
    for shared in (True, False):
        found = solve_counts(most, reach, keep, epsilon, first=reach, shared=shared)
        assert found is not None
        assert found.single_outcome_delta == pytest.approx(explicit, abs=1e-9)


def test_theorem_3_misses_the_way_back_for_small_eta() -> None:
    """η = 0.1, D = 2, ε = 0.2: ±1 are three times as likely as 0, which it does not look at."""
    found = count_law(2, Fraction("0.1"), Fraction("0.2"))
    assert found.outcome_delta > found.claimed + Fraction(1, 25)
    tight = count_law(1, Fraction("0.1"), Fraction("2"))
    assert tight.noise.mass(1) == Fraction("0.45")
    program = solve_counts(9, 2, 0.1, 0.2, first=2, shared=True)
    assert program is not None
    assert float(found.claimed) < program.single_outcome_delta <= float(found.outcome_delta) + 1e-9


def test_laws_for_small_counts_have_the_three_properties() -> None:
    """Proposition 2 from n = 1 on: support, P(0|n) = η, mean zero; and δ̃ is that of the rows."""
    most, reach, keep, epsilon = 10, 3, 0.5, 1.0
    found = solve_counts(most, reach, keep, epsilon)
    assert found is not None
    published = np.arange(most + reach + 1)
    for row, count in zip(found.rows, range(1, most + 1), strict=True):
        assert row.sum() == pytest.approx(1, abs=1e-9)
        assert row[count] == keep
        assert row @ published == pytest.approx(count, abs=1e-8)
        assert not row[np.abs(published - count) > reach].any()
        assert (row >= -1e-12).all()
    rows, ratio = found.rows, np.exp(epsilon)
    excess = max((rows[:-1] - ratio * rows[1:]).max(), (rows[1:] - ratio * rows[:-1]).max())
    assert excess == pytest.approx(found.single_outcome_delta, abs=1e-8)
    exact = found.to_channel().deltas_of_pairs(
        line_pairs(most, [1]), exp_bounds(Fraction(epsilon))[0]
    )
    assert found.single_outcome_delta - 1e-9 <= float(exact.approximate)
    assert float(exact.approximate) <= (2 * reach + 1) * found.single_outcome_delta


def test_example_1_of_the_text() -> None:
    """N = 3, η = 1/2, D = 2, n = 1: only ±1 and (-1, +2) are possible, so p(-1|1) is 1/4 to 1/3."""
    found = solve_counts(3, 2, 0.5, 1.0)
    assert found is not None
    assert 0.25 - 1e-9 <= found.rows[0, 0] <= 1 / 3 + 1e-9


def test_what_cannot_be_is_refused() -> None:
    for reach, keep in ((0, "0.5"), (3, "0"), (3, "1")):
        with pytest.raises(ValueError, match="keep above 0"):
            count_law(reach, Fraction(keep), Fraction(1))
    for keep_, epsilon in ((0.0, 1.0), (1.0, 1.0), (0.5, -1.0), (0.5, 11.0)):
        with pytest.raises(ValueError, match="keep must be above 0"):
            solve_counts(5, 2, keep_, epsilon)
    with pytest.raises(ValueError, match="true counts"):
        solve_counts(5, 2, 0.5, 1.0, first=0)
    with pytest.raises(ValueError, match="true counts"):
        solve_counts(5, 2, 0.5, 1.0, first=1, shared=True)
