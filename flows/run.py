"""A release as a Prefect flow: ``python -m flows.run SPEC --out OUT``.

One task a stage, running the functions of ``dp-release run``. Everything that Prefect sees counts
as public: parameters are paths, nothing is persisted, cached or printed into its logs, arguments
bypass it, and results travel sealed, so that it cannot look into them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from flows.artifacts import show_quietly, show_stage
from flows.environment import quiet_flow, set_environment
from release.cli.console import guarded, is_worth_a_line, print_verdict
from release.cli.options import place_of
from release.errors import ReleaseError, StorageError
from release.exact.numbers import exact
from release.job import Job, Options, Published, Stage
from release.noise.cache import default_cache
from release.operate.journal import default_journal
from release.operate.operations import Run, release_period

T = TypeVar("T")


class Sealed:
    """Carries a value past the orchestrator, which sees an opaque object."""

    # Without a __dict__ to visit, and with a representation that may be logged.
    __slots__ = ("content",)

    def __init__(self, content: object) -> None:
        self.content = content

    def __repr__(self) -> str:
        return "Sealed"


class Tasks:
    """Runs each stage of one release as a Prefect task, after a line of progress.

    Each task waits for the one before, so that the page of a run shows the street. Each has an
    artifact of what is public by then (:mod:`flows.artifacts`).
    """

    def __init__(self) -> None:
        self._last: State[Any] | None = None

    def __call__(self, stage: Stage, job: Job) -> None:
        """Perform a stage.

        Raises:
            ReleaseError: as :func:`run_sealed`.
        """
        # Printed, because people run the flow too, and Prefect's log is silenced.
        print(f"  {stage.sentence}", flush=True)  # noqa: T201 - as said
        before = () if self._last is None else (self._last,)

        def perform_and_show() -> None:
            stage.does(job)
            show_stage(stage, job)

        self._last, _ = _run_sealed(stage.name, perform_and_show, before)


RETRIED = frozenset({"load", "confirm", "deliver"})
"""The tasks that Prefect runs again when they fail: they read, or put what is not there yet."""
RETRIES, RETRY_SECONDS = 2, 5


def run_sealed(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function as a Prefect task that sees neither its arguments nor its result.

    Raises:
        ReleaseError: the function refused, or failed; a foreign exception is named by type only.
    """
    # Arguments come by closure: Prefect inspects those of a task, and tracks them by address.
    return _run_sealed(name, partial(function, *arguments))[1]


def _run_sealed(
    name: str,
    function: Callable[[], T],
    before: tuple[State[Any], ...] = (),
) -> tuple[State[Any], T]:
    """The final state of the task, and the result."""

    def stage() -> Sealed:
        try:
            return Sealed(function())
        except ReleaseError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ReleaseError(f"internal error in stage {name} ({kind})") from None

    run = task(
        name=name,
        # A retry around the draw would draw twice on one charge.
        retries=RETRIES if name in RETRIED else 0,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=_may_pass,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )(stage)
    state = run(return_state=True, wait_for=list(before))
    return state, cast("T", state.result().content)


def _may_pass(task: Any, run: Any, state: State[Any]) -> bool:
    """Whether a failure may be over in some seconds: a store or a disk that does not answer."""
    return isinstance(state.result(raise_on_failure=False), StorageError)


def watch(index: int, total: int, query: str) -> None:
    """Print a line of progress for each query, or for a sample of very many."""
    if is_worth_a_line(index, total):
        print(f"    {query} ({index + 1} of {total})", flush=True)  # noqa: T201 - as above


@quiet_flow(name="dp-release")
def release_flow(
    spec: str, out: str, accept_gap: str = "0.000001", key: str | None = None
) -> Sealed:
    """Run the release of ``spec`` into the folder ``out``; ``key`` is a file too."""
    set_environment()
    signing = None if key is None else Path(key)
    options = Options(exact("--accept-gap", accept_gap), default_cache(), watch=watch)
    journal = default_journal(signing, flow_run.get_id())
    run = Run(place_of(Path(out), signing, None), options, Tasks(), journal)
    published = release_period(Path(spec), None, run)
    show_quietly(published.public, Path(out))
    return Sealed(published)


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as those of ``dp-release run``."""
    parser = argparse.ArgumentParser(prog="python -m flows.run", description=__doc__)
    parser.add_argument("spec", help="the release spec, a YAML file")
    parser.add_argument("--out", required=True, help="the folder that holds the releases")
    parser.add_argument("--accept-gap", default="0.000001", help="as of dp-release run")
    parser.add_argument("--key", default=os.environ.get("DP_RELEASE_KEY"), help="as above")
    words = parser.parse_args(arguments)

    def action() -> int:
        set_environment()
        print(f"Running {words.spec} as a Prefect flow, one task a stage:")  # noqa: T201 - for people
        try:
            sealed = release_flow(words.spec, words.out, words.accept_gap, words.key)
        except RuntimeError as error:
            # What fails in a stage comes as our own error: this is Prefect's.
            raise ReleaseError(
                "Prefect's server does not start or does not answer; see PREFECT_API_URL, "
                "or run it without Prefect: dp-release run"
            ) from error
        published = cast("Published", sealed.content)
        if published.verdict is not None:
            print_verdict(published.verdict)
        print(f"report: {published.public / 'report.html'}")  # noqa: T201 - for people
        return 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
