"""Channels: what rows are refused, rounding that keeps a ratio, losses beyond 64 bits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.channel import (
    MOST_ROWS,
    MOST_UNSEEN,
    Channel,
    answer_costs,
    channel_fits,
    channel_unseen,
    probabilistic_fits,
)
from release.exact.domain import AnswerDomain, JointDomain, Topology
from release.exact.losses import LossName, named_loss, table_loss
from release.exact.privacy import Definition, Guarantee


@pytest.mark.parametrize(
    ("rows", "total"),
    [
        ([4, 4], 8),
        ([[5, -1], [2, 2]], 4),
        ([[2, 1], [1, 2]], 3),
        ([[1, 0], [0, 1]], 1),
        ([[0, 0], [0, 0]], 0),
        ([[2, 2], [2, 1]], 4),
        ([[2, 2], [4, 4]], 4),
        ([[2**62, 2**62], [2**63, 2**62]], 2**63),
    ],
)
def test_what_is_no_channel_is_refused(rows: list[Any], total: int) -> None:
    with pytest.raises(ValueError, match=r"row|weight|total"):
        Channel(np.array(rows, dtype=object), total)


def test_the_least_channel_has_a_total_of_two() -> None:
    channel = Channel(np.array([[1, 1], [0, 2]]), 2)
    assert (channel.answers, channel.row(1).tolist()) == (2, [0, 2])
    with pytest.raises(ValueError, match="read-only"):
        channel.rows[0, 0] = 2


def test_weights_are_python_integers_where_they_leave_64_bits() -> None:
    wide = Channel.of([[2**63, 2**63], [2**64, 0]])
    assert (wide.rows.dtype, wide.total) == (np.dtype(object), 2**64)
    # Above 2^63 - 1 a single weight is none of 64 bits.
    assert Channel.of([[2**63, 0], [0, 2**63]]).row(0).tolist() == [2**63, 0]
    assert Channel.of([[2**61, 2**61], [2**62, 0]]).rows.dtype == np.int64
    assert Channel.near([[1, 2], [2, 1]], bits=63).rows.dtype == object
    assert Channel.near([[1, 2], [2, 1]], bits=62).rows.dtype == np.int64
    for wrong in ([], [[1, 1], [2]], [[0, 0], [0, 0]]):
        with pytest.raises(ValueError, match=r"length|total"):
            Channel.of(wrong)


shares = st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any)


@given(st.lists(shares, min_size=1, max_size=4), st.integers(3, 70), st.booleans())
def test_shares_are_rounded_down_and_the_rest_goes_to_the_heaviest(
    rows: list[list[int]], bits: int, as_fractions: bool
) -> None:
    given_rows: Any = rows
    if as_fractions:
        given_rows = [[Fraction(share, 7) for share in row] for row in rows]
    channel = Channel.near(given_rows, bits)
    assert channel.total == 2**bits
    for row, weights in zip(rows, channel.rows.tolist(), strict=True):
        down = [share * 2**bits // sum(row) for share in row]
        heaviest = down.index(max(down))
        down[heaviest] += 2**bits - sum(down)
        assert weights == down


@given(
    st.sampled_from([Fraction(11, 10), Fraction(3, 2), Fraction(4)]),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
    st.integers(16, 40),
)
def test_a_ratio_of_masses_survives_rounding(ratio: Fraction, powers: list[int], bits: int) -> None:
    """Rows whose masses are within the ratio of each other, also in integers afterwards."""
    low, high = Fraction(1), ratio
    table = [[low if power < 2 else high for power in powers[i : i + 4]] for i in (0, 4, 8)]
    rows = [[mass / sum(row) for mass in row] for row in table]
    # Over all pairs of rows, scaled to a sum of 1, the ratio that is kept.
    kept = max(
        a / b
        for one, two in itertools.product(rows, repeat=2)
        for a, b in zip(one, two, strict=True)
    )
    if kept == 1:
        return
    channel = Channel.near(rows, bits, kept)
    for one, two in itertools.product(channel.rows.tolist(), repeat=2):
        assert all(a <= kept * b for a, b in zip(one, two, strict=True))
    # As little as keeps it: no mass moves by more than the share that is mixed in, and a few units.
    share = 2 * 4**2 * (1 + kept) / ((kept - 1) * 2**bits)
    for row, weights in zip(rows, channel.rows.tolist(), strict=True):
        for mass, weight in zip(row, weights, strict=True):
            assert abs(Fraction(weight, 2**bits) - mass) <= share + Fraction(5, 2**bits)


def test_a_ratio_too_near_to_one_is_refused() -> None:
    """2·3²·(1 + r)/((r - 1)·2^bits) has to be below a half."""
    rows, ratio = [[1, 1, 1]] * 2, Fraction(41, 23)
    assert Channel.near(rows, 7, ratio + Fraction(1, 10**9)).total == 128
    with pytest.raises(ValueError, match="too near 1"):
        Channel.near(rows, 7, ratio)


def test_the_least_mass_makes_a_row() -> None:
    assert Channel.near([[1, 0], [0, 1]], 2).rows.tolist() == [[4, 0], [0, 4]]
    assert Channel.of([[1, 1]]).answers == 1


def test_a_row_without_mass_is_refused() -> None:
    with pytest.raises(ValueError, match="no mass"):
        Channel.near([[1, 1], [0, 0]])
    with pytest.raises(ValueError, match="no mass"):
        Channel.near([[Fraction(1), Fraction(1)], [Fraction(0), Fraction(0)]])


@given(
    st.lists(st.lists(st.integers(0, 2**40), min_size=3, max_size=3), min_size=1, max_size=3),
    st.sampled_from([4, 62, 63, 80]),
    st.sampled_from([1, 2**29, 2**30, 2**31, 2**40]),
    st.data(),
)
def test_losses_are_exact_however_large(
    rows: list[list[int]], bits: int, largest: int, data: st.DataObject
) -> None:
    channel = Channel.near([[1 + share for share in row] for row in rows], bits)
    cost = st.integers(-largest, largest)
    table = [data.draw(st.lists(cost, min_size=3, max_size=3)) for _ in rows]
    costs = np.array(table, dtype=np.int64)
    expected = [
        Fraction(sum(w * c for w, c in zip(row, line, strict=True)), channel.total)
        for row, line in zip(channel.rows.tolist(), table, strict=True)
    ]
    assert channel.loss(costs) == tuple(expected)
    assert channel.mean_loss(costs) == sum(expected) / len(expected)


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize(
    "largest",
    [2**29 - 1, 2**30 - 1, 2**30, 2**31, 2**32 - 9, 2**32 - 1, 2**32, 2**40, 2**45, 2**61],
)
def test_losses_of_the_heaviest_weights_are_exact(width: int, largest: int) -> None:
    """All bits of the weights are set, so that any sum that leaves 64 bits shows."""
    weight = 2**62 // width - 1
    channel = Channel.of([[2**62 - (width - 1) * weight, *[weight] * (width - 1)]])
    costs = np.full((1, width), largest, dtype=np.int64)
    assert channel.loss(costs) == (Fraction(largest),)
    costs[0, 0] = 0
    assert channel.loss(costs) == (Fraction(largest * weight * (width - 1), 2**62),)


def test_a_violation_is_not_overlooked_for_what_other_rows_hold() -> None:
    """Rows are skipped by the least of each column, whatever the least of each row is."""
    channel = Channel.of([[5, 5, 6], [6, 6, 4], [3, 7, 6]])
    found = channel.deltas_of_pairs([(1, 2)], Fraction(3, 2))
    assert (found.probabilistic, found.approximate) == (Fraction(6, 16), Fraction(3, 32))
    channel = Channel.of([[2, 1, 1], [4, 0, 0], [0, 2, 2]])
    found = channel.deltas_of_pairs([(0, 1)], Fraction(100))
    assert (found.probabilistic, found.approximate) == (Fraction(1, 2), Fraction(1, 2))


def test_probabilities_of_all_rows_are_rounded_to_floats() -> None:
    assert Channel.of([[1, 3], [4, 0]]).to_floats().tolist() == [[0.25, 0.75], [1, 0]]


@pytest.mark.parametrize("power", [0, 1, 2, 5])
def test_costs_are_powers_of_the_error(power: int) -> None:
    costs = answer_costs(power, 4)
    for true, published in itertools.product(range(4), repeat=2):
        error = abs(true - published)
        assert costs[true, published] == (error**power if power else int(error > 0))


def test_costs_have_to_fit_64_bits() -> None:
    assert answer_costs(61, 3)[0, 2] == 2**61
    with pytest.raises(ValueError, match="too large"):
        answer_costs(62, 3)


def line(size: int) -> AnswerDomain:
    return AnswerDomain(Topology.ORDERED, tuple(range(size)))


def test_channels_are_for_answers_in_order_and_losses_of_answers() -> None:
    table = table_loss((Fraction(0), Fraction(1)))
    for name in LossName:
        fits = name is not LossName.NOISE_SQUARED
        for loss in (name, named_loss(name, Topology.ORDERED, 4)):
            assert channel_fits(line(4), loss) is fits
            assert not channel_fits(AnswerDomain(Topology.CYCLIC, (0, 1, 2, 3)), loss)
            assert not channel_fits(JointDomain((line(2), line(2))), loss)
    assert not any(channel_fits(line(2), other) for other in (table, None, "absolute"))
    assert channel_fits(line(MOST_ROWS), LossName.SQUARED)
    assert not channel_fits(line(MOST_ROWS + 1), LossName.SQUARED)
    assert (MOST_ROWS, MOST_UNSEEN) == (1000, 21)


def test_a_probabilistic_delta_is_sought_without_an_order_or_on_few_answers() -> None:
    assert probabilistic_fits(line(64))
    assert not probabilistic_fits(line(65))
    names = tuple(f"x{code}" for code in range(99))
    assert probabilistic_fits(AnswerDomain(Topology.NOMINAL, names))
    assert probabilistic_fits(AnswerDomain(Topology.CYCLIC, range(99)))
    assert not probabilistic_fits(JointDomain((line(2), line(2))))


def guarantee(definition: Definition, epsilon: str = "1", delta: str = "0") -> Guarantee:
    return Guarantee(definition, Fraction(epsilon), Fraction(delta))


PURE, SOME, TAIL = Definition.PURE, Definition.APPROXIMATE, Definition.PROBABILISTIC


@pytest.mark.parametrize(
    ("size", "asked", "expected"),
    [
        (21, guarantee(PURE), True),
        (22, guarantee(PURE), False),
        (21, guarantee(SOME, "1", "0.1"), True),
        (21, guarantee(TAIL), True),
        (21, guarantee(TAIL, "1", "0.1"), False),
        (21, guarantee(PURE, "0.001"), True),
        (21, guarantee(PURE, "0.0009999"), False),
    ],
)
def test_the_family_of_unseen_differences_depends_on_public_fields(
    size: int, asked: Guarantee, expected: bool
) -> None:
    assert channel_unseen(line(size), LossName.ABSOLUTE, asked) is expected
    assert not channel_unseen(line(size), LossName.NOISE_SQUARED, asked)


def test_an_expected_loss_needs_a_loss_of_published_answers() -> None:
    channel = Channel.of([[2, 1, 1], [0, 4, 0], [1, 1, 2]])
    for name, weighted in (
        (LossName.ERROR_RATE, 2 + 0 + 2),
        (LossName.ABSOLUTE, 3 + 0 + 3),
        (LossName.SQUARED, 5 + 0 + 5),
    ):
        loss = named_loss(name, Topology.ORDERED, 3)
        assert channel.expected_loss(loss, line(3)) == Fraction(weighted, 4 * 3)
    for loss in (
        named_loss(LossName.NOISE_SQUARED, Topology.ORDERED, 3),
        table_loss((Fraction(0), Fraction(1), Fraction(1))),
    ):
        with pytest.raises(ValueError, match="error_rate, absolute or squared"):
            channel.expected_loss(loss, line(3))
