"""Targets: the least ε and δ against every step of a search, with the mechanism of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from release.errors import DesignError
from release.exact.privacy import Definition, Guarantee
from release.noise.families import Solvers
from release.planning.plan import possible, without_baselines
from release.planning.targets import Least, delta_for, epsilon_for, parse_target
from release.spec.load import SpecFile
from release.spec.query import Query
from tests.planning.test_plan import spec_of
from tests.small import query


def promise(definition: str, delta: str = "0", epsilon: str = "1") -> dict[str, str]:
    pure = {"definition": definition, "epsilon": epsilon}
    return pure if delta == "0" else pure | {"delta": delta}


def count(answers: int, claimed: dict[str, str], loss: str) -> dict[str, Any]:
    domain = {"ordered": {"min": 0, "max": answers - 1}}
    return query("count", domain=domain, sensitivity="global", guarantee=claimed, loss=loss)


def mode(answers: int, claimed: dict[str, str], *, nominal: bool) -> dict[str, Any]:
    if not nominal:
        return query("mode", domain={"cyclic": answers}, sensitivity="global", guarantee=claimed)
    names = list("abcdef"[:answers])
    fields: dict[str, Any] = {"of": "place", "domain": {"nominal": names}}
    return query("mode", sensitivity="global", guarantee=claimed, **fields)


def mean(claimed: dict[str, str], bins: int, loss: str) -> dict[str, Any]:
    width = {"low": 0, "high": 20, "count": bins}
    fields: dict[str, Any] = {"statistic": "mean", "bins": width, "clamp": [0, 19]}
    return query("binned", sensitivity="global", guarantee=claimed, loss=loss, **fields)


def loss_at(asked: Query, spec_file: SpecFile, guarantee: Guarantee) -> Fraction | None:
    """The loss of the mechanism that a release would use; None where a run would publish none."""
    ((_, request),) = possible(spec_file, asked)
    try:
        design = without_baselines(asked, replace(request, guarantee=guarantee), Solvers())
    except (DesignError, ValueError):
        return None
    return None if design.mechanism.is_constant() else design.objective


def first_within(
    asked: Query, spec_file: SpecFile, cap: Fraction, guarantees: Iterator[Guarantee]
) -> Guarantee | None:
    """The first of the guarantees at which the release meets the cap, one after the other."""
    for guarantee in guarantees:
        loss = loss_at(asked, spec_file, guarantee)
        if loss is not None and loss <= cap:
            return guarantee
    return None


def by_epsilon(one: Least) -> Iterator[Guarantee]:
    for steps in range(1, 10_001):
        yield replace(one.guarantee, epsilon=Fraction(steps, 100))


def by_delta(one: Least, kind: Definition) -> Iterator[Guarantee]:
    for steps in range(1000):
        held = kind if steps else Definition.PURE
        yield Guarantee(held, one.guarantee.epsilon, Fraction(steps, 1000))


PURE, APPROXIMATE = promise("pure"), promise("approximate", "0.05")
PROBABILISTIC = promise("probabilistic", "0.05")

EPSILONS = [
    *((count(3, PURE, "absolute"), f"absolute <= {cap}") for cap in ("0.6", "0.5")),
    *((count(5, PURE, "squared"), f"squared <= {cap}") for cap in ("1.9", "1")),
    (count(12, PURE, "error_rate"), "error_rate <= 0.8"),
    *((count(3, APPROXIMATE, "squared"), f"squared <= {cap}") for cap in ("0.6", "0.5")),
    (count(5, APPROXIMATE, "squared"), "squared <= 1.6"),
    (count(12, APPROXIMATE, "absolute"), "absolute <= 2.5"),
    *((count(3, PROBABILISTIC, "squared"), f"squared <= {cap}") for cap in ("0.6", "0.5")),
    (count(4, PROBABILISTIC, "error_rate"), "error_rate <= 0.65"),
    (mode(3, PURE, nominal=True), "error_rate <= 0.4"),
    (mode(6, APPROXIMATE, nominal=True), "error_rate <= 0.6"),
    (mode(6, PROBABILISTIC, nominal=True), "error_rate <= 0.6"),
    (mode(6, PURE, nominal=False), "squared <= 1"),
    (mode(5, PROBABILISTIC, nominal=False), "squared <= 1.5"),
    (mean(PURE, 4, "absolute"), "absolute <= 0.8"),
    (mean(APPROXIMATE, 6, "squared"), "squared <= 3"),
]


@pytest.mark.parametrize(("asked", "target"), EPSILONS)
def test_the_least_epsilon_is_the_first_of_all_steps(
    asked: dict[str, Any], target: str, tmp_path: Path
) -> None:
    spec_file = spec_of(tmp_path, asked)
    wanted = parse_target("--epsilon-for", target)
    (one,) = epsilon_for(spec_file, wanted)
    assert one.objective <= wanted.cap
    assert one.guarantee == first_within(one.query, spec_file, wanted.cap, by_epsilon(one))


DELTAS = [
    *((count(3, PURE, "squared"), f"squared <= {cap}") for cap in ("0.4", "0.35")),
    (count(5, PURE, "squared"), "squared <= 0.9"),
    (count(12, PURE, "squared"), "squared <= 1.4"),
    (count(12, PURE, "error_rate"), "error_rate <= 0.5"),
    (count(4, PROBABILISTIC, "squared"), "squared <= 0.6"),
    (mode(4, PURE, nominal=True), "error_rate <= 0.4"),
    (mode(6, PROBABILISTIC, nominal=True), "error_rate <= 0.55"),
    (mode(5, PROBABILISTIC, nominal=False), "squared <= 0.55"),
    (mean(PURE, 5, "absolute"), "absolute <= 0.8"),
]


@pytest.mark.parametrize(("asked", "target"), DELTAS)
def test_the_least_delta_is_the_first_of_all_steps(
    asked: dict[str, Any], target: str, tmp_path: Path
) -> None:
    spec_file = spec_of(tmp_path, asked)
    wanted = parse_target("--delta-for", target)
    (one,) = delta_for(spec_file, wanted)
    claimed = Definition(asked["guarantee"]["definition"])
    kind = Definition.APPROXIMATE if claimed is Definition.PURE else claimed
    assert one.objective <= wanted.cap
    assert one.guarantee == first_within(one.query, spec_file, wanted.cap, by_delta(one, kind))
