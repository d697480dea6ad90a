"""Plans of slots: what they amount to together, and which releases fit, in which order."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.budget.caps import PlannedSlot, ScopeCap, SlotProfile
from release.budget.entries import ReleaseCharge, Reserve
from release.budget.rules.planned import (
    Plan,
    PlannedAccount,
    Slot,
    certified_epsilon,
    losses_of,
    slots_of,
)
from release.errors import BudgetError, LedgerError
from release.exact.composition.distribution import UNIT
from release.exact.composition.dominance import profile_of_losses
from release.exact.composition.grid import Spread
from release.exact.composition.profile import Profile, largest, profile_of_pairs
from release.exact.composition.together import together
from release.exact.numbers import exp_bounds
from tests.budget.entries import reservation

MILLIONTH = Fraction(1, 10**6)
Law = list[tuple[Fraction, Fraction]]


def slot(
    name: str, times: int, epsilon: str, delta: str = "0", *, declared: bool = False
) -> PlannedSlot:
    return PlannedSlot(name=name, times=times, epsilon=epsilon, delta=delta, declared=declared)


def by_profile(name: str, times: int, profile: Profile) -> PlannedSlot:
    values = list(map(str, profile.values))
    record = SlotProfile(step=str(profile.step), values=values)
    return PlannedSlot(name=name, times=times, profile=record)


def planned(epsilon: str, *slots: PlannedSlot, delta: str = "0.000001") -> PlannedAccount:
    return PlannedAccount(
        ScopeCap(scope="s", epsilon=epsilon, delta=delta, rule="pld", planned=list(slots))
    )


def profile_of(law: Law, step: Fraction) -> Profile:
    ways = (law, [(q, p) for p, q in law])
    return largest([profile_of_pairs(way, step, 400) for way in ways])


def entry(seq: int, slot: str | None, epsilon: str = "0", delta: str = "0") -> Reserve:
    return reservation(seq, epsilon=epsilon, delta=delta, slot=slot)


def charge(epsilon: str, delta: str = "0") -> ReleaseCharge:
    return ReleaseCharge.of(Fraction(epsilon), Fraction(delta))


def test_a_year_of_counts_is_4_613_448() -> None:
    year = planned("4.6135", slot("night", 365, "0.05"))
    year.opened()
    assert year.planned is not None
    assert Fraction("4.613448") < year.planned < Fraction("4.613449")
    # The cap is proved when the scope is created.
    with pytest.raises(BudgetError, match=r"together amount to ε 4.613449 at δ 0.000001"):
        planned("4.6134", slot("night", 365, "0.05")).opened()
    # A profile on a finer grid of the same curve amounts to the same, but for roundings.
    step, (low, high) = Fraction(1, 80), exp_bounds(Fraction("0.05"))
    values = []
    for place in range(5):
        ratio = exp_bounds(place * step)[0]
        values.append(min(10**28, max(0, int((high - ratio) / (low + 1) * 10**28) + 1)))
    finer = planned("4.7", by_profile("night", 365, Profile(step, (*values[:4], 0)))).planned
    assert finer is not None
    assert abs(finer - year.planned) < Fraction(1, 10**6)


def test_a_plan_that_fails_more_often_than_the_delta_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"together amount to no ε at all at δ 0.000001"):
        planned("99", slot("a", 2, "0.1", "0.000001")).opened()
    # By addition the δ of one is just allowed.
    planned("0.1", slot("a", 1, "0.1", "0.000001")).opened()


def test_declared_slots_are_added_to_what_is_certified() -> None:
    nights = slot("night", 100, "0.05")
    alone = planned("9", nights).planned
    seen = slot("seen", 3, "0.5", "0.0000001", declared=True)
    both = planned("9", nights, seen)
    assert alone is not None
    assert both.planned is not None
    # Three tenths of δ go to the declared ones, so the rest is read at a smaller one.
    rest = certified_epsilon(Plan((both.plan.slots[0],)), (100,), MILLIONTH * 7 / 10)
    assert rest is not None
    assert both.planned == rest + Fraction("1.5") > alone + Fraction("1.5")
    assert both.declared == (Fraction("1.5"), Fraction("0.0000003"))
    assert "of which ε 1.5 is added as declared" in both.summary()
    assert planned("9", nights, slot("seen", 11, "0", "0.0000001", declared=True)).planned is None


def test_the_first_free_slot_that_fits_is_taken() -> None:
    account = planned(
        "9", slot("small", 1, "0.1"), slot("large", 2, "0.5"), slot("loose", 1, "0.5", "0.0000001")
    )
    taken = []
    for number, epsilon in enumerate(("0.3", "0.05", "0.05", "0.4")):
        fields = account.fields(charge(epsilon), None)
        taken.append(fields["slot"])
        account.charge(entry(number, fields["slot"]))
    assert taken == ["large", "small", "large", "loose"]
    assert account.left() == "0 of 1 x small, 0 of 2 x large, 0 of 1 x loose"
    with pytest.raises(BudgetError, match="every slot of scope 's' is taken") as refusal:
        account.fields(charge("0.01"), None)
    assert refusal.value.scope_ended
    account.refund(entry(0, "large"))
    assert account.fields(charge("0.01"), None) == {"slot": "large"}


def test_a_refusal_names_twelve_free_slots_at_most() -> None:
    account = planned("9", *(slot(f"s{number:02}", 1, "0.1") for number in range(14)))
    with pytest.raises(BudgetError, match=r"free: s00, .*, s11\)"):
        account.fields(charge("0.3"), None)


def test_a_release_that_fits_nothing_is_told_what_to_do() -> None:
    account = planned("9", slot("a", 2, "0.1"), slot("b", 2, "0.2", "0.0000001"))
    with pytest.raises(
        BudgetError, match=r"\(ε 0.3, δ 0\) fits no free slot .*\(free: a, b\)"
    ) as no:
        account.fields(charge("0.3"), None)
    # Another release may fit, so that a schedule does not end here.
    assert not no.value.scope_ended
    assert account.fields(charge("0.1"), "b") == {"slot": "b"}
    with pytest.raises(BudgetError, match=r"budget.slot: the release .* does not fit slot 'a'"):
        account.fields(charge("0.15"), "a")
    with pytest.raises(BudgetError, match=r"has no slot 'c' \(its slots: a, b\); name one"):
        account.fields(charge("0.1"), "c")
    account.charge(entry(0, "a"))
    account.charge(entry(1, "a"))
    with pytest.raises(BudgetError, match="slot 'a' of scope 's' is taken 2 of 2 times; name"):
        account.check(entry(2, "a"))
    for wrong in (None, "a"):
        broken = entry(2, wrong)
        if wrong:
            broken = broken.model_copy(update={"moment": "1"})
        with pytest.raises(LedgerError, match="whose rule is pld"):
            account.check(broken)


def test_an_instance_specific_release_takes_a_declared_slot_alone() -> None:
    seen = ReleaseCharge(Fraction("0.1"), Fraction(0), None)
    account = planned("9", slot("night", 5, "0.5"), slot("seen", 1, "0.1", declared=True))
    assert account.fields(seen, None) == {"slot": "seen"}
    with pytest.raises(BudgetError, match="needs a declared slot"):
        account.fields(seen, "night")
    with pytest.raises(BudgetError, match="does not fit slot 'seen'"):
        account.fields(charge("0.1"), "seen")
    with pytest.raises(BudgetError, match="fits no free slot"):
        account.fields(ReleaseCharge(Fraction("0.2"), Fraction(0), None), None)


def test_a_release_fits_a_slot_by_its_profile() -> None:
    """Two counts at 0.05 fit a slot that is planned by their composition, and three do not."""
    one, step = ReleaseCharge.of(Fraction("0.05"), Fraction(0)).losses, Fraction("0.05")
    assert one is not None
    two, three = together([(one, 2)]), together([(one, 3)])
    account = planned("9", by_profile("pair", 10, profile_of_losses(two.regridded(step))))
    stated = Fraction("0.1"), Fraction(0)
    assert account.fields(ReleaseCharge(*stated, two), None) == {"slot": "pair"}
    assert account.fields(ReleaseCharge(*stated, one), None) == {"slot": "pair"}
    with pytest.raises(BudgetError, match="fits no free slot"):
        account.fields(ReleaseCharge(*stated, three), None)
    # ε 0.1 alone may be any mechanism of it, of which the composition is not the worst.
    with pytest.raises(BudgetError, match="fits no free slot"):
        account.fields(ReleaseCharge.of(*stated), None)


@given(st.permutations(["a", "a", "b", "c", "c", "c"]))
def test_a_plan_is_spent_in_any_order(order: list[str]) -> None:
    account = planned(
        "9", slot("a", 2, "0.1"), slot("b", 1, "0.7", "0.0000001"), slot("c", 3, "0.3")
    )
    readings = []
    for number, name in enumerate(order):
        account.check(entry(number, name))
        account.charge(entry(number, name))
        epsilon, delta = account.certified()
        assert (epsilon is not None, delta) == (True, MILLIONTH)
        readings.append(epsilon or Fraction(0))
    assert readings == sorted(readings)
    assert readings[-1] == account.planned
    with pytest.raises(BudgetError):
        account.check(entry(9, order[0]))


def test_a_slot_is_as_free_as_all_of_its_form() -> None:
    account = planned(
        "9",
        slot("a", 2, "0.1"),
        slot("b", 3, "0.1"),
        slot("c", 1, "0.5"),
        slot("seen", 4, "0.1", declared=True),
    )
    forms = ("a", "b", "c", "seen")
    assert [account.affordable(entry(0, name)) for name in forms] == [5, 5, 1, 4]
    assert [account.level(), account.level_cap()] == [0, 10]
    for number, name in enumerate(("b", "c", "seen")):
        account.charge(entry(number, name))
    assert [account.affordable(entry(0, name)) for name in forms] == [4, 4, 0, 3]
    assert [account.level(), account.level_cap()] == [3, 10]
    account.refund(entry(0, "b"))
    assert account.affordable(entry(0, "a")) == 5


def test_a_summary_has_the_slots_that_are_taken() -> None:
    account = planned("0.3", slot("a", 1, "0.1"), slot("seen", 1, "0.2", declared=True), delta="0")
    assert account.summary() == (
        "has taken 0 of 2 slots, which amount to ε = 0 at δ = 0; the whole plan to 0.3 of 0.3, "
        "of which ε 0.2 is added as declared"
    )
    failing = planned("0.3", slot("a", 1, "0.1", "0.5"), delta="0")
    failing.charge(entry(0, "a"))
    # No ε has a δ of 0, for the slot or for the plan; a scope with such a plan is not created.
    assert "amount to ε = 0 at δ = 0; the whole plan to 0 of 0.3" in failing.summary()


@st.composite
def laws(draw: st.DrawFn) -> Law:
    sides = []
    for _ in "PQ":
        weights = draw(st.lists(st.integers(1, 9), min_size=2, max_size=2))
        sides.append([Fraction(weight, sum(weights)) for weight in weights])
    return list(zip(*sides, strict=True))


@given(laws(), laws(), laws(), st.integers(0, 12))
def test_an_adaptive_order_stays_below_the_certified_delta(
    first: Law, left: Law, right: Law, tenths: int
) -> None:
    """The second and third slot are swapped, and asked the other way round, by the first answer."""
    step, epsilon = Fraction(1, 10), Fraction(tenths, 10)
    slots = []
    for name, law in (("a", first), ("b", left), ("c", right)):
        slots.append(Slot(name, 1, None, profile_of(law, step), declared=False))
    bound = losses_of(Plan(tuple(slots)), (1, 1, 1)).delta_at(epsilon)
    threshold, truth = exp_bounds(epsilon)[1], Fraction(0)
    for answer, (p, q) in enumerate(first):
        second, third = (left, right) if answer else (right, [(b, a) for a, b in left])
        for p_two, q_two in second:
            for p_three, q_three in third:
                truth += max(Fraction(0), p * p_two * p_three - threshold * q * q_two * q_three)
    assert truth <= bound


@pytest.mark.parametrize(
    ("values", "width"),
    [((5,), None), ((5, 0), "0.2"), ((5, 3, 0), "0.4"), ((9, 5, 3, 1), "0.6")],
)
def test_the_losses_of_a_profile_reach_from_its_last_step_to_minus_that(
    values: tuple[int, ...], width: str | None
) -> None:
    step = Fraction(1, 10)
    own = Slot("a", 7, None, Profile(step, values), declared=False)
    assert own.spread(7) == (Spread(step, Fraction(width), 7) if width else None)
    assert step * (len(own.losses(step).masses) - 1) == Fraction(width or 0)


def test_a_plan_of_many_profiles_stays_on_a_short_grid() -> None:
    curve = Profile(Fraction(1, 1000), tuple(10**22 * place**2 for place in range(200, -1, -1)))
    cap = ScopeCap(
        scope="s",
        epsilon="99",
        delta="0.001",
        rule="pld",
        planned=[by_profile("a", 2000, curve), slot("b", 7, "1/3")],
    )
    plan = Plan(slots_of(cap))
    losses = losses_of(plan, plan.whole)
    assert losses.step > Fraction(1, 1000)
    assert len(losses.masses) < 2**15


@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "0.001"), ("1", "0"), ("7", "0.00001")])
def test_a_slot_lies_nowhere_above_the_worst_case_of_its_charge(epsilon: str, delta: str) -> None:
    slot = slots_of(plan_of(epsilon, delta))[0]
    low, high = exp_bounds(Fraction(epsilon))
    rest = (1 - Fraction(delta)) * (low - 1) / (high + 1)
    assert Fraction(slot.profile.values[0], UNIT) <= Fraction(delta) + rest
    assert Fraction(slot.profile.values[-1], UNIT) <= Fraction(delta)


def plan_of(epsilon: str, delta: str) -> ScopeCap:
    slot = PlannedSlot(name="night", times=1, epsilon=epsilon, delta=delta)
    return ScopeCap(scope="s", epsilon="9", delta="0.1", rule="pld", planned=[slot])
