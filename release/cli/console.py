"""What the commands show: progress, verdicts, and every error as one line and an exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from release.errors import ReleaseError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from release.verification.verifier import Verdict

T = TypeVar("T")

STAGES = {
    "spec": "reading the spec",
    "check": "looking at the output folder",
    "load": "loading the confidential tables",
    "answer": "answering the queries",
    "sensitivity": "finding how far one unit can move each answer",
    "design": "solving for the noise laws and proving them",
    "charge": "charging the budget",
    "draw": "drawing the noise",
    "publish": "publishing",
    "verify": "verifying what was published",
}
"""What each stage does, for people."""


def print_verdict(verdict: Verdict) -> None:
    """The verdict for people, on standard output."""
    for title, items in (
        ("Proved in exact arithmetic", verdict.proved),
        ("Tested", verdict.tested),
        ("Only asserted", verdict.asserted),
        ("Left out of the release", verdict.withheld),
        ("Not seen, for want of a bundle, a key, a ledger or a signature", verdict.unopened),
    ):
        if items:
            typer.echo(f"{title}:")
            for item in items:
                typer.echo(f"  - {item}")
    word = "verified" if verdict.complete else "verified as far as the given bundles allow"
    typer.echo(f"{verdict.release_id}: {word}")


class Shown:
    """Shows which stage is at work and on which query: live on a terminal, else line by line."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console, self._progress = console, progress
        self._stage = ""
        self._task: TaskID | None = None

    def step(self, name: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run one stage."""
        self._stage = STAGES[name]
        self._task = self._progress.add_task(self._stage, total=1)
        if self._progress.disable:
            self._console.print(self._stage)
        result = function(*arguments)
        self._progress.update(self._task, total=1, completed=1, description=self._stage)
        return result

    def figure(self, done: int, total: int, name: str) -> None:
        """Show that figure ``name`` is being drawn."""
        if self._task is None:
            self._stage = "drawing"
            self._task = self._progress.add_task(self._stage, total=total)
        self.watch(done, total, name)

    def watch(self, done: int, total: int, query: str) -> None:
        """Show that the stage turns to the next query."""
        if self._task is not None:
            told = f"{self._stage}: {query} ({done + 1} of {total})"
            self._progress.update(self._task, total=total, completed=done, description=told)
        if self._progress.disable and is_worth_a_line(done, total):
            self._console.print(f"  {query} ({done + 1} of {total})")


def is_worth_a_line(done: int, total: int, lines: int = 20) -> bool:
    """Whether a log should tell of this query: of few every one, of many about ``lines``."""
    return done * lines // total != (done - 1) * lines // total


@contextmanager
def progress() -> Iterator[Shown]:
    """Progress on standard error while the block runs: live on a terminal, else line by line."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, markup=False)
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        yield Shown(console, progress)


def one_line(error: BaseException) -> str:
    """An error as the one line that a person sees; never a value of a confidential table."""
    if isinstance(error, ReleaseError):
        text = " ".join(str(error).split())
        return f"error: {text}"
    if isinstance(error, OSError) and error.strerror:
        # What the system says of a file names neither the file nor what is in it.
        return f"error: {error.strerror.lower()}; look at the paths that were given"
    # A foreign message may quote values, so only its type is told.
    return f"error: internal error ({type(error).__name__})"


class Interrupted(BaseException):
    """The process was asked to end; raised so that folders are wiped on the way out."""


def _interrupt(number: int, frame: object) -> None:
    raise Interrupted


def guarded(action: Callable[[], int]) -> int:
    """Run ``action``; every exception becomes one line on standard error and an exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return action()
    except ReleaseError as error:
        print(one_line(error), file=sys.stderr)  # noqa: T201 - the edge
        return error.exit_status
    except (KeyboardInterrupt, Interrupted):
        print("error: interrupted", file=sys.stderr)  # noqa: T201 - the edge
        return 1
    except Exception as error:
        print(one_line(error), file=sys.stderr)  # noqa: T201 - the edge
        return 1
