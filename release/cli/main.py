"""The command line: reads arguments, prints results, and turns errors into one line and a status.

Exit status: 0 done or verified, 1 refused or verification failed, 2 the spec or the call is wrong,
3 verified as far as the given bundles allow (docs/design/format.md). Nothing here computes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import ledger as ledger_cli
from release.cli import operations as operations_cli
from release.cli import plan as plan_cli
from release.cli import report as report_cli
from release.cli.console import Interrupted, guarded, print_verdict, progress
from release.cli.options import (
    Jobs,
    Require,
    SparkMaster,
    To,
    fan_out,
    parse_gap,
    place_of,
)
from release.cli.plan import PeriodOption, named_period
from release.errors import ReleaseError, SpecError
from release.verification.required import Required
from release.version import VERSION

if TYPE_CHECKING:
    from release.verification.provenance import Trust
    from release.verification.verifier import Verdict

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


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish tables under differential privacy with provably least noise, and check them."""


@app.command()
def run(  # noqa: PLR0913 - one parameter for each option
    spec: Annotated[Path, typer.Argument(help="The release spec, a YAML file.")],
    out: Annotated[Path, typer.Option("--out", help="The folder that holds the releases.")],
    accept_gap: Annotated[
        str, typer.Option(help="How much of its loss a better mechanism might save: a share.")
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
    to: To = None,
    spark: SparkMaster = None,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a release: load, answer, solve for the noise, draw, publish, verify.

    Example: dp-release run data/ami.yaml --out out
    """
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.operate.operations import Run, release_period
    from release.pipeline import Options
    from release.tables.duckdb import Engine

    gap, cache = parse_gap(accept_gap), default_cache()
    engine = Engine(memory_limit, spark=spark)
    place = place_of(out, key, to)
    with progress() as shown, fan_out(jobs) as out_there:
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
    from release.queries.read import read_spec
    from release.tables.duckdb import Tables

    spec_file = read_spec(spec, named_period(period))
    with Tables(spec_file) as tables:
        qualities = [tables.quality(name) for name in spec_file.spec.tables]
    if as_json:
        plain = [
            {
                "table": quality.table,
                "rows": quality.rows,
                "units": quality.units,
                "repeated": quality.repeated,
                "faults": [
                    {"column": column, "rule": rule, "rows": count}
                    for (rule, column), count in quality.faults.items()
                ],
            }
            for quality in qualities
        ]
        typer.echo(json.dumps({"confidential": True, "tables": plain}, ensure_ascii=False))
        return
    typer.echo("confidential: for the curator only")
    for quality in qualities:
        typer.echo(f"{quality.table}: {quality.rows:,} rows of {quality.units:,} units")
        if quality.repeated:
            typer.echo(f"  {quality.repeated:,} rows repeat another")
        for (rule, column), count in quality.faults.items():
            typer.echo(f"  {column}: {count:,} rows {_FAULTS.get(rule, 'break ' + rule)}")


_FAULTS = {"missing": "have no value", "nullable": "have no value and need one"}


@app.command()
def verify(  # noqa: PLR0913 - one parameter for each option
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER…",
            help="Public folders of releases, or output folders with all their releases.",
        ),
    ],
    auditor: Annotated[
        Path | None,
        typer.Option("--auditor", help="The auditor bundle: of this release, or of all."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger that paid, to be replayed.")
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(help="A public key of the curator's, or the file that holds it."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option("--since", help="An older checkpoint that the ledger has to agree with."),
    ] = None,
    require: Require = Required.SIGNATURE,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check releases without the confidential data: what is proved, tested, only asserted.

    Of several releases, or of an output folder, a line each; with an output folder come its ledger
    and the auditor bundles that are there. A ledger that comes with the folder shows nothing of who
    signed: give --trust, or name a ledger. Exit status 3 where a noise distribution could not be
    opened, or a required signature could not be checked.

    Example: dp-release verify out/public/ami-2013-01-05 --auditor out/auditor --require none
    """
    from release.records.signing import read_public_key
    from release.verification.provenance import Trust

    if since is not None and ledger is None:
        raise SpecError("--since", "an older checkpoint is held against a ledger; give --ledger")
    keys = tuple(read_public_key(text) for text in trust or ())
    trusted = Trust(ledger, keys, since, require)
    if len(folders) > 1 or (folders[0] / "public").is_dir():
        _verify_each(folders, auditor, trusted, jobs, as_json)
        return
    verdict = _verdict(folders[0], auditor, trusted)
    if as_json:
        typer.echo(json.dumps(_plain(verdict), ensure_ascii=False))
    else:
        print_verdict(verdict)
    raise typer.Exit(0 if verdict.complete else 3)


def _verdict(public: Path, auditor: Path | None, trust: Trust) -> Verdict:
    from release.verification.verifier import verify as check

    if auditor is not None and not (auditor / "openings.json").exists():
        auditor = auditor / public.resolve().name
    return check(public, auditor, trust)


def _verify_each(
    folders: list[Path], auditor: Path | None, trust: Trust, jobs: int | None, as_json: bool
) -> None:
    """A line for each release; the worst of them decides the exit status."""
    from release.operate.operations import IN_PART, lacks_root, verify_each
    from release.verification.provenance import LACKS_ROOT

    verdicts: list[tuple[str, str]] = []
    with fan_out(jobs) as elsewhere:
        for folder in folders:
            if (folder / "public").is_dir():
                verdicts += verify_each(folder, elsewhere, trust)
                continue
            try:
                complete = _verdict(folder, auditor, trust).complete
                verdicts.append((folder.name, "verified" if complete else IN_PART))
            except ReleaseError as error:
                verdicts.append((folder.name, f"refused: {error}"))
    if as_json:
        rows = [{"release_id": name, "verdict": verdict} for name, verdict in verdicts]
        typer.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for name, verdict in verdicts:
            typer.echo(f"{name}  {verdict}")
    if any(lacks_root(folder, trust) for folder in folders):
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
        status = app(words, prog_name="dp-release", standalone_mode=False)
    except _USAGE_ERROR as error:
        message = error.format_message()  # type: ignore[attr-defined]  # all of its children do
        typer.echo(f"error: {' '.join(message.split())}; see dp-release --help", err=True)
        return 2
    if status == _INTERRUPTED:
        raise Interrupted
    return int(status or 0)
