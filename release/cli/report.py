"""``dp-release report``: what a release says of itself, on the terminal."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.bundle.about import about_sentences, release_title
from release.cli import options as opt
from release.cli.console import echo, print_cautions, print_changes, print_json, print_table

if TYPE_CHECKING:
    from release.analysis.summary import QuerySummary, Summary, TabulationSummary
    from release.job import Published

_MOST_QUERIES = 10
"""The queries of which the end of a run speaks."""

PublicFolder = Annotated[Path, typer.Argument(help="The public folder of a release.")]


class Form(StrEnum):
    """The forms of others in which a release can be described."""

    REGISTRY = "registry"
    IN_TOTO = "in-toto"


FormOption = Annotated[
    Form | None,
    typer.Option(
        "--as",
        help="Print a draft for the public registry of deployments (YAML), or an in-toto "
        "statement of the files (JSON, unsigned).",
    ),
]


def report(public: PublicFolder, form: FormOption = None, as_json: opt.AsJson = False) -> None:
    """Show what a release says: its guarantee, and the charge and error of each query.

    The public folder is read and not checked: use verify to check it. Its report.html says the
    same with pictures.

    Example: dp-release report out/public/ami-2013-01-05
    """
    from release.analysis.summary import summarise
    from release.bundle.opened import release_in

    public = release_in(public, "PUBLIC")
    if form is not None:
        _print_as(form, public)
        return
    summary = summarise(public)
    if as_json:
        print_json(summary.plain())
        return
    about, record, guarantee = summary.about, summary.opened.record, summary.guarantee
    echo(_printable(f"{release_title(about)} ({about.id}), {record.kind}"))
    echo(_printable(" ".join(about_sentences(about, record.published))))
    echo(
        f"guarantee: {guarantee['definition']}, ε = {guarantee['epsilon']}, "
        f"δ = {guarantee['delta']}, {guarantee['kind']}"
    )
    echo(_printable(summary.adjacency_text))
    rows = []
    for query in summary.queries:
        name, cells = _printable(query.name), str(query.made.cells)
        figures = query.family, query.exact, query.error
        rows.append((name, cells, query.claim, query.charge, *figures))
    if rows:
        print_table(("query", "cells", "guarantee", "charge", "mechanism", "exact", "error"), rows)
    for query in summary.queries:
        if query.nearness is not None:
            echo(_printable(_quality(query, None)))
    tables = []
    for own in summary.tabulations:
        name, areas = _printable(own.name), _printable(own.areas)
        error = _printable(own.error)
        tables.append((name, areas, str(own.tables), str(own.cells), own.noise, own.charge, error))
    if tables:
        heads = ("tabulation", "areas", "tables", "cells", "noise", "charge", "standard error")
        print_table(heads, tables)
    echo(f"with pictures: {summary.report}; checked by: dp-release verify {public}")


def _print_as(form: Form, public: Path) -> None:
    from release.bundle.exports import in_toto, registry
    from release.bundle.opened import open_public

    opened = open_public(public)
    text = registry(opened) if form is Form.REGISTRY else in_toto(opened)
    echo(text.decode().rstrip("\n"))


_HEAD_OF_PAGE = 20_000
"""Characters of a page in which it says that it has no pictures."""


def print_published(
    published: Published, out: Path, as_json: bool, checked: str | None = None
) -> None:
    """Print how a run has ended: the folders, the charge, the errors, and where to look on.

    ``checked`` is when its spec was last checked for this folder.

    All of it is read from the public folder and the ledger, and so from public facts.
    """
    from release.analysis.summary import summarise
    from release.bundle.report.plain import WITHOUT_PICTURES

    public, auditor = published.public, published.auditor
    summary = summarise(public)
    scope, left = _left(summary, out)
    guarantee = summary.guarantee
    if as_json:
        charged = {
            "scope": scope,
            "epsilon": guarantee["epsilon"],
            "delta": guarantee["delta"],
        }
        folder = None if auditor is None else str(auditor)
        plain = {"release_id": public.name, "public": str(public), "auditor": folder}
        said = {
            "lost": published.lost,
            "cautions": list(summary.cautions),
            "checked": checked,
        }
        print_json({**plain, "charged": charged, "left": left, **said})
        return
    echo(f"published  {public}")
    if auditor is not None:
        echo(f"auditor    {auditor}  (confidential)")
    echo(f"charged    ε {guarantee['epsilon']}, δ {guarantee['delta']} to {scope}")
    if published.lost:
        echo("lost       an earlier run of it was cut off while it drew, and its charge stays")
    echo(f"left       {left or 'no ledger keeps account of it; dp-release ledger init'}")
    lines = [_quality(query, auditor) for query in summary.queries]
    lines += map(_tabulation_quality, summary.tabulations)
    for place, line in enumerate(lines[:_MOST_QUERIES]):
        echo(f"{'answers' if place == 0 else '':9}  {_printable(line)}")
    if len(lines) > _MOST_QUERIES:
        echo(f"{'':9}  and {len(lines) - _MOST_QUERIES} more: dp-release report {public}")
    never = f"never: dp-release check SPEC --into {out} says what is left out"
    echo(f"checked    {checked or never}")
    print_cautions(summary.cautions)
    print_changes(public)
    is_plain = WITHOUT_PICTURES in summary.report.read_text("utf-8")[:_HEAD_OF_PAGE]
    lacking = "  (the tables alone: the page with pictures could not be made)" if is_plain else ""
    echo(f"report     {summary.report}{lacking}")
    opened = "" if auditor is None else f" --auditor {auditor}"
    echo(f"verify     dp-release verify {public}{opened}")


def _left(summary: Summary, out: Path) -> tuple[str, str | None]:
    """The scope that paid, and what is left there in words; None where there is no ledger."""
    from release.budget.ledger import read_ledger
    from release.bundle.publish import LEDGER

    scope = summary.scope
    if not (out / LEDGER).is_dir():
        return scope, None
    return scope, read_ledger(out / LEDGER).state.accounts[scope].left()


def _quality(query: QuerySummary, auditor: Path | None) -> str:
    if query.nearness is not None:
        return f"{query.name}: {query.nearness}"
    if query.accuracy is None:
        # It depends on the table, and an output of a run may be kept in a log.
        place = "" if auditor is None else f": {auditor / query.name}.json"
        return f"{query.name}: its error is confidential{place}"
    return f"{query.name}: exact in {query.exact}, {query.error}"


def _tabulation_quality(tabulation: TabulationSummary) -> str:
    return f"{tabulation.name}: standard error {tabulation.error}"


def _printable(text: str) -> str:
    """Text of a file that nobody has checked, without control characters."""
    # An escape sequence in a title could move the cursor and overwrite what was printed.
    return "".join(letter if letter.isprintable() else "?" for letter in text)
