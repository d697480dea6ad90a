"""What the commands show: progress, tables, verdicts, and every error as one line and a status."""

from __future__ import annotations

import json
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from release.errors import ReleaseError
from release.records.hashes import sha256

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from release.verification.verifier import Verdict

T = TypeVar("T")

STAGES = {
    "spec": "reading the spec",
    "check": "checking the output folder",
    "share": "sharing the budget out",
    "strategy": "choosing what tabulations measure",
    "load": "loading the confidential tables",
    "answer": "answering the queries",
    "sensitivity": "computing the sensitivity of the queries",
    "design": "solving for the mechanisms and proving their guarantees",
    "charge": "charging the budget",
    "prepare": "writing the mechanisms",
    "draw": "drawing the noise",
    "publish": "publishing",
    "verify": "verifying the published files",
}
"""The stages of a run, in words."""


def print_json(plain: object) -> None:
    """Print plain data as one line of JSON."""
    typer.echo(json.dumps(plain, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns side by side, each as wide as its longest text."""
    lines = [columns, *rows]
    # The width of the terminal is not asked for: the output of a pipe has to be the same.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = map(str.ljust, line, widths)
        typer.echo("  ".join(cells).rstrip())


def print_verdict(verdict: Verdict) -> None:
    """Print a verdict for people, on standard output."""
    from release.verification.findings import Level

    for level, title in (
        (Level.PROVED, "Proved in exact arithmetic"),
        (Level.TESTED, "Tested"),
        (Level.ASSERTED, "Only asserted"),
        (Level.WITHHELD, "Left out of the release"),
        (Level.LEFT_OUT, "Left out of this check"),
        (Level.UNSEEN, "Not seen, for want of a bundle, a key, a ledger or a signature"),
    ):
        lines = [finding for finding in verdict.findings if finding.level is level]
        if lines:
            typer.echo(f"{title}:")
            for finding in lines:
                typer.echo(f"  - {finding.identifier}: {finding.text}")
    word = "verified" if verdict.complete else "verified as far as the given bundles allow"
    typer.echo(f"{verdict.release_id}: {word} ({verdict.evidence})")


class Shown:
    """Shows the stage at work and its query: live on a terminal, else line by line."""

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

    def watch(self, index: int, total: int, query: str) -> None:
        """Show that the stage turns to the next query."""
        line = f"{query} ({index + 1} of {total})"
        if self._task is not None:
            description = f"{self._stage}: {line}"
            self._progress.update(self._task, total=total, completed=index, description=description)
        if self._progress.disable and is_worth_a_line(index, total):
            self._console.print(f"  {line}")


def is_worth_a_line(index: int, total: int, lines: int = 20) -> bool:
    """Whether a log shows this query: each of a few, about ``lines`` of many."""
    # The quotient takes ``lines`` values as ``index`` runs from 0 to ``total``; each is new once.
    return index * lines // total != (index - 1) * lines // total


@contextmanager
def progress() -> Iterator[Shown]:
    """Progress on standard error while the block runs: live on a terminal, else line by line."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = _error_console()
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield Shown(console, progress)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on standard error what a command is busy with while the block runs."""
    console = _error_console()
    if console.is_terminal:
        with console.status(f"{what} ..."):
            yield
    else:
        console.print(f"{what} ...")
        yield


def _error_console() -> Console:
    from rich.console import Console

    # Standard output holds nothing but the result, so that it can be piped.
    # Without markup: rich would take a name such as "[red]" for a style and leave it out.
    return Console(stderr=True, highlight=False, markup=False)


def one_line(error: BaseException) -> str:
    """An error as the one line that a person sees; never a value of a confidential table."""
    if isinstance(error, ReleaseError):
        text = " ".join(str(error).split())
        return f"error: {text}"
    if isinstance(error, OSError) and error.strerror:
        # What the system says of a file names neither the file nor what is in it.
        return f"error: {error.strerror.lower()}; check the paths of the command"
    # A foreign message may quote values, so only its type and its place in the code are shown.
    return f"error: internal error {fault_of(error)} ({type(error).__name__})"


def fault_of(error: BaseException) -> str:
    """Eight hexadecimal digits that name a fault by its type and its place in the code."""
    return sha256("\n".join(places_of(error)).encode())[:8]


def places_of(error: BaseException) -> list[str]:
    """Where an error arose, outermost call first, and where its causes did; no value, no message.

    Each line is a type, or a file without its folders, the line and the function.
    """
    places: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        places.append(type(seen).__name__)
        for frame in traceback.extract_tb(seen.__traceback__):
            places.append(f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}")
        seen = seen.__cause__ or seen.__context__
    return places


# No Exception, because a library that catches those would swallow the request to end.
class Interrupted(BaseException):
    """The process was asked to end; raised so that folders are wiped on the way out."""


def _interrupt(number: int, frame: object) -> None:
    raise Interrupted


def guarded(action: Callable[[], int], *, debug: bool = False) -> int:
    """Run ``action``; every exception becomes one line on standard error and an exit status.

    With ``debug`` the places of :func:`places_of` follow the line of an unforeseen one.
    """
    # By default these signals end the process at once, and no ``finally`` would run.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return action()
    except (KeyboardInterrupt, Interrupted):
        print("error: interrupted", file=sys.stderr)  # noqa: T201 - the edge
        return 1
    except Exception as error:
        print(one_line(error), file=sys.stderr)  # noqa: T201 - the edge
        if debug and not isinstance(error, ReleaseError):
            print("\n".join(places_of(error)), file=sys.stderr)  # noqa: T201 - the edge
        return error.exit_status if isinstance(error, ReleaseError) else 1
