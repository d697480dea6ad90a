"""Released tables: built from key sets and noisy codes alone, and read back strictly.

Plain strings and integers, sorted by key, no dictionaries, no index, no metadata but the three
declared entries and what the spec says of each field (title, units, labels, edges): nothing in the
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

FORMAT = "dp-release/data/v1"

_ARROW = b"ARROW:schema"

_WRITER = r"parquet-cpp-arrow version [0-9]{1,3}(\.[0-9]{1,3}){2}"
_BYTES_PER_CELL, _BYTES_PER_FILE = 20_000, 1_000_000


def released_bytes(
    release_id: str, query: Query, keys: tuple[tuple[str, ...], ...], noisy: Codes
) -> bytes:
    """The Parquet file of one query: key columns, labels, and ``answer_code``.

    The labels are in ``answer``, or for a tuple in ``answer_<name>`` of each part; its code is the
    number of the joint answer.
    """
    domain, schema = query.answers, released_schema(query)
    columns = [pa.array([key[i] for key in keys], pa.string()) for i in range(len(query.by))]
    coordinates = domain.group.coordinates(noisy)
    for name, part, codes in zip(query.columns, domain.parts, coordinates, strict=True):
        labels = [part.labels[code] for code in codes.tolist()]
        columns.append(pa.array(labels, schema.field(name).type))
    columns.append(pa.array(noisy.astype(np.int32), pa.int32()))
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata(
            {"release_id": release_id, "query": query.name, "format": FORMAT}
        )
    return sink.getvalue()


def released_schema(query: Query) -> pa.Schema:
    """The columns of a released table."""
    parts = zip(query.columns, query.answers.parts, field_facts(query), strict=True)
    labels = [
        pa.field(
            name,
            pa.string() if isinstance(part.labels[0], str) else pa.int64(),
            nullable=False,
            metadata={key: _text(value) for key, value in facts.items()},
        )
        for name, part, facts in parts
    ]
    return pa.schema(
        [
            *(pa.field(column, pa.string(), nullable=False) for column in query.by),
            *labels,
            pa.field("answer_code", pa.int32(), nullable=False),
        ]
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class CheckedTable:
    """A released table that holds what it may.

    ``by_bytes`` is whether its bytes are those that its answers are written as. Another version of
    the Parquet library writes others; then its contents were compared, but not every byte.
    """

    table: pa.Table
    by_bytes: bool


def check_released(
    file: str, path: Path, release_id: str, query: Query, cells: int
) -> CheckedTable:
    """Read a released table and check that it holds what it may and nothing else.

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

    def expect(check: str, found: object, expected: object) -> None:
        if found != expected:
            raise VerificationError(file, check, str(found), str(expected))

    metadata = parquet.metadata.metadata or {}
    wanted = {
        b"release_id": release_id.encode(),
        b"query": query.name.encode(),
        b"format": FORMAT.encode(),
    }
    # The fields' own metadata, which Arrow keeps in a copy of the schema; compared below.
    expect("metadata", {k: v for k, v in metadata.items() if k != _ARROW}, wanted)
    columns = released_schema(query)
    expect("column names", table.schema.names, columns.names)
    expect("column types", table.schema.types, columns.types)
    expect("rows", table.num_rows, cells)
    for group in range(parquet.metadata.num_row_groups):
        for index in range(parquet.metadata.num_columns):
            chunk = parquet.metadata.row_group(group).column(index)
            if chunk.has_dictionary_page or any("DICTIONARY" in e for e in chunk.encodings):
                raise VerificationError(file, "encoding", "a dictionary", "plain values")
    expect("missing values", sum(column.null_count for column in table.columns), 0)
    by, size = query.by, query.answers.size
    keys = list(zip(*(table.column(c).to_pylist() for c in by), strict=True)) if by else [()]
    if not all(a < b for a, b in pairwise(keys)):
        raise VerificationError(file, "order", "keys out of order", "keys ascending, each once")
    codes = np.asarray(table.column("answer_code").to_numpy(), dtype=np.int64)
    if not ((codes >= 0) & (codes < size)).all():
        raise VerificationError(file, "answers", "a code outside", f"codes 0 to {size - 1}")
    made = released_bytes(release_id, query, tuple(keys), codes)
    again = pq.read_schema(_source(made))
    if not parquet.schema_arrow.equals(again, check_metadata=True):
        raise VerificationError(file, "field metadata", "another", "what the spec says of a field")
    if not pq.read_table(_source(made)).equals(table):
        raise VerificationError(file, "answers", "a label", "the label of its code")
    same_writer = pq.read_metadata(_source(made)).created_by == parquet.metadata.created_by
    if same_writer and made != data:
        raise VerificationError(file, "bytes", "others", "those that these answers are written as")
    return CheckedTable(table, made == data)


def _source(data: bytes) -> pa.BufferReader:
    """The bytes in Arrow's own memory.

    A thread of its pools may be the last to hold a buffer. One of Python's it could free only under
    Python's lock; should the process be ending by then, that aborts it.
    """
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def _check_shape(file: str, metadata: Any, cells: int) -> None:
    """Before anything is decompressed: as many rows as cells, one group, a known writer."""
    size = sum(
        metadata.row_group(g).column(c).total_uncompressed_size
        for g in range(metadata.num_row_groups)
        for c in range(metadata.num_columns)
    )
    for check, found, allowed in (
        ("rows", metadata.num_rows, metadata.num_rows == cells),
        ("row groups", metadata.num_row_groups, metadata.num_row_groups == 1),
        ("size", size, size <= _BYTES_PER_CELL * cells + _BYTES_PER_FILE),
        ("writer", metadata.created_by, re.fullmatch(_WRITER, str(metadata.created_by))),
    ):
        if not allowed:
            raise VerificationError(file, check, str(found)[:200], f"what {cells} cells need")
