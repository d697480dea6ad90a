"""What a notebook shows of an object: a small table, with everything from outside escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A title and a row for each fact, as HTML without style or script."""
    rows = []
    for name, value in facts.items():
        rows.append(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>")
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def table_html(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """A table with a title, and a line for each note under it, as HTML without style or script."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = ""
    for row in rows:
        body += f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>"
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>{below}"
