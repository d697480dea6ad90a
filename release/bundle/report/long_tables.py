"""Tables of the report: their first rows in the page, and all of them for search and CSV.

Without scripts a reader sees the first rows, and the name of the file that has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 200
"""Longer tables are cut in the report; the Parquet file has them whole."""

EMBEDDED = 50_000
"""Rows of a table, or of all of a tabulation, that the page holds for search."""

EMBEDDED_IN_ALL = 200_000
"""Rows of all queries that the page holds for search: some 3 MB of it."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its head, the texts of its cells, and whether they are numbers.

    ``ends`` are the heads of the two columns that an interval has in the CSV file.
    """

    head: str
    texts: Sequence[str]
    is_number: bool = True
    ends: tuple[str, str] | None = None


def interval_column(
    head: str, ends: tuple[str, str], starts: Iterable[str], stops: Iterable[str]
) -> Column:
    """A column of intervals in words; ``ends`` are the heads of both ends in the CSV file.

    One column and not two: a telephone has no room for both.
    """
    texts = []
    for start, stop in zip(starts, stops, strict=True):
        texts.append(start if start == stop else f"{start} to {stop}")
    return Column(head, texts, ends=ends)


def shown_table(
    columns: Sequence[Column], rows: int, *, is_embedded: bool = True
) -> dict[str, Any]:
    """What the template shows of a table of ``rows`` rows, of which ``columns`` may be the first.

    All of it is there as JSON where its first rows are not all and ``is_embedded``.
    """
    left_out, data = max(0, rows - MAX_ROWS), None
    if left_out and is_embedded:
        text = json.dumps(plain_table(columns), ensure_ascii=False, separators=(",", ":"))
        # No text of a table may end the element that holds it.
        data = text.replace("<", "\\u003c")
    return {
        "columns": columns,
        "rows": rows_of(columns, MAX_ROWS),
        "left_out": f"{left_out:,}" if left_out else None,
        "data": data,
    }


def held_whole(sizes: Iterable[int], room: int) -> Iterator[bool]:
    """Which of the tables with so many rows a page with this room holds whole, in their order.

    Tables that it shows whole take no room.
    """
    for rows in sizes:
        is_held = MAX_ROWS < rows <= min(EMBEDDED, room)
        room -= rows if is_held else 0
        yield is_held


def rows_of(columns: Sequence[Column], most: int) -> list[tuple[str, ...]]:
    """The first ``most`` rows of a table."""
    return list(zip(*(column.texts[:most] for column in columns), strict=True))


def plain_table(columns: Sequence[Column]) -> dict[str, Any]:
    """A whole table as plain data: of each column its different texts, and which one a row has."""
    plain = []
    for column in columns:
        # By first appearance: keys of a long table often stand in runs.
        places: dict[str, int] = {}
        rows = [places.setdefault(text, len(places)) for text in column.texts]
        entry: dict[str, Any] = {"head": column.head, "number": column.is_number}
        entry |= {} if column.ends is None else {"ends": column.ends}
        # Where all texts differ, the numbers of the rows say nothing.
        plain.append(entry | {"texts": list(places)} | _rows_entry(rows, len(places)))
    return {"columns": plain}


def _rows_entry(rows: list[int], distinct: int) -> dict[str, list[int]]:
    return {} if distinct == len(rows) else {"rows": rows}
