"""The ledger: what may come next, caps that hold under a race, tampering and rollback."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_release_verify.merkle import inclusion_proof, leaf_hash, root, root_from_inclusion
from release.budget.ledger import (
    CHECKPOINT,
    Genesis,
    Ledger,
    Make,
    PeriodCap,
    Reserve,
    ScopeCap,
    Spent,
    State,
    abort,
    change_key,
    check_checkpoint,
    commit,
    create_ledger,
    policy,
    read_ledger,
    replay,
    reserve,
    spending,
    today,
    withdraw,
)
from release.errors import BudgetError, LedgerError, ReleaseError
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.records.signing import sign_note
from tests.budget.notes import checkpoint_text
from tests.conftest import PROJECT

ONE, TWO = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAY = "example.org/dp", "2024-03-01"
CAP = ScopeCap(scope="s", epsilon="3", delta="0.1")


def spend(epsilon: str, delta: str = "0") -> Spent:
    return Spent(Fraction(epsilon), Fraction(delta))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return create_ledger(tmp_path / "ledger", ONE, NAME, (CAP,), DAY)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(ledger: Ledger, make: Make, says: str, kind: type[ReleaseError] = LedgerError) -> None:
    before = files(ledger.folder)
    with pytest.raises(kind, match=says):
        ledger.append(make)
    assert files(ledger.folder) == before


def test_the_files_are_those_of_the_format(ledger: Ledger) -> None:
    ledger.append(reserve("s", "r", spend("1", "0.001"), DAY))
    ledger.append(commit("r", b"envelope", DAY))
    names = ["00000000.json", "00000001.json", "00000002.json", "checkpoint"]
    assert sorted(files(ledger.folder)) == names
    zero, one, two = (files(ledger.folder)[name] for name in names[:3])
    import hashlib

    reserved = json.loads(one)
    assert re.fullmatch("[0-9a-f]{32}", reserved.pop("run"))
    assert reserved == {
        "seq": 1,
        "prev": "sha256:" + hashlib.sha256(zero).hexdigest(),
        "kind": "reserve",
        "scope": "s",
        "release_id": "r",
        "epsilon": "1",
        "delta": "0.001",
        "date": DAY,
    }
    assert json.loads(two)["sums"] == "sha256:" + hashlib.sha256(b"envelope").hexdigest()
    origin, size, *_ = (ledger.folder / CHECKPOINT).read_text().splitlines()
    assert (origin, size) == (NAME, "3")


def sign_by_hand(folder: Path) -> None:
    """A checkpoint for what is there now, by the right key."""
    read = replay(folder)
    text = checkpoint_text(read.state.origin, read.leaves)
    (folder / CHECKPOINT).write_text(sign_note(text, ONE, NAME), "utf-8")


def test_charges_add_up_exactly_to_the_cap_and_not_beyond(ledger: Ledger) -> None:
    """Thirty thirds of a tenth and more are no float's business."""
    for number in range(9):
        ledger.append(reserve("s", f"r{number}", spend("1/3", "1/90"), DAY))
    refused(ledger, reserve("s", "more", spend("1/1000000"), DAY), "has spent 3,", BudgetError)
    refused(ledger, reserve("s", "more", spend("0", "1/10000"), DAY), "delta", BudgetError)
    ledger.append(reserve("s", "nothing", spend("0"), DAY))


def test_what_was_drawn_is_not_refunded(ledger: Ledger) -> None:
    ledger.append(reserve("s", "r", spend("3"), DAY))
    refused(ledger, reserve("s", "r", spend("0"), DAY), "already has an open reserve")
    ledger.append(abort("r", DAY, drawn=False))
    ledger.append(reserve("s", "r", spend("2"), DAY))
    ledger.append(abort("r", DAY, drawn=True))
    refused(ledger, reserve("s", "r", spend("2"), DAY), "has spent 2", BudgetError)
    ledger.append(reserve("s", "r", spend("1"), DAY))
    ledger.append(commit("r", b"x", DAY))
    refused(ledger, reserve("s", "r", spend("0"), DAY), "already published")
    refused(ledger, abort("r", DAY, drawn=False), "has no open reserve")
    refused(ledger, commit("r", b"x", DAY), "has no open reserve")
    ledger.append(withdraw("r", DAY))
    refused(ledger, withdraw("r", DAY), "is not public")
    assert replay(ledger.folder).state.spent("s") == spend("3")


def test_caps_of_a_period_begin_anew(ledger: Ledger) -> None:
    monthly = PeriodCap(every="month", epsilon="1", delta="0")
    cap = ScopeCap(scope="m", epsilon="2.5", delta="0", period=monthly)
    refused(ledger, reserve("m", "r", spend("1"), DAY), "no scope 'm' \\(its scopes: s\\)")
    ledger.append(policy(cap, DAY))
    ledger.append(reserve("m", "march", spend("1"), "2024-03-31"))
    refused(ledger, reserve("m", "more", spend("1/9"), DAY), "of month 2024-03", BudgetError)
    ledger.append(reserve("m", "april", spend("1"), "2024-04-01"))
    refused(ledger, reserve("m", "may", spend("0.6"), "2024-05-01"), "the cap is 2.5", BudgetError)
    ledger.append(policy(ScopeCap(scope="m", epsilon="1", delta="0"), "2024-05-01"))
    refused(ledger, reserve("m", "may", spend("0.1"), "2024-05-01"), "has spent 2", BudgetError)


def test_a_clock_that_goes_back_does_not(ledger: Ledger) -> None:
    ledger.append(reserve("s", "r", spend("1"), "2024-05-01"))
    entry, _ = ledger.append(abort("r", "2023-01-01", drawn=False))
    assert entry.date == "2024-05-01"


def test_keys_rotate_by_signature_of_a_valid_one(ledger: Ledger) -> None:
    other = Ledger(ledger.folder, TWO)
    new = TWO.public(NAME)
    refused(other, reserve("s", "r", spend("1"), DAY), "does not know this key")
    refused(ledger, change_key("add", new, TWO, DAY), "no valid key has signed")
    refused(ledger, change_key("add", TWO.public("elsewhere"), ONE, DAY), "cannot be added")
    refused(ledger, change_key("retire", new, ONE, DAY), "cannot be retired")
    refused(ledger, change_key("retire", ONE.public(NAME), ONE, DAY), "last key")
    ledger.append(change_key("add", new, ONE, DAY))
    old_checkpoint = (ledger.folder / CHECKPOINT).read_text()
    refused(ledger, change_key("retire", ONE.public(NAME), ONE, DAY), "cannot retire itself")
    other.append(change_key("retire", ONE.public(NAME), TWO, DAY))
    refused(ledger, reserve("s", "r", spend("1"), DAY), "does not know this key")
    other.append(reserve("s", "r", spend("1"), DAY))
    read = replay(ledger.folder)
    assert check_checkpoint(old_checkpoint, read) == 2
    assert check_checkpoint((ledger.folder / CHECKPOINT).read_text(), read) == 4
    text = "\n".join((ledger.folder / CHECKPOINT).read_text().split("\n")[:3]) + "\n"
    with pytest.raises(LedgerError, match="key that is not known"):
        check_checkpoint(sign_note(text, ONE, NAME), read)


def test_sixteen_keys_are_valid_at_once(ledger: Ledger) -> None:
    """A change of keys does not say who has signed it, so a verifier tries each."""
    keys = [FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in range(2, 18)]
    *more, last = (key.public(NAME) for key in keys)
    for key in more:
        ledger.append(change_key("add", key, ONE, DAY))
    refused(ledger, change_key("add", last, ONE, DAY), "16 keys are valid; retire one first")
    ledger.append(change_key("retire", more[0], ONE, DAY))
    ledger.append(change_key("add", last, ONE, DAY))
    assert len(replay(ledger.folder).state.keys) == 16


@pytest.mark.parametrize("name", ["00000001.json", CHECKPOINT])
def test_what_is_no_plain_file_is_not_waited_for(ledger: Ledger, name: str) -> None:
    """Nobody writes to the pipe, so that a reader would wait for ever."""
    ledger.append(reserve("s", "r", spend("1"), DAY))
    (ledger.folder / name).unlink()
    os.mkfifo(ledger.folder / name)
    with pytest.raises(LedgerError, match=r"can(not)? be read"):
        read_ledger(ledger.folder)


def test_a_file_too_large_for_a_ledger_is_not_read(ledger: Ledger) -> None:
    with (ledger.folder / "00000001.json").open("wb") as file:
        file.truncate(2**30 + 1)
    with pytest.raises(LedgerError, match="cannot be read"):
        replay(ledger.folder)


def test_a_replayed_retirement_is_signed_by_a_key_that_stays(ledger: Ledger) -> None:
    """The writer refused a key that retires itself; a ledger written otherwise was accepted."""
    ledger.append(change_key("add", TWO.public(NAME), ONE, DAY))
    state = replay(ledger.folder).state
    retire = change_key("retire", ONE.public(NAME), ONE, DAY)(state)
    with pytest.raises(LedgerError, match="a key cannot retire itself"):
        state.follow(retire, canonical(retire))
    retire = change_key("retire", ONE.public(NAME), TWO, DAY)(state)
    state.follow(retire, canonical(retire))
    assert state.keys == [TWO.public(NAME)]


@pytest.mark.parametrize("day", ["2024-02-30", "2025-13-01", "2024-00-10", "0000-01-01"])
def test_a_date_is_a_day_of_the_calendar(day: str, ledger: Ledger) -> None:
    state = replay(ledger.folder).state
    entry = policy(CAP, DAY)(state).model_copy(update={"date": day})
    with pytest.raises(LedgerError, match="no day of the calendar"):
        state.check(entry)


def test_each_entry_is_proved_to_be_in_the_tree(ledger: Ledger) -> None:
    for number in range(6):
        ledger.append(reserve("s", f"r{number}", spend("1/10"), DAY))
    read = replay(ledger.folder)
    whole = root(read.leaves)
    for index, data in enumerate(read.files):
        proof = inclusion_proof(read.leaves, index)
        assert root_from_inclusion(leaf_hash(data), index, 7, proof) == whole


def history(folder: Path) -> Ledger:
    """A ledger with an entry of every kind."""
    made = create_ledger(folder, ONE, NAME, (CAP,), DAY)
    makes = [
        reserve("s", "r", spend("1"), DAY),
        commit("r", b"x", DAY),
        reserve("s", "q", spend("1"), DAY),
        abort("q", DAY, drawn=True),
        withdraw("r", DAY),
        policy(ScopeCap(scope="s", epsilon="9", delta="0.1"), DAY),
        change_key("add", TWO.public(NAME), ONE, DAY),
    ]
    for make in makes:
        made.append(make)
    return made


def intact(folder: Path, older: str | None = None) -> None:
    """What an auditor does with a ledger's files.

    Raises:
        ReleaseError: something is wrong.
    """
    read = read_ledger(folder)
    if older is not None:
        check_checkpoint(older, read)


def test_every_changed_byte_of_a_ledger_is_found(tmp_path: Path) -> None:
    made = history(tmp_path / "ledger")
    intact(made.folder)
    for path in sorted(made.folder.iterdir()):
        good = path.read_bytes()
        for place in range(len(good)):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(ReleaseError):
                intact(made.folder)
        for cut in (good[:-1], good + b"\n", b""):
            path.write_bytes(cut)
            with pytest.raises(ReleaseError):
                intact(made.folder)
        path.write_bytes(good)
    intact(made.folder)


def test_missing_swapped_and_rolled_back_entries_are_found(tmp_path: Path) -> None:
    made = history(tmp_path / "ledger")
    names = sorted(path.name for path in made.folder.glob("*.json"))
    good = files(made.folder)
    for name in names:
        (made.folder / name).unlink()
        with pytest.raises(ReleaseError):
            intact(made.folder)
        (made.folder / name).write_bytes(good[name])
    for one, two in itertools.pairwise(names):
        (made.folder / one).write_bytes(good[two])
        (made.folder / two).write_bytes(good[one])
        with pytest.raises(ReleaseError):
            intact(made.folder)
        (made.folder / one).write_bytes(good[one])
        (made.folder / two).write_bytes(good[two])
    # Rolled back with the right key: only a checkpoint kept elsewhere can tell.
    older = good[CHECKPOINT].decode()
    (made.folder / names[-1]).unlink()
    sign_by_hand(made.folder)
    intact(made.folder)
    with pytest.raises(LedgerError, match="entries were removed"):
        intact(made.folder, older)
    made.append(reserve("s", "z", spend("1"), DAY))
    with pytest.raises(LedgerError, match="not those that were signed"):
        intact(made.folder, older)


def test_a_changed_past_is_never_signed_over(tmp_path: Path) -> None:
    made = history(tmp_path / "ledger")
    last = sorted(made.folder.glob("*.json"))[-1]
    last.unlink()
    refused(made, reserve("s", "z", spend("1"), DAY), "entries were removed")
    with pytest.raises(LedgerError, match="entries were removed"):
        made.recover()


def test_after_a_crash_the_last_entry_is_signed_for(ledger: Ledger) -> None:
    """The entry was linked, and the machine went down before the checkpoint."""
    before = (ledger.folder / CHECKPOINT).read_bytes()
    ledger.append(reserve("s", "r", spend("1"), DAY))
    (ledger.folder / CHECKPOINT).rename(ledger.folder / "checkpoint.next")
    (ledger.folder / CHECKPOINT).write_bytes(before)
    (ledger.folder / ".new-0123456789abcdef").write_bytes(b"half an ent")
    ledger.recover()
    intact(ledger.folder)
    assert sorted(files(ledger.folder)) == ["00000000.json", "00000001.json", CHECKPOINT]


def test_an_entry_of_somebody_without_the_key_is_never_signed_for(ledger: Ledger) -> None:
    """A cap is raised by a well-formed entry that only lacks a signature."""
    state = replay(ledger.folder).state
    raised = policy(ScopeCap(scope="s", epsilon="1000", delta="0.1"), DAY)(state)
    (ledger.folder / "00000001.json").write_bytes(canonical(raised))
    refused(ledger, reserve("s", "r", spend("50"), DAY), "1 entries at the end are not signed")
    older = (ledger.folder / CHECKPOINT).read_bytes()
    for lie in (older, b"no note", older.replace(b"\n1\n", b"\n2\n")):
        (ledger.folder / "checkpoint.next").write_bytes(lie)
        with pytest.raises(LedgerError):
            ledger.append(reserve("s", "r", spend("50"), DAY))
    assert (ledger.folder / CHECKPOINT).read_bytes() == older


def test_a_ledger_without_its_checkpoint_is_not_written(ledger: Ledger) -> None:
    ledger.append(reserve("s", "r", spend("1"), DAY))
    (ledger.folder / CHECKPOINT).unlink()
    refused(ledger, abort("r", DAY, drawn=True), "no checkpoint can be read")


def test_a_ledger_from_the_future_is_not_written(ledger: Ledger) -> None:
    ledger.append(reserve("s", "r", spend("1"), "2999-01-01"))
    refused(ledger, abort("r", DAY, drawn=True), "is in the future")


def test_a_clock_may_be_a_day_behind(ledger: Ledger) -> None:
    """Of the machine that wrote the last entry; it is measured against this one's."""
    tomorrow = today() + datetime.timedelta(days=1)
    ledger.append(reserve("s", "r", spend("1"), tomorrow.isoformat()))
    ledger.append(abort("r", tomorrow.isoformat(), drawn=True))
    later = tomorrow + datetime.timedelta(days=1)
    ledger.append(reserve("s", "q", spend("1"), later.isoformat()))
    refused(ledger, abort("q", later.isoformat(), drawn=True), "is in the future")


def test_amounts_of_any_length_are_read_back(ledger: Ledger) -> None:
    long = f"1/{2**300}"
    ledger.append(policy(ScopeCap(scope="t", epsilon=long, delta="0"), DAY))
    ledger.append(reserve("t", "r", spend(long), DAY))
    refused(ledger, reserve("t", "q", spend(long), DAY), "has spent 0.000", BudgetError)
    refused(ledger, reserve("s", "q", Spent(Fraction(1, 3**900)), DAY), "epsilon: not a value")
    refused(ledger, withdraw("", DAY), "release_id: not a value")


def test_spending_over_time_leaves_out_what_was_refunded(ledger: Ledger) -> None:
    for name, charge, drawn, day in (
        ("a", "1", True, "2024-03-02"),
        ("b", "1/2", False, "2024-03-03"),
        ("c", "1/4", True, "2024-03-05"),
    ):
        ledger.append(reserve("s", name, spend(charge), day))
        ledger.append(abort(name, day, drawn=drawn))
    found = spending(replay(ledger.folder), "s")
    assert found.days == ("2024-03-02", "2024-03-05")
    assert found.levels == (Fraction(1), Fraction(5, 4))
    assert found.cap == 3


def test_a_second_ledger_in_a_folder_is_refused(ledger: Ledger) -> None:
    before = files(ledger.folder)
    with pytest.raises(LedgerError, match="the folder has a ledger already"):
        create_ledger(ledger.folder, ONE, NAME, (CAP,), DAY)
    assert files(ledger.folder) == before
    with pytest.raises(LedgerError, match="ledger init"):
        replay(ledger.folder.parent)


RACE = """
import sys
from fractions import Fraction
from pathlib import Path
from release.errors import BudgetError
from release.budget.ledger import Ledger, Spent, reserve
from release.records.keys.files import FileSigner
from release.records.keys.outside import read_key
folder, key, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
ledger, granted = Ledger(folder, read_key(key)), 0
for number in range(20):
    try:
        ledger.append(reserve("race", f"{name}-{number}", Spent(Fraction(1)), "2024-03-01"))
        granted += 1
    except BudgetError:
        pass
print(granted)
"""


def test_a_race_of_eight_processes_never_overspends(tmp_path: Path) -> None:
    """8 × 20 reserves of 1 against a cap of 50: exactly 50 are granted."""
    from release.records.keys.files import create_key

    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="race", epsilon="50", delta="0")
    create_ledger(tmp_path / "ledger", signer, NAME, (cap,), DAY)
    arguments = [sys.executable, "-c", RACE, str(tmp_path / "ledger"), str(tmp_path / "key")]
    runs = [
        subprocess.Popen([*arguments, f"p{i}"], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        for i in range(8)
    ]
    granted = [int(run.communicate()[0]) for run in runs]
    assert [run.returncode for run in runs] == [0] * 8
    assert sum(granted) == 50
    read = replay(tmp_path / "ledger")
    assert read.state.spent("race") == spend("50")
    assert sum(isinstance(entry, Reserve) for entry in read.entries) == 50
    intact(tmp_path / "ledger")


def test_a_writer_that_ignores_the_lock_overwrites_nothing(ledger: Ledger) -> None:
    """Another's entry appears between the look and the link."""
    taken = ledger.folder / "00000001.json"

    def make(state: State) -> Any:
        taken.write_bytes(b"another's")
        return reserve("s", "r", spend("1"), DAY)(state)

    with pytest.raises(LedgerError, match="another process wrote it"):
        ledger.append(make)
    assert taken.read_bytes() == b"another's"


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 12)), max_size=30))
def test_a_ledger_agrees_with_a_count_by_hand(steps: list[tuple[int, int, int]]) -> None:
    """Random histories against a few dictionaries; entries in memory, through the same rules."""
    state = State()
    key = str(ONE.public(NAME))
    genesis = Genesis(
        seq=0,
        prev=state.head,
        date=DAY,
        kind="genesis",
        origin=NAME,
        scopes=[ScopeCap(scope="s", epsilon="2", delta="1")],
        keys=[key],
    )
    state.follow(genesis, canonical(genesis))
    kept: dict[str, Fraction] = {}
    running: dict[str, Fraction] = {}
    public: set[str] = set()
    for name_number, action, twelfths in steps:
        name, charge = f"r{name_number}", Fraction(twelfths, 12)
        makes = (
            reserve("s", name, Spent(charge), DAY),
            commit(name, b"x", DAY),
            abort(name, DAY, drawn=False),
            abort(name, DAY, drawn=True),
        )
        total = sum(kept.values(), Fraction(0)) + sum(running.values(), Fraction(0))
        allowed = (
            name not in running and name not in public and total + charge <= 2
            if action == 0
            else name in running
        )
        entry = makes[action](state)
        if not allowed:
            with pytest.raises(ReleaseError):
                state.follow(entry, canonical(entry))
            continue
        state.follow(entry, canonical(entry))
        if action == 0:
            running[name] = charge
            continue
        spent = running.pop(name)
        if action != 2:
            kept[name] = kept.get(name, Fraction(0)) + spent
        if action == 1:
            public.add(name)
    assert state.spent("s").epsilon == sum(kept.values()) + sum(running.values())
    assert set(state.running) == set(running)
    assert set(state.committed) == public


def test_a_commit_is_found_by_its_release(tmp_path: Path) -> None:
    made = history(tmp_path / "ledger")
    assert replay(made.folder).state.committed["r"].seq == 2
