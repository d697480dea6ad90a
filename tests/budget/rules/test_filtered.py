"""A scope with a filter: how far it goes, what it cuts, and which reserves it refuses."""

from __future__ import annotations

from fractions import Fraction

import pytest

from release.budget.caps import ScopeCap
from release.budget.entries import ReleaseCharge, Reserve
from release.budget.rules.filtered import FilterAccount
from release.errors import BudgetError, LedgerError
from release.exact.composition.distribution import of_charge
from release.exact.composition.together import together
from release.exact.numbers import format_exact, format_up
from tests.budget.entries import reservation

MILLIONTH = Fraction(1, 10**6)


def cap(epsilon: str = "5", order: int = 6, cuts: str = "0.000000001") -> ScopeCap:
    return ScopeCap(
        scope="s",
        epsilon=epsilon,
        delta="0.000001",
        rule="renyi_filter",
        order=order,
        cuts=cuts,
    )


def charge(epsilon: str, delta: str = "0") -> ReleaseCharge:
    return ReleaseCharge.of(Fraction(epsilon), Fraction(delta))


def entry(seq: int, moment: str | None, cut: str | None = "0", slot: str | None = None) -> Reserve:
    return reservation(seq, epsilon="0.05", moment=moment, cut=cut, slot=slot)


def spend(account: FilterAccount, charges: list[ReleaseCharge]) -> int:
    """How many go through, each a reserve as it is written."""
    for number, one in enumerate(charges):
        try:
            reserve = entry(number, **account.fields(one, None))
            account.check(reserve)
        except BudgetError as error:
            assert error.scope_ended
            return number
        account.charge(reserve)
    return len(charges)


def test_a_year_of_counts_needs_4_9261_at_order_6() -> None:
    year = [charge("0.05")] * 366
    account = FilterAccount(cap("4.9261"))
    assert spend(account, year) == 365
    epsilon, delta = account.certified()
    # 4.925826 at the whole of δ; a thousandth of it is for cuts.
    assert format_up(epsilon, 6) == "4.926026"
    assert delta == MILLIONTH
    assert spend(FilterAccount(cap("4.926")), year) == 364
    others = [spend(FilterAccount(cap("4.9261", order)), year) for order in (4, 5, 7, 8)]
    assert max(others) < 365


def test_what_goes_through_is_below_the_exact_composition() -> None:
    """Releases of three sizes, larger where the last was small; their exact δ is below the cap."""
    sizes = ("0.4", "0.1", "0.2")
    chosen = [charge(sizes[number * number % 3]) for number in range(99)]
    account = FilterAccount(cap("4"))
    through = spend(account, chosen)
    assert 10 < through < 99
    parts = [(of_charge(one.epsilon, Fraction(0), Fraction("0.1")), 1) for one in chosen[:through]]
    assert together(parts).delta_at(Fraction(4)) < Fraction("0.000001")
    assert account.certified()[0] <= 4


def test_cuts_take_their_own_part_of_delta() -> None:
    failing = charge("0.1", "0.0000000004")
    account = FilterAccount(cap())
    assert spend(account, [failing] * 3) == 2
    with pytest.raises(BudgetError, match=r"may cut 0.000000001 of its δ, 0.0000000008"):
        account.fields(failing, None)
    # Those without a cut still go through.
    assert spend(FilterAccount(cap()), [failing, failing, charge("0.1")]) == 3
    # A δ that nothing is set aside for, not even for what rounding leaves.
    assert spend(FilterAccount(cap(cuts="0")), [charge("0.1")]) == 0


def test_cuts_may_be_used_to_the_last() -> None:
    failing = charge("0.1", "0.0000000004")
    cut = FilterAccount(cap()).fields(failing, None)["cut"]
    whole = format_exact(2 * Fraction(cut))
    assert spend(FilterAccount(cap(cuts=whole)), [failing] * 3) == 2


def test_nothing_spent_is_nothing_and_one_release_is_its_own_epsilon() -> None:
    account = FilterAccount(cap())
    assert account.certified() == (Fraction(0), Fraction("0.000001"))
    assert spend(account, [charge("0.05")]) == 1
    assert account.certified()[0] == Fraction("0.05")
    account.refund(entry(0, "1"))
    assert account.certified()[0] == 0


def test_a_release_without_a_profile_is_refused() -> None:
    account = FilterAccount(cap())
    with pytest.raises(BudgetError, match=r"a query of it is instance-specific"):
        account.fields(ReleaseCharge(Fraction("0.1"), Fraction(0), None), None)
    with pytest.raises(BudgetError, match="has the rule renyi_filter and no slots"):
        account.fields(charge("0.1"), "night")


def test_a_hopeless_release_is_refused_in_a_line() -> None:
    with pytest.raises(BudgetError, match="the cap is 5; lower guarantees") as refusal:
        FilterAccount(cap(order=256)).fields(charge("99"), None)
    assert len(str(refusal.value)) < 300


def test_a_filter_through_which_nothing_fits_is_refused() -> None:
    FilterAccount(cap("2.3")).opened()
    with pytest.raises(BudgetError, match=r"no release fits ε 2.2 at order 6"):
        FilterAccount(cap("2.2")).opened()


@pytest.mark.parametrize(
    "wrong",
    [
        entry(0, None),
        entry(0, "1.1", None),
        entry(0, "1.1", slot="night"),
        entry(0, "0.99"),
        entry(0, "0"),
    ],
)
def test_a_reserve_holds_a_moment_and_a_cut(wrong: Reserve) -> None:
    with pytest.raises(LedgerError):
        FilterAccount(cap()).check(wrong)


def test_the_delta_of_what_is_spent_falls_with_epsilon() -> None:
    account = FilterAccount(cap("4.9261"))
    assert account.delta_at(Fraction(0)) == 0
    # All that the filter may let through has the δ of the scope at its ε.
    assert account.most_delta_at(Fraction(0)) == 1
    assert float(account.most_delta_at(Fraction("4.9261"))) == pytest.approx(1e-6, rel=1e-6)
    assert account.most_delta_at(Fraction("4.9261")) <= MILLIONTH
    spend(account, [charge("0.05")] * 365)
    assert account.delta_at(Fraction(0)) == 1
    certified = account.certified()[0]
    # A thousandth of it is for cuts, of which there was none.
    assert float(account.delta_at(certified)) == pytest.approx(0.999e-6, rel=1e-6)
    assert account.delta_at(Fraction(6)) < account.delta_at(Fraction(5)) < MILLIONTH
    assert account.level() == certified


def test_the_delta_of_what_is_spent_has_its_cuts() -> None:
    account = FilterAccount(cap())
    spend(account, [charge("0.1", "0.0000000004")] * 2)
    cut = Fraction("0.0000000008")
    assert cut <= account.delta_at(Fraction(99)) < cut * Fraction("1.000001")
    assert float(account.most_delta_at(Fraction(99))) == pytest.approx(1e-9, rel=1e-6)


def test_a_filter_goes_on_with_the_delta_that_was_spent() -> None:
    """What was settled before a snapshot counts, also where nothing stands after it."""
    account, resumed = FilterAccount(cap()), FilterAccount(cap())
    spend(account, [charge("0.5"), charge("0.1", "0.0000000004")])
    resumed.resume(account.saved("2024-03-01", []))
    for epsilon in map(Fraction, ("0", "1", "99")):
        assert resumed.delta_at(epsilon) == account.delta_at(epsilon) > 0
    assert resumed.certified() == account.certified()


def test_what_may_be_given_back_stands_after_a_snapshot() -> None:
    """The second of four releases still runs: it, and those after it, are not settled."""
    account, resumed = FilterAccount(cap()), FilterAccount(cap())
    sizes = [charge("0.5"), charge("0.1", "0.0000000001"), charge("0.3"), charge("0.2")]
    spend(account, sizes)
    saved = account.saved("2024-03-01", [entry(2, "1"), entry(1, "1")])
    assert [number for number, *_ in saved["standing"]] == [1, 2, 3]
    resumed.resume(saved)
    assert resumed.certified() == account.certified()
    for given_back in (1, 3):
        for own in (account, resumed):
            own.refund(entry(given_back, "1"))
        assert resumed.certified() == account.certified()
        assert resumed.delta_at(Fraction(2)) == account.delta_at(Fraction(2)) > 0
    again = FilterAccount(cap())
    spend(again, [sizes[0], sizes[2]])
    assert again.delta_at(Fraction(2)) == resumed.delta_at(Fraction(2))


def test_a_filter_says_how_many_more_go_through() -> None:
    night, account = charge("0.05"), FilterAccount(cap("4.93"))
    reserve = entry(0, **account.fields(night, None))
    through = spend(FilterAccount(cap("4.93")), [night] * 400)
    assert through < 400
    assert account.affordable(reserve) == through
    spend(account, [night] * 100)
    assert account.affordable(reserve) == through - 100
    # Two of its cuts fit, and far more of its moments.
    failing = entry(0, **account.fields(charge("0.05", "0.0000000004"), None))
    assert account.affordable(failing) == 2
    account.charge(failing)
    assert account.affordable(failing) == 1
    # Either is left out where it takes nothing, and no end is near where both do.
    assert FilterAccount(cap()).affordable(entry(0, "1", "0.0000000003")) == 3
    assert account.affordable(entry(0, "1", "0")) is None
