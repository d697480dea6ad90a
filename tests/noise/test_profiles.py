"""The search of profiles: brute force, the papers' values, CP-SAT, and what it must refuse."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.closed_form import pure_pmf
from release.noise.solvers.levels import masses_of_levels, pmf_of_levels
from release.noise.solvers.problem import Problem
from release.noise.solvers.profiles.labels import best_profile
from release.noise.solvers.profiles.line import Line, line_of
from release.noise.solvers.profiles.prices import UNIT, around, best_price, rests
from release.noise.solvers.profiles.search import Proof, search_profiles
from release.noise.solvers.program import Work

GAP = Fraction(1, 10**6)


def problem(
    size: int, shifts: list[int], epsilon: str, delta: str, *, directed: bool = False
) -> Problem:
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts), directed=directed)
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    loss = named_loss(LossName.ERROR_RATE, Topology.CYCLIC, size)
    return Problem.of(sensitivity, guarantee, loss)


def proof(asked: Problem, work: float = 1e9) -> Proof | None:
    start = pure_pmf(asked.group, asked.steps, asked.exact_ratio)
    return search_profiles(asked, start, Work(work), GAP)


def a_line(asked: Problem, depth: int, fixed: int = 1) -> Line:
    masses = masses_of_levels(asked.guarantee.epsilon, 64)[:depth]
    line = line_of(asked.sensitivity, asked.steps, asked.guarantee.delta, masses, fixed)
    assert line is not None
    return line


def all_profiles(line: Line) -> list[tuple[int, list[int]]]:
    """Mass, and what each step gives up, of every profile of a ring: definition, not program."""
    found = []
    for levels in itertools.product(*(own.tolist() for own in line.levels)):
        mass = sum(int(line.masses[level]) for level in levels)
        given = [
            sum(
                int(line.masses[level])
                for element, level in enumerate(levels)
                if levels[(element + step) % line.ring] > level + 1
            )
            for step in line.steps
        ]
        found.append((mass, given))
    return found


SMALL = [
    (11, [1], "1", "0.2", 4),
    (10, [1], "0.5", "0.15", 4),
    (11, [1, 2], "1", "0.1", 3),
    (12, [1, 2], "0.75", "0.12", 3),
]


@pytest.mark.parametrize(("size", "shifts", "epsilon", "delta", "depth"), SMALL)
def test_the_search_finds_the_least_of_all_profiles(
    size: int, shifts: list[int], epsilon: str, delta: str, depth: int
) -> None:
    line = a_line(problem(size, shifts, epsilon, delta), depth)
    tables = around(line, best_price(line, UNIT), 1e7)
    everything = all_profiles(line)
    least = min(max(mass, int(max(given) / line.delta)) for mass, given in everything)
    assert line.ring <= size
    profile, ended = best_profile(line, 2 * least, tables, Work())
    assert ended
    assert profile is not None
    assert abs(profile.least - least) <= 1
    # Below the least there is nothing.
    below, ended = best_profile(line, least - 2, tables, Work())
    assert ended
    assert below is None or below.least > least - 2


@pytest.mark.parametrize(("size", "shifts", "epsilon", "delta", "depth"), SMALL)
@pytest.mark.parametrize("seed", range(3))
def test_prices_bound_every_profile(
    size: int, shifts: list[int], epsilon: str, delta: str, depth: int, seed: int
) -> None:
    """Statement 1, for any prices: no profile is below, and one attains the dynamic program's."""
    line = a_line(problem(size, shifts, epsilon, delta), depth)
    numbers = np.random.default_rng(seed)
    prices = tuple(int(p) for p in numbers.integers(0, 3 * UNIT, len(line.steps)))
    paid = [
        mass * UNIT + sum(map(int.__mul__, prices, given)) for mass, given in all_profiles(line)
    ]
    bound = rests(line, prices).least * (UNIT + line.delta * sum(prices))
    assert bound == min(paid)


@pytest.mark.parametrize(
    ("size", "shifts", "epsilon", "delta", "top"),
    [
        (33, [1, 2, 3], "1", "0.01", 1 - 0.774845),
        (33, [1, 2, 3], "1", "0.1", 1 - 0.752138),
        (33, [1, 2, 3], "2", "0.1", 1 - 0.469573),
    ],
)
def test_the_values_of_other_programs_are_proved(
    size: int, shifts: list[int], epsilon: str, delta: str, top: float
) -> None:
    """docs/design/mathematics.md, "Price of the definitions", by big-M and level programs."""
    asked = problem(size, shifts, epsilon, delta)
    proved = proof(asked)
    assert proved is not None
    assert float(proved.pmf.mass(0)) == pytest.approx(top, abs=1e-6)
    assert proved.finished
    assert proved.pmf.mass(0) <= proved.highest_mode
    assert proved.highest_mode - proved.pmf.mass(0) < Fraction(1, 10**6)
    kept = deltas(proved.pmf, asked.sensitivity, asked.guarantee.epsilon).probabilistic
    assert kept <= asked.guarantee.delta


def test_a_ring_that_its_sides_meet_in_is_no_mirror() -> None:
    """The levels reach around a small ring, so both sides are searched as one line."""
    asked = problem(15, [1, 2], "0.5", "0.1")
    line = a_line(asked, 6)
    assert not line.apart
    assert line.ring == 15
    proved = proof(asked)
    assert proved is not None
    made = design(asked.sensitivity, asked.guarantee, asked.loss)
    assert float(proved.pmf.mass(0)) == pytest.approx(1 - float(made.objective), abs=1e-8)


def test_large_rings_cost_what_small_ones_do() -> None:
    first, second = Work(), Work()
    for size, work in ((1_001, first), (100_000, second)):
        asked = problem(size, [1, 2, 3], "1", "0.1")
        start = pure_pmf(asked.group, asked.steps, asked.exact_ratio)
        proved = search_profiles(asked, start, work, GAP)
        assert proved is not None
        assert float(proved.pmf.mass(0)) == pytest.approx(0.2478619, abs=1e-7)
    assert first.done == second.done


def test_what_the_line_does_not_fit_is_refused() -> None:
    """A product, a one-sided set, elements around zero with unknown levels, no work."""
    pairs = Sensitivity.of(Group((5, 7)), [(0, 1), (1, 0)])
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(1, 10))
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 35)
    assert proof(Problem.of(pairs, guarantee, loss)) is None
    assert proof(problem(21, [1, 2], "1", "0.1", directed=True)) is None
    assert proof(problem(101, [1, 3, 5, 6], "1", "0.1")) is None
    assert proof(problem(101, [1, 2, 3], "1", "0.1"), work=10.0) is None


def test_a_search_without_work_left_keeps_its_bound() -> None:
    """A limit between the first depth and the last leaves a bound that is valid and not sharp."""
    asked = problem(101, [1, 2, 3], "1", "0.1")
    partial = proof(asked, work=2e6)
    assert partial is not None
    assert not partial.finished
    assert Fraction(2478619, 10**7) < partial.highest_mode < 1


def test_a_designed_law_is_proved_and_not_changed_by_its_proof() -> None:
    asked = problem(25, [1, 2], "1", "0.05")
    made = design(asked.sensitivity, asked.guarantee, asked.loss)
    assert made.method == "levels"
    assert made.bound_proved
    assert made.notes == ()
    assert made.lower_bound <= made.objective
    proved = proof(asked)
    assert proved is not None
    assert float(proved.highest_mode) == pytest.approx(1 - float(made.lower_bound), abs=1e-9)


def test_weights_of_levels_fill_the_whole() -> None:
    """Long flat tails are counted together: the integers still add up, and none is too large."""
    asked = problem(4_001, [1, 2], "0.05", "0.01")
    pmf = pmf_of_levels(asked, asked.steps)
    assert sum(pmf.weights.tolist()) == pmf.total
    kept = deltas(pmf, asked.sensitivity, asked.guarantee.epsilon).probabilistic
    assert kept <= asked.guarantee.delta
