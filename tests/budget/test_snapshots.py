"""Snapshots of a ledger's state: what they say, who believes them, and what a kill leaves."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_release_verify.merkle import grown_peaks, inclusion_proof, leaf_hash, root
from release.budget.checkpoint import CHECKPOINT, checkpoint_of, ledger_proof, open_proof
from release.budget.ledger import (
    Ledger,
    Make,
    ReleaseCharge,
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
    revise,
    skip,
    withdraw,
)
from release.budget.snapshots.names import CHARGED, PUBLIC, SKIPPED, WITHDRAWN, PastNames
from release.budget.snapshots.snapshot import SNAPSHOT, read_recent, snapshot_of, state_body
from release.budget.state import entry_file
from release.errors import LedgerError, ReleaseError
from release.operate.delivery import check_witness, deliver_ledger
from release.records.keys.files import FileSigner
from release.records.signing import sign_note
from release.records.stores import open_store
from tests.budget.test_claims import killed_before, machines
from tests.budget.test_rules import CAPS

ONE, TWO = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAYS = "example.org/dp", ("2024-03-01", "2024-03-02", "2024-04-01")
NIGHT = ReleaseCharge.of(Fraction("0.05"), Fraction(0))
SCOPES = tuple(cap.model_copy(update={"scope": rule}) for rule, cap in CAPS.items())


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    cap = ScopeCap(scope="s", epsilon="100", delta="0")
    return create_ledger(tmp_path / "ledger", ONE, NAME, (cap,), DAYS[0])


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.budget.store.EVERY", 4)


def fill(ledger: Ledger, releases: int) -> None:
    for number in range(releases):
        ledger.append(reserve("s", f"r{number}", Spent(Fraction(1, 100)), DAYS[0]))
        ledger.append(commit(f"r{number}", b"", DAYS[0]))


def recent(ledger: Ledger) -> bool:
    return read_recent(ledger.folder, ledger.signer) is not None


def makes(action: int, name: str, rule: str, day: str) -> Make:
    key = TWO.public(NAME)
    return (
        reserve(rule, name, NIGHT, day),
        commit(name, name.encode(), day),
        abort(name, day, drawn=False),
        abort(name, day, drawn=True),
        withdraw(name, day),
        policy(ScopeCap(scope="basic", epsilon="0.3", delta="0"), day),
        policy(ScopeCap(scope="new", epsilon="1", delta="0"), day),
        change_key("add", key, ONE, day),
        change_key("retire", key, ONE, day),
        skip(name, "no data", day),
        revise(name, "r0", "wrong", day),
    )[action]


steps = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 0, *range(11)]),
        st.integers(0, 5),
        st.sampled_from([*CAPS]),
        st.integers(0, 2),
    ),
    min_size=8,
    max_size=30,
)


@settings(max_examples=30, deadline=None)
@given(steps, st.integers(1, 6))
def test_a_snapshot_and_the_entries_after_it_are_the_whole_ledger(
    histories: list[tuple[int, int, str, int]], every: int
) -> None:
    """Random ledgers of all kinds and rules: the same state, roots, refusals and proofs."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("release.budget.store.EVERY", every)
        ledger = create_ledger(Path(folder) / "ledger", ONE, NAME, SCOPES, DAYS[0])
        day = 0
        for action, name, rule, later in histories:
            day = max(day, later)
            make = makes(action, f"r{name}", rule, DAYS[day])
            whole = replay(ledger.folder)
            expected: type[Exception] | None = None
            try:
                whole.state.check(make(whole.state))
            except ReleaseError as error:
                expected = type(error)
            if expected is None:
                ledger.append(make)
            else:
                with pytest.raises(expected):
                    ledger.append(make)
        whole = read_ledger(ledger.folder)
        short = ledger.recover()
        assert (short.before.size > 0) == (whole.state.size >= max(2, every))
        assert state_body(short) == state_body(whole)
        assert checkpoint_of(short) == checkpoint_of(whole)
        assert short.last == whole.last
        for release in (f"r{number}" for number in range(6)):
            assert short.state.is_committed(release) == (release in whole.state.committed)
            assert short.state.is_withdrawn(release) == (release in whole.state.withdrawn)
            assert short.state.is_revised(release) == (release in whole.state.revised)
            assert short.state.is_skipped(release) == (release in whole.state.skipped)
            assert short.state.is_charged(release) == whole.state.is_charged(release)
            assert ledger.commitment(release) == whole.state.committed.get(release)
            if release in whole.state.committed:
                proof = ledger_proof(short, release, ledger.folder)
                assert proof == ledger_proof(whole, release, ledger.folder)
                assert open_proof(proof, tuple(whole.state.keys)).entry.release_id == release


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_tree_goes_on_from_its_peaks(first: int, more: int) -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(first + more)]
    peaks = grown_peaks((), leaves[:first])
    assert root(leaves[first:], peaks) == root(leaves)
    for index in range(first, first + more):
        assert inclusion_proof(leaves[first:], index, peaks) == inclusion_proof(leaves, index)
    for outside in (first - 1, first + more):
        with pytest.raises(ValueError, match="no such leaf"):
            inclusion_proof(leaves[first:], outside, peaks)


MARKS = st.dictionaries(st.text(max_size=4), st.sampled_from([PUBLIC, WITHDRAWN, SKIPPED, CHARGED]))


@given(MARKS, MARKS, st.sets(st.text(max_size=4)))
def test_past_names_have_their_last_mark(
    first: dict[str, bytes], later: dict[str, bytes], asked: set[str]
) -> None:
    names = PastNames().with_marks(first).with_marks(later)
    for name in first.keys() | later.keys() | asked:
        assert names.mark(name) == (first | later).get(name, b"")


def forged(ledger: Ledger) -> Iterator[bytes]:
    """Snapshots that the holder of the key has not signed for this ledger."""
    data = (ledger.folder / SNAPSHOT).read_bytes()
    whole = replay(ledger.folder)
    yield snapshot_of(whole, TWO)
    # The account says that less was spent.
    yield data.replace(b'["', b'["0', 1)
    length, _, rest = data.partition(b"\n")
    note, body = rest[: int(length)], rest[int(length) :]
    for changed in (b"", body[:-1], body + b"\0" * 17, body.replace(b"r0", b"r9")):
        if changed != body:
            yield length + b"\n" + note + changed
    # A checkpoint is signed too, but says nothing of a state.
    checkpoint = (ledger.folder / CHECKPOINT).read_bytes()
    yield b"%d\n" % len(checkpoint) + checkpoint + body
    yield from (b"", b"x", b"-1\n", b"9" * 5000 + b"\n", b"0\n", b"\xff\n\xff", data[:100])


def test_what_the_key_has_not_signed_is_passed_over(ledger: Ledger) -> None:
    fill(ledger, 5)
    true = (ledger.folder / SNAPSHOT).read_bytes()
    assert recent(ledger)
    for data in forged(ledger):
        (ledger.folder / SNAPSHOT).write_bytes(data)
        assert not recent(ledger)
        with pytest.raises(LedgerError, match="already published"):
            ledger.append(reserve("s", "r0", Spent(), DAYS[0]))
        assert ledger.recover().before.size == 0
    (ledger.folder / SNAPSHOT).write_bytes(true)
    assert recent(ledger)
    assert read_recent(ledger.folder, TWO) is None


def test_a_snapshot_of_another_history_is_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    """The same key, put back to an older state, went on with other entries."""
    shutil.copytree(ledger.folder, tmp_path / "copy")
    other = Ledger(tmp_path / "copy", ONE)
    for number in range(4):
        other.append(reserve("s", f"q{number}", Spent(), DAYS[0]))
        other.append(abort(f"q{number}", DAYS[0], drawn=True))
    fill(ledger, 4)
    shutil.copy(other.folder / SNAPSHOT, ledger.folder / SNAPSHOT)
    assert not recent(ledger)
    ledger.append(reserve("s", "q0", Spent(), DAYS[0]))
    assert read_ledger(ledger.folder).state.size == 10


def test_an_older_snapshot_is_gone_on_from(ledger: Ledger) -> None:
    fill(ledger, 3)
    older = (ledger.folder / SNAPSHOT).read_bytes()
    fill_more = [reserve("s", "z", Spent(), DAYS[0]), commit("z", b"", DAYS[0])] * 1
    for make in (*fill_more, withdraw("r1", DAYS[0])):
        ledger.append(make)
    whole = read_ledger(ledger.folder)
    (ledger.folder / SNAPSHOT).write_bytes(older)
    short = ledger.recover()
    assert 0 < short.before.size < whole.state.size
    assert state_body(short) == state_body(whole)


@pytest.mark.parametrize("gone", [0, 1])
def test_removed_signed_entries_are_noticed_after_a_snapshot(ledger: Ledger, gone: int) -> None:
    """The last entry of all, and the last one before the snapshot."""
    fill(ledger, 3)
    short = ledger.recover()
    assert short.files
    number = (short.state.size if gone == 0 else short.before.size) - 1
    (ledger.folder / entry_file(number)).unlink()
    with pytest.raises(LedgerError, match=r"removed|missing"):
        ledger.append(reserve("s", "z", Spent(), DAYS[0]))


def test_a_changed_older_entry_is_found_by_readers(ledger: Ledger) -> None:
    """A writer does not read it; whoever replays the ledger does."""
    fill(ledger, 5)
    path = ledger.folder / entry_file(1)
    path.write_bytes(path.read_bytes().replace(b"0.01", b"0.00"))
    with pytest.raises(LedgerError):
        read_ledger(ledger.folder)


def test_a_checkpoint_older_than_the_snapshot_is_refused(ledger: Ledger) -> None:
    fill(ledger, 3)
    whole = replay(ledger.folder)
    note = sign_note(checkpoint_of(whole, 2), ONE, NAME)
    (ledger.folder / CHECKPOINT).write_text(note)
    assert not recent(ledger)
    with pytest.raises(LedgerError, match="not signed"):
        ledger.recover()


def test_a_snapshot_that_cannot_be_written_stops_nothing(ledger: Ledger) -> None:
    (ledger.folder / SNAPSHOT).mkdir()
    fill(ledger, 4)
    assert read_ledger(ledger.folder).state.size == 9
    assert not list(ledger.folder.glob(".new-*"))


def test_a_kill_at_any_step_of_a_snapshot_loses_nothing(ledger: Ledger) -> None:
    number, killed = 1, 0
    for release in range(40):
        make = reserve("s", f"k{release}", Spent(Fraction(1, 100)), DAYS[0])
        if killed_before(number, partial(ledger.append, make)) == 0:
            # All steps of an append with a snapshot are passed once one of these ends unharmed.
            number = 1
        else:
            number, killed = number + 1, killed + 1
        short, whole = ledger.recover(), read_ledger(ledger.folder)
        assert state_body(short) == state_body(whole)
        spent = whole.state.spent("s").epsilon
        assert spent == Fraction(len(whole.state.running), 100)
        with suppress(LedgerError):
            ledger.append(make)
        assert f"k{release}" in read_ledger(ledger.folder).state.running
    assert killed > 20


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_a_delivery_from_a_snapshot_is_a_delivery_of_the_whole(
    ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    uri = (tmp_path / "store").as_uri() if kind == "folder" else f"memory://{tmp_path.name}"
    store = open_store(uri, "--store")
    for round_number in range(4):
        for number in range(3):
            name = f"r{round_number}-{number}"
            ledger.append(reserve("s", name, Spent(Fraction(1, 100)), DAYS[0]))
        deliver_ledger(ledger.folder, store, ONE)
        for number, data in enumerate(read_ledger(ledger.folder).files):
            assert store.read(f"ledger/{entry_file(number)}") == data
        assert store.read(f"ledger/{CHECKPOINT}") == (ledger.folder / CHECKPOINT).read_bytes()
    assert ledger.recover().before.size > 0
    # The copy is compared with what the snapshot stands for, too.
    check_witness(ledger.folder, store, ONE)
    store.replace(f"ledger/{entry_file(1)}", b"{}")
    with pytest.raises(LedgerError, match="does not agree"):
        check_witness(ledger.folder, store, ONE)


def test_an_empty_store_is_filled_by_a_ledger_with_a_snapshot(
    ledger: Ledger, tmp_path: Path
) -> None:
    fill(ledger, 5)
    store = open_store((tmp_path / "late").as_uri(), "--store")
    deliver_ledger(ledger.folder, store, ONE)
    assert len(store.sizes("ledger")) == 12
    assert store.read(f"ledger/{entry_file(0)}") == (ledger.folder / entry_file(0)).read_bytes()


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_a_listing_names_the_folders_that_hold_a_file(tmp_path: Path, kind: str) -> None:
    uri = tmp_path.as_uri() if kind == "folder" else f"memory://{tmp_path.name}-holding"
    store = open_store(uri, "--store")
    assert store.holding("public", "SUMS") == set()
    for name in ("a/SUMS", "a/x", "b/x", "c/d/SUMS", "SUMS"):
        store.put(f"public/{name}", b"1")
    assert store.holding("public", "SUMS") == {"a"}


def test_two_machines_go_on_from_snapshots_of_their_own(tmp_path: Path) -> None:
    """Each takes over what the other wrote, with entries of both sides of its snapshot."""
    one, other = machines(tmp_path, (tmp_path / "store").as_uri())
    for number in range(14):
        writer = (one, other)[number % 5 > 2]
        writer.append(reserve("s", f"r{number}", Spent(), DAYS[0]))
        if number % 2:
            writer.append(commit(f"r{number - 1}", b"", DAYS[0]))
    for machine in (one, other):
        short = machine.recover()
        assert short.before.size > 0
        assert state_body(short) == state_body(read_ledger(machine.folder))
    assert read_ledger(one.folder).files == read_ledger(other.folder).files


def test_a_key_that_was_retired_is_believed_by_nobody(ledger: Ledger) -> None:
    fill(ledger, 3)
    ledger.append(change_key("add", TWO.public(NAME), ONE, DAYS[0]))
    heir = Ledger(ledger.folder, TWO)
    heir.append(change_key("retire", ONE.public(NAME), TWO, DAYS[0]))
    whole = read_ledger(ledger.folder)
    # The old key says that it is still valid.
    whole.state.keys.append(ONE.public(NAME))
    (ledger.folder / SNAPSHOT).write_bytes(snapshot_of(whole, ONE))
    assert read_recent(ledger.folder, TWO) is None
    heir.append(reserve("s", "z", Spent(), DAYS[0]))
    read_ledger(ledger.folder)
    with pytest.raises(ReleaseError):
        Ledger(ledger.folder, ONE).append(reserve("s", "y", Spent(), DAYS[0]))
