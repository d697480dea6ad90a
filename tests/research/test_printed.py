"""The closed forms of Kadam et al. 2024, printed and corrected, beside programs and enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Floats
from research.kadam.errata import BOUNDED, SINGLE, deltas_of, disagreements
from research.printed import (
    GOLDEN,
    Form,
    bd_delta,
    bd_limit,
    bd_regions,
    bd_section_mode,
    bounded_difference,
    orbit,
    sd_breaks,
    sd_delta,
    sd_limit,
    sd_section_limit,
    single_distance,
)
from research.verbatim import Indicators, solve_verbatim

EPSILONS = [0.25, 0.5, 0.75, 1.0, 1.5, 2.5]
TIE = 1 + 1e-11


def delta_of(law: Floats, steps: list[int], epsilon: float) -> float:
    """The probabilistic δ per difference, in floats."""
    heads = [np.roll(law, -step) for step in steps]
    return max(float(law[law > math.exp(epsilon) * TIE * head + 1e-15].sum()) for head in heads)


def shared_delta(law: Floats, steps: list[int], epsilon: float) -> float:
    """δ with one indicator for all differences: the mass that any of them violates."""
    violated = np.zeros(law.size, dtype=bool)
    for step in steps:
        violated |= law > math.exp(epsilon) * TIE * np.roll(law, -step) + 1e-15
    return float(law[violated].sum())


def best_by_enumeration(size: int, step: int, epsilon: float, delta: float) -> float:
    """The highest f(0) for the one difference: every choice of constraints to give up.

    With a choice made, every mass is at least e^{-ε} times the one before on the orbit unless that
    edge is given up; f(0) is at most 1/S, and at most δ over the mass of the tails given up.
    """
    length, best = size // math.gcd(size, step), 0.0
    for given_up in itertools.product((False, True), repeat=length):
        # Along the orbit 0, μ, 2μ, …: the lower bound restarts at 0 behind an edge given up.
        masses, last = [1.0], 1.0
        for edge in range(length - 1):
            last = 0.0 if given_up[edge] else last * math.exp(-epsilon)
            masses.append(last)
        tails = sum(m for m, gone in zip(masses, given_up, strict=True) if gone)
        best = max(best, min(1 / sum(masses), delta / tails if tails else math.inf))
    return best


def test_theorem_2_corrected_is_optimal_over_a_grid() -> None:
    """360 settings: feasible, adds up to 1, and f(0) as found by trying every choice."""
    assert len(SINGLE) == 360
    for n, step, epsilon, delta in SINGLE:
        law = single_distance(n, step, epsilon, delta)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert law.min() >= 0
        assert delta_of(law, [step], epsilon) <= delta + 1e-12
        best = best_by_enumeration(n + 1, step, epsilon, delta)
        assert law[0] == pytest.approx(best, abs=1e-9), (n, step, epsilon, delta)


def test_theorem_2_printed_is_wrong_only_where_the_difference_does_not_generate() -> None:
    """Erratum 4: with N_μ̂ for n the masses do not add up to 1."""
    for n, step, epsilon, delta in SINGLE:
        printed = single_distance(n, step, epsilon, delta, Form.PRINTED)
        corrected = single_distance(n, step, epsilon, delta)
        whole = orbit(n, step) == n + 1
        assert (abs(printed.sum() - 1) < 1e-9 and np.allclose(printed, corrected)) or not whole
        if not whole and delta == 0:
            assert printed.sum() < 1 - 1e-5
    assert single_distance(7, 2, 0.25, 0.0, Form.PRINTED).sum() == pytest.approx(0.886, abs=5e-4)


@pytest.mark.parametrize("step", [2, 3])
def test_the_laws_of_figure_9(step: int) -> None:
    """For n = 7, ε = 0.75, δ = 0, .05, .1, .2, .3, .4: f(0) by other programs."""
    known = {
        3: [0.528945, 0.540341, 0.555279, 0.589798, 0.635100, 0.679179],
        2: [0.555279, 0.555279, 0.555279, 0.589798, 0.635100, 0.679179],
    }[step]
    found = [single_distance(7, step, 0.75, d)[0] for d in (0, 0.05, 0.1, 0.2, 0.3, 0.4)]
    assert found == pytest.approx(known, abs=1e-6)


def test_corollary_1_inverts_theorem_2() -> None:
    """The least δ for an error rate: with it the rate is reached, and with less it is not."""
    for n, step, epsilon in itertools.product((4, 7, 9), (1, 3), EPSILONS):
        for rate in (0.05, 0.2, 0.35, 0.5, 0.62):
            delta = sd_delta(n, step, epsilon, rate)
            assert single_distance(n, step, epsilon, delta)[0] >= 1 - rate - 1e-12
            if delta > 0:
                assert single_distance(n, step, epsilon, delta * (1 - 1e-6))[0] < 1 - rate


def test_the_stretches_meet() -> None:
    for n, epsilon in itertools.product((1, 4, 9), EPSILONS):
        breaks = sd_breaks(n, epsilon)
        assert breaks[0][0] == 0
        assert breaks[-1][1] == 1
        ends = list(itertools.chain.from_iterable(breaks))
        assert ends == sorted(ends)
        for _, end in breaks[:-1]:
            before, after = (single_distance(n, 1, epsilon, end + s)[0] for s in (-1e-14, 1e-14))
            assert before == pytest.approx(after, abs=1e-4)


def program_optimum(n: int, steps: list[int], epsilon: float, delta: float) -> float:
    """(13) as printed with one shared indicator: the pattern by search, f(0) by a sharp program."""
    size = n + 1
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in steps), directed=True)
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, size)
    found = solve_verbatim(Problem.of(sensitivity, guarantee, loss), Indicators.SHARED, 60)
    assert found is not None
    assert found.finished
    # What the search proved bounds what any pattern can reach, up to its own tolerance; which
    # constraints it has given up is told from its masses, up to a tolerance of its too.
    sharp = [_sharp(found.masses, steps, epsilon, delta, slack) for slack in (1e-7, 1e-6, 1e-5)]
    best = max((one for one in sharp if one is not None), default=-1.0)
    assert best == pytest.approx(1 - found.objective, abs=2e-6)
    return best


def _sharp(
    masses: Floats, steps: list[int], epsilon: float, delta: float, slack: float
) -> float | None:
    """The highest f(0) with the constraints that ``masses`` give up; None where there is none."""
    size, ratio, rows = masses.size, math.exp(epsilon), []
    given_up = [
        delta > 0 and any(masses[e] > ratio * masses[(e + s) % size] + slack for s in steps)
        for e in range(size)
    ]
    for e, s in itertools.product(range(size), steps):
        row = np.zeros(size)
        row[e], row[(e + s) % size] = 1, -ratio
        rows.append(-row if given_up[e] else row)
    rows.append(np.array(given_up, dtype=float))
    limits = [0.0] * (len(rows) - 1) + [delta]
    costs = np.array([-1.0] + [0.0] * (size - 1))
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(costs, rows, limits, np.ones((1, size)), [1.0], options=options)
    return -float(found.fun) if found.status == 0 else None


@pytest.mark.parametrize(("n", "width", "epsilon"), BOUNDED)
def test_theorem_3_corrected_is_the_optimum_of_the_shared_program(
    n: int, width: int, epsilon: float
) -> None:
    """For b ≤ 3 and ε at least ln of the golden ratio: 5 or more δ in each of 20 settings."""
    assert n // width <= 3
    assert epsilon >= GOLDEN
    for delta in deltas_of(n, width, epsilon):
        law = bounded_difference(n, width, epsilon, delta)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert law.min() >= 0
        steps = list(range(1, width + 1))
        assert shared_delta(law, steps, epsilon) <= delta + 1e-12
        assert law[0] == pytest.approx(program_optimum(n, steps, epsilon, delta), abs=1e-9)


@pytest.mark.parametrize("n", [3, 5, 6, 7, 8])
def test_theorem_2_corrected_is_the_optimum_of_the_program(n: int) -> None:
    """The same 360 settings, by search and linear program."""
    for n_, step, epsilon, delta in SINGLE:
        if n_ == n:
            law = single_distance(n, step, epsilon, delta)
            best = program_optimum(n, [step], epsilon, delta)
            assert law[0] == pytest.approx(best, abs=1e-9), (step, epsilon, delta)


def test_every_disagreement_is_listed() -> None:
    """Remark 3 wherever the difference does not generate; Theorem 3 from the second stretch on."""
    header, *rows = disagreements()
    assert header[0] == "form"
    found = {form: [row for row in rows if row[0] == form] for form in {row[0] for row in rows}}
    sd = [one for one in SINGLE if orbit(one[0], one[1]) != one[0] + 1]
    listed = {tuple(row[1:5]) for row in found["Theorem 2 with Remark 3"]}
    assert listed <= {tuple(map(str, one)) for one in sd}
    assert {row[4] for row in found["Theorem 2 with Remark 3"]} >= {"0.0", "0.04", "0.15"}
    assert len(found["Theorem 3"]) >= 2 * len(BOUNDED)
    assert any(float(row[6]) > 1.01 for row in found["Theorem 3"])
    assert len(found["limit (44)"]) == 2
    for row in rows:
        assert (
            abs(float(row[5]) - float(row[7])) > 0
            or abs(float(row[6]) - 1) > 1e-9
            or (row[0] != "limit (48)")
        )


def test_theorem_3_printed_promises_what_cannot_be() -> None:
    """Erratum 3: n = 8, μ̄ = 4, ε = 0.5, δ = 0.169: 0.244888 for 0.210398."""
    printed = bounded_difference(8, 4, 0.5, 0.169, Form.PRINTED)
    assert printed[0] == pytest.approx(0.244888, abs=1e-6)
    assert printed.sum() > 1 + 1e-3
    assert bounded_difference(8, 4, 0.5, 0.169)[0] == pytest.approx(0.210398, abs=1e-6)


def test_theorem_3_corrected_breaks_its_delta_for_four_groups() -> None:
    """Erratum 3: n = 24, μ̄ = 6, ε = 0.6, region (3, 1): claimed from 0.0747, actual 0.0972."""
    (region,) = [r for r in bd_regions(24, 6, 0.6) if (r.h, r.j) == (3, 1)]
    assert region.begins == pytest.approx(0.0747, abs=5e-5)
    law = bounded_difference(24, 6, 0.6, region.begins)
    actual = delta_of(law, list(range(1, 7)), 0.6)
    assert actual == pytest.approx(0.0972, abs=5e-5)


def test_corollary_2_inverts_theorem_3() -> None:
    for n, width, epsilon in BOUNDED:
        for rate in (0.2, 0.4, 0.55):
            delta = bd_delta(n, width, epsilon, rate)
            reached = bounded_difference(n, width, epsilon, delta)[0]
            assert reached >= 1 - rate - 1e-9
            if delta > 0:
                assert bounded_difference(n, width, epsilon, delta * (1 - 1e-6))[0] < 1 - rate


def test_theorem_3_has_its_condition() -> None:
    for n, width in ((8, 3), (3, 4)):
        with pytest.raises(ValueError, match="b \\+ r below"):
            bounded_difference(n, width, 1.0, 0.1)


def test_long_rings_do_not_overflow() -> None:
    law = single_distance(400, 1, 2.0, 0.9)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law[0] == pytest.approx(0.9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_the_limits_for_many_answers(epsilon: float) -> None:
    """(44) to (54) against the laws at a large n; the printed 0.5 is right for no ε below."""
    n = 4001
    assert 1 - single_distance(n, 1, epsilon, 0.0)[0] == pytest.approx(sd_limit(epsilon), abs=1e-9)
    for width in (2, 5):
        moves = Sensitivity.of(Group((n,)), ((s,) for s in range(1, width + 1)), directed=True)
        pure = Guarantee(Definition.PURE, Fraction(epsilon), Fraction(0))
        made = design(moves, pure, named_loss(LossName.ERROR_RATE, Topology.NOMINAL, n))
        assert float(made.objective) == pytest.approx(bd_limit(width, epsilon), abs=1e-9)
    if epsilon < math.log(2):
        assert sd_limit(epsilon, Form.PRINTED) == 0.5 < sd_limit(epsilon)
    if epsilon < math.log(4):
        assert bd_limit(3, epsilon, Form.PRINTED) == 0.5 < bd_limit(3, epsilon)
    for section in (0, 1, 4):
        begins, ends = sd_breaks(300, epsilon)[300 - section]
        law = single_distance(300, 1, epsilon, (begins + ends) / 2)
        assert 1 - law[0] == pytest.approx(sd_section_limit(section, epsilon), abs=1e-12)
    # Regions near the last one of a very long law: its end holds about e^{-εb}.
    width, b = 300, int(40 / max(epsilon, 0.2)) + 8
    regions = {(r.h, r.j): r.mode for r in bd_regions(b * width + 1, width, epsilon)}
    for c, j in ((3, 2), (5, 1), (2, 4)):
        limit = bd_section_mode(width, c, j, epsilon)
        left = math.exp(-epsilon * b) * b / epsilon
        assert regions[(b - c, j)] == pytest.approx(limit, rel=left + 1e-12)
        if epsilon >= 0.5:
            assert left < 1e-6


def test_the_printed_limit_of_a_region_is_off() -> None:
    """(53) has (1 - e^{-ε}) where the sum of the lengths (31) has more."""
    printed, corrected = (bd_section_mode(300, 3, 2, 1.0, form) for form in Form)
    assert abs(printed - corrected) > 1e-7
