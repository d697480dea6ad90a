"""Scheduled releases from end to end: check the witness, run, deliver; and recovering runs.

The order is a matter of trust. Before a run the checkpoint in the store is compared with the
ledger, so that a machine which was put back to an older state does not spend the same budget twice.
After the run the release is delivered, and then the ledger, so that the store has every public
release that the ledger there commits.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dp_release_verify.digests import SUMS
from dp_release_verify.verdict import OWN_FAULT, REFUSED, VERIFIED, Verdict
from release.budget.ledger import (
    Abort,
    State,
    abort,
    follow_store,
    named_store,
    newest,
    read_ledger,
    replay,
    revise,
    today,
)
from release.budget.store import recent_or_whole
from release.bundle.publish import LEDGER, Publication, open_ledger
from release.errors import LedgerError, Reason, ReleaseError, SpecError
from release.job import (
    Access,
    Job,
    Options,
    Perform,
    Published,
    Stage,
    Watch,
    auditor_bundle,
    call,
    unwatched,
    walk,
)
from release.noise.processes import FanOut, InTurn, Refused
from release.operate.catching_up import CaughtUp, catch_up
from release.operate.delivery import check_witness, deliver, deliver_ledger, restore_releases
from release.operate.journal import Code, Journal
from release.operate.notices.notice import LASTING, End, Notice, refusal
from release.operate.notices.outbox import Outbox
from release.operate.schedule import Became, OnePeriod, Schedule, periods_of
from release.operate.versions import next_version
from release.records.keys.outside import read_key
from release.records.signing import Signer
from release.records.stores import Store
from release.street import run_job, run_release
from release.verification.evidence import Trust
from release.verification.verifier import check_content, judge

if TYPE_CHECKING:
    from release.spec.periods import Period


_RELEASE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)


_LOOKED_BACK = 30
"""Periods of which it is told that they are public, where nobody was."""


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
    perform: Perform = call
    journal: Journal = field(default_factory=Journal)
    outbox: Outbox | None = None

    def tell(self, *notices: Notice) -> None:
        """Tell people, where they asked for it."""
        if self.outbox is not None:
            self.outbox.tell(*notices)


def release_period(spec: Path, period: Period | None, run: Run) -> Published:
    """Run the release of one period and deliver it.

    Raises:
        ReleaseError: it was refused, or published here and not delivered; run it again.
    """
    place, journal = run.place, run.journal
    name = None if period is None else str(period)
    options = replace(run.options, period=period, key=place.key)
    with journal.told(spec=spec.name, period=name) as log_end:
        witnessed(place)
        job = Job(options, spec, place.out)
        published = run_job(job, journal.watching(run.perform))
        log_end(published.public)
        if place.store is not None:
            walk([delivery(place)], job, run.perform)
            for release_id in job.delivered:
                journal.tell(Code.DELIVERED, release_id=release_id)
    return published


def delivery(place: Place) -> Stage:
    """The stage after the street, of a place that has a store."""

    def deliver_released(job: Job) -> None:
        job.delivered = deliver_all(place)

    return Stage("deliver", "delivering to the store", Access.RELEASE, deliver_released)


def release_due(
    schedule: Schedule,
    run: Run,
    today: datetime.date,
    release_one: Callable[[OnePeriod], object] | None = None,
    most: int | None = None,
) -> CaughtUp:
    """Recover interrupted runs, then release the due periods of a schedule, oldest first.

    With ``most`` not more than so many of them. ``release_one`` releases one period; by default it
    is :func:`release_period`.

    Each end is told once, by this process: a scheduler's own hooks die with the scheduler.

    Raises:
        ReleaseError: as :func:`release.operate.catching_up.catch_up`.
    """
    try:
        return _release_due(schedule, run, today, release_one, most)
    except ReleaseError as error:
        run.tell(refusal(error, schedule.spec.name))
        raise


def _release_due(
    schedule: Schedule,
    run: Run,
    today: datetime.date,
    release_one: Callable[[OnePeriod], object] | None,
    most: int | None,
) -> CaughtUp:
    place, spec = run.place, schedule.spec.name
    # On the first run with channels, nobody wants to be told of last year's releases.
    was_told = run.outbox is not None and run.outbox.is_begun
    witnessed(place)
    # First, because the charges of interrupted runs count towards the attempts of a period.
    recover_and_tell(place, run.journal, run.outbox)

    def release_here(due: OnePeriod) -> None:
        # Told one by one: a run over many periods may be ended on its way.
        try:
            if release_one is None:
                release_period(schedule.spec, due.period, run)
            else:
                release_one(due)
        except ReleaseError as error:
            run.tell(refusal(error, spec, due.release_id))
            raise
        except BaseException:
            # Somebody has stopped this process, which has cleaned up on its way here.
            run.tell(_crash(place, due.release_id, "given up"))
            raise
        if run.outbox is not None:
            run.outbox.over(LASTING, spec)
        run.tell(Notice(End.RELEASED, due.release_id, f"{due.release_id} is public"))

    shared = (place.out / LEDGER).is_dir() and follow_store(place.out / LEDGER).state.store
    if shared and place.store is not None:
        # What other machines have released counts as public here once it is.
        restore_releases(place.store, place.out)
    result = catch_up(schedule, place.out, release_here, today=today, most=most)
    run.tell(*_untold(schedule, place.out, result, today, was_told))
    run.journal.tell(Code.CAUGHT_UP, ended=result.ended.value.replace(" ", "-"))
    return result


def _untold(
    schedule: Schedule, out: Path, result: CaughtUp, today: datetime.date, was_told: bool
) -> Iterator[Notice]:
    """What this run did not cause: periods that are late, or that no later run will release.

    ``was_told`` is whether people were told before; then so is what a run had published that was
    killed before it could tell.
    """
    for due in result.passed_over:
        yield Notice(End.NEEDS_SOMEBODY, due.release_id, f"{due.release_id} is {due.became}")
    periods = periods_of(schedule, out, today)
    for due in periods[-_LOOKED_BACK:] if was_told else ():
        if due.became is Became.PUBLIC:
            yield Notice(End.RELEASED, due.release_id, f"{due.release_id} is public")
    for due in periods:
        is_open = due.became in (Became.DUE, Became.CUT_OFF, Became.ELSEWHERE)
        if is_open and schedule.is_late(due.period, today):
            since = schedule.due_on(due.period)
            yield Notice(End.LATE, due.release_id, f"{due.release_id} has been due since {since}")


def revise_release(spec: Path, old: str, reason: str, run: Run) -> Published:
    """Publish a newer version of a release, with a charge of its own, and mark the old one.

    The newer version is released from ``spec`` under the next id: ``NAME-r2``, ``NAME-r3``. The
    old one stays as it is; the ledger names the newer one and the reason. Run it again after a
    crash: what is done is not done twice.

    Raises:
        LedgerError: the release is not public, was revised already, or there is no ledger.
        ReleaseError: as :func:`run_release`.
    """
    place = run.place
    ledger = open_ledger(place.out, None if place.key is None else read_key(place.key))
    if ledger is None:
        raise SpecError("--out", f"no ledger in {place.out}; only its entries can name a revision")
    witnessed(place)
    new, day = next_version(old), today().isoformat()
    state = ledger.recover().state
    # Refused before anything is charged: once it is public, the newer version is paid for.
    if not state.is_public(old):
        raise LedgerError(f"{old!r} is not public; dp-release ledger show")
    if state.is_revised(old):
        raise LedgerError(f"{old!r} was revised already; revise {new!r}")
    public = place.out / "public" / new
    if state.is_committed(new) and public.is_dir():
        published = Published(public, auditor_bundle(public), None)
    else:
        options = replace(run.options, key=place.key, release_id=new)
        perform = run.journal.watching(run.perform)
        with run.journal.told(spec=spec.name) as log_end:
            published = run_release(spec, place.out, perform, options=options)
            log_end(published.public)
    ledger.append(revise(old, new, reason, day))
    for release_id in deliver_all(place):
        run.journal.tell(Code.DELIVERED, release_id=release_id)
    run.tell(Notice(End.REVISED, old, f"{new} takes the place of {old}: {reason}"))
    return published


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
        check_witness(place.out / LEDGER, place.store, _signer(place))
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
    there = place.store.holding("public", SUMS)
    for name in public_names(place.out):
        if name in there:
            continue
        public = place.out / "public" / name
        # A folder without sums is no release.
        if (public / SUMS).is_file() and deliver(public, place.store):
            delivered.append(name)
    place.store.sweep()
    if (place.out / LEDGER).is_dir():
        signer = _signer(place)
        deliver_ledger(place.out / LEDGER, place.store, signer)
        if (own := named_store(recent_or_whole(place.out / LEDGER, signer))) is not None:
            own.sweep()
    return tuple(delivered)


def _signer(place: Place) -> Signer | None:
    """The key of a place, where it can be read: delivering needs none, and is quicker with it."""
    try:
        return None if place.key is None else read_key(place.key)
    except ReleaseError:
        return None


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
        with Publication(place.out, release_id, ledger, check_content) as publication:
            return "given up" if publication.recovered is None else "published"
    except SpecError:
        # The release was public already, and opening it has removed the leftovers of its run.
        if (place.out / "public" / release_id).is_dir():
            return "public"
        raise


def abandon(place: Place, release_id: str) -> bool:
    """Record that a run of another machine will not end, or give up what one here has drawn.

    Returns:
        Whether its charge stays: it does unless the run is of this machine and had drawn nothing.

    Raises:
        SpecError: no key, or no run of it was cut off.
        LedgerError, StorageError: the ledger cannot be written.
    """
    ledger = open_ledger(place.out, None if place.key is None else read_key(place.key))
    if release_id in left_behind(place.out):
        with Publication(
            place.out, release_id, ledger, check_content, gives_up=True
        ) as publication:
            return publication.lost
    if ledger is None:
        raise SpecError("--out", f"no ledger in {place.out}")
    if release_id not in ledger.recover().state.running:
        raise SpecError("--abandon", f"no run of {release_id!r} was cut off")
    # Drawn, for all that this machine knows: the other one may have shown it to somebody.
    ledger.append(abort(release_id, today().isoformat(), drawn=True, reason="abandoned"))
    return True


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


def recover_and_tell(
    place: Place, journal: Journal, outbox: Outbox | None = None
) -> tuple[tuple[str, str], ...]:
    """As :func:`recover_all`, with a line in the journal and a notice for each."""
    results = recover_all(place)
    for name, result in results:
        if result in RECOVERED:
            journal.tell(Code.RECOVERED, release_id=name, ended=result.replace(" ", "-"))
        else:
            journal.tell(Code.REFUSED, release_id=name, reason=Reason.REFUSED)
        if outbox is not None:
            outbox.tell(_crash(place, name, result))
    return results


def _crash(place: Place, name: str, result: str) -> Notice:
    """What an interrupted run has cost."""
    if result not in RECOVERED:
        return Notice(End.REFUSED, name, f"an interrupted run was not recovered: {result}")
    if result != "given up":
        return Notice(End.FINISHED, name, f"{name} is public")
    folder = place.out / LEDGER
    entries = replay(folder).entries if folder.is_dir() else ()
    ends = [own for own in entries if isinstance(own, Abort) and own.release_id == name]
    if not ends:
        return Notice(End.CRASHED, name)
    # Each crash is told of: it may have cost a charge.
    return Notice(End.IN_VAIN if ends[-1].drawn else End.GIVEN_BACK, name, "", str(ends[-1].seq))


@dataclass(frozen=True)
class Judged:
    """The verdict on one of several releases.

    Attributes:
        release_id: the release, as its folder or its record calls it.
        status: the exit status of a verification of it alone.
        words: the verdict in a line.
    """

    release_id: str
    status: int
    words: str


def judged(release_id: str, verdict: Verdict) -> Judged:
    """The line of a release whose verdict this is."""
    words = verdict.head
    if verdict.refusal is not None:
        words = f"{words}: {verdict.refusal.check}: {verdict.refusal.sentence}"
    return Judged(release_id, verdict.status, words)


def verify_each(
    out: Path,
    elsewhere: FanOut | None = None,
    trust: Trust | None = None,
    watch: Watch = unwatched,
) -> tuple[Judged, ...]:
    """Verify every release of an output folder.

    What is withdrawn is not verified. Of what is revised the line names the newer version.

    ``watch`` is called before each release is waited for.

    Where ``trust`` names no ledger, the folder's own is replayed.

    Raises:
        LedgerError: the ledger is not intact.
    """
    fan = elsewhere or InTurn()
    if not out.is_dir():
        raise SpecError("--out", f"no folder {out}")
    given = trust or Trust()
    if given.ledger is None and (out / LEDGER).is_dir():
        given = replace(given, ledger=(out / LEDGER).resolve())
    state = State() if given.ledger is None else read_ledger(given.ledger).state
    withdrawn, revised = state.withdrawn, state.revised
    names = public_names(out)
    # A partial of a module's function, so that it can be sent to another process.
    verify_one = partial(_judge_one, out.resolve(), given)
    standing = [name for name in names if name not in withdrawn]
    found = {name: Judged(name, VERIFIED, "WITHDRAWN") for name in withdrawn}
    results = iter(fan.map(verify_one, standing))
    for finished, name in enumerate(standing):
        watch(finished, len(standing), name)
        result = next(results)
        if isinstance(result, Refused):
            # Not the release: the verification of it ended.
            result = Judged(name, OWN_FAULT, f"NO VERDICT: {result.line}")
        if name in revised:
            result = replace(result, words=f"{result.words}; revised by {revised[name]}")
        found[name] = result
    return tuple(found[name] for name in names)


def _judge_one(out: Path, trust: Trust, name: str) -> Judged:
    public = out / "public" / name
    verdict = judge(public, auditor_bundle(public), trust)
    if verdict.refusal is None and verdict.release_id != name:
        # Each would be read as the release that its folder names.
        return Judged(name, REFUSED, f"REFUSED: the folder holds the release {verdict.release_id}")
    return judged(name, verdict)
