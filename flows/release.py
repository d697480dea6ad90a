"""A release as a Prefect flow: ``python -m flows.release SPEC --out OUT``.

One task a stage, running the functions of ``dp-release run``. Everything that Prefect sees counts
as public: parameters are paths, nothing is persisted, cached or printed into its logs, arguments
bypass it, and results travel sealed, so that it cannot look into them.
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
from release.errors import ReleaseError
from release.exact.numbers import exact
from release.noise.cache import default_cache
from release.pipeline import Options, Published, run_release

T = TypeVar("T")


class Sealed:
    """Carries a value past the orchestrator, which sees an opaque object."""

    # Without a __dict__ to visit, and with a representation that may be logged.
    __slots__ = ("content",)

    def __init__(self, content: object) -> None:
        self.content = content

    def __repr__(self) -> str:
        return "Sealed"


def as_task(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run one stage as a Prefect task, after a line of progress.

    Raises:
        ReleaseError: as :func:`run_sealed`.
    """
    # Printed, because people run the flow too, and Prefect's log is silenced.
    print(f"  {STAGES[name]}", flush=True)  # noqa: T201 - as said
    return run_sealed(name, function, *arguments)


def run_sealed(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function as a Prefect task that sees neither its arguments nor its result.

    Raises:
        ReleaseError: the function refused, or failed; a foreign exception is named by type only.
    """

    def stage() -> Sealed:
        # Arguments come by closure: Prefect inspects those of a task, and tracks them by address.
        try:
            return Sealed(function(*arguments))
        except ReleaseError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ReleaseError(f"internal error in stage {name} ({kind})") from None

    run = task(
        name=name,
        # A retry around the draw would draw twice on one charge.
        retries=0,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )(stage)
    return cast("T", run().content)


def watch(index: int, total: int, query: str) -> None:
    """Print a line of progress for each query, or for a sample of very many."""
    if is_worth_a_line(index, total):
        print(f"    {query} ({index + 1} of {total})", flush=True)  # noqa: T201 - as above


@flow(name="dp-release", persist_result=False, retries=0, log_prints=False)
def release_flow(
    spec: str, out: str, accept_gap: str = "0.000001", key: str | None = None
) -> Sealed:
    """Run the release of ``spec`` into the folder ``out``; ``key`` is a file too."""
    signing = None if key is None else Path(key)
    options = Options(exact("--accept-gap", accept_gap), default_cache(), watch=watch, key=signing)
    return Sealed(run_release(Path(spec), Path(out), as_task, options=options))


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as those of ``dp-release run``."""
    parser = argparse.ArgumentParser(prog="python -m flows.release", description=__doc__)
    parser.add_argument("spec", help="the release spec, a YAML file")
    parser.add_argument("--out", required=True, help="the folder that holds the releases")
    parser.add_argument("--accept-gap", default="0.000001", help="as of dp-release run")
    parser.add_argument("--key", default=os.environ.get("DP_RELEASE_KEY"), help="as above")
    words = parser.parse_args(arguments)

    def action() -> int:
        print(f"Running {words.spec} as a Prefect flow, one task a stage:")  # noqa: T201 - for people
        sealed = release_flow(words.spec, words.out, words.accept_gap, words.key)
        published = cast("Published", sealed.content)
        if published.verdict is not None:
            print_verdict(published.verdict)
        print(f"report: {published.public / 'report.html'}")  # noqa: T201 - for people
        return 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
