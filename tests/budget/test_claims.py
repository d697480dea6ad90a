"""Two copies of one ledger that meet in a store: who comes second begins anew, and nobody forks.

In a folder, in memory, and on an S3-compatible server that runs here.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import obstore
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.checkpoint import check_checkpoint
from release.budget.claims import check_last, claim_name, newest, read_claim
from release.budget.ledger import (
    CHECKPOINT,
    Ledger,
    Reserve,
    ScopeCap,
    Spent,
    abort,
    change_key,
    commit,
    create_ledger,
    follow_store,
    policy,
    read_ledger,
    replay,
    reserve,
)
from release.budget.state import State, replay_files
from release.errors import BudgetError, LedgerError, StorageError
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.records.signing import sign_note
from release.records.stores import Objects, Store, open_store
from tests.budget.notes import checkpoint_text
from tests.stores import s3_server

ONE, TWO = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAY = "example.org/dp", "2024-03-01"
CAP = ScopeCap(scope="s", epsilon="3", delta="0.1")


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as uri:
        yield uri


@pytest.fixture(params=["folder", "memory", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new place in each kind of store."""
    if request.param == "folder":
        return (tmp_path / "store").as_uri()
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"{request.getfixturevalue('s3')}/{tmp_path.name}"


def machines(folder: Path, uri: str) -> tuple[Ledger, Ledger]:
    """Two copies of a ledger that names a store."""
    one = create_ledger(folder / "one" / "ledger", ONE, NAME, (CAP,), DAY)
    one.name_store(uri, DAY)
    shutil.copytree(one.folder, folder / "two" / "ledger")
    return one, Ledger(folder / "two" / "ledger", ONE)


@pytest.fixture
def two(uri: str, tmp_path: Path) -> tuple[Ledger, Ledger]:
    return machines(tmp_path, uri)


def charge(name: str, epsilon: int = 1) -> Callable[[State], Any]:
    return reserve("s", name, Spent(Fraction(epsilon)), DAY)


def store_of(ledger: Ledger) -> Store:
    return open_store(replay(ledger.folder).state.store or "", "test")


def check_agreed(*ledgers: Ledger) -> None:
    """All copies are the same, signed, and what the store has."""
    for ledger in ledgers:
        ledger.recover()
    read = [read_ledger(ledger.folder) for ledger in ledgers]
    assert len({one.files for one in read}) == 1
    assert newest(read[0]).ledger.files == read[0].files
    assert read_claim(store_of(ledgers[0]), read[0].state.size) is None


def delete(store: Store, name: str) -> None:
    if isinstance(store, Objects):
        obstore.delete(store.objects, f"{store.prefix}/{name}")
    else:
        Path(store.path(name)).unlink()


def test_an_object_is_an_entry_and_the_checkpoint_over_it(two: tuple[Ledger, Ledger]) -> None:
    entry, grown = two[0].append(charge("r"))
    assert entry.seq == 2
    data = store_of(two[0]).read("ledger/00000002.entry")
    assert data is not None
    line, _, note = data.partition(b"\n")
    assert line == grown.files[2] == canonical(entry)
    assert check_checkpoint(note.decode(), grown) == 3
    # The first object is of the entry that names the store; those before are under its hash.
    assert store_of(two[0]).read("ledger/00000000.entry") is None
    assert read_claim(store_of(two[0]), 1) is not None


def test_the_second_machine_takes_over_what_the_first_wrote(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    one.append(charge("r"))
    assert replay(other.folder).state.size == 2
    entry, _ = other.append(charge("q"))
    assert entry.seq == 3
    one.append(abort("r", DAY, drawn=False))
    check_agreed(one, other)
    assert read_ledger(other.folder).state.spent("s").epsilon == 1


def test_what_is_taken_elsewhere_is_refused(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    one.append(charge("r"))
    with pytest.raises(LedgerError, match="'r' already has an open reserve; a run is at work on"):
        other.append(charge("r"))
    one.append(charge("q", 2))
    with pytest.raises(BudgetError, match="has spent 3"):
        other.append(charge("t"))
    check_agreed(one, other)


def during(
    ledger: Ledger, make: Callable[[State], Any], by_another: Callable[[], Any]
) -> list[int]:
    """Append while another machine writes between the state and the put; the states seen."""
    seen: list[int] = []

    def made(state: State) -> Any:
        seen.append(state.size)
        if len(seen) == 1:
            by_another()
        return make(state)

    ledger.append(made)
    return seen


def test_who_comes_second_makes_the_entry_anew(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    assert during(one, charge("r"), lambda: other.append(charge("q"))) == [2, 3]
    kinds = [getattr(entry, "release_id", "") for entry in read_ledger(one.folder).entries]
    assert kinds == ["", "", "q", "r"]
    check_agreed(one, other)


def test_a_race_for_one_release_has_one_winner(two: tuple[Ledger, Ledger]) -> None:
    """Equal charges on one day: only the name of the run tells the two entries apart."""
    one, other = two
    with pytest.raises(LedgerError, match="already has an open reserve"):
        during(one, charge("r"), lambda: other.append(charge("r")))
    check_agreed(one, other)
    assert read_ledger(one.folder).state.spent("s").epsilon == 1


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_machine_ends_its_own_reserve_alone(two: tuple[Ledger, Ledger], end: str) -> None:
    """Abandoned elsewhere and reserved anew: a refund would leave the other's noise unpaid."""
    one, other = two
    own, _ = one.append(charge("r"))
    assert isinstance(own, Reserve)

    def taken() -> None:
        other.append(abort("r", DAY, drawn=True))
        other.append(charge("r"))

    make = {"commit": commit("r", b"x", DAY, own), "abort": abort("r", DAY, drawn=False, of=own)}
    with pytest.raises(LedgerError, match="the reserve of 'r' is not open any more"):
        during(one, make[end], taken)
    check_agreed(one, other)
    ledger = read_ledger(one.folder).state
    assert ledger.spent("s").epsilon == 2
    assert "r" in ledger.running


def test_a_race_for_the_last_of_a_cap_has_one_winner(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    one.append(charge("p", 2))
    with pytest.raises(BudgetError):
        during(one, charge("r"), lambda: other.append(charge("q")))
    check_agreed(one, other)


def test_a_ledger_that_always_loses_gives_up(tmp_path: Path) -> None:
    one, other = machines(tmp_path, (tmp_path / "store").as_uri())
    cap = CAP.model_copy(update={"epsilon": "100"})

    def made(state: State) -> Any:
        other.append(policy(cap, DAY))
        return policy(CAP, DAY)(state)

    with pytest.raises(LedgerError, match="50 times in a row"):
        one.append(made)
    check_agreed(one, other)


def forged(ledger: Ledger, how: str) -> bytes:
    """An object for the next number that nobody may take over."""
    read = replay(ledger.folder)
    entry = policy(CAP, DAY)(read.state)
    if how == "another prev":
        entry = entry.model_copy(update={"prev": "sha256:" + "1" * 64})
    data = canonical(entry)
    signer = TWO if how == "another key" else ONE
    files = read.files if how == "a checkpoint of the size before" else (*read.files, data)
    leaves = replay_files(read.files).leaves
    if len(files) > len(read.files):
        from dp_release_verify.merkle import leaf_hash

        leaves = [*leaves, leaf_hash(data)]
    note = sign_note(checkpoint_text(NAME, leaves), signer, NAME)
    if how == "no checkpoint":
        note = ""
    return {"no entry": b"", "not UTF-8": data + b"\n\xff"}.get(how, data + b"\n" + note.encode())


HOW = ["no checkpoint", "another key", "another prev", "a checkpoint of the size before"]


@pytest.mark.parametrize("how", [*HOW, "no entry", "not UTF-8"])
def test_what_no_key_signed_is_not_taken_over(how: str, tmp_path: Path) -> None:
    one, other = machines(tmp_path, f"memory://{tmp_path.name}")
    before = replay(one.folder).files
    assert store_of(one).create(claim_name(2), forged(one, how))
    uses: list[Callable[[], object]] = [
        one.recover,
        lambda: other.append(charge("r")),
        lambda: follow_store(one.folder),
        lambda: newest(read_ledger(one.folder)),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match="memory://"):
            use()
    assert replay(one.folder).files == replay(other.folder).files == before


def test_a_retired_key_signs_nothing_beyond_its_end(tmp_path: Path) -> None:
    one, other = machines(tmp_path, f"memory://{tmp_path.name}")
    one.append(change_key("add", TWO.public(NAME), ONE, DAY))
    Ledger(one.folder, TWO).append(change_key("retire", ONE.public(NAME), TWO, DAY))
    with pytest.raises(LedgerError, match="does not know this key"):
        other.append(charge("r"))
    # What the store had beyond was taken over all the same; it needs no key.
    assert read_ledger(other.folder).files == read_ledger(one.folder).files


def test_a_store_that_lost_entries_stops_everything_until_it_is_filled(
    two: tuple[Ledger, Ledger],
) -> None:
    one, other = two
    one.append(charge("r"))
    one.append(charge("q"))
    uri = read_ledger(one.folder).state.store
    assert uri is not None
    for number in (1, 2, 3):
        delete(store_of(one), claim_name(number))
    for ledger in two:
        with pytest.raises(LedgerError, match=r"lacks entry \d of this ledger; .* ledger store"):
            ledger.append(charge("t"))
    one.name_store(uri, DAY)
    other.append(charge("t"))
    check_agreed(one, other)
    assert read_ledger(one.folder).state.size == 5


def test_a_filling_that_is_cut_off_lets_nobody_take_a_number(tmp_path: Path) -> None:
    one, other = machines(tmp_path, f"memory://{tmp_path.name}")
    for name in "pq":
        one.append(charge(name))
    store, uri = store_of(one), read_ledger(one.folder).state.store
    assert uri is not None
    for number in (1, 2, 3):
        delete(store, claim_name(number))
    create, left = Objects.create, [2]

    def cut(self: Objects, name: str, data: bytes) -> bool:
        if name.endswith(".entry"):
            left[0] -= 1
            if left[0] < 0:
                raise StorageError("cut off")
        return create(self, name, data)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(Objects, "create", cut)
        one.name_store(uri, DAY)
    with pytest.raises(LedgerError, match="lacks entry 1"):
        other.append(charge("t"))
    one.name_store(uri, DAY)
    other.append(charge("t"))
    check_agreed(one, other)


def test_a_copy_that_went_its_own_way_is_refused(tmp_path: Path) -> None:
    """Two copies of before the naming: only one of them can go on with the store."""
    one = create_ledger(tmp_path / "one", ONE, NAME, (CAP,), DAY)
    shutil.copytree(one.folder, tmp_path / "two")
    other = Ledger(tmp_path / "two", ONE)
    uri = (tmp_path / "store").as_uri()
    one.name_store(uri, DAY)
    other.append(charge("r"))
    one.append(charge("r"))
    with pytest.raises(LedgerError, match="is refused"):
        other.name_store(uri, DAY)
    # One that had written nothing takes over instead.
    shutil.rmtree(other.folder)
    late = create_ledger(tmp_path / "two", ONE, NAME, (CAP,), DAY)
    assert late.name_store(uri, "2024-03-02").state.size == 3
    check_agreed(one, late)


def test_a_machine_that_was_put_back_is_brought_up(two: tuple[Ledger, Ledger]) -> None:
    one, _ = two
    kept = one.folder.with_name("kept")
    shutil.copytree(one.folder, kept)
    one.append(charge("r", 2))
    after = read_ledger(one.folder).files
    shutil.rmtree(one.folder)
    kept.rename(one.folder)
    with pytest.raises(BudgetError):
        one.append(charge("q", 2))
    assert read_ledger(one.folder).files == after


def test_a_ledger_moves_to_another_store_with_all_its_machines(
    two: tuple[Ledger, Ledger], uri: str, tmp_path: Path
) -> None:
    one, other = two
    one.append(charge("p"))
    one.name_store(f"{uri}/new", DAY)
    one.append(charge("q"))
    other.append(charge("r"))
    check_agreed(one, other)
    assert read_ledger(other.folder).state.store == f"{uri}/new"
    assert read_claim(open_store(uri, "old"), 4) is None
    # A store that has entries of another ledger under these numbers is refused before the move.
    size = read_ledger(one.folder).state.size
    taken = open_store(f"{uri}/taken", "taken")
    assert taken.create(claim_name(size), b"another's")
    with pytest.raises(LedgerError, match="name a folder that has none"):
        one.name_store(f"{uri}/taken", DAY)
    check_agreed(one, other)


def test_a_move_that_is_cut_off_is_completed_by_naming_the_store_again(tmp_path: Path) -> None:
    uri = f"memory://{tmp_path.name}"
    one, other = machines(tmp_path, uri)
    create = Objects.create

    def cut(self: Objects, name: str, data: bytes) -> bool:
        if self.label.endswith("/new") and name.endswith(".entry"):
            raise StorageError("cut off")
        return create(self, name, data)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(Objects, "create", cut)
        one.name_store(f"{uri}/new", DAY)
    for ledger in (one, other):
        with pytest.raises(LedgerError, match="/new lacks entry 2"):
            ledger.append(charge("r"))
    assert other.name_store(f"{uri}/new", DAY).state.size == 3
    one.append(charge("r"))
    check_agreed(one, other)


def test_a_store_that_writes_over_is_refused(tmp_path: Path) -> None:
    one = create_ledger(tmp_path / "ledger", ONE, NAME, (CAP,), DAY)

    def over(self: Objects, name: str, data: bytes) -> bool:
        self.replace(name, data)
        return self.read(name) == data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Objects, "create", over)
        with pytest.raises(StorageError, match="needs a store with conditional puts"):
            one.name_store(f"memory://{tmp_path.name}", DAY)
    assert read_ledger(one.folder).state.store is None


def test_a_store_that_does_not_answer_charges_nothing(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = machines(tmp_path, f"{s3}/{tmp_path.name}")
    before = replay(one.folder).files
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=r"^s3://office/[^:]*: the store cannot be read") as told:
        one.append(charge("r"))
    assert "127.0.0.1" not in str(told.value)
    assert replay(one.folder).files == before


def test_a_put_whose_answer_was_lost_counts_once(tmp_path: Path) -> None:
    """The object is there, and the writer was told of a failure."""
    one, other = machines(tmp_path, f"memory://{tmp_path.name}")
    put = obstore.put

    def lost(*arguments: Any, **named: Any) -> Any:
        put(*arguments, **named)
        raise obstore.exceptions.GenericError("the connection ended")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obstore, "put", lost)
        one.append(charge("r"))
    check_agreed(one, other)
    assert list(read_ledger(other.folder).state.running) == ["r"]


def killed_before(number: int, action: Callable[[], object]) -> int:
    """Run ``action`` in a process that is killed before its ``number``-th lasting step."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = number

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return step

    for name in ("open", "fsync", "link", "rename", "replace", "unlink", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    status = 1
    try:
        action()
        status = 0
    finally:
        os._exit(status)


@pytest.mark.parametrize(("behind", "stride"), [(0, 1), (2, 4)])
def test_a_kill_at_any_step_stops_neither_machine(behind: int, stride: int, tmp_path: Path) -> None:
    """The one that dies may have to take over entries first; the other one goes on at once."""
    number, put = 0, 0
    while True:
        folder = tmp_path / str(number)
        one, other = machines(folder, (folder / "store").as_uri())
        for late in range(behind):
            other.append(policy(CAP.model_copy(update={"epsilon": str(5 + late)}), DAY))
        mine = charge("r")
        status = killed_before(number, partial(one.append, mine))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        # The other machine, and then this one again: neither is blocked, no number is lost.
        other.append(charge("q"))
        put += "r" in read_ledger(other.folder).state.running
        if "r" not in read_ledger(other.folder).state.running:
            one.append(mine)
        else:
            with pytest.raises(LedgerError, match="open reserve"):
                one.append(mine)
        check_agreed(one, other)
        assert read_ledger(one.folder).state.spent("s").epsilon == 2
        assert not [p.name for p in one.folder.iterdir() if p.name.startswith(".new-")]
        number += stride
    assert number > 20
    # It died on both sides of the put.
    assert 0 < put < number // stride


def test_a_kill_while_a_store_is_named_is_made_up_for(tmp_path: Path) -> None:
    """Naming it again completes what was begun, on another day too."""
    number = 0
    while True:
        folder = tmp_path / str(number)
        one = create_ledger(folder / "one" / "ledger", ONE, NAME, (CAP,), DAY)
        uri = (folder / "store").as_uri()
        if killed_before(number, partial(one.name_store, uri, DAY)) == 0:
            break
        assert one.name_store(uri, f"2024-03-0{1 + number % 2}").state.size == 2
        one.append(charge("r"))
        check_agreed(one)
        number += 1
    assert number > 10


def test_a_reader_needs_no_key_and_writes_nothing(two: tuple[Ledger, Ledger]) -> None:
    one, other = two
    one.append(charge("r"))
    behind = read_ledger(other.folder)
    assert newest(behind).ledger.files == read_ledger(one.folder).files
    assert behind.state.size == read_ledger(other.folder).state.size == 2
    with pytest.raises(LedgerError, match="lacks entry"):
        check_last(read_ledger(one.folder), open_store("memory://nothing", "test"))


def test_a_ledger_of_the_same_name_with_other_entries_disagrees(tmp_path: Path) -> None:
    one, _ = machines(tmp_path / "x", f"memory://{tmp_path.name}/x")
    two, _ = machines(tmp_path / "y", f"memory://{tmp_path.name}/y")
    one.append(charge("r"))
    two.append(charge("r"))
    with pytest.raises(LedgerError, match="two ledgers of one name"):
        check_last(read_ledger(one.folder), store_of(two))
    assert (one.folder / CHECKPOINT).read_bytes() != (two.folder / CHECKPOINT).read_bytes()
