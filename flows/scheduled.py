"""Scheduled releases with Prefect: one flow run a night, and in it one for each due period.

Prefect decides when to run and shows the runs; the ledger and the folders are authoritative
(:mod:`release.operate.prefect_drift` compares the two). Parameters are paths, a period and
addresses, never a value. A refusal ends a run as a state with our own line: an exception would
bring its traceback, which may quote values, into Prefect's log.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency
from prefect.exceptions import PrefectHTTPStatusError
from prefect.runtime import deployment
from prefect.states import Cancelled, Completed, Failed
from pydantic import Field, StringConstraints

from dp_release_verify.digests import sha256
from flows.artifacts import show_quietly
from flows.environment import quiet_flow, set_environment
from flows.run import Tasks, watch
from flows.server import server_down, watched_server
from release.cli.console import one_line
from release.cli.options import outbox_of, place_of, today_in
from release.errors import ReleaseError, SpecError
from release.job import Options
from release.noise.cache import default_cache
from release.operate.catching_up import Ended
from release.operate.journal import default_journal
from release.operate.notices.notice import End, Notice, refusal
from release.operate.notices.outbox import Outbox, outbox
from release.operate.operations import Place, Run, recover_and_tell, release_due, release_period
from release.operate.rehearsal.schedules import rehearsal_lines
from release.operate.schedule import ATTEMPTS, OnePeriod, Schedule
from release.queries.read import parse_spec
from release.spec.load import read_text
from release.spec.periods import PERIOD_PATTERN, filled, parse_period

PeriodName = Annotated[str, StringConstraints(pattern=PERIOD_PATTERN)]
BUDGET_SPENT = "BudgetSpent"
"""The name of the final state of a run whose scope cannot pay for another release."""


def scope_of(spec: Path, since: str) -> str:
    """The ledger scope that pays for the releases of a spec template.

    Raises:
        SpecError: the template is no spec.
    """
    return parse_spec(filled(read_text(spec), parse_period(since, "since"))).budget.scope


def limit_of(scope: str) -> str:
    """The name of the concurrency limit of a ledger scope."""
    return f"dp-release.{scope}"


# They bypass Prefect, which would keep an exception and its traceback.
_errors: list[ReleaseError] = []
"""The error of the last period's flow run, if it failed."""


@quiet_flow(name="dp-release-period", flow_run_name="{period}", validate_parameters=True)
def period_flow(
    spec: Path,
    out: Path,
    period: PeriodName,
    key: Path | None = None,
    to: str | None = None,
    release_id: str | None = None,
) -> State[None]:
    """Release one period of a spec template and deliver it; ``release_id`` is only recorded."""
    set_environment()
    _errors.clear()
    options = Options(cache=default_cache(), watch=watch)
    try:
        run = Run(place_of(out, key, to), options, Tasks(), default_journal(key))
        published = release_period(spec, parse_period(period), run)
        show_quietly(published.public, out)
    except ReleaseError as error:
        _errors.append(error)
        return _failed(spec, period, error)
    except Exception as error:
        _errors.append(ReleaseError(f"internal error ({type(error).__name__})"))
        return _failed(spec, period, error)
    return Completed(message=f"{published.public.name} is public")


def _failed(spec: Path, period: str, error: Exception) -> State[None]:
    """A failed state with our own line, which the terminal shows too."""
    # Prefect's own log is silenced, and its state is seen on the server only.
    tell_terminal(f"{spec.name}: {period}: {one_line(error)}")
    return Failed(message=one_line(error))


def tell_terminal(line: str) -> None:
    """Show one line of ours to whoever started this process."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - as said


def roll_back(flow: Any, flow_run: Any, state: Any) -> None:
    """Recover what a run left: publish what is staged, abort the rest in the ledger.

    The process that watches the run calls this, so it also happens after a kill of the run. A run
    that was not killed has told how it ended, and what this tells again is not sent again.
    """
    parameters = flow_run.parameters
    # No traceback may reach Prefect's log; what fails here is recovered by the next run.
    with suppress(Exception):
        key = parameters.get("key") or os.environ.get("DP_RELEASE_KEY")
        place = Place(Path(parameters["out"]), None if key is None else Path(key))
        own = _outbox(place.out, parameters.get("notify"))
        recovered = recover_and_tell(place, default_journal(place.key), own)
        if own is not None and not recovered and state.is_crashed():
            name = Path(parameters["spec"]).name
            own.tell(Notice(End.CRASHED, name, occasion=str(flow_run.id)))


def _outbox(out: Path, notify: str | Path | None) -> Outbox | None:
    """What tells people; None where they cannot be told, which stops no release."""
    try:
        return outbox(out, None if notify is None else Path(notify), tell_terminal)
    except ReleaseError as error:
        tell_terminal(one_line(error))
        return None


@quiet_flow(
    name="dp-release-scheduled",
    validate_parameters=True,
    on_failure=[roll_back],
    on_crashed=[roll_back],
    on_cancellation=[roll_back],
)
def scheduled_flow(  # noqa: PLR0913 - one for each thing that a schedule has
    spec: Path,
    out: Path,
    since: PeriodName,
    key: Path | None = None,
    to: str | None = None,
    delay_days: Annotated[int, Field(ge=0)] = 0,
    attempts: Annotated[int, Field(ge=1)] = ATTEMPTS,
    late_days: Annotated[int, Field(ge=0)] | None = None,
    timezone: str = "UTC",
    notify: Path | None = None,
    most: Annotated[int, Field(ge=1)] | None = None,
) -> State[None]:
    """Release every period that is due, or the ``most`` oldest; one run at a time in a scope."""
    set_environment()
    told = _outbox(out, notify)
    try:
        schedule = Schedule(spec, parse_period(since, "since"), delay_days, attempts, late_days)
        scope = scope_of(spec, since)
        run = Run(place_of(out, key, to), journal=default_journal(key), outbox=told)
        # Again, though serving made them: a server that lost its database has none.
        ensure_limits({scope})
        # The slot of a killed run becomes free when its lease ends.
        with concurrency(limit_of(scope), occupy=1, lease_duration=60):

            def release_one(due: OnePeriod) -> None:
                names = {"period": str(due.period), "release_id": due.release_id}
                # As a state, because a failed run would otherwise raise an exception of Prefect's.
                period_flow(spec, out, key=key, to=to, **names, return_state=True)
                if _errors:
                    raise _errors[0]

            result = release_due(schedule, run, today_in(timezone), release_one, most=most)
    except Exception as error:
        if told is not None:
            told.tell(_trouble(spec, error))
        return _failed(spec, "schedule", error)
    summary = f"{len(result.released)} released, {len(result.refused)} refused"
    reason = "" if result.error is None else one_line(result.error)
    if result.ended is Ended.BUDGET_SPENT:
        pause = "; its schedule is paused" if _pause() else ""
        tell_terminal(f"{spec.name}: {summary}{pause}")
        return Cancelled(name=BUDGET_SPENT, message=f"{summary}{pause}: {reason}")
    tell_terminal(f"{spec.name}: {summary}")
    if result.error is not None:
        return Failed(message=f"{summary}: {reason}")
    return Completed(message=summary)


def _trouble(spec: Path, error: Exception) -> Notice:
    """The notice of an error around the releases of a schedule."""
    if isinstance(error, ReleaseError):
        return refusal(error, spec.name)
    if isinstance(error, httpx.TransportError | PrefectHTTPStatusError):
        return server_down()
    return Notice(End.REFUSED, spec.name, one_line(error))


def _pause() -> bool:
    """Pause the schedule of this run's deployment; False if the run has no deployment."""
    if deployment.id is None:
        return False
    with get_client(sync_client=True) as client:
        client.pause_deployment(deployment.id)
    return True


def serve_all(specs: list[Path], cron: str, parameters: dict[str, Any], *, timezone: str) -> None:
    """Register a deployment for each spec, and run them in this process until it ends."""
    set_environment()
    # Imported here: flows without a schedule do without these modules.
    from prefect import serve
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    deployments: list[Any] = []
    scopes = {scope_of(spec, parameters["since"]) for spec in specs}
    try:
        schedule = Cron(cron, timezone=timezone)
    except ValueError as error:
        raise SpecError(
            "--cron", f"{cron!r} is no cron expression; write one such as '15 3 * * *'"
        ) from error
    try:
        ensure_limits(scopes)
    except Exception as error:
        kind = type(error).__name__
        raise SpecError("PREFECT_API_URL", f"no Prefect server answers there ({kind})") from None
    notify = parameters.get("notify")
    # Now, while somebody is watching, and not in the night in which it is needed.
    outbox = outbox_of(Path(parameters["out"]), None if notify is None else Path(notify))
    for spec in specs:
        own = {**parameters, "spec": str(spec), "timezone": timezone}
        deployments.append(
            scheduled_flow.to_deployment(
                name=deployment_name(spec, parameters["out"]),
                parameters=own,
                schedule=schedule,
                concurrency_limit=ConcurrencyLimitConfig(
                    limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE
                ),
                tags=["dp-release"],
                entrypoint_type=EntrypointType.MODULE_PATH,
            )
        )
    _rehearse(specs, parameters, timezone)
    with watched_server(outbox):
        serve(*deployments)


def _rehearse(specs: list[Path], parameters: dict[str, Any], timezone: str) -> None:
    """Rehearse the oldest due period of each spec, while somebody is watching."""
    first = parse_period(parameters["since"], "since")
    for spec in specs:
        schedule = Schedule(spec, first, parameters["delay_days"])
        # What a rehearsal finds stops no schedule: a table may come later.
        try:
            out, today = Path(parameters["out"]), today_in(timezone)
            for line in rehearsal_lines(schedule, out, today, default_cache()):
                tell_terminal(line)
        except Exception as error:
            tell_terminal(f"{spec.name}: {one_line(error)}")


def deployment_name(spec: Path, out: str) -> str:
    """A name for each spec and output folder, distinct even where two specs share a name."""
    return f"{spec.stem}-{sha256(repr((str(spec), out)).encode())[:8]}"


def ensure_limits(scopes: set[str]) -> None:
    """Limit each ledger scope to one run at a time, across all deployments."""
    with get_client(sync_client=True) as client:
        for scope in sorted(scopes):
            client.upsert_global_concurrency_limit_by_name(limit_of(scope), 1)
