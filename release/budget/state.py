"""The state of a ledger that follows from its entries: :class:`State`, and replaying.

Writing an entry and replaying a ledger go through the same rules, so they cannot drift apart.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from dp_release_verify.digests import decoded, sha256
from dp_release_verify.merkle import Peaks, leaf_hash, root
from dp_release_verify.signatures import SignatureError
from release.budget.caps import ScopeCap
from release.budget.entries import (
    ENTRY,
    NOTHING,
    Abort,
    Commit,
    Entry,
    Genesis,
    Key,
    Policy,
    ReleaseCharge,
    Reserve,
    Revise,
    Skip,
    Spent,
    StoreEntry,
    Withdraw,
)
from release.budget.rules.accounts import Account, BasicAccount, RuleFields
from release.budget.rules.filtered import FilterAccount
from release.budget.rules.planned import PlannedAccount
from release.budget.snapshots.names import CHARGED, PUBLIC, REVISED, SKIPPED, WITHDRAWN, PastNames
from release.errors import LedgerError
from release.records.files import read_plain
from release.records.models import canonical, parse_plain
from release.records.signing import PublicKey

MOST_KEYS = 16
"""So many keys are valid at once, at most: each may have to be tried for a signature."""

_NUMBER = re.compile(r"[0-9]{8}\.json", re.ASCII)


def open_account(cap: ScopeCap) -> Account:
    """The account of a scope of which nothing is spent."""
    if cap.rule == "pld":
        return PlannedAccount(cap)
    return FilterAccount(cap) if cap.rule == "renyi_filter" else BasicAccount(cap)


@dataclass
class State:
    """The state after some entries. Only :meth:`follow` changes it.

    ``running`` maps a release to its open reserve, ``committed`` to its commit. ``store`` is the
    store that the ledger names, ``store_since`` the number of the entry that does. ``revised``
    maps a release to its newer version. ``in_vain`` has the releases with a charge that stands
    although its run was given up. A state that goes on from a snapshot holds the releases of before
    by their names alone, in ``past``.
    """

    size: int = 0
    head: str = NOTHING
    origin: str = ""
    accounts: dict[str, Account] = field(default_factory=dict)
    keys: list[PublicKey] = field(default_factory=list)
    running: dict[str, Reserve] = field(default_factory=dict)
    committed: dict[str, Commit] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    revised: dict[str, str] = field(default_factory=dict)
    in_vain: set[str] = field(default_factory=set)
    last_date: str = ""
    store: str | None = None
    store_since: int = 0
    past: PastNames = field(default_factory=PastNames)

    def is_committed(self, name: str) -> bool:
        """Whether a release of this name was committed, withdrawn or not."""
        return name in self.committed or self.past.mark(name) in (PUBLIC, WITHDRAWN, REVISED)

    def is_withdrawn(self, name: str) -> bool:
        """Whether a release of this name was withdrawn."""
        return name in self.withdrawn or self.past.mark(name) == WITHDRAWN

    def is_public(self, name: str) -> bool:
        """Whether a release of this name was committed, and not withdrawn."""
        return self.is_committed(name) and not self.is_withdrawn(name)

    def is_revised(self, name: str) -> bool:
        """Whether a newer version has taken the place of a release."""
        return name in self.revised or self.past.mark(name) == REVISED

    def is_skipped(self, name: str) -> bool:
        """Whether a release of this name will not be made."""
        return name in self.skipped or self.past.mark(name) == SKIPPED

    def is_charged(self, name: str) -> bool:
        """Whether a charge of a release of this name stands."""
        is_in_vain = name in self.in_vain or self.past.mark(name) == CHARGED
        return name in self.running or is_in_vain or self.is_committed(name)

    @property
    def caps(self) -> dict[str, ScopeCap]:
        """The caps of each scope, as they are now."""
        return {scope: account.cap for scope, account in self.accounts.items()}

    def spent(self, scope: str, period: str = "") -> Spent:
        """The stated charges to a scope, added up: of its lifetime, or of a period by its prefix.

        Under other rules than ``basic`` the sum is not what is enforced.
        """
        account = self.accounts.get(scope)
        return Spent() if account is None else account.spent(period)

    def check(self, entry: Entry) -> None:
        """Check that ``entry`` may come next.

        Raises:
            BudgetError: it would spend more than a cap allows.
            LedgerError: it does not follow from the previous entries.
        """
        # The rules of all entries, and then those of each kind: docs/design/format.md, 6.2.
        _expect(entry, "seq", entry.seq, self.size)
        _expect(entry, "prev", entry.prev, self.head)
        if (entry.kind == "genesis") != (self.size == 0):
            raise LedgerError(
                f"entry {entry.seq}: the first entry must be the genesis, and no later one"
            )
        try:
            datetime.date.fromisoformat(entry.date)
        except ValueError as error:
            raise LedgerError(f"entry {entry.seq}: its date is no day of the calendar") from error
        if entry.date < self.last_date:
            raise LedgerError(
                f"entry {entry.seq}: its date is earlier than that of the previous entry"
            )
        if isinstance(entry, Genesis):
            self._check_genesis(entry)
        elif isinstance(entry, Policy):
            self._check_policy(entry)
        elif isinstance(entry, Key):
            self._check_key(entry)
        elif not isinstance(entry, StoreEntry):
            self._check_release(entry)

    def _check_release(self, entry: Reserve | Commit | Abort | Withdraw | Skip | Revise) -> None:
        name = entry.release_id
        if isinstance(entry, Reserve):
            self._check_reserve(entry)
        elif isinstance(entry, Skip):
            self._check_skip(entry)
        elif isinstance(entry, Revise):
            self._check_revise(entry)
        elif isinstance(entry, Withdraw):
            if not self.is_public(name):
                raise LedgerError(f"entry {entry.seq}: {name!r} is not public")
        elif name not in self.running:
            raise LedgerError(f"entry {entry.seq}: {name!r} has no open reserve")

    def _check_genesis(self, entry: Genesis) -> None:
        # The name of a key is the origin of its ledger, so that a key signs for one ledger only.
        if _key(entry, entry.keys[0]).name != entry.origin:
            raise LedgerError("entry 0: the key belongs to another ledger")
        if len({cap.scope for cap in entry.scopes}) != len(entry.scopes):
            raise LedgerError("entry 0: a scope is listed twice")
        for cap in entry.scopes:
            open_account(cap).opened()

    def rule_fields(
        self, scope: str, release_id: str, charge: ReleaseCharge, slot: str | None
    ) -> RuleFields:
        """What the rule of a scope adds to the reserve of a release; nothing where it is refused.

        Raises:
            BudgetError: the release does not fit what is left of the scope.
        """
        is_new = release_id not in self.running and not self.is_committed(release_id)
        is_new = is_new and not self.is_skipped(release_id)
        # What else is wrong is for :meth:`check` to say.
        if not is_new or scope not in self.accounts:
            return {}
        return self.accounts[scope].fields(charge, slot)

    def _check_reserve(self, entry: Reserve) -> None:
        name = entry.release_id
        if name in self.running:
            raise LedgerError(
                f"entry {entry.seq}: {name!r} already has an open reserve; a run is at work on it"
            )
        if self.is_committed(name):
            raise LedgerError(f"entry {entry.seq}: {name!r} is already published")
        if self.is_skipped(name):
            raise LedgerError(f"entry {entry.seq}: {name!r} is skipped for good; take another id")
        if entry.scope not in self.accounts:
            scopes = ", ".join(sorted(self.accounts)) or "none"
            raise LedgerError(
                f"budget.scope: the ledger has no scope {entry.scope!r} (its scopes: {scopes}); "
                "add it: dp-release ledger policy"
            )
        self.accounts[entry.scope].check(entry)

    def _check_skip(self, entry: Skip) -> None:
        name = entry.release_id
        if self.is_skipped(name):
            raise LedgerError(f"entry {entry.seq}: {name!r} is already skipped")
        # Of a draw that may have been seen, nobody is to say that it did not take place.
        if self.is_charged(name):
            raise LedgerError(
                f"entry {entry.seq}: {name!r} is charged, so it cannot be skipped; a public one "
                "can be withdrawn: dp-release ledger withdraw"
            )

    def _check_revise(self, entry: Revise) -> None:
        for name in (entry.release_id, entry.by):
            if not self.is_public(name):
                raise LedgerError(f"entry {entry.seq}: {name!r} is not public")
            if self.is_revised(name):
                raise LedgerError(f"entry {entry.seq}: {name!r} is revised already")
        if entry.by == entry.release_id:
            raise LedgerError(f"entry {entry.seq}: {entry.by!r} cannot revise itself")

    def _check_policy(self, entry: Policy) -> None:
        # Caps under other rules than basic never change: their proofs need a bound that was fixed
        # in advance (docs/design/mathematics.md, 2.32).
        account = self.accounts.get(entry.cap.scope)
        if account is None:
            open_account(entry.cap).opened()
        else:
            account.check_change(entry.cap)

    def _check_key(self, entry: Key) -> None:
        key = _key(entry, entry.key)
        is_valid = key in self.keys
        if key.name != self.origin or is_valid != (entry.action == "retire"):
            change = {"add": "added", "retire": "retired"}[entry.action]
            raise LedgerError(f"entry {entry.seq}: this key cannot be {change}")
        if entry.action == "add" and len(self.keys) >= MOST_KEYS:
            raise LedgerError(f"entry {entry.seq}: {MOST_KEYS} keys are valid; retire one first")
        # A ledger without a key could never be written again.
        if entry.action == "retire" and len(self.keys) == 1:
            raise LedgerError(f"entry {entry.seq}: the last key cannot be retired")
        # The entry does not say which key has signed it, so each valid one is tried.
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
        """Check ``entry``, whose file is ``data``, and apply it.

        Raises:
            BudgetError, LedgerError: as :meth:`check`.
        """
        self.check(entry)
        self.size, self.head, self.last_date = self.size + 1, f"sha256:{sha256(data)}", entry.date
        if isinstance(entry, Genesis):
            self.origin = entry.origin
            self.accounts = {cap.scope: open_account(cap) for cap in entry.scopes}
        elif isinstance(entry, Reserve):
            # Charged before the draw: a run that dies after it has paid.
            self.accounts[entry.scope].charge(entry)
            self.running[entry.release_id] = entry
        elif isinstance(entry, Commit):
            del self.running[entry.release_id]
            self.committed[entry.release_id] = entry
            self.in_vain.discard(entry.release_id)
        elif isinstance(entry, Abort):
            reserve = self.running.pop(entry.release_id)
            # Noise that was drawn may have been seen: its charge stays.
            if entry.drawn:
                self.in_vain.add(entry.release_id)
            else:
                self.accounts[reserve.scope].refund(reserve)
        elif isinstance(entry, Withdraw):
            self.withdrawn.add(entry.release_id)
        elif isinstance(entry, Skip):
            self.skipped.add(entry.release_id)
        elif isinstance(entry, Revise):
            self.revised[entry.release_id] = entry.by
        elif isinstance(entry, Policy):
            self._set_cap(entry.cap)
        elif isinstance(entry, StoreEntry):
            self.store, self.store_since = entry.uri, entry.seq
        _change_keys(self.keys, entry)

    def _set_cap(self, cap: ScopeCap) -> None:
        if cap.scope in self.accounts:
            self.accounts[cap.scope].change(cap)
        else:
            self.accounts[cap.scope] = open_account(cap)


def _change_keys(keys: list[PublicKey], entry: Entry) -> None:
    if isinstance(entry, Genesis):
        keys.append(_key(entry, entry.keys[0]))
    elif isinstance(entry, Key) and entry.action == "add":
        keys.append(_key(entry, entry.key))
    elif isinstance(entry, Key):
        keys.remove(_key(entry, entry.key))


def _expect(entry: Entry, name: str, value: object, expected: object) -> None:
    if value != expected:
        raise LedgerError(f"entry {entry.seq}: {name} is {value}, expected {expected}")


def _key(entry: Entry, text: str) -> PublicKey:
    try:
        return PublicKey.of(text)
    except SignatureError as error:
        raise LedgerError(f"entry {entry.seq}: {error}") from error


def to_sign(entry: Key) -> bytes:
    """The bytes that a change of keys is signed over: the entry without its signature."""
    return canonical(entry.model_copy(update={"signature": ""}))


@dataclass(frozen=True)
class Before:
    """What stands for the entries before a snapshot: their number, and the bytes of the last one.

    ``peaks`` are those of their Merkle tree, ``keys`` the keys that were valid after them.
    """

    size: int = 0
    last: bytes = b""
    peaks: Peaks = ()
    keys: tuple[PublicKey, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """The content of a ledger: its state, its entries, and their bytes in order.

    Where a writer went on from a snapshot, the entries and bytes are those after it, and ``before``
    stands for the others. What :func:`replay` returns always holds them all.
    """

    state: State
    entries: tuple[Entry, ...]
    files: tuple[bytes, ...]
    before: Before = Before()

    @property
    def leaves(self) -> list[bytes]:
        """The leaf hashes of the Merkle tree, of the entries that are held."""
        return list(map(leaf_hash, self.files))

    @property
    def last(self) -> bytes:
        """The bytes of the last entry."""
        return self.files[-1] if self.files else self.before.last

    def file(self, number: int) -> bytes:
        """The bytes of an entry that is held."""
        return self.files[number - self.before.size]

    def root_at(self, size: int) -> bytes:
        """The root of the Merkle tree over the first ``size`` entries, as many as before or more.

        Raises:
            LedgerError: fewer were asked for, and those entries are not held.
        """
        return root(list(map(leaf_hash, self.files[: self._held(size)])), self.before.peaks)

    def extended(self, entry: Entry, data: bytes) -> Replayed:
        """The ledger with an entry more, which the state has followed already."""
        return replace(self, entries=(*self.entries, entry), files=(*self.files, data))

    def _held(self, size: int) -> int:
        if size < self.before.size:
            raise LedgerError(f"the first {size} entries are not held; replay the ledger")
        return size - self.before.size


def replay(folder: Path) -> Replayed:
    """Read the entries of a ledger and follow them, without looking at the checkpoint.

    Raises:
        LedgerError: an entry is missing, malformed or does not follow from the previous ones.
        BudgetError: a reserve exceeds its cap.
    """
    files = []
    try:
        # The checkpoint, and what a crash left of a write, have other names.
        names = sorted(path.name for path in folder.iterdir() if is_entry(path.name))
        for number, name in enumerate(names):
            if name != entry_file(number):
                raise LedgerError(f"entry {number} is missing")
            files.append(read_plain(folder / name))
    except OSError as error:
        raise LedgerError(f"{folder}: the ledger cannot be read") from error
    if not files:
        raise LedgerError(f"{folder}: no ledger there; create it: dp-release ledger init")
    return replay_files(files)


def replay_files(files: Sequence[bytes]) -> Replayed:
    """Follow the entries of a ledger, given by their bytes in order.

    Raises:
        LedgerError: an entry is malformed or does not follow from the previous ones.
        BudgetError: a reserve exceeds its cap.
    """
    state, entries = State(), []
    for number, data in enumerate(files):
        entry = read_entry(number, data)
        state.follow(entry, data)
        entries.append(entry)
    return Replayed(state, tuple(entries), tuple(files))


# A run replays its ledger some ten times. The bytes are the key, so a changed file is read anew.
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
    texts: list[str] = []
    for entry in ledger.entries:
        if isinstance(entry, Genesis):
            texts += entry.keys
        elif isinstance(entry, Key):
            texts.append(entry.key)
    # A dict keeps the order; a key that was retired may have been added again.
    return tuple(map(PublicKey.of, dict.fromkeys(texts)))


def keys_at(ledger: Replayed, size: int) -> tuple[PublicKey, ...]:
    """The keys that were valid after the first ``size`` entries."""
    keys = list(ledger.before.keys)
    for entry in ledger.entries[: ledger._held(size)]:
        _change_keys(keys, entry)
    return tuple(keys)
