"""The grid of a release, from public figures alone, and the total of profiles on it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from release.budget.composed import Together, release_charge, step_for, step_of_budget
from release.budget.entries import ReleaseCharge, Spent
from release.exact.composition.profile import Profile, pure_profile

HALF, ONE = Fraction(1, 2), Fraction(1)


@pytest.mark.parametrize(
    ("cells", "steps"),
    [
        (0, 1000),
        (1, 1000),
        # Up to 1,000 cells a multiple of them.
        (2, 1000),
        (3, 1002),
        (400, 1200),
        (401, 1203),
        (441, 1323),
        (999, 1998),
        (1000, 2000),
        # Beyond, fifty times their root rounded up, and never more than 2^14.
        (1001, 1600),
        (1024, 1600),
        (1025, 1650),
        (107_584, 16_384),
        (10**8, 16_384),
    ],
)
def test_a_budget_has_as_many_steps_as_the_format_says(cells: int, steps: int) -> None:
    assert step_of_budget(Fraction(3), cells) == Fraction(3, steps)
    assert step_for([], Fraction(3), cells) == Fraction(3, steps)
    assert step_for([Fraction(0)], Fraction(3), cells) == Fraction(3, steps)


@pytest.mark.parametrize(
    ("epsilons", "cap", "cells", "expected"),
    [
        ([HALF, Fraction(1, 3)], ONE, 1, Fraction(1, 6 * 167)),
        ([HALF, Fraction(0), HALF], ONE, 1, Fraction(1, 1000)),
        ([HALF], ONE, 401, Fraction(1, 1050)),
        ([HALF], ONE, 1001, Fraction(1, 1600)),
        ([Fraction(2)], ONE, 1, Fraction(1, 1000)),
        ([Fraction(3, 7)], Fraction(2), 1, Fraction(3, 7 * 215)),
        # 2^14 times the greatest common divisor is just the cap, and then less.
        ([Fraction(1, 2**14), HALF], ONE, 1, Fraction(1, 2**14)),
        ([Fraction(1, 2**14 + 1), HALF], ONE, 3, Fraction(1, 1002)),
    ],
)
def test_a_grid_holds_every_claimed_epsilon_where_it_can(
    epsilons: list[Fraction], cap: Fraction, cells: int, expected: Fraction
) -> None:
    assert step_for(epsilons, cap, cells) == expected


def test_a_total_is_read_at_a_delta_or_is_the_sum_of_the_charges() -> None:
    half = pure_profile(HALF, Fraction(1, 128))
    both, hundredth = Together(Fraction(1, 128), (half, half)), Fraction(1, 100)
    # Two of ε 1/2 fail to be 1 − η apart with some chance only: below 1 at a δ above 0.
    total = both.total(hundredth, Spent(ONE))
    assert (HALF < total.epsilon < ONE, total.delta) == (True, hundredth)
    assert both.losses.delta_at(total.epsilon) <= hundredth
    assert both.losses.delta_at(total.epsilon - Fraction(1, 10**6)) > hundredth
    # Without a δ, and where the sum of the charges is less.
    assert both.total(Fraction(0), Spent(ONE)) == Spent(ONE)
    assert both.total(hundredth, Spent(Fraction(1, 4))) == Spent(Fraction(1, 4))
    assert both.total(hundredth, Spent(total.epsilon)) == Spent(total.epsilon)
    # A sum of the δ that is above it holds no longer.
    assert both.total(hundredth, Spent(Fraction(1, 4), HALF)) == total
    assert both.total(hundredth, Spent(Fraction(1, 4), hundredth)) == Spent(
        Fraction(1, 4), hundredth
    )


def test_a_total_without_any_epsilon_is_the_sum_of_the_charges() -> None:
    failing = Profile.of_charge(HALF, Fraction(1, 10))
    alone, charge = Together(HALF, (failing,)), Spent(HALF, Fraction(1, 10))
    assert alone.total(Fraction(1, 100), charge) == charge
    assert alone.total(Fraction(1, 100), Spent(HALF)) == Spent(HALF)


def test_a_release_hands_its_losses_to_the_ledger() -> None:
    both = Together(HALF, (pure_profile(HALF, HALF),) * 2)
    charge = ONE, Fraction(1, 10)
    assert release_charge(*charge, both, has_profile=True) == ReleaseCharge(*charge, both.losses)
    assert release_charge(*charge, both, has_profile=False) == ReleaseCharge(*charge, None)
    assert release_charge(*charge, None, has_profile=True) == ReleaseCharge.of(*charge)
