"""A table is read in passing, without a copy, wherever that gives the same profiles."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from release.queries.engines.base import HereTables
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.tables import duckdb
from release.tables.duckdb import Tables
from tests.small import Row, Small, query
from tests.tables.test_meaning import raw

QUERIES = [
    query("count", by=["place", "day"], where="length(unit) > 1 OR wh > 2"),
    query("count", by=["day", "place"], where="unit <> 'u1'"),
    query("count", by=[], of="unit"),
    query("mode", by=["place"]),
    query("binned", by=["day"]),
]

ROWS = st.lists(
    st.tuples(
        st.sampled_from([b"u1", b"u", b"u2", b"", None, b"u\xff", "ü".encode(), b"\xed\xa0\x80"]),
        st.sampled_from([b"a", b"b", b"c", b"", None, b"a\xff", "a\ufffd".encode()]),
        st.integers(0, 3) | st.none(),
        st.integers(0, 3) | st.none(),
        st.integers(-2, 12) | st.none(),
    ),
    max_size=12,
)


def spec_over(folder: Path, rows: list[tuple[Any, ...]], asked: dict[str, Any]) -> SpecFile:
    """One query on rows of unchecked bytes, of one row a unit."""
    unit, place, *numbers = list(zip(*rows, strict=True)) or [()] * 5
    columns = {"unit": raw(list(unit)), "place": raw(list(place))}
    for name, values in zip(("day", "kind", "wh"), numbers, strict=True):
        columns[name] = pa.array(values, pa.int64())
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=5)
    plain = Small([], [asked], max_rows_per_unit=1).plain()
    # A text with U+FFFD is missing, so no row has this key.
    plain["keys"] = {"place": ["a\ufffd", "b", "a"], "day": {"range": [1, 2]}}
    plain["keys"] = {column: plain["keys"][column] for column in asked["by"]}
    if asked["by"] == ["place"]:
        plain["keys"]["place"] = ["a", "b"]
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return read_spec(path)


def is_copied(tables: Tables) -> bool:
    """Whether the engine holds the rows of the table."""
    names = "SELECT table_name FROM duckdb_tables()"
    return ("given rows",) in tables.connection.execute(names).fetchall()


def both(spec_file: SpecFile) -> tuple[pa.Table, pa.Table, bool]:
    """The profiles as they are first read, and of a copy; whether the first were of a copy too."""
    (asked,) = spec_file.spec.queries
    with HereTables(spec_file) as tables:
        first = tables.profiles(asked)
        copied = is_copied(tables)
        tables.rows("SELECT 1", "rows")
        assert is_copied(tables)
        return first, tables.profiles(asked), copied


@settings(max_examples=60)
@given(ROWS, st.sampled_from(QUERIES))
def test_the_same_is_read_in_passing_as_of_a_copy(
    rows: list[tuple[Any, ...]], asked: dict[str, Any]
) -> None:
    """Whatever bytes a unit or a key has, and whether or not units have several rows."""
    with tempfile.TemporaryDirectory() as folder:
        first, second, _ = both(spec_over(Path(folder), rows, asked))
    assert first.equals(second)


@pytest.mark.parametrize("most", [3, 10**8])
@pytest.mark.parametrize("asked", QUERIES)
def test_a_table_is_copied_only_where_a_unit_has_two_rows_that_count(
    asked: dict[str, Any], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where hashes are too many to be held, the engine groups them."""
    monkeypatch.setattr(duckdb, "_MOST_HASHES", most)
    rows: list[tuple[Any, ...]] = [
        (b"u%d" % i, b"ab"[i % 2 :][:1], 1 + i % 2, i % 3, i) for i in range(2, 9)
    ]
    rows += [(b"u1", b"a", 1, 1, 3), (None, b"a", 1, 1, 3), (None, b"a", 1, 1, 3)]
    # Rows in no cell use up no bound, and a unit has its one row elsewhere.
    elsewhere = [(b"u9", b"nowhere", 7, None, 3)] * 2 if asked["by"] else []
    first, second, copied = both(spec_over(tmp_path, rows + elsewhere, asked))
    assert first.equals(second)
    assert not copied
    twice = [(b"u2", b"a", 1, 1, 3)]
    first, second, copied = both(spec_over(tmp_path, rows + twice, asked))
    assert first.equals(second)
    assert copied


@pytest.mark.parametrize(
    "changed",
    [
        {"fixed": ["place"]},
        {"max_rows_per_unit": 2},
        {"queries": [QUERIES[0], QUERIES[1] | {"name": "other"}]},
    ],
)
def test_other_tables_are_copied_before_they_are_read(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    """A fixed part is that of all rows of a unit, and several queries share a copy."""
    rows: list[Row] = [{"unit": "u1", "place": "a", "day": 1, "kind": 1, "wh": 3}]
    given_small: dict[str, Any] = {"queries": [QUERIES[0]], "max_rows_per_unit": 1}
    spec_file = read_spec(Small(rows, **given_small | changed).write(tmp_path))
    with HereTables(spec_file) as tables:
        assert tables.profiles(spec_file.spec.queries[0]).num_rows == 1
        assert is_copied(tables)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_are_numbered_however_they_are_stored(kind: pa.DataType, tmp_path: Path) -> None:
    """Also from files with other keys in other places."""
    spec_file = spec_over(tmp_path, [(b"u1", b"a", 1, 1, 3), (b"u2", b"b", 2, 1, 3)], QUERIES[3])
    stored = pq.read_table(tmp_path / "rows.parquet")
    stored = stored.set_column(1, "place", stored.column("place").cast(kind))
    pq.write_table(stored, tmp_path / "rows.parquet")
    first, second, copied = both(spec_file)
    assert first.column("free").to_pylist() == [0, 1]
    assert first.equals(second)
    assert not copied


@pytest.mark.parametrize("rows", [[b"u1", b"u2", None], [b"u1", b"u1", None]])
def test_rows_set_aside_are_counted_whether_or_not_the_table_is_copied(
    rows: list[bytes | None], tmp_path: Path
) -> None:
    """Of two neighbors one is copied and one is not; an audited run of either ends alike."""
    table = [(unit, b"a", 1, 1, 3) for unit in rows]
    spec_file = spec_over(tmp_path, table, query("count", by=["place"]))
    with HereTables(spec_file) as tables:
        tables.profiles(spec_file.spec.queries[0])
        copied = is_copied(tables)
        assert copied == (rows[0] == rows[1])
        assert tables.set_aside("rows")["no unit", "unit"] == 1
        assert is_copied(tables) == copied


def test_a_key_with_the_name_of_a_part_of_another_column_is_read(tmp_path: Path) -> None:
    """A column ``a.b`` beside a column ``a`` of which ``b`` is a part."""
    units = [f"u{number}" for number in range(100)]
    parts = pa.array([{"b": "other"}] * 100)
    columns = {"unit": units, "a.b": ["x", "y"] * 50, "a": parts}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    plain = Small([], [query("count", by=["a.b"])], max_rows_per_unit=1).plain()
    plain["keys"] = {"a.b": ["x", "y", "z"]}
    plain["tables"]["rows"]["columns"] = {"unit": "string", "a.b": "string"}
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    spec_file = read_spec(path)
    first, second, copied = both(spec_file)
    assert not copied
    assert first.equals(second)
    assert first.num_rows > 0
