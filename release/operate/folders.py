"""Examining the releases of an output folder, the runs in it, and the copies in a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dp_release_verify.digests import BESIDE, SUMS, sha256
from release.budget.ledger import CHECKPOINT, Replayed, newest
from release.bundle.publish import LEDGER, is_at_work
from release.errors import ReleaseError
from release.operate.delivery import digests_of
from release.operate.findings import Finding, fault, look, or_well, well
from release.operate.operations import (
    Place,
    left_behind,
    public_names,
    reserved_elsewhere,
    witnessed,
)
from release.records.stores import Store
from release.verification.evidence import Trust
from release.verification.verifier import verify


def folders(place: Place, ledger: Replayed | None, names: set[str]) -> Iterator[Finding]:
    """Whether each public folder is paid for, and each committed release is whole and unchanged."""
    summary = f"{len(names)} public, each whole and as it was signed"
    yield from or_well(_broken_releases(place, ledger, names), "releases", summary)


def _broken_releases(place: Place, ledger: Replayed | None, names: set[str]) -> Iterator[Finding]:
    withdrawn = set() if ledger is None else ledger.state.withdrawn
    for name in sorted(names):
        for problem in _problems(place, name, withdrawn):
            yield fault("releases", f"{name}: {problem}; restore it: dp-release restore")
    for problem in () if ledger is None else _unpaid(place, ledger, names):
        yield fault("releases", problem)


def _unpaid(place: Place, ledger: Replayed, names: set[str]) -> Iterator[str]:
    committed = ledger.state.committed
    for name in sorted(names - committed.keys()):
        yield f"{name} is public, and no entry of the ledger pays for it"
    for name, entry in committed.items():
        sums = place.out / "public" / name / SUMS
        # A run commits first and publishes after, so one at work may be between the two.
        if name in ledger.state.withdrawn or is_at_work(place.out, name):
            continue
        if not sums.parent.is_dir():
            is_staged = (place.out / f".work-{name}").exists()
            remedy = "dp-release recover" if is_staged else "dp-release restore"
            yield f"{name} is committed and not public; {remedy}"
        elif not _has_digest(sums, entry.sums.removeprefix("sha256:")):
            yield f"{name}: not the release that the ledger committed"


def _problems(place: Place, name: str, withdrawn: set[str]) -> list[str]:
    public, ledger = place.out / "public" / name, place.out / LEDGER
    # A withdrawn release never verifies, but its files should be whole.
    if name in withdrawn:
        return _changed(public)
    try:
        verify(public, None, Trust(ledger if ledger.is_dir() else None))
    except ReleaseError as error:
        # Naming the changed file helps more than the first check that failed.
        return _changed(public) or [f"it does not verify ({error})"]
    return []


def _changed(public: Path) -> list[str]:
    sums, differences = public / SUMS, []
    if not sums.is_file():
        return [f"no {SUMS}"]
    digests = digests_of(sums.read_bytes())
    for name, digest in digests.items():
        if not _has_digest(public / name, digest):
            differences.append(f"{name} is missing or changed")
    files = filter(Path.is_file, public.rglob("*"))
    present = {str(path.relative_to(public)) for path in files}
    for name in sorted(present - digests.keys() - set(BESIDE)):
        differences.append(f"{name} was added")
    return differences


def _has_digest(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path.read_bytes()) == digest


def leftovers(place: Place) -> Iterator[Finding]:
    """The runs that were interrupted, and the ones at work."""
    busy, interrupted = 0, 0
    for name in left_behind(place.out) if place.out.is_dir() else ():
        if is_at_work(place.out, name):
            busy += 1
            continue
        interrupted += 1
        remedy = "dp-release recover, or run it again"
        yield fault("runs", f"a run of {name} was interrupted; {remedy}")
    for name in reserved_elsewhere(place.out):
        remedy = f"if that machine is gone: dp-release recover --abandon {name}"
        yield look("runs", f"{name} is at work on another machine; {remedy}")
    if busy:
        yield well("runs", f"{busy} at work right now")
    elif not interrupted:
        yield well("runs", "none was interrupted")


def copies(place: Place, ledger: Replayed | None) -> Iterator[Finding]:
    """Whether the store has every release and the ledger, and no entry beyond this ledger."""
    witnessed(place)
    if ledger is not None and ledger.state.store is not None:
        more = newest(ledger).ledger.state.size - ledger.state.size
        further = f", and {more} more that the next run takes over" if more else ""
        yield well("store", f"{ledger.state.store} has every entry of the ledger{further}")
    if place.store is None:
        return
    summary = "all releases are there, and the ledger"
    yield from or_well(_missing_copies(place, place.store), "store", summary)


def _missing_copies(place: Place, store: Store) -> Iterator[Finding]:
    for name in public_names(place.out) if place.out.is_dir() else ():
        sums = place.out / "public" / name / SUMS
        # The sums stand for all files: comparing every file would read all of the store.
        if not sums.is_file() or store.read(f"public/{name}/{SUMS}") != sums.read_bytes():
            yield fault("store", f"{name} is not delivered, or differs there; dp-release deliver")
            continue
        stored = store.names(f"public/{name}")
        for file in sorted(digests_of(sums.read_bytes()).keys() - set(stored)):
            # Delivery takes a release with its sums for complete.
            yield fault("store", f"{name}/{file} is missing there; remove {SUMS} and deliver")
    checkpoint = place.out / LEDGER / CHECKPOINT
    if checkpoint.is_file() and store.read(f"{LEDGER}/{CHECKPOINT}") != checkpoint.read_bytes():
        yield look("store", "the ledger there is older, or missing; dp-release deliver")
