"""The ledger: who has spent how much, in numbered entries that nobody can change unseen.

Each entry is one canonical JSON file that holds the SHA-256 of the one before; a signed checkpoint
holds the root of a Merkle tree over all of them (FORMAT.md §5). What an entry may say follows from
those before it, and :class:`State` says what that is: writing an entry and replaying a ledger go
through the same rules, so they cannot drift apart.

A release first *reserves* its charge, durably, before any noise is drawn. It ends in a *commit*, or
in an *abort*, which gives the charge back only if nothing was drawn. A *withdrawn* release has been
public, so its charge stays. A *policy* sets the cap of a scope, a *key* adds or retires a signing
key and is signed by one that is valid then.

Charges add up (basic composition), in exact rationals. A scope has a cap for its lifetime, and may
have one for each calendar day, month or year of the entries' dates.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypedDict

from pydantic import Field, StringConstraints, TypeAdapter

from release.errors import BudgetError, LedgerError, StorageError
from release.exact import format_exact, parse_exact
from release.hashes import decoded, encoded, sha256
from release.log import Exact, Record, canonical, parse_plain
from release.merkle import inclusion_proof, leaf_hash, root, root_from_inclusion
from release.signing import PublicKey, SignatureError, Signer, open_note, sign_note
from release.storage import sync, write

CHECKPOINT = "checkpoint"
_PROOF = "c2sp.org/tlog-proof@v1"
_NUMBER = re.compile(r"[0-9]{8}\.json", re.ASCII)
_NOTHING = "sha256:" + "0" * 64
_PERIODS = {"year": 4, "month": 7, "day": 10}
"""How many characters of a date name its period."""

Hash: TypeAlias = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Date: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
ScopeName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)
]
ReleaseId: TypeAlias = ScopeName
Base64: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=100)
]
KeyText: TypeAlias = Annotated[str, StringConstraints(max_length=400)]


class PeriodCap(Record):
    """What may be spent in one calendar day, month or year."""

    every: Literal["day", "month", "year"]
    epsilon: Exact
    delta: Exact


class ScopeCap(Record):
    """What may be spent in a scope: over its lifetime, and in each period."""

    scope: ScopeName
    epsilon: Exact
    delta: Exact
    period: PeriodCap | None = None


class EntryBase(Record):
    """What every entry has: its number, the hash of the entry before, the day."""

    seq: Annotated[int, Field(ge=0, lt=10**8)]
    prev: Hash
    date: Date


class Genesis(EntryBase):
    """The first entry: the ledger's name, the caps and the first key."""

    kind: Literal["genesis"]
    origin: Annotated[str, StringConstraints(pattern=r"^[!-*,-~]{1,200}$")]
    scopes: list[ScopeCap]
    keys: Annotated[list[KeyText], Field(min_length=1, max_length=1)]


class Reserve(EntryBase):
    """A release is about to draw noise for this charge."""

    kind: Literal["reserve"]
    scope: ScopeName
    release_id: ReleaseId
    epsilon: Exact
    delta: Exact


class Commit(EntryBase):
    """The release is drawn and signed; it becomes public."""

    kind: Literal["commit"]
    release_id: ReleaseId
    attestation: Hash


class Abort(EntryBase):
    """The release does not become public. What was drawn is not refunded."""

    kind: Literal["abort"]
    release_id: ReleaseId
    drawn: bool


class Withdraw(EntryBase):
    """A public release is taken back; it stays paid for."""

    kind: Literal["withdraw"]
    release_id: ReleaseId


class Policy(EntryBase):
    """A new scope, or other caps for one."""

    kind: Literal["policy"]
    cap: ScopeCap


class Key(EntryBase):
    """A signing key is added or retired, signed by a key that is valid until then."""

    kind: Literal["key"]
    action: Literal["add", "retire"]
    key: KeyText
    signature: Base64


Entry: TypeAlias = Genesis | Reserve | Commit | Abort | Withdraw | Policy | Key
ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


@dataclass(frozen=True)
class Spent:
    """An amount of privacy, in exact rationals."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.epsilon + other.epsilon, self.delta + other.delta)

    def __neg__(self) -> Spent:
        return Spent(-self.epsilon, -self.delta)


@dataclass
class State:
    """What follows from the entries so far. :meth:`follow` is the only way on.

    ``running`` maps a release to its open reserve, ``committed`` to its commit.
    """

    size: int = 0
    head: str = _NOTHING
    origin: str = ""
    caps: dict[str, ScopeCap] = field(default_factory=dict)
    keys: list[PublicKey] = field(default_factory=list)
    charged: dict[tuple[str, str], Spent] = field(default_factory=dict)
    running: dict[str, Reserve] = field(default_factory=dict)
    committed: dict[str, Commit] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    last_date: str = ""

    def spent(self, scope: str, period: str = "") -> Spent:
        """What is charged to a scope: in all, or in a year, month or day by its date."""
        return self.charged.get((scope, period), Spent())

    def _charge(self, entry: Reserve, charge: Spent) -> None:
        for period in ("", *(entry.date[:length] for length in _PERIODS.values())):
            at = (entry.scope, period)
            self.charged[at] = self.charged.get(at, Spent()) + charge

    def check(self, entry: Entry) -> None:
        """Whether ``entry`` may come next.

        Raises:
            BudgetError: it would spend more than a cap allows.
            LedgerError: it does not follow from the entries before.
        """
        _expect(entry, "seq", entry.seq, self.size)
        _expect(entry, "prev", entry.prev, self.head)
        if (entry.kind == "genesis") != (self.size == 0):
            raise LedgerError(f"entry {entry.seq}: the first entry, and only it, is the genesis")
        if entry.date < self.last_date:
            raise LedgerError(f"entry {entry.seq}: its date is before that of the entry before")
        if isinstance(entry, Genesis):
            self._check_genesis(entry)
        elif isinstance(entry, Reserve):
            self._check_reserve(entry)
        elif isinstance(entry, Commit | Abort):
            if entry.release_id not in self.running:
                raise LedgerError(f"entry {entry.seq}: {entry.release_id!r} has reserved nothing")
        elif isinstance(entry, Withdraw):
            if entry.release_id not in self.committed or entry.release_id in self.withdrawn:
                raise LedgerError(f"entry {entry.seq}: {entry.release_id!r} is not public")
        elif isinstance(entry, Key):
            self._check_key(entry)

    def _check_genesis(self, entry: Genesis) -> None:
        if _key(entry, entry.keys[0]).name != entry.origin:
            raise LedgerError("entry 0: the key is that of another ledger")
        if len({cap.scope for cap in entry.scopes}) != len(entry.scopes):
            raise LedgerError("entry 0: a scope stands twice")

    def _check_reserve(self, entry: Reserve) -> None:
        name = entry.release_id
        if name in self.running:
            raise LedgerError(f"entry {entry.seq}: {name!r} has reserved already")
        if name in self.committed:
            raise LedgerError(f"entry {entry.seq}: {name!r} is published already")
        cap = self.caps.get(entry.scope)
        if cap is None:
            known = ", ".join(sorted(self.caps)) or "none"
            raise LedgerError(
                f"budget.scope: the ledger has no scope {entry.scope!r} (there are: {known}); "
                "add it: dp-release ledger policy"
            )
        asked = _charge_of(entry)
        self._check_cap(entry, asked, cap, "", "")
        if cap.period is not None:
            prefix = entry.date[: _PERIODS[cap.period.every]]
            self._check_cap(entry, asked, cap.period, prefix, f" of {cap.period.every} {prefix}")

    def _check_cap(
        self, entry: Reserve, asked: Spent, cap: ScopeCap | PeriodCap, prefix: str, of: str
    ) -> None:
        spent = self.spent(entry.scope, prefix)
        for name in ("epsilon", "delta"):
            had, more = getattr(spent, name), getattr(asked, name)
            most = parse_exact(getattr(cap, name))
            if had + more > most:
                raise BudgetError(
                    f"budget.{name}: scope {entry.scope!r} has spent {format_exact(had)}{of}, "
                    f"asked is {format_exact(more)}, the cap is {format_exact(most)}; "
                    "lower guarantees, or have the cap raised: dp-release ledger policy"
                )

    def _check_key(self, entry: Key) -> None:
        key = _key(entry, entry.key)
        known = key in self.keys
        if key.name != self.origin or known != (entry.action == "retire"):
            done = {"add": "added", "retire": "retired"}[entry.action]
            raise LedgerError(f"entry {entry.seq}: this key cannot be {done}")
        if entry.action == "retire" and len(self.keys) == 1:
            raise LedgerError(f"entry {entry.seq}: the last key cannot be retired")
        for signer in self.keys:
            try:
                signer.verify(decoded(entry.signature), _to_sign(entry))
            except (SignatureError, ValueError):
                continue
            return
        raise LedgerError(f"entry {entry.seq}: no valid key has signed the change of keys")

    def follow(self, entry: Entry, data: bytes) -> None:
        """Go on by ``entry``, whose file is ``data``.

        Raises:
            BudgetError, LedgerError: as :meth:`check`.
        """
        self.check(entry)
        self.size, self.head, self.last_date = self.size + 1, f"sha256:{sha256(data)}", entry.date
        if isinstance(entry, Genesis):
            self.origin = entry.origin
            self.caps = {cap.scope: cap for cap in entry.scopes}
            self.keys = [_key(entry, text) for text in entry.keys]
        elif isinstance(entry, Reserve):
            self._charge(entry, _charge_of(entry))
            self.running[entry.release_id] = entry
        elif isinstance(entry, Commit):
            del self.running[entry.release_id]
            self.committed[entry.release_id] = entry
        elif isinstance(entry, Abort):
            reserve = self.running.pop(entry.release_id)
            if not entry.drawn:
                self._charge(reserve, -_charge_of(reserve))
        elif isinstance(entry, Withdraw):
            self.withdrawn.add(entry.release_id)
        elif isinstance(entry, Policy):
            self.caps[entry.cap.scope] = entry.cap
        elif entry.action == "add":
            self.keys.append(_key(entry, entry.key))
        else:
            self.keys.remove(_key(entry, entry.key))


def _charge_of(entry: Reserve) -> Spent:
    return Spent(parse_exact(entry.epsilon), parse_exact(entry.delta))


def _expect(entry: Entry, name: str, found: object, expected: object) -> None:
    if found != expected:
        raise LedgerError(f"entry {entry.seq}: {name} is {found}, expected {expected}")


def _key(entry: Entry, text: str) -> PublicKey:
    try:
        return PublicKey.of(text)
    except SignatureError as error:
        raise LedgerError(f"entry {entry.seq}: {error}") from error


def _to_sign(entry: Key) -> bytes:
    return canonical(entry.model_copy(update={"signature": ""}))


@dataclass(frozen=True)
class Replayed:
    """A ledger that has been read: its state, its entries, and their bytes in order."""

    state: State
    entries: tuple[Entry, ...]
    files: tuple[bytes, ...]

    @property
    def leaves(self) -> list[bytes]:
        """The leaf hashes of the Merkle tree."""
        return [leaf_hash(data) for data in self.files]


def replay(folder: Path) -> Replayed:
    """Read the entries of a ledger and follow them; the checkpoint is not looked at.

    Raises:
        LedgerError: an entry is missing, malformed or does not follow from those before.
        BudgetError: a reserve exceeds its cap.
    """
    state, entries, files = State(), [], []
    try:
        names = sorted(path.name for path in folder.iterdir() if _NUMBER.fullmatch(path.name))
        for number, name in enumerate(names):
            if name != _file(number):
                raise LedgerError(f"entry {number} is missing")
            data = (folder / name).read_bytes()
            entry = _read(number, data)
            state.follow(entry, data)
            entries.append(entry)
            files.append(data)
    except OSError as error:
        raise LedgerError(f"{folder}: the ledger cannot be read") from error
    if not entries:
        raise LedgerError(f"{folder}: no ledger there; make one: dp-release ledger init")
    return Replayed(state, tuple(entries), tuple(files))


def read_ledger(folder: Path) -> Replayed:
    """Read a ledger and hold its checkpoint against it: every entry has to be signed for.

    Writers are kept out meanwhile, for an entry stands there before its checkpoint does.

    Raises:
        LedgerError, BudgetError: it is not intact.
    """
    with _alone(folder, fcntl.LOCK_SH):
        ledger = replay(folder)
        size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
    if size != ledger.state.size:
        raise LedgerError(
            f"checkpoint: {ledger.state.size - size} entries at the end are not signed for"
        )
    return ledger


def _read(number: int, data: bytes) -> Entry:
    try:
        return ENTRY.validate_python(parse_plain(data))
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"entry {number}: not a canonical entry") from error


def _file(number: int) -> str:
    return f"{number:08}.json"


def checkpoint_text(origin: str, leaves: list[bytes]) -> str:
    """The three lines of a checkpoint (C2SP tlog-checkpoint)."""
    return f"{origin}\n{len(leaves)}\n{encoded(root(leaves))}\n"


def check_checkpoint(note: str, ledger: Replayed) -> int:
    """Hold a signed checkpoint against a ledger: the same one, or an older one of it; its size.

    Raises:
        LedgerError: it is not signed by a key that was valid then, speaks of another ledger, or of
            entries that are not, or no longer, the ledger's.
    """
    size = _size_of(note)
    if size > ledger.state.size:
        raise LedgerError(
            f"checkpoint: it speaks of {size} entries, the ledger has {ledger.state.size}: "
            "entries were taken away"
        )
    try:
        text = open_note(note, keys_at(ledger, size))
    except SignatureError as error:
        raise LedgerError(f"checkpoint: {error}") from error
    if text != checkpoint_text(ledger.state.origin, ledger.leaves[:size]):
        raise LedgerError("checkpoint: the ledger's entries are not those that were signed")
    return size


def read_checkpoint(path: Path) -> str:
    """The signed checkpoint in a file, as it stands there.

    Raises:
        LedgerError: there is none.
    """
    try:
        # Bytes first: reading as text would take one end of a line for another.
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: no checkpoint can be read there") from error


def _size_of(note: str) -> int:
    lines = note.split("\n")
    if len(lines) < 4 or lines[3] or not re.fullmatch(r"[1-9][0-9]{0,8}", lines[1], re.ASCII):
        raise LedgerError("checkpoint: not the three lines of a checkpoint")
    return int(lines[1])


def keys_at(ledger: Replayed, size: int) -> tuple[PublicKey, ...]:
    """The keys that were valid after the first ``size`` entries."""
    keys: list[PublicKey] = []
    for entry in ledger.entries[:size]:
        if isinstance(entry, Genesis):
            keys = [_key(entry, text) for text in entry.keys]
        elif isinstance(entry, Key) and entry.action == "add":
            keys.append(_key(entry, entry.key))
        elif isinstance(entry, Key):
            keys.remove(_key(entry, entry.key))
    return tuple(keys)


def ledger_proof(ledger: Replayed, release_id: str, folder: Path) -> bytes:
    """``ledger.proof``: that the commit of a release is in the ledger (C2SP tlog-proof).

    The entry itself is the extra data. ``folder`` holds the checkpoint that signs for ``ledger``.

    Raises:
        LedgerError: the release is not committed, or the checkpoint is that of other entries.
    """
    done = ledger.state.committed.get(release_id)
    note = read_checkpoint(folder / CHECKPOINT)
    if done is None:
        raise LedgerError(f"{release_id!r} is not committed")
    if check_checkpoint(note, ledger) != ledger.state.size:
        raise LedgerError("checkpoint: not that of all entries")
    path = "".join(f"{encoded(one)}\n" for one in inclusion_proof(ledger.leaves, done.seq))
    extra = encoded(ledger.files[done.seq])
    return f"{_PROOF}\nextra {extra}\nindex {done.seq}\n{path}\n{note}".encode()


@dataclass(frozen=True)
class Proved:
    """What a ``ledger.proof`` says once it was checked: the entry, and the signed checkpoint."""

    entry: Commit
    checkpoint: str


def open_proof(data: bytes, keys: tuple[PublicKey, ...]) -> Proved:
    """Check a ``ledger.proof``: the entry is in the tree whose checkpoint one of the keys signed.

    Raises:
        LedgerError: it is not, or the file is not of that form.
    """
    pattern = (
        rf"{re.escape(_PROOF)}\nextra (?P<extra>[A-Za-z0-9+/=]+)\nindex (?P<index>0|[1-9][0-9]*)\n"
        r"(?P<path>(?:[A-Za-z0-9+/=]{44}\n){0,63})\n(?P<note>.*)"
    )
    try:
        match = re.fullmatch(pattern, data.decode("utf-8"), re.ASCII | re.DOTALL)
        if match is None:
            raise LedgerError("ledger.proof: not of the form of a tlog-proof")
        entry = _read(int(match["index"]), extra := decoded(match["extra"]))
        path = [decoded(line) for line in match["path"].split()]
        text = open_note(match["note"], keys)
        origin, size, digest = text.splitlines()
        found = root_from_inclusion(leaf_hash(extra), entry.seq, int(size), path)
    except (ValueError, SignatureError) as error:
        raise LedgerError(f"ledger.proof: {error}") from error
    if not isinstance(entry, Commit) or entry.seq != int(match["index"]):
        raise LedgerError("ledger.proof: the entry is no commit at its index")
    if encoded(found) != digest or origin not in {key.name for key in keys}:
        raise LedgerError("ledger.proof: the entry is not in the tree that was signed")
    return Proved(entry, match["note"])


@dataclass(frozen=True)
class Spending:
    """What a scope has spent over time: the day of each charge that stands, and ε after it."""

    scope: str
    days: tuple[str, ...]
    epsilon: tuple[Fraction, ...]
    cap: Fraction


def spending(ledger: Replayed, scope: str) -> Spending:
    """The charges to a scope, in the order of the ledger."""
    refunded: set[int] = set()
    running: dict[str, int] = {}
    for entry in ledger.entries:
        if isinstance(entry, Reserve):
            running[entry.release_id] = entry.seq
        elif isinstance(entry, Abort) and not entry.drawn:
            refunded.add(running[entry.release_id])
    charges = [
        entry
        for entry in ledger.entries
        if isinstance(entry, Reserve) and entry.scope == scope and entry.seq not in refunded
    ]
    totals = accumulate(parse_exact(entry.epsilon) for entry in charges)
    cap = parse_exact(ledger.state.caps[scope].epsilon)
    return Spending(scope, tuple(entry.date for entry in charges), tuple(totals), cap)


Make: TypeAlias = Callable[[State], Entry]
"""Makes the next entry from the state it has to follow."""


@dataclass(frozen=True)
class Ledger:
    """A ledger that can be written: its folder, and the key that signs its checkpoints."""

    folder: Path
    signer: Signer

    def append(self, make: Make) -> tuple[Entry, Replayed]:
        """Add the entry that ``make`` makes; when this returns it is durable and signed for.

        Writers take turns by a lock on the folder; were that ignored, the entry's file could still
        be linked once only. Cost: one replay.

        Raises:
            BudgetError, LedgerError: the entry may not come next; nothing was written.
            StorageError: the entry could not be written.
        """
        with _alone(self.folder):
            ledger = self._read()
            entry = make(ledger.state)
            data = canonical(entry)
            ledger.state.check(entry)
            own = str(self.signer.public(ledger.state.origin))
            if isinstance(entry, Key) and (entry.action, entry.key) == ("retire", own):
                raise LedgerError("--key: a key cannot retire itself; give the one that stays")
            _store(self.folder, data, _file(entry.seq))
            ledger.state.follow(entry, data)
            grown = Replayed(ledger.state, (*ledger.entries, entry), (*ledger.files, data))
            self._sign(grown)
        return entry, grown

    def sign(self) -> Replayed:
        """Sign a checkpoint for all entries: after a crash the last entry may lack one.

        Raises:
            LedgerError: the ledger is not intact, or the key is not its own.
            StorageError: the checkpoint could not be written.
        """
        with _alone(self.folder):
            ledger = self._read()
            self._sign(ledger)
        return ledger

    def _read(self) -> Replayed:
        """The ledger, if this key may write it and nobody has changed what was signed."""
        ledger = replay(self.folder)
        if self.signer.public(ledger.state.origin) not in ledger.state.keys:
            raise LedgerError(
                "--key: the ledger does not know this key; use the one it was made by"
            )
        path = self.folder / CHECKPOINT
        if path.is_file():
            check_checkpoint(read_checkpoint(path), ledger)
        return ledger

    def _sign(self, ledger: Replayed) -> None:
        path = self.folder / CHECKPOINT
        note = sign_note(
            checkpoint_text(ledger.state.origin, ledger.leaves), self.signer, ledger.state.origin
        )
        if not path.is_file() or read_checkpoint(path) != note:
            _replace(path, note.encode())


def create_ledger(
    folder: Path, signer: Signer, origin: str, scopes: tuple[ScopeCap, ...], date: str
) -> Ledger:
    """Make a ledger in a new folder.

    Raises:
        LedgerError: there is one already, or the caps cannot be meant.
        StorageError: it could not be written.
    """
    entry = Genesis(
        seq=0,
        prev=_NOTHING,
        date=date,
        kind="genesis",
        origin=origin,
        scopes=list(scopes),
        keys=[str(signer.public(origin))],
    )
    State().check(entry)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: the ledger cannot be written ({error.strerror})") from error
    ledger = Ledger(folder, signer)
    with _alone(folder):
        if any(_NUMBER.fullmatch(path.name) for path in folder.iterdir()):
            raise LedgerError(f"{folder}: there is a ledger already")
        _store(folder, canonical(entry), _file(0))
        ledger._sign(replay(folder))
    return ledger


def reserve(scope: str, release_id: str, charge: Spent, date: str) -> Make:
    """Reserve a charge."""
    return lambda state: Reserve(
        **_next(state, date),
        kind="reserve",
        scope=scope,
        release_id=release_id,
        epsilon=format_exact(charge.epsilon),
        delta=format_exact(charge.delta),
    )


def commit(release_id: str, attestation: bytes, date: str) -> Make:
    """Commit a release by its attestation."""
    return lambda state: Commit(
        **_next(state, date),
        kind="commit",
        release_id=release_id,
        attestation=f"sha256:{sha256(attestation)}",
    )


def abort(release_id: str, date: str, *, drawn: bool) -> Make:
    """Give a release up."""
    return lambda state: Abort(
        **_next(state, date), kind="abort", release_id=release_id, drawn=drawn
    )


def withdraw(release_id: str, date: str) -> Make:
    """Take a public release back."""
    return lambda state: Withdraw(**_next(state, date), kind="withdraw", release_id=release_id)


def policy(cap: ScopeCap, date: str) -> Make:
    """Set the cap of a scope."""
    return lambda state: Policy(**_next(state, date), kind="policy", cap=cap)


def change_key(action: Literal["add", "retire"], key: PublicKey, signer: Signer, date: str) -> Make:
    """Add or retire a key, signed by a valid one."""

    def make(state: State) -> Entry:
        entry = Key(**_next(state, date), kind="key", action=action, key=str(key), signature="")
        return entry.model_copy(update={"signature": encoded(signer.sign(_to_sign(entry)))})

    return make


class _Next(TypedDict):
    """Number, link and date of the next entry."""

    seq: int
    prev: str
    date: str


def _next(state: State, date: str) -> _Next:
    # A clock that went back must not stop a ledger; dates only ever go on.
    return {"seq": state.size, "prev": state.head, "date": max(date, state.last_date)}


@contextmanager
def _alone(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the ledger's lock, which goes with the process and leaves no file."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise LedgerError(f"{folder}: no ledger there; make one: dp-release ledger init") from error
    try:
        fcntl.flock(descriptor, how)
        for stray in folder.glob(".new-*") if how == fcntl.LOCK_EX else ():
            stray.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)


def _store(folder: Path, data: bytes, name: str) -> None:
    """Write a new file, whole and durable, where none is."""
    aside = folder / f".new-{secrets.token_hex(8)}"
    try:
        write(aside, data)
        os.link(aside, folder / name)
        aside.unlink()
        sync(folder)
    except FileExistsError as error:
        raise LedgerError(f"{name}: written by somebody else at the same time") from error
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{folder}: the ledger cannot be written ({problem})") from error
    finally:
        aside.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    aside = path.parent / f".new-{secrets.token_hex(8)}"
    try:
        write(aside, data)
        aside.replace(path)
        sync(path.parent)
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{path}: the checkpoint cannot be written ({problem})") from error
    finally:
        aside.unlink(missing_ok=True)
