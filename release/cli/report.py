"""``dp-release report``: what a release says of itself, on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from release.cli.plan import AsJson, print_table


def report(
    public: Annotated[Path, typer.Argument(help="The public folder of a release.")],
    as_json: AsJson = False,
) -> None:
    """Show what a release says: its promise, its queries, their charges and errors.

    It is read from the public folder and not checked: that is what verify is for. The same with
    pictures is the report.html that lies there.

    Example: dp-release report out/public/ami-2013-01-05
    """
    from release.bundle.report.summary import summarise

    found = summarise(public)
    if as_json:
        typer.echo(json.dumps(found.plain(), ensure_ascii=False))
        return
    record, promised = found.record, found.record.guarantee
    typer.echo(_shown(f"{record.title} ({record.release_id}), {record.kind}"))
    typer.echo(_shown(f"period {record.period}; published {record.published} by {record.curator}"))
    typer.echo(
        f"promise: {promised.definition}, ε = {promised.epsilon}, δ = {promised.delta}, "
        f"{promised.kind}"
    )
    typer.echo(_shown(record.privacy.adjacency_text))
    rows = [
        (
            _shown(one.record.name),
            str(one.record.cells),
            one.promise,
            one.charge,
            one.record.mechanism,
            one.exact,
            one.error,
        )
        for one in found.queries
    ]
    print_table(("query", "cells", "promise", "charge", "mechanism", "exact", "error"), rows)
    typer.echo(f"with pictures: {found.report}; checked by: dp-release verify {public}")


def _shown(text: str) -> str:
    """Text of a file that nobody has checked, without what a terminal would obey."""
    return "".join(one if one.isprintable() else "?" for one in text)
