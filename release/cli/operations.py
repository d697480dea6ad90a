"""``dp-release catch-up``, ``deliver``, ``restore``, ``recover``, ``skip``, ``serve`` and more."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo, print_json, progress
from release.errors import ReleaseError, SpecError

if TYPE_CHECKING:
    from release.operate.catching_up import CaughtUp
    from release.operate.findings import Finding
    from release.operate.notices.outbox import Outbox
    from release.operate.schedule import OnePeriod, Schedule

_MOST_UNASKED = 30
"""Due periods that are released without a ledger and without a question."""

Most = Annotated[
    int | None, typer.Option(min=1, help="The most periods of each spec to release in a run.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what is due; release nothing.")]
Source = Annotated[
    str | None,
    typer.Option("--from", help="The store they were delivered to; by default the ledger's own."),
]
Abandoned = Annotated[
    str | None,
    typer.Option("--abandon", help="A release whose run was on another machine, which is gone."),
]
Cron = Annotated[str, typer.Option(help="When to look for due periods, such as '15 3 * * *'.")]
Timezone = Annotated[str, typer.Option(help="Of --cron, and of the days on which periods end.")]
ScheduledSpecs = Annotated[
    list[Path] | None, typer.Option("--spec", help="A scheduled spec; with --since.")
]
PrefectServer = Annotated[
    str | None, typer.Option(envvar="PREFECT_API_URL", help="A Prefect server to check as well.")
]
SkippedSpec = Annotated[Path, typer.Argument(help="The release spec that names {period}.")]
SkippedPeriod = Annotated[
    str, typer.Argument(metavar="PERIOD", help="The day, week, month, quarter or year.")
]
RevisingSpec = Annotated[Path, typer.Argument(help="The spec of the newer version.")]
RevisedRelease = Annotated[
    str, typer.Argument(metavar="RELEASE", help="The release whose place it takes.")
]
Reason = Annotated[str, typer.Option(help="Why, in words for the public: the ledger shows it.")]
KeyDays = Annotated[int, typer.Option(min=1, help="Days after which a key should be rotated.")]
Drill = Annotated[
    bool,
    typer.Option(
        "--drill", help="Also rotate the key, and restore from the store, in a private copy."
    ),
]


def catch_up(  # noqa: PLR0913 - one parameter for each option
    specs: opt.Specs,
    out: opt.Out,
    since: opt.Since,
    key: opt.KeyFile = None,
    to: opt.To = None,
    delay_days: opt.DelayDays = 0,
    attempts: opt.Attempts = 3,
    late_days: opt.LateDays = None,
    notify: opt.Notify = None,
    memory_limit: opt.MemoryLimit = None,
    spark: opt.SparkMaster = None,
    jobs: opt.Jobs = None,
    most: Most = None,
    dry_run: DryRun = False,
    as_json: opt.AsJson = False,
) -> None:
    """Release every period that has ended and is not public yet, oldest first.

    For a scheduler of your own, such as a systemd timer; with Prefect: dp-release serve.

    Example: dp-release catch-up nightly.yaml --since 2024-01-01 --out out --key dp.key
    """
    from release.budget.ledger import today
    from release.job import Options
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, release_due
    from release.operate.schedule import periods_of
    from release.tables.duckdb import Engine

    place = opt.place_of(out, key, to)
    schedules = _schedules(specs, since, delay_days, attempts, late_days)
    if dry_run:
        due: list[dict[str, str]] = []
        for schedule in schedules:
            due += map(_period_row, periods_of(schedule, out, today()))
        _print_rows(as_json, due)
        return
    _check_distinct_ids(schedules)
    _tell_due(schedules, out, most, today())
    errors: list[ReleaseError] = []
    outbox = opt.outbox_of(out, notify)
    with progress() as display, opt.fan_out(jobs) as pool:
        engine, cache = Engine(memory_limit, spark=spark), default_cache()
        options = Options(cache=cache, engine=engine, watch=display.watch, fan_out=pool)
        run = Run(place, options, display.perform, default_journal(key), outbox)
        for schedule in schedules:
            try:
                result = release_due(schedule, run, today(), most=most)
            except ReleaseError as error:
                # One spec that cannot be read must not stop the others.
                echo(f"{schedule.spec.name}: {error}")
                errors.append(error)
                continue
            _print_result(schedule, result, as_json)
            if result.error is not None:
                errors.append(result.error)
    # After the loop: the status is that of the last refusal, and every spec had its turn.
    if errors:
        raise errors[-1]


def _schedules(
    specs: list[Path], since: str, delay_days: int, attempts: int = 3, late_days: int | None = None
) -> tuple[Schedule, ...]:
    """A schedule for each spec; the first period is the same."""
    from release.operate.schedule import Schedule
    from release.spec.periods import parse_period

    first = parse_period(since, "--since")
    return tuple(Schedule(spec, first, delay_days, attempts, late_days) for spec in specs)


def _tell_due(
    schedules: Sequence[Schedule], out: Path, most: int | None, day: datetime.date
) -> None:
    """Say how many periods are due, before the first of them is released.

    Raises:
        SpecError: they are many, no ledger counts them, and nobody has said how many to release.
    """
    from release.bundle.publish import LEDGER
    from release.operate.schedule import Became, periods_of

    for schedule in schedules:
        try:
            periods = periods_of(schedule, out, day)
        except ReleaseError:
            # Such a spec is refused at its turn, after the others were released.
            continue
        due = [one.period for one in periods if one.became in (Became.DUE, Became.CUT_OFF)]
        if len(due) < 2:
            continue
        summary = f"{len(due):,} periods are due, from {due[0]} to {due[-1]}"
        if most is None and len(due) > _MOST_UNASKED and not (out / LEDGER).is_dir():
            raise SpecError(
                "--since",
                f"{summary}, and no ledger counts their charges; create one: "
                "dp-release ledger init; or name a later period, or how many to release: --most N",
            )
        part = "" if most is None or most >= len(due) else f"; releasing the first {most:,}"
        echo(f"{schedule.spec.name}: {summary}{part}", err=True)


def _check_distinct_ids(schedules: Sequence[Schedule]) -> None:
    # The second release of an id would count as published, and never be made.
    names: set[str] = set()
    for schedule in schedules:
        try:
            name = schedule.release_ids()(schedule.since)
        except ReleaseError:
            # A spec that cannot be read is refused at its turn, after the others were released.
            continue
        if name in names:
            raise SpecError("SPECS", "two specs give their releases the same ids; change one")
        names.add(name)


def _print_result(schedule: Schedule, result: CaughtUp, as_json: bool) -> None:
    from release.budget.ledger import today

    rows = [{**_period_row(period), "became": "public"} for period in result.released]
    for period, error in result.refused:
        rows.append({**_period_row(period), "became": f"refused: {error}"})
    rows += map(_period_row, result.passed_over)
    if as_json:
        print_json({"spec": schedule.spec.name, "ended": result.ended, "periods": rows})
        return
    _print_rows(False, rows)
    echo(f"{schedule.spec.name}: {result.ended}, {len(result.released)} released")
    if schedule.since.start > today():
        echo(f"{schedule.spec.name}: --since {schedule.since} has not begun; nothing is due before")


def _period_row(period: OnePeriod) -> dict[str, str]:
    return {
        "period": str(period.period),
        "release_id": period.release_id,
        "became": period.became.value,
    }


def _print_rows(as_json: bool, rows: list[dict[str, str]]) -> None:
    if as_json:
        print_json(rows)
        return
    for row in rows:
        echo("  ".join(row.values()))


def deliver(out: opt.Out, to: opt.To = None) -> None:
    """Copy every release of OUT that is not in the store yet, and the ledger, to a store.

    Example: dp-release deliver --out out --to s3://office/releases
    """
    from release.operate.operations import deliver_all

    place = opt.place_of(out, None, to)
    if place.store is None:
        raise SpecError("--to", "the ledger names no store; say where to deliver to")
    names = deliver_all(place)
    for name in names:
        echo(f"delivered  {name}")
    echo(f"{len(names)} delivered")


def restore(out: opt.Out, source: Source = None, trust: opt.CuratorKey = None) -> None:
    """Restore what OUT has lost after a machine was replaced or set back to an older state.

    The auditor's folders are in no store: restore them from a backup of your own. Where OUT has no
    ledger, --trust is your own key: nothing else shows that the ledger in the store is yours.

    Example: dp-release restore --out out --from s3://office/releases
    """
    from release.operate.delivery import restore as restore_from
    from release.records.signing import read_public_key
    from release.records.stores import open_store

    # Without a ledger in OUT nothing but this key shows that the one in the store is yours.
    trusted = None if trust is None else read_public_key(trust)
    store = opt.store_of(out) if source is None else open_store(source, "--from")
    if store is None:
        raise SpecError("--from", "no ledger in OUT names a store; say which one to restore from")
    restored = restore_from(store, out, trusted)
    for name in restored.releases:
        echo(f"restored  {name}")
    count = len(restored.releases)
    echo(f"{restored.entries} entries of the ledger, {count} releases restored")


def recover(
    out: opt.Out,
    key: opt.KeyFile = None,
    abandoned: Abandoned = None,
    notify: opt.Notify = None,
    as_json: opt.AsJson = False,
) -> None:
    """Publish what interrupted runs have staged, and record the rest as given up; draws nothing.

    Runs of other machines are left alone. One that will not end is recorded by --abandon; its
    charge stays, and its period may be released again.

    Example: dp-release recover --out out --key dp.key
    """
    from release.operate.journal import default_journal
    from release.operate.operations import RECOVERED, abandon, recover_and_tell

    if not out.is_dir():
        raise SpecError("--out", f"no folder {out}")
    place = opt.place_of(out, key, None)
    if abandoned is not None:
        stays = abandon(place, abandoned)
        told = "its charge stays" if stays else "it had drawn nothing, and nothing is charged"
        echo(f"{abandoned}: given up; {told}")
        return
    results = recover_and_tell(place, default_journal(key), opt.outbox_of(out, notify))
    _print_rows(as_json, [{"release_id": name, "became": became} for name, became in results])
    if not as_json and not results:
        echo("nothing was left behind")
    if any(became not in RECOVERED for _, became in results):
        raise SpecError("--out", "some runs could not be recovered; see above")


def skip(
    spec: SkippedSpec,
    period: SkippedPeriod,
    reason: Reason,
    out: opt.Out,
    key: opt.SigningKey,
    notify: opt.Notify = None,
) -> None:
    """Record in the ledger that a period will not be released, so that no run waits for it.

    Nothing is charged or given back. A period that is charged already is refused.

    Example: dp-release skip nightly.yaml 2024-03-01 --reason 'no data' --out out --key dp.key
    """
    from release.budget.ledger import Ledger
    from release.bundle.publish import LEDGER
    from release.operate.notices.notice import End, Notice
    from release.operate.schedule import Schedule, skip_period
    from release.records.keys.outside import read_key
    from release.spec.periods import parse_period

    of, ledger = parse_period(period, "PERIOD"), Ledger(out / LEDGER, read_key(key))
    outbox = opt.outbox_of(out, notify)
    name = skip_period(Schedule(spec, of), of, reason, ledger)
    outbox.tell(Notice(End.SKIPPED, name, f"{name} will not be released: {reason}"))
    echo(f"{name}: skipped; nothing is charged, and no run waits for it")


def revise(  # noqa: PLR0913 - one parameter for each option
    spec: RevisingSpec,
    release_id: RevisedRelease,
    reason: Reason,
    out: opt.Out,
    key: opt.SigningKey,
    to: opt.To = None,
    period: opt.PeriodOption = None,
    notify: opt.Notify = None,
) -> None:
    """Publish a newer version of a release, with a charge of its own; the older one stays.

    The newer one is NAME-r2, then NAME-r3. The ledger names it and the reason, and verify tells
    whoever has the ledger. After a crash run it again: nothing is done twice.

    Example: dp-release revise ami.yaml ami --reason 'a meter was wrong' --out out --key dp.key
    """
    from release.job import Options
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, revise_release

    place, outbox = opt.place_of(out, key, to), opt.outbox_of(out, notify)
    with progress() as display:
        options = Options(
            cache=default_cache(), watch=display.watch, period=opt.named_period(period)
        )
        run = Run(place, options, display.perform, default_journal(key), outbox)
        published = revise_release(spec, release_id, reason, run)
    echo(f"{release_id}: revised by {published.public.name}")
    echo(f"report: {published.public / 'report.html'}")


def serve(  # noqa: PLR0913 - one parameter for each option
    specs: opt.Specs,
    out: opt.Out,
    since: opt.Since,
    cron: Cron,
    key: opt.KeyFile = None,
    to: opt.To = None,
    delay_days: opt.DelayDays = 0,
    attempts: opt.Attempts = 3,
    late_days: opt.LateDays = None,
    timezone: Timezone = "UTC",
    notify: opt.Notify = None,
    most: Most = None,
) -> None:
    """Release what is due on a schedule, by Prefect, until this process is ended.

    Each spec is a deployment; PREFECT_API_URL says at which server. In a ledger scope one run is at
    work at a time, and a schedule whose scope has spent its budget is paused. How many periods are
    due is told first; many without a ledger need --most. Each spec is rehearsed first; the terminal
    shows the reason of every failure.

    Example: dp-release serve nightly.yaml --cron '15 3 * * *' --since 2024-01-01 --out out
    """
    # Both are used at each run only: a wrong one is refused here, while somebody is watching.
    opt.place_of(out, key, to)
    day = opt.today_in(timezone)
    schedules = _schedules(specs, since, delay_days, attempts, late_days)
    # A missing extra is told first: without it, nothing that is mended here would help.
    serve_all = _scheduler()
    # Before a server is asked: the first run, in the night, would charge them all.
    _tell_due(schedules, out, most, day)
    # Absolute, because a run of Prefect may start in another working directory.
    parameters = {
        "out": str(out.absolute()),
        "since": str(schedules[0].since),
        "key": None if key is None else str(key.absolute()),
        "to": to,
        "delay_days": delay_days,
        "attempts": attempts,
        "late_days": late_days,
        "notify": None if notify is None else str(notify.absolute()),
        "most": most,
    }
    serve_all(list(map(Path.absolute, specs)), cron, parameters, timezone=timezone)


def _scheduler() -> Callable[..., None]:
    """The function that serves schedules, from the plug-in that is installed."""
    from release.operate.plug_ins import plug_in

    serve_all: Callable[..., None] = plug_in(
        "dp_release.scheduler",
        SpecError("serve", "no scheduler is installed; pip install 'dp-release[flows]'"),
        SpecError("serve", "needs Prefect; pip install 'dp-release[flows]'"),
    )
    return serve_all


def doctor(  # noqa: PLR0913 - one parameter for each option
    out: opt.Out,
    key: opt.KeyFile = None,
    to: opt.To = None,
    specs: ScheduledSpecs = None,
    since: opt.FirstPeriod = None,
    delay_days: opt.DelayDays = 0,
    prefect: PrefectServer = None,
    key_days: KeyDays = 365,
    drill: Drill = False,
    notify: opt.Notify = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check versions, clock, permissions, ledger, releases, keys and budget; changes nothing.

    With a store, a schedule or a Prefect server these too. Exit status 1 where there is a fault.

    Example: dp-release doctor --out out --key dp.key --prefect http://127.0.0.1:4200/api
    """
    from release.operate.doctor import examine
    from release.operate.drills import drills
    from release.operate.findings import Level, findings_of
    from release.operate.prefect_drift import disagreements, orphans

    schedules: tuple[Schedule, ...] = ()
    if specs:
        if since is None:
            raise SpecError("--since", "a schedule has a first period; give it")
        schedules = _schedules(specs, since, delay_days)
    place = opt.place_of(out, key, to)
    findings = [*examine(place, schedules, key_days)]
    # A server that does not answer is a finding too: what was examined is still printed.
    if drill:
        findings += findings_of(lambda: drills(place))
    if prefect:
        findings += findings_of(lambda: disagreements(place, prefect))
        findings += findings_of(orphans)
    rows = []
    for finding in findings:
        level, message = finding.level.value, finding.message
        rows.append({"level": level, "what": finding.what, "told": message})
        if not as_json:
            echo(f"{level:6}{finding.what:12}{message}")
    if as_json:
        print_json(rows)
    _tell_faults(opt.outbox_of(out, notify), findings)
    if any(finding.level is Level.FAULT for finding in findings):
        raise ReleaseError("there are faults; see above")


def _tell_faults(outbox: Outbox, findings: Iterable[Finding]) -> None:
    """Tell of each part of the examination in which there are faults, once until it has none."""
    from release.operate.findings import Level
    from release.operate.notices.notice import End, Notice

    faults: dict[str, str] = {}
    for finding in findings:
        if finding.level is Level.FAULT:
            faults.setdefault(finding.what, finding.message)
    for what in {finding.what for finding in findings} - faults.keys():
        outbox.over({End.FAULT}, what)
    outbox.tell(*(Notice(End.FAULT, what, message) for what, message in faults.items()))
