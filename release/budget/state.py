"""What follows from the entries of a ledger: :class:`State`, and replaying.

Writing an entry and replaying a ledger go through the same rules, so they cannot drift apart.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from release.budget.entries import (
    ENTRY,
    NOTHING,
    Abort,
    Commit,
    Entry,
    Genesis,
    Key,
    PeriodCap,
    Policy,
    Reserve,
    ScopeCap,
    Spent,
    Withdraw,
    amount,
)
from release.errors import BudgetError, LedgerError
from release.exact.numbers import format_exact
from release.records.hashes import decoded, sha256
from release.records.merkle import leaf_hash
from release.records.models import canonical, parse_plain
from release.records.signing import PublicKey, SignatureError

_NUMBER = re.compile(r"[0-9]{8}\.json", re.ASCII)
_PERIODS = {"year": 4, "month": 7, "day": 10}
"""How many characters of a date name its period."""


@dataclass
class State:
    """What follows from the entries so far. :meth:`follow` is the only way on.

    ``running`` maps a release to its open reserve, ``committed`` to its commit.
    """

    size: int = 0
    head: str = NOTHING
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
        try:
            datetime.date.fromisoformat(entry.date)
        except ValueError as error:
            raise LedgerError(f"entry {entry.seq}: its date is no day of the calendar") from error
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
            most = amount(getattr(cap, name))
            if had + more > most:
                raise BudgetError(
                    f"budget.{name}: scope {entry.scope!r} has spent {format_exact(had)}{of}, "
                    f"asked is {format_exact(more)}, the cap is {format_exact(most)}; "
                    "lower guarantees, or have the cap raised: dp-release ledger policy",
                    scope_ended=not prefix,
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
            # A signature by a key that ends here says nothing of those who hold the keys that stay.
            if entry.action == "retire" and signer == key:
                continue
            try:
                signer.verify(decoded(entry.signature), to_sign(entry))
            except (SignatureError, ValueError):
                continue
            return
        hint = "; a key cannot retire itself" if entry.action == "retire" else ""
        raise LedgerError(f"entry {entry.seq}: no valid key has signed the change of keys{hint}")

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
    return Spent(amount(entry.epsilon), amount(entry.delta))


def _expect(entry: Entry, name: str, found: object, expected: object) -> None:
    if found != expected:
        raise LedgerError(f"entry {entry.seq}: {name} is {found}, expected {expected}")


def _key(entry: Entry, text: str) -> PublicKey:
    try:
        return PublicKey.of(text)
    except SignatureError as error:
        raise LedgerError(f"entry {entry.seq}: {error}") from error


def to_sign(entry: Key) -> bytes:
    """What a change of keys is signed over: the entry without its signature."""
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
        names = sorted(path.name for path in folder.iterdir() if is_entry(path.name))
        for number, name in enumerate(names):
            if name != entry_file(number):
                raise LedgerError(f"entry {number} is missing")
            data = (folder / name).read_bytes()
            entry = read_entry(number, data)
            state.follow(entry, data)
            entries.append(entry)
            files.append(data)
    except OSError as error:
        raise LedgerError(f"{folder}: the ledger cannot be read") from error
    if not entries:
        raise LedgerError(f"{folder}: no ledger there; make one: dp-release ledger init")
    return Replayed(state, tuple(entries), tuple(files))


# A run replays its ledger some ten times, and an entry never changes.
@lru_cache(maxsize=2**14)
def read_entry(number: int, data: bytes) -> Entry:
    """The entry in a file.

    Raises:
        LedgerError: it is not a canonical entry.
    """
    try:
        return ENTRY.validate_python(parse_plain(data))
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"entry {number}: not a canonical entry") from error


def is_entry(name: str) -> bool:
    """Whether a file of this name is an entry."""
    return _NUMBER.fullmatch(name) is not None


def entry_file(number: int) -> str:
    """The name of an entry's file."""
    return f"{number:08}.json"


def keys_ever(ledger: Replayed) -> tuple[PublicKey, ...]:
    """All keys that were valid at some time."""
    texts = [text for one in ledger.entries if isinstance(one, Genesis) for text in one.keys]
    texts += [one.key for one in ledger.entries if isinstance(one, Key)]
    return tuple(map(PublicKey.of, dict.fromkeys(texts)))


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
    totals = accumulate(amount(entry.epsilon) for entry in charges)
    cap = amount(ledger.state.caps[scope].epsilon)
    return Spending(scope, tuple(entry.date for entry in charges), tuple(totals), cap)
