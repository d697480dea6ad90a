"""How every released Parquet file is written, and what its footer must say before it is read."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from release.errors import VerificationError

ARROW = b"ARROW:schema"
"""The entry in which Arrow keeps its own copy of the schema."""

FACTS = "PANDAS_ATTRS"
"""The entry with the facts of the columns. Under this name pandas takes it for ``frame.attrs``;
readers that show no metadata of fields, such as Polars and DuckDB, show the entries of a file."""

_SHOWN = ("title", "unit", "scale", "interval")

# The writer's version is the one text in a footer that the spec does not decide, so its form is
# fixed: no free text gets into a released file.
_WRITER = r"parquet-cpp-arrow version [0-9]{1,3}(\.[0-9]{1,3}){2}"


def parquet_bytes(table: pa.Table, entries: Mapping[str, str]) -> bytes:
    """The Parquet file of a table, in one row group, with these entries of metadata and the facts.

    The facts are those of :func:`facts_of`.
    """
    table = table.replace_schema_metadata(with_facts(table.schema).metadata)
    sink = io.BytesIO()
    # A dictionary page could list values that no row has; it is off here and refused on reading.
    with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        writer.add_key_value_metadata(dict(entries))
    return sink.getvalue()


def with_facts(schema: pa.Schema) -> pa.Schema:
    """The schema with the facts of its columns."""
    # In the schema, and not beside it: pandas reads Arrow's copy of it.
    return schema.with_metadata({FACTS: facts_of(schema)})


def facts_of(schema: pa.Schema) -> str:
    """What the metadata of the fields says of each column: title, unit, scale and interval."""
    fields = {}
    for field in schema:
        metadata = {name.decode(): text.decode() for name, text in (field.metadata or {}).items()}
        facts = {name: metadata[name] for name in _SHOWN if name in metadata}
        if facts:
            fields[field.name] = facts
    return json.dumps({"fields": fields}, ensure_ascii=False)


def source_of(data: bytes) -> pa.BufferReader:
    """The bytes in Arrow's own memory.

    A thread of its pools may be the last to hold a buffer. One of Python's it could free only under
    Python's lock; should the process be ending by then, that aborts it.
    """
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def check_shape(file: str, metadata: Any, cells: int, most_bytes: int) -> None:
    """Check the footer: as many rows as cells, one row group, a known writer.

    Raises:
        VerificationError: the first check that fails.
    """
    # Before anything is decompressed: a small file can claim any number of rows and bytes.
    size = 0
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            size += metadata.row_group(group).column(column).total_uncompressed_size
    for check, value, is_allowed in (
        ("rows", metadata.num_rows, metadata.num_rows == cells),
        ("row groups", metadata.num_row_groups, metadata.num_row_groups == 1),
        ("size", size, size <= most_bytes),
        ("writer", metadata.created_by, re.fullmatch(_WRITER, str(metadata.created_by))),
    ):
        if not is_allowed:
            raise VerificationError(file, check, str(value)[:200], f"what {cells} cells need")


def check_encoding(file: str, metadata: Any) -> None:
    """Check that no column has a dictionary.

    Raises:
        VerificationError: one has.
    """
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            if chunk.has_dictionary_page or "DICTIONARY" in " ".join(chunk.encodings):
                raise VerificationError(file, "encoding", "a dictionary", "plain values")


def expect(file: str, check: str, actual: object, expected: object) -> None:
    """Check that two values are equal.

    Raises:
        VerificationError: they are not.
    """
    if actual != expected:
        raise VerificationError(file, check, str(actual), str(expected))


def check_entries(file: str, metadata: Any, entries: Mapping[str, str], schema: pa.Schema) -> None:
    """Check that the metadata has these entries, the facts of ``schema``, and Arrow's own entry.

    Raises:
        VerificationError: it has not.
    """
    actual = dict(metadata.metadata or {})
    # Arrow's own entry repeats the schema, which is compared by itself.
    actual.pop(ARROW, None)
    texts = {**entries, FACTS: facts_of(schema)}
    expected = {name.encode(): value.encode() for name, value in texts.items()}
    expect(file, "metadata", actual, expected)


def missing_values(table: pa.Table) -> int:
    """The number of missing values of all columns."""
    return sum(column.null_count for column in table.columns)


def unreadable(file: str) -> VerificationError:
    """The refusal of bytes that are no Parquet file."""
    return VerificationError(file, "format", "unreadable bytes", "a Parquet file")
