"""Released tables: built from key sets and noisy codes alone, and read back strictly.

Plain strings and integers, sorted by key, no dictionaries, no index, no metadata but the three
declared entries and the spec's facts of each field (title, units, labels, edges): nothing in the
file can carry a value that was not released.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from release.bundle.metadata import field_facts
from release.errors import VerificationError
from release.exact.domain import Codes
from release.spec.query import Query
from release.tables.columns import number_column, text_column

FORMAT = "dp-release/data/v1"

_ARROW = b"ARROW:schema"

# The writer's version is the one text in a footer that the spec does not decide, so its form is
# fixed: no free text gets into a released file.
_WRITER = r"parquet-cpp-arrow version [0-9]{1,3}(\.[0-9]{1,3}){2}"
_BYTES_PER_CELL, _BYTES_PER_FILE = 20_000, 1_000_000


def released_bytes(
    release_id: str, query: Query, keys: tuple[tuple[str, ...], ...], outcomes: Codes
) -> bytes:
    """The Parquet file of one query: key columns, labels, and what was drawn, as integers.

    The labels are in ``answer``, or for a tuple in ``answer_<name>`` of each part. What was drawn
    is ``answer_code``, the number of the joint answer for a tuple; of noise on sums it is the noisy
    sums, from which the labels follow. Its shape is (cells, columns), or (cells,) of one column.
    """
    schema, outcomes = released_schema(query), outcomes.reshape(len(keys), -1)
    columns = []
    for values in _key_columns(query, keys):
        columns.append(text_column(values))
    coordinates = query.answer_codes(outcomes)
    for name, part, codes in zip(query.columns, query.column_domains, coordinates, strict=True):
        labels: list[Any] = list(map(part.labels.__getitem__, codes.tolist()))
        if pa.types.is_string(schema.field(name).type):
            columns.append(text_column(labels))
        else:
            columns.append(number_column(labels, pa.int64()))
    for name, drawn in zip(query.outcome_columns, outcomes.T, strict=True):
        columns.append(number_column(drawn, schema.field(name).type))
    sink = io.BytesIO()
    # A dictionary page could list values that no row has; it is off here and refused on reading.
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata(
            {"release_id": release_id, "query": query.name, "format": FORMAT}
        )
    return sink.getvalue()


def _key_columns(query: Query, keys: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    # Turning no keys round would give no columns, whatever the query's columns are.
    return list(zip(*keys, strict=True)) if keys else [() for _ in query.by]


def released_schema(query: Query) -> pa.Schema:
    """The columns of a released table."""
    fields = []
    for column in query.by:
        fields.append(pa.field(column, pa.string(), nullable=False))
    parts = zip(query.columns, query.column_domains, field_facts(query), strict=True)
    for name, part, facts in parts:
        kind = pa.string() if isinstance(part.labels[0], str) else pa.int64()
        metadata = dict(zip(facts, map(_text, facts.values()), strict=True))
        fields.append(pa.field(name, kind, nullable=False, metadata=metadata))
    # 32 bits hold the codes of all but the widest domains.
    is_wide = query.outcome_columns != ("answer_code",) or query.answers.size > 2**31
    for name in query.outcome_columns:
        fields.append(pa.field(name, pa.int64() if is_wide else pa.int32(), nullable=False))
    return pa.schema(fields)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class CheckedTable:
    """A released table that passed every check.

    ``by_bytes``: its bytes are those that this version of the Parquet library writes for its
    answers. Another version writes others; then the contents were compared, but not every byte.
    """

    keys: tuple[tuple[str, ...], ...]
    outcomes: Codes
    by_bytes: bool


def check_released(
    file: str, path: Path, release_id: str, query: Query, cells: int
) -> CheckedTable:
    """Read a released table and check that it holds its rows and nothing else.

    Raises:
        VerificationError: the first check that fails.
    """
    try:
        data = path.read_bytes()
        parquet = pq.ParquetFile(_source(data))
        _check_shape(file, parquet.metadata, cells)
        table = parquet.read()
    except VerificationError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        raise VerificationError(file, "format", "unreadable bytes", "a Parquet file") from error
    _check_metadata(file, parquet.metadata, release_id, query)
    _check_columns(file, table, query, cells)
    _check_encoding(file, parquet.metadata)
    nulls = sum(column.null_count for column in table.columns)
    _expect(file, "missing values", nulls, 0)
    keys, outcomes = _checked_rows(file, table, query)
    rewritten = released_bytes(release_id, query, keys, outcomes)
    again = pq.ParquetFile(_source(rewritten))
    # Arrow's copy of the schema holds the fields' own metadata, which ``_check_metadata`` skipped.
    if not parquet.schema_arrow.equals(again.schema_arrow, check_metadata=True):
        raise VerificationError(file, "field metadata", "another", "what the spec says of a field")
    if not again.read().equals(table):
        raise VerificationError(file, "answers", "a label", "the label of its code")
    same_writer = again.metadata.created_by == parquet.metadata.created_by
    if same_writer and rewritten != data:
        raise VerificationError(file, "bytes", "others", "those that these answers are written as")
    return CheckedTable(keys, outcomes, rewritten == data)


def _expect(file: str, check: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise VerificationError(file, check, str(actual), str(expected))


def _check_metadata(file: str, metadata: Any, release_id: str, query: Query) -> None:
    entries = dict(metadata.metadata or {})
    entries.pop(_ARROW, None)
    expected = {
        b"release_id": release_id.encode(),
        b"query": query.name.encode(),
        b"format": FORMAT.encode(),
    }
    _expect(file, "metadata", entries, expected)


def _check_columns(file: str, table: pa.Table, query: Query, cells: int) -> None:
    columns = released_schema(query)
    _expect(file, "column names", table.schema.names, columns.names)
    _expect(file, "column types", table.schema.types, columns.types)
    _expect(file, "rows", table.num_rows, cells)


def _check_encoding(file: str, metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            if chunk.has_dictionary_page or "DICTIONARY" in " ".join(chunk.encodings):
                raise VerificationError(file, "encoding", "a dictionary", "plain values")


def _checked_rows(
    file: str, table: pa.Table, query: Query
) -> tuple[tuple[tuple[str, ...], ...], Codes]:
    """The keys of a table, ascending, each once, and what was drawn: codes are of the domain."""
    columns = [table.column(name).to_pylist() for name in query.by]
    keys = tuple(zip(*columns, strict=True)) if columns else ((),)
    if not all(first < second for first, second in pairwise(keys)):
        raise VerificationError(file, "order", "keys out of order", "keys ascending, each once")
    drawn = [table.column(name).to_pylist() for name in query.outcome_columns]
    outcomes = np.array(drawn, dtype=np.int64).T.reshape(len(keys), -1)
    size = query.answers.size
    is_code = [name.startswith("answer_code") for name in query.outcome_columns]
    codes = outcomes[:, np.array(is_code)]
    if not ((codes >= 0) & (codes < size)).all():
        raise VerificationError(file, "answers", "a code outside", f"codes 0 to {size - 1}")
    impossible = query.impossible(outcomes)
    if impossible is not None:
        raise VerificationError(file, "answers", impossible, "what a mechanism can draw")
    return keys, outcomes


def _source(data: bytes) -> pa.BufferReader:
    """The bytes in Arrow's own memory.

    A thread of its pools may be the last to hold a buffer. One of Python's it could free only under
    Python's lock; should the process be ending by then, that aborts it.
    """
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def _check_shape(file: str, metadata: Any, cells: int) -> None:
    """Check the footer: as many rows as cells, one row group, a known writer."""
    # Before anything is decompressed: a small file can claim any number of rows and bytes.
    size = 0
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            size += metadata.row_group(group).column(column).total_uncompressed_size
    for check, value, is_allowed in (
        ("rows", metadata.num_rows, metadata.num_rows == cells),
        ("row groups", metadata.num_row_groups, metadata.num_row_groups == 1),
        ("size", size, size <= _BYTES_PER_CELL * cells + _BYTES_PER_FILE),
        ("writer", metadata.created_by, re.fullmatch(_WRITER, str(metadata.created_by))),
    ):
        if not is_allowed:
            raise VerificationError(file, check, str(value)[:200], f"what {cells} cells need")
