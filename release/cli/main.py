"""The command line: reads arguments, prints results, and turns errors into one line and a status.

Exit status: 0 done or verified, 1 refused or verification failed, 2 the spec or the call is wrong,
3 verified as far as the given bundles allow (docs/design/format.md). Nothing here computes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import compare as compare_cli
from release.cli import ledger as ledger_cli
from release.cli import operations as operations_cli
from release.cli import options as opt
from release.cli import plan as plan_cli
from release.cli import report as report_cli
from release.cli import verify as verify_cli
from release.cli.console import Interrupted, guarded, print_json, progress
from release.exact.numbers import exact
from release.version import VERSION

if TYPE_CHECKING:
    from release.tables.duckdb import Quality

app = typer.Typer(
    name="dp-release",
    help="Publish tables under differential privacy with provably least noise, and check them.",
    add_completion=False,
    rich_markup_mode=None,
    # Typer's tracebacks show local variables, which may hold confidential rows.
    pretty_exceptions_enable=False,
)

app.command()(plan_cli.init)
app.command()(plan_cli.plan)
app.command()(compare_cli.compare)
app.command()(report_cli.report)
app.command("catch-up")(operations_cli.catch_up)
app.command()(operations_cli.deliver)
app.command()(operations_cli.restore)
app.command()(operations_cli.recover)
app.command()(operations_cli.serve)
app.command()(operations_cli.doctor)
app.add_typer(ledger_cli.app)

# The root of Typer's usage errors, which it exports only by its children.
_USAGE_ERROR: type[BaseException] = typer.BadParameter.__bases__[0]

_INTERRUPTED = 130
"""The status that Typer returns after Ctrl-C."""


def _version(show: bool) -> None:
    if show:
        typer.echo(f"dp-release {VERSION}")
        raise typer.Exit


VersionFlag = Annotated[
    bool,
    # Eager: answered before Typer asks for a command.
    typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
]


DebugFlag = Annotated[
    bool,
    typer.Option("--debug", help="Show where an unforeseen fault arose in the code; no values."),
]


@app.callback()
def _root(version: VersionFlag = False, debug: DebugFlag = False) -> None:
    """Publish tables under differential privacy with provably least noise, and check them."""


@app.command()
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
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, release_period
    from release.pipeline import Options
    from release.tables.duckdb import Engine

    gap, cache = exact("--accept-gap", accept_gap), default_cache()
    engine = Engine(memory_limit, spark=spark)
    place = opt.place_of(out, key, to)
    with progress() as display, opt.fan_out(jobs) as pool:
        options = Options(gap, cache, engine, display.watch, fan_out=pool)
        settings = Run(place, options, display.step, default_journal())
        published = release_period(spec, opt.named_period(period), settings)
    public, auditor = published.public, published.auditor
    if as_json:
        folder = None if auditor is None else str(auditor)
        print_json({"release_id": public.name, "public": str(public), "auditor": folder})
        return
    typer.echo(f"published  {public}")
    if auditor is not None:
        typer.echo(f"auditor    {auditor}  (confidential)")
    typer.echo(f"report     {public / 'report.html'}")


@app.command()
def check(spec: opt.SpecPath, period: opt.PeriodOption = None, as_json: opt.AsJson = False) -> None:
    """Count rows, units and breaches of the contract in the tables of a spec. For the curator only.

    Nothing is published, charged or written; what is printed is confidential.

    Example: dp-release check data/ami.yaml
    """
    from release.queries.read import read_spec
    from release.tables.duckdb import Tables

    spec_file = read_spec(spec, opt.named_period(period))
    with Tables(spec_file) as tables:
        # All tables before the first line: a refusal must not leave confidential half results.
        qualities = list(map(tables.quality, spec_file.spec.tables))
    if as_json:
        print_json({"confidential": True, "tables": list(map(_plain_quality, qualities))})
        return
    typer.echo("confidential: for the curator only")
    for quality in qualities:
        typer.echo(f"{quality.table}: {quality.rows:,} rows of {quality.units:,} units")
        if quality.repeated:
            typer.echo(f"  {quality.repeated:,} rows repeat another")
        for (rule, column), count in quality.faults.items():
            place = f"  {column}:" if column else " "
            typer.echo(f"{place} {count:,} {_fault(rule)}")


_FAULTS = {
    "missing": "rows have no value",
    "nullable": "rows have no value and need one",
    "no unit": "more rows have no unit, and are left out",
    "unreadable line": "lines cannot be read, and are left out",
}


def _fault(rule: str) -> str:
    if rule.startswith("not a "):
        return f"values are {rule}, and are missing"
    return _FAULTS.get(rule, f"rows break {rule}")


def _plain_quality(quality: Quality) -> dict[str, Any]:
    faults = []
    for (rule, column), count in quality.faults.items():
        faults.append({"column": column, "rule": rule, "rows": count})
    return {**vars(quality), "faults": faults}


app.command()(verify_cli.verify)


def main(arguments: list[str] | None = None) -> None:
    """The entry point of ``dp-release``."""
    # Without arguments people want the help, not an error.
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    # Read here too: an error may arise before Typer has read any option.
    raise SystemExit(guarded(lambda: _run_app(words), debug=words[0] == "--debug"))


def _run_app(words: list[str]) -> int:
    try:
        # In standalone mode Typer would exit by itself, and print errors in several lines.
        status = app(words, prog_name="dp-release", standalone_mode=False)
    except _USAGE_ERROR as error:
        message = error.format_message()  # type: ignore[attr-defined]  # all of its children do
        typer.echo(f"error: {' '.join(message.split())}; see dp-release --help", err=True)
        return 2
    if status == _INTERRUPTED:
        raise Interrupted
    # None where a command returns without typer.Exit.
    return int(status or 0)
