"""A cheap part of every study is computed again, beside closed forms and independent counts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from research.studies import cascade, quantile_optimum, renyi_noise


def test_the_cascade_of_two_categories_is_the_best_at_every_lead() -> None:
    """Section 2 of selection-gap-tables.md: e^(-ε·g/2)/2 for even g, from a linear program."""
    entries = cascade.compared(2, 12, Fraction(1))
    for entry in entries[:8]:
        assert entry.ratio == pytest.approx(1, abs=1e-6)
        if entry.lead % 2 == 0:
            assert entry.least == pytest.approx(math.exp(-entry.lead / 2) / 2, rel=1e-6)


def test_the_cascade_of_three_is_best_in_the_sum_and_not_at_each_lead() -> None:
    ratios = {entry.lead: entry.ratio for entry in cascade.compared(3, 4, Fraction(1))}
    assert ratios[1] == pytest.approx(1, abs=1e-6)
    assert ratios[2] > 1.2
    together = cascade.in_all_states(3, 4, Fraction(1))
    assert together == pytest.approx(1, abs=1e-6)


def test_the_best_median_of_two_points_is_a_coin() -> None:
    """Two rows, two points: where the rows differ, neither point errs."""
    assert len(quantile_optimum.tables_of(2, 2)) == 3
    assert quantile_optimum.rank_gaps((0, 0, 1), 2) == [0, 1]
    least = quantile_optimum.least_error(2, 2, Fraction(1))
    # The chance x of the wrong point at (0, 0) is at least e^-1 of that at (0, 1), which is ½; the
    # rank gap of the wrong point is 2.
    assert least == pytest.approx(2 * math.exp(-1) / 2, rel=1e-6)
    ours = quantile_optimum.permute_and_flip_error(2, 2, Fraction(1))
    # Permute-and-flip: p = e^(-1/4·2), wrong with p/2, rank gap 2.
    assert ours == pytest.approx(math.exp(-0.5), rel=1e-6)


@pytest.mark.parametrize(("order", "share"), [(2.0, 1.0), (4.0, 1.0)])
def test_the_bound_of_a_moment_is_between_the_closed_form_and_the_gaussian(
    order: float, share: float
) -> None:
    bound = renyi_noise.least_variance(order, share)
    gaussian = renyi_noise.gaussian_variance(order, share)
    # D_α of discrete Gaussian noise of parameter σ² under a shift by 1 is α/(2σ²), for integers.
    assert gaussian == pytest.approx(order / (2 * share), rel=1e-3)
    assert 1 / math.expm1(share) <= bound * (1 + 1e-6)
    assert bound <= gaussian
