"""Writing a ledger: what a crash leaves, what another's hand leaves, and what is durable."""

from __future__ import annotations

import datetime
import fcntl
import os
import stat
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify.digests import sha256
from release.budget.ledger import (
    CHECKPOINT,
    Entry,
    Ledger,
    ScopeCap,
    Spent,
    abort,
    change_key,
    commit,
    create_ledger,
    policy,
    read_ledger,
    replay,
    reserve,
    today,
    withdraw,
)
from release.budget.state import State
from release.errors import BudgetError, LedgerError, StorageError
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.records.signing import Signer, sign_note
from tests.budget.notes import checkpoint_text

ONE, TWO = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAY = "example.org/dp", "2024-03-01"
CAP = ScopeCap(scope="s", epsilon="3", delta="0.1")
RESERVE = reserve("s", "r", Spent(Fraction(1)), DAY)
NEXT = "checkpoint.next"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return create_ledger(tmp_path / "ledger", ONE, NAME, (CAP,), DAY)


def names(ledger: Ledger) -> list[str]:
    return sorted(path.name for path in ledger.folder.iterdir())


def signed(ledger: Ledger, size: int, signer: Signer = ONE) -> str:
    return sign_note(checkpoint_text(NAME, replay(ledger.folder).leaves[:size]), signer, NAME)


def put(ledger: Ledger, entries: int) -> None:
    """Entries by hand, without a signature."""
    for _ in range(entries):
        state = replay(ledger.folder).state
        number = f"{state.size:08}.json"
        entry = policy(CAP, DAY)(state)
        (ledger.folder / number).write_bytes(canonical(entry))


def test_a_new_ledger_is_a_genesis_and_its_checkpoint(ledger: Ledger) -> None:
    assert names(ledger) == ["00000000.json", CHECKPOINT]
    read = read_ledger(ledger.folder)
    assert (read.state.size, read.state.origin, read.state.caps) == (1, NAME, {"s": CAP})
    assert read.state.keys == [ONE.public(NAME)]


def test_a_ledger_can_be_read_by_all_and_written_by_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = create_ledger(tmp_path / "ledger", ONE, NAME, (CAP,), DAY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.folder.stat().st_mode) == 0o755


def test_appending_gives_the_entry_and_the_ledger_that_is_there_now(ledger: Ledger) -> None:
    for number in range(1, 4):
        entry, grown = ledger.append(reserve("s", f"r{number}", Spent(), DAY))
        read = read_ledger(ledger.folder)
        assert (entry.seq, grown.entries, grown.files) == (number, read.entries, read.files)
        assert (grown.state.size, grown.state.head) == (read.state.size, read.state.head)
        assert f"sha256:{sha256(read.files[-1])}" == grown.state.head
    assert names(ledger) == [*(f"{number:08}.json" for number in range(4)), CHECKPOINT]


def test_what_may_not_come_next_is_not_written(ledger: Ledger) -> None:
    ledger.append(RESERVE)
    before = names(ledger)
    with pytest.raises(BudgetError):
        ledger.append(reserve("s", "q", Spent(Fraction(5, 2)), DAY))
    for wrong in (
        RESERVE,
        withdraw("r", DAY),
        reserve("s", "", Spent(), DAY),
        lambda state: RESERVE(State()),
        lambda state: RESERVE(state).model_copy(update={"date": "2024-02-01", "release_id": "q"}),
    ):
        with pytest.raises(LedgerError):
            ledger.append(wrong)
    assert names(ledger) == before
    read_ledger(ledger.folder)


def test_the_first_field_that_an_entry_cannot_hold_is_named(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"^scope: "):
        ledger.append(reserve("", "", Spent(), DAY))


def test_another_entry_of_the_same_number_stays_and_nothing_is_left(ledger: Ledger) -> None:
    """Another writes while the lock is held, as where a file system ignores locks."""
    taken = ledger.folder / "00000001.json"

    def make(state: State) -> Entry:
        taken.write_bytes(b"another's")
        return RESERVE(state)

    with pytest.raises(LedgerError):
        ledger.append(make)
    assert taken.read_bytes() == b"another's"
    assert not list(ledger.folder.glob(".new-*"))


def test_two_crashes_are_not_mended_at_once(ledger: Ledger) -> None:
    """A waiting checkpoint signs for one entry more, and only then takes its place."""
    first = (ledger.folder / CHECKPOINT).read_text()
    put(ledger, 2)
    (ledger.folder / NEXT).write_text(signed(ledger, 3))
    with pytest.raises(LedgerError):
        ledger.recover()
    (ledger.folder / "00000002.json").unlink()
    (ledger.folder / NEXT).write_text(signed(ledger, 2))
    assert ledger.recover().state.size == 2
    assert names(ledger) == ["00000000.json", "00000001.json", CHECKPOINT]
    assert (ledger.folder / CHECKPOINT).read_text() != first
    read_ledger(ledger.folder)


def test_a_waiting_checkpoint_of_an_older_size_signs_for_nothing_new(ledger: Ledger) -> None:
    older = signed(ledger, 1)
    put(ledger, 1)
    (ledger.folder / NEXT).write_text(older)
    with pytest.raises(LedgerError):
        ledger.recover()


def test_a_waiting_checkpoint_without_its_entry_is_left_behind(ledger: Ledger) -> None:
    """The machine went down before the entry was linked."""
    (ledger.folder / NEXT).write_text("written before the entry")
    assert ledger.recover().state.size == 1
    ledger.append(RESERVE)
    assert names(ledger) == ["00000000.json", "00000001.json", CHECKPOINT]


def test_a_genesis_alone_is_signed_for_once_more(ledger: Ledger) -> None:
    (ledger.folder / CHECKPOINT).unlink()
    with pytest.raises(LedgerError):
        Ledger(ledger.folder, TWO).recover()
    assert ledger.recover().state.size == 1
    read_ledger(ledger.folder)


def test_a_genesis_of_another_does_not_become_signed(ledger: Ledger) -> None:
    """Where a checkpoint is there, it is not written anew."""
    (ledger.folder / CHECKPOINT).write_text(signed(ledger, 1, TWO))
    with pytest.raises(LedgerError):
        ledger.recover()


@pytest.mark.parametrize("more", [1, 2])
def test_unsigned_entries_are_neither_read_nor_written_over(ledger: Ledger, more: int) -> None:
    put(ledger, more)
    for use in (lambda: read_ledger(ledger.folder), ledger.recover, lambda: ledger.append(RESERVE)):
        with pytest.raises(LedgerError, match=f"{more} entries"):
            use()
    assert len(names(ledger)) == 2 + more


@pytest.mark.parametrize(("days", "is_future"), [(0, False), (1, False), (2, True)])
def test_clocks_may_differ_by_a_day(ledger: Ledger, days: int, is_future: bool) -> None:
    date = (datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days)).isoformat()
    entry, _ = ledger.append(reserve("s", "r", Spent(), date))
    assert entry.date == date
    if not is_future:
        assert ledger.append(abort("r", DAY, drawn=False))[0].date == date
        return
    with pytest.raises(LedgerError):
        ledger.append(abort("r", DAY, drawn=False))


def test_the_date_of_a_charge_is_the_day_in_utc() -> None:
    before = datetime.datetime.now(tz=datetime.UTC).date()
    assert before <= today() <= datetime.datetime.now(tz=datetime.UTC).date()


def test_a_key_cannot_leave_a_ledger_that_it_signs(ledger: Ledger) -> None:
    ledger.append(change_key("add", TWO.public(NAME), ONE, DAY))
    both = Ledger(ledger.folder, TWO)
    # Whoever signs the change: the writer could not sign for the ledger after it.
    for signer in (ONE, TWO):
        with pytest.raises(LedgerError):
            ledger.append(change_key("retire", ONE.public(NAME), signer, DAY))
        assert read_ledger(ledger.folder).state.size == 2
    ledger.append(RESERVE)
    ledger.append(change_key("retire", TWO.public(NAME), ONE, DAY))
    with pytest.raises(LedgerError):
        both.append(abort("r", DAY, drawn=True))
    ledger.append(change_key("add", TWO.public(NAME), ONE, DAY))
    both.append(change_key("retire", ONE.public(NAME), TWO, DAY))
    assert read_ledger(ledger.folder).state.keys == [TWO.public(NAME)]


def test_a_ledger_is_created_once_and_only_if_it_can_be_meant(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "ledger"
    with pytest.raises(LedgerError):
        create_ledger(folder, ONE, NAME, (CAP, CAP), DAY)
    assert not folder.exists()
    ledger = create_ledger(folder, ONE, NAME, (CAP,), DAY)
    ledger.append(RESERVE)
    before = names(ledger)
    with pytest.raises(LedgerError):
        create_ledger(folder, ONE, NAME, (CAP,), DAY)
    assert names(ledger) == before
    read_ledger(folder)


def test_a_folder_with_other_files_may_become_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("x")
    assert create_ledger(tmp_path, ONE, NAME, (CAP,), DAY).recover().state.size == 1


def test_where_nothing_can_be_written_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        create_ledger(tmp_path / "file" / "ledger", ONE, NAME, (CAP,), DAY)
    for use in (read_ledger, replay, lambda folder: Ledger(folder, ONE).recover()):
        with pytest.raises(LedgerError):
            use(tmp_path / "nothing")


def test_readers_share_the_lock_and_writers_do_not(ledger: Ledger) -> None:
    descriptor = os.open(ledger.folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        assert read_ledger(ledger.folder).state.size == 1

        fcntl.flock(descriptor, fcntl.LOCK_UN)
        tried: list[bool] = []

        def make(state: State) -> Entry:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                tried.append(True)
            return RESERVE(state)

        ledger.append(make)
        assert tried == [True]
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def test_only_a_writer_clears_what_a_crash_left(ledger: Ledger) -> None:
    stray = ledger.folder / ".new-0123456789abcdef"
    stray.write_bytes(b"half an ent")
    read_ledger(ledger.folder)
    assert stray.exists()
    ledger.recover()
    assert not stray.exists()
    folder = ledger.folder / ".new-folder"
    folder.mkdir()
    ledger.append(RESERVE)
    assert folder.exists()


def test_a_commit_names_the_hash_of_the_attestation(ledger: Ledger) -> None:
    ledger.append(RESERVE)
    entry, _ = ledger.append(commit("r", b"attestation", DAY))
    assert canonical(entry).decode().count(sha256(b"attestation")) == 1
