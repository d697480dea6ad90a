"""The command line: reads arguments, prints results, and turns errors into one line and a status.

Exit status: 0 done or verified, 1 refused or failed, 2 the spec or the call is wrong, 3 evidence
that is required was not there, 4 the verifier itself failed, 5 a guarantee is not proved, 6 as
``check --strict``. Nothing here computes.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from itertools import pairwise
from typing import Annotated

import typer

from release.cli import audit as audit_cli
from release.cli import check as check_cli
from release.cli import compare as compare_cli
from release.cli import demo as demo_cli
from release.cli import log as log_cli
from release.cli import operations as operations_cli
from release.cli import options as opt
from release.cli import plan as plan_cli
from release.cli import report as report_cli
from release.cli import usage
from release.cli import verify as verify_cli
from release.cli.console import Interrupted, echo, guarded, is_verbose, progress, set_verbosity
from release.cli.ledger import commands as ledger_cli
from release.exact.numbers import exact
from release.version import VERSION

app = typer.Typer(
    name="dp-release",
    help="Publish tables under differential privacy with provably least noise, and check them.",
    cls=usage.Grouped,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="New? dp-release demo",
    rich_markup_mode=None,
    # Typer's tracebacks show local variables, which may hold confidential rows.
    pretty_exceptions_enable=False,
)

_INTERRUPTED = 130
"""The status that Typer returns after Ctrl-C."""


def _version(show: bool) -> None:
    if not show:
        return
    echo(f"dp-release {VERSION}")
    if is_verbose():
        from release.bundle.software import software

        echo(f"source {software().source}")
    raise typer.Exit


_VERSION_HELP = "Show the version; with -v also the hash of the sources."

VersionFlag = Annotated[
    bool,
    # Eager: answered before Typer asks for a command.
    typer.Option("--version", callback=_version, is_eager=True, help=_VERSION_HELP),
]


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Show each stage with its time; twice, also where an unforeseen fault arose in the "
        "code, without values. It may stand behind the command too.",
    ),
]


@app.callback()
def _root(version: VersionFlag = False, verbose: Verbose = 0) -> None:
    """Publish tables under differential privacy with provably least noise, and check them."""


@app.command(rich_help_panel=usage.PUBLISH)
def run(  # noqa: PLR0913 - one parameter for each option
    spec: opt.SpecPath,
    out: opt.Out,
    accept_gap: opt.AcceptGap = "0.000001",
    memory_limit: opt.MemoryLimit = None,
    key: opt.KeyFile = None,
    period: opt.PeriodOption = None,
    to: opt.To = None,
    spark: opt.SparkMaster = None,
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run a release: load, answer, solve for the noise, draw, publish, verify.

    Example: dp-release run data/ami.yaml --out out
    """
    from release.job import Options
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, release_period
    from release.operate.rehearsal.folder import last_check
    from release.tables.duckdb import Engine

    gap, cache = exact("--accept-gap", accept_gap), default_cache()
    engine = Engine(memory_limit, spark=spark)
    place = opt.place_of(out, key, to)
    with progress() as display, opt.fan_out(jobs) as pool:
        options = Options(gap, cache, engine, display.watch, fan_out=pool)
        settings = Run(place, options, display.perform, default_journal(key))
        published = release_period(spec, opt.named_period(period), settings)
    report_cli.print_published(published, out, as_json, last_check(out, spec))


app.command(rich_help_panel=usage.CHECK)(check_cli.check)
app.command(rich_help_panel=usage.PUBLISH)(demo_cli.demo)
app.command(rich_help_panel=usage.PUBLISH)(plan_cli.init)
app.command(rich_help_panel=usage.PUBLISH)(plan_cli.plan)
app.command(rich_help_panel=usage.CHECK)(verify_cli.verify)
app.command(rich_help_panel=usage.CHECK)(audit_cli.audit)
app.command(rich_help_panel=usage.LOOK)(report_cli.report)
app.command(rich_help_panel=usage.LOOK)(compare_cli.compare)
app.command("catch-up", rich_help_panel=usage.OPERATE)(operations_cli.catch_up)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.serve)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.deliver)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.recover)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.restore)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.skip)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.revise)
app.command(rich_help_panel=usage.OPERATE)(operations_cli.doctor)
app.add_typer(log_cli.app, rich_help_panel=usage.OPERATE)
app.add_typer(ledger_cli.app, rich_help_panel=usage.LEDGER)

_VERBOSE = {"--verbose": 1, "-v": 1, "-vv": 2}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; ``arguments`` are those of the process where none are given.

    Raises:
        SystemExit: always, with the exit status.
    """
    words, verbosity = _without_verbose(sys.argv[1:] if arguments is None else arguments)
    set_verbosity(verbosity)
    # Without arguments people want the help, not an error.
    words = words or ["--help"]
    if words[0] == "help":
        words = [*words[1:], "--help"]
    for word, following in pairwise([*words, "."]):
        # As of a variable of the shell that is not set: it would mean the current folder.
        if word.startswith("--") and (word.endswith("=") or not following):
            echo(f"error: {word.rstrip('=')}: empty; write a value", err=True)
            raise SystemExit(2)
    raise SystemExit(guarded(lambda: _run_app(words), debug=verbosity > 1))


def process() -> None:
    """The entry point of ``dp-release``: :func:`main`, then an end without Python's clean-up.

    A thread that is still at work is waited for, with the clean-up.
    """
    try:
        main()
    except SystemExit as ended:
        at_work = [thread for thread in threading.enumerate() if not thread.daemon]
        if len(at_work) > 1:
            raise
        # Python would free each object of the libraries by itself, for a sixth of a small run.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ended.code or 0))


def _without_verbose(words: list[str]) -> tuple[list[str], int]:
    """The words without ``-v``, which may stand anywhere, and how often it stood."""
    # Read here and not by Typer: an error may arise before Typer has read any option.
    end = words.index("--") if "--" in words else len(words)
    verbosity = sum(_VERBOSE.get(word, 0) for word in words[:end])
    return [word for word in words[:end] if word not in _VERBOSE] + words[end:], verbosity


def _run_app(words: list[str]) -> int:
    try:
        # In standalone mode Typer would exit by itself, and print errors in several lines.
        status = app(words, prog_name="dp-release", standalone_mode=False)
    except usage.USAGE_ERROR as error:
        if type(error).__name__ == usage.NO_COMMAND:
            echo(str(error))
            return 0
        echo(f"error: {usage.usage_line(error, words)}", err=True)
        return 2
    if status == _INTERRUPTED:
        raise Interrupted
    # None where a command returns without typer.Exit.
    return int(status or 0)
