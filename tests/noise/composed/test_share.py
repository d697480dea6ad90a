"""Shares of one budget: targets met, weights honoured, ε certified and nearly all used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import BudgetError
from release.exact.composition.distribution import LossDistribution, of_charge
from release.exact.composition.profile import pure_profile
from release.exact.composition.together import together
from release.exact.integers.noise import IntegerNoise
from release.exact.statistics.exponential import bounded_range_profile
from release.noise.composed.account import group_losses
from release.noise.composed.groups import EXPONENTIAL, Kind, Selected, ShareRequest, ShareResult
from release.noise.composed.share import grid_step, share_out

ONE, DELTA = Fraction(1), Fraction(1, 10**6)
BOTH = ("permute_and_flip", "exponential_mechanism")


def shares(weight: str, count: int, **more: object) -> list[ShareRequest]:
    return [
        ShareRequest(f"{weight}-{place}-{more}", weight=Fraction(weight), **more)  # type: ignore[arg-type]
        for place in range(count)
    ]


def selections(weight: str, count: int) -> list[ShareRequest]:
    return shares(
        weight, count, kind=Kind.SELECTION, candidates=24, spread=1, loss_power=1, families=BOTH
    )


def certified(
    requests: Sequence[ShareRequest],
    found: Sequence[ShareResult],
    fixed: LossDistribution | None = None,
) -> Fraction:
    """The ε of all at δ, composed anew from what was found, one query after the other."""
    step = grid_step(requests, ONE)
    parts: dict[object, tuple[LossDistribution, int]] = {}
    for request, one in zip(requests, found, strict=True):
        assert one.name == request.name
        mechanism = one.mechanism
        key = (mechanism, request.patterns, request.cells)
        if key in parts:
            parts[key] = (parts[key][0], parts[key][1] + 1)
        elif isinstance(mechanism, IntegerNoise):
            parts[key] = (group_losses(mechanism, request.patterns, step), 1)
        else:
            curve = bounded_range_profile if mechanism.family == EXPONENTIAL else pure_profile
            losses = curve(mechanism.epsilon, step).distribution()
            parts[key] = (losses.repeated(request.cells), 1)
    whole = list(parts.values())
    if fixed is not None:
        whole.append((fixed.regridded(step), 1))
    epsilon = together(whole).epsilon_at(DELTA)
    assert epsilon is not None
    pure = [one.pure_epsilon for one in found if one.pure_epsilon is not None]
    # Pure charges add up too; where they are few the grid may certify a little more than that.
    return (
        min(epsilon, sum(pure, Fraction(0))) if len(pure) == len(found) and not fixed else epsilon
    )


def variance(found: ShareResult) -> Fraction:
    assert isinstance(found.mechanism, IntegerNoise)
    return found.mechanism.moment(2)


@pytest.mark.parametrize(
    ("heavy", "light", "most"), [(("100", 1), 9, 4200), (("10", 1), 99, 186_500)]
)
def test_weights_decide_who_gets_more(heavy: tuple[str, int], light: int, most: int) -> None:
    requests = [*shares(*heavy), *shares("1", light)]
    found = share_out(requests, ONE, DELTA)
    total = sum((request.weight or 0) * variance(one) for request, one in zip(requests, found))  # noqa: B905
    assert total <= most
    assert Fraction(9995, 10_000) <= certified(requests, found) <= 1


MIXED = {
    "targets": [ShareRequest("t", target=Fraction(20)), *shares("1", 10)],
    "absolute": [ShareRequest("t", target=Fraction(5), loss_power=1), *shares("1", 20)],
    "error rate": [
        ShareRequest("t", target=Fraction(9, 10), loss_power=0),
        *shares("1", 4, loss_power=0),
    ],
    "kinds": [
        *selections("1", 5),
        *shares("1", 5, loss_power=1, patterns=((2,), (1, 1))),
        *shares("1", 1, kind=Kind.PURE, cells=3, loss_at_one=Fraction(10)),
    ],
    "many groups": [request for place in range(8) for request in shares(str(place + 1), 2)],
}


@pytest.mark.parametrize("name", MIXED)
def test_budgets_are_used_and_never_exceeded(name: str) -> None:
    requests = MIXED[name]
    found = share_out(requests, ONE, DELTA)
    assert Fraction(9995, 10_000) <= certified(requests, found) <= 1
    for request, one in zip(requests, found, strict=True):
        if request.target is not None:
            assert isinstance(one.mechanism, IntegerNoise)
            loss = one.mechanism.moment(request.loss_power)
            assert request.target * Fraction(999, 1000) <= loss <= request.target


def test_targets_alone_spend_no_more_than_they_need() -> None:
    requests = [ShareRequest(f"t{place}", target=Fraction(2000)) for place in range(60)]
    found = share_out(requests, ONE, DELTA)
    assert certified(requests, found) < Fraction(8, 10)
    assert {Fraction(1999) < variance(one) <= 2000 for one in found} == {True}


def test_a_target_beyond_the_budget_names_the_query_and_the_epsilon_that_would_do() -> None:
    requests = [ShareRequest("harsh", target=Fraction(1)), *shares("1", 5)]
    with pytest.raises(BudgetError, match=r"query harsh: the targets need epsilon 1\.3\d+ in all"):
        share_out(requests, ONE, DELTA)


def test_what_is_charged_already_is_left_to_the_others() -> None:
    fixed = of_charge(Fraction(1, 2), Fraction(1, 10**8), Fraction(1, 2))
    requests = shares("1", 30)
    found = share_out(requests, ONE, DELTA, fixed)
    assert Fraction(9995, 10_000) <= certified(requests, found, fixed) <= 1
    assert variance(found[0]) > variance(share_out(requests, ONE, DELTA)[0])


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [("2", "1e-8", "no noise within the budget"), ("0.5", "1e-5", "need all of delta")],
)
def test_a_budget_that_is_charged_already_is_refused(
    epsilon: str, delta: str, message: str
) -> None:
    fixed = of_charge(Fraction(epsilon), Fraction(delta), Fraction(1, 2))
    with pytest.raises(BudgetError, match=message):
        share_out(shares("1", 3), ONE, DELTA, fixed)


def test_many_selections_use_the_exponential_mechanism_and_few_do_not() -> None:
    for count, family in ((2, "permute_and_flip"), (40, "exponential_mechanism")):
        found = share_out(selections("1", count), ONE, DELTA)
        assert isinstance(found[0].mechanism, Selected)
        assert found[0].mechanism.family == family


def test_variances_lie_between_the_rules_for_many_and_for_pure_queries() -> None:
    requests = [*shares("9", 6), *shares("1", 6)]
    found = share_out(requests, ONE, DELTA)
    assert 3 < variance(found[-1]) / variance(found[0]) < 9 ** (2 / 3)


PURE_GROUPS = st.lists(
    st.tuples(
        st.sampled_from([((1,),), ((5,),), ((5,), (4, 1), (3, 2)), ((1, 1),)]),
        st.integers(0, 2),
        st.sampled_from(["1", "8", "1/3"]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=12, deadline=None)
@given(PURE_GROUPS)
def test_without_delta_the_pure_epsilons_add_up_to_the_budget(
    groups: list[tuple[tuple[tuple[int, ...], ...], int, str, int]],
) -> None:
    requests = []
    for place, (patterns, power, weight, count) in enumerate(groups):
        for number in range(count):
            requests.append(
                ShareRequest(f"{place}-{number}", patterns, power, weight=Fraction(weight))
            )
    found = share_out(requests, ONE, Fraction(0))
    total = sum((one.pure_epsilon or Fraction(0) for one in found), Fraction(0))
    assert Fraction(9999, 10_000) <= total <= 1
    for request, one in zip(requests, found, strict=True):
        assert isinstance(one.mechanism, IntegerNoise)
        noise, epsilon = one.mechanism, one.pure_epsilon or Fraction(0)
        losses = group_losses(noise, request.patterns, epsilon / 200)
        # A tail's ratio and the ends of the grid are rounded.
        assert (losses.epsilon_at(Fraction(1, 10**15)) or 0) <= epsilon * Fraction(102, 100)


def test_pure_shares_go_as_the_cube_root_of_the_weight() -> None:
    found = share_out([*shares("8", 1), *shares("1", 9)], Fraction(1, 10), Fraction(0))
    heavy, light = found[0].pure_epsilon, found[1].pure_epsilon
    assert heavy is not None
    assert light is not None
    assert float(heavy / light) == pytest.approx(2, rel=1e-3)


def test_pure_targets_take_the_least_epsilon() -> None:
    requests = [ShareRequest("t", target=Fraction(20)), *shares("1", 1)]
    found = share_out(requests, ONE, Fraction(0))
    assert variance(found[0]) <= 20
    assert float(variance(found[0])) == pytest.approx(20, rel=1e-6)
    # 2r/(1-r)² = 20 at the geometric noise's ratio r.
    ratio = (21 - math.sqrt(41)) / 20
    assert float(found[0].pure_epsilon or 0) == pytest.approx(-math.log(ratio), rel=1e-6)
    with pytest.raises(BudgetError, match=r"query t: its target needs epsilon 1\.317"):
        share_out([ShareRequest("t", target=ONE)], ONE, Fraction(0))


def test_how_often_a_selection_errs_is_no_target() -> None:
    asked = ShareRequest(
        "m", target=Fraction(1, 10), loss_power=0, kind=Kind.SELECTION, candidates=3, spread=1
    )
    for delta in (DELTA, Fraction(0)):
        with pytest.raises(BudgetError, match="query m: how often a selection errs depends"):
            share_out([asked], ONE, delta)


def test_requests_that_ask_for_nothing_are_refused() -> None:
    for weight, target in ((None, None), (ONE, ONE), (Fraction(0), None), (None, Fraction(-1))):
        with pytest.raises(ValueError, match="a share or a target"):
            ShareRequest("q", weight=weight, target=target)
    with pytest.raises(ValueError, match="needs no noise"):
        ShareRequest("q", patterns=((), (0,)), weight=ONE)
    with pytest.raises(ValueError, match="two candidates"):
        ShareRequest("q", kind=Kind.SELECTION, candidates=1, spread=1, weight=ONE)
    assert share_out([], ONE, DELTA) == ()


def test_a_large_delta_leaves_a_mechanism_and_no_division_by_zero() -> None:
    """At so large a δ a little less noise leads from no ε at all beyond the budget."""
    step = Fraction("0.095") / 20
    found = share_out(selections("1", 1), Fraction("0.095"), Fraction("0.5"), None, step)
    assert isinstance(found[0].mechanism, Selected)
    assert 0 < found[0].mechanism.epsilon < 10
