"""The verifier's reader of Parquet against three others, on sound, damaged and made files."""

from __future__ import annotations

import datetime
import io
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_release_verify.errors import Refused
from dp_release_verify.parquet import PEOPLE, Table, _File, read_table
from release.bundle.tables.parquet import parquet_bytes

KINDS: dict[str, tuple[Any, Any]] = {
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    "date": (pa.date32(), st.dates()),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 30))
    fields, columns = [], []
    for place in range(draw(st.integers(1, 5))):
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        is_optional = draw(st.booleans())
        own = values | st.none() if is_optional else values
        columns.append(pa.array(draw(st.lists(own, min_size=rows, max_size=rows)), kind))
        fields.append(pa.field(f"c{place}", kind, nullable=is_optional))
    return pa.table(columns, schema=pa.schema(fields))


def plain(table: Table) -> dict[str, list[Any]]:
    return {name: column.values for name, column in table.columns.items()}


@given(tables())
def test_what_is_written_is_read(table: pa.Table) -> None:
    data = parquet_bytes(table, {"release_id": "r", "query": "q"})
    found = read_table("t", data, table.num_rows)
    assert plain(found) == table.to_pydict()
    found.entries.pop(PEOPLE)
    assert found.entries == {"release_id": "r", "query": "q"}
    for field in table.schema:
        assert found.columns[field.name].is_optional == field.nullable


def sample() -> bytes:
    table = pa.table(
        {
            "place": pa.array(["a", "bä", "", "d" * 40]),
            "day": pa.array([datetime.date(2020, 1, day) for day in range(1, 5)]),
            "answer": pa.array([1, -5, 2**40, 0], pa.int64()),
            "code": pa.array([1, 2, 3, 4], pa.int32()),
            "part": pa.array(["x", None, None, "y"]),
            "number": pa.array([0.5, 1e300, -2.25, 0.0]),
        },
        schema=pa.schema(
            [
                pa.field("place", pa.string(), nullable=False),
                pa.field("day", pa.date32(), nullable=False),
                pa.field("answer", pa.int64(), nullable=False),
                pa.field("code", pa.int32(), nullable=False),
                pa.field("part", pa.string()),
                pa.field("number", pa.float64(), nullable=False),
            ]
        ),
    )
    return parquet_bytes(table, {"release_id": "r", "query": "q", "format": "f"})


def as_pandas(data: bytes) -> dict[str, list[Any]]:
    frame = pd.read_parquet(io.BytesIO(data), dtype_backend="pyarrow")
    return {name: [None if pd.isna(v) else v for v in frame[name]] for name in frame}


def as_duckdb(path: Path) -> dict[str, list[Any]]:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
        names = [about[0] for about in found.description]
        rows = found.fetchall()
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def check_all_read_the_same(data: bytes, rows: int, path: Path) -> bool:
    """Whether a file is accepted; then three other readers read the same of it."""
    try:
        found = plain(read_table("t", data, rows))
    except Refused:
        return False
    path.write_bytes(data)
    assert pq.read_table(io.BytesIO(data)).to_pydict() == found
    assert as_pandas(data) == found
    assert as_duckdb(path) == found
    return True


def damaged(data: bytes, rng: Random) -> bytes:
    """The file with one thing wrong."""
    changed = bytearray(data)
    footer = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    # Most of what can be told otherwise stands in the footer and in the headers of pages.
    place = rng.randrange(footer, len(data)) if rng.random() < 0.7 else rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            changed[place] = rng.randrange(256)
        case 1:
            changed[place] ^= 1 << rng.randrange(8)
        case 2:
            del changed[place : place + rng.randrange(1, 9)]
        case _:
            changed[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_is_refused_or_read_as_others_read_it(seed: int, tmp_path: Path) -> None:
    rng, data = Random(seed), sample()  # noqa: S311 - damage
    for _ in range(200):
        check_all_read_the_same(damaged(data, rng), 4, tmp_path / "t.parquet")


OPTIONS: list[dict[str, Any]] = [
    {"compression": "zstd"},
    {"compression": "none"},
    {"compression": "snappy"},
    {"use_dictionary": True},
    {"write_statistics": True},
    {"data_page_version": "2.0"},
    {"write_page_index": True, "write_statistics": True},
    {"use_byte_stream_split": ["number"], "use_dictionary": False},
    {"column_encoding": {"answer": "DELTA_BINARY_PACKED"}},
    {"write_page_checksum": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_another_shape_is_refused(options: dict[str, Any]) -> None:
    table = pq.read_table(io.BytesIO(sample()))
    defaults = {
        "compression": "gzip",
        "use_dictionary": False,
        "write_statistics": False,
        "store_schema": False,
    }
    stream = io.BytesIO()
    pq.write_table(table, stream, **{**defaults, **options})
    with pytest.raises(Refused):
        read_table("t", stream.getvalue(), 4)


def test_several_pages_are_read_and_several_groups_refused() -> None:
    table = pa.table({"n": pa.array(range(100_000), pa.int64())})
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    common = {"compression": "gzip", "use_dictionary": False, "write_statistics": False}
    for size, right in ((None, True), (50_000, False)):
        stream = io.BytesIO()
        pq.write_table(
            table.cast(schema),
            stream,
            store_schema=False,
            data_page_size=4096,
            row_group_size=size,
            **common,
        )
        if right:
            found = read_table("t", stream.getvalue(), 100_000)
            assert plain(found) == {"n": list(range(100_000))}
        else:
            with pytest.raises(Refused, match="row groups"):
                read_table("t", stream.getvalue(), 100_000)


def test_a_file_cannot_ask_for_more_memory_than_its_rows_need() -> None:
    """A page that unpacks to ten megabytes for one row is refused before it is unpacked."""
    schema = pa.schema([pa.field("t", pa.string(), nullable=False)])
    for length in (20_000, 10_000_000):
        table = pa.table({"t": pa.array(["x" * length])})
        data = parquet_bytes(table.cast(schema), {})
        with pytest.raises(Refused):
            read_table("t", data, 2)
        if length == 20_000:
            assert plain(read_table("t", data, 1)) == {"t": ["x" * length]}
        else:
            with pytest.raises(Refused, match="as many bytes"):
                read_table("t", data, 1)


def test_a_run_of_levels_is_no_longer_than_the_rows() -> None:
    """A packed run of a million bytes for one value is refused before it is unpacked."""
    levels = b"\x81\x89\x7a" + b"\x01" + bytes(10**6)
    page = len(levels).to_bytes(4, "little") + levels
    with pytest.raises(Refused, match="groups"):
        _File("t", b"", 1)._values("t", page, "int64", 1, True)


def test_bytes_beside_the_rows_are_refused() -> None:
    """Other readers pass over what lies between the pages and the footer."""
    data = sample()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    hidden = data[:footer] + b"what nobody sees" + data[footer:]
    assert pq.read_table(io.BytesIO(hidden)).equals(pq.read_table(io.BytesIO(data)))
    rows = pq.read_table(io.BytesIO(data)).num_rows
    read_table("t", data, rows)
    with pytest.raises(Refused, match="bytes"):
        read_table("t", hidden, rows)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_what_is_no_parquet_is_refused(data: bytes) -> None:
    for each in (data, b"PAR1" + data + b"PAR1", data + len(data).to_bytes(4, "little") + b"PAR1"):
        with pytest.raises(Refused):
            read_table("t", each, 1)
