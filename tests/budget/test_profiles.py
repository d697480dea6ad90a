"""The profile of a whole query: never below what all cells together reveal of one unit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod

import pytest

from release.budget.profiles import (
    _coarseness,
    _refined,
    profile_of_patterns,
    query_profile,
)
from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import MOST_LOSSES, Profile, pure_profile
from release.exact.domain import Group
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import geometric_noise
from release.queries.registry import global_sensitivity, rows_read
from tests.budget.test_patterns import Cells, contributions, spec_file
from tests.hockey_stick import HAIR, standing
from tests.small import query

SIZE = 4
COUNT = query(
    "count", by=["day"], sensitivity="global", domain={"ordered": {"min": 0, "max": SIZE - 1}}
)

MECHANISMS: dict[str, Mechanism] = {
    "one peak": IntegerMechanism(IntegerNoise(-2, ((1, 2), (1, 3), (1, 6), (1, 4), (1, 1))), SIZE),
    "two peaks": IntegerMechanism(IntegerNoise(-2, ((1, 5), (1, 1), (1, 4), (1, 1), (1, 5))), SIZE),
    "modular": Modular(Pmf.of(Group((SIZE,)), (9, 3, 1, 3))),
}

RATIOS = tuple(map(Fraction, ("1/9", "1/2", "1", "11/10", "2", "3", "7", "40")))


def row_of(mechanism: Mechanism, code: int) -> list[int]:
    """The weights of the published answers, exactly."""
    if not isinstance(mechanism, IntegerMechanism):
        return [int(weight) for weight in mechanism.row(code)]
    weights, noise = [0] * SIZE, mechanism.noise
    for integer in range(noise.low, noise.high + 1):
        weights[min(max(code + integer, 0), SIZE - 1)] += int(noise.mass(integer) * noise.total)
    return weights


def neighbors(relation: str, rows: int, cells: int, others: int) -> Iterator[tuple[Cells, Cells]]:
    """The clamped counts of every pair of neighboring tables: ``others`` units, and one unit."""
    ways = contributions(rows, cells, cells)
    incoming = [(0,) * cells] if relation == "add_remove" else ways
    most = others * rows
    for rest in product(range(most + 1), repeat=cells):
        if sum(rest) > most:
            continue
        for leaving, entering in product(ways, incoming):
            here = tuple(min(SIZE - 1, a + b) for a, b in zip(rest, leaving, strict=True))
            there = tuple(min(SIZE - 1, a + b) for a, b in zip(rest, entering, strict=True))
            yield here, there
            yield there, here


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cells", [2, 3])
def test_all_neighboring_tables_of_a_tiny_universe(name: str, relation: str, cells: int) -> None:
    """Three units of up to two rows: the hockey stick of all cells together, outcome by outcome."""
    read = spec_file(COUNT, cells, neighbors=relation, max_rows_per_unit=2)
    asked, mechanism = read.spec.released[0], MECHANISMS[name]
    sensitivity = global_sensitivity(read.spec, asked, rows_read(read.spec, asked))
    found = query_profile(read, asked, mechanism, sensitivity, Fraction(1, 5))
    bounds = [standing(found, ratio) for ratio in RATIOS]
    rows = [row_of(mechanism, code) for code in range(SIZE)]
    outcomes = list(product(range(SIZE), repeat=cells))
    whole = mechanism.total**cells
    closest = Fraction(1)
    for here, there in set(neighbors(relation, 2, cells, 2)):
        masses = []
        for outcome in outcomes:
            heavy = prod(rows[code][place] for code, place in zip(here, outcome, strict=True))
            light = prod(rows[code][place] for code, place in zip(there, outcome, strict=True))
            masses.append((heavy, light))
        for ratio, bound in zip(RATIOS, bounds, strict=True):
            excess = 0
            for heavy, light in masses:
                excess += max(0, heavy * ratio.denominator - light * ratio.numerator)
            delta = Fraction(excess, whole * ratio.denominator)
            assert delta <= bound
            if ratio == 1:
                closest = min(closest, bound - delta)
    # And it is no more than clamping may take away.
    assert closest < Fraction(1, 4)


def test_cells_of_one_step_are_a_product() -> None:
    """Two cells of randomised response: δ(0) and δ(ε) by hand."""
    one = pure_profile(Fraction(1), Fraction(1))
    both = profile_of_patterns({1: one}, [(1, 1)])
    e = Fraction(2.718281828459045)
    high, low = e / (1 + e), 1 / (1 + e)
    assert float(Fraction(both.values[0], UNIT)) == pytest.approx(float(high**2 - low**2))
    assert float(Fraction(both.values[1], UNIT)) == pytest.approx(float(high**2 - e * low**2))
    assert both.values[2] == 0


@pytest.mark.parametrize("name", ["geometric", "staircase"])
def test_neither_spreading_nor_gathering_rows_is_always_worst(name: str) -> None:
    """Geometric noise reveals most of two rows in one cell, a staircase of two rows apart."""
    noises = {
        "geometric": geometric_noise(least_ratio(Fraction(1), 1)),
        "staircase": IntegerNoise.symmetric([(1, 2**60), (2, 3 * 2**58)], Tail(2, 2**62)),
    }
    mechanism, cells = IntegerMechanism(noises[name], 99), {}
    for rows in (1, 2):
        distances = Sensitivity.on_line(99, range(1, rows + 1))
        cells[rows] = mechanism.profile(distances, Fraction(1, 10))
    gathered = profile_of_patterns(cells, [(2,)])
    spread = profile_of_patterns(cells, [(1, 1)])
    at = Fraction(17, 10)
    if name == "geometric":
        assert gathered.delta_at(at) > spread.delta_at(at)
    else:
        assert gathered.delta_at(at) < spread.delta_at(at)
    both = profile_of_patterns(cells, [(2,), (1, 1)])
    assert both.delta_at(at) == max(gathered.delta_at(at), spread.delta_at(at))


def test_ten_thousand_cells_are_squared() -> None:
    one = pure_profile(Fraction(1, 2000), Fraction(1, 2000 * 8))
    many = profile_of_patterns({1: one}, [(1,) * 10_000])
    # By the central limit the losses have mean kε²/2 and variance kε², with √k·ε = 1/20.
    assert float(Fraction(many.values[0], UNIT)) == pytest.approx(0.019945, rel=1e-3)


def test_a_statistic_is_composed_over_its_cells() -> None:
    mode = query("mode", by=["day"], sensitivity="global", noise="on_statistic")
    read = spec_file(mode, 9, neighbors="replace_one", max_rows_per_unit=1)
    asked = read.spec.released[0]
    chosen = PermuteAndFlip(4, 2, least_ratio(Fraction(1), 2))
    found = query_profile(read, asked, chosen, None, Fraction(1, 64))
    one = pure_profile(Fraction(1), Fraction(1, 64))
    assert found == profile_of_patterns({2: one}, [(2, 2)])
    assert abs(
        found.delta_at(Fraction(1)) - standing(found, Fraction(2718281828, 10**9))
    ) < HAIR * (10**14)


def test_a_mechanism_on_answers_needs_a_sensitivity() -> None:
    read = spec_file(COUNT, 2)
    with pytest.raises(TypeError, match="sensitivity"):
        query_profile(read, read.spec.released[0], MECHANISMS["modular"], None, Fraction(1))


def test_long_profiles_are_composed_on_a_coarser_grid() -> None:
    """Sixteen cells of 16,001 losses: hardly above the composition of their two atoms."""
    loss = Fraction(4, 5)
    exact = profile_of_patterns({1: pure_profile(loss, loss)}, [(1,) * 16])
    long = profile_of_patterns({1: pure_profile(loss, loss / 16_000)}, [(1,) * 16])
    assert long.step == loss / 16_000
    for place in (0, 1):
        value, fine = exact.values[place], long.values[16_000 * place]
        assert value <= fine <= value + UNIT // 10**15
    # Between two losses of the coarser grid there is a chord.
    between = [long.values[place] for place in (15_999, 16_000, 16_001)]
    assert between[0] > between[1] > between[2]


@pytest.mark.parametrize(
    ("losses", "cells", "expected"),
    [
        # One cell is not composed, however long its profile is.
        (2**17, 1, 1),
        # k cells take ⌊√k⌋ + 1 times the losses of one: up to 2^16, and then half as many.
        (2**14, 9, 1),
        (2**14 + 1, 9, 2),
        (2**14, 15, 1),
        (2**14, 16, 2),
        (2**14, 49, 2),
        (2**14, 64, 4),
        (2**16 // 101, 10_000, 1),
        (2**16 // 101 + 1, 10_000, 2),
    ],
)
def test_many_cells_of_many_losses_are_composed_on_a_coarser_grid(
    losses: int, cells: int, expected: int
) -> None:
    long, short = Profile(Fraction(1), (0,) * losses), Profile(Fraction(1), (0,))
    assert _coarseness({1: short, 2: long}, [(1,), (2,) * cells]) == expected


def test_a_finer_grid_has_the_values_of_the_coarser_and_chords_between() -> None:
    coarse = pure_profile(Fraction(1), Fraction(1, 4))
    assert _refined(coarse, 1) is coarse
    fine = _refined(coarse, 4)
    assert (fine.step, len(fine.values)) == (Fraction(1, 16), 4 * (len(coarse.values) - 1) + 1)
    assert fine.values[::4] == coarse.values
    e, (near, far) = exp_bounds(Fraction(1, 16))[0], coarse.values[:2]
    # A chord in e^ε: a quarter of the step from 0.
    share = (e - 1) / (e**4 - 1)
    assert abs(fine.values[1] - (near + share * (far - near))) <= 2


def test_a_finer_grid_is_no_longer_than_a_profile_may_be() -> None:
    two = Profile(Fraction(1), (UNIT, UNIT // 2))
    assert len(_refined(two, MOST_LOSSES - 1).values) == MOST_LOSSES
    assert _refined(two, MOST_LOSSES).values == (UNIT,)
    # Beyond e^100 no chord is computed.
    far = Profile(Fraction(50), (UNIT, UNIT // 2, UNIT // 4, UNIT // 8))
    assert _refined(far, 2).values[::2] == far.values[:3]
