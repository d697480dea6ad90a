"""Released tables, built from key sets and noisy codes alone.

A row for each combination of keys, ascending; keys are of the type of their column, so that a
merge with another table works and months sort. The entries of metadata name the release, the
question and the form, and say for people what a column is.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from release.bundle.metadata import field_facts
from release.bundle.tables.parquet import SHOWN, Facts, parquet_bytes
from release.exact.domain import Codes
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
    interval: str | None = None,
) -> bytes:
    """The Parquet file of one query: key columns, labels, and what was drawn, as integers.

    The labels are in ``answer``, or for a tuple in ``answer_<name>`` of each part. What was drawn
    is ``answer_code``, the number of the joint answer for a tuple; of noise on sums it is the noisy
    sums, from which the labels follow. Its shape is (cells, columns), or (cells,) of one column.
    ``kinds`` are the types of the columns of the table that was read. ``interval`` says how the
    true answers lie around the published ones (module ``intervals``).
    """
    # docs/design/format.md, 4.3
    schema, outcomes = _schema(query, kinds), outcomes.reshape(len(keys), -1)
    columns = []
    for place, column in enumerate(query.by):
        texts = list(map(itemgetter(place), keys))
        columns.append(_key_column(texts, schema.field(column).type))
    coordinates = query.answer_codes(outcomes)
    for name, part, codes in zip(query.columns, query.column_domains, coordinates, strict=True):
        labels: list[Any] = list(map(part.labels.__getitem__, codes.tolist()))
        if pa.types.is_string(schema.field(name).type):
            columns.append(text_column(labels))
        else:
            columns.append(number_column(labels, pa.int64()))
    for name, drawn in zip(query.outcome_columns, outcomes.T, strict=True):
        columns.append(number_column(drawn, schema.field(name).type))
    entries = {"release_id": release_id, "query": query.name, "format": FORMAT}
    table = pa.Table.from_arrays(columns, schema=schema)
    return parquet_bytes(table, entries, _facts(query, interval))


def _key_column(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    if pa.types.is_int64(kind):
        return number_column(list(map(int, texts)), kind)
    if pa.types.is_date32(kind):
        days = [(datetime.date.fromisoformat(text) - _FIRST_DAY).days for text in texts]
        return number_column(np.array(days, dtype=np.int32), pa.int32()).view(kind)
    return text_column(texts)


def _schema(query: Query, kinds: Mapping[str, ColumnType]) -> pa.Schema:
    """The columns of a released table."""
    fields = []
    for column in query.by:
        kind = _KEY_KINDS.get(kinds[column], pa.string())
        fields.append(pa.field(column, kind, nullable=False))
    for name, part in zip(query.columns, query.column_domains, strict=True):
        kind = pa.string() if isinstance(part.labels[0], str) else pa.int64()
        fields.append(pa.field(name, kind, nullable=False))
    # 32 bits hold the codes of all but the widest domains.
    is_wide = query.outcome_columns != ("answer_code",) or query.answers.size > 2**31
    for name in query.outcome_columns:
        fields.append(pa.field(name, pa.int64() if is_wide else pa.int32(), nullable=False))
    return pa.schema(fields)


def _facts(query: Query, interval: str | None) -> Facts:
    """What people are told of the answers; ``interval`` is said of each."""
    facts = {}
    for name, known in zip(query.columns, field_facts(query), strict=True):
        own = {fact: known[fact] for fact in SHOWN if fact in known}
        facts[name] = own if interval is None else own | {"interval": interval}
    return facts
