"""The files of a tabulation: what stands where, and that nothing else gets past the checks."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release.bundle.tables.parquet import with_facts
from release.bundle.tabulations.files import declared_bytes, level_bytes, measured_bytes
from release.bundle.tabulations.layout import counts_table
from release.bundle.tabulations.numbers import LevelNumbers, MarginNumbers, tabulated
from release.bundle.tabulations.reading import areas_of, check_declared, check_level, check_measured
from release.errors import VerificationError
from release.exact.domain import Codes
from release.spec.declarations import ColumnType
from release.spec.tabulations.open import MOST_CELLS
from release.spec.tabulations.opened import NamedMargin, OpenTabulation
from tests.bundle.tabulations.cases import LEVELS, detail_of, draw_of, opened_of

RELEASE = "census-2024"
ROWS = {"state": 1 + 6, "county": 2 * (2 + 1 + 6), "tract": 5 * (2 + 6 + 4)}

Change = Callable[[pa.Table], pa.Table]


@cache
def example() -> tuple[OpenTabulation, tuple[LevelNumbers, ...]]:
    opened = opened_of()
    detail = detail_of(opened)
    tables = {(0, detail): Fraction(1, 2), (2, detail): Fraction(1, 3)}
    draw = draw_of(opened, tables, np.random.default_rng(3))
    return opened, tabulated(opened, draw.measured, draw.noises, draw.widths)


def race_by_age(opened: OpenTabulation) -> NamedMargin:
    return next(one for one in opened.published_at(2) if one.names == ("race", "age"))


def some_counts(opened: OpenTabulation) -> Codes:
    return np.random.default_rng(5).integers(-9, 99, (opened.named.areas.size(2), 6))


def table_of(data: bytes) -> pa.Table:
    # Reading puts the entries of the file into the schema.
    return pq.ParquetFile(pa.BufferReader(data)).read().replace_schema_metadata(None)


def rows_of(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table_of(data).to_pylist()
    return rows


@pytest.mark.parametrize("level", range(3))
def test_a_levels_file_has_every_cell_in_order(level: int) -> None:
    opened, numbers = example()
    own, name = numbers[level], LEVELS[level]
    rows = iter(rows_of(level_bytes(RELEASE, opened, own)))
    lines = sorted({line[: level + 1] for line in areas_by_hand()})
    columns = opened.column_names[level]
    for area, line in enumerate(lines):
        for one, found in zip(opened.published_at(level), own.margins, strict=True):
            for cell, labels in enumerate(product(*opened.labels(one.names))):
                row = next(rows)
                assert [row.pop(column) for column in LEVELS[: level + 1]] == list(line)
                shown = dict(zip(one.names, labels, strict=True))
                assert [row.pop(column) for column in columns] == [
                    shown.get(column) for column in columns
                ]
                assert row == numbers_by_hand(found, area, cell)
    assert next(rows, None) is None
    assert table_of(level_bytes(RELEASE, opened, own)).num_rows == ROWS[name]


def areas_by_hand() -> list[tuple[str, ...]]:
    south = [("hi", "south", tract) for tract in ("t2", "t3", "t9")]
    return [("hi", "north", "t1"), ("hi", "north", "t4"), *south]


def numbers_by_hand(found: MarginNumbers, area: int, cell: int) -> dict[str, float]:
    return {
        "answer": int(found.answer[area, cell]) / 10**6,
        "rounded": found.rounded[area, cell],
        "low": found.low[area, cell],
        "high": found.high[area, cell],
        "standard_error": int(found.standard_error[area, cell]) / 10**6,
    }


def test_a_measured_file_has_the_cells_of_its_margin_and_any_sign() -> None:
    opened, _ = example()
    values = some_counts(opened)
    assert (values < 0).any()
    data = measured_bytes(RELEASE, opened, race_by_age(opened), values)
    cells = product(areas_by_hand(), product("abc", ("young", "old")))
    expected = []
    for (area, labels), value in zip(cells, values.reshape(-1).tolist(), strict=True):
        row = dict(zip((*LEVELS, "race", "age", "measured"), (*area, *labels, value), strict=True))
        expected.append(row)
    assert rows_of(data) == expected


def test_large_answers_are_the_nearest_doubles() -> None:
    opened, numbers = example()
    millionths = 2**53 + 1
    tables = []
    for one in numbers[0].margins:
        answer = np.full_like(one.answer, millionths)
        zeros = np.zeros_like(answer)
        tables.append(MarginNumbers(answer, zeros, zeros, zeros, zeros))
    rows = rows_of(level_bytes(RELEASE, opened, LevelNumbers(0, tuple(tables))))
    assert {row["answer"] for row in rows} == {float(Fraction(millionths, 10**6))}
    # Rounded to a double before it is divided, it would be another number.
    assert float(millionths) / 10**6 != float(Fraction(millionths, 10**6))


def test_files_are_read_back(tmp_path: Path) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    for own in numbers:
        path.write_bytes(level_bytes(RELEASE, opened, own))
        assert check_level("file", path, RELEASE, opened, own)
    values, table = some_counts(opened), race_by_age(opened)
    path.write_bytes(measured_bytes(RELEASE, opened, table, values))
    checked = check_measured("file", path, RELEASE, opened, table)
    assert np.array_equal(checked.values, values)
    assert checked.by_bytes
    path.write_bytes(declared_bytes(RELEASE, opened, table, np.abs(values)))
    declared = check_declared("file", path, RELEASE, opened, table)
    assert np.array_equal(declared.values, np.abs(values))


def test_the_lowest_levels_file_shows_the_areas(tmp_path: Path) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    path.write_bytes(level_bytes(RELEASE, opened, numbers[2]))
    named = areas_of("file", path, ROWS["tract"], LEVELS, {})
    assert named.names == (("hi",), ("north", "south"), ("t1", "t4", "t2", "t3", "t9"))
    for own, parents in zip(named.areas.parents, ([0], [0, 0], [0, 0, 1, 1, 1]), strict=True):
        assert own.tolist() == parents


def rewritten(table: pa.Table, entries: dict[str, str] | None = None, **options: Any) -> bytes:
    """The file of a table, with the metadata of the tracts' file unless told otherwise."""
    known = {
        "release_id": RELEASE,
        "query": "census_tract",
        "format": "dp-release/tabulation/v1",
    }
    sink = io.BytesIO()
    rules: dict[str, Any] = {"compression": "zstd", "use_dictionary": False} | options
    size = rules.pop("row_group_size", table.num_rows)
    # Without facts of columns, those that its own have.
    described = (
        table
        if table.schema.metadata
        else table.replace_schema_metadata(with_facts(table.schema).metadata)
    )
    with pq.ParquetWriter(sink, described.schema, **rules) as writer:
        writer.write_table(described, row_group_size=size)
        writer.add_key_value_metadata(known if entries is None else entries)
    return sink.getvalue()


def with_value(column: str, row: int, value: object) -> Change:
    """The change of one value."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.names.index(column)
        values = table.column(column).to_pylist()
        assert values[row] != value
        values[row] = value
        field = table.schema.field(column)
        return table.set_column(place, field, pa.array(values, field.type))

    return change


def with_gap(column: str) -> Change:
    """A missing value, in a column that may have some."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.names.index(column)
        values = [None, *table.column(column).to_pylist()[1:]]
        field = table.schema.field(column)
        return table.set_column(place, field.with_nullable(True), pa.array(values, field.type))

    return change


def with_type(column: str, kind: pa.DataType) -> Change:
    def change(table: pa.Table) -> pa.Table:
        place = table.schema.names.index(column)
        field = table.schema.field(column).with_type(kind)
        return table.set_column(place, field, table.column(column).cast(kind))

    return change


def in_order(places: list[int]) -> Change:
    return lambda table: table.take([*places, *range(len(places), table.num_rows)])


def with_unit(unit: str) -> Change:
    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field("answer").with_metadata({"title": "answer", "unit": unit})
        place = table.schema.names.index("answer")
        return table.set_column(place, field, table.column("answer"))

    return change


EXTRA = pa.field("note", pa.int64(), nullable=False)

CHANGES: dict[str, tuple[Change, str]] = {
    "answer": (with_value("answer", 7, 0.25), "answer: found row 8"),
    "not a number": (with_value("answer", 7, float("nan")), "answer: found row 8"),
    "rounded": (with_value("rounded", 0, 77), "rounded: found row 1"),
    "low": (with_value("low", 59, 78), "low: found row 60"),
    "high": (with_value("high", 3, 79), "high: found row 4"),
    "standard error": (with_value("standard_error", 2, 0.0), "standard_error: found row 3"),
    "another area": (with_value("tract", 2, "t7"), "tract: found row 3"),
    "another parent": (with_value("county", 2, "south"), "county: found row 3"),
    "another category": (with_value("age", 0, "old"), "age: found row 1"),
    "no category": (with_value("race", 2, None), "race: found a missing text"),
    "a category too many": (with_value("race", 0, "a"), "race: found a missing text"),
    "a gap in numbers": (with_gap("rounded"), "columns with gaps"),
    "a gap in areas": (with_gap("tract"), "columns with gaps"),
    "order of cells": (in_order([1, 0]), "age: found row 1"),
    "order of areas": (in_order([*range(12, 24), *range(12)]), "tract: found row 1"),
    "one row short": (lambda table: table.slice(1), "rows: found 59"),
    "one row twice": (lambda table: pa.concat_tables([table, table.slice(59)]), "rows: found 61"),
    "a column more": (
        lambda table: table.append_column(EXTRA, pa.array([0] * table.num_rows)),
        "column names",
    ),
    "a column less": (lambda table: table.drop_columns(["low"]), "column names"),
    "order of columns": (lambda table: table.select(table.schema.names[::-1]), "column names"),
    "short integers": (with_type("low", pa.int32()), "column types"),
    "short floats": (with_type("answer", pa.float32()), "column types"),
    "another unit": (with_unit("cats"), "field metadata"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_table_is_refused(name: str, tmp_path: Path) -> None:
    opened, numbers = example()
    change, says = CHANGES[name]
    path = tmp_path / "file.parquet"
    path.write_bytes(rewritten(change(table_of(level_bytes(RELEASE, opened, numbers[2])))))
    with pytest.raises(VerificationError, match=says):
        check_level("file", path, RELEASE, opened, numbers[2])


ENTRIES = {"release_id": RELEASE, "query": "census_tract", "format": "dp-release/tabulation/v1"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"use_dictionary": True}, "encoding: found a dictionary"),
        ({"row_group_size": 20}, "row groups: found 3"),
        ({"compression": "snappy"}, "bytes: found others"),
        ({"write_statistics": False}, "bytes: found others"),
        ({"entries": ENTRIES | {"note": "hello"}}, "metadata"),
        ({"entries": ENTRIES | {"release_id": "another"}}, "metadata"),
        ({"entries": ENTRIES | {"query": "census_county"}}, "metadata"),
        ({"entries": ENTRIES | {"format": "dp-release/data/v1"}}, "metadata"),
        ({"entries": {}}, "metadata"),
    ],
)
def test_another_way_of_writing_is_refused(
    options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    data = level_bytes(RELEASE, opened, numbers[2])
    assert rewritten(table_of(data)) == data
    path.write_bytes(rewritten(table_of(data), **options))
    with pytest.raises(VerificationError, match=says):
        check_level("file", path, RELEASE, opened, numbers[2])


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    data = level_bytes(RELEASE, opened, numbers[2])
    with pytest.raises(VerificationError, match="format: found unreadable"):
        check_level("file", path, RELEASE, opened, numbers[2])
    for part in (data[:-1], data[: len(data) // 2], b"", data + b"x"):
        path.write_bytes(part)
        with pytest.raises(VerificationError, match="format: found unreadable"):
            check_level("file", path, RELEASE, opened, numbers[2])
    for place in range(4, len(data) - 8, 97):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with pytest.raises(VerificationError):
            check_level("file", path, RELEASE, opened, numbers[2])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (with_value("race", 0, "b"), "race: found row 1"),
        (with_value("tract", 6, "t1"), "tract: found row 7"),
        (in_order([1, 0]), "age: found row 1"),
        (with_gap("measured"), "columns with gaps"),
        (with_value("measured", 4, 2**52), "measured: found a number beyond"),
        (with_value("measured", 4, -(2**63)), "measured: found a number beyond"),
        (lambda table: table.rename_columns([*LEVELS, "race", "age", "count"]), "column names"),
        (with_type("measured", pa.float64()), "column types"),
    ],
)
def test_a_changed_measured_table_is_refused(change: Change, says: str, tmp_path: Path) -> None:
    opened, _ = example()
    table = race_by_age(opened)
    data = measured_bytes(RELEASE, opened, table, some_counts(opened))
    path = tmp_path / "file.parquet"
    entries = ENTRIES | {"query": "census_tract_race_age"}
    path.write_bytes(rewritten(change(table_of(data)), entries))
    with pytest.raises(VerificationError, match=says):
        check_measured("file", path, RELEASE, opened, table)


def test_the_file_of_another_margin_is_refused(tmp_path: Path) -> None:
    opened, _ = example()
    path = tmp_path / "file.parquet"
    path.write_bytes(measured_bytes(RELEASE, opened, race_by_age(opened), some_counts(opened)))
    for other in opened.published:
        if other != race_by_age(opened):
            with pytest.raises(VerificationError):
                check_measured("file", path, RELEASE, opened, other)


def test_declared_numbers_below_0_are_refused(tmp_path: Path) -> None:
    opened, _ = example()
    path = tmp_path / "file.parquet"
    table = race_by_age(opened)
    path.write_bytes(declared_bytes(RELEASE, opened, table, some_counts(opened)))
    with pytest.raises(VerificationError, match="count: found a number below 0"):
        check_declared("file", path, RELEASE, opened, table)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (with_value("county", 13, "south"), "areas: found levels do not nest"),
        (with_value("state", 40, ""), "areas: found the state is empty"),
        (with_gap("tract"), "missing names of areas"),
        (lambda table: table.select(table.schema.names[1:]), "column names"),
        (with_type("state", pa.large_string()), "column types"),
    ],
)
def test_areas_that_are_none_are_refused(change: Change, says: str, tmp_path: Path) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    path.write_bytes(rewritten(change(table_of(level_bytes(RELEASE, opened, numbers[2])))))
    with pytest.raises(VerificationError, match=says):
        areas_of("file", path, ROWS["tract"], LEVELS, {})


def test_areas_are_refused_that_are_no_values_of_their_column(tmp_path: Path) -> None:
    opened, numbers = example()
    path = tmp_path / "file.parquet"
    path.write_bytes(level_bytes(RELEASE, opened, numbers[2]))
    with pytest.raises(VerificationError, match="areas: "):
        areas_of("file", path, ROWS["tract"], LEVELS, {"tract": ColumnType.INTEGER})
    for rows in (0, MOST_CELLS + 1, ROWS["tract"] - 1):
        with pytest.raises(VerificationError, match="rows: "):
            areas_of("file", path, rows, LEVELS, {})


def test_text_longer_than_one_piece_is_taken_in_pieces() -> None:
    """More rows than a piece of a column has: the pieces join without a seam."""
    lines = [("hi", f"c{tract // 1000:03d}", f"t{tract:06d}") for tract in range(175_000)]
    opened = opened_of(lines=lines)
    values = np.arange(6 * len(lines)).reshape(-1, 6)
    found = counts_table(opened, race_by_age(opened), "measured", values)
    assert found.num_rows == 1_050_000
    column = found.column("tract")
    assert column.num_chunks > 1
    for row in (0, 2**20 - 1, 2**20, 1_049_999):
        assert column[row].as_py() == lines[row // 6][2]
        assert found.column("county")[row].as_py() == lines[row // 6][1]
        assert found.column("race")[row].as_py() == "abc"[row % 6 // 2]
