"""The files of a tabulation: what stands where, and that nothing else gets past the checks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release.exact.domain import Codes
from release.tabulations.files.files import level_bytes, measured_bytes
from release.tabulations.files.numbers import LevelNumbers, MarginNumbers, tabulated
from release.tabulations.spec.opened import NamedMargin, OpenTabulation
from tests.tabulations.files.cases import LEVELS, detail_of, draw_of, opened_of

RELEASE = "census-2024"
ROWS = {"state": 1 + 6, "county": 2 * (2 + 1 + 6), "tract": 5 * (2 + 6 + 4)}

Change = Callable[[pa.Table], pa.Table]


@cache
def example() -> tuple[OpenTabulation, tuple[LevelNumbers, ...]]:
    opened = opened_of()
    detail = detail_of(opened)
    tables = {(0, detail): Fraction(1, 2), (2, detail): Fraction(1, 3)}
    draw = draw_of(opened, tables, np.random.default_rng(3))
    return opened, tabulated(opened, draw.measured, draw.noises, draw.widths).levels


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
    data = measured_bytes(RELEASE, opened, race_by_age(opened), values, None)
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
