"""Released tables: built from key sets and noisy codes alone, and read back strictly.

Plain strings and integers, sorted by key, no dictionaries, no index, no metadata but the three
declared entries: nothing in the file can carry a value that was not released.
"""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from release.answers import AnswerDomain, Codes
from release.errors import VerificationError

FORMAT = "dp-release/data/v1"

_WRITER = r"parquet-cpp-arrow version [0-9]{1,3}(\.[0-9]{1,3}){2}"
_BYTES_PER_CELL, _BYTES_PER_FILE = 20_000, 1_000_000


def released_bytes(
    release_id: str,
    query: str,
    by: list[str],
    keys: tuple[tuple[str, ...], ...],
    domain: AnswerDomain,
    noisy: Codes,
) -> bytes:
    """The Parquet file of one query: key columns, ``answer`` (label) and ``answer_code``."""
    schema = released_schema(by, domain)
    columns = [pa.array([key[i] for key in keys], pa.string()) for i in range(len(by))]
    labels = [domain.labels[code] for code in noisy.tolist()]
    columns.append(pa.array(labels, schema.field("answer").type))
    columns.append(pa.array(noisy.astype(np.int32), pa.int32()))
    sink = io.BytesIO()
    # store_schema would add an Arrow copy of the schema: one more place to hide something in.
    with pq.ParquetWriter(
        sink, schema, compression="zstd", use_dictionary=False, store_schema=False
    ) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata({"release_id": release_id, "query": query, "format": FORMAT})
    return sink.getvalue()


def released_schema(by: list[str], domain: AnswerDomain) -> pa.Schema:
    """The columns of a released table."""
    label = pa.string() if isinstance(domain.labels[0], str) else pa.int64()
    return pa.schema(
        [
            *(pa.field(column, pa.string(), nullable=False) for column in by),
            pa.field("answer", label, nullable=False),
            pa.field("answer_code", pa.int32(), nullable=False),
        ]
    )


def check_released(  # noqa: PLR0913 - what a table has to agree with
    file: str,
    path: Path,
    release_id: str,
    query: str,
    by: list[str],
    cells: int,
    domain: AnswerDomain,
) -> pa.Table:
    """Read a released table and check that it holds what it may and nothing else.

    Raises:
        VerificationError: the first check that fails.
    """
    try:
        data = path.read_bytes()
        parquet = pq.ParquetFile(io.BytesIO(data))
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
        b"query": query.encode(),
        b"format": FORMAT.encode(),
    }
    expect("metadata", metadata, wanted)
    columns = released_schema(by, domain)
    expect("column names", table.schema.names, columns.names)
    expect("column types", table.schema.types, columns.types)
    expect("rows", table.num_rows, cells)
    for group in range(parquet.metadata.num_row_groups):
        for index in range(parquet.metadata.num_columns):
            chunk = parquet.metadata.row_group(group).column(index)
            if chunk.has_dictionary_page or any("DICTIONARY" in e for e in chunk.encodings):
                raise VerificationError(file, "encoding", "a dictionary", "plain values")
    expect("missing values", sum(column.null_count for column in table.columns), 0)
    keys = list(zip(*(table.column(c).to_pylist() for c in by), strict=True)) if by else [()]
    if not all(a < b for a, b in pairwise(keys)):
        raise VerificationError(file, "order", "keys out of order", "keys ascending, each once")
    codes = table.column("answer_code").to_pylist()
    if not all(0 <= code < domain.size for code in codes):
        raise VerificationError(file, "answers", "a code outside", f"codes 0 to {domain.size - 1}")
    labels = [domain.labels[code] for code in codes]
    if labels != table.column("answer").to_pylist():
        raise VerificationError(file, "answers", "a label", "the label of its code")
    made = released_bytes(release_id, query, by, tuple(keys), domain, np.array(codes))
    same_writer = pq.read_metadata(io.BytesIO(made)).created_by == parquet.metadata.created_by
    if same_writer and made != data:
        raise VerificationError(file, "bytes", "others", "those that these answers are written as")
    return table


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
