"""The command line: reads arguments, prints results, and turns errors into one line and a status.

Exit status: 0 done or verified, 1 refused or verification failed, 2 the spec or the call is wrong,
3 verified as far as the given halves allow (FORMAT.md §6). Nothing here computes.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from release import ledger_cli, operations_cli, plan_cli, report_cli
from release.errors import ReleaseError, SpecError
from release.exact import parse_exact
from release.plan_cli import PeriodOption, named_period
from release.required import Required
from release.version import VERSION

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from release.verify import Verdict

T = TypeVar("T")

app = typer.Typer(
    name="dp-release",
    help="Publish tables under differential privacy with provably least noise, and check them.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command()(plan_cli.init)
app.command()(plan_cli.plan)
app.command()(plan_cli.compare)
app.command()(report_cli.report)
app.command("verify-all")(operations_cli.verify_all)
app.command("catch-up")(operations_cli.catch_up)
app.command()(operations_cli.deliver)
app.command()(operations_cli.restore)
app.command()(operations_cli.settle)
app.command()(operations_cli.serve)
app.command()(operations_cli.doctor)
app.add_typer(ledger_cli.app)
app.command("key")(ledger_cli.create_key_command)

# Typer's own root of all complaints about the call; it is exported by its children only.
_USAGE_ERROR: type[BaseException] = typer.BadParameter.__bases__[0]

_INTERRUPTED = 130
"""The status Typer makes of Ctrl-C."""

STAGES = {
    "spec": "reading the spec",
    "check": "looking at the output folder",
    "load": "loading the confidential tables",
    "answer": "answering the queries",
    "differences": "finding how far one unit can move each answer",
    "design": "solving for the noise laws and proving them",
    "charge": "charging the budget",
    "draw": "drawing the noise",
    "publish": "publishing",
    "verify": "verifying what was published",
}
"""What each stage does, for people."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dp-release {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish tables under differential privacy with provably least noise, and check them."""


@app.command()
def run(  # noqa: PLR0913 - one for each thing that a run can be told
    spec: Annotated[Path, typer.Argument(help="The release spec, a YAML file.")],
    out: Annotated[Path, typer.Option("--out", help="The folder that holds the releases.")],
    accept_gap: Annotated[
        str, typer.Option(help="How much of its loss a better law might save: a share.")
    ] = "0.000001",
    memory_limit: Annotated[
        str | None, typer.Option(help="What the engine may hold in memory, such as 2GB.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            envvar="DP_RELEASE_KEY", help="The file of the key that signs for OUT/ledger."
        ),
    ] = None,
    period: PeriodOption = None,
    to: operations_cli.To = None,
    spark: operations_cli.SparkMaster = None,
    jobs: operations_cli.Jobs = None,
    scheduler: operations_cli.Scheduler = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a release: load, answer, design the noise, draw, publish, verify.

    Example: dp-release run data/ami.yaml --out out
    """
    from release.cache import default_cache
    from release.journal import default_journal
    from release.operations import Run, release_period
    from release.pipeline import Options
    from release.tables import Engine

    gap, cache = parse_gap(accept_gap), default_cache()
    engine = Engine(memory_limit, spark=spark)
    place = operations_cli.place_of(out, key, to)
    with _shown() as shown, operations_cli.fan_out(jobs, scheduler) as out_there:
        options = Options(gap, cache, engine, shown.watch, fan_out=out_there)
        run = Run(place, options, shown.step, default_journal())
        published = release_period(spec, named_period(period), run)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "release_id": published.public.name,
                    "public": str(published.public),
                    "auditor": str(published.auditor) if published.auditor else None,
                }
            )
        )
        return
    typer.echo(f"published  {published.public}")
    if published.auditor:
        typer.echo(f"auditor    {published.auditor}  (confidential)")
    typer.echo(f"report     {published.public / 'report.html'}")


@app.command()
def check(
    spec: Annotated[Path, typer.Argument(help="The release spec, a YAML file.")],
    period: PeriodOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Look at the tables of a spec: what is missing or breaks a contract. For the curator only.

    Nothing is published, charged or written; what is printed is confidential.

    Example: dp-release check data/ami.yaml
    """
    from release.reading import read_spec
    from release.tables import Tables

    spec_file = read_spec(spec, named_period(period))
    with Tables(spec_file) as tables:
        found = [tables.quality(name) for name in spec_file.spec.tables]
    if as_json:
        plain = [
            {
                "table": one.table,
                "rows": one.rows,
                "units": one.units,
                "repeated": one.repeated,
                "faults": [
                    {"column": column, "rule": rule, "rows": count}
                    for (rule, column), count in one.faults.items()
                ],
            }
            for one in found
        ]
        typer.echo(json.dumps({"confidential": True, "tables": plain}, ensure_ascii=False))
        return
    typer.echo("confidential: for the curator only")
    for one in found:
        typer.echo(f"{one.table}: {one.rows:,} rows of {one.units:,} units")
        if one.repeated:
            typer.echo(f"  {one.repeated:,} rows repeat another")
        for (rule, column), count in one.faults.items():
            typer.echo(f"  {column}: {count:,} rows {_FAULTS.get(rule, 'break ' + rule)}")


_FAULTS = {"missing": "have no value", "nullable": "have no value and need one"}


def parse_gap(text: str) -> Fraction:
    """The share that ``--accept-gap`` names.

    Raises:
        SpecError: it is no exact number.
    """
    try:
        return parse_exact(text)
    except ValueError as error:
        raise SpecError("--accept-gap", str(error)) from None


@app.command()
def verify(  # noqa: PLR0913 - one for each thing that an auditor brings along
    public: Annotated[Path, typer.Argument(help="The public folder of a release.")],
    auditor: Annotated[
        Path | None,
        typer.Option("--auditor", help="The auditor's half: of this release, or of all."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger that paid, to be replayed.")
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(help="A public key of the curator's, or the file that holds it."),
    ] = None,
    since: Annotated[
        Path | None, typer.Option(help="An older checkpoint that the ledger has to agree with.")
    ] = None,
    require: operations_cli.Require = Required.SIGNATURE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check a release without the confidential data: what is proved, tested, only asserted.

    Exit status 3 where a law could not be opened, or no signature could be checked.

    Example: dp-release verify out/public/ami-2013-01-05 --auditor out/auditor --require none
    """
    from release.provenance import Trust
    from release.signing import read_public_key
    from release.verify import verify as check

    if since is not None and ledger is None:
        raise SpecError("--since", "an older checkpoint is held against a ledger; give --ledger")
    keys = tuple(read_public_key(text) for text in trust or ())
    if auditor is not None and not (auditor / "openings.json").exists():
        auditor = auditor / public.resolve().name
    verdict = check(public, auditor, Trust(ledger, keys, since, require))
    if as_json:
        typer.echo(json.dumps(_plain(verdict), ensure_ascii=False))
    else:
        print_verdict(verdict)
    raise typer.Exit(0 if verdict.complete else 3)


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "release_id": verdict.release_id,
        "verified": "complete" if verdict.complete else "as far as the given halves allow",
        "proved": verdict.proved,
        "tested": verdict.tested,
        "asserted": verdict.asserted,
        "withheld": verdict.withheld,
        "unopened": verdict.unopened,
    }


@app.command()
def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Argument(
            help="Figures by name, such as kadam-10 or qin-08; all where none is named."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="The folder for pictures, numbers, and index.md of this run's figures."
        ),
    ] = Path("figures"),
    spec: Annotated[
        Path, typer.Option("--spec", help="Whose table kadam-14 is for; it will be shown.")
    ] = Path("data/ami_levels.yaml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Redraw the tables and figures of the sources beside ours: a picture and a CSV file of each.

    Example: dp-release reproduce kadam-10 qin-08 --out figures
    """
    from release.reproduce import chosen, write_gallery
    from release.reproduce import reproduce as draw

    names, sheets = chosen(figure or ()), []
    with _shown() as shown:
        for done, name in enumerate(names):
            shown.figure(done, len(names), name)
            sheets.append(draw(name, spec, out))
    page = write_gallery(sheets, out)
    if as_json:
        plain = {"page": str(page), "figures": [sheet.name for sheet in sheets]}
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    typer.echo(f"{len(sheets)} figures in {page}")


def print_verdict(verdict: Verdict) -> None:
    """The verdict for people, on standard output."""
    for title, items in (
        ("Proved in exact arithmetic", verdict.proved),
        ("Tested", verdict.tested),
        ("Only asserted", verdict.asserted),
        ("Left out of the release", verdict.withheld),
        ("Not seen, for want of a half, a key, a ledger or a signature", verdict.unopened),
    ):
        if items:
            typer.echo(f"{title}:")
            for item in items:
                typer.echo(f"  - {item}")
    word = "verified" if verdict.complete else "verified as far as the given halves allow"
    typer.echo(f"{verdict.release_id}: {word}")


class _Shown:
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
def _shown() -> Iterator[_Shown]:
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
        yield _Shown(console, progress)


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


def main(arguments: list[str] | None = None) -> None:
    """The entry point of ``dp-release``."""
    raise SystemExit(guarded(lambda: _run_app(arguments)))


def _run_app(arguments: list[str] | None) -> int:
    # Without arguments: the help, and not a complaint.
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        status = app(given, prog_name="dp-release", standalone_mode=False)
    except _USAGE_ERROR as error:
        message = error.format_message()  # type: ignore[attr-defined]  # all of its children do
        typer.echo(f"error: {' '.join(message.split())}; see dp-release --help", err=True)
        return 2
    if status == _INTERRUPTED:
        raise Interrupted
    return int(status or 0)


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
