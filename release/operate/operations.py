"""A scheduled release from end to end: witness, run, deliver; and what an earlier run left.

The order is that of trust. Before a run the checkpoint in the store is held against the ledger, so
that a machine which was put back in time does not draw twice on the same budget. After it the
release goes to the store, then the ledger: whoever reads there finds every release paid for.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from release.budget.ledger import read_ledger, replay
from release.bundle.publish import LEDGER, Publication, open_ledger
from release.bundle.statements import SUMS
from release.errors import LedgerError, ReleaseError, SpecError
from release.noise.processes import FanOut, InTurn, Refused
from release.operate.delivery import check_witness, deliver, deliver_ledger
from release.operate.journal import Code, Journal
from release.operate.schedule import CaughtUp, OnePeriod, Schedule, catch_up
from release.pipeline import Options, Published, Step, auditor_bundle, call, run_release
from release.records.signing import read_key
from release.tables.stores import Store
from release.verification.provenance import Trust
from release.verification.verifier import verify

if TYPE_CHECKING:
    from release.spec.periods import Period


_RELEASE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where releases go: the folder ``out``, the key that signs there, and a store or none."""

    out: Path
    key: Path | None = None
    store: Store | None = None


@dataclass(frozen=True)
class Run:
    """How each release of a schedule is run."""

    place: Place
    options: Options = field(default_factory=Options)
    step: Step = call
    journal: Journal = field(default_factory=Journal)


def release_period(spec: Path, period: Period | None, run: Run) -> Published:
    """Run the release of one period and deliver it.

    Raises:
        ReleaseError: refused, or published here and not delivered; run again.
    """
    place, journal = run.place, run.journal
    named = None if period is None else str(period)
    journal.tell(Code.STARTED, period=named)
    options = replace(run.options, period=period, key=place.key)
    try:
        witnessed(place)
        published = run_release(spec, place.out, journal.watching(run.step), options=options)
        journal.tell(Code.PUBLISHED, period=named, release_id=published.public.name)
        for name in deliver_all(place):
            journal.tell(Code.DELIVERED, release_id=name)
    except BaseException as error:
        journal.refused(error, period=named)
        raise
    return published


def release_due(
    schedule: Schedule,
    run: Run,
    today: datetime.date,
    release_one: Callable[[OnePeriod], object] | None = None,
) -> CaughtUp:
    """Recover what was cut off, then release every due period of a schedule, oldest first.

    ``release_one`` is :func:`release_period` unless given.

    Raises:
        ReleaseError: as :func:`release.operate.schedule.catch_up`.
    """
    place = run.place
    witnessed(place)
    recover_and_tell(place, run.journal)

    def release_it(one: OnePeriod) -> object:
        return release_period(schedule.spec, one.period, run)

    done = catch_up(schedule, place.out, release_one or release_it, today=today)
    run.journal.tell(Code.CAUGHT_UP, ended=done.ended.value.replace(" ", "-"))
    return done


def witnessed(place: Place) -> None:
    """See that the ledger is not older than what its store has seen.

    Raises:
        LedgerError: it is.
        StorageError: the store does not answer.
    """
    if place.store is None:
        return
    if (place.out / LEDGER).is_dir():
        check_witness(place.out / LEDGER, place.store)
    elif place.store.sizes(LEDGER):
        raise LedgerError(
            f"{place.store.told} has a ledger, and {place.out} has none: nothing would pay for a "
            "release; dp-release restore"
        )


def deliver_all(place: Place) -> tuple[str, ...]:
    """Deliver every release that is public here and not in the store yet, and the ledger.

    Raises:
        StorageError: the store fails; run it again.
        LedgerError: the store and the ledger do not agree.
    """
    if place.store is None:
        return ()
    if not place.out.is_dir():
        raise SpecError("--out", f"no folder {place.out}")
    witnessed(place)
    folder = place.out / "public"
    whole = [name for name in public_names(place.out) if (folder / name / SUMS).is_file()]
    done = [name for name in whole if deliver(folder / name, place.store)]
    if (place.out / LEDGER).is_dir():
        deliver_ledger(place.out / LEDGER, place.store)
    return tuple(done)


def public_names(out: Path) -> list[str]:
    """The releases of an output folder; other names that lie there are nobody's."""
    folder = out / "public"
    found = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(name for name in found if _RELEASE_ID.fullmatch(name))


def left_behind(out: Path) -> tuple[str, ...]:
    """The releases of which a run was cut off: by working folders, and open reserves."""
    names = {path.name.removeprefix(".work-") for path in out.glob(".work-*")}
    if (out / LEDGER).is_dir():
        names |= replay(out / LEDGER).state.running.keys()
    return tuple(sorted(names))


def recover(place: Place, release_id: str) -> str:
    """Finish what an interrupted run has staged, or give it up in the open; what was done.

    Nothing is drawn. A charge comes back only if it is certain that no noise was drawn.

    Raises:
        ReleaseError: another run is at work on it, or the ledger cannot be written.
    """
    signer = None if place.key is None else read_key(place.key)
    ledger = open_ledger(place.out, signer)
    try:
        with Publication(place.out, release_id, ledger) as publication:
            return "given up" if publication.recovered is None else "published"
    except SpecError:
        # It had been public, and what was left of its run has just been tidied up.
        if (place.out / "public" / release_id).is_dir():
            return "public"
        raise


RECOVERED = ("public", "published", "given up")
"""What :func:`recover` may say of a run that needs nothing more."""


def recover_all(place: Place) -> tuple[tuple[str, str], ...]:
    """:func:`recover` for everything that is left behind; what could not be recovered says why."""
    found = []
    for name in left_behind(place.out):
        try:
            found.append((name, recover(place, name)))
        except ReleaseError as error:
            found.append((name, str(error)))
        except OSError as error:
            found.append((name, f"its working folder is damaged ({error.strerror}); take it away"))
    return tuple(found)


def recover_and_tell(place: Place, journal: Journal) -> None:
    """:func:`recover_all`, and a line in the journal for each."""
    for name, became in recover_all(place):
        journal.tell(Code.RECOVERED if became in RECOVERED else Code.REFUSED, release_id=name)


IN_PART = "verified as far as the given bundles allow"
"""What is said of a release of which not everything could be seen."""


def verify_each(
    out: Path, elsewhere: FanOut | None = None, trust: Trust | None = None
) -> tuple[tuple[str, str], ...]:
    """Verify every release of an output folder; by name ``verified``, ``as far as …`` or why not.

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
    verify_one = partial(_verdict, out.resolve(), asked)
    standing = [name for name in names if name not in withdrawn]
    found = dict(zip(standing, fan.map(verify_one, standing), strict=True))
    told = {name: found.get(name, "withdrawn") for name in names}
    return tuple(
        (name, f"refused: {one.line}" if isinstance(one, Refused) else one)
        for name, one in told.items()
    )


def lacks_root(out: Path, trust: Trust) -> bool:
    """Whether of who signed the releases of ``out`` only its own ledger would speak."""
    return (out / LEDGER).is_dir() and replace(trust, beside=out / LEDGER).lacks_root


def _verdict(out: Path, trust: Trust, name: str) -> str:
    public = out / "public" / name
    half = auditor_bundle(public)
    return "verified" if verify(public, half, trust).complete else IN_PART
