"""Calls that people write by hand: text for a member, exact numbers, and one line where wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from release.errors import SpecError
from release.exact.domain import AnswerDomain, Topology
from release.exact.losses import (
    LossName,
    error_costs,
    joint_loss,
    named_loss,
    prior_loss,
    table_loss,
    worst_case,
)
from release.exact.privacy import Definition, Guarantee
from release.spec.losses import loss_on

Call = Callable[[], Any]
# What people write is text, where the signatures of types name members.
guarantee: Any = Guarantee
domain: Any = AnswerDomain
prior: Any = prior_loss
table: Any = table_loss
SQUARED, ORDERED = LossName.SQUARED, Topology.ORDERED
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("by_hand", "by_member"),
    [
        (guarantee("pure", 1, 0), Guarantee(Definition.PURE, Fraction(1), Fraction(0))),
        (
            guarantee("approximate", "0.5", "1/9"),
            Guarantee(Definition.APPROXIMATE, HALF, Fraction(1, 9)),
        ),
        (domain("cyclic", range(9)), AnswerDomain(Topology.CYCLIC, range(9))),
    ],
)
def test_text_and_numbers_are_understood(by_hand: Any, by_member: Any) -> None:
    assert by_hand == by_member
    assert type(next(iter(vars(by_hand).values()))) is type(next(iter(vars(by_member).values())))


@pytest.mark.parametrize(
    ("by_hand", "by_member"),
    [
        (
            lambda: named_loss("squared", "cyclic", 9),
            lambda: named_loss(SQUARED, Topology.CYCLIC, 9),
        ),
        (lambda: worst_case("squared", "ordered", 4), lambda: worst_case(SQUARED, ORDERED, 4)),
        (
            lambda: prior("squared", "ordered", ["1/2", "0.5"]),
            lambda: prior_loss(SQUARED, ORDERED, (HALF, HALF)),
        ),
        (lambda: table(["0", 1, "1/2"]), lambda: table_loss((Fraction(0), Fraction(1), HALF))),
        (
            lambda: joint_loss("squared", (domain("cyclic", range(3)),) * 2),
            lambda: joint_loss(SQUARED, (AnswerDomain(Topology.CYCLIC, range(3)),) * 2),
        ),
        (
            lambda: loss_on("absolute", domain("ordered", range(5))),
            lambda: loss_on(LossName.ABSOLUTE, AnswerDomain(ORDERED, range(5))),
        ),
    ],
)
def test_losses_by_name_are_those_by_member(by_hand: Call, by_member: Call) -> None:
    named, wanted = by_hand(), by_member()
    assert named.name == wanted.name
    assert (named.numerators == wanted.numerators).all()
    assert named.denominator == wanted.denominator


def test_costs_by_name_are_not_those_of_another_topology() -> None:
    """Text that is no member would fall through every comparison, without an error."""
    costs = error_costs("absolute", "ordered", 4)
    assert (costs == error_costs(LossName.ABSOLUTE, ORDERED, 4)).all()
    assert costs.max() == 3


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: guarantee("pur", 1, 0), "definition: found 'pur'; write pure, probabilistic or"),
        (lambda: guarantee("pure", 0.5, 0), "epsilon: found 0.5; write an integer, a Fraction, or"),
        (lambda: guarantee("pure", None, 0), "epsilon: found None; write an integer"),
        (lambda: guarantee("pure", 1, True), "delta: found True; write an integer"),
        (lambda: guarantee("pure", -1, 0), "epsilon: found -1; write a number of at least 0"),
        (lambda: named_loss("square", "cyclic", 9), "loss: found 'square'; write error_rate,"),
        (lambda: named_loss("squared", "round", 9), "topology: found 'round'; write nominal,"),
        (lambda: named_loss("squared", "cyclic", 9.0), "answers: found 9.0; write an integer of"),  # type: ignore[arg-type]
        (lambda: named_loss("squared", "cyclic", 1), "answers: found 1; write an integer of at"),
        (lambda: prior("squared", "ordered", (0.5, 0.5)), "prior[0]: found 0.5; write an integer"),
        (lambda: table("0, 1, 4"), "costs: found '0, 1, 4'; write a list of exact numbers"),
        (lambda: table([0, -1]), "costs[1]: found -1; write a number of at least 0"),
        (lambda: domain("round", range(3)), "topology: found 'round'; write nominal, ordered or"),
        (lambda: worst_case("squared", None, 4), "topology: found None; write nominal,"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_understood_is_one_line(call: Call, told: str) -> None:
    with pytest.raises(SpecError) as error:
        call()
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)
