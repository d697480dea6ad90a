"""Mechanism files: written and read back exactly, and what is no mechanism refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import DEFAULT_BITS, MOST_BITS, Pmf
from release.exact.sensitivity import Sensitivity
from release.records.mechanisms import ChannelRecord, IntegerRecord, MechanismRecord, ModularRecord
from release.records.models import canonical, parse
from release.spec.mechanisms import MECHANISMS, formats, record_model

# What a file says beside the integers of its family.
COMMON: dict[str, Any] = {
    "schema": "dp-release/mechanism/v1",
    "query": "visits",
    "directed": False,
    "guarantee": {"definition": "pure", "epsilon": "1", "delta": "0"},
    "recomputed": {
        "delta_probabilistic": "0",
        "delta_approximate": "0",
        "epsilon_everywhere": "inf",
    },
    "design": {
        "method": "closed-form",
        "loss": "squared",
        "objective": "1",
        "bound_of": "every mechanism",
        "bounded_loss": "1",
        "lower_bound": "1",
        "bound": "proved",
        "gap": "0",
        "multipliers": [],
        "solver": "none",
        "notes": [],
    },
    "accuracy": {"p_exact": "0.5", "mean_absolute": "0.5", "p_within_1": "1"},
}


def plain(mechanism: Mechanism, sensitivity: Sensitivity) -> dict[str, Any]:
    """The content of the file of a mechanism, as plain data."""
    model = record_model(mechanism.family)
    return {
        **COMMON,
        "mechanism": mechanism.family,
        "group": list(sensitivity.group.moduli),
        "total": str(mechanism.total),
        **model.own_fields(mechanism, sensitivity),
    }


def read(content: dict[str, Any]) -> MechanismRecord:
    """The record after a round trip through the bytes of a file."""
    model = record_model(content["mechanism"])
    return parse(model, canonical(model.model_validate(content)))


@st.composite
def weights(draw: st.DrawFn, size: int, bits: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, 2**bits), min_size=size - 1, max_size=size - 1)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, 2**bits], strict=True)]


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.data())
@settings(max_examples=60, deadline=None)
def test_modular_noise_is_read_as_it_was_written(moduli: list[int], data: st.DataObject) -> None:
    group = Group(tuple(moduli))
    bits = data.draw(st.sampled_from([1, 20, 62, 63, 100, 256]))
    mechanism = Modular(Pmf.of(group, data.draw(weights(group.size, bits))))
    elements = data.draw(st.lists(st.integers(1, group.size - 1), min_size=1, max_size=4))
    sensitivity = Sensitivity.of(group, map(group.shift, elements))
    record = read(plain(mechanism, sensitivity))
    assert isinstance(record, ModularRecord)
    assert record.to_mechanism() == mechanism
    assert record.to_mechanism().pmf.weights.dtype == mechanism.pmf.weights.dtype
    assert record.to_sensitivity() == sensitivity
    assert record.comparisons == mechanism.comparisons(sensitivity)
    assert record.own_fields(record.to_mechanism(), record.to_sensitivity()) == {
        "weights": record.weights,
        "sensitivity": record.sensitivity,
    }


@given(st.integers(2, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_a_channel_is_read_as_it_was_written(size: int, data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from([1, 20, 62]))
    rows = [data.draw(weights(size, bits)) for _ in range(size)]
    mechanism = Channel.of(rows)
    steps = data.draw(st.lists(st.integers(1, size - 1), min_size=1, max_size=3))
    sensitivity = Sensitivity.on_line(size, steps)
    record = read(plain(mechanism, sensitivity))
    assert isinstance(record, ChannelRecord)
    assert record.to_mechanism().rows.tolist() == rows
    assert record.to_mechanism().total == 2**bits
    assert record.to_sensitivity() == sensitivity
    assert record.comparisons == mechanism.comparisons(sensitivity)
    assert record.own_fields(record.to_mechanism(), record.to_sensitivity()) == {
        "rows": record.rows,
        "pairs": record.pairs,
    }


@st.composite
def integer_noise(draw: st.DrawFn) -> IntegerNoise:
    """Noise with any weights around 0, with and without tails."""
    bits, size = draw(st.sampled_from([3, 20, 62])), draw(st.integers(2, 7))
    masses = draw(weights(size, bits))
    low = -draw(st.integers(0, size - 1))
    periods = draw(st.integers(0, 1 - low)), draw(st.integers(0, size + low))
    tails = [
        Tail(period, draw(st.integers(1, 2**64 - 1))) if period and sum(periods) <= size else None
        for period in periods
    ]
    return IntegerNoise(low, tuple((1, mass) for mass in masses), *tails)


@given(integer_noise(), st.integers(2, 40), st.data())
@settings(max_examples=60, deadline=None)
def test_noise_on_the_integers_is_read_as_it_was_written(
    noise: IntegerNoise, size: int, data: st.DataObject
) -> None:
    """Runs of equal weights may be merged: it is the same noise, drawn from the same weights."""
    low = data.draw(st.integers(0, size // 2))
    tables = ((low, 1),) if low else (), ((size // 2, -1),)
    mechanism = IntegerMechanism(noise, size, *tables)
    steps = data.draw(st.lists(st.integers(1, size - 1), min_size=1, max_size=5))
    sensitivity = Sensitivity.on_line(size, steps)
    record = read(plain(mechanism, sensitivity))
    assert isinstance(record, IntegerRecord)
    again = record.to_mechanism()
    places = range(noise.low - 9, noise.high + 10)
    assert [again.noise.mass(k) for k in places] == [noise.mass(k) for k in places]
    assert (again.size, again.total) == (size, noise.total)
    outcomes = np.arange(size, dtype=np.int64)
    assert again.published(outcomes).tolist() == mechanism.published(outcomes).tolist()
    assert record.to_sensitivity() == sensitivity
    assert record.comparisons == again.comparisons(sensitivity)
    assert record.own_fields(again, sensitivity) == {
        "noise": record.noise,
        "low_end": record.low_end,
        "high_end": record.high_end,
        "distances": record.distances,
    }


def test_on_a_line_modular_noise_keeps_the_differences_and_not_the_distances() -> None:
    sensitivity = Sensitivity.on_line(5, [1])
    mechanism = Modular(Pmf.of(Group((5,)), [8, 4, 2, 1, 1]))
    completed = read(plain(mechanism, sensitivity)).to_sensitivity()
    assert completed.shifts == sensitivity.shifts == ((1,), (4,))
    assert completed.distances is None
    ratio = exp_bounds(Fraction(1))[0]
    deltas = mechanism.deltas_at_ratio(completed, ratio)
    assert deltas == mechanism.deltas_at_ratio(sensitivity, ratio)


def test_a_pair_that_is_left_out_of_a_file_shows_in_the_completed_pairs() -> None:
    """The verifier compares the fields; a file with fewer pairs than its distances make fails."""
    mechanism = Channel.of([[4, 2, 2], [2, 4, 2], [2, 2, 4]])
    content = plain(mechanism, Sensitivity.on_line(3, [1]))
    assert content["pairs"] == [[0, 1], [1, 0], [1, 2], [2, 1]]
    for pairs in ([[0, 1]], [[1, 0], [0, 1], [1, 2], [2, 1]], [[0, 1], [1, 0], [1, 2]]):
        record = read(content | {"pairs": pairs})
        own = record.own_fields(record.to_mechanism(), record.to_sensitivity())
        assert own["pairs"] == content["pairs"] != pairs


MODULAR = plain(Modular(Pmf.of(Group((4,)), [8, 4, 2, 2])), Sensitivity.on_line(4, [1]))
CHANNEL = plain(Channel.of([[4, 2, 2], [2, 4, 2], [2, 2, 4]]), Sensitivity.on_line(3, [1]))
SPREAD = IntegerNoise(-1, ((1, 2), (1, 4), (1, 2)), Tail(1, 2**62), Tail(1, 2**62))
INTEGER = plain(
    IntegerMechanism(SPREAD, 9, ((1, 2), (2, 0)), ((2, -1),)), Sensitivity.on_line(9, [1, 2, 4])
)
NOISE = INTEGER["noise"].model_dump()
NO_MECHANISMS = [
    pytest.param(MODULAR, {"weights": ["8", "4", "2", "3"]}, "do not add up", id="sum"),
    pytest.param(MODULAR, {"weights": ["8", "4", "4"]}, "one weight for each", id="too few"),
    pytest.param(MODULAR, {"weights": []}, "one weight for each", id="none"),
    pytest.param(MODULAR, {"total": "17"}, "power of two", id="total"),
    pytest.param(MODULAR, {"total": "32"}, "do not add up", id="another total"),
    pytest.param(MODULAR, {"group": [4, 2]}, "one weight for each", id="group"),
    pytest.param(MODULAR, {"group": [1]}, "at least 2", id="group of one"),
    pytest.param(CHANNEL, {"total": "16"}, "do not add up", id="channel total"),
    pytest.param(CHANNEL, {"group": [4]}, "a row and a column for each", id="channel group"),
    pytest.param(CHANNEL, {"rows": []}, "same length", id="no rows"),
    pytest.param(
        CHANNEL,
        {"rows": [["4", "2", "2"], ["8", "0"], ["2", "2", "4"]]},
        "same length",
        id="ragged",
    ),
    pytest.param(
        CHANNEL,
        {"rows": [["4", "2", "2"], ["4", "2", "1"], ["2", "2", "4"]]},
        "do not add up",
        id="one row short",
    ),
    pytest.param(
        CHANNEL,
        {"rows": [["4", "2", "2"], [str(2**64), "2", "2"], ["2", "2", "4"]]},
        "too large",
        id="beyond 64 bits",
    ),
    pytest.param(INTEGER, {"total": "16"}, "do not add up to the total", id="integer total"),
    pytest.param(INTEGER, {"noise": NOISE | {"weights": ["2", "4", "3"]}}, "power", id="power"),
    pytest.param(INTEGER, {"noise": NOISE | {"weights": ["2", "6"]}}, "zip", id="lengths"),
    pytest.param(INTEGER, {"noise": NOISE | {"lengths": [1, 0, 1]}}, "1 or more", id="no length"),
    pytest.param(INTEGER, {"noise": NOISE | {"low": 1}}, "other side of 0", id="right of 0"),
    pytest.param(
        INTEGER,
        {"noise": NOISE | {"left": {"period": 4, "ratio": "1"}}},
        "shorter than the periods",
        id="long tail",
    ),
    pytest.param(
        INTEGER,
        {"noise": NOISE | {"right": {"period": 1, "ratio": str(2**64)}}},
        "ratio between 0 and 1",
        id="tail that does not fall",
    ),
    pytest.param(INTEGER, {"low_end": [[1, -1]]}, "no answer", id="below the answers"),
    pytest.param(INTEGER, {"high_end": [[1, 1]]}, "no answer", id="above the answers"),
    pytest.param(INTEGER, {"low_end": [[8, 0]]}, "longer than the answers", id="long tables"),
    pytest.param(INTEGER, {"high_end": [[0, 0]]}, "1 or more outcomes", id="empty run"),
    pytest.param(INTEGER, {"group": [1]}, "two answers or more", id="one answer"),
]


@pytest.mark.parametrize(("content", "change", "reason"), NO_MECHANISMS)
def test_integers_that_are_no_mechanism_are_refused(
    content: dict[str, Any], change: dict[str, Any], reason: str
) -> None:
    with pytest.raises((ValueError, OverflowError), match=reason):
        read(content | change).to_mechanism()


def test_weights_whose_machine_sum_wraps_round_are_refused() -> None:
    """Eight weights of 2^61 and 16 beside them add up to 16 modulo 2^64."""
    weights = [str(2**61)] * 8 + ["16"]
    forged = MODULAR | {"group": [9], "weights": weights, "total": "16", "sensitivity": [[1], [8]]}
    with pytest.raises(ValueError, match="do not add up"):
        read(forged).to_mechanism()


@pytest.mark.parametrize(
    ("content", "change"),
    [
        pytest.param(MODULAR, {"weights": ["8", "-4", "2", "2"]}, id="negative"),
        pytest.param(MODULAR, {"weights": ["8", "04", "2", "2"]}, id="leading zero"),
        pytest.param(MODULAR, {"weights": [8, 4, 2, 2]}, id="numbers"),
        pytest.param(MODULAR, {"weights": ["9" * 401]}, id="too many digits"),
        pytest.param(MODULAR, {"directed": True}, id="one direction only"),
        pytest.param(MODULAR, {"group": []}, id="no group"),
        pytest.param(MODULAR, {"group": [2] * 9}, id="nine parts"),
        pytest.param(MODULAR, {"rows": []}, id="a field of another family"),
        pytest.param(CHANNEL, {"pairs": [[0, 1, 2]]}, id="a pair of three"),
        pytest.param(CHANNEL, {"pairs": [["0", "1"]]}, id="a pair of text"),
        pytest.param(INTEGER, {"noise": NOISE | {"lengths": [], "weights": []}}, id="no noise"),
        pytest.param(
            INTEGER, {"noise": NOISE | {"left": {"period": 0, "ratio": "1"}}}, id="no period"
        ),
        pytest.param(INTEGER, {"distances": [[1, 2, 3]]}, id="a distance of three"),
    ],
)
def test_a_field_that_the_format_does_not_have_is_refused(
    content: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="validation error"):
        record_model(content["mechanism"]).model_validate(content | change)


def test_differences_of_another_group_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        read(MODULAR | {"sensitivity": [[1, 1]]}).to_sensitivity()


def test_distances_that_no_two_answers_have_are_refused() -> None:
    assert INTEGER["distances"] == [[1, 2], [4, 4]]
    for wrong in ([[0, 1]], [[1, 9]], [[-1, 1]], [[2, 1]]):
        with pytest.raises(ValueError, match="ascending intervals"):
            read(INTEGER | {"distances": wrong}).to_sensitivity()


def test_a_distance_that_is_left_out_of_a_file_stays_left_out() -> None:
    """So that the verifier sees that the spec says more."""
    full = read(INTEGER).to_sensitivity()
    for fewer in ([[1, 2]], [[4, 4]], [[1, 1], [4, 4]]):
        assert read(INTEGER | {"distances": fewer}).to_sensitivity() != full
    # Written otherwise, the same distances are not the fields that the verifier completes.
    record = read(INTEGER | {"distances": [[1, 1], [2, 2], [4, 4]]})
    assert isinstance(record, IntegerRecord)
    own = record.own_fields(record.to_mechanism(), record.to_sensitivity())
    assert own["distances"] == INTEGER["distances"] != record.distances


def test_differences_that_are_zero_or_none_prove_nothing() -> None:
    for content, field, empty in (
        (MODULAR, "sensitivity", [[0], [4]]),
        (MODULAR, "sensitivity", []),
        (CHANNEL, "pairs", [[1, 1]]),
        (CHANNEL, "pairs", []),
    ):
        assert read(content | {field: empty}).to_sensitivity().shifts == ()
    with pytest.raises(ValueError, match="at least 1 item"):
        read(INTEGER | {"distances": []})


@pytest.mark.parametrize("family", sorted(formats()))
def test_every_format_is_of_the_family_whose_name_it_has(family: str) -> None:
    model = record_model(family)
    assert MECHANISMS[family].name == family
    example = {"modular": MODULAR, "channel": CHANNEL, "integer": INTEGER}[family]
    mechanism = model.model_validate(example).to_mechanism()
    assert mechanism.family == family
    with pytest.raises(ValueError, match="validation error"):
        model.model_validate(example | {"mechanism": "geometric_clamped"})


def test_no_solver_leaves_a_total_that_the_verifier_does_not_read() -> None:
    assert 2**MOST_BITS <= ModularRecord.MAX_TOTAL < 2 ** (MOST_BITS + 32)
    assert ChannelRecord.MAX_TOTAL == IntegerRecord.MAX_TOTAL == 2**DEFAULT_BITS
