"""``dp-release audit``: the program on tiny tables, held against the guarantee of a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo, print_json, working
from release.errors import SpecError

MostTables = Annotated[int, typer.Option(min=8, help="About how many tiny tables are answered.")]
MostRuns = Annotated[int, typer.Option(min=2, help="How many of them are released as a whole.")]


def audit(
    spec: opt.SpecPath,
    tables: MostTables = 160,
    runs: MostRuns = 24,
    period: opt.PeriodOption = None,
    spark: opt.SparkMaster = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run the program on tiny tables of a spec, and hold what comes out against its guarantee.

    No confidential table is opened: all tables are made up, and what is printed may be shown to
    anybody. The status is 0 if the guarantee held on all that was tried, and 1 if it did not. It
    is 3 if nothing was measured, because no two of the tables have different answers, or if the
    noise of a query takes more work to measure than an audit does.

    Example: dp-release audit data/persons.yaml
    """
    from release.operate.plug_ins import plug_in

    # It imports this package, which therefore finds it by its entry point.
    absent = SpecError("audit", "is a package of its own; pip install dp-release-audit")
    auditing = plug_in("dp_release.audit", absent)
    settings = auditing.AuditOptions(tables, runs, spark=spark, period=opt.named_period(period))
    with working("auditing") as display:
        verdict = auditing.audit(spec, settings, display.watch)
    if as_json:
        print_json(verdict.plain())
    else:
        for line in verdict.lines():
            echo(line)
    raise typer.Exit(verdict.exit_status)
