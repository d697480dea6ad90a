"""How every released Parquet file is written: plainly, so that a small reader can check each byte.

One row group, gzip, no dictionary, no statistics and no copy of the schema: nothing in the file can
carry a value that was not released (docs/design/format.md, 4.3).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FACTS = "PANDAS_ATTRS"
"""The entry with the facts of the columns, for people. Under this name pandas takes it for
``frame.attrs``; Polars and DuckDB show it among the entries of a file."""

_SHOWN = ("title", "unit", "scale", "interval")


def parquet_bytes(table: pa.Table, entries: Mapping[str, str]) -> bytes:
    """The Parquet file of a table, with these entries of metadata and the facts of its columns."""
    facts = facts_of(table.schema)
    plain = pa.schema([field.remove_metadata() for field in table.schema])
    table = table.cast(plain)
    sink = io.BytesIO()
    writer = pq.ParquetWriter(
        sink,
        plain,
        compression="gzip",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    with writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        writer.add_key_value_metadata({**entries, FACTS: json.dumps(facts, ensure_ascii=False)})
    return sink.getvalue()


def source_of(data: bytes) -> pa.BufferReader:
    """The bytes in Arrow's own memory.

    A thread of its pools may be the last to hold a buffer. One of Python's it could free only under
    Python's lock; should the process be ending by then, that aborts it.
    """
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def facts_of(schema: pa.Schema) -> dict[str, Any]:
    """What the metadata of the fields says of each column: title, unit, scale and interval."""
    fields = {}
    for field in schema:
        metadata = {name.decode(): text.decode() for name, text in (field.metadata or {}).items()}
        facts = {name: metadata[name] for name in _SHOWN if name in metadata}
        if facts:
            fields[field.name] = facts
    return {"fields": fields}


def stated_facts(schema: pa.Schema, column: str) -> dict[str, str]:
    """What a file that was read says of a column; nothing where that is not readable."""
    try:
        stated = json.loads((schema.metadata or {})[FACTS.encode()])["fields"][column]
        return {name: str(stated[name]) for name in _SHOWN if name in stated}
    except (ValueError, LookupError, TypeError):
        return {}
