"""The entries of a ledger: each field at its longest and largest, and one beyond."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from release.budget.entries import ENTRY, NOTHING, ReleaseCharge, Spent

ANY: dict[str, Any] = {"seq": 0, "prev": NOTHING, "date": "2024-03-01"}
GENESIS = ANY | {"kind": "genesis", "origin": "example.org/dp", "scopes": [], "keys": ["key"]}
CHARGE = {"epsilon": "1", "delta": "0"}
RESERVE = ANY | {"kind": "reserve", "scope": "s", "release_id": "r", **CHARGE}
COMMIT = ANY | {"kind": "commit", "release_id": "r", "sums": NOTHING}
SKIP = ANY | {"kind": "skip", "release_id": "r", "reason": "late"}
REVISE = ANY | {"kind": "revise", "release_id": "r", "by": "r-r2", "reason": "wrong"}
KEY = ANY | {"kind": "key", "action": "add", "key": "key", "signature": ""}
STORE = ANY | {"kind": "store", "uri": "s3://bucket"}
CAP: dict[str, Any] = {"scope": "s", **CHARGE}
POLICY = ANY | {"kind": "policy", "cap": CAP}


def monthly(**fields: Any) -> dict[str, Any]:
    return {"cap": CAP | {"period": {"every": "month", **CHARGE, **fields}}}


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (COMMIT, {"seq": 10**8 - 1}),
        (COMMIT, {"prev": "sha256:" + "9f" * 32}),
        (RESERVE, {"scope": "a" * 100}),
        (RESERVE, {"scope": "0", "release_id": "9._-z"}),
        (RESERVE, {"epsilon": "1/" + "7" * 398}),
        (GENESIS, {"origin": "!" * 200}),
        (GENESIS, {"origin": "~*,"}),
        (GENESIS, {"scopes": [CAP, CAP]}),
        (GENESIS, {"keys": ["k" * 400]}),
        (KEY, {"action": "retire", "key": "k" * 400}),
        (KEY, {"signature": "A" * 98 + "=="}),
        (KEY, {"signature": "+/9z"}),
        (POLICY, monthly()),
        (POLICY, monthly(every="day")),
        (SKIP, {"reason": "é" * 300}),
        (REVISE, {"by": "r" * 100}),
        (STORE, {"uri": "file://" + "~" * 393}),
    ],
)
def test_an_entry_holds_its_fields_at_their_ends(
    entry: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert ENTRY.validate_python(entry | fields).kind == entry["kind"]


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (COMMIT, {"seq": -1}),
        (SKIP, {"reason": ""}),
        (REVISE, {"by": ""}),
        (REVISE, {"reason": "two\nlines"}),
        (SKIP, {"reason": "a" * 301}),
        (SKIP, {"reason": "two\nlines"}),
        (SKIP, {"reason": "bell\x7f"}),
        (COMMIT, {"seq": 10**8}),
        (COMMIT, {"seq": "0"}),
        (COMMIT, {"prev": "sha256:" + "9f" * 31}),
        (COMMIT, {"prev": "sha256:" + "9F" * 32}),
        (COMMIT, {"sums": "9f" * 32}),
        (COMMIT, {"kind": "anything"}),
        (COMMIT, {"scope": "s"}),
        (COMMIT, {"date": "2024-3-1"}),
        (RESERVE, {"scope": "a" * 101}),
        (RESERVE, {"release_id": "a" * 101}),
        (RESERVE, {"scope": "_"}),
        (RESERVE, {"scope": ""}),
        (RESERVE, {"epsilon": "1/" + "7" * 399}),
        (RESERVE, {"epsilon": "-1"}),
        (RESERVE, {"delta": 0}),
        (GENESIS, {"origin": "!" * 201}),
        (GENESIS, {"origin": ""}),
        (GENESIS, {"origin": "a+b"}),
        (GENESIS, {"origin": "a b"}),
        (GENESIS, {"keys": []}),
        (GENESIS, {"keys": ["one", "two"]}),
        (GENESIS, {"keys": ["k" * 401]}),
        (KEY, {"action": "change"}),
        (KEY, {"key": "k" * 401}),
        (KEY, {"signature": "A" * 101}),
        (KEY, {"signature": "A==="}),
        (POLICY, monthly(every="week")),
        (STORE, {"uri": "file://" + "~" * 394}),
        (STORE, {"uri": "file://a b"}),
        (STORE, {"uri": "file://"}),
        (POLICY, {"cap": {"scope": "s", "epsilon": "1"}}),
    ],
)
def test_an_entry_holds_nothing_beyond(entry: dict[str, Any], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ENTRY.validate_python(entry | fields)


def test_amounts_add_up_and_turn_by_their_parts() -> None:
    assert Spent() == Spent(Fraction(0), Fraction(0))
    some, more = Spent(Fraction(1), Fraction(1, 5)), Spent(Fraction(1, 2), Fraction(1, 10))
    assert some + more == Spent(Fraction(3, 2), Fraction(3, 10))
    assert some + -more == Spent(Fraction(1, 2), Fraction(1, 10))


def test_a_charge_of_delta_alone_loses_that_delta_at_every_epsilon() -> None:
    charge = ReleaseCharge.of(Fraction(0), Fraction(1, 100))
    assert charge.losses is not None
    assert charge.losses.delta_at(Fraction(0)) == Fraction(1, 100)
    assert charge.losses.delta_at(Fraction(3)) == Fraction(1, 100)
