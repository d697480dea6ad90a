"""Scheduled releases with Prefect: one flow run a night, and in it one for each due period.

Prefect decides when to run and shows the runs; the ledger and the folders are authoritative
(:mod:`release.operate.prefect_drift` compares the two). Parameters are paths, a period and
addresses, never a value. A refusal ends a run as a state with our own line: an exception would
bring its traceback, which may quote values, into Prefect's log.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency
from prefect.runtime import deployment
from prefect.states import Cancelled, Completed, Failed
from pydantic import Field, StringConstraints

from flows.artifacts import show_quietly
from flows.release import as_task, watch
from release.cli.console import one_line
from release.cli.options import place_of, today_in
from release.errors import ReleaseError, SpecError
from release.noise.cache import default_cache
from release.operate.journal import default_journal
from release.operate.operations import Place, Run, recover_and_tell, release_due, release_period
from release.operate.schedule import ATTEMPTS, Ended, OnePeriod, Schedule
from release.pipeline import Options
from release.queries.read import parse_spec
from release.records.hashes import sha256
from release.spec.load import read_text
from release.spec.periods import PERIOD_PATTERN, filled, parse_period

PeriodName = Annotated[str, StringConstraints(pattern=PERIOD_PATTERN)]
BUDGET_SPENT = "BudgetSpent"
"""The name of the final state of a run whose scope cannot pay for another release."""

_QUIET: dict[str, Any] = {"persist_result": False, "retries": 0, "log_prints": False}


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


@flow(name="dp-release-period", flow_run_name="{period}", validate_parameters=True, **_QUIET)
def period_flow(
    spec: Path,
    out: Path,
    period: PeriodName,
    key: Path | None = None,
    to: str | None = None,
    release_id: str | None = None,
) -> State[None]:
    """Release one period of a spec template and deliver it; ``release_id`` is only recorded."""
    _errors.clear()
    options = Options(cache=default_cache(), watch=watch)
    try:
        run = Run(place_of(out, key, to), options, as_task, default_journal())
        published = release_period(spec, parse_period(period), run)
        show_quietly(published.public, out)
    except ReleaseError as error:
        _errors.append(error)
        return Failed(message=one_line(error))
    except Exception as error:
        _errors.append(ReleaseError(f"internal error ({type(error).__name__})"))
        return Failed(message=one_line(error))
    return Completed(message=f"{published.public.name} is public")


def roll_back(flow: Any, flow_run: Any, state: Any) -> None:
    """Recover what a run left: publish what is staged, abort the rest in the ledger.

    The process that watches the run calls this, so it also happens after a kill of the run.
    """
    parameters = flow_run.parameters
    # No traceback may reach Prefect's log; what fails here is recovered by the next run.
    with suppress(Exception):
        key = parameters.get("key") or os.environ.get("DP_RELEASE_KEY")
        place = Place(Path(parameters["out"]), None if key is None else Path(key))
        recover_and_tell(place, default_journal())


def tell_people(flow: Any, flow_run: Any, state: Any) -> None:
    """Send the spec's name, the state and its message through the block in the parameters."""
    block = flow_run.parameters.get("notify")
    if block is None:
        return
    with suppress(Exception):
        from prefect.blocks.core import Block

        notifier: Any = Block.load(block)
        spec = Path(flow_run.parameters["spec"]).name
        notifier.notify(f"{spec}: {state.name}. {state.message or ''}".strip(), "dp-release")


@flow(
    name="dp-release-scheduled",
    validate_parameters=True,
    on_failure=[roll_back, tell_people],
    on_crashed=[roll_back, tell_people],
    on_cancellation=[roll_back, tell_people],
    **_QUIET,
)
def scheduled_flow(  # noqa: PLR0913 - one for each thing that a schedule has
    spec: Path,
    out: Path,
    since: PeriodName,
    key: Path | None = None,
    to: str | None = None,
    delay_days: Annotated[int, Field(ge=0)] = 0,
    attempts: Annotated[int, Field(ge=1)] = ATTEMPTS,
    timezone: str = "UTC",
    notify: str | None = None,
) -> State[None]:
    """Release every period that is due, oldest first; one run at a time in a ledger scope."""
    try:
        schedule = Schedule(spec, parse_period(since, "since"), delay_days, attempts)
        scope = scope_of(spec, since)
        run = Run(place_of(out, key, to), journal=default_journal())
        ensure_limits({scope})
        # The slot of a killed run becomes free when its lease ends.
        with concurrency(limit_of(scope), occupy=1, lease_duration=60):

            def release_one(due: OnePeriod) -> None:
                names = {"period": str(due.period), "release_id": due.release_id}
                # As a state, because a failed run would otherwise raise an exception of Prefect's.
                period_flow(spec, out, key=key, to=to, **names, return_state=True)
                if _errors:
                    raise _errors[0]

            result = release_due(schedule, run, today_in(timezone), release_one)
    except Exception as error:
        return Failed(message=one_line(error))
    summary = f"{len(result.released)} released, {len(result.refused)} refused"
    reason = "" if result.error is None else one_line(result.error)
    if result.ended is Ended.BUDGET_SPENT:
        pause = "; its schedule is paused" if _pause() else ""
        return Cancelled(name=BUDGET_SPENT, message=f"{summary}{pause}: {reason}")
    if result.error is not None:
        return Failed(message=f"{summary}: {reason}")
    return Completed(message=summary)


def _pause() -> bool:
    """Pause the schedule of this run's deployment; False if the run has no deployment."""
    if deployment.id is None:
        return False
    with get_client(sync_client=True) as client:
        client.pause_deployment(deployment.id)
    return True


def serve_all(specs: list[Path], cron: str, parameters: dict[str, Any], *, timezone: str) -> None:
    """Register a deployment for each spec, and run them in this process until it ends."""
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
    _check_notifier(parameters.get("notify"))
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
                # Loading by path would put this folder first, whose release.py hides the package.
                entrypoint_type=EntrypointType.MODULE_PATH,
            )
        )
    serve(*deployments)


def _check_notifier(block: str | None) -> None:
    """Check the notification block now, not in the night in which it is needed."""
    if block is None:
        return
    from prefect.blocks.core import Block

    try:
        notifier: Any = Block.load(block)
    except ValueError:
        raise SpecError(
            "--notify", f"the server has no block {block!r}; prefect block ls"
        ) from None
    if not callable(getattr(notifier, "notify", None)):
        raise SpecError("--notify", f"the block {block!r} cannot notify; name a notification block")


def deployment_name(spec: Path, out: str) -> str:
    """A name for each spec and output folder, distinct even where two specs share a name."""
    return f"{spec.stem}-{sha256(repr((str(spec), out)).encode())[:8]}"


def ensure_limits(scopes: set[str]) -> None:
    """Limit each ledger scope to one run at a time, across all deployments."""
    with get_client(sync_client=True) as client:
        for scope in sorted(scopes):
            client.upsert_global_concurrency_limit_by_name(limit_of(scope), 1)
