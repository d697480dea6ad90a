"""Targets: the least ε and δ against every step of a search, with the mechanism of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

import pytest

from release.errors import DesignError, SpecError
from release.exact.privacy import Definition, Guarantee
from release.noise.families import Solvers
from release.noise.search import Trial, least
from release.planning.plan import possible, without_baselines
from release.planning.targets import Least, delta_for, epsilon_for
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.losses import parse_target
from release.spec.query import Query
from tests.every import every
from tests.planning.test_plan import spec_of
from tests.small import Small, query


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


def tried(steps: int) -> Iterator[int]:
    """The steps up to a number of them: each of the last ten, and of those below a part."""
    near = range(max(0, steps - 10), steps + 1)
    return chain(range(0, near[0], every(7)), near)


def by_epsilon(one: Least) -> Iterator[Guarantee]:
    for steps in tried(int(100 * one.guarantee.epsilon)):
        if steps:
            yield replace(one.guarantee, epsilon=Fraction(steps, 100))


def by_delta(one: Least, kind: Definition) -> Iterator[Guarantee]:
    for steps in tried(int(1000 * one.guarantee.delta)):
        held = kind if steps else Definition.PURE
        yield Guarantee(held, one.guarantee.epsilon, Fraction(steps, 1000))


PURE, APPROXIMATE = promise("pure"), promise("approximate", "0.05")
PROBABILISTIC = promise("probabilistic", "0.05")

EPSILONS = [
    *((count(3, PURE, "absolute"), f"absolute <= {cap}") for cap in ("0.6", "0.5")),
    *((count(5, PURE, "squared"), f"squared <= {cap}") for cap in ("1.9", "1")),
    (count(12, PURE, "error_rate"), "error_rate <= 0.8"),
    (count(3, APPROXIMATE, "squared"), "squared <= 0.6"),
    (count(5, APPROXIMATE, "squared"), "squared <= 1.6"),
    (count(12, APPROXIMATE, "absolute"), "absolute <= 2.5"),
    (count(3, PROBABILISTIC, "squared"), "squared <= 0.63"),
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
    assert (100 * one.guarantee.epsilon).denominator == 1
    assert one.guarantee == first_within(one.query, spec_file, wanted.cap, by_epsilon(one))


DELTAS = [
    *((count(3, PURE, "squared"), f"squared <= {cap}") for cap in ("0.65", "0.64")),
    (count(5, PURE, "squared"), "squared <= 1.5"),
    (count(12, PURE, "squared"), "squared <= 3.8"),
    (count(12, PURE, "error_rate"), "error_rate <= 0.66"),
    (count(4, PROBABILISTIC, "squared"), "squared <= 1"),
    (mode(4, PURE, nominal=True), "error_rate <= 0.4"),
    (mode(6, PROBABILISTIC, nominal=True), "error_rate <= 0.62"),
    (mode(5, PROBABILISTIC, nominal=False), "squared <= 1.2"),
    (mean(PURE, 5, "absolute"), "absolute <= 0.95"),
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
    assert (1000 * one.guarantee.delta).denominator == 1
    assert one.guarantee == first_within(one.query, spec_file, wanted.cap, by_delta(one, kind))


def trials(losses: list[int], floors: list[int]) -> Any:
    """A search's steps: the loss and the floor of each, in percent."""
    return lambda steps: Trial(Fraction(losses[steps - 1]), Fraction(floors[steps - 1]), steps)


@pytest.mark.parametrize("cap", range(5, 100, 5))
def test_a_loss_that_rises_in_between_hides_no_smaller_step(cap: int) -> None:
    """Each seventh step, of 200, has a simpler mechanism that loses a little more."""
    floors = [max(1, 100 - steps // 2) for steps in range(200)]
    losses = [floor + (2 if steps % 7 else 4) for steps, floor in enumerate(floors)]
    found = least(trials(losses, floors), 200, Fraction(cap))
    assert found.result == 1 + next(i for i, loss in enumerate(losses) if loss <= cap)


def test_the_trial_of_the_most_steps_tells_how_far_the_cap_is() -> None:
    found = least(trials([9] * 100, [8] * 100), 100, Fraction(5))
    assert found.result == 100
    assert found.loss == 9


def test_a_mechanism_that_a_run_would_refuse_meets_no_target(tmp_path: Path) -> None:
    """At small ε the best of three answers is the middle one, whatever the truth."""
    asked = count(3, PURE, "squared")
    spec_file = spec_of(tmp_path, asked)
    (one,) = epsilon_for(spec_file, parse_target("--epsilon-for", "squared <= 1"))
    assert loss_at(one.query, spec_file, one.guarantee) == one.objective
    less = replace(one.guarantee, epsilon=one.guarantee.epsilon - Fraction(1, 100))
    if less.epsilon:
        assert loss_at(one.query, spec_file, less) is None


def test_a_refusal_names_the_query_and_the_least_loss(tmp_path: Path) -> None:
    spec_file = spec_of(tmp_path, count(5, PURE, "squared"))
    target = parse_target("--epsilon-for", "squared <= 0")
    told = (
        "^query the_count: no epsilon up to 100 meets squared <= 0: at the largest it is 0.000001"
    )
    with pytest.raises(DesignError, match=told):
        list(epsilon_for(spec_file, target))


def test_a_pinned_gaussian_meets_its_target_also_at_large_epsilon(tmp_path: Path) -> None:
    """It is fitted for each ε; none of the steps below that are tried does."""
    asked = count(4, promise("probabilistic", "0.3"), "squared") | {"mechanism": "gaussian_clamped"}
    spec_file = spec_of(tmp_path, asked)
    target = parse_target("--epsilon-for", "squared <= 0.1")
    (one,) = epsilon_for(spec_file, target)
    assert one.objective <= Fraction(1, 10)
    below = takewhile(lambda other: other != one.guarantee, by_epsilon(one))
    near = (other for other in below if one.guarantee.epsilon - other.epsilon < Fraction(3, 10))
    assert first_within(one.query, spec_file, target.cap, near) is None


@pytest.mark.parametrize("domain", [{"ordered": {"min": 0, "max": 10**6}}, {"integers": {}}])
def test_targets_of_counts_of_any_size(domain: dict[str, Any], tmp_path: Path) -> None:
    """Far from the ends the mean error is 2·r/(1-r²), with r = e^-ε/μ and μ = 3 rows of a unit."""
    asked = query("count", domain=domain, sensitivity="global", loss="absolute")
    spec_file = spec_of(tmp_path, asked)
    (one,) = epsilon_for(spec_file, parse_target("--epsilon-for", "absolute <= 2"))
    assert one.guarantee.epsilon == Fraction("1.39")
    (other,) = delta_for(spec_file, parse_target("--delta-for", "absolute <= 2"))
    assert other.guarantee.delta == Fraction("0.11")


def test_a_target_in_another_loss_than_that_of_the_query_is_refused(tmp_path: Path) -> None:
    asked = query("count", sensitivity="global", loss="squared", target="absolute <= 9")
    del asked["guarantee"]
    with pytest.raises(SpecError, match=r"target: is in absolute loss, .* leave loss out"):
        read_spec(Small([], [asked]).write(tmp_path))
