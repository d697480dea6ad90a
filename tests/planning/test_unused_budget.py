"""Ten shared budgets of very different kinds: hardly anything of ε stays unused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from release.planning.plan import make_plan
from release.queries.read import read_spec
from tests.small import Small, query

Queries: TypeAlias = list[dict[str, Any]]

MICRO = "0.000001"
WIDE = {"ordered": {"min": 0, "max": 999}}
UNUSED = Fraction(1, 1000)
"""The most of ε that may stay unused, in proportion: of what is composed, or is added up."""

MOST_UNUSED = Fraction(1, 20)
"""The most that may stay unused of what is composed, where adding up is better."""


def shared(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """A query without a guarantee; of weight 1 unless ``fields`` says otherwise."""
    plain = query(kind, name=name, sensitivity="global", **fields)
    plain.pop("noise", None)
    del plain["guarantee"]
    return plain if "target" in fields else {"share": "1"} | plain


def counts(number: int, name: str = "count", **fields: Any) -> Queries:
    fields = {"domain": WIDE, "loss": "squared"} | fields
    return [shared("count", f"{name}_{place}", **fields) for place in range(number)]


def declared(epsilon: str) -> Queries:
    guarantee = {"definition": "pure", "epsilon": epsilon}
    fields = {"domain": WIDE, "sensitivity": "global", "guarantee": guarantee}
    return [query("count", name=f"declared_{place}", **fields) for place in range(4)]


def weighted(weights: list[int]) -> Queries:
    losses = ("squared", "absolute")
    found = []
    for place, weight in enumerate(weights):
        loss = losses[place % 2]
        found += counts(1, f"weight_{place}", share=str(weight), loss=loss)
    return found


SPECS: dict[str, tuple[Queries, dict[str, Any]]] = {
    "three": (counts(3), {}),
    "sixty": (counts(60), {}),
    "one heavy": ([*counts(1, "heavy", share="100"), *counts(9)], {}),
    "all losses": (
        [
            *counts(2, "rate", loss="error_rate"),
            *counts(2, "mean", loss="absolute", share="3"),
            *counts(8),
        ],
        {},
    ),
    "targets": (
        [
            *counts(1, "near", target="squared <= 40"),
            *counts(2, "far", target="absolute <= 19", loss="absolute"),
            *counts(12),
        ],
        {},
    ),
    "guarantees": ([*declared("0.1"), *counts(6)], {}),
    "rows in several cells": (counts(10), {"max_rows_per_unit": 3, "neighbors": "replace_one"}),
    "statistics": (
        [
            *(shared("mode", f"mode_{place}") for place in range(12)),
            shared("binned", "mean", statistic="mean", share="2"),
            *counts(3),
        ],
        {},
    ),
    "a small budget": (counts(30), {"budget": ("0.1", "0.000000001")}),
    "a large budget": (weighted(list(range(1, 13))), {"budget": ("8", "0.00001")}),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_shared_budget_is_used_up(tmp_path: Path, name: str) -> None:
    queries, fields = SPECS[name]
    given: dict[str, Any] = {"neighbors": "add_remove", "max_rows_per_unit": 1}
    given |= {"budget": ("1", MICRO)} | fields
    plan = make_plan(read_spec(Small([], queries, **given).write(tmp_path)))
    epsilon, delta = map(Fraction, given["budget"])
    assert plan.epsilon <= epsilon
    charges = [planned.charge.epsilon for planned in plan.queries]
    charges += [planned.charge.epsilon for planned in plan.on_statistic]
    # Of a few queries the charges that add up to ε have the least noise, and compose to less.
    assert epsilon * (1 - UNUSED) <= max(plan.epsilon, sum(charges))
    assert epsilon * (1 - MOST_UNUSED) <= plan.epsilon
    assert plan.delta <= delta
