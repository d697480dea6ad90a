"""The rules of a scope, row by row of the table in docs/operations.md: real ledgers, kills."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify.errors import Refused
from dp_release_verify.ledger import read_ledger as second_reading
from release.budget.ledger import (
    Account,
    Ledger,
    PlannedSlot,
    ReleaseCharge,
    ScopeCap,
    Spent,
    abort,
    commit,
    create_ledger,
    policy,
    read_ledger,
    replay,
    reserve,
    revise,
    skip,
    withdraw,
)
from release.budget.spending import composed_epsilon
from release.bundle.publish import Publication
from release.errors import BudgetError, LedgerError, ReleaseError
from release.exact.composition import renyi
from release.exact.numbers import format_exact, format_up
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.verification.verifier import check_content
from tests.budget.entries import reservation
from tests.budget.test_claims import killed_before

KEY = FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32))
NAME, DAY = "example.org/dp", "2024-03-01"
NIGHT = ReleaseCharge.of(Fraction("0.05"), Fraction(0))
NIGHTS = 4
MILLIONTH = Fraction(1, 10**6)


def filtered_cap(nights: int, charge: ReleaseCharge, order: int) -> ScopeCap:
    """A filter that lets exactly so many of these through."""
    assert charge.losses is not None
    product, cuts = Fraction(1), Fraction(1, 10**9)
    for _ in range(nights):
        product = renyi.product_above(product, renyi.moment(charge.losses, order).value)
    epsilon = renyi.certified_epsilon(product, order, MILLIONTH - cuts)
    return ScopeCap(
        scope="s",
        epsilon=format_exact(epsilon),
        delta=format_exact(MILLIONTH),
        rule="renyi_filter",
        order=order,
        cuts=format_exact(cuts),
    )


def planned(times: int) -> PlannedSlot:
    return PlannedSlot(name="night", times=times, epsilon="0.05", delta="0")


CAPS = {
    "basic": ScopeCap(scope="s", epsilon="0.2", delta="0"),
    "pld": ScopeCap(
        scope="s",
        epsilon="0.2",
        delta="0.000001",
        rule="pld",
        planned=[planned(NIGHTS)],
    ),
    "renyi_filter": filtered_cap(NIGHTS, NIGHT, 6),
}
rules = pytest.mark.parametrize("rule", list(CAPS))


@dataclass(frozen=True)
class Scope:
    """A ledger with one scope that has room for four nights."""

    ledger: Ledger

    def take(self, name: str, day: str = DAY) -> None:
        """Reserve a night."""
        self.ledger.append(reserve("s", name, NIGHT, day))

    def publish(self, name: str, day: str = DAY) -> None:
        """Reserve a night and commit it."""
        self.take(name, day)
        self.ledger.append(commit(name, name.encode(), day))

    @property
    def account(self) -> Account:
        """The account by a replay from the files."""
        return read_ledger(self.ledger.folder).state.accounts["s"]

    @property
    def room(self) -> int:
        """How many more nights the account lets through, by trying."""
        account, free = self.account, 0
        entry = reservation(1000, date=DAY, release_id="x", epsilon="0.05")
        while True:
            try:
                numbered = entry.model_copy(
                    update={"seq": 1000 + free, **account.fields(NIGHT, None)}
                )
                account.check(numbered)
            except BudgetError as error:
                assert error.scope_ended
                return free
            account.charge(numbered)
            free += 1


def opened(folder: Path, rule: str) -> Scope:
    return Scope(create_ledger(folder / "ledger", KEY, NAME, (CAPS[rule],), DAY))


@pytest.fixture
def scope(rule: str, tmp_path: Path) -> Scope:
    return opened(tmp_path, rule)


@rules
def test_the_release_after_the_last_one_is_refused(rule: str, scope: Scope) -> None:
    for night in range(NIGHTS):
        assert scope.room == NIGHTS - night
        scope.publish(f"r{night}")
    size = len(read_ledger(scope.ledger.folder).entries)
    words = {
        "basic": "the cap is 0.2; lower guarantees, or have the cap raised",
        "pld": r"every slot of scope 's' is taken \(4 of 4\); add a new scope",
        "renyi_filter": "at order 6; the cap is .*, or add a new scope",
    }
    with pytest.raises(BudgetError, match=words[rule]) as refusal:
        scope.take("r4")
    assert refusal.value.scope_ended
    assert len(str(refusal.value).splitlines()) == 1
    assert len(read_ledger(scope.ledger.folder).entries) == size


@rules
def test_a_skipped_period_costs_nothing_and_its_room_stays(rule: str, scope: Scope) -> None:
    scope.publish("r-2024-03-01", "2024-03-01")
    scope.publish("r-2024-03-03", "2024-03-03")
    assert scope.room == NIGHTS - 2
    # Its late release is an ordinary one.
    scope.publish("r-2024-03-02", "2024-03-09")
    assert scope.room == NIGHTS - 3


@rules
def test_a_skip_that_is_recorded_costs_nothing_and_ends_its_name(rule: str, scope: Scope) -> None:
    scope.publish("r0")
    scope.ledger.append(skip("r1", "no data that day", DAY))
    assert scope.room == NIGHTS - 1
    with pytest.raises(LedgerError, match="skipped for good"):
        scope.take("r1")
    with pytest.raises(LedgerError, match="already skipped"):
        scope.ledger.append(skip("r1", "again", DAY))
    check_second_reading(scope.ledger)


@rules
def test_a_charged_period_is_not_skipped(rule: str, scope: Scope) -> None:
    """At work, given up after its draw, public, withdrawn; after a refund it can be."""

    def check_refused(name: str) -> None:
        room = scope.room
        with pytest.raises(LedgerError, match="is charged, so it cannot be skipped"):
            scope.ledger.append(skip(name, "late", DAY))
        assert scope.room == room

    scope.take("r0")
    check_refused("r0")
    scope.ledger.append(abort("r0", DAY, drawn=True))
    check_refused("r0")
    scope.publish("r1")
    check_refused("r1")
    scope.ledger.append(withdraw("r1", DAY))
    check_refused("r1")
    scope.take("r2")
    scope.ledger.append(abort("r2", DAY, drawn=False))
    scope.ledger.append(skip("r2", "late", DAY))
    assert scope.room == NIGHTS - 2
    check_second_reading(scope.ledger)


@pytest.mark.parametrize("name", ["r0", "r1", "r2", "r3"])
def test_the_verifier_refuses_a_skip_that_may_not_be(name: str, tmp_path: Path) -> None:
    """At work, given up after its draw, public, skipped already."""
    scope = opened(tmp_path, "basic")
    scope.take("r0")
    scope.take("r1")
    scope.ledger.append(abort("r1", DAY, drawn=True))
    scope.publish("r2")
    scope.ledger.append(skip("r3", "late", DAY))
    state = read_ledger(scope.ledger.folder).state
    entry = canonical(skip(name, "late", DAY)(state))
    (scope.ledger.folder / f"{state.size:08}.json").write_bytes(entry)
    with pytest.raises(Refused, match="expected a release without a charge"):
        second_reading(scope.ledger.folder)


@rules
def test_a_revised_release_stays_and_its_newer_version_is_charged(rule: str, scope: Scope) -> None:
    for name in ("r0", "r0-r2", "r1", "gone"):
        scope.publish(name)
    scope.ledger.append(withdraw("gone", DAY))
    scope.ledger.append(revise("r0", "r0-r2", "a meter was wrong", DAY))
    assert scope.room == NIGHTS - 4
    for old, new, match in (
        ("r0", "r1", "'r0' is revised already"),
        ("r1", "r0", "'r0' is revised already"),
        ("r1", "r1", "cannot revise itself"),
        ("r1", "gone", "'gone' is not public"),
        ("nothing", "r1", "'nothing' is not public"),
    ):
        with pytest.raises(LedgerError, match=match):
            scope.ledger.append(revise(old, new, "why not", DAY))
        entry = revise(old, new, "why not", DAY)(read_ledger(scope.ledger.folder).state)
        forged = scope.ledger.folder / f"{entry.seq:08}.json"
        forged.write_bytes(canonical(entry))
        with pytest.raises(Refused, match="expected two public releases"):
            second_reading(scope.ledger.folder)
        forged.unlink()
    # A chain: the newest one can be revised, and what was revised can be withdrawn.
    scope.ledger.append(revise("r0-r2", "r1", "again", DAY))
    scope.ledger.append(withdraw("r0", DAY))
    check_second_reading(scope.ledger)


def check_second_reading(ledger: Ledger) -> None:
    """The verifier, which shares no line with the writer, reads the same ledger."""
    read, state = second_reading(ledger.folder), read_ledger(ledger.folder).state
    assert len(read.entries) == state.size
    assert (read.skipped, read.withdrawn, read.revised) == (
        state.skipped,
        state.withdrawn,
        state.revised,
    )


@rules
def test_a_revision_under_a_new_id_is_a_release_like_any_other(rule: str, scope: Scope) -> None:
    scope.publish("r")
    scope.ledger.append(withdraw("r", DAY))
    assert scope.room == NIGHTS - 1
    with pytest.raises(LedgerError, match="already published"):
        scope.take("r")
    for number in range(NIGHTS - 1):
        scope.publish(f"r.{number}")
    with pytest.raises(BudgetError):
        scope.take("r.last")


@rules
def test_a_raise_is_for_sums_alone(rule: str, scope: Scope) -> None:
    cap = CAPS[rule]
    raised = cap.model_copy(update={"epsilon": "9"})
    if rule == "basic":
        scope.ledger.append(policy(raised, DAY))
        assert scope.room == 180
        return
    changes = [raised, cap.model_copy(update={"delta": "0.00001"}), CAPS["basic"]]
    if rule == "pld":
        changes.append(cap.model_copy(update={"planned": [planned(5)]}))
    else:
        changes.append(cap.model_copy(update={"order": 7}))
    for change in changes:
        with pytest.raises(LedgerError, match="for ever; add a new scope"):
            scope.ledger.append(policy(change, DAY))
        # A writer looks before it writes: nothing is applied.
        state = replay(scope.ledger.folder).state
        with pytest.raises(LedgerError, match="for ever; add a new scope"):
            state.check(policy(change, DAY)(state))
    # The remedy of the message, and what it costs: the new scope has a guarantee of its own.
    scope.ledger.append(policy(cap.model_copy(update={"scope": "t"}), DAY))
    scope.ledger.append(reserve("t", "r", NIGHT, DAY))
    assert scope.room == NIGHTS


@pytest.mark.parametrize("rule", ["basic"])
def test_a_scope_that_adds_up_keeps_its_rule(rule: str, scope: Scope) -> None:
    for other in ("pld", "renyi_filter"):
        with pytest.raises(LedgerError, match="has the rule basic for ever; add a new scope"):
            scope.ledger.append(policy(CAPS[other], DAY))


@rules
@pytest.mark.parametrize("drawn", [False, True])
def test_a_failure_costs_nothing_only_before_the_draw(
    rule: str, scope: Scope, *, drawn: bool
) -> None:
    scope.take("r")
    assert scope.room == NIGHTS - 1
    before = scope.account.certified()
    scope.ledger.append(abort("r", DAY, drawn=drawn))
    assert scope.room == (NIGHTS - 1 if drawn else NIGHTS)
    assert (scope.account.certified() == before) == drawn
    assert scope.account.spent().epsilon == (Fraction("0.05") if drawn else 0)
    # The same release again: where noise was drawn it is paid for twice.
    scope.publish("r")
    assert scope.room == (NIGHTS - 2 if drawn else NIGHTS - 1)


@rules
def test_a_release_that_ends_out_of_order_is_given_back_exactly(rule: str, scope: Scope) -> None:
    for name in "abc":
        scope.take(name)
    scope.ledger.append(abort("a", DAY, drawn=False))
    scope.ledger.append(abort("c", DAY, drawn=False))
    assert scope.room == NIGHTS - 1
    again = Scope(create_ledger(scope.ledger.folder.parent / "b", KEY, NAME, (CAPS[rule],), DAY))
    again.take("b")
    assert again.account.certified() == scope.account.certified()


@rules
def test_a_kill_while_an_entry_is_written_takes_room_once(rule: str, tmp_path: Path) -> None:
    number, written = 0, 0
    while True:
        scope = opened(tmp_path / str(number), rule)
        if killed_before(number, partial(scope.take, "r")) == 0:
            break
        is_there = "r" in scope.ledger.recover().state.running
        assert scope.room == NIGHTS - is_there
        written += is_there
        number += 1
    assert 0 < written < number


def run_until_drawn(out: Path) -> None:
    ledger = Ledger(out / "ledger", KEY)
    with Publication(out, "r", ledger, check_content) as publication:
        publication.reserve("s", NIGHT)
        publication.draw((out / "drawn").touch, lambda _: b"drawn")
        raise LedgerError("the run fails here")


@rules
def test_a_kill_of_a_run_keeps_its_room_only_if_it_may_have_drawn(
    rule: str, tmp_path: Path
) -> None:
    number, outcomes = 0, set()
    while True:
        scope = opened(out := tmp_path / str(number), rule)
        status = killed_before(number, partial(_quiet, partial(run_until_drawn, out)))
        # The next run of this release finds what was left, and ends it.
        Publication(out, "r", scope.ledger, check_content).__exit__(None, None, None)
        taken = NIGHTS - scope.room
        drawn = (out / "drawn").exists()
        # In doubt it pays: killed between the mark and the draw, it counts as drawn.
        assert taken in ((1,) if drawn else (0, 1))
        outcomes.add((taken, drawn))
        if status != -signal.SIGKILL:
            break
        number += 1
    assert outcomes == {(0, False), (1, False), (1, True)}


def _quiet(action: Callable[[], None]) -> None:
    try:
        action()
    except ReleaseError:
        return


def test_a_kill_gives_no_slot_to_two_machines(tmp_path: Path) -> None:
    """The last slot: one machine dies somewhere, and the other one goes on."""
    uri, number, won = "store", 0, set()
    while True:
        one = opened(tmp_path / str(number) / "one", "pld")
        for name in ("a", "b", "c"):
            one.publish(name)
        one.ledger.name_store((tmp_path / str(number) / uri).as_uri(), DAY)
        other = tmp_path / str(number) / "two" / "ledger"
        other.mkdir(parents=True)
        for file in one.ledger.folder.iterdir():
            (other / file.name).write_bytes(file.read_bytes())
        status = killed_before(number, partial(one.take, "mine"))
        two = Scope(Ledger(other, KEY))
        try:
            two.take("theirs")
        except BudgetError:
            won.add("mine")
        else:
            won.add("theirs")
        one.ledger.recover()
        assert one.room == two.room == 0
        assert len(read_ledger(other).state.running) == 1
        if status == 0:
            break
        number += 2
    assert won == {"mine", "theirs"}


def test_a_summary_says_what_the_releases_amount_to(tmp_path: Path) -> None:
    told = {}
    for rule in CAPS:
        scope = opened(tmp_path / rule, rule)
        scope.publish("r")
        told[rule] = scope.account.summary(), scope.account.left()
    assert told["basic"] == (
        "has spent ε = 0.05 of 0.2, δ = 0 of 0",
        "ε 0.15, δ 0",
    )
    four = composed_epsilon([Spent(Fraction("0.05"))] * 4, MILLIONTH)
    assert four is not None
    whole = format_up(four, 6)
    assert whole < "0.2"
    # At a δ above 0 one release amounts to a little less than its ε.
    assert told["pld"] == (
        f"has taken 1 of 4 slots, which amount to ε = 0.049999 at δ = 0.000001; the whole plan to "
        f"{whole} of 0.2",
        "3 of 4 x night",
    )
    # A single release is no better by its moment than by its own ε.
    assert told["renyi_filter"][0].startswith("amounts to ε = 0.05 of 2.2")
