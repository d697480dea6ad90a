"""Replays a ledger: every entry follows from those before it, and no cap was ever passed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import ceil
from pathlib import Path

from dp_release_verify import canonical, forms, merkle
from dp_release_verify.canonical import about
from dp_release_verify.digests import decoded, encoded, read_file, sha256
from dp_release_verify.errors import Refused, refuse_unless
from dp_release_verify.losses import LONGEST, PARTS, SHORTEST_STEP
from dp_release_verify.signatures import (
    CURATOR,
    SignatureError,
    VerifierKey,
    read_key,
    signers_of,
    split_note,
)

MOST_KEYS = 16
CHECKPOINT = "checkpoint"
NOTHING = "sha256:" + "0" * 64

_OF_A_DAY = {"day": 10, "month": 7, "year": 4}
"""How many letters of a date name its day, month or year."""

_FIELDS_OF_RULES = {"basic": set[str](), "pld": {"slot"}, "renyi_filter": {"moment", "cut"}}


@dataclass
class Ledger:
    """The state after all entries.

    Attributes:
        entries: in order.
        leaves: the hash of each.
        keys: the keys that are valid after each entry.
        caps: of each scope.
        committed: the number of the commit of each release.
        withdrawn, skipped: these releases.
        revised: the release that took the place of another.
    """

    entries: list[forms.Entry] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    keys: list[tuple[VerifierKey, ...]] = field(default_factory=list)
    caps: dict[str, forms.Cap] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    revised: dict[str, str] = field(default_factory=dict)
    _open: dict[str, forms.Reserve] = field(default_factory=dict)
    _standing: list[forms.Reserve] = field(default_factory=list)
    _paid: dict[tuple[str, str, str], Fraction] = field(
        default_factory=lambda: defaultdict(Fraction)
    )
    _moments: dict[str, Fraction] = field(default_factory=dict)
    """The products of moments that stand; worked out anew after one was taken off."""
    _before: str = NOTHING

    @property
    def origin(self) -> str:
        """The name of the ledger."""
        first = self.entries[0]
        return first.origin if isinstance(first, forms.Genesis) else ""

    @property
    def public(self) -> set[str]:
        """The releases that are committed and not withdrawn."""
        return set(self.committed) - self.withdrawn

    @property
    def every_key(self) -> set[VerifierKey]:
        """All keys that were ever valid."""
        return {key for keys in self.keys for key in keys}

    def follow(self, file: str, data: bytes) -> None:
        """Apply the next entry.

        Raises:
            Refused: it does not follow.
        """
        entry: forms.Entry = forms.read(forms.AnyEntry, file, canonical.loads(file, data))
        number = len(self.entries)
        refuse_unless(entry.seq == number, file, "seq", entry.seq, number)
        refuse_unless(entry.prev == self._before, file, "prev", entry.prev, self._before)
        last = self.entries[-1].date if self.entries else ""
        refuse_unless(entry.date >= last, file, "date", entry.date, f"not before {last}")
        is_genesis = isinstance(entry, forms.Genesis)
        refuse_unless(is_genesis == (number == 0), file, "kind", entry.kind, "one genesis, first")
        keys = self.keys[-1] if self.keys else ()
        match entry:
            case forms.Genesis():
                keys = self._begin(file, entry)
            case forms.Policy():
                self._set_cap(file, entry.cap)
            case forms.KeyChange():
                keys = self._change_key(file, entry, canonical.loads(file, data), keys)
            case forms.Reserve():
                self._reserve(file, entry)
            case forms.StoreNamed():
                pass
            case _:
                self._say(file, entry)
        self.entries.append(entry)
        self.leaves.append(merkle.leaf_hash(data))
        self.keys.append(keys)
        self._before = f"sha256:{sha256(data)}"

    # ---- What an entry does

    def _begin(self, file: str, entry: forms.Genesis) -> tuple[VerifierKey, ...]:
        key = _key(file, entry.keys[0])
        refuse_unless(key.name == entry.origin, file, "keys", key.name, entry.origin)
        names = [cap.scope for cap in entry.scopes]
        refuse_unless(len(set(names)) == len(names), file, "scopes", names, "each scope once")
        for cap in entry.scopes:
            self._set_cap(file, cap)
        return (key,)

    def _set_cap(self, file: str, cap: forms.Cap) -> None:
        """Create a scope, or change the cap of one that adds charges up."""
        check_cap(file, cap)
        old = self.caps.get(cap.scope)
        rules = {cap.rule or "basic", (old or cap).rule or "basic"}
        is_kept = old is None or old == cap or rules == {"basic"}
        refuse_unless(is_kept, file, "cap", cap.scope, "the rule and the plan of the scope")
        self.caps[cap.scope] = cap

    def _change_key(
        self, file: str, entry: forms.KeyChange, plain: object, keys: tuple[VerifierKey, ...]
    ) -> tuple[VerifierKey, ...]:
        """Add or retire a key, as one that stays valid signed."""
        key = _key(file, entry.key)
        refuse_unless(key.name == self.origin, file, "key", key.name, self.origin)
        is_add = entry.action == "add"
        refuse_unless((key in keys) != is_add, file, "key", entry.action, "a key that this fits")
        refuse_unless(not is_add or len(keys) < MOST_KEYS, file, "key", len(keys), MOST_KEYS)
        staying = [each for each in keys if each != key]
        check_own_signature(file, plain, staying)
        return (*staying, key) if is_add else tuple(staying)

    def _reserve(self, file: str, entry: forms.Reserve) -> None:
        name = entry.release_id
        is_new = name not in self._open and name not in self.committed
        is_new = is_new and name not in self.skipped
        refuse_unless(
            is_new, file, "release_id", name, "no release that is open, public or skipped"
        )
        refuse_unless(entry.scope in self.caps, file, "scope", entry.scope, "a scope")
        self._open[name] = entry
        self._standing.append(entry)
        self._pay(entry, 1)
        self._check_cap(file, entry)

    def _say(self, file: str, entry: forms.Entry) -> None:
        """Commit, abort, withdraw, skip or revise."""
        match entry:
            case forms.Commit(release_id=name):
                self._close(file, name)
                self.committed[name] = entry.seq
            case forms.Abort(release_id=name):
                reserve = self._close(file, name)
                if not entry.drawn:
                    self._standing.remove(reserve)
                    self._moments.pop(reserve.scope, None)
                    self._pay(reserve, -1)
            case forms.Withdraw(release_id=name):
                refuse_unless(name in self.public, file, "release_id", name, "a public release")
                self.withdrawn.add(name)
            case forms.Skip(release_id=name):
                charged = {each.release_id for each in self._standing}
                right = name not in charged and name not in self.skipped
                refuse_unless(right, file, "release_id", name, "a release without a charge")
                self.skipped.add(name)
            case forms.Revise(release_id=name, by=by):
                free = self.public - set(self.revised)
                right = name != by and {name, by} <= free
                refuse_unless(right, file, "release_id", (name, by), "two public releases")
                self.revised[name] = by

    def _close(self, file: str, name: str) -> forms.Reserve:
        reserve = self._open.pop(name, None)
        if reserve is None:
            raise Refused(file, "release_id", name, "a release that is reserved")
        return reserve

    # ---- What is spent

    def _pay(self, entry: forms.Reserve, sign: int) -> None:
        """Add a charge to what its scope has paid, in all and in each period, or take it off."""
        days = ["", *(entry.date[:length] for length in _OF_A_DAY.values())]
        amounts = {"epsilon": entry.epsilon, "delta": entry.delta, "cut": entry.cut}
        for day, (name, amount) in product(days, amounts.items()):
            if amount is not None:
                self._paid[entry.scope, day, name] += sign * amount

    def _check_cap(self, file: str, entry: forms.Reserve) -> None:
        """What stands in the scope, with this entry, is within its cap."""
        cap = self.caps[entry.scope]
        rule = cap.rule or "basic"
        stated = {"slot": entry.slot, "moment": entry.moment, "cut": entry.cut}
        extra = {name for name, value in stated.items() if value is not None}
        needed = _FIELDS_OF_RULES[rule]
        refuse_unless(extra == needed, file, rule, sorted(extra), sorted(needed))
        if rule == "pld":
            self._check_slot(file, cap, entry)
        elif rule == "renyi_filter":
            self._check_filter(file, cap, entry)
        else:
            bounds: list[tuple[str, forms.Cap | forms.PeriodCap]] = [("", cap)]
            if cap.period is not None:
                bounds.append((entry.date[: _OF_A_DAY[cap.period.every]], cap.period))
            for day, bound in bounds:
                epsilon = self._paid[cap.scope, day, "epsilon"]
                delta = self._paid[cap.scope, day, "delta"]
                fits = epsilon <= bound.epsilon and delta <= bound.delta
                refuse_unless(
                    fits, file, f"cap {day}".strip(), about(epsilon), about(bound.epsilon)
                )

    def _in_scope(self, scope: str) -> list[forms.Reserve]:
        return [each for each in self._standing if each.scope == scope]

    def _check_slot(self, file: str, cap: forms.Cap, entry: forms.Reserve) -> None:
        times = {slot.name: slot.times for slot in cap.planned or ()}
        taken = sum(each.slot == entry.slot for each in self._in_scope(cap.scope))
        free = times.get(entry.slot or "", 0)
        refuse_unless(taken <= free, file, "slot", entry.slot, "a slot that is free")

    def _check_filter(self, file: str, cap: forms.Cap, entry: forms.Reserve) -> None:
        moments = self._moments.get(cap.scope)
        if moments is None:
            moments = Fraction(1)
            for each in self._in_scope(cap.scope)[:-1]:
                moments = _product(moments, each)
        moments = _product(moments, entry)
        self._moments[cap.scope] = moments
        most = moment_cap(file, cap)
        right = entry.moment is not None and entry.moment >= 1 and moments <= most
        refuse_unless(right, file, "moment", about(moments), about(most))
        cuts = self._paid[cap.scope, "", "cut"]
        refuse_unless(cuts <= (cap.cuts or 0), file, "cut", about(cuts), about(cap.cuts))

    # ---- Its checkpoints

    def check_checkpoint(
        self, file: str, note: str, witnesses: Iterable[VerifierKey]
    ) -> tuple[int, set[VerifierKey]]:
        """A checkpoint of this ledger: its size, and the known keys that signed it.

        Raises:
            Refused: it is of another ledger, or no key that was valid then signed it.
        """
        point = read_checkpoint(file, note, {*self.every_key, *witnesses})
        size = point.size
        right = 1 <= size <= len(self.entries)
        refuse_unless(right, file, "size", size, f"1 to {len(self.entries)}")
        is_signed = bool(point.signers & set(self.keys[size - 1]))
        refuse_unless(is_signed, file, "signature", "none", "of a key that was valid then")
        refuse_unless(point.origin == self.origin, file, "origin", point.origin, self.origin)
        root = merkle.root(self.leaves[:size])
        refuse_unless(point.root == root, file, "root", point.root.hex(), root.hex())
        return size, point.signers


def read_ledger(folder: Path) -> Ledger:
    """Replay the entries of a folder.

    Raises:
        Refused: one is missing, or does not follow.
    """
    ledger = Ledger()
    names = sorted(
        each.name for each in folder.iterdir() if re.fullmatch(r"[0-9]{8}\.json", each.name)
    )
    refuse_unless(bool(names), "ledger", "", "no entries", "one or more")
    for number, name in enumerate(names):
        refuse_unless(name == f"{number:08}.json", "ledger", "", name, f"{number:08}.json")
        ledger.follow(name, read_file(folder / name))
    return ledger


def _product(moments: Fraction, entry: forms.Reserve) -> Fraction:
    """The product with another moment, rounded up to 30 decimals."""
    return Fraction(ceil(moments * (entry.moment or 1) * 10**30), 10**30)


def check_cap(file: str, cap: forms.Cap) -> None:
    """A cap has the fields of its rule.

    Raises:
        Refused: it has others, or figures that no scope can have.
    """

    def need(holds: bool, found: object, needed: str) -> None:
        refuse_unless(holds, file, f"cap of {cap.scope}", found, needed)

    rule = cap.rule or "basic"
    need((cap.planned is not None) == (rule == "pld"), "a plan", "one of the rule pld alone")
    is_filter = (cap.order is not None, cap.cuts is not None)
    need(is_filter == (rule == "renyi_filter",) * 2, "an order or cuts", "those of a filter alone")
    if rule != "basic":
        need(cap.period is None and cap.delta < 1, "a period, or δ of 1", "neither")
    if rule == "renyi_filter":
        need(moment_cap(file, cap) >= 1, "too small", "room for a release")
    slots = cap.planned or []
    need(len({slot.name for slot in slots}) == len(slots), "a slot twice", "each slot once")
    for slot in slots:
        has_figures = slot.epsilon is not None and slot.delta is not None
        is_whole = (slot.epsilon is None) == (slot.delta is None)
        need(is_whole and has_figures == (slot.profile is None), slot.name, "figures or a profile")
        need(not (slot.declared and slot.profile), slot.name, "a declared slot with figures")
        need(slot.epsilon is None or slot.epsilon <= 100, slot.epsilon, "at most 100")
        if slot.profile is not None:
            values = slot.profile.values
            falls = values == sorted(values, reverse=True) and values[0] <= PARTS
            need(falls and len(values) <= LONGEST + 1, slot.name, "values that do not rise")
            right = SHORTEST_STEP <= slot.profile.step <= 100
            need(right, about(slot.profile.step), "a step from 10^-30 to 100")


def moment_cap(file: str, cap: forms.Cap) -> Fraction:
    """The bound on the product of moments of a filter (docs/design/mathematics.md, 2.32).

    Raises:
        Refused: its figures allow none.
    """
    order, cuts = cap.order, cap.cuts
    if order is None or cuts is None:
        raise Refused(file, "cap", "no order", "the order and cuts of a filter")
    rest = cap.delta - cuts
    right = rest > 0 and cap.epsilon <= 100
    refuse_unless(right, file, "cuts", (about(rest), about(cap.epsilon)), "below δ, ε to 100")
    grown = Fraction(canonical.below_e(cap.epsilon) * order, canonical.SCALE * (order - 1))
    return Fraction(rest * order * grown ** (order - 1))


def _key(file: str, text: str) -> VerifierKey:
    try:
        return read_key(text)
    except SignatureError as error:
        raise Refused(file, "key", str(error), "name+hint+base64") from error


def check_own_signature(file: str, plain: object, keys: Iterable[VerifierKey]) -> VerifierKey:
    """The key that signed an object, whose field ``signature`` was empty then.

    Raises:
        Refused: none of them did.
    """
    if not isinstance(plain, dict):
        raise Refused(file, "", plain, "an object")
    message = canonical.dumps({**plain, "signature": ""})
    try:
        signature = decoded(str(plain.get("signature", "")))
    except ValueError as error:
        raise Refused(file, "signature", str(error), "base64") from error
    for key in keys:
        try:
            key.check(message, signature)
        except SignatureError:
            continue
        return key
    raise Refused(file, "signature", "another", "that of a known key")


@dataclass(frozen=True)
class Checkpoint:
    """The three lines of a checkpoint, and the known keys that signed them."""

    origin: str
    size: int
    root: bytes
    signers: set[VerifierKey]


def read_checkpoint(file: str, note: str, keys: Iterable[VerifierKey]) -> Checkpoint:
    """Read a signed checkpoint (C2SP tlog-checkpoint).

    Raises:
        Refused: it is none, or a signature of one of the keys is wrong.
    """
    try:
        text, lines = split_note(note)
        signers = signers_of(text.encode(), lines, tuple(keys))
        match = re.fullmatch(r"([!-~]{1,200})\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/=]{44})\n", text)
        if match is None:
            raise Refused(file, "checkpoint", text[:60], "origin, size and root")
        return Checkpoint(match[1], int(match[2]), decoded(match[3]), signers)
    except (SignatureError, ValueError) as error:
        raise Refused(file, "checkpoint", str(error), "a signed note") from error


_PROOF = re.compile(
    r"c2sp\.org/tlog-proof@v1\nextra ([A-Za-z0-9+/=]+)\nindex (0|[1-9][0-9]{0,8})\n"
    r"((?:[A-Za-z0-9+/=]{44}\n){0,63})\n(.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Proof:
    """``ledger.proof``: the commit of a release, and the signed checkpoint of a tree with it."""

    commit: forms.Commit
    note: str
    checkpoint: Checkpoint


def read_proof(file: str, data: bytes, keys: Iterable[VerifierKey]) -> Proof:
    """Read the proof that a commit is in a signed tree (C2SP tlog-proof, RFC 6962).

    Raises:
        Refused: it is not, or none of the keys signed.
    """
    try:
        match = _PROOF.fullmatch(data.decode("utf-8"))
        if match is None:
            raise Refused(file, "", "another form", "a proof of a commit")
        extra = decoded(match[1])
        path = [decoded(line) for line in match[3].split()]
        point = read_checkpoint(file, match[4], keys)
        index = int(match[2])
        root = merkle.root_from_inclusion(merkle.leaf_hash(extra), index, point.size, path)
    except ValueError as error:
        raise Refused(file, "", str(error), "a proof of a commit") from error
    refuse_unless(root == point.root, file, "root", encoded(root), encoded(point.root))
    is_signed = any(key.algorithm == CURATOR and key.name == point.origin for key in point.signers)
    refuse_unless(is_signed, file, "signature", "none", f"that of a known key of {point.origin}")
    entry = forms.read(forms.AnyEntry, file, canonical.loads(file, extra))
    if not isinstance(entry, forms.Commit) or entry.seq != index:
        raise Refused(file, "entry", entry.kind, f"the commit at {index}")
    return Proof(entry, match[4], point)


def digest_of(sums: bytes) -> str:
    """What a commit holds of a release: the hash of its SHA256SUMS."""
    return f"sha256:{sha256(sums)}"
