"""Released tables, built from key sets and noisy codes alone.

A row for each combination of keys, ascending; keys are of the type of their column, so that a
merge with another table works and months sort. The entries of metadata name the release, the
question and the form, and say for people what a column is.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from release.bundle.metadata import field_facts
from release.bundle.tables.intervals import END_TITLES, INTERVAL, LEVEL_TEXT, Around
from release.bundle.tables.parquet import SHOWN, Facts, parquet_bytes
from release.exact.domain import Codes
from release.queries.intervals import Ends
from release.spec.declarations import ColumnType
from release.spec.query import Query
from release.tables.columns import number_column, text_column

FORMAT = "dp-release/data/v1"

_KEY_KINDS = {ColumnType.INTEGER: pa.int64(), ColumnType.DATE: pa.date32()}
_FIRST_DAY = datetime.date(1970, 1, 1)


def released_bytes(
    release_id: str,
    query: Query,
    kinds: Mapping[str, ColumnType],
    keys: tuple[tuple[str, ...], ...],
    outcomes: Codes,
    around: Around | None = None,
) -> bytes:
    """The Parquet file of one query: key columns, labels, intervals, and what was drawn.

    The labels are in ``answer``, or for a tuple in ``answer_<name>`` of each part. What was drawn
    is ``answer_code``, the number of the joint answer for a tuple; of noise on sums it is the noisy
    sums, from which the labels follow. Its shape is (cells, columns), or (cells,) of one column.
    ``kinds`` are the types of the columns of the table that was read. ``around`` says where the
    true answers lie, in the columns ``low`` and ``high``; None where the noise is not public.
    """
    # docs/design/format.md, 4.3
    ends = None if around is None else around.ends
    schema = _schema(query, kinds, ends)
    outcomes = outcomes.reshape(len(keys), -1)
    columns = []
    for place, column in enumerate(query.by):
        texts = [key[place] for key in keys]
        columns.append(_key_column(texts, schema.field(column).type))
    coordinates = query.answer_codes(outcomes)
    for name, part, codes in zip(query.columns, query.column_domains, coordinates, strict=True):
        labels: list[Any] = [part.labels[code] for code in codes.tolist()]
        if pa.types.is_string(schema.field(name).type):
            columns.append(text_column(labels))
        else:
            columns.append(number_column(labels, pa.int64()))
    if ends is not None:
        for values in ends:
            columns.append(number_column(values, pa.from_numpy_dtype(values.dtype)))
    for name, drawn in zip(query.outcome_columns, outcomes.T, strict=True):
        columns.append(number_column(drawn, schema.field(name).type))
    entries = {"release_id": release_id, "query": query.name, "format": FORMAT}
    table = pa.Table.from_arrays(columns, schema=schema)
    return parquet_bytes(table, entries, _facts(query, around))


def _key_column(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    if pa.types.is_int64(kind):
        return number_column(list(map(int, texts)), kind)
    if pa.types.is_date32(kind):
        days = [(datetime.date.fromisoformat(text) - _FIRST_DAY).days for text in texts]
        return number_column(np.array(days, dtype=np.int32), pa.int32()).view(kind)
    return text_column(texts)


def _schema(query: Query, kinds: Mapping[str, ColumnType], ends: Ends | None) -> pa.Schema:
    """The columns of a released table."""
    fields = []
    for column in query.by:
        kind = _KEY_KINDS.get(kinds[column], pa.string())
        fields.append(pa.field(column, kind, nullable=False))
    for name, part in zip(query.columns, query.column_domains, strict=True):
        kind = pa.string() if isinstance(part.labels[0], str) else pa.int64()
        fields.append(pa.field(name, kind, nullable=False))
    if ends is not None:
        for name, values in zip(INTERVAL, ends, strict=True):
            fields.append(pa.field(name, pa.from_numpy_dtype(values.dtype), nullable=False))
    # 32 bits hold the codes of all but the widest domains.
    is_wide = query.outcome_columns != ("answer_code",) or query.answers.size > 2**31
    for name in query.outcome_columns:
        fields.append(pa.field(name, pa.int64() if is_wide else pa.int32(), nullable=False))
    return pa.schema(fields)


def _facts(query: Query, around: Around | None) -> Facts:
    """What people are told of the answers and of their intervals."""
    facts = {}
    for name, known in zip(query.columns, field_facts(query), strict=True):
        own = {fact: known[fact] for fact in SHOWN if fact in known}
        if around is not None and around.words is not None:
            own["interval"] = around.words
        facts[name] = own
    if around is not None and around.ends is not None:
        for name in INTERVAL:
            facts[name] = {"title": END_TITLES[name], "interval": LEVEL_TEXT}
    return facts
