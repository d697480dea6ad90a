"""One privacy-loss distribution: never below the truth, and hardly above it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.composition.distribution import FOLDED, UNIT, LossDistribution, of_charge
from release.exact.composition.together import together
from release.exact.numbers import exp_bounds
from tests.exact.composition.exponential import exponential

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


STEPS = st.sampled_from(list(map(Fraction, ("1/7", "1/2", "1", "5/2", "40", "150"))))
MASSES = st.lists(st.integers(0, 3) | st.integers(0, UNIT // 8), min_size=1, max_size=6)
LOSSES = st.builds(
    LossDistribution,
    step=STEPS,
    highest=st.fractions(-3, 60, max_denominator=8),
    masses=MASSES.map(tuple),
    infinite=st.integers(0, 3) | st.integers(0, UNIT // 4),
)


def standing_for(losses: LossDistribution, epsilon: Fraction) -> Fraction:
    """δ at ``epsilon`` as the module defines it, in units of 1/UNIT."""
    total = Fraction(losses.infinite)
    for place, mass in enumerate(losses.masses):
        loss = losses.highest - place * losses.step
        total += max(Fraction(0), mass * (1 - exponential(epsilon - loss)))
    return total


@given(LOSSES, st.fractions(0, 70, max_denominator=8))
def test_delta_is_that_of_the_definition_rounded_up(
    losses: LossDistribution, epsilon: Fraction
) -> None:
    """Each mass on the way is rounded by a unit at most."""
    truth, found = standing_for(losses, epsilon), losses.delta_at(epsilon) * UNIT
    assert min(Fraction(UNIT), truth) <= found
    assert found <= truth + len(losses.masses)


@given(LOSSES, st.fractions(0, 4) | st.fractions(0, UNIT, max_denominator=1))
@settings(max_examples=50)
def test_the_epsilon_that_is_read_has_at_most_that_delta(
    losses: LossDistribution, units: Fraction
) -> None:
    """Also where masses of a few units make the rounding of each a large part of δ."""
    found = losses.epsilon_at(units / UNIT)
    assert (found is None) == (losses.infinite > units)
    if found is None:
        return
    assert found >= 0
    assert (found * 10**12).denominator == 1
    assert standing_for(losses, found) <= units
    if found > 0:
        less = max(Fraction(0), found - Fraction(2, 10**12))
        assert standing_for(losses, less) + len(losses.masses) > units


def test_no_delta_beyond_that_of_an_infinite_loss_is_needed_at_the_largest_loss() -> None:
    """The logarithm of 1 adds nothing, not even one of the last decimal place."""
    assert of_charge(Fraction(1), Fraction(0), Fraction(2)).epsilon_at(Fraction(0)) == 1
    assert of_charge(Fraction(1), Fraction("0.1"), Fraction(2)).epsilon_at(Fraction("0.1")) == 1


def test_the_mass_below_counts_from_its_own_loss_on() -> None:
    """Of two units at a loss of 5 a tenth more than δ is left; there, at 4, the others begin."""
    losses = LossDistribution(Fraction(1), Fraction(5), (2, UNIT - 2), 0)
    assert losses.epsilon_at(Fraction(19, 10 * UNIT)) == 4


@pytest.mark.parametrize("units", [Fraction(1, 2), Fraction(1)])
def test_the_last_unit_of_delta_is_not_given_away(units: Fraction) -> None:
    """(1 - e^(ε - 50)) of two units: what they have above δ is a unit or one and a half."""
    losses = LossDistribution(Fraction(1), Fraction(50), (2,), 0)
    found = losses.epsilon_at(units / UNIT)
    assert found is not None
    assert standing_for(losses, found) <= units
    assert standing_for(losses, found - Fraction(2, 10**12)) > units


@pytest.mark.parametrize("distance", [1, 3, 10, 30])
def test_far_below_all_losses_epsilon_is_one_logarithm_away(distance: int) -> None:
    """δ = ½·(1 - e^-d) is that of half of the mass at a distance of d, however short the step."""
    losses = LossDistribution(Fraction(1), Fraction(50), (UNIT // 2,), 0)
    found = losses.epsilon_at((1 - exponential(Fraction(-distance))) / 2)
    assert found is not None
    assert 0 <= found - (50 - distance) <= Fraction(1, 10**12)


def test_as_much_delta_as_there_is_mass_needs_no_epsilon() -> None:
    losses = LossDistribution(Fraction(1), Fraction(90), (UNIT // 2, UNIT // 4), UNIT // 8)
    assert losses.epsilon_at(Fraction(7, 8)) == 0
    less = losses.epsilon_at(Fraction(7, 8) - Fraction(1, UNIT))
    assert less is not None
    assert less > 25


def test_losses_below_0_need_no_epsilon() -> None:
    losses = LossDistribution(Fraction(1), Fraction(-1), (UNIT // 2,), 3)
    assert losses.epsilon_at(Fraction(4, UNIT)) == 0


AMOUNTS = st.sampled_from([0, 1, FOLDED // 2, FOLDED - 1, FOLDED, FOLDED + 1, UNIT // 8])


@given(
    st.lists(AMOUNTS, min_size=1, max_size=6),
    st.lists(AMOUNTS | st.integers(0, UNIT // 4), min_size=1, max_size=3) | st.just([UNIT]),
    st.integers(0, UNIT // 8),
    st.integers(0, UNIT // 8),
)
def test_a_product_is_that_of_the_format(
    first: list[int], second: list[int], infinite: int, other: int
) -> None:
    """Section 5.3.1 of the format fixes every digit of the masses, and what is folded."""
    masses = [0] * (len(first) + len(second) - 1)
    for (place, mass), (further, beside) in product(enumerate(first), enumerate(second)):
        masses[place + further] += mass * beside
    masses = [ceil(Fraction(mass, UNIT)) for mass in masses]
    beyond = ceil(Fraction(infinite * (sum(second) + other) + other * sum(first), UNIT))
    ends = range(len(masses))
    start = max(place for place in ends if sum(masses[:place]) <= FOLDED)
    last = min(place for place in ends if place >= start and sum(masses[place + 1 :]) <= FOLDED)
    kept = masses[start : last + 1]
    kept[-1] += sum(masses[last + 1 :])
    step, highest = Fraction(1, 3), Fraction(2)
    one = LossDistribution(step, highest, tuple(first), infinite)
    found = one.composed(LossDistribution(step, Fraction(1), tuple(second), other))
    expected = beyond + sum(masses[:start])
    assert found == LossDistribution(step, 3 - start * step, tuple(kept), expected)


def test_units_and_what_is_folded_are_those_of_the_format() -> None:
    """10⁶ parts of 10²⁸ go from either end, and one part more stays."""
    step, whole = Fraction(1), 10**28
    one = LossDistribution(step, Fraction(0), (whole,), 0)
    for more in (0, 1):
        masses = (10**6 + more, whole // 2, 10**6 + more)
        found = one.composed(LossDistribution(step, Fraction(3), masses, 7))
        if more:
            assert found == LossDistribution(step, Fraction(3), masses, 7)
        else:
            assert found == LossDistribution(step, Fraction(2), (whole // 2 + 10**6,), 10**6 + 7)


def test_masses_of_more_than_1_in_all_have_a_delta_of_1() -> None:
    losses = LossDistribution(Fraction(1), Fraction(90), (UNIT // 2, UNIT // 2), UNIT // 8)
    assert losses.delta_at(Fraction(0)) == 1


def divided(atoms: dict[Fraction, Fraction], step: Fraction) -> dict[Fraction, Fraction]:
    """Each atom on the two losses of the grid around it, such that P and Q keep their sums."""
    found: dict[Fraction, Fraction] = {}
    for loss, mass in atoms.items():
        above = ceil(loss / step) * step
        far = (exponential(above - loss) - 1) / (exponential(step) - 1)
        for place, share in ((above, 1 - far), (above - step, far)):
            found[place] = found.get(place, Fraction(0)) + mass * share
    return {place: mass for place, mass in found.items() if mass > 0}


def assert_rounded_up(found: LossDistribution, expected: dict[Fraction, Fraction]) -> None:
    """Each mass at its loss, by less than two units above."""
    masses = {}
    for place, mass in enumerate(found.masses):
        if mass:
            masses[found.highest - place * found.step] = mass
    assert masses.keys() == expected.keys()
    for loss, mass in masses.items():
        assert expected[loss] <= mass < expected[loss] + 2


@given(
    st.lists(st.integers(10**20, UNIT // 8), min_size=1, max_size=6),
    st.fractions(-3, 5, max_denominator=8),
    st.sampled_from(list(map(Fraction, ("1/7", "1/2", "1")))),
    st.sampled_from(list(map(Fraction, ("1/7", "1/3", "1", "9/4", "6")))),
)
def test_a_new_grid_keeps_both_sums_of_every_atom(
    masses: list[int], highest: Fraction, step: Fraction, coarse: Fraction
) -> None:
    atoms = {highest - place * step: Fraction(mass) for place, mass in enumerate(masses)}
    found = LossDistribution(step, highest, tuple(masses), 7).regridded(coarse)
    assert (found.step, found.infinite) == (coarse, 7)
    assert (found.highest / coarse).denominator == 1
    assert_rounded_up(found, divided(atoms, coarse))


@pytest.mark.parametrize("delta", ["0", "1/3", "0.01"])
@pytest.mark.parametrize(
    ("epsilon", "step"),
    [("1", "1"), ("1", "2"), ("1", "3"), ("1/3", "1/7"), ("5", "3/2"), ("3", "4")],
)
def test_a_charge_has_two_atoms_rounded_up(epsilon: str, step: str, delta: str) -> None:
    loss, part, grid = Fraction(epsilon), Fraction(delta), Fraction(step)
    ratio, intact = exponential(loss), (1 - part) * UNIT
    # The losses of the grid lie at ε less its multiples.
    lower = divided({-2 * loss: intact / (1 + ratio)}, grid)
    expected = {loss + place: mass for place, mass in lower.items() if mass >= FOLDED}
    expected[loss] = expected.get(loss, Fraction(0)) + intact * ratio / (1 + ratio)
    found = of_charge(loss, part, grid)
    assert_rounded_up(found, expected)
    assert found.infinite == ceil(part * UNIT)


@pytest.mark.parametrize("delta", ["1", "3"])
def test_a_charge_without_privacy_is_an_infinite_loss_alone(delta: str) -> None:
    found = of_charge(Fraction(1), Fraction(delta), Fraction(1))
    assert (found.masses, found.infinite) == ((0,), UNIT)


@pytest.mark.parametrize(("epsilon", "step"), [("1.75e-45", "1e-45"), ("60", "150")])
def test_without_bounds_of_a_step_an_atom_stays_whole_at_the_larger_loss(
    epsilon: str, step: str
) -> None:
    """Bounds of e^step to 40 decimals do not tell so short a step from 0, and end at 100."""
    loss, grid = Fraction(epsilon), Fraction(step)
    found = of_charge(loss, Fraction(0), grid)
    places = 2 * loss // grid
    ratio = exp_bounds(loss)
    assert sum(found.masses) + found.infinite <= UNIT + 2
    lower = ceil(UNIT / (1 + ratio[0]))
    if places:
        assert found.masses[places] == lower
    assert found.masses[0] == ceil(UNIT * ratio[1] / (1 + ratio[1])) + (0 if places else lower)


def test_the_longest_step_that_divides_an_atom_is_100() -> None:
    losses = LossDistribution(Fraction(1), Fraction(1), (UNIT // 4,), 0)
    assert_rounded_up(
        losses.regridded(Fraction(100)), divided({Fraction(1): Fraction(UNIT, 4)}, Fraction(100))
    )
    longer = losses.regridded(Fraction(101))
    assert longer == LossDistribution(Fraction(101), Fraction(101), (UNIT // 4,), 0)


def test_no_more_than_an_atom_goes_to_either_loss() -> None:
    """Also on so short a grid that the bounds of e^step are far apart in proportion."""
    whole = LossDistribution(Fraction(1), Fraction(0), (UNIT // 4,), 0)
    unit = Fraction(1, 10**40)
    for tenths in range(1, 30):
        off = LossDistribution(Fraction(1), -tenths * unit / 10, whole.masses, 0)
        found = off.regridded(3 * unit)
        assert max(found.masses) <= UNIT // 4
        assert sum(found.masses) >= UNIT // 4


def test_grids_of_huge_steps_have_no_mass_beside_the_nearest() -> None:
    """e^-150 of a mass is no part of a unit: nothing is rounded but e^ε."""
    losses = LossDistribution(Fraction(150), Fraction(160), (UNIT // 4, UNIT // 8), 0)
    found = losses.delta_at(Fraction(3)) * UNIT
    assert 0 <= found - standing_for(losses, Fraction(3)) < Fraction(1, 10**6)


@pytest.mark.parametrize("step", ["1/1000", "1/7", "1/2", "1", "3", "20"])
def test_the_factor_of_a_step_is_a_lower_bound(step: str) -> None:
    """A larger one would take too much off the masses above, and δ would lie too low."""
    loss = Fraction(step)
    factor = LossDistribution(loss, loss, (UNIT,), 0)._below()
    exact = 10**40 * exponential(-loss)
    assert exact - 2 < factor <= exact
