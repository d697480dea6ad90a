"""A release as a Prefect flow: ``python -m flows.release SPEC --out OUT``.

One task a stage, the same functions as ``dp-release run``. What Prefect may know is treated as
public: parameters are two paths, results are not persisted, nothing is cached, nothing is printed
into its logs, arguments pass it by and results travel sealed, so that it cannot look into them. No
task is retried: a retry around the draw would draw twice.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from release.cli.console import STAGES, guarded, is_worth_a_line, print_verdict
from release.cli.options import parse_gap
from release.errors import ReleaseError
from release.noise.cache import default_cache
from release.pipeline import Options, Published, run_release

T = TypeVar("T")


class Sealed:
    """Carries values past the orchestrator: it sees an opaque object without a telling name."""

    __slots__ = ("content",)

    def __init__(self, content: object) -> None:
        self.content = content

    def __repr__(self) -> str:
        return "Sealed"


def as_task(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run one stage as a Prefect task, and say so.

    Raises:
        ReleaseError: as :func:`run_sealed`.
    """
    # A progress line rather than Prefect's log: the flow is run by people too.
    print(f"  {STAGES[name]}", flush=True)  # noqa: T201 - as said
    return run_sealed(name, function, *arguments)


def run_sealed(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function as a Prefect task that is not retried and sees neither arguments nor result.

    Raises:
        ReleaseError: the function refused, or failed; a foreign exception is told by type only.
    """

    def stage() -> Sealed:
        # Arguments come by closure. Those of a task Prefect looks at, and follows by their address.
        try:
            return Sealed(function(*arguments))
        except ReleaseError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ReleaseError(f"internal error in stage {name} ({kind})") from None

    run = task(
        name=name,
        retries=0,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )(stage)
    return cast("T", run().content)


def watch(done: int, total: int, query: str) -> None:
    """A progress line for each query, or for some of very many."""
    if is_worth_a_line(done, total):
        print(f"    {query} ({done + 1} of {total})", flush=True)  # noqa: T201 - as above


@flow(name="dp-release", persist_result=False, retries=0, log_prints=False)
def release_flow(
    spec: str, out: str, accept_gap: str = "0.000001", key: str | None = None
) -> Sealed:
    """Run the release that ``spec`` describes into the folder ``out``; ``key`` is a file's name."""
    signing = None if key is None else Path(key)
    options = Options(parse_gap(accept_gap), default_cache(), watch=watch, key=signing)
    return Sealed(run_release(Path(spec), Path(out), as_task, options=options))


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as those of ``dp-release run``."""
    parser = argparse.ArgumentParser(prog="python -m flows.release", description=__doc__)
    parser.add_argument("spec", help="the release spec, a YAML file")
    parser.add_argument("--out", required=True, help="the folder that holds the releases")
    parser.add_argument("--accept-gap", default="0.000001", help="as of dp-release run")
    parser.add_argument("--key", default=os.environ.get("DP_RELEASE_KEY"), help="as above")
    given = parser.parse_args(arguments)

    def action() -> int:
        print(f"Running {given.spec} as a Prefect flow, one task a stage:")  # noqa: T201 - for people
        done = release_flow(given.spec, given.out, given.accept_gap, given.key)
        published = cast("Published", done.content)
        if published.verdict is not None:
            print_verdict(published.verdict)
        print(f"report: {published.public / 'report.html'}")  # noqa: T201 - for people
        return 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
