"""Mechanisms: what follows from their rows, for each family and for one that has rows alone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.losses import LossName, joint_loss, table_loss
from release.exact.mechanism import Mechanism, check_codes
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Deltas, Guarantee
from release.exact.sensitivity import Sensitivity

TOTAL = 16
RATIOS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(3)])


@dataclass(frozen=True)
class Plain(Mechanism):
    """A family of its own that overrides nothing."""

    family = "plain"

    rows: tuple[tuple[int, ...], ...]
    total: int = TOTAL

    @property
    def answers(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def row(self, code: int) -> NDArray[Any]:
        """The weights as they were given."""
        return np.array(self.rows[code])


def weights(draw: st.DrawFn, size: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, TOTAL), min_size=size - 1, max_size=size - 1)))
    return [b - a for a, b in itertools.pairwise([0, *cuts, TOTAL])]


@st.composite
def mechanisms(draw: st.DrawFn, size: int) -> Mechanism:
    rows = [weights(draw, size) for _ in range(size)]
    return draw(
        st.sampled_from(
            [
                Plain(tuple(map(tuple, rows))),
                Channel.of(rows),
                Modular(Pmf.of(Group((size,)), rows[0])),
            ]
        )
    )


def chances(mechanism: Mechanism) -> list[list[Fraction]]:
    """P(published | true), row by row, for the families by their definition."""
    if isinstance(mechanism, Modular):
        masses = [mechanism.pmf.mass(noise) for noise in range(mechanism.answers)]
        size = mechanism.answers
        return [[masses[(code - true) % size] for code in range(size)] for true in range(size)]
    rows = mechanism.rows if isinstance(mechanism, Plain) else Channel.of_mechanism(mechanism).rows
    return [[Fraction(int(weight), TOTAL) for weight in row] for row in rows]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mechanism, Sensitivity]:
    """Neighbors on a line without wrapping, or all those of a difference in the group."""
    size = draw(st.integers(2, 6))
    steps = draw(st.lists(st.integers(1 - size, size - 1), min_size=1, max_size=3))
    mechanism = draw(mechanisms(size))
    if isinstance(mechanism, Modular) or draw(st.booleans()):
        return mechanism, Sensitivity.of(Group((size,)), [(step,) for step in steps])
    return mechanism, Sensitivity.on_line(size, steps)


def neighbors(sensitivity: Sensitivity, size: int) -> list[tuple[int, int]]:
    pairs = itertools.product(range(size), repeat=2)
    if sensitivity.distances is not None:
        return [(a, b) for a, b in pairs if abs(a - b) in sensitivity.distances]
    return [(a, b) for a, b in pairs if ((b - a) % size,) in sensitivity.shifts]


def deltas_by_hand(mechanism: Mechanism, pairs: list[tuple[int, int]], ratio: Fraction) -> Deltas:
    rows = chances(mechanism)
    probabilistic = approximate = Fraction(0)
    for true, neighbor in pairs:
        both = list(zip(rows[true], rows[neighbor], strict=True))
        probabilistic = max(probabilistic, sum((f for f, g in both if f > ratio * g), Fraction(0)))
        excess = sum((max(Fraction(0), f - ratio * g) for f, g in both), Fraction(0))
        approximate = max(approximate, excess)
    return Deltas(probabilistic, approximate)


@given(cases(), RATIOS)
def test_deltas_are_the_largest_over_all_neighboring_answers(
    case: tuple[Mechanism, Sensitivity], ratio: Fraction
) -> None:
    mechanism, sensitivity = case
    pairs = neighbors(sensitivity, mechanism.answers)
    assert sorted(sensitivity.pairs(mechanism.answers)) == pairs
    expected = deltas_by_hand(mechanism, pairs, ratio)
    assert mechanism.deltas_at_ratio(sensitivity, ratio) == expected
    assert mechanism.deltas_of_pairs(pairs, ratio) == expected
    assert mechanism.deltas_of_pairs(pairs[:1], ratio) == deltas_by_hand(
        mechanism, pairs[:1], ratio
    )
    assert mechanism.deltas_of_pairs([], ratio) == Deltas(Fraction(0), Fraction(0))
    for definition in Definition:
        for delta in (expected.under(definition), Fraction(1, 10**9)):
            if definition is Definition.PURE and delta:
                continue
            if delta < 1:
                guarantee = Guarantee(definition, Fraction(1), delta)
                satisfied = expected.under(definition) <= delta
                assert mechanism.satisfies(sensitivity, guarantee, ratio) == satisfied


@given(cases())
def test_deltas_at_epsilon_are_those_at_the_ratio_below(
    case: tuple[Mechanism, Sensitivity],
) -> None:
    mechanism, sensitivity = case
    epsilon = Fraction(1, 2)
    low, _ = exp_bounds(epsilon)
    expected = mechanism.deltas_at_ratio(sensitivity, low)
    assert mechanism.deltas(sensitivity, epsilon) == expected


@given(cases())
def test_comparisons_count_masses(case: tuple[Mechanism, Sensitivity]) -> None:
    mechanism, sensitivity = case
    pairs = neighbors(sensitivity, mechanism.answers)
    times = len(sensitivity.shifts) if isinstance(mechanism, Modular) else len(pairs)
    assert mechanism.comparisons(sensitivity) == times * mechanism.answers


@given(st.integers(2, 5).flatmap(mechanisms))
def test_the_ratio_everywhere_bounds_any_two_answers(mechanism: Mechanism) -> None:
    rows = chances(mechanism)
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    expected = None
    if all(all(column) for column in columns):
        expected = max(max(column) / min(column) for column in columns)
    assert mechanism.ratio_everywhere() == expected
    assert mechanism.is_constant() == all(row == rows[0] for row in rows)


def domain(topology: Topology, size: int) -> AnswerDomain:
    if topology is Topology.NOMINAL:
        return AnswerDomain(topology, tuple(f"label {code}" for code in range(size)))
    return AnswerDomain(topology, tuple(range(size)))


def off(part: AnswerDomain, true: int, published: int) -> int:
    if part.topology is Topology.NOMINAL:
        return int(true != published)
    apart = abs(true - published)
    return min(apart, part.size - apart) if part.topology is Topology.CYCLIC else apart


@st.composite
def joint_cases(draw: st.DrawFn) -> tuple[Mechanism, AnswerDomain | JointDomain]:
    parts = draw(
        st.lists(
            st.builds(domain, st.sampled_from(Topology), st.integers(2, 3)), min_size=1, max_size=2
        )
    )
    answers = parts[0] if len(parts) == 1 else JointDomain(tuple(parts))
    size = answers.size
    rows = [weights(draw, size) for _ in range(size)]
    if draw(st.booleans()):
        return Plain(tuple(map(tuple, rows))), answers
    return Modular(Pmf.of(answers.group, rows[0])), answers


def joint_rows(mechanism: Mechanism, sizes: list[int]) -> list[list[Fraction]]:
    if isinstance(mechanism, Plain):
        return chances(mechanism)
    assert isinstance(mechanism, Modular)
    codes = list(itertools.product(*map(range, sizes)))

    def noise(true: tuple[int, ...], published: tuple[int, ...]) -> int:
        moves = zip(published, true, sizes, strict=True)
        return codes.index(tuple((p - t) % size for p, t, size in moves))

    return [[mechanism.pmf.mass(noise(true, to)) for to in codes] for true in codes]


@given(joint_cases(), st.sampled_from(LossName), st.integers(0, 2))
def test_losses_and_distances_are_means_over_all_outcomes(
    case: tuple[Mechanism, AnswerDomain | JointDomain], name: LossName, radius: int
) -> None:
    mechanism, answers = case
    sizes = [part.size for part in answers.parts]
    codes = list(itertools.product(*map(range, sizes)))
    rows = joint_rows(mechanism, sizes)
    assert [
        [Fraction(int(w), mechanism.total) for w in mechanism.row(true)]
        for true in range(answers.size)
    ] == rows
    loss = near = Fraction(0)
    errors = []
    for true, row in zip(codes, rows, strict=True):
        error = Fraction(0)
        for published, chance in zip(codes, row, strict=True):
            moves = list(zip(answers.parts, true, published, strict=True))
            apart = [off(part, t, p) for part, t, p in moves]
            cost = {
                LossName.ERROR_RATE: int(any(apart)),
                LossName.ABSOLUTE: sum(apart),
                LossName.SQUARED: sum(each**2 for each in apart),
                LossName.NOISE_SQUARED: sum(((p - t) % part.size) ** 2 for part, t, p in moves),
            }[name]
            loss += chance * cost / len(codes)
            near += chance / len(codes) if max(apart) <= radius else 0
            error += chance * sum(apart)
        errors.append(error)
    assert mechanism.expected_loss(joint_loss(name, answers.parts), answers) == loss
    assert mechanism.chance_within(answers, radius) == near
    assert [mechanism.error_at(answers, code) for code in range(answers.size)] == errors


@given(joint_cases(), st.data())
def test_a_table_of_costs_is_of_the_noise(
    case: tuple[Mechanism, AnswerDomain | JointDomain], data: st.DataObject
) -> None:
    mechanism, answers = case
    thirds = st.lists(st.integers(0, 9), min_size=answers.size, max_size=answers.size)
    costs = tuple(Fraction(third, 3) for third in data.draw(thirds))
    sizes = [part.size for part in answers.parts]
    codes = list(itertools.product(*map(range, sizes)))
    expected = Fraction(0)
    for true, row in zip(codes, joint_rows(mechanism, sizes), strict=True):
        for published, chance in zip(codes, row, strict=True):
            moves = zip(published, true, sizes, strict=True)
            noise = codes.index(tuple((p - t) % size for p, t, size in moves))
            expected += chance * costs[noise] / len(codes)
    assert mechanism.expected_loss(table_loss(costs), answers) == expected


@given(cases())
def test_probabilities_in_floats_are_those_of_the_rows(
    case: tuple[Mechanism, Sensitivity],
) -> None:
    mechanism, sensitivity = case
    rows = [[float(chance) for chance in row] for row in chances(mechanism)]
    size = mechanism.answers
    for code in range(size):
        assert mechanism.probabilities(code).tolist() == rows[code]
        assert mechanism.likelihood_of(code).tolist() == [row[code] for row in rows]
    pairs = neighbors(sensitivity, size)
    if isinstance(mechanism, Modular):
        pairs = [(0, -shift % size) for (shift,) in sensitivity.shifts]
    found = mechanism.neighboring_rows(sensitivity, len(pairs) * size)
    if not pairs:
        assert found is None
        return
    assert found is not None
    sides = [side.tolist() for side in found]
    assert sorted(zip(*sides, strict=True)) == sorted((rows[a], rows[b]) for a, b in pairs)
    assert mechanism.neighboring_rows(sensitivity, len(pairs) * size - 1) is None


def test_only_modular_noise_is_the_same_for_every_answer() -> None:
    pmf = Pmf.of(Group((3,)), [4, 2, 2])
    assert Modular(pmf).modular_noise is pmf
    rows = [[4, 2, 2], [2, 4, 2], [2, 2, 4]]
    assert Channel.of(rows).modular_noise is None
    assert Channel.of_mechanism(Modular(pmf)).rows.tolist() == rows
    assert (Modular(pmf).total, Modular(pmf).answers) == (8, 3)


def test_a_mechanism_is_drawn_from_by_its_rows() -> None:
    """Words of 64 bits, of which the highest four say which of the sixteenths is drawn."""
    mechanism = Plain(((16, 0, 0), (0, 15, 1), (1, 14, 1)))
    data = b"".join((word << 60).to_bytes(8, "little") for word in (15, 14, 15, 0, 1, 14, 15))
    codes = np.array([0, 1, 1, 2, 2, 2, 2])
    assert mechanism.draw(codes, lambda count: data[:count]).tolist() == [0, 1, 2, 0, 1, 1, 2]
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="outside"):
            mechanism.draw(np.array([0, wrong]))


def test_codes_of_a_domain_begin_at_zero_and_end_below_its_size() -> None:
    check_codes(np.array([0, 4]), 5)
    check_codes(np.array([], dtype=np.int64), 5)
    for wrong in ([5], [-1], [0, 5], [-1, 4]):
        with pytest.raises(ValueError, match="outside"):
            check_codes(np.array(wrong), 5)
