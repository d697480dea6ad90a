"""Five hundred twin pairs, generated: one unit's rows hold a fault, and nothing may tell.

A pair is a table and its neighbor, in which the rows of one unit are replaced by rows with one
fault: a value that does not fit its type, a line that is no row, a folder with a strange name. Both
are released with the noisy answers frozen. Exit, text, files and every byte of them are equal, or
the guarantee does not hold for the whole program.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dp_release_verify.digests import sha256
from tests.attempts import Tried
from tests.every import every
from tests.process.test_twin_run import all_of_a_run
from tests.small import query

NUMBER_OF_PAIRS = 500
LONG = 5 * 10**6

COLUMNS = {
    "unit": "string",
    "place": "string",
    "count": "integer",
    "amount": "number",
    "born": "date",
    "seen": "timestamp",
    "flag": "boolean",
}
DATES = [datetime.date(2024, 1, 1 + i) for i in range(3)]

Value = Any
Rows = list[dict[str, Value]]

HOMES: Rows = [
    {
        "unit": f"u{i // 2}",
        "place": "ab"[i % 2],
        "count": i,
        "amount": i / 4,
        "born": DATES[i % 3],
        "seen": datetime.datetime(2024, 1, 1 + i % 3, 3 * i % 24),
        "flag": i % 3 == 0,
    }
    for i in range(12)
]
"""Six units of two rows each; the twin replaces the rows of u0."""


def plain_spec(path: str, relation: str | None) -> dict[str, Any]:
    on_statistic = {"sensitivity": "global", "noise": "on_statistic"}
    counts = {"sensitivity": "global", "domain": {"ordered": {"min": 0, "max": 9}}}
    tens = {"bins": {"low": 0, "high": 10, "count": 10}, "clamp": [0, 10]}
    of_count = {"of": "count", **tens, **on_statistic}
    queries = [
        query("count", name="by_place", by=["place"], **counts),
        query("count", name="by_birth", by=["born"], **counts),
        query("count", name="early", by=[], where="hour(seen) < 12 AND NOT flag", **counts),
        query(
            "count", name="large", by=["year_seen"], where="amount > 1.5 OR half IS NULL", **counts
        ),
        query("mode", name="commonest", by=[], of="count", **on_statistic)
        | {"domain": {"ordered": {"min": 0, "max": 9}}},
        query("binned", name="total", statistic="sum", by=["place"], **of_count),
        query("binned", name="middle", statistic="median", by=[], **of_count),
    ]
    table: dict[str, Any] = {"path": path, "columns": COLUMNS}
    table["derive"] = {
        "year_seen": {"type": "integer", "sql": "year(seen)"},
        "half": {"type": "number", "sql": "ln(amount) / count"},
        "letter": {"type": "string", "sql": "upper(substring(place, 1, 1))"},
    }
    if relation is not None:
        table["relation"] = relation
    about = dict.fromkeys(["title", "curator", "contact", "purpose", "period", "license"], "tests")
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": "small", **about},
        "tables": {"rows": table},
        "privacy": {"unit": "unit", "neighbors": "replace_one", "max_rows_per_unit": 2},
        "budget": {"scope": "tests", "epsilon": "99", "delta": "0"},
        "keys": {
            "place": ["a", "b"],
            "born": list(map(str, DATES)),
            "year_seen": [2023, 2024],
        },
        "queries": queries,
    }


def texts() -> list[str | bytes]:
    """Texts that fit no type, or almost one."""
    digits = "9" * 40
    return [
        *["", " ", "abc", "0", "-1", "1.5", "12.0", "1e5", "0x10", "1_000", "１２", digits],
        *[f"-{digits}", "NaN", "-inf", "1e999", "1e-999", "2024-02-30", "2024-1-5", "20240105"],
        *["0000-00-00", "99999-01-01", "-0044-03-15", "infinity", "epoch", "9999-12-31"],
        *["2024-01-05 25:00:00", "2024-01-05T10:00:00+02:00", "294247-01-10 04:00:54.775807"],
        *["TRUE", "yes", "2", "\0", "a\0b", "\ufeff", "\ufffd", "🙂" * 3, "a" * LONG],
        *["'; DROP TABLE rows", '"', '""', 'a"b', '"a', "a,b", "a\rb", "\t", "NULL", "\\N"],
        *[b"\xff\xfe", b"\xc3", b"a\xe4b"],
    ]


def lines() -> list[bytes]:
    """Lines that are no row of a CSV file."""
    row = b"u0,a,1,1.0,2024-01-01,2024-01-01 10:00:00,true"
    return [
        *[b"", b",", b"," * 6, b"," * 7, b"," * 10**5, row[:-5], row + b",more", row + b"," * 50],
        *[b'"' + row, row + b'"', row.replace(b"a", b'"a"x'), row.replace(b"a", b'a"'), b'"""'],
        *[b"\r" + row, row.replace(b",", b"\r", 1), row.replace(b"1", b"\0", 1), b"\xef\xbb\xbf"],
        *[b"x" * LONG, b'"' + b"x" * LONG, row.replace(b"a", b"\xff"), row.replace(b",", b";")],
        *[b"#" + row, row + b"\\", row.replace(b"a", b'"a,b"'), b"unit,place,count", b"\x1a"],
    ]


def stored() -> dict[str, list[tuple[pa.DataType, list[Value]]]]:
    """Stored types of each column, with values at and beyond what an engine can hold."""
    ends = [-(2**63), 2**63 - 1, 2**62, -(2**62), 0, None]
    strange = [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, -1e308, 5e-324, None]
    broken = [b"\xff\xfe", b"\xc3", b"a\xe4", b"", b"\0", b"u1", None]
    return {
        "unit": [(pa.string(), broken), (pa.large_string(), broken[:3])],
        "place": [(pa.string(), broken)],
        "count": [
            (pa.int64(), ends),
            (pa.uint64(), [2**64 - 1, 2**63, 0, None]),
            (pa.int8(), [-128, 127, None]),
        ],
        "amount": [
            (pa.float64(), strange),
            (pa.float32(), [float("nan"), float("inf"), 3e38]),
            (pa.int64(), ends),
            (pa.decimal128(38, 2), [10**35, -(10**35), None]),
        ],
        "born": [(pa.date32(), [-(2**31) + 1, 2**31 - 1, 10**6, None]), (pa.date64(), [None])],
        "seen": [(pa.timestamp(unit), ends) for unit in ("ms", "us", "ns")],
        "flag": [(pa.bool_(), [None])],
    }


@dataclass(frozen=True)
class Pair:
    """Two ways to write the inputs, and what the second one has that the first has not."""

    title: str
    one: Callable[[Path], Path]
    two: Callable[[Path], Path]
    base: str = field(default="")


def write_spec(folder: Path, path: str, relation: str | None = None) -> Path:
    spec = folder / "spec.yaml"
    # By JSON, because YAML would write a value that stands twice as an alias.
    plain = json.loads(json.dumps(plain_spec(path, relation)))
    spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return spec


def replaced(column: str, value: Value) -> Rows:
    """Rows in which u0 has this value; where that is the unit, the row is of whom it names."""
    return [*HOMES[2:], {**HOMES[0], column: value}, {**HOMES[0], "unit": "u0"}]


def as_text(value: Value) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")


def csv_line(row: dict[str, Value]) -> bytes:
    fields = []
    for value in row.values():
        text = as_text(value)
        is_plain = not set(text) & set(b'",\n\r')
        fields.append(text if is_plain else b'"' + text.replace(b'"', b'""') + b'"')
    return b",".join(fields)


def write_csv(rows: Rows, more: list[bytes], folder: Path) -> Path:
    body = [",".join(COLUMNS).encode(), *map(csv_line, rows), *more]
    (folder / "rows.csv").write_bytes(b"\n".join(body) + b"\n")
    return write_spec(folder, "rows.csv")


def write_sqlite(rows: Rows, folder: Path) -> Path:
    kinds = ["TEXT", "TEXT", "INTEGER", "REAL", "TEXT", "TEXT", "BOOLEAN"]
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(COLUMNS, kinds, strict=True))
        connection.execute(f"CREATE TABLE kept ({columns})")
        for row in rows:
            own = [str(v) if isinstance(v, datetime.date) else v for v in row.values()]
            connection.execute(f"INSERT INTO kept VALUES ({', '.join('?' * len(own))})", own)
    connection.close()
    return write_spec(folder, "rows.sqlite", "kept")


ARROW = {
    "unit": pa.string(),
    "place": pa.string(),
    "count": pa.int64(),
    "amount": pa.float64(),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
    "flag": pa.bool_(),
}


def arrow_column(kind: pa.DataType, values: list[Value]) -> pa.Array:
    """The values under a stored type; bytes of a text as they are, valid or not."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        data = [v.encode() if isinstance(v, str) else v for v in values]
        raw = pa.array(data, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
        return pa.Array.from_buffers(kind, len(raw), raw.buffers())
    if pa.types.is_temporal(kind):
        # Given as numbers of the stored unit where they stand for no date of Python.
        width = pa.int32() if kind == pa.date32() else pa.int64()
        numbers = [v if v is None or type(v) is int else _number(kind, v) for v in values]
        return pa.array(numbers, width).view(kind)
    if pa.types.is_floating(kind):
        return pa.array([None if v is None else float(v) for v in values], kind, from_pandas=False)
    if pa.types.is_decimal(kind):
        return pa.array([None if v is None else int(v) for v in values], pa.decimal128(38, 2))
    return pa.array([int(v) if type(v) is float else v for v in values], kind)


def _number(kind: pa.DataType, value: Value) -> int:
    return int(pa.scalar(value, kind).value)


def arrow_table(rows: Rows, kinds: dict[str, pa.DataType]) -> pa.Table:
    arrays = [arrow_column(kinds[name], [row[name] for row in rows]) for name in COLUMNS]
    return pa.Table.from_arrays(arrays, names=list(COLUMNS))


def write_parquet(rows: Rows, kinds: dict[str, pa.DataType], folder: Path) -> Path:
    pq.write_table(arrow_table(rows, kinds), folder / "rows.parquet")
    return write_spec(folder, "rows.parquet")


DUCKDB = {
    "unit": "VARCHAR",
    "place": "VARCHAR",
    "count": "BIGINT",
    "amount": "DOUBLE",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "flag": "BOOLEAN",
}

IN_DUCKDB: dict[str, list[tuple[str, list[str]]]] = {
    "count": [
        ("HUGEINT", ["170141183460469231731687303715884105727", "-1", "NULL"]),
        ("UBIGINT", ["18446744073709551615", "0"]),
        ("UHUGEINT", ["340282366920938463463374607431768211455"]),
        ("TINYINT", ["-128"]),
    ],
    "amount": [
        ("DOUBLE", ["'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1e308"]),
        ("DECIMAL(38, 2)", ["999999999999999999999999999999999999.99"]),
        ("HUGEINT", ["170141183460469231731687303715884105727"]),
    ],
    "born": [("DATE", ["'infinity'::DATE", "'-infinity'::DATE", "'5877642-06-25 (BC)'::DATE"])],
    "seen": [
        ("TIMESTAMP", ["'infinity'::TIMESTAMP", "'290309-12-22 (BC) 00:00:00'::TIMESTAMP"]),
        ("TIMESTAMP_S", ["'294247-01-10 04:00:54'::TIMESTAMP_S", "'infinity'::TIMESTAMP_S"]),
        ("TIMESTAMP_MS", ["'294247-01-10 04:00:54'::TIMESTAMP_MS"]),
        ("TIMESTAMP_NS", ["'2262-04-11 23:47:16'::TIMESTAMP_NS", "'infinity'::TIMESTAMP_NS"]),
    ],
    "unit": [("VARCHAR", ["''", "chr(0)", "chr(65533)", "repeat('a', 5000000)"])],
    "place": [("VARCHAR", ["''", "chr(0) || 'a'", "repeat('ä', 1000000)"])],
    "flag": [("BOOLEAN", ["NULL"])],
}


def write_duckdb(column: str, kind: str, value: str | None, folder: Path) -> Path:
    """The homes in a DuckDB file; u0 has the value of an SQL expression in a column."""
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        types = {**DUCKDB, column: kind}
        columns = ", ".join(f'"{name}" {kind_of}' for name, kind_of in types.items())
        connection.execute(f"CREATE TABLE kept ({columns})")
        for number, row in enumerate(HOMES):
            given = [f"'{own}'" if own is not None else "NULL" for own in row.values()]
            if number == 0 and value is not None:
                given[list(COLUMNS).index(column)] = value
            connection.execute(f"INSERT INTO kept VALUES ({', '.join(given)})")
    return write_spec(folder, "rows.duckdb", "kept")


def write_hive(column: str, value: str | None, folder: Path) -> Path:
    """Folders named by a column; u0's row lies in a folder whose name is the value."""
    kept = [name for name in COLUMNS if name != column]
    for number, row in enumerate(HOMES):
        text = str(row[column])
        name = f"{column}={quote(text)}" if number or value is None else f"{column}={value}"
        place = folder / "rows" / name
        place.mkdir(parents=True, exist_ok=True)
        table = arrow_table([row], ARROW).select(kept)
        pq.write_table(table, place / f"part-{number:02}.parquet")
    return write_spec(folder, "rows")


FOLDERS = [
    *["abc", "1.5", "9" * 40, "2024-02-30", "a=b=c", "%FF", "%00", "%2F", "%", "a%zz", " ", "é"],
    *["__HIVE_DEFAULT_PARTITION__", "NULL", "nan", "-inf", "TRUE", "'", '"', "*", "[a]", "{x}"],
]


def pairs() -> Iterator[Pair]:
    """All pairs of the grammar."""
    csv_base = partial(write_csv, HOMES, [])
    for line in lines():
        for rows in (HOMES[2:], HOMES[1:]):
            title = f"csv line {line[:60]!r} of {len(line)} after {len(rows)}"
            yield Pair(title, csv_base, partial(write_csv, rows, [line]))
    for column in COLUMNS:
        for text in texts():
            rows = replaced(column, text)
            title = f"{column} {text[:20]!r}"
            if text != "":
                yield Pair(f"csv {title}", csv_base, partial(write_csv, rows, []))
            yield Pair(f"sqlite {title}", partial(write_sqlite, HOMES), partial(write_sqlite, rows))
        for number in (2**62, -(2**63), 1.5, float("inf"), -0.0, 12.0, 1e300):
            rows = replaced(column, number)
            title = f"sqlite {column} {number}"
            yield Pair(title, partial(write_sqlite, HOMES), partial(write_sqlite, rows))
        for kind, values in stored()[column]:
            kinds = {**ARROW, column: kind}
            for value in values:
                rows = replaced(column, value)
                yield Pair(
                    f"parquet {column} {kind} {value!r}",
                    partial(write_parquet, HOMES, kinds),
                    partial(write_parquet, rows, kinds),
                )
        for kind_of, expressions in IN_DUCKDB[column]:
            for expression in expressions:
                yield Pair(
                    f"duckdb {column} {kind_of} {expression[:30]}",
                    partial(write_duckdb, column, kind_of, None),
                    partial(write_duckdb, column, kind_of, expression),
                )
        for name in FOLDERS:
            yield Pair(
                f"folder {column}={name[:20]}",
                partial(write_hive, column, None),
                partial(write_hive, column, name),
            )


def chosen() -> list[Pair]:
    """All pairs of lines, stored types and folders, and so many of the texts."""
    every = list(pairs())
    assert len({pair.title for pair in every}) > NUMBER_OF_PAIRS
    texts_only = [pair for pair in every if pair.title.split()[0] in ("csv", "sqlite")]
    texts_only = [pair for pair in texts_only if not pair.title.startswith("csv line")]
    others = [pair for pair in every if pair not in texts_only]
    # Any choice will do, if it is always the same one.
    drawn = sorted(texts_only, key=lambda pair: sha256(pair.title.encode()))
    drawn = drawn[: NUMBER_OF_PAIRS - len(others)]
    return sorted([*others, *drawn], key=lambda pair: pair.title)


PARTS = 10


@pytest.mark.parametrize("part", range(0, PARTS, every(10)))
def test_nothing_tells_of_a_fault_in_one_units_rows(
    part: int, tmp_path: Path, record_property: Tried
) -> None:
    told: dict[str, list[str]] = {}
    bases: dict[str, dict[str, bytes]] = {}
    own = chosen()[part::PARTS]
    for number, pair in enumerate(own):
        base = repr(pair.one)
        if base not in bases:
            bases[base] = all_of_a_run(pair.one, tmp_path / f"one-{number}")
            assert b"error" not in bases[base]["stderr"], (pair.title, bases[base]["stderr"])
        one, two = bases[base], all_of_a_run(pair.two, tmp_path / f"two-{number}")
        different = sorted(
            name for name in one.keys() | two.keys() if one.get(name) != two.get(name)
        )
        if different:
            told[pair.title] = [two["stderr"].decode()[:200], *different[:3]]
    assert told == {}
    record_property("tried", len(own))


def test_there_are_so_many_pairs() -> None:
    assert len(chosen()) == NUMBER_OF_PAIRS
    assert len({pair.title for pair in chosen()}) == NUMBER_OF_PAIRS
