"""Edges at which a law was once missed, refused or not found: each stays found and honest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from release.exact.domain import Group, Topology
from release.exact.losses import Loss, LossName, WorstCaseLoss, named_loss, table_loss, worst_case
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.cache import key_of
from release.noise.constraints import Constraint, equal_masses, zero_mean
from release.noise.design import Design
from release.noise.solve import _best_of, design
from tests.noise.caps import at_most

PURE, PROBABILISTIC, APPROXIMATE = Definition


def ring(size: int, *shifts: int, directed: bool = False) -> Sensitivity:
    return Sensitivity.of(Group((size,)), ((s,) for s in shifts), directed=directed)


def table(*costs: int) -> Loss:
    return table_loss(tuple(map(Fraction, costs)))


def promise(definition: Definition, epsilon: str, delta: Fraction | int = 0) -> Guarantee:
    return Guarantee(definition, Fraction(epsilon), Fraction(delta))


def made(
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    loss: Loss | WorstCaseLoss,
    constraints: Sequence[Constraint] = (),
) -> Design[Modular]:
    found = design(sensitivity, guarantee, loss, constraints)
    kept = deltas(found.mechanism.pmf, sensitivity, guarantee.epsilon).under(guarantee.definition)
    assert kept <= guarantee.delta
    assert found.lower_bound <= found.objective
    assert found.is_within()
    return found


def test_costs_of_nothing_where_the_closed_form_has_its_mass() -> None:
    assert made(ring(4, 2), promise(PURE, "1"), table(1, 0, 0, 0)).objective == 0
    assert made(ring(40, 7), promise(PURE, "1"), table(*[0] * 40)).objective == 0
    far = table(*[0 if not 80 <= i < 120 else 1 + i % 3 for i in range(200)])
    assert made(ring(200, 1), promise(PURE, "10"), far).objective < Fraction(1, 10**15)


def test_mass_that_lies_outside_the_first_window() -> None:
    costs = "2131303330022113330103221122202333310133"
    found = made(ring(40, 33, directed=True), promise(PURE, "3"), table(*map(int, costs)))
    assert float(found.objective) == pytest.approx(0.005080331981, abs=1e-12)


@pytest.mark.parametrize(("size", "epsilon", "power"), [(5, "1", 18), (3, "3", 20), (5, "1", 30)])
def test_deltas_near_what_a_solver_cannot_see(size: int, epsilon: str, power: int) -> None:
    loss = named_loss(LossName.SQUARED, Topology.ORDERED, size)
    found = made(ring(size, 1), promise(APPROXIMATE, epsilon, Fraction(1, 10**power)), loss)
    assert found.bound_proved


@pytest.mark.parametrize("definition", [PROBABILISTIC, APPROXIMATE])
def test_a_delta_below_every_float_buys_nothing(definition: Definition) -> None:
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 5)
    tiny = made(ring(5, 1), promise(definition, "1", Fraction(1, 10**330)), loss)
    assert tiny.mechanism.pmf == made(ring(5, 1), promise(PURE, "1"), loss).mechanism.pmf


def test_no_differences_under_every_definition_and_demand() -> None:
    cheapest = made(ring(5), promise(PURE, "1"), table(5, 0, 10**12, 10**12, 10**12))
    assert cheapest.objective == 0
    squared = worst_case(LossName.SQUARED, Topology.ORDERED, 5)
    half = promise(PROBABILISTIC, "1", Fraction(1, 2))
    assert made(ring(5), half, squared).objective == 0
    third = at_most(Group((5,)), [(0,)], Fraction(1, 3))
    error_rate = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 5)
    found = made(ring(5), half, error_rate, [third])
    assert float(found.objective) == pytest.approx(2 / 3)


@pytest.mark.parametrize("epsilon", ["30", "60", "100"])
@pytest.mark.parametrize("name", [LossName.ERROR_RATE, LossName.SQUARED])
def test_closed_forms_stay_sharp_where_errors_are_rare(name: LossName, epsilon: str) -> None:
    """Losses down to 10⁻⁴³ need more bits than 62."""
    found = made(ring(9, 1, 2), promise(PURE, epsilon), named_loss(name, Topology.CYCLIC, 9))
    assert found.gap <= found.objective / 10**9
    assert found.bound_proved


@pytest.mark.parametrize("epsilon", ["15", "20", "30"])
def test_levels_end_where_masses_are_smaller_than_their_unit(epsilon: str) -> None:
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 8)
    made(ring(8, 1), promise(PROBABILISTIC, epsilon, Fraction(1, 100)), loss)


def test_a_pattern_next_to_the_one_that_a_search_believed() -> None:
    """ε = 5, δ = 0.01: the search ends at 0.0200125, one constraint away from the optimum."""
    asked = promise(PROBABILISTIC, "5", Fraction(1, 100))
    found = made(ring(6, 1, 2, directed=True), asked, table(0, 4, 2, 3, 0, 3))
    assert float(found.objective) == pytest.approx(0.0200116242637, abs=1e-11)


def test_a_bound_that_the_other_way_refutes_does_not_stand() -> None:
    """Of two ways the better law and the higher bound it leaves standing, each with its word."""
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 5)
    one = made(ring(5, 1), promise(PURE, "1"), loss)
    wrong = replace(
        one,
        objective=one.objective * 2,
        lower_bound=one.objective * 3 / 2,
        bound_proved=False,
    )
    for best in (_best_of(one, wrong), _best_of(wrong, one)):
        assert (best.objective, best.lower_bound) == (one.objective, one.lower_bound)
        assert best.bound_proved
    low = replace(one, lower_bound=one.lower_bound / 2)
    word = replace(wrong, lower_bound=one.lower_bound * 3 / 4)
    best = _best_of(low, word)
    assert (best.objective, best.lower_bound) == (one.objective, word.lower_bound)
    assert not best.bound_proved


def test_demands_that_move_the_mode() -> None:
    """A cap at zero under ε = 20: the mass lies where the closed form has next to none."""
    cap = at_most(Group((4,)), [(0,)], Fraction(1, 50))
    squared = worst_case(LossName.SQUARED, Topology.ORDERED, 4)
    assert float(made(ring(4, 1), promise(PURE, "20"), squared, [cap]).objective) == pytest.approx(
        3.92, abs=1e-6
    )
    group = Group((13,))
    demands = [zero_mean(group), at_most(group, [(0,)], Fraction(1, 4))]
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 13)
    made(ring(13, 2, 12, directed=True), promise(PURE, "20"), loss, demands)


def test_demands_that_leave_no_pure_law() -> None:
    group = Group((2, 2, 2))
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 8)
    half = promise(APPROXIMATE, "20", Fraction(1, 2))
    same = equal_masses(group, [(0, 0, 0), (0, 0, 1)])
    found = made(Sensitivity.everything(group), half, loss, same)
    assert float(found.objective) == pytest.approx(0.5, abs=1e-6)


def test_a_repeated_element_is_equal_to_itself() -> None:
    assert equal_masses(Group((5,)), [(1,), (1,)]) == ()
    assert len(equal_masses(Group((5,)), [(1,), (2,), (1,)])) == 1


def test_differences_of_numpy_integers_are_those_of_python() -> None:
    group = Group((5,))
    numbers = Sensitivity.of(group, [(np.int64(1),)])  # type: ignore[list-item] # on purpose
    assert numbers == ring(5, 1)
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 5)
    asked = (promise(PURE, "1"), loss, (), Fraction(1))
    assert key_of(numbers, *asked) == key_of(ring(5, 1), *asked)
