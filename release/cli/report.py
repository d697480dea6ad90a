"""``dp-release report``: what a release says of itself, on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from release.cli import options as opt
from release.cli.console import print_json, print_table

PublicFolder = Annotated[Path, typer.Argument(help="The public folder of a release.")]


def report(public: PublicFolder, as_json: opt.AsJson = False) -> None:
    """Show what a release says: its guarantee, and the charge and error of each query.

    The public folder is read and not checked: use verify to check it. Its report.html says the
    same with pictures.

    Example: dp-release report out/public/ami-2013-01-05
    """
    from release.bundle.report.summary import summarise

    summary = summarise(public)
    if as_json:
        print_json(summary.plain())
        return
    record, guarantee = summary.record, summary.record.guarantee
    typer.echo(_printable(f"{record.title} ({record.release_id}), {record.kind}"))
    typer.echo(
        _printable(f"period {record.period}; published {record.published} by {record.curator}")
    )
    typer.echo(
        f"guarantee: {guarantee.definition}, ε = {guarantee.epsilon}, δ = {guarantee.delta}, "
        f"{guarantee.kind}"
    )
    typer.echo(_printable(record.privacy.adjacency_text))
    rows = []
    for query in summary.queries:
        name, cells = _printable(query.record.name), str(query.record.cells)
        family = query.record.mechanism
        rows.append((name, cells, query.promise, query.charge, family, query.exact, query.error))
    if rows:
        print_table(("query", "cells", "guarantee", "charge", "mechanism", "exact", "error"), rows)
    tables = []
    for own in summary.tabulations:
        name, areas = _printable(own.record.name), _printable(own.areas)
        error = _printable(own.error)
        tables.append((name, areas, str(own.tables), str(own.cells), own.noise, own.charge, error))
    if tables:
        heads = ("tabulation", "areas", "tables", "cells", "noise", "charge", "standard error")
        print_table(heads, tables)
    typer.echo(f"with pictures: {summary.report}; checked by: dp-release verify {public}")


def _printable(text: str) -> str:
    """Text of a file that nobody has checked, without control characters."""
    # An escape sequence in a title could move the cursor and overwrite what was printed.
    return "".join(letter if letter.isprintable() else "?" for letter in text)
