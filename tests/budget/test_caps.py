"""What a cap may say, and that a scope that adds up is written as before there were rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from release.budget.caps import PlannedSlot, ScopeCap, SlotProfile
from release.budget.entries import Policy
from release.budget.state import read_entry
from release.exact.composition.profile import Profile
from release.records.models import canonical

SLOT: dict[str, Any] = {"name": "n", "times": 2, "epsilon": "1", "delta": "0"}
CURVE: dict[str, Any] = {"step": "1/2", "values": ["30", "10", "0"]}
PLD: dict[str, Any] = {"scope": "s", "epsilon": "3", "delta": "0.1", "rule": "pld"}
FILTER: dict[str, Any] = {
    **PLD,
    "rule": "renyi_filter",
    "order": 2,
    "cuts": "0.01",
}


def policy(cap: ScopeCap) -> Policy:
    return Policy(seq=1, prev="sha256:" + "0" * 64, date="2024-03-01", kind="policy", cap=cap)


def test_a_scope_that_adds_up_has_the_form_it_always_had() -> None:
    cap = ScopeCap(scope="s", epsilon="3", delta="0.1")
    assert canonical(policy(cap)) == (
        b'{"cap":{"delta":"0.1","epsilon":"3","scope":"s"},"date":"2024-03-01",'
        b'"kind":"policy","prev":"sha256:' + b"0" * 64 + b'","seq":1}'
    )


@pytest.mark.parametrize(
    "cap",
    [
        {**PLD, "planned": [SLOT]},
        {
            **PLD,
            "planned": [{**SLOT, "declared": True}, {"name": "m", "times": 1, "profile": CURVE}],
        },
        FILTER,
    ],
)
def test_a_cap_is_read_as_it_was_written(cap: dict[str, Any]) -> None:
    entry = policy(ScopeCap.model_validate(cap))
    data = canonical(entry)
    assert read_entry(1, data) == entry
    assert b'"declared":false' not in data
    if cap["rule"] == "pld":
        assert b'"order"' not in data


@pytest.mark.parametrize(
    "cap",
    [
        {**PLD},
        {**PLD, "planned": []},
        {**PLD, "planned": [SLOT, SLOT]},
        {**PLD, "planned": [SLOT], "delta": "1"},
        {**PLD, "planned": [SLOT], "order": 2},
        {**PLD, "planned": [SLOT], "period": {"every": "day", "epsilon": "1", "delta": "0"}},
        {**PLD, "rule": "basic", "planned": [SLOT]},
        {**PLD, "rule": "basic", "cuts": "0"},
        {**PLD, "rule": "zcdp"},
        {**FILTER, "order": 1},
        {**FILTER, "order": 257},
        {**FILTER, "order": None},
        {**FILTER, "cuts": None},
        {**FILTER, "cuts": "0.1"},
        {**FILTER, "planned": [SLOT]},
        {**FILTER, "epsilon": "101"},
        {**FILTER, "delta": "1"},
    ],
)
def test_another_shape_is_no_cap(cap: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScopeCap.model_validate(cap)


@pytest.mark.parametrize(
    "change",
    [
        {"times": 0},
        {"times": 100_001},
        {"epsilon": "101"},
        {"epsilon": None},
        {"delta": None},
        {"profile": CURVE},
        {"epsilon": None, "delta": None},
        {"epsilon": None, "delta": None, "profile": CURVE, "declared": True},
        {"name": "No"},
    ],
)
def test_another_shape_is_no_slot(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PlannedSlot.model_validate({**SLOT, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"step": "0"},
        {"step": "101"},
        {"values": []},
        {"values": ["1", "2"]},
        {"values": ["1" + "0" * 29]},
        {"values": ["-1"]},
        {"values": [1]},
    ],
)
def test_another_shape_is_no_profile(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SlotProfile.model_validate({**CURVE, **change})


def test_a_plan_holds_a_thousand_slots_and_each_a_hundred_thousand_releases() -> None:
    slots = [SLOT | {"name": f"n{number}"} for number in range(1001)]
    assert PlannedSlot.model_validate(SLOT | {"times": 100_000}).times == 100_000
    assert len(ScopeCap.model_validate({**PLD, "planned": slots[:1000]}).planned or ()) == 1000
    with pytest.raises(ValidationError):
        ScopeCap.model_validate({**PLD, "planned": slots})


def test_a_profile_has_one_loss_or_as_many_as_a_grid() -> None:
    for length in (1, 2**14 + 1):
        record = SlotProfile(step="1/2", values=["7"] * length)
        assert record.to_profile() == Profile(Fraction(1, 2), (7,) * length)
    with pytest.raises(ValidationError, match="at most 16385 items"):
        SlotProfile(step="1/2", values=["7"] * (2**14 + 2))


def test_a_slot_lies_a_little_above_the_profile_that_it_is_made_of() -> None:
    room, unit = 10**10, 10**28
    profile = Profile(Fraction(1, 3), (unit, unit - room, unit - room - 1, 5, 0))
    around = SlotProfile.around(profile)
    assert around.step == "1/3"
    expected = (unit, unit, unit - 1, room + 5, room)
    assert around.to_profile() == Profile(Fraction(1, 3), expected)
