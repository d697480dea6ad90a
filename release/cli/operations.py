"""``dp-release catch-up``, ``deliver``, ``restore``, ``recover``: the daily life of releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli.options import (
    AsJson,
    Attempts,
    DelayDays,
    Jobs,
    KeyFile,
    Out,
    Since,
    SparkMaster,
    Specs,
    To,
    fan_out,
    place_of,
    today_in,
)
from release.errors import ReleaseError, SpecError

if TYPE_CHECKING:
    from release.operate.schedule import CaughtUp, OnePeriod, Schedule


def catch_up(  # noqa: PLR0913 - one for each thing that a schedule has
    specs: Specs,
    out: Out,
    since: Since,
    key: KeyFile = None,
    to: To = None,
    delay_days: DelayDays = 0,
    attempts: Attempts = 3,
    memory_limit: Annotated[
        str | None, typer.Option(help="What the engine may hold in memory, such as 2GB.")
    ] = None,
    spark: SparkMaster = None,
    jobs: Jobs = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is due; release nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Release every period that has ended and is not public yet, oldest first.

    For a scheduler of your own, such as a systemd timer; with Prefect: dp-release serve.

    Example: dp-release catch-up nightly.yaml --since 2024-01-01 --out out --key dp.key
    """
    from release.budget.ledger import today
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, release_due
    from release.operate.schedule import Schedule, periods_of
    from release.pipeline import Options
    from release.spec.periods import parse_period
    from release.tables.duckdb import Engine

    place, first = place_of(out, key, to), parse_period(since, "--since")
    schedules = [Schedule(spec, first, delay_days, attempts) for spec in specs]
    if dry_run:
        found = [one for schedule in schedules for one in periods_of(schedule, out, today())]
        _show(as_json, [_plain(one) for one in found])
        return
    named = [name for one in schedules if (name := _first_id(one)) is not None]
    if len(set(named)) < len(named):
        raise SpecError("SPECS", "two specs give their releases the same ids; rename one's")
    refused: list[ReleaseError] = []
    with fan_out(jobs) as elsewhere:
        engine = Engine(memory_limit, spark=spark)
        options = Options(cache=default_cache(), engine=engine, fan_out=elsewhere)
        run = Run(place, options, journal=default_journal())
        for schedule in schedules:
            try:
                done = release_due(schedule, run, today())
            except ReleaseError as error:
                # One spec that cannot be read must not stop the others.
                typer.echo(f"{schedule.spec.name}: {error}")
                refused.append(error)
                continue
            _tell(schedule, done, as_json)
            refused += [done.error] if done.error is not None else []
    if refused:
        raise refused[-1]


def _first_id(schedule: Schedule) -> str | None:
    """The id of a schedule's first release, or None where its spec cannot be read."""
    try:
        return schedule.release_ids()(schedule.since)
    except ReleaseError:
        return None


def _tell(schedule: Schedule, done: CaughtUp, as_json: bool) -> None:
    rows = [_plain(one) | {"became": "public"} for one in done.released]
    rows += [_plain(one) | {"became": f"refused: {error}"} for one, error in done.refused]
    rows += [_plain(one) for one in done.passed_over]
    if as_json:
        typer.echo(json.dumps({"spec": schedule.spec.name, "ended": done.ended, "periods": rows}))
        return
    _show(False, rows)
    typer.echo(f"{schedule.spec.name}: {done.ended}, {len(done.released)} released")


def _plain(one: OnePeriod) -> dict[str, str]:
    return {"period": str(one.period), "release_id": one.release_id, "became": one.became.value}


def _show(as_json: bool, rows: list[dict[str, str]]) -> None:
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        typer.echo("  ".join(row.values()))


def deliver(out: Out, to: str = typer.Option(help="The store: a folder, s3://…, …")) -> None:
    """Copy every release of OUT that is not in the store yet, and the ledger, to a store.

    Example: dp-release deliver --out out --to s3://office/releases
    """
    from release.operate.operations import deliver_all

    done = deliver_all(place_of(out, None, to))
    typer.echo("\n".join([*(f"delivered  {name}" for name in done), f"{len(done)} delivered"]))


def restore(
    out: Out,
    source: Annotated[str, typer.Option("--from", help="The store that releases went to.")],
    trust: Annotated[
        str | None, typer.Option(help="Your public key, where OUT has no ledger at all.")
    ] = None,
) -> None:
    """Bring back what OUT has lost, after a machine was put back in time or replaced.

    The auditor bundles are in no store: bring them back from a backup of your own.

    Example: dp-release restore --out out --from s3://office/releases
    """
    from release.operate.delivery import restore as bring_back
    from release.records.signing import read_public_key
    from release.tables.stores import open_store

    trusted = None if trust is None else read_public_key(trust)
    found = bring_back(open_store(source, "--from"), out, trusted)
    for name in found.releases:
        typer.echo(f"restored  {name}")
    typer.echo(f"{found.entries} entries of the ledger, {len(found.releases)} releases restored")


def recover(out: Out, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Finish what interrupted runs have staged, and give up the rest in the open; draws nothing.

    Example: dp-release recover --out out --key dp.key
    """
    from release.operate.operations import RECOVERED, recover_all

    if not out.is_dir():
        raise SpecError("--out", f"no folder {out}")
    found = recover_all(place_of(out, key, None))
    rows: list[dict[str, Any]] = [{"release_id": name, "became": became} for name, became in found]
    _show(as_json, rows)
    if not as_json and not rows:
        typer.echo("nothing was left behind")
    if any(became not in RECOVERED for _, became in found):
        raise SpecError("--out", "some runs could not be recovered; see above")


def serve(  # noqa: PLR0913 - one for each thing that a schedule has
    specs: Specs,
    out: Out,
    since: Since,
    cron: Annotated[str, typer.Option(help="When to look for due periods, such as '15 3 * * *'.")],
    key: KeyFile = None,
    to: To = None,
    delay_days: DelayDays = 0,
    attempts: Attempts = 3,
    timezone: Annotated[
        str, typer.Option(help="Of --cron, and of the days on which periods end.")
    ] = "UTC",
    notify: Annotated[
        str | None,
        typer.Option(help="A Prefect notification block, such as slack-webhook/ops."),
    ] = None,
) -> None:
    """Release what is due on a schedule, by Prefect, until this process is ended.

    Each spec is a deployment; PREFECT_API_URL says at which server. In a ledger scope one run is at
    work at a time, and a schedule whose scope has spent its budget is paused.

    Example: dp-release serve nightly.yaml --cron '15 3 * * *' --since 2024-01-01 --out out
    """
    from release.spec.periods import parse_period

    place_of(out, key, to)
    today_in(timezone)
    given = {
        "out": str(out.absolute()),
        "since": str(parse_period(since, "--since")),
        "key": None if key is None else str(key.absolute()),
        "to": to,
        "delay_days": delay_days,
        "attempts": attempts,
        "notify": notify,
    }
    _scheduler()([spec.absolute() for spec in specs], cron, given, timezone=timezone)


def _scheduler() -> Callable[..., None]:
    """What serves schedules: the plug-in that is installed, for the package knows none by itself.

    Raises:
        SpecError: there is none, or its library is missing.
    """
    from importlib.metadata import entry_points

    for plug in entry_points(group="dp_release.scheduler"):
        try:
            serve_all: Callable[..., None] = plug.load()
        except ImportError as error:
            raise SpecError("serve", "needs Prefect; pip install 'dp-release[flows]'") from error
        return serve_all
    raise SpecError("serve", "no scheduler is installed; pip install 'dp-release[flows]'")


def doctor(  # noqa: PLR0913 - one for each thing to look at
    out: Out,
    key: KeyFile = None,
    to: To = None,
    specs: Annotated[
        list[Path] | None, typer.Option("--spec", help="A scheduled spec; with --since.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="The first period of the schedule.")
    ] = None,
    delay_days: DelayDays = 0,
    prefect: Annotated[
        str | None,
        typer.Option(
            envvar="PREFECT_API_URL", help="A Prefect server: what it believes and is not so."
        ),
    ] = None,
    key_days: Annotated[
        int, typer.Option(min=1, help="Days after which a key should be rotated.")
    ] = 365,
    as_json: AsJson = False,
) -> None:
    """Look whether all is well: versions, clock, permissions, ledger, releases, keys, budget.

    With a store, a schedule or a Prefect server these too. Nothing is changed. Exit status 1 where
    there is a fault.

    Example: dp-release doctor --out out --key dp.key --prefect http://127.0.0.1:4200/api
    """
    from release.operate.doctor import examine
    from release.operate.findings import Level, findings_of
    from release.operate.prefect_drift import disagreements, orphans
    from release.operate.schedule import Schedule
    from release.spec.periods import parse_period

    if specs and since is None:
        raise SpecError("--since", "a schedule has a first period; give it")
    schedules = tuple(
        Schedule(spec, parse_period(since or "", "--since"), delay_days) for spec in specs or ()
    )
    place = place_of(out, key, to)
    found = [*examine(place, schedules, key_days)]
    if prefect:
        found += findings_of(lambda: disagreements(place, prefect))
        found += findings_of(orphans)
    rows = [{"level": one.level.value, "what": one.what, "told": one.message} for one in found]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for row in rows:
            typer.echo(f"{row['level']:6}{row['what']:12}{row['told']}")
    if any(one.level is Level.FAULT for one in found):
        raise ReleaseError("there are faults; see above")
