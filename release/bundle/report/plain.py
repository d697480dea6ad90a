"""The report where the page cannot be drawn: the tables of a release as plain HTML.

A fault in a picture or a sentence must not keep a release from being published that is paid for.
Nothing here is computed: what stands in the files is written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from dp_release_verify import forms
from release.bundle.about import about_sentences, release_title
from release.bundle.report.published import PublicQuery
from release.exact.numbers import format_exact

WITHOUT_PICTURES = "This page has the published tables and no pictures."
"""What a page says that is made where the one with pictures could not be."""

_MOST_ROWS = 1_000
"""Rows of a table that are written down; the Parquet file has all."""


def plain_html(record: forms.Release, queries: tuple[PublicQuery, ...]) -> str:
    """The page of a release without pictures and explanations."""
    about, total = record.asked.release, record.made.total
    unit = record.asked.privacy.unit
    title, said = release_title(about), " ".join(about_sentences(about, record.published))
    lines = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>',
        f"<body><h1>{escape(title)}</h1>",
        f"<p>{escape(said)} The numbers carry random noise, "
        f"which protects each {escape(unit)}: ε = {format_exact(total.epsilon)}, "
        f"δ = {format_exact(total.delta)}, {total.definition}.</p>",
        f"<p>{WITHOUT_PICTURES} release.json and the files in data "
        "and mechanisms say how the numbers were made.</p>",
    ]
    for query in queries:
        lines += _table(query)
    lines.append("</body></html>")
    return "\n".join(lines) + "\n"


def _table(published: PublicQuery) -> Iterator[str]:
    query = published.query
    yield f"<h2>{escape(query.name)}</h2>"
    heads = [*query.by, *query.columns]
    yield f"<table><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"
    codes = query.answer_codes(published.outcomes)
    for place, key in enumerate(published.keys[:_MOST_ROWS]):
        cells = list(key)
        for part, own in zip(query.column_domains, codes, strict=True):
            cells.append(str(part.labels[int(own[place])]))
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"
    if len(published.keys) > _MOST_ROWS:
        yield f"<p>data/{escape(query.name)}.parquet has all {len(published.keys):,} rows.</p>"
