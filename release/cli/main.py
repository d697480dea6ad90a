"""The command line: reads arguments, prints results, and turns errors into one line and a status.

Exit status: 0 done or verified, 1 refused or verification failed, 2 the spec or the call is wrong,
3 verified as far as the given bundles allow (docs/design/format.md). Nothing here computes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import ledger as ledger_cli
from release.cli import operations as operations_cli
from release.cli import options as opt
from release.cli import plan as plan_cli
from release.cli import report as report_cli
from release.cli.console import Interrupted, guarded, print_json, print_verdict, progress
from release.errors import ReleaseError, SpecError
from release.verification.required import Required
from release.version import VERSION

if TYPE_CHECKING:
    from release.tables.duckdb import Quality
    from release.verification.provenance import Trust
    from release.verification.verifier import Verdict

app = typer.Typer(
    name="dp-release",
    help="Publish tables under differential privacy with provably least noise, and check them.",
    add_completion=False,
    rich_markup_mode=None,
    # Typer's tracebacks show local variables, which may hold confidential rows.
    pretty_exceptions_enable=False,
)

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="FOLDER…",
        help="Public folders of releases, or output folders with all their releases.",
    ),
]
AuditorFolder = Annotated[
    Path | None, typer.Option(help="The auditor bundle of this release, or of all releases.")
]
CuratorKeys = Annotated[
    list[str] | None, typer.Option(help="A public key of the curator, or the file that holds it.")
]

app.command()(plan_cli.init)
app.command()(plan_cli.plan)
app.command()(plan_cli.compare)
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


@app.callback()
def _root(version: VersionFlag = False) -> None:
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

    gap, cache = opt.parse_gap(accept_gap), default_cache()
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
            typer.echo(f"  {column}: {count:,} rows {_FAULTS.get(rule, 'break ' + rule)}")


_FAULTS = {"missing": "have no value", "nullable": "have no value and need one"}


def _plain_quality(quality: Quality) -> dict[str, Any]:
    faults = []
    for (rule, column), count in quality.faults.items():
        faults.append({"column": column, "rule": rule, "rows": count})
    return {
        "table": quality.table,
        "rows": quality.rows,
        "units": quality.units,
        "repeated": quality.repeated,
        "faults": faults,
    }


@app.command()
def verify(  # noqa: PLR0913 - one parameter for each option
    folders: Folders,
    auditor: AuditorFolder = None,
    ledger: opt.LedgerPath = None,
    trust: CuratorKeys = None,
    since: opt.OlderCheckpoint = None,
    require: opt.Require = Required.SIGNATURE,
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check releases without the confidential data: what is proved, tested, only asserted.

    Several releases, or an output folder, get one line each. With an output folder its ledger and
    its auditor bundles are read too. A ledger that comes with the folder does not show who signed:
    give --trust, or name a ledger. Exit status 3 where a mechanism could not be opened, or a
    required signature could not be checked.

    Example: dp-release verify out/public/ami-2013-01-05 --auditor out/auditor --require none
    """
    from release.records.signing import read_public_key
    from release.verification.provenance import Trust

    if since is not None and ledger is None:
        raise SpecError("--since", "an older checkpoint is compared with a ledger; give --ledger")
    keys = tuple(map(read_public_key, trust or ()))
    evidence = Trust(ledger, keys, since, require)
    # An output folder may hold one release only; its verdict is a line all the same.
    if len(folders) > 1 or (folders[0] / "public").is_dir():
        _verify_each(folders, auditor, evidence, jobs, as_json)
        return
    verdict = _verdict(folders[0], auditor, evidence)
    if as_json:
        print_json(_plain(verdict))
    else:
        print_verdict(verdict)
    raise typer.Exit(0 if verdict.complete else 3)


def _verdict(public: Path, auditor: Path | None, evidence: Trust) -> Verdict:
    from release.verification.verifier import verify as verify_release

    # The folder is the bundle of this release, or holds the bundles of all releases by id.
    if auditor is not None and not (auditor / "openings.json").exists():
        auditor = auditor / public.resolve().name
    return verify_release(public, auditor, evidence)


def _verify_each(
    folders: list[Path], auditor: Path | None, evidence: Trust, jobs: int | None, as_json: bool
) -> None:
    """Print a line for each release; the worst of them decides the exit status."""
    from release.operate.operations import IN_PART, lacks_root, verify_each
    from release.verification.provenance import LACKS_ROOT

    verdicts: list[tuple[str, str]] = []
    with opt.fan_out(jobs) as pool:
        for folder in folders:
            if (folder / "public").is_dir():
                verdicts += verify_each(folder, pool, evidence)
                continue
            try:
                is_complete = _verdict(folder, auditor, evidence).complete
                verdicts.append((folder.name, "verified" if is_complete else IN_PART))
            except ReleaseError as error:
                # A refusal is a verdict: the releases after this one are verified too.
                verdicts.append((folder.name, f"refused: {error}"))
    if as_json:
        print_json([{"release_id": name, "verdict": verdict} for name, verdict in verdicts])
    else:
        for name, verdict in verdicts:
            typer.echo(f"{name}  {verdict}")
    if any(lacks_root(folder, evidence) for folder in folders):
        typer.echo(f"not seen: {LACKS_ROOT}", err=True)
    if any(verdict.startswith("refused") for _, verdict in verdicts):
        raise ReleaseError("some releases do not verify; see above")
    raise typer.Exit(3 if any(verdict == IN_PART for _, verdict in verdicts) else 0)


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "release_id": verdict.release_id,
        "verified": "complete" if verdict.complete else "as far as the given bundles allow",
        "proved": verdict.proved,
        "tested": verdict.tested,
        "asserted": verdict.asserted,
        "withheld": verdict.withheld,
        "unopened": verdict.unopened,
    }


def main(arguments: list[str] | None = None) -> None:
    """The entry point of ``dp-release``."""
    raise SystemExit(guarded(lambda: _run_app(arguments)))


def _run_app(arguments: list[str] | None) -> int:
    # Without arguments people want the help, not an error.
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
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
