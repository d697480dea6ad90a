"""A scope that adds up: what is left of its caps, in words and in numbers of releases."""

from __future__ import annotations

from fractions import Fraction

import pytest

from release.budget.caps import ScopeCap
from release.budget.entries import Reserve
from release.budget.rules.accounts import BasicAccount
from release.errors import LedgerError
from tests.budget.entries import reservation


def account(epsilon: str, delta: str) -> BasicAccount:
    return BasicAccount(ScopeCap(scope="s", epsilon=epsilon, delta=delta))


def reserve(epsilon: str, delta: str = "0") -> Reserve:
    return reservation(epsilon=epsilon, delta=delta)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        ("1/4", "0", 4),
        ("0.3", "0", 3),
        ("1.1", "0", 0),
        ("0", "0.04", 2),
        ("0.1", "0.04", 2),
        ("0.5", "0.01", 2),
        ("0", "0", None),
    ],
)
def test_a_charge_fits_as_often_as_the_tighter_cap_allows(
    epsilon: str, delta: str, expected: int | None
) -> None:
    assert account("1", "0.1").affordable(reserve(epsilon, delta)) == expected


def test_what_is_spent_is_not_left() -> None:
    spent = account("1", "0.1")
    spent.charge(reserve("0.25", "0.03"))
    assert spent.left() == "ε 0.75, δ 0.07"
    assert spent.affordable(reserve("0.25")) == 3
    assert spent.affordable(reserve("0", "0.03")) == 2
    assert (spent.level(), spent.level_cap()) == (Fraction("0.25"), Fraction(1))
    assert spent.certified() == (Fraction("0.25"), Fraction("0.03"))
    spent.refund(reserve("0.25", "0.03"))
    assert spent.left() == "ε 1, δ 0.1"


def test_nothing_is_left_below_a_lowered_cap() -> None:
    spent = account("1", "0.1")
    spent.charge(reserve("0.9", "0.05"))
    spent.change(ScopeCap(scope="s", epsilon="0.5", delta="0"))
    assert spent.left() == "ε 0, δ 0"
    assert spent.affordable(reserve("0.1")) == 0
    assert spent.affordable(reserve("0", "0.01")) == 0


@pytest.mark.parametrize("field", ["slot", "moment", "cut"])
def test_a_reserve_holds_nothing_of_another_rule(field: str) -> None:
    with pytest.raises(LedgerError, match=rf"whose rule is basic, has the field {field}$"):
        account("1", "0").check(reserve("1").model_copy(update={field: "1"}))
    account("1", "0").check(reserve("1"))
