"""Released tables: built from key sets and noisy codes alone, and read back strictly.

Plain strings and integers, sorted by key, no dictionaries, no index, no metadata but the four
declared entries, the spec's facts of each field (title, unit, scale, labels, edges), and how far
intervals of a public mechanism reach: nothing in the file can carry a value that was not released.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise, starmap
from operator import itemgetter, lt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from release.bundle.metadata import field_facts
from release.bundle.tables.parquet import (
    check_encoding,
    check_entries,
    check_shape,
    expect,
    missing_values,
    parquet_bytes,
    source_of,
    unreadable,
)
from release.errors import VerificationError
from release.exact.domain import Codes
from release.spec.domains import MAX_ANSWERS
from release.spec.query import Query
from release.tables.columns import number_column, text_column

FORMAT = "dp-release/data/v1"

_BYTES_PER_CELL, _BYTES_PER_FILE = 20_000, 1_000_000


def released_bytes(
    release_id: str,
    query: Query,
    keys: tuple[tuple[str, ...], ...],
    outcomes: Codes,
    interval: str | None = None,
) -> bytes:
    """The Parquet file of one query: key columns, labels, and what was drawn, as integers.

    The labels are in ``answer``, or for a tuple in ``answer_<name>`` of each part. What was drawn
    is ``answer_code``, the number of the joint answer for a tuple; of noise on sums it is the noisy
    sums, from which the labels follow. Its shape is (cells, columns), or (cells,) of one column.
    ``interval`` says how the true answers lie around the published ones (module ``intervals``).
    """
    # The bytes are part of the format (docs/design/format.md, 5.4): a verifier writes them anew.
    schema, outcomes = released_schema(query, interval), outcomes.reshape(len(keys), -1)
    columns = list(map(text_column, _key_columns(query, keys)))
    coordinates = query.answer_codes(outcomes)
    for name, part, codes in zip(query.columns, query.column_domains, coordinates, strict=True):
        labels: list[Any] = list(map(part.labels.__getitem__, codes.tolist()))
        if pa.types.is_string(schema.field(name).type):
            columns.append(text_column(labels))
        else:
            columns.append(number_column(labels, pa.int64()))
    for name, drawn in zip(query.outcome_columns, outcomes.T, strict=True):
        columns.append(number_column(drawn, schema.field(name).type))
    return parquet_bytes(pa.Table.from_arrays(columns, schema=schema), _entries(release_id, query))


def _entries(release_id: str, query: Query) -> dict[str, str]:
    return {"release_id": release_id, "query": query.name, "format": FORMAT}


def _key_columns(query: Query, keys: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    return [tuple(map(itemgetter(place), keys)) for place in range(len(query.by))]


def released_schema(query: Query, interval: str | None = None) -> pa.Schema:
    """The columns of a released table; ``interval`` is said of the answer."""
    fields = []
    for column in query.by:
        fields.append(pa.field(column, pa.string(), nullable=False))
    parts = zip(query.columns, query.column_domains, field_facts(query), strict=True)
    for name, part, facts in parts:
        kind = pa.string() if isinstance(part.labels[0], str) else pa.int64()
        metadata = dict(zip(facts, map(_text, facts.values()), strict=True))
        if interval is not None:
            metadata["interval"] = interval
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
    # The rows are read before they are counted against the keys.
    if cells > MAX_ANSWERS:
        raise VerificationError(file, "cells", str(cells), f"at most {MAX_ANSWERS}")
    try:
        data = path.read_bytes()
        parquet = pq.ParquetFile(source_of(data))
        # Before any row is read: a footer can ask for any amount of memory.
        check_shape(file, parquet.metadata, cells, _BYTES_PER_CELL * cells + _BYTES_PER_FILE)
        table = parquet.read()
    except VerificationError:
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        raise unreadable(file) from error
    interval = stated_interval(parquet.schema_arrow, query)
    schema = released_schema(query, interval)
    check_entries(file, parquet.metadata, _entries(release_id, query), schema)
    _check_columns(file, table, query, cells)
    check_encoding(file, parquet.metadata)
    expect(file, "missing values", missing_values(table), 0)
    keys, outcomes = _checked_rows(file, table, query)
    rewritten = released_bytes(release_id, query, keys, outcomes, interval)
    if rewritten == data:
        return CheckedTable(keys, outcomes, True)
    again = pq.ParquetFile(source_of(rewritten))
    # Arrow's copy of the schema holds the fields' own metadata, which ``check_entries`` skipped.
    if not parquet.schema_arrow.equals(again.schema_arrow, check_metadata=True):
        raise VerificationError(file, "field metadata", "another", "what the spec says of a field")
    if not again.read().equals(table):
        raise VerificationError(file, "answers", "a label", "the label of its code")
    if again.metadata.created_by == parquet.metadata.created_by:
        raise VerificationError(file, "bytes", "others", "those that these answers are written as")
    return CheckedTable(keys, outcomes, False)


def stated_interval(schema: pa.Schema, query: Query) -> str | None:
    """What the first answer column says of its interval, in words that no verifier compares."""
    place = schema.get_field_index(query.columns[0])
    metadata = {} if place < 0 else schema.field(place).metadata or {}
    text = metadata.get(b"interval")
    return None if text is None else text.decode("utf-8", "replace")


def _check_columns(file: str, table: pa.Table, query: Query, cells: int) -> None:
    columns = released_schema(query)
    expect(file, "column names", table.schema.names, columns.names)
    expect(file, "column types", table.schema.types, columns.types)
    expect(file, "rows", table.num_rows, cells)


def _checked_rows(
    file: str, table: pa.Table, query: Query
) -> tuple[tuple[tuple[str, ...], ...], Codes]:
    """The keys of a table, ascending, each once, and what was drawn: codes are of the domain."""
    columns = table.select(query.by).to_pydict().values()
    keys = tuple(zip(*columns, strict=True)) if columns else ((),)
    # Strictly ascending: with equal keys a cell would stand twice.
    if not all(starmap(lt, pairwise(keys))):
        raise VerificationError(file, "order", "keys out of order", "keys ascending, each once")
    drawn, is_code = [], []
    for name in query.outcome_columns:
        drawn.append(table.column(name).to_pylist())
        is_code.append(name.startswith("answer_code"))
    outcomes = np.array(drawn, dtype=np.int64).T.reshape(len(keys), -1)
    size = query.answers.size
    codes = outcomes[:, np.array(is_code)]
    # Labels of a code below 0 would be those from the end: Python counts backwards there.
    if not ((codes >= 0) & (codes < size)).all():
        raise VerificationError(file, "answers", "a code outside", f"codes 0 to {size - 1}")
    impossible = query.impossible(outcomes)
    if impossible is not None:
        raise VerificationError(file, "answers", impossible, "what a mechanism can draw")
    return keys, outcomes
