"""Who published a release, and whether its charge was reserved in a ledger that kept its caps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dp_release_verify import canonical, forms
from dp_release_verify.canonical import about
from dp_release_verify.digests import AUDIT, PROOF, SIGNATURE, SUMS, Folder, read_file
from dp_release_verify.errors import Refused, refuse_unless
from dp_release_verify.ledger import (
    CHECKPOINT,
    Ledger,
    Proof,
    check_own_signature,
    digest_of,
    read_ledger,
    read_proof,
)
from dp_release_verify.losses import (
    PARTS,
    SHORTEST_STEP,
    Losses,
    Profile,
    composed,
    worst_case,
)
from dp_release_verify.signatures import SignatureError, VerifierKey, check_sums

MOST_PLANNED = 5 * 10**6
"""Values of the profiles of a plan, each as often as its slot may be taken."""


@dataclass(frozen=True)
class Trust:
    """What the auditor was given: keys of curators and witnesses, and a ledger."""

    keys: tuple[VerifierKey, ...] = ()
    witnesses: tuple[VerifierKey, ...] = ()
    ledger: Path | None = None


def replayed(trust: Trust) -> Ledger | None:
    """The ledger that was given, every entry of which follows.

    Raises:
        Refused: one does not.
    """
    return None if trust.ledger is None else read_ledger(trust.ledger)


@dataclass(frozen=True)
class Published:
    """Who signed a release.

    Attributes:
        signers: the known keys that signed its files, or its commit.
        proof: that its commit is in a signed ledger; none without a ledger.
    """

    signers: set[VerifierKey]
    proof: Proof | None


def check_signed(
    folder: Folder, release: forms.Release, trust: Trust, ledger: Ledger | None
) -> Published:
    """The signatures beside SHA256SUMS, and the commit in a ledger that holds its hash.

    Raises:
        Refused: one is wrong, or missing where the record names an entry.
    """
    keys = {*trust.keys, *(ledger.every_key if ledger is not None else ())}
    signers: set[VerifierKey] = set()
    block = folder.contents.get(SIGNATURE)
    if block is not None:
        try:
            signers = check_sums(folder.read(SUMS), block, tuple(keys))
        except SignatureError as error:
            raise Refused(SIGNATURE, "", str(error), "a signature of these files") from error
    if release.made.ledger is None:
        is_there = PROOF in folder.contents
        refuse_unless(not is_there, PROOF, "", "a proof", "none: no entry is named")
        refuse_unless(ledger is None, "release.json", "made.ledger", "nothing", "an entry")
        return Published(signers, None)
    data = folder.read(PROOF)
    if not keys:
        return Published(signers, None)
    proof = read_proof(PROOF, data, {*keys, *trust.witnesses})
    name = release.asked.release.id
    found = proof.commit.release_id
    refuse_unless(found == name, PROOF, "release_id", found, name)
    digest = digest_of(folder.read(SUMS))
    refuse_unless(proof.commit.sums == digest, PROOF, "sums", proof.commit.sums, digest)
    return Published(signers | proof.checkpoint.signers, proof)


def check_in_ledger(
    release: forms.Release, trust: Trust, ledger: Ledger, proof: Proof | None
) -> set[VerifierKey]:
    """The commit stands in the ledger that was given; gives the keys behind this ledger.

    Raises:
        Refused: it does not, or the checkpoint does not sign for all entries.
    """
    name = release.asked.release.id
    if trust.ledger is None or proof is None:
        raise Refused(PROOF, "", "nothing", "the commit of this release")
    try:
        note = read_file(trust.ledger / CHECKPOINT).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(CHECKPOINT, "", "no UTF-8", "a signed note") from error
    size, owners = ledger.check_checkpoint(CHECKPOINT, note, trust.witnesses)
    entries = len(ledger.entries)
    refuse_unless(size == entries, CHECKPOINT, "size", size, entries)
    _, signers = ledger.check_checkpoint(PROOF, proof.note, trust.witnesses)
    place = ledger.committed.get(name)
    refuse_unless(place == proof.commit.seq, "ledger", "commit", place, proof.commit.seq)
    return owners | signers | set(ledger.keys[0])


def check_trusted(
    trust: Trust, published: Published, owners: set[VerifierKey] | None
) -> VerifierKey:
    """A key that the auditor trusts signed: where a ledger has owners, this very ledger.

    Raises:
        Refused: none did.
    """
    # The signature of the files says nothing of a ledger that somebody else has made for them.
    signers = published.signers if owners is None else owners
    for key in trust.keys:
        if key in signers:
            return key
    raise Refused(SIGNATURE, "", "no signature of a key you trust", str(trust.keys[0]))


def check_paid(release: forms.Release, ledger: Ledger) -> forms.Reserve:
    """The entry that the record names reserved this total for this release.

    Raises:
        Refused: it reserved another, or something was said of the release in between.
    """
    paid, name = release.made.ledger, release.asked.release.id
    number = 0 if paid is None else paid.entry
    place = ledger.committed[name]
    refuse_unless(0 < number < place, "ledger", "entry", number, f"one before {place}")
    entry = ledger.entries[number]
    if not isinstance(entry, forms.Reserve):
        raise Refused("ledger", f"entry {number}", entry.kind, "a reserve")
    total, budget = release.made.total, release.asked.budget
    stated = (entry.release_id, entry.scope, entry.epsilon, entry.delta)
    needed = (name, budget.scope, total.epsilon, total.delta)
    refuse_unless(stated == needed, "ledger", f"entry {number}", stated, needed)
    for between in ledger.entries[number + 1 : place]:
        other = getattr(between, "release_id", None)
        refuse_unless(other != name, "ledger", f"entry {between.seq}", between.kind, "another's")
    return entry


def unpaid_rules(
    entry: forms.Reserve, ledger: Ledger, losses: Losses | None, *, is_empirical: bool
) -> Iterator[str]:
    """Check the figures of a scope that composes; what cannot be proved here, in words.

    Raises:
        Refused: the release amounts to more than it reserved.
    """
    cap = ledger.caps[entry.scope]
    if cap.rule == "renyi_filter":
        if losses is None or is_empirical:
            yield f"whether the release amounts to the moment that it reserved in {cap.scope}"
            return
        moment, cut = losses.moment(cap.order or 2)
        for name, least, stated in (("moment", moment, entry.moment), ("cut", cut, entry.cut)):
            right = stated is not None and stated >= least
            refuse_unless(right, "ledger", name, stated, f"at least {about(least)}")
    if cap.rule == "pld":
        yield from _of_slot(entry, cap, losses, is_empirical=is_empirical)


def _of_slot(
    entry: forms.Reserve, cap: forms.Cap, losses: Losses | None, *, is_empirical: bool
) -> Iterator[str]:
    slots = {slot.name: slot for slot in cap.planned or ()}
    slot = slots[entry.slot or ""]
    is_declared = bool(slot.declared)
    refuse_unless(is_declared == is_empirical, "ledger", "slot", entry.slot, "one that fits")
    fits = slot.epsilon is not None and slot.delta is not None
    fits = fits and entry.epsilon <= (slot.epsilon or 0) and entry.delta <= (slot.delta or 0)
    if not fits and is_empirical:
        raise Refused("ledger", "slot", entry.slot, "one of at least the stated ε and δ")
    if not fits and losses is not None:
        fits = _fits_profile(slot, losses)
    if not fits:
        yield f"whether the release fits the slot {entry.slot} of the scope {cap.scope}"
    if not plan_keeps(cap):
        yield f"whether the plan of the scope {cap.scope} keeps its cap"


def _fits_profile(slot: forms.Slot, losses: Losses) -> bool:
    """Whether the losses lie at or below the profile of a slot; refused where they do not."""
    if slot.profile is not None and slot.profile.step != losses.step:
        return False
    bounds = profile_of_slot(slot, losses.step)
    own = losses.profile()
    length = max(len(bounds), len(own))
    for place in range(length):
        value, bound = own[min(place, len(own) - 1)], bounds[min(place, len(bounds) - 1)]
        refuse_unless(value <= bound, "ledger", "slot", slot.name, "a profile above that of it")
    # Between losses the chord of a worst case lies above it, unless its ε is one of them.
    return slot.epsilon is None or slot.epsilon % losses.step == 0


def profile_of_slot(slot: forms.Slot, step: Fraction) -> Profile:
    """The profile of a slot: its own, or the worst case of its ε and δ."""
    if slot.profile is not None:
        return list(slot.profile.values)
    return worst_case(slot.epsilon or Fraction(0), slot.delta or Fraction(0), step)


def plan_keeps(cap: forms.Cap) -> bool:
    """Whether the composition of all slots of a plan is proved here to keep the cap."""
    epsilon, delta = cap.epsilon, cap.delta
    drawn = []
    for slot in cap.planned or ():
        if slot.declared:
            epsilon -= slot.times * (slot.epsilon or 0)
            delta -= slot.times * (slot.delta or 0)
        else:
            drawn.append(slot)
    if min(epsilon, delta) < 0:
        return False
    has_profiles = any(slot.profile is not None for slot in drawn)
    if not has_profiles:
        added = [
            sum((slot.times * (slot.epsilon or 0) for slot in drawn), Fraction(0)),
            sum((slot.times * (slot.delta or 0) for slot in drawn), Fraction(0)),
        ]
        if added[0] <= epsilon and added[1] <= delta:
            return True
    steps = {slot.profile.step for slot in drawn if slot.profile is not None}
    if not steps:
        claims = [slot.epsilon for slot in drawn if slot.epsilon]
        steps = {min(claims) / 64} if claims else set()
    if len(steps) != 1:
        return False
    (step,) = steps
    if step < SHORTEST_STEP:
        return False
    work = sum(slot.times * len(profile_of_slot(slot, step)) for slot in drawn)
    if work > MOST_PLANNED:
        return False
    whole = composed((Losses.of(profile_of_slot(slot, step), step), slot.times) for slot in drawn)
    return whole.delta_at(epsilon) * PARTS <= delta * PARTS


def check_older(ledger: Ledger, note: str, witnesses: tuple[VerifierKey, ...]) -> int:
    """An older checkpoint that the auditor kept is of this ledger; gives its size.

    Raises:
        Refused: it is not: the ledger was rewritten.
    """
    size, _ = ledger.check_checkpoint("older checkpoint", note, witnesses)
    return size


def check_audit(
    data: bytes, release: forms.Release, trust: Trust, ledger: Ledger | None
) -> VerifierKey | None:
    """The audit record is of this release, and signed; gives the key where one is known.

    Raises:
        Refused: it is of another release or run, or is not signed as it should be.
    """
    plain = canonical.loads(AUDIT, data)
    audit: forms.Audit = forms.read(forms.Audit, AUDIT, plain)
    name = release.asked.release.id
    refuse_unless(audit.release_id == name, AUDIT, "release_id", audit.release_id, name)
    paid = release.made.ledger
    entry = None if paid is None else paid.entry
    refuse_unless(audit.entry == entry, AUDIT, "entry", audit.entry, entry)
    is_whole = (audit.run is not None, audit.signature is not None) == (entry is not None,) * 2
    refuse_unless(is_whole, AUDIT, "run", audit.run, "a run and a signature, where it was paid")
    in_order = audit.began <= audit.prepared
    refuse_unless(in_order, AUDIT, "began", audit.began, f"at most {audit.prepared}")
    if entry is None:
        return None
    keys = set(trust.keys)
    if ledger is not None:
        keys = ledger.every_key
        reserve = ledger.entries[entry] if entry < len(ledger.entries) else None
        run = reserve.run if isinstance(reserve, forms.Reserve) else None
        refuse_unless(audit.run == run, AUDIT, "run", audit.run, run)
    return check_own_signature(AUDIT, plain, keys) if keys else None
