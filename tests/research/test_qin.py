"""The programs P1 and P2 of Qin et al. 2022."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from research.published.clamping import decay
from research.published.integer_pmf import IntegerPmf, theorem_1
from research.published.qin import (
    Input,
    distance,
    gaussian_input,
    poisson_input,
    relaxed_costs,
    solve_exact,
    solve_relaxed,
)
from research.table_v import quantised_laplace, staircase_noise

INPUTS = {"gaussian": gaussian_input(), "poisson": poisson_input()}
SETTINGS = [("2", 15), ("1/2", 15), ("4", 15), ("2", 5), ("1", 1)]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any),
    st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any),
    st.integers(-4, 4),
)
@settings(max_examples=100, deadline=None)
def test_the_distance_is_that_of_optimal_transport(
    given_: list[int], noise: list[int], low: int
) -> None:
    """Beside SciPy's, on laws that end."""
    x = Input(3, np.array(given_, dtype=float) / sum(given_))
    law = IntegerPmf.of(low, [Fraction(n) for n in noise])
    values = np.arange(3, 3 + len(given_))
    output = np.convolve(x.masses, np.array(noise) / sum(noise))
    expected = wasserstein_distance(
        values, np.arange(3 + low, 3 + low + output.size), x.masses, output
    )
    assert distance(x, law) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", INPUTS)
def test_the_printed_objective_does_not_know_the_input(name: str) -> None:
    """Σ_k |P_x(k) - P_x(k-i)| = |i|: so P2 minimises the mean size of the noise."""
    noises = np.arange(-40, 41)
    assert relaxed_costs(INPUTS[name], noises) == pytest.approx(np.abs(noises), abs=1e-9)


@pytest.mark.parametrize(("epsilon", "most"), SETTINGS)
def test_the_relaxed_law_is_the_same_staircase_for_every_input(epsilon: str, most: int) -> None:
    """And the optimum of the absolute loss, found here as a law on a ring far wider."""
    exact = Fraction(epsilon)
    found = [solve_relaxed(x, exact, most) for x in INPUTS.values()]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-7)
    size = 2 * most * math.ceil(30 / exact) + 1
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in range(1, most + 1)))
    loss = named_loss(LossName.ABSOLUTE, Topology.CYCLIC, size)
    ring = design(sensitivity, Guarantee(Definition.PURE, exact, Fraction(0)), loss)
    for one in found:
        assert one.objective == pytest.approx(float(ring.objective), rel=1e-5)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize(("epsilon", "most"), SETTINGS)
def test_the_exact_program_is_never_worse_than_any_other(
    name: str, epsilon: str, most: int
) -> None:
    given_, exact = INPUTS[name], Fraction(epsilon)
    best, relaxed = (solve(given_, exact, most) for solve in (solve_exact, solve_relaxed))
    for one in (best, relaxed):
        bound = theorem_1(one.noise, most)
        assert bound is not None
        assert bound <= exp_bounds(exact)[0]
    # The program counts tails to the end and leaves e^ε a ten-millionth.
    assert best.objective == pytest.approx(best.distance, rel=1e-5)
    rivals = [
        relaxed.noise,
        quantised_laplace(most / exact),
        staircase_noise(5, decay(exact / -(-most // 5))),
        staircase_noise(20, decay(exact / -(-most // 20))),
    ]
    for rival in rivals:
        assert best.distance <= distance(given_, rival) * (1 + 1e-6) + 1e-12


def test_what_the_exact_program_gains() -> None:
    """Nothing to seven digits at ε = 2, m = 15; a sixth of the distance at ε = 4."""
    x = INPUTS["gaussian"]
    for epsilon, gain in ((2, 0.0), (4, 0.164)):
        best, relaxed = (solve(x, Fraction(epsilon), 15) for solve in (solve_exact, solve_relaxed))
        assert 1 - best.distance / relaxed.distance == pytest.approx(gain, abs=1e-3)


def test_wider_windows_find_nothing_better() -> None:
    x, epsilon = INPUTS["poisson"], Fraction(4)
    narrow, wide = (solve_exact(x, epsilon, 15, reach) for reach in (None, 120))
    assert narrow.distance == pytest.approx(wide.distance, rel=1e-5)


@pytest.mark.parametrize(
    ("x", "epsilon", "most", "reach"),
    [
        (INPUTS["gaussian"], "19", 1, None),
        (INPUTS["gaussian"], "4", 15, 200),
        (INPUTS["poisson"], "1/50", 1, 60),
        (Input(0, np.array([0.5] + [0.0] * 84 + [0.5])), "1/10", 1, None),
    ],
)
def test_the_exact_program_at_its_ends(
    x: Input, epsilon: str, most: int, reach: int | None
) -> None:
    """Large and small ε, windows much wider than needed, an input with a gap."""
    best, relaxed = (
        solve(x, Fraction(epsilon), most, reach) for solve in (solve_exact, solve_relaxed)
    )
    bound = theorem_1(best.noise, most)
    assert bound is not None
    assert bound <= exp_bounds(Fraction(epsilon))[0]
    assert best.distance <= relaxed.distance
    assert best.objective == pytest.approx(best.distance, rel=1e-4, abs=2e-8)


def test_windows_and_arguments_out_of_range_are_refused() -> None:
    x = INPUTS["gaussian"]
    for epsilon, most, reach in (("1", 15, 3), ("1", 15, 0), ("1", 0, None), ("50", 1, None)):
        with pytest.raises(ValueError, match=r"window|epsilon"):
            solve_exact(x, Fraction(epsilon), most, reach)


def test_inputs_are_laws() -> None:
    wide = poisson_input(800.0)
    assert wide.masses @ np.arange(wide.masses.size) == pytest.approx(800, rel=1e-9)
    for x in INPUTS.values():
        assert x.masses.sum() == pytest.approx(1, abs=1e-12)
        assert x.at_most(np.array([x.low - 1, x.high, x.high + 5])) == pytest.approx([0, 1, 1])
    poisson = INPUTS["poisson"]
    assert poisson.masses @ np.arange(poisson.masses.size) == pytest.approx(5, abs=1e-9)
