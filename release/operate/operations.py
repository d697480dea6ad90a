"""Scheduled releases from end to end: check the witness, run, deliver; and recovering runs.

The order is a matter of trust. Before a run the checkpoint in the store is compared with the
ledger, so that a machine which was put back to an older state does not spend the same budget twice.
After the run the release is delivered, and then the ledger, so that the store has every public
release that the ledger there commits.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from release.budget.ledger import (
    abort,
    follow_store,
    named_store,
    newest,
    read_ledger,
    replay,
    today,
)
from release.bundle.publish import LEDGER, Publication, open_ledger
from release.bundle.statements import SUMS
from release.errors import LedgerError, ReleaseError, SpecError
from release.noise.processes import FanOut, InTurn
from release.operate.delivery import check_witness, deliver, deliver_ledger, restore_releases
from release.operate.journal import Code, Journal
from release.operate.schedule import CaughtUp, OnePeriod, Schedule, catch_up
from release.pipeline import Options, Published, Step, auditor_bundle, call, run_release
from release.records.signing import read_key
from release.records.stores import Store
from release.verification.provenance import Trust
from release.verification.verifier import verify

if TYPE_CHECKING:
    from release.spec.periods import Period


_RELEASE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Place:
    """The output folder of releases, the key that signs there, and perhaps a store."""

    out: Path
    key: Path | None = None
    store: Store | None = None


@dataclass(frozen=True)
class Run:
    """The settings with which each release of a schedule is run."""

    place: Place
    options: Options = field(default_factory=Options)
    step: Step = call
    journal: Journal = field(default_factory=Journal)


def release_period(spec: Path, period: Period | None, run: Run) -> Published:
    """Run the release of one period and deliver it.

    Raises:
        ReleaseError: it was refused, or published here and not delivered; run it again.
    """
    place, journal = run.place, run.journal
    name = None if period is None else str(period)
    journal.tell(Code.STARTED, period=name)
    options = replace(run.options, period=period, key=place.key)
    try:
        witnessed(place)
        published = run_release(spec, place.out, journal.watching(run.step), options=options)
        journal.tell(Code.PUBLISHED, period=name, release_id=published.public.name)
        for release_id in deliver_all(place):
            journal.tell(Code.DELIVERED, release_id=release_id)
    except BaseException as error:
        # An interruption is logged too: the next run has to recover this one.
        journal.refused(error, period=name)
        raise
    return published


def release_due(
    schedule: Schedule,
    run: Run,
    today: datetime.date,
    release_one: Callable[[OnePeriod], object] | None = None,
) -> CaughtUp:
    """Recover interrupted runs, then release every due period of a schedule, oldest first.

    ``release_one`` releases one period; by default it is :func:`release_period`.

    Raises:
        ReleaseError: as :func:`release.operate.schedule.catch_up`.
    """
    place = run.place
    witnessed(place)
    # First, because the charges of interrupted runs count towards the attempts of a period.
    recover_and_tell(place, run.journal)

    def release_here(due: OnePeriod) -> object:
        return release_period(schedule.spec, due.period, run)

    shared = (place.out / LEDGER).is_dir() and follow_store(place.out / LEDGER).state.store
    if shared and place.store is not None:
        # What other machines have released counts as public here once it is.
        restore_releases(place.store, place.out)
    result = catch_up(schedule, place.out, release_one or release_here, today=today)
    run.journal.tell(Code.CAUGHT_UP, ended=result.ended.value.replace(" ", "-"))
    return result


def witnessed(place: Place) -> None:
    """Check that the ledger is not older than its copy in the store, and agrees with its own store.

    Raises:
        LedgerError: the copy has entries that the ledger does not have, or different ones.
        StorageError: a store does not answer.
    """
    has_ledger = (place.out / LEDGER).is_dir()
    if place.store is None:
        if has_ledger:
            newest(replay(place.out / LEDGER))
        return
    if has_ledger:
        check_witness(place.out / LEDGER, place.store)
    elif place.store.sizes(LEDGER):
        raise LedgerError(
            f"{place.store.label} has a ledger, and {place.out} has none: nothing would pay for a "
            "release; dp-release restore"
        )


def deliver_all(place: Place) -> tuple[str, ...]:
    """Deliver every public release that the store does not have yet, and then the ledger.

    Raises:
        StorageError: the store fails; run it again.
        LedgerError: the store and the ledger do not agree.
    """
    if place.store is None:
        return ()
    if not place.out.is_dir():
        raise SpecError("--out", f"no folder {place.out}")
    witnessed(place)
    delivered: list[str] = []
    for name in public_names(place.out):
        public = place.out / "public" / name
        # A folder without sums is no release.
        if (public / SUMS).is_file() and deliver(public, place.store):
            delivered.append(name)
    place.store.sweep()
    if (place.out / LEDGER).is_dir():
        deliver_ledger(place.out / LEDGER, place.store)
        if (own := named_store(replay(place.out / LEDGER))) is not None:
            own.sweep()
    return tuple(delivered)


def public_names(out: Path) -> list[str]:
    """The releases of an output folder, sorted; names that are no release id are ignored."""
    folder = out / "public"
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if _RELEASE_ID.fullmatch(path.name))


def left_behind(out: Path) -> tuple[str, ...]:
    """The releases whose run has not ended: those with a working folder or an open reserve."""
    names = {path.name.removeprefix(".work-") for path in out.glob(".work-*")}
    if (out / LEDGER).is_dir():
        state = replay(out / LEDGER).state
        # A run reserves before it stages anything. One without a folder here is another machine's
        # where several write the ledger.
        names |= set() if state.store is not None else state.running.keys()
    return tuple(sorted(names))


def reserved_elsewhere(out: Path) -> tuple[str, ...]:
    """The releases with an open reserve of another machine, as this copy of the ledger knows."""
    if not (out / LEDGER).is_dir():
        return ()
    state = replay(out / LEDGER).state
    return tuple(sorted(state.running.keys() - set(left_behind(out))))


def recover(place: Place, release_id: str) -> str:
    """Publish what an interrupted run has staged, or abort it in the ledger; returns which.

    No noise is drawn. A charge is refunded only if it is certain that no noise was drawn.

    Raises:
        ReleaseError: another run is at work on it, or the ledger cannot be written.
    """
    signer = None if place.key is None else read_key(place.key)
    ledger = open_ledger(place.out, signer)
    try:
        with Publication(place.out, release_id, ledger) as publication:
            return "given up" if publication.recovered is None else "published"
    except SpecError:
        # The release was public already, and opening it has removed the leftovers of its run.
        if (place.out / "public" / release_id).is_dir():
            return "public"
        raise


def abandon(place: Place, release_id: str) -> None:
    """Record that a run of another machine will not end; its charge stays.

    Raises:
        SpecError: no key, no open reserve, or a run of this machine has to be recovered.
        LedgerError, StorageError: the ledger cannot be written.
    """
    ledger = open_ledger(place.out, None if place.key is None else read_key(place.key))
    if ledger is None:
        raise SpecError("--out", f"no ledger in {place.out}")
    running = ledger.recover().state.running
    if release_id not in running or release_id in left_behind(place.out):
        raise SpecError("--abandon", f"no run of {release_id!r} is at work on another machine")
    # Drawn, for all that this machine knows: the other one may have shown it to somebody.
    ledger.append(abort(release_id, today().isoformat(), drawn=True))


RECOVERED = ("public", "published", "given up")
"""The results of :func:`recover` after which a run needs nothing more."""


def recover_all(place: Place) -> tuple[tuple[str, str], ...]:
    """Recover every interrupted run; pairs of a release and its result, or the refusal."""
    results: list[tuple[str, str]] = []
    for name in left_behind(place.out):
        try:
            result = recover(place, name)
        except ReleaseError as error:
            result = str(error)
        except OSError as error:
            result = f"its working folder is damaged ({error.strerror}); remove it"
        results.append((name, result))
    return tuple(results)


def recover_and_tell(place: Place, journal: Journal) -> None:
    """Recover every interrupted run, and write a line in the journal for each."""
    for name, result in recover_all(place):
        journal.tell(Code.RECOVERED if result in RECOVERED else Code.REFUSED, release_id=name)


IN_PART = "verified as far as the given bundles allow"
"""The verdict on a release of which some bundle or the ledger was absent."""


def verify_each(
    out: Path, elsewhere: FanOut | None = None, trust: Trust | None = None
) -> tuple[tuple[str, str], ...]:
    """Verify every release of an output folder; pairs of a release and its verdict.

    A verdict is ``verified``, :data:`IN_PART`, ``withdrawn``, or ``refused: `` and the reason.

    Where ``trust`` names no ledger, the folder's own is replayed and proves nobody's identity.

    Raises:
        LedgerError: the ledger is not intact.
    """
    fan = elsewhere or InTurn()
    if not out.is_dir():
        raise SpecError("--out", f"no folder {out}")
    beside = (out / LEDGER).resolve() if (out / LEDGER).is_dir() else None
    asked = replace(trust or Trust(), beside=beside)
    withdrawn = set() if asked.replayed is None else read_ledger(asked.replayed).state.withdrawn
    names = public_names(out)
    # A partial of a module's function, so that it can be sent to another process.
    verify_one = partial(_verdict, out.resolve(), asked)
    standing = [name for name in names if name not in withdrawn]
    verdicts = dict.fromkeys(names, "withdrawn")
    for name, verdict in zip(standing, fan.map(verify_one, standing), strict=True):
        verdicts[name] = verdict if isinstance(verdict, str) else f"refused: {verdict.line}"
    return tuple(verdicts.items())


def lacks_root(out: Path, trust: Trust) -> bool:
    """Whether of who signed the releases of ``out`` only its own ledger would speak."""
    return (out / LEDGER).is_dir() and replace(trust, beside=out / LEDGER).lacks_root


def _verdict(out: Path, trust: Trust, name: str) -> str:
    public = out / "public" / name
    verdict = verify(public, auditor_bundle(public), trust)
    return "verified" if verdict.complete else IN_PART
