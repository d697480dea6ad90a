"""How every released Parquet file is written: plainly, so that a small reader can check each byte.

One row group, gzip, no dictionary, no statistics and no copy of the schema: nothing in the file can
carry a value that was not released (docs/design/format.md, 4.3).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

FACTS = "PANDAS_ATTRS"
"""The entry with the facts of the columns, for people. Under this name pandas takes it for
``frame.attrs``; Polars and DuckDB show it among the entries of a file."""

SHOWN = ("title", "unit", "scale", "interval")
"""What the facts say of a column, where it is known."""

Facts: TypeAlias = Mapping[str, Mapping[str, str]]
"""For people: what is known of each column that has something to say, by its name."""


_NOTHING: Facts = {}


def parquet_bytes(table: pa.Table, entries: Mapping[str, str], facts: Facts = _NOTHING) -> bytes:
    """The Parquet file of a table, with these entries of metadata and the facts of its columns."""
    said = json.dumps({"fields": facts}, ensure_ascii=False)
    # What a table that was read says of itself is not said again.
    table = table.replace_schema_metadata()
    sink = io.BytesIO()
    writer = pq.ParquetWriter(
        sink,
        table.schema,
        compression="gzip",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    with writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        writer.add_key_value_metadata({**entries, FACTS: said})
    return sink.getvalue()


def source_of(data: bytes) -> pa.BufferReader:
    """The bytes in Arrow's own memory.

    A thread of its pools may be the last to hold a buffer. One of Python's it could free only under
    Python's lock; should the process be ending by then, that aborts it.
    """
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def stated_facts(schema: pa.Schema, column: str) -> dict[str, str]:
    """What a file that was read says of a column; nothing where that is not readable."""
    try:
        stated = json.loads((schema.metadata or {})[FACTS.encode()])["fields"][column]
        return {name: str(stated[name]) for name in SHOWN if name in stated}
    except (ValueError, LookupError, TypeError):
        return {}
