"""One privacy-loss distribution: never below the truth, and hardly above it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from release.exact.composition.distribution import UNIT, LossDistribution, of_charge
from release.exact.composition.together import together
from release.exact.numbers import exp_bounds

HAIR = Fraction(1, 10**20)
CHARGES = (
    ("0.000001", "0"),
    ("0.1", "0"),
    ("1/3", "0.01"),
    ("1", "1e-9"),
    ("2", "0.25"),
    ("50", "0"),
    ("0", "0.1"),
)


def exact_delta(charges: list[tuple[Fraction, Fraction]], at: Fraction) -> Fraction:
    """δ at ``at`` by all outcomes of the worst cases; exact to 10⁻³⁰ (each e^ε within 10⁻⁴⁰)."""
    atoms = []
    for epsilon, delta in charges:
        ratio = exp_bounds(epsilon)[0]
        upper, lower = (1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio)
        # (mass under P, mass under Q); Q never shows the infinite loss.
        atoms.append(((delta, Fraction(0)), (upper, lower), (lower, upper)))
    threshold, total = exp_bounds(at)[1], Fraction(0)
    for outcome in product(*atoms):
        p = q = Fraction(1)
        for mass_p, mass_q in outcome:
            p, q = p * mass_p, q * mass_q
        total += max(Fraction(0), p - threshold * q)
    return total


def read(epsilon: str, delta: str) -> tuple[Fraction, Fraction]:
    return Fraction(epsilon), Fraction(delta)


@pytest.mark.parametrize(("epsilon", "delta"), CHARGES)
@pytest.mark.parametrize("share", ["2", "1/7", "0.37"])
def test_a_charge_is_its_worst_case(epsilon: str, delta: str, share: str) -> None:
    """With both losses on the grid δ is exact; elsewhere it is above, and hits ε and δ."""
    charge = read(epsilon, delta)
    step = charge[0] * Fraction(share) or Fraction(1)
    found = of_charge(*charge, step)
    on_grid = (2 * charge[0] / step).denominator == 1
    for tenth in range(12):
        at = charge[0] * tenth / 10
        truth = exact_delta([charge], at)
        assert truth - HAIR**2 <= found.delta_at(at)
        if on_grid:
            assert found.delta_at(at) <= truth + HAIR
    assert charge[1] <= found.delta_at(charge[0]) <= charge[1] + HAIR


@pytest.mark.parametrize("step", ["0.2", "0.03", "0.0071"])
def test_products_are_never_below_the_enumerated_truth(step: str) -> None:
    charges = [read("0.1", "0"), read("0.1", "0"), read("0.2", "0.001"), read("0.5", "0")]
    together = of_charge(*charges[0], Fraction(step))
    for charge in charges[1:]:
        together = together.composed(of_charge(*charge, Fraction(step)))
    for at in ("0", "0.05", "0.333", "0.6", "0.8999", "0.9", "2"):
        truth, found = exact_delta(charges, Fraction(at)), together.delta_at(Fraction(at))
        assert truth - HAIR <= found
        if step == "0.2":
            assert found <= truth + HAIR


def test_the_splitting_of_an_atom_keeps_both_sums() -> None:
    """P of the split atom is its mass, and Q too: that is why no profile falls below it."""
    epsilon, step = Fraction(1), Fraction("0.3")
    found = of_charge(epsilon, Fraction(0), step)
    assert [index for index, mass in enumerate(found.masses) if mass] == [0, 6, 7]
    under_q = Fraction(0)
    for index, mass in enumerate(found.masses):
        under_q += mass * exp_bounds(step * index)[0] / exp_bounds(epsilon)[0]
    assert abs(sum(found.masses) - UNIT) <= 3
    assert abs(under_q - UNIT) <= 20


@pytest.mark.parametrize(("epsilon", "delta"), CHARGES[:6])
def test_the_epsilon_at_a_delta_has_that_delta_and_is_the_least(epsilon: str, delta: str) -> None:
    charge = read(epsilon, delta)
    together = of_charge(*charge, 2 * charge[0] / 7).repeated(9)
    for wanted in (Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)):
        found = together.epsilon_at(wanted)
        if found is None:
            assert together.infinite > wanted * UNIT
            continue
        assert together.delta_at(found) <= wanted
        if found > 0:
            less = max(Fraction(0), found - Fraction(2, 10**12))
            assert together.delta_at(less) > wanted


def test_repeating_is_composing_one_by_one() -> None:
    one = of_charge(Fraction("0.3"), Fraction("0.001"), Fraction("0.04"))
    slowly = one
    for _ in range(12):
        slowly = slowly.composed(one)
    quickly = one.repeated(13)
    for at in map(Fraction, ("0", "0.7", "1.9", "3")):
        assert abs(slowly.delta_at(at) - quickly.delta_at(at)) < Fraction(1, 10**15)


def test_folded_mass_counts_as_the_worse() -> None:
    """What is folded at the top is taken for an infinite loss, at the bottom for the last one."""
    one = of_charge(Fraction(3), Fraction(0), Fraction(6))
    together = one.repeated(60)
    assert len(together.masses) < 61
    assert sum(together.masses) + together.infinite >= UNIT
    lonely = LossDistribution(Fraction(1), Fraction(5), (1, UNIT), 0)
    folded = lonely.composed(lonely)
    assert folded == LossDistribution(Fraction(1), Fraction(8), (UNIT,), 3)


def test_grids_that_differ_are_refused() -> None:
    one = of_charge(Fraction(1), Fraction(0), Fraction(1))
    with pytest.raises(ValueError, match="the grids differ: steps 1 and 2"):
        one.composed(of_charge(Fraction(1), Fraction(0), Fraction(2)))


def test_losses_on_their_own_grid_keep_their_least_masses() -> None:
    losses = LossDistribution(Fraction(1, 4), Fraction(1), (1, 2, UNIT - 4), 1)
    assert losses.regridded(Fraction(1, 4)) == losses


def test_nothing_together_loses_nothing() -> None:
    assert together([]).delta_at(Fraction(0)) == 0


def test_a_loss_far_above_epsilon_counts_with_its_mass_and_no_more() -> None:
    """What e^ε takes off a mass at a loss of 150 is below any unit of δ."""
    far = LossDistribution(Fraction(1), Fraction(150), (UNIT // 4, UNIT // 8), UNIT // 16)
    assert far.delta_at(Fraction(10)) == Fraction(7, 16)
