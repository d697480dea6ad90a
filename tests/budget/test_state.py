"""What may follow in a ledger: order, caps of each period, refunds, and whose keys count."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.caps import PeriodCap, ScopeCap
from release.budget.entries import (
    NOTHING,
    Entry,
    Genesis,
    Spent,
    Withdraw,
)
from release.budget.ledger import (
    Ledger,
    Make,
    abort,
    change_key,
    commit,
    create_ledger,
    keys_at,
    keys_ever,
    policy,
    replay,
    reserve,
    spending,
    withdraw,
)
from release.budget.state import Replayed, State, entry_file, is_entry, read_entry
from release.errors import BudgetError, LedgerError
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.records.signing import Signer

ONE, TWO, THREE = (
    FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2, 3)
)
NAME, DAY = "example.org/dp", "2024-03-01"


def cap(epsilon: str = "3", delta: str = "0.1", scope: str = "s", **fields: Any) -> ScopeCap:
    return ScopeCap(scope=scope, epsilon=epsilon, delta=delta, **fields)


def spend(epsilon: str, delta: str = "0") -> Spent:
    return Spent(Fraction(epsilon), Fraction(delta))


def genesis(**fields: Any) -> Genesis:
    plain: dict[str, Any] = {
        "seq": 0,
        "prev": NOTHING,
        "date": DAY,
        "kind": "genesis",
        "origin": NAME,
        "scopes": [cap()],
        "keys": [str(ONE.public(NAME))],
    }
    return Genesis(**(plain | fields))


def started(*caps: ScopeCap) -> State:
    state = State()
    entry = genesis(scopes=list(caps or (cap(),)))
    state.follow(entry, canonical(entry))
    return state


def follow(state: State, *makes: Make) -> State:
    for make in makes:
        entry = make(state)
        state.follow(entry, canonical(entry))
    return state


def refused(state: State, make: Make, kind: type[Exception] = LedgerError) -> None:
    entry = make(state)
    with pytest.raises(kind):
        state.check(entry)
    with pytest.raises(kind):
        state.follow(entry, canonical(entry))


def changed(make: Make, **fields: Any) -> Callable[[State], Entry]:
    return lambda state: make(state).model_copy(update=fields)


RESERVE = reserve("s", "r", spend("1"), DAY)


@pytest.mark.parametrize(
    "fields",
    [
        {"seq": 0},
        {"seq": 2},
        {"prev": NOTHING},
        {"date": "2024-02-29"},
        {"date": "2023-12-31"},
        {"date": "2024-04-31"},
    ],
)
def test_an_entry_follows_the_last_one(fields: dict[str, Any]) -> None:
    state = started()
    refused(state, changed(RESERVE, **fields))
    assert (state.size, state.spent("s")) == (1, Spent())
    follow(state, changed(RESERVE, date=DAY))
    assert (state.size, state.spent("s")) == (2, spend("1"))


def test_the_first_entry_and_no_other_is_the_genesis() -> None:
    refused(State(), RESERVE)
    refused(started(), lambda state: genesis(seq=1, prev=state.head))


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": [str(ONE.public("elsewhere"))]},
        {"keys": ["no key"]},
        {"scopes": [cap("1"), cap("2")]},
        {"prev": "sha256:" + "1" * 64},
        {"seq": 1},
    ],
)
def test_a_genesis_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    refused(State(), lambda _: genesis(**fields))


def test_a_genesis_may_have_several_scopes() -> None:
    state = started(cap("1"), cap("2", scope="t"))
    follow(state, reserve("t", "r", spend("2"), DAY))
    assert (state.spent("s"), state.spent("t")) == (Spent(), spend("2"))


@pytest.mark.parametrize(
    ("every", "same", "other", "prefix"),
    [
        ("day", "2024-03-01", "2024-03-02", "2024-03-01"),
        ("month", "2024-03-31", "2024-04-01", "2024-03"),
        ("year", "2024-12-31", "2025-01-01", "2024"),
    ],
)
@pytest.mark.parametrize("charge", [spend("1"), spend("0", "0.01")])
def test_a_period_pays_up_to_its_cap_and_begins_anew(
    every: Any, same: str, other: str, prefix: str, charge: Spent
) -> None:
    period = PeriodCap(every=every, epsilon="2", delta="0.02")
    state = started(cap("9", "0.9", period=period))
    follow(state, reserve("s", "a", charge, DAY), reserve("s", "b", charge, same))
    assert state.spent("s", prefix) == charge + charge
    more = reserve("s", "c", charge, same)
    with pytest.raises(BudgetError) as caught:
        state.check(more(state))
    assert not caught.value.scope_ended
    follow(state, abort("a", same, drawn=False), more)
    follow(state, reserve("s", "d", charge, other), reserve("s", "e", charge, other))
    refused(state, reserve("s", "f", charge, other), BudgetError)
    assert state.spent("s") == charge + charge + charge + charge


def test_a_lifetime_cap_that_is_reached_has_ended_the_scope() -> None:
    period = PeriodCap(every="day", epsilon="9", delta="0")
    state = follow(started(cap("1", period=period)), RESERVE)
    for charge in (spend("1/1000"), spend("0", "0.2")):
        with pytest.raises(BudgetError) as caught:
            state.check(reserve("s", "q", charge, DAY)(state))
        assert caught.value.scope_ended
    follow(state, reserve("s", "q", spend("0"), DAY))


def test_an_unknown_scope_pays_for_nothing_until_a_policy_adds_it() -> None:
    state = started()
    other = reserve("t", "r", spend("1"), DAY)
    refused(state, other)
    follow(state, policy(cap("1", scope="t"), DAY), other)
    assert (state.spent("s"), state.spent("t")) == (Spent(), spend("1"))


def test_a_release_is_reserved_committed_and_withdrawn_once() -> None:
    state = started()
    for early in (commit("r", b"x", DAY), abort("r", DAY, drawn=True), withdraw("r", DAY)):
        refused(state, early)
    follow(state, RESERVE)
    for late in (RESERVE, withdraw("r", DAY), commit("q", b"x", DAY)):
        refused(state, late)
    follow(state, commit("r", b"x", DAY))
    for late in (RESERVE, commit("r", b"x", DAY), abort("r", DAY, drawn=False)):
        refused(state, late)
    follow(state, withdraw("r", DAY))
    for late in (RESERVE, withdraw("r", DAY)):
        refused(state, late)
    assert (set(state.running), set(state.committed), state.withdrawn) == (set(), {"r"}, {"r"})
    assert state.spent("s") == spend("1")


def test_only_what_was_not_drawn_is_refunded() -> None:
    state = follow(started(), reserve("s", "r", spend("1", "0.1"), DAY))
    follow(state, abort("r", DAY, drawn=False))
    for period in ("", "2024", "2024-03", DAY):
        assert state.spent("s", period) == Spent()
    follow(state, reserve("s", "r", spend("1", "0.1"), DAY), abort("r", DAY, drawn=True))
    for period in ("", "2024", "2024-03", DAY):
        assert state.spent("s", period) == spend("1", "0.1")
    for period in ("2023", "2024-04", "2024-03-02"):
        assert state.spent("s", period) == Spent()


def key(action: Any, changed_key: Signer, signer: Signer, name: str = NAME) -> Make:
    return change_key(action, changed_key.public(name), signer, DAY)


def test_keys_change_by_the_signature_of_a_valid_one() -> None:
    state = started()
    for wrong in (
        key("retire", ONE, ONE),
        key("add", ONE, ONE),
        key("retire", TWO, ONE),
        key("add", TWO, TWO),
        key("add", TWO, ONE, "elsewhere"),
        changed(key("add", TWO, ONE), signature=""),
        changed(key("add", TWO, ONE), signature="AAA"),
        changed(key("add", TWO, ONE), key="no key"),
        changed(key("add", TWO, ONE), key=str(THREE.public(NAME))),
    ):
        refused(state, wrong)
    follow(state, key("add", TWO, ONE), key("add", THREE, TWO), key("retire", ONE, THREE))
    assert state.keys == [TWO.public(NAME), THREE.public(NAME)]
    refused(state, key("add", ONE, ONE))
    refused(state, key("retire", ONE, TWO))


def test_the_keys_of_a_time_are_those_of_its_entries(tmp_path: Path) -> None:
    ledger = create_ledger(tmp_path / "ledger", ONE, NAME, (cap(),), DAY)
    ledger.append(key("add", TWO, ONE))
    ledger.append(RESERVE)
    Ledger(ledger.folder, TWO).append(key("retire", ONE, TWO))
    Ledger(ledger.folder, TWO).append(key("add", THREE, TWO))
    Ledger(ledger.folder, TWO).append(key("add", ONE, TWO))
    read = replay(ledger.folder)
    one, two, three = (signer.public(NAME) for signer in (ONE, TWO, THREE))
    expected = [(), (one,), (one, two), (one, two), (two,), (two, three), (two, three, one)]
    assert [keys_at(read, size) for size in range(7)] == expected
    assert keys_ever(read) == (one, two, three)


def test_spending_counts_what_stands_in_the_scope() -> None:
    state = started(cap("9", "0.9"), cap("9", scope="t"))
    entries: list[Entry] = [genesis(scopes=list(state.caps.values()))]
    for make in (
        reserve("s", "a", spend("1"), "2024-03-02"),
        abort("a", "2024-03-02", drawn=False),
        reserve("s", "a", spend("1/2"), "2024-03-03"),
        reserve("t", "b", spend("8"), "2024-03-04"),
        abort("a", "2024-03-05", drawn=True),
        abort("b", "2024-03-05", drawn=False),
        reserve("s", "a", spend("1/4"), "2024-03-06"),
        commit("a", b"x", "2024-03-06"),
        reserve("t", "b", spend("2"), "2024-03-07"),
    ):
        entries.append(make(state))
        follow(state, lambda _: entries[-1])
    read = Replayed(state, tuple(entries), tuple(map(canonical, entries)))
    found = spending(read, "s")
    assert found.days == ("2024-03-03", "2024-03-06")
    assert found.levels == (Fraction(1, 2), Fraction(3, 4))
    assert (found.scope, found.cap) == ("s", Fraction(9))
    assert spending(read, "t").levels == (Fraction(2),)


def test_only_eight_digits_and_json_name_an_entry() -> None:
    assert entry_file(17) == "00000017.json"
    assert is_entry("00000017.json")
    for name in ("0000017.json", "000000017.json", "00000017.json.part", "0000001٧.json", "x"):
        assert not is_entry(name)


def test_an_entry_is_canonical_json_of_a_known_kind() -> None:
    entry = genesis()
    data = canonical(entry)
    assert read_entry(0, data) == entry
    for wrong in (data + b"\n", data[:-1], b"[" * 10**5, b"{}", b"\xff", canonical(cap())):
        with pytest.raises(LedgerError):
            read_entry(0, wrong)


def test_a_folder_without_every_entry_is_no_ledger(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    ledger = create_ledger(folder, ONE, NAME, (cap(),), DAY)
    ledger.append(RESERVE)
    (folder / "notes.txt").write_text("x")
    assert len(replay(folder).entries) == 2
    # An entry that cannot be read ends nothing: the rest would be another ledger.
    (folder / "00000001.json").rename(folder / "kept")
    (folder / "00000001.json").mkdir()
    with pytest.raises(LedgerError):
        replay(folder)
    (folder / "00000001.json").rmdir()
    (folder / "kept").rename(folder / "00000002.json")
    with pytest.raises(LedgerError):
        replay(folder)
    for nothing in (tmp_path, tmp_path / "elsewhere", folder / "notes.txt"):
        with pytest.raises(LedgerError):
            replay(nothing)


def test_a_withdrawal_without_a_commit_is_refused_even_by_hand() -> None:
    state = follow(started(), RESERVE)
    refused(
        state,
        lambda state: Withdraw(
            seq=state.size, prev=state.head, date=DAY, kind="withdraw", release_id="r"
        ),
    )
