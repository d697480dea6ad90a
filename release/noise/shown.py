"""What a notebook shows of an object: a small table, with everything from outside escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A title and a row for each fact, as HTML without style or script."""
    rows = []
    for name, value in facts.items():
        rows.append(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>")
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"
