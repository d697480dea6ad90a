"""A solver that is wrong, and says it is right: repaired or refused, never published."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from release.errors import DesignError
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers import program, refine
from release.noise.solvers.linear import solve_linear
from release.noise.solvers.problem import Problem
from release.noise.solvers.window import Window

EPSILON, DELTA = Fraction(10), Fraction(1, 10**10)
DIFFERENCES = Sensitivity.of(Group((25,)), [(1,), (3,)])
SQUARED = named_loss(LossName.SQUARED, Topology.CYCLIC, 25)


def rounded(masses: np.ndarray) -> Pmf:
    """What a program would publish that believes its solver."""
    weights = [max(0, int(mass) * 2**62 >> refine.PLACES) for mass in masses.tolist()]
    weights[0] += 2**62 - sum(weights)
    return Pmf.of(DIFFERENCES.group, weights)


@pytest.mark.parametrize("definition", [Definition.PURE, Definition.APPROXIMATE])
def test_a_law_within_tolerance_only_is_repaired(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ε = 10, δ = 10⁻¹⁰, tolerance 10⁻⁴, one round: "optimal", and the promise broken."""
    delta = Fraction(0) if definition is Definition.PURE else DELTA
    guarantee = Guarantee(definition, EPSILON, delta)
    best = design(DIFFERENCES, guarantee, SQUARED)
    monkeypatch.setattr(refine, "_TOLERANCES", (1e-4, 1e-4))
    monkeypatch.setattr(refine, "_ROUNDS", 1)
    problem = Problem.of(DIFFERENCES, guarantee, SQUARED)
    suggestion = solve_linear(Window.all_of(problem), delta)
    assert suggestion is not None
    believed = deltas(rounded(suggestion.masses), DIFFERENCES, EPSILON)
    assert believed.under(definition) > delta
    made = design(DIFFERENCES, guarantee, SQUARED)
    assert deltas(made.mechanism.pmf, DIFFERENCES, EPSILON).under(definition) <= delta
    assert best.lower_bound <= made.objective
    assert made.lower_bound <= best.objective


def zero_only(asked: program.Program, *_: Any, **__: Any) -> program.Solution:
    """All mass on the truth, and "optimal"."""
    values = np.zeros(asked.cost.size)
    values[0] = 1.0
    return program.Solution(values, np.zeros(asked.limit.size), 0.0, 0.0, True, "liar")


@pytest.mark.parametrize("definition", list(Definition))
def test_a_solver_that_publishes_the_truth_is_not_believed(
    definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = Fraction(0) if definition is Definition.PURE else DELTA
    guarantee = Guarantee(definition, EPSILON, delta)
    for module in ("refine", "integer"):
        monkeypatch.setattr(f"release.noise.solvers.{module}.solve", zero_only)
    made = design(DIFFERENCES, guarantee, SQUARED)
    assert deltas(made.mechanism.pmf, DIFFERENCES, EPSILON).under(definition) <= delta
    assert made.mechanism.pmf.mass(0) < 1
    monkeypatch.undo()
    assert made.lower_bound <= design(DIFFERENCES, guarantee, SQUARED).objective


def test_a_solver_that_finds_nothing_leaves_the_safe_law_with_an_honest_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("release.noise.solvers.refine.solve", lambda *_, **__: None)
    guarantee = Guarantee(Definition.APPROXIMATE, EPSILON, DELTA)
    made = design(DIFFERENCES, guarantee, SQUARED)
    assert deltas(made.mechanism.pmf, DIFFERENCES, EPSILON).probabilistic == 0
    assert made.lower_bound == 0
    assert not made.is_within()


def test_a_law_that_cannot_be_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the repair itself were broken."""

    def broken(group: Group, *_: Any) -> Pmf:
        return Pmf.of(group, [2**62] + [0] * (group.size - 1))

    monkeypatch.setattr("release.noise.solve.pure_law", broken)
    error_rate = named_loss(LossName.ERROR_RATE, Topology.CYCLIC, 25)
    with pytest.raises(DesignError, match="does not keep the pure"):
        design(DIFFERENCES, Guarantee(Definition.PURE, EPSILON, Fraction(0)), error_rate)
