"""The columns of a tabulation's files: whose rows stand where, and what is in them.

A file has a row for each cell of each of its tables, sorted by area, then by table, then by cell in
row-major order. The columns of the areas are all levels from the highest down to that of the table,
so every file shows in which areas an area lies. Rows are never made one by one: a column of text is
taken from the few names it can have, in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tables.columns import number_column, text_column
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.files.descriptions import ESTIMATE
from release.tabulations.files.numbers import LevelNumbers
from release.tabulations.spec.areas import NamedAreas
from release.tabulations.spec.opened import NamedMargin, Names, OpenTabulation

_EXACT = 2**53
"""Integers up to here are doubles; Python divides larger ones exactly before it rounds."""

_PIECE = 2**20
"""Rows of one piece of a column of text: Arrow holds 2^31 bytes in one."""

_IN_MILLIONTHS = ("answer", "standard_error", ESTIMATE)


@dataclass(frozen=True, eq=False)
class Keys:
    """The rows of a file.

    Attributes:
        named: the areas.
        level: the level of the rows.
        margins: the tables whose rows each area has, in order.
        labels: of each attribute and grouping that has a column, in the order of the columns.
    """

    named: NamedAreas
    level: int
    margins: tuple[NamedMargin, ...]
    labels: Mapping[str, tuple[str, ...]]

    @property
    def levels(self) -> tuple[str, ...]:
        """The columns of the areas."""
        return self.named.areas.levels[: self.level + 1]

    @property
    def rows_of_an_area(self) -> int:
        """The number of rows of one area."""
        return sum(margin.margin.cells for margin in self.margins)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.named.areas.size(self.level) * self.rows_of_an_area


def level_keys(opened: OpenTabulation, level: int) -> Keys:
    """The rows of the published tables of a level."""
    return _keys(opened, level, opened.published_at(level), opened.column_names[level])


def table_keys(opened: OpenTabulation, table: NamedMargin) -> Keys:
    """The rows of one table."""
    return _keys(opened, table.level, (table,), table.names)


def _keys(
    opened: OpenTabulation, level: int, margins: tuple[NamedMargin, ...], names: Names
) -> Keys:
    labels = dict(zip(names, opened.labels(names), strict=True))
    return Keys(opened.named, level, margins, labels)


def key_columns(keys: Keys) -> list[pa.ChunkedArray]:
    """The columns of the areas, then those of the categories, all of text."""
    columns = []
    size = keys.named.areas.size(keys.level)
    for upper in range(keys.level + 1):
        places = keys.named.places(keys.level, upper)
        texts = text_column(keys.named.names[upper])
        columns.append(_taken(texts, np.repeat(places, keys.rows_of_an_area)))
    for name, labels in keys.labels.items():
        # The last place is that of rows whose margin is not broken down by this column.
        texts = pa.concat_arrays([text_column(labels), pa.nulls(1, pa.string())])
        places_of_margins = [_label_places(keys, margin, name) for margin in keys.margins]
        own = np.concatenate(places_of_margins)
        # Every area has the same rows: what holds for one is repeated for all.
        columns.append(_taken(texts, np.tile(own, size)))
    return columns


def _label_places(keys: Keys, margin: NamedMargin, name: str) -> Codes:
    """The place of the label of ``name`` for each cell of a margin; after the last without one."""
    if name not in margin.names:
        return np.full(margin.margin.cells, len(keys.labels[name]), dtype=np.int64)
    shape = [len(keys.labels[own]) for own in margin.names]
    # Row-major, as the cells of every margin are numbered.
    places = np.unravel_index(np.arange(margin.margin.cells), shape)
    return np.asarray(places[margin.names.index(name)])


def _taken(texts: pa.Array, places: Codes) -> pa.ChunkedArray:
    pieces = []
    for start in range(0, places.size, _PIECE):
        pieces.append(texts.take(number_column(places[start : start + _PIECE], pa.int64())))
    return pa.chunked_array(pieces, pa.string())


def level_table(opened: OpenTabulation, numbers: LevelNumbers) -> pa.Table:
    """The file of the published numbers of a level."""
    columns = {}
    # The names of the columns are those of the fields of MarginNumbers.
    for name in ("answer", "rounded", "low", "high", "standard_error"):
        columns[name] = _in_rows([getattr(margin, name) for margin in numbers.margins])
    return _table(level_keys(opened, numbers.level), columns)


def counts_table(
    opened: OpenTabulation, table: NamedMargin, columns: Mapping[str, Codes]
) -> pa.Table:
    """The file of the numbers of one table.

    Args:
        opened: the tabulation.
        table: which table.
        columns: of the shape (areas, cells), by their names: ``"measured"``, ``"estimate"`` in
            millionths, ``"count"``.
    """
    values = {name: _in_rows([own]) for name, own in columns.items()}
    return _table(table_keys(opened, table), values)


def _in_rows(tables: Sequence[Codes]) -> Codes:
    """The numbers of several margins in the order of the rows; each shape is (areas, cells)."""
    return np.concatenate(tables, axis=1).reshape(-1)


def _table(keys: Keys, numbers: Mapping[str, Codes]) -> pa.Table:
    # The columns of docs/design/format.md, 4.4: keys first, in the order of the spec.
    columns = key_columns(keys)
    for name, values in numbers.items():
        if name in _IN_MILLIONTHS:
            columns.append(number_column(_of_millionths(values), pa.float64()))
        else:
            columns.append(number_column(values, pa.int64()))
    return pa.Table.from_arrays(columns, schema=_schema(keys, numbers))


def _of_millionths(values: Codes) -> NDArray[np.float64]:
    """The doubles nearest to so many millionths."""
    if max(int(values.max(initial=0)), -int(values.min(initial=0))) <= _EXACT:
        # A quotient of IEEE doubles is rounded correctly, so it is the same on every machine.
        return np.asarray(values / MILLION)
    # Python rounds the quotient of two integers once; NumPy would round a large one before it.
    return np.array([value / MILLION for value in values.tolist()])


def _schema(keys: Keys, numbers: Iterable[str]) -> pa.Schema:
    """The columns of a file, with these columns of numbers."""
    fields = [pa.field(level, pa.string(), nullable=False) for level in keys.levels]
    for name in keys.labels:
        is_partial = any(name not in margin.names for margin in keys.margins)
        fields.append(pa.field(name, pa.string(), nullable=is_partial))
    for name in numbers:
        kind = pa.float64() if name in _IN_MILLIONTHS else pa.int64()
        fields.append(pa.field(name, kind, nullable=False))
    return pa.schema(fields)
