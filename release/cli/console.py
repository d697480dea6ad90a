"""What the commands show: progress, tables, verdicts, and every error as one line and a status."""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from dp_release_verify.digests import sha256
from release.errors import ReleaseError, SpecError, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TaskID

    from dp_release_verify.verdict import Verdict
    from release.job import Job, Stage

T = TypeVar("T")

MOST_CHANGES = 20
"""The changes of a spec that are shown at once."""


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line; a control character of a stranger's text is written out."""
    typer.echo(shown(str(text)), err=err, nl=nl)


def print_json(plain: object) -> None:
    """Print plain data as one line of JSON."""
    echo(json.dumps(plain, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns side by side, each as wide as its longest text."""
    lines = [columns, *rows]
    # The width of the terminal is not asked for: the output of a pipe has to be the same.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = map(str.ljust, line, widths)
        echo("  ".join(cells).rstrip())


def print_records(columns: Sequence[str], records: Sequence[Mapping[str, str]]) -> None:
    """Print records that have the same fields as a table; ``columns`` are the heads."""
    print_table(columns, [list(record.values()) for record in records])


def print_verdict(verdict: Verdict) -> None:
    """Print a verdict for people, on standard output; with ``-v`` every finding."""
    for line in verdict.lines(verbose=is_verbose()):
        echo(line)


def print_cautions(cautions: Sequence[str]) -> None:
    """Print what a curator should know, a line each."""
    for caution in cautions:
        echo(f"caution: {caution}")


def print_changes(public: Path) -> None:
    """Print what changed in the spec since the last release of the series, if that is beside it."""
    from release.operate.log.changes import changes_since_last

    since, changes = changes_since_last(public)
    for place, change in enumerate(changes[:MOST_CHANGES]):
        echo(f"{'changed' if place == 0 else '':9}  since {since}: {change}")
    if len(changes) > MOST_CHANGES:
        echo(f"{'':9}  and {len(changes) - MOST_CHANGES} more")


_verbosity = ContextVar("verbosity", default=0)


def set_verbosity(verbosity: int) -> None:
    """Set how much is shown of the work: 0 nothing but on a terminal, 1 the stages, 2 faults."""
    _verbosity.set(verbosity)


def is_verbose() -> bool:
    """Whether ``-v`` stands in the command."""
    return _verbosity.get() > 0


class Shown:
    """Shows the stage at work and its query: a bar on a terminal, else lines where asked for."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console, self._progress = console, progress
        self._started = time.monotonic()
        self._stage = ""
        self._task: TaskID | None = None

    def perform(self, stage: Stage, job: Job) -> None:
        """Perform one stage."""
        self.begin(stage.sentence)
        stage.does(job)
        self.end()

    def begin(self, stage: str) -> None:
        """Show that a stage begins, of which the length is not known yet."""
        self._stage = stage
        # Without a total the bar only moves: nothing is known of the time left.
        self._task = self._progress.add_task(stage, total=None)
        # A line for each stage and none for each query: a log is read by people.
        if self._progress.disable and _verbosity.get():
            elapsed = time.monotonic() - self._started
            self._console.print(f"{elapsed:8.1f} s  {stage}")

    def end(self) -> None:
        """Show that the stage is done."""
        if self._task is not None:
            self._progress.update(self._task, total=1, completed=1, description=self._stage)

    def watch(self, index: int, total: int, item: str) -> None:
        """Show that the stage turns to the next query or release."""
        if self._task is not None:
            description = f"{self._stage}: {item} ({index + 1} of {total})"
            self._progress.update(self._task, total=total, completed=index, description=description)


def is_worth_a_line(index: int, total: int, lines: int = 20) -> bool:
    """Whether a log shows this query: each of a few, about ``lines`` of many."""
    # The quotient takes ``lines`` values as ``index`` runs from 0 to ``total``; each is new once.
    return index * lines // total != (index - 1) * lines // total


@contextmanager
def progress() -> Iterator[Shown]:
    """Progress on standard error while the block runs: bars on a terminal, with the time left."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = _error_console()
    # The times keep their width on a narrow terminal, and the name of a query is cut.
    cut = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False, table_column=cut),
        BarColumn(bar_width=12),
        TimeElapsedColumn(),
        _time_left_column(),
    )
    is_live = console.is_terminal
    with Progress(*columns, console=console, disable=not is_live, expand=True) as live:
        yield Shown(console, live)


def _time_left_column() -> ProgressColumn:
    from rich.progress import ProgressColumn
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        """The time left in words, and nothing where it is not known: "left" alone misleads."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            seconds = None if task.finished or not task.completed else task.time_remaining
            if seconds is None:
                return Text("")
            minutes, rest = divmod(int(seconds), 60)
            return Text(f"about {minutes}:{rest:02} left")

    return TimeLeft()


@contextmanager
def working(what: str) -> Iterator[Shown]:
    """Show on standard error what a command is busy with while the block runs."""
    with progress() as display:
        display.begin(what)
        yield display
        display.end()


def _error_console() -> Console:
    from rich.console import Console

    # Standard output holds nothing but the result, so that it can be piped.
    # Without markup: rich would take a name such as "[red]" for a style and leave it out.
    return Console(stderr=True, highlight=False, markup=False)


def error_lines(error: BaseException) -> list[str]:
    """An error as people see it: a line, or one for each fault of a spec; never a table's value."""
    if isinstance(error, SpecError):
        return [f"error: {shown(' '.join(line.split()))}" for line in error.lines]
    return [one_line(error)]


def one_line(error: BaseException) -> str:
    """An error as the one line that a person sees; never a value of a confidential table."""
    if isinstance(error, ReleaseError):
        text = shown(" ".join(str(error).split()))
        return f"error: {text}"
    if isinstance(error, MemoryError):
        return "error: this takes more memory than the system gives; nothing was finished"
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
    cause: BaseException | None = error
    while cause is not None:
        places.append(type(cause).__name__)
        for frame in traceback.extract_tb(cause.__traceback__):
            places.append(f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}")
        cause = cause.__cause__ or cause.__context__
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
        print("\n".join(error_lines(error)), file=sys.stderr)  # noqa: T201 - the edge
        if debug and not isinstance(error, ReleaseError):
            print("\n".join(places_of(error)), file=sys.stderr)  # noqa: T201 - the edge
        return error.exit_status if isinstance(error, ReleaseError) else 1
