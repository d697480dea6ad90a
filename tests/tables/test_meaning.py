"""Every row has a meaning: the same one in every format, and no row makes loading fail."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import math
import os
import random
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import SpecError
from release.queries.engines.spark import Fragment, _unpacked, rows_by_group, split_rows
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.street import run_release
from release.tables import lines
from release.tables.duckdb import Tables
from release.tables.formats.parquet import datasets_of
from release.tables.frames import with_frames
from release.tables.sources import find_sources
from tests.small import Small, query

LARGEST = 2**62 - 1
DAY, NOON = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)
AT_TEN = NOON.replace(hour=10)
LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
INFINITE = float("inf")


def spec_over(folder: Path, path: str, columns: dict[str, str], **table: Any) -> SpecFile:
    plain = Small([], [query("count", of="unit", by=[], sensitivity="global")]).plain(path)
    plain["keys"] = {}
    plain["tables"]["rows"] |= {"columns": columns, **table}
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    return read_spec(folder / "spec.yaml")


def rows_of(spec_file: SpecFile) -> Counter[tuple[Any, ...]]:
    """The normal rows of a table."""
    with Tables(spec_file) as tables:
        given_rows = tables.rows('SELECT * FROM "given rows"', "rows")
        return Counter(tuple(row.values()) for row in given_rows.to_pylist())


def raw(values: list[bytes | None]) -> pa.Array:
    """Bytes as Arrow text that nobody checks."""
    octets = pa.array(values, pa.binary())
    gaps, offsets, data = octets.buffers()
    return pa.StringArray.from_buffers(len(octets), offsets, data, gaps)


TEXTS: dict[str, list[tuple[bytes, Any]]] = {
    "string": [
        (b"a", "a"), (b"", None), (b" ", " "), (b"a\xff", None), ("a\ufffd".encode(), None),
        (b"nan", "nan"), ("\u20ac,\"'".encode(), "\u20ac,\"'"), (b"a\rb", "a\rb"),
        (b"\xed\xa0\x80", None), (b"x" * 70_000, "x" * 70_000), (b"a\x00b", "a\x00b"),
    ],
    "integer": [
        (b"7", 7), (b" +7\t", 7), (b"-3.000", -3), (b"007", 7), (b"-0", 0), (b"9" * 40, None),
        (b"-" + b"9" * 5000, None), (b"2147483648", 2**31), (b"%d" % LARGEST, LARGEST),
        (b"-%d.0" % LARGEST, -LARGEST), (b"%d" % (LARGEST + 1), None),
        (b"-%d.0" % 2**62, None), (b"0" * 50 + b"5", 5),
        (b"many", None), (b"1.5", None), (b"1.", None), (b"1e3", None), (b"0x10", None),
        (b"1_000", None), (b"", None), (b"\xff", None), (b"--1", None), ("\u0661".encode(), None),
    ],
    "number": [
        (b"1.5", 1.5), (b" -1e3 ", -1000.0), (b".5", 0.5), (b"5.", 5.0), (b"1e999", INFINITE),
        (b"-1e999", -INFINITE), (b"1e-999", 0.0), (b"Infinity", INFINITE), (b"-inf", -INFINITE),
        (b"nan", None), (b"NaN", None), (b"1,5", None), (b"1_0", None), (b"x", None),
        (b"", None), (b"\xff", None), (b"0.3", 0.3), (b"1" * 400, INFINITE),
    ],
    "date": [
        (b"2024-02-29", DAY), (b" 2024-02-29", DAY), (b"2023-02-29", None), (b"2024-2-29", None),
        (b"0000-01-01", None), (b"9999-12-31", LAST.date()), (b"10000-01-01", None),
        (b"infinity", None), (b"29.02.2024", None), (b"2024-02-29 12:00", None), (b"\xff", None),
        (b"2024-02-29 00:00:00", DAY), (b"2024-02-29T00:00", DAY), (b"2024-02-29 00:00:01", None),
        (b"2023-02-29 00:00:00", None),
    ],
    "timestamp": [
        (b"2024-02-29T12:00", NOON), (b"2024-02-29 12:00:00Z", NOON), (b"2024-02-29 24:00", None),
        (b"9999-12-31 23:59:59.999999999", LAST), (b"2024-02-29 12:00:00+02", AT_TEN),
        (b"2023-02-29 12:00", None), (b"0000-12-31 12:00", None), (b"now", None), (b"\xff", None),
        (b"2024-02-29", datetime.datetime(2024, 2, 29)), (b"infinity", None),
        (b"2024-02-29T15:30:00.000+05:30", AT_TEN), (b"2024-02-29 05:00 -0500", AT_TEN),
        (b"0001-01-01 00:00:00+01:00", None), (b"9999-12-31 23:59:00-00:01", None),
        (b"2024-02-29 12:00+25:00", None), (b"2024-02-29+02:00", None),
    ],
    "boolean": [
        (b"true", True), (b"No", False), (b" 1 ", True), (b"f", False), (b"2", None),
        (b"", None), (b"perhaps", None), (b"\xff", None),
    ],
}  # fmt: skip
"""What a text means under each declared type."""


def as_csv(folder: Path, kind: str, values: list[bytes]) -> SpecFile:
    quoted = [b'"' + value.replace(b'"', b'""') + b'"' for value in values]
    body = b"".join(b"%d,%s\n" % (i, value) for i, value in enumerate(quoted))
    (folder / "rows.csv").write_bytes(b"unit,x\n" + body)
    return spec_over(folder, "rows.csv", {"unit": "string", "x": kind})


def as_sqlite(folder: Path, kind: str, values: list[bytes]) -> SpecFile:
    with contextlib.closing(sqlite3.connect(folder / "x.db")) as connection, connection:
        connection.execute("CREATE TABLE t (unit, x)")
        for i, value in enumerate(values):
            # As text half of the time, whatever its bytes are.
            stored = "CAST(? AS TEXT)" if i % 2 else "?"
            connection.execute(f"INSERT INTO t VALUES (?, {stored})", [i, value])
    return spec_over(folder, "x.db", {"unit": "string", "x": kind}, relation="t")


def as_folders(folder: Path, kind: str, values: list[bytes]) -> SpecFile:
    for i, value in enumerate(values):
        name = "".join(f"%{octet:02X}" for octet in value)
        (folder / "rows" / f"x={name}").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"unit": [str(i)]}), folder / "rows" / f"x={name}" / f"{i}.parquet")
    return spec_over(folder, "rows", {"unit": "string", "x": kind})


def as_parquet(folder: Path, kind: str, values: list[bytes]) -> SpecFile:
    units = pa.array([str(i) for i in range(len(values))])
    pq.write_table(pa.table({"unit": units, "x": raw(list(values))}), folder / "rows.parquet")
    return spec_over(folder, "rows.parquet", {"unit": "string", "x": kind})


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("write", [as_csv, as_sqlite, as_folders, as_parquet])
def test_every_format_gives_the_same_rows(
    write: Callable[..., SpecFile], kind: str, tmp_path: Path
) -> None:
    """A text has one meaning, wherever it comes from, and the curator is told what had none."""
    cases = TEXTS[kind]
    if write is as_folders:
        # The name of a folder is short, and holds no NUL.
        cases = [case for case in cases if len(case[0]) < 80]
    if write is as_parquet and kind != "string":
        with pytest.raises(SpecError, match=rf"columns\.x: declared {kind}, but .* has string"):
            Tables(write(tmp_path, kind, [b"1"]))
        return
    spec_file = write(tmp_path, kind, [text for text, _ in cases])
    expected = {(str(i), value) for i, (_, value) in enumerate(cases)}
    assert set(rows_of(spec_file)) == expected
    with Tables(spec_file) as tables:
        told = tables.quality("rows").faults
    wrong = sum(1 for text, value in cases if value is None and text.lower() not in {b"", b"nan"})
    # In CSV files, what looks like a number with a decimal comma is counted apart.
    rules = (f"not a {kind}", "a decimal comma", "a word")
    assert sum(told.get((rule, "x"), 0) for rule in rules) == wrong


def split(spec_file: SpecFile, buckets: int = 3) -> Counter[tuple[Any, ...]]:
    """The rows that Spark's tasks send to the buckets."""
    sources = find_sources(spec_file)
    table, source = spec_file.spec.tables["rows"], sources["rows"]
    groups = enumerate(rows_by_group(datasets_of("rows", table, source)))
    parts = [Fragment("rows", n, group) for n, own in groups for group in range(len(own))]
    rows: Counter[tuple[Any, ...]] = Counter()
    bucket_of: dict[Any, int] = {}
    for bucket, (_, blob) in split_rows(parts, spec_file, sources, buckets):
        for row in _unpacked(blob).to_pylist():
            rows[tuple(row.values())] += 1
            assert bucket_of.setdefault(row["unit"], bucket) == bucket
    return rows


def test_a_folder_of_any_bytes_has_its_rows(tmp_path: Path) -> None:
    for number, value in enumerate([b"a", b"\xff", b"\xed\xa0\x80", b"a=b", b"*"]):
        folder = os.fsdecode(os.fsencode(tmp_path / "rows") + b"/x=" + value)
        pq.write_table(pa.table({"unit": [str(number)]}), tmp_path / "aside")
        Path(folder).mkdir(parents=True)
        (tmp_path / "aside").rename(Path(folder, "rows.parquet"))
    spec_file = spec_over(tmp_path, "rows", {"unit": "string", "x": "string"})
    expected = {("0", "a"), ("1", None), ("2", None), ("3", "a=b"), ("4", "*")}
    assert set(rows_of(spec_file)) == set(split(spec_file)) == expected


LONG = 2**62
STORED: list[tuple[str, pa.Array, list[Any]]] = [
    ("integer", pa.array([7, -128], pa.int8()), [7, -128]),
    ("integer", pa.array([7, LARGEST, 2**64 - 1], pa.uint64()), [7, LARGEST, None]),
    ("integer", pa.array([LONG, -LONG, LONG - 1], pa.int64()), [None, None, LARGEST]),
    ("string", pa.array([7, -128, 2**63 - 1], pa.int64()), ["7", "-128", str(2**63 - 1)]),
    ("number", pa.array([1.5, float("nan"), INFINITE, -0.0]), [1.5, None, INFINITE, 0.0]),
    ("number", pa.array([1.5, float("nan")], pa.float16()), [1.5, None]),
    ("number", pa.array(["0.3", "-7"]).cast(pa.decimal128(10, 2)), [0.3, -7.0]),
    ("number", pa.array(["0.3", "-7"]).cast(pa.decimal256(60, 2)), [0.3, -7.0]),
    ("number", pa.array([7, 2**64 - 1], pa.uint64()), [7.0, 2.0**64]),
    ("date", pa.array([0, 2**31 - 1, -(2**31)], pa.int32()).view(pa.date32()), [0, None, None]),
    ("boolean", pa.array([True, None]), [True, None]),
    ("string", raw([b"a", b"\xff", b"", None, b"b"]), ["a", None, None, None, "b"]),
    (
        "string",
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int32()), raw([b"a", b"\xff"])),
        [None, "a", None],
    ),
    ("timestamp", pa.array([-1, LONG, -LONG], pa.timestamp("ms")), [-1000, None, None]),
    ("timestamp", pa.array([-1, LONG, 2**63 - 1], pa.timestamp("us")), [-1, None, None]),
    ("timestamp", pa.array([-1, 1999, 2**63 - 1], pa.timestamp("ns")), [-1, 1, None]),
]
"""What a stored value means: dates in days, and times in microseconds, since 1970."""
EPOCH = datetime.datetime(1970, 1, 1)


def plain(kind: str, value: Any) -> Any:
    if value is None or kind not in {"date", "timestamp"}:
        return value
    if kind == "date":
        return (EPOCH + datetime.timedelta(days=value)).date()
    return EPOCH + datetime.timedelta(microseconds=value)


@pytest.mark.parametrize(("kind", "stored", "expected"), STORED, ids=lambda v: str(v)[:40])
def test_a_stored_value_means_the_same_in_every_engine(
    kind: str, stored: pa.Array, expected: list[Any], tmp_path: Path
) -> None:
    """Parquet, Spark's tasks and DuckDB files: nothing raises, whatever a column holds."""
    units = [f"u{i}" for i in range(len(stored))]
    pq.write_table(pa.table({"unit": units, "x": stored}), tmp_path / "rows.parquet")
    spec_file = spec_over(tmp_path, "rows.parquet", {"unit": "string", "x": kind})
    wanted = Counter(zip(units, (plain(kind, value) for value in expected), strict=True))
    assert rows_of(spec_file) == split(spec_file) == wanted
    if kind == "string" or pa.types.is_decimal256(stored.type) or pa.types.is_float16(stored.type):
        return
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.register("incoming", pa.table({"unit": units, "x": stored}))
        connection.execute("CREATE TABLE t AS FROM incoming")
    columns = {"unit": "string", "x": kind}
    assert rows_of(spec_over(tmp_path, "x.duckdb", columns, relation="t")) == wanted


@pytest.mark.parametrize(
    ("type_", "sql", "kind", "expected"),
    [
        ("HUGEINT", "-170141183460469231731687303715884105727", "integer", None),
        ("UHUGEINT", "340282366920938463463374607431768211455", "integer", None),
        ("UTINYINT", "255", "integer", 255),
        ("DATE", "'infinity'", "date", None),
        ("DATE", "'0001-12-31 (BC)'", "date", None),
        ("TIMESTAMP", "'-infinity'", "timestamp", None),
        ("TIMESTAMP_S", "'200000-01-01'", "timestamp", None),
        ("TIMESTAMP_NS", "'2024-02-29 12:00:00.000000999'", "timestamp", NOON),
        ("ENUM('a', '')", "''", "string", None),
        ("DOUBLE", "'nan'", "number", None),
    ],
)
def test_the_engines_own_types_have_meanings_too(
    type_: str, sql: str, kind: str, expected: Any, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (unit INTEGER, x {type_})")
        connection.execute(f"INSERT INTO t VALUES (1, {sql}), (NULL, {sql})")
    columns = {"unit": "integer", "x": kind}
    spec_file = spec_over(tmp_path, "x.duckdb", columns, relation="t")
    assert rows_of(spec_file) == Counter([(1, expected)])
    with Tables(spec_file) as tables:
        assert tables.quality("rows").faults[("no unit", "unit")] == 1


UNITS = [
    b"7",
    b"07",
    b" 7.0",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-5",
    b"x",
    b"",
    b"\xff",
]


def test_a_unit_is_never_clamped_and_beyond_64_bits_it_is_none(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"unit\n" + b"\n".join(UNITS))
    spec_file = spec_over(tmp_path, "rows.csv", {"unit": "integer"})
    assert rows_of(spec_file) == Counter({(7,): 3, (2**63 - 1,): 1, (-5,): 1})
    with Tables(spec_file) as tables:
        assert tables.quality("rows").faults == {("no unit", "unit"): 4}
    big = pa.table({"unit": pa.array([2**64 - 1, 2**63 - 1, None], pa.uint64())})
    pq.write_table(big, tmp_path / "rows.parquet")
    spec_file = spec_over(tmp_path, "rows.parquet", {"unit": "integer"})
    assert rows_of(spec_file) == split(spec_file) == Counter([(2**63 - 1,)])


def test_a_file_may_be_wider_than_the_first_one(tmp_path: Path) -> None:
    """Arrow would cast the second to the type of the first, and fail."""
    (tmp_path / "rows").mkdir()
    for name, value, width in (("a", 1, pa.int8()), ("b", LARGEST, pa.int64())):
        table = pa.table({"unit": [name], "x": pa.array([value], width)})
        pq.write_table(table, tmp_path / "rows" / f"{name}.parquet")
    spec_file = spec_over(tmp_path, "rows", {"unit": "string", "x": "integer"})
    assert rows_of(spec_file) == split(spec_file) == Counter([("a", 1), ("b", LARGEST)])


def test_times_of_older_systems_are_read_in_full(tmp_path: Path) -> None:
    times = pa.array([0, 5, 2**60], pa.timestamp("us"))
    table = pa.table({"unit": ["a", "b", "c"], "x": times})
    pq.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)
    spec_file = spec_over(tmp_path, "rows.parquet", {"unit": "string", "x": "timestamp"})
    assert dict(rows_of(spec_file).keys()) == {
        "a": EPOCH,
        "b": EPOCH + datetime.timedelta(microseconds=5),
        "c": None,
    }


@pytest.mark.parametrize("codes", [pa.int8(), pa.int32(), pa.uint32()])
def test_categories_are_read_whatever_their_codes_and_texts_are(
    codes: pa.DataType, tmp_path: Path
) -> None:
    """Arrow itself fails on a text that is not UTF-8 under codes of 8 bits."""
    places = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], codes), raw([b"a", b"\xff"]))
    pq.write_table(pa.table({"unit": ["1", "2", "3"], "x": places}), tmp_path / "rows.parquet")
    spec_file = spec_over(tmp_path, "rows.parquet", {"unit": "string", "x": "string"})
    assert rows_of(spec_file) == Counter([("1", "a"), ("2", None), ("3", None)])


def test_parts_are_each_read_under_their_own_types(tmp_path: Path) -> None:
    """Daily files of pandas: whole numbers, numbers with a gap, and no value at all."""
    places = pa.array(["a"]).dictionary_encode()
    days = [
        {
            "unit": ["1"],
            "wh": pa.array([7]),
            "at": pa.array([NOON], pa.timestamp("us")),
            "x": ["a"],
        },
        {"unit": ["2"], "wh": [2.0], "at": pa.array([NOON], pa.timestamp("ns")), "x": places},
        {"unit": ["3"], "wh": [2.5], "at": pa.array([2**60], pa.timestamp("ms")), "x": ["b"]},
        {"unit": ["4"], "wh": pa.nulls(1), "at": pa.nulls(1), "x": pa.nulls(1)},
        {"unit": ["5"], "wh": [Decimal(9)], "at": pa.array([NOON], pa.timestamp("us", "UTC"))},
    ]
    days[-1]["x"] = pa.array(["b"], pa.large_string())
    (tmp_path / "rows").mkdir()
    for number, columns in enumerate(days):
        pq.write_table(pa.table(columns), tmp_path / "rows" / f"{number}.parquet")
    kinds = {"unit": "string", "wh": "integer", "at": "timestamp", "x": "string"}
    expected = [
        (NOON, "1", 7, "a"),
        (NOON, "2", 2, "a"),
        (None, "3", None, "b"),
        (None, "4", None, None),
        (NOON, "5", 9, "b"),
    ]
    spec_file = spec_over(tmp_path, "rows", kinds)
    assert rows_of(spec_file) == Counter(expected)
    with Tables(spec_file) as tables:
        aside = tables.set_aside("rows")
    assert aside["not a integer", "wh"] == 1
    assert aside["not a timestamp", "at"] == 1


def test_whole_floats_are_integers_and_no_two_units_are_one(tmp_path: Path) -> None:
    values = [7.0, -3.0, 2.5, math.nan, math.inf, 1e300, 2.0**53 - 1, 2.0**53]
    table = pa.table({"unit": values, "x": values})
    pq.write_table(table, tmp_path / "rows.parquet")
    spec_file = spec_over(tmp_path, "rows.parquet", {"unit": "integer", "x": "integer"})
    # Beyond 2⁵³ neighboring integers are one float.
    expected = [(7, 7), (-3, -3), (2**53 - 1, 2**53 - 1)]
    assert rows_of(spec_file) == Counter(expected)


def test_hidden_and_unfinished_files_are_no_data(tmp_path: Path) -> None:
    for name in ("a.parquet", "_temporary/0/b.parquet", ".c.parquet", "day=_1/d.parquet"):
        path = tmp_path / "rows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"unit": [name]}), path)
    spec_file = spec_over(tmp_path, "rows/**/*.parquet", {"unit": "string"})
    assert rows_of(spec_file) == Counter([("a.parquet",), ("day=_1/d.parquet",)])
    (tmp_path / "rows/day=_1/d.parquet").unlink()
    assert rows_of(spec_over(tmp_path, "rows", {"unit": "string"})) == Counter([("a.parquet",)])
    # Whoever names a file means it.
    named = spec_over(tmp_path, "rows/.c.parquet", {"unit": "string"})
    assert rows_of(named) == Counter([(".c.parquet",)])


# Bytes that mean something in CSV, and some that do not.
PIECES = st.sampled_from(
    [b",", b'"', b'""', b"\r", b"a", b"7", b" ", b"\xff", b"\x00", b"\xe2\x82"]
)
LINE = st.lists(PIECES, max_size=12).map(b"".join)
GOOD = [b'a,1,"x, ""y"""', b"b,2,z\r", b'"c",3,', b'e,5,"x\ny\n"', b"d,4,x", b'f,6,"x\n"\r']
ROWS_OF_GOOD = [
    *(("a", 1, 'x, "y"'), ("b", 2, "z"), ("c", 3, None), ("d", 4, "x")),
    *(("e", 5, "x\ny\n"), ("f", 6, "x\n")),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def csv_rows(folder: Path, body: bytes) -> Counter[tuple[Any, ...]]:
    (folder / "rows.csv").write_bytes(b"unit,x,y\n" + body)
    return rows_of(spec_over(folder, "rows.csv", {"unit": "string", "x": "integer", "y": "string"}))


@settings(max_examples=25)
@given(st.one_of(st.binary(max_size=200), st.lists(LINE).map(b"\n".join)))
def test_no_bytes_make_a_csv_file_unreadable(folder: Path, body: bytes) -> None:
    csv_rows(folder, body)


@settings(max_examples=25)
@given(LINE, st.integers(0, len(GOOD)), st.sampled_from([5, 11, 2**23]))
def test_a_line_of_a_csv_file_means_the_same_wherever_it_stands(
    folder: Path, line: bytes, place: int, block: int
) -> None:
    """Whatever it holds, it changes no other row, and neither does the end of a block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_BLOCK", block)
        without = csv_rows(folder, b"\n".join(GOOD))
        own = csv_rows(folder, line)
        body = b"\n".join([*GOOD[:place], line, *GOOD[place:]])
        assert csv_rows(folder, body) == without + own
    assert without == Counter(ROWS_OF_GOOD)
    assert sum(own.values()) <= 1


def test_a_line_of_any_length_is_read_and_one_beyond_all_lengths_left_out(tmp_path: Path) -> None:
    long = b"x" * 5_000_000
    body = b"a,1,x\nb,2," + long + b"\n" + b"y" * (lines.MOST_LINE + 1) + b"\nc,3,x"
    assert csv_rows(tmp_path, body) == Counter(
        [("a", 1, "x"), ("b", 2, long.decode()), ("c", 3, "x")]
    )
    with Tables(read_spec(tmp_path / "spec.yaml")) as tables:
        assert tables.quality("rows").faults == {("unreadable line", "too long"): 1}


FIELD = r'([^",]*|"(?:[^"]|"")*")'


def test_fields_are_those_of_the_grammar(tmp_path: Path) -> None:
    """Of many random lines, those of three fields, with or without quotes around each."""
    chance = random.Random(3)  # noqa: S311 - a table
    body = ["".join(chance.choices(['"', '""', ",", "a", ",", "b"], k=9)) for _ in range(20_000)]
    expected: Counter[tuple[Any, ...]] = Counter()
    for line in body:
        # An empty field after the last one is none.
        if match := re.fullmatch(",".join([FIELD] * 3) + ",?", line):
            quoted = [field.startswith('"') for field in match.groups()]
            unit, _, y = (
                field[1:-1].replace('""', '"') if is_quoted else field
                for field, is_quoted in zip(match.groups(), quoted, strict=True)
            )
            if unit:
                expected[unit, None, y or None] += 1
    # Each between two records, so that none goes on in the next.
    apart = "\n,,\n".join(body)
    assert csv_rows(tmp_path, apart.encode()) == expected
    assert len(expected) > 100


@pytest.mark.parametrize("block", [7, 64, 2**23])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_records_of_several_lines_are_those_of_another_reader(
    block: int, ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own writer and reader, whatever line breaks and quotes a text has."""
    monkeypatch.setattr(lines, "_BLOCK", block)
    chance = random.Random(7)  # noqa: S311 - a table
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ends)
    for number in range(400):
        said = "".join(
            chance.choices(["a", "\n", '"', " ", "\r\n", ", b"], [6, 2, 2, 2, 1, 0.2], k=9)
        )
        writer.writerow([f"u{number}", number, said])
    found = csv_rows(tmp_path, text.getvalue().encode())
    text.seek(0)
    expected = Counter((unit, int(x), y) for unit, x, y in csv.reader(text))
    assert found == expected


@pytest.mark.parametrize(
    "line", [b'y"z', b'"', b'a,"', b',"', b'""', b'y""z', b',,,"'], ids=lambda line: line.decode()
)
def test_broken_lines_cost_what_their_length_does(line: bytes, tmp_path: Path) -> None:
    """A hundred thousand lines behind a record that is begun: each is looked at once."""
    begun, good = b'a,1,"x\n', b"b,2,y"
    found = csv_rows(tmp_path, begun + (line + b"\n") * 100_000 + good)
    assert found["b", 2, "y"] == 1
    assert sum(found.values()) <= 2


def test_what_cannot_be_read_is_counted_by_its_cause(tmp_path: Path) -> None:
    body = b'a,1,x\nb,2\nc,3,x,y\nd,4,x,\ne,5,x"y\nf,6,"x\ng,7,x\n'
    expected = [("a", 1, "x"), ("d", 4, "x"), ("g", 7, "x")]
    assert csv_rows(tmp_path, body) == Counter(expected)
    with Tables(read_spec(tmp_path / "spec.yaml")) as tables:
        assert tables.quality("rows").faults == {
            ("unreadable line", "fewer fields"): 1,
            ("unreadable line", "more fields"): 1,
            ("unreadable line", "quotes"): 2,
        }


TWINS: dict[str, tuple[str, bytes, bytes]] = {
    "text in an integer column": ("csv", b"u,1,x", b"u,many,x"),
    "40 digits": ("csv", b"u,1,x", b"u," + b"4" * 40 + b",x"),
    "bad UTF-8": ("csv", b"u,1,x", b"u,1,\xff\xfe"),
    "a line of 5 MB": ("csv", b"u,1,x", b"u,1," + b"x" * 5_000_000),
    "a stray CR": ("csv", b"u,1,x", b"u,1\r,x"),
    "too many columns": ("csv", b"u,1,x", b"u,1,x,y,z"),
    "an open quote": ("csv", b"u,1,x", b'u,1,"x'),
    "a NUL": ("csv", b"u,1,x", b"u,\x00,x"),
    "a time beyond all years": ("timestamp", b"1", b"%d" % 2**62),
    "bad UTF-8 in Parquet": ("string", b"x", b"\xff"),
    "a folder of text": ("folder", b"1", b"monday"),
    "a folder with an escape": ("folder", b"1", b"%FF%"),
    "a folder without a value": ("folder", b"1", b""),
}


@pytest.mark.parametrize("name", TWINS)
def test_one_row_changes_neither_the_outcome_nor_what_is_told(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, *rows = TWINS[name]
    told = []
    for number, row in enumerate(rows):
        here = tmp_path / str(number)
        here.mkdir()
        columns = {"unit": "string", "x": "integer", "y": "string"}
        if layout == "csv":
            (here / "rows.csv").write_bytes(b"unit,x,y\na,1,x\n" + row + b"\nb,2,y\n")
            path = "rows.csv"
        elif layout != "folder":
            columns, path = {"unit": "string", "x": layout}, "rows.parquet"
            is_text = layout == "string"
            column = raw([row]) if is_text else pa.array([int(row)], pa.timestamp("ms"))
            pq.write_table(pa.table({"unit": ["u"], "x": column}), here / path)
        else:
            for x, unit in (("0", "a"), (row.decode(), "u")):
                (here / "rows" / f"x={x}").mkdir(parents=True)
                part = pa.table({"unit": [unit], "y": ["x"]})
                pq.write_table(part, here / "rows" / f"x={x}" / "a.parquet")
            path = "rows"
        spec_over(here, path, columns)
        folder = run_release(here / "spec.yaml", here / "out").public
        told.append((folder.name, capsys.readouterr()))
    assert told[0] == told[1]


def test_a_frame_of_objects_has_the_rows_of_its_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame({"unit": ["a", "b", None], "x": pd.Series([1, "x", 2], dtype=object)})
    spec_file = spec_over(tmp_path, "none.parquet", {"unit": "string", "x": "integer"})
    with with_frames(spec_file, {"rows": frame}, lambda: Path(tempfile.mkdtemp())) as declared:
        assert rows_of(declared) == Counter([("a", 1), ("b", None)])
