"""Frames in place of files: the same integers, refusals without values, nothing left behind."""

from __future__ import annotations

import datetime
import os
import signal
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import release
from release.errors import DataError, SpecError
from release.job import Job, Options, Stage
from release.operate.operations import Place, recover_all
from release.spec.declarations import Table
from release.street import run_release
from release.tables.frames import columns_of, with_frames
from release.tables.normal import normal_sql
from tests.answers import answer, load
from tests.small import MARKED, Row, Small, check_unmarked, query, table_of

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]
QUERIES = [query("count"), query("mode"), query("binned"), query("on_grid")]

T = TypeVar("T")


def frame_of(rows: list[Row]) -> pd.DataFrame:
    frame: pd.DataFrame = table_of(rows).to_pandas()
    return frame


def codes(spec_file: Any, frames: dict[str, pd.DataFrame]) -> list[list[int]]:
    def scratch() -> Path:
        return Path(tempfile.mkdtemp(dir=spec_file.folder))

    with with_frames(spec_file, frames, scratch) as declared, load(declared) as tables:
        return [one.codes.tolist() for one in answer(tables, declared)]


def test_a_frame_gives_the_answers_of_its_file(tmp_path: Path) -> None:
    spec_file = release.read_spec(Small(ROWS, QUERIES).write(tmp_path))
    expected = codes(spec_file, {})
    assert codes(spec_file, {"rows": frame_of(ROWS)}) == expected
    # Missing values, another order of columns and further columns make no difference.
    gaps: list[Row] = [row | {"wh": None} if i % 3 == 0 else row for i, row in enumerate(ROWS)]
    (tmp_path / "gaps").mkdir()
    with_gaps = release.read_spec(Small(gaps, QUERIES).write(tmp_path / "gaps"))
    turned = frame_of(gaps)[["wh", "kind", "day", "place", "unit"]].assign(further=1)
    assert codes(with_gaps, {"rows": turned}) == codes(with_gaps, {})


def test_a_release_of_a_frame_needs_no_file_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    worst = [query("count", sensitivity="global")]
    spec = Small(MARKED, worst).write(tmp_path)
    (tmp_path / "rows.parquet").unlink()
    public = release.run(spec, tmp_path / "out", tables={"rows": frame_of(MARKED)}).public
    assert release.verify(public, require="none").status == 0
    assert (public / "spec.yaml").read_bytes() == spec.read_bytes()
    assert list(scratch.iterdir()) == []
    check_unmarked(tmp_path)


def test_frames_are_read_wherever_the_release_goes_and_again_after_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative folder, a name that reads as a pattern, and a load stage that is run twice."""
    (tmp_path / "specs").mkdir()
    spec = Small(ROWS, [query("count", sensitivity="global")]).write(tmp_path / "specs")
    (tmp_path / "specs" / "rows.parquet").unlink()
    monkeypatch.chdir(tmp_path)

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "load":
            stage.does(job)
        stage.does(job)

    options = Options(frames={"rows": frame_of(ROWS)})
    assert run_release(spec, Path("out[1]*"), perform, options=options).public.is_dir()
    assert not list(Path("out[1]*").glob(".work-*"))


def killed(action: Callable[[], object]) -> None:
    """Run ``action`` in a process of its own, which has to die of a SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("mended_by", ["recover", "run"])
def test_the_rows_of_a_killed_run_are_private_and_wiped_by_the_next_command(
    tmp_path: Path, mended_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, out = tmp_path / "tmp", tmp_path / "out"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    spec = Small(MARKED, [query("count", sensitivity="global")]).write(tmp_path)
    (tmp_path / "rows.parquet").unlink()
    frames = {"rows": frame_of(MARKED)}

    def dying(stage: Stage, job: Job) -> None:
        if stage.name == "answer":
            os.kill(os.getpid(), signal.SIGKILL)
        stage.does(job)

    # Others could read whatever is made without a mode of its own.
    before = os.umask(0)
    try:
        killed(lambda: run_release(spec, out, dying, options=Options(frames=frames)))
    finally:
        os.umask(before)
    assert list(temporary.rglob("*")) == []
    written = [path for path in out.rglob("*") if path.is_file()]
    assert [path.name for path in written] == ["rows.frame"]
    assert written[0].stat().st_mode & 0o777 == 0o600
    assert b"quagzil" in written[0].read_bytes()
    for folder in written[0].relative_to(out).parents[:-1]:
        assert (out / folder).stat().st_mode & 0o077 == 0
    if mended_by == "recover":
        assert recover_all(Place(out)) == (("small", "given up"),)
    else:
        assert release.run(spec, out, tables=frames).public.is_dir()
    assert not list(out.glob(".work-*"))
    check_unmarked(tmp_path)


@pytest.mark.parametrize(
    ("frames", "error", "told"),
    [
        ({"raws": frame_of(ROWS)}, SpecError, "did you mean 'rows'"),
        ({3: frame_of(ROWS)}, SpecError, "tables.3: 3 is not there"),
        ({"rows": {"unit": ["quagzil"]}}, SpecError, "tables.rows: found dict; give a pandas"),
        ({"rows": None}, SpecError, "tables.rows: found NoneType; give a pandas"),
        ([("rows", frame_of(ROWS))], SpecError, "tables: found list; give a dict"),
        ([], SpecError, "tables: found list; give a dict"),
        ({"rows": frame_of(ROWS).drop(columns="wh")}, DataError, "no column 'wh'; add it"),
        (
            {"rows": pd.concat([frame_of(ROWS), frame_of(ROWS)[["wh"]]], axis="columns")},
            DataError,
            "the frame has 2 columns 'wh'; keep one",
        ),
    ],
)
def test_what_is_no_frame_of_a_table_is_refused(
    frames: Any, error: type[Exception], told: str, tmp_path: Path
) -> None:
    spec = Small(ROWS, QUERIES).write(tmp_path)
    with pytest.raises(error, match=told) as refused:
        release.run(spec, tmp_path / "out", tables=frames)
    assert "quagzil" not in str(refused.value)
    assert not (tmp_path / "out").exists()


NOON = datetime.datetime(2024, 1, 5, 12)
AWARE = NOON.replace(tzinfo=datetime.UTC)
DAY = NOON.date()
LARGEST = 2**62 - 1


def test_a_unit_that_a_float_cannot_tell_from_another_is_none() -> None:
    frame = pd.DataFrame({"x": [2.0**53 - 1, 2.0**53, np.nan, 0.5]})
    assert values_of(one_column("integer"), frame, "x").to_pylist() == [2**53 - 1]


INFINITE = float("inf")


class Failing(datetime.tzinfo):
    """A time zone whose code raises an error."""

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta | None:
        """None that is known."""
        raise RuntimeError("quagzil")

    dst = utcoffset

    def tzname(self, _: datetime.datetime | None) -> str | None:
        """None that is known."""


def values_of(table: Table, frame: pd.DataFrame, unit: str | None = None) -> pa.ChunkedArray:
    """The values that a column of a frame has under its declared type, in the order of rows."""
    with duckdb.connect(":memory:") as connection:
        connection.register("frame", columns_of("t", table, frame))
        described = connection.sql("SELECT * FROM frame LIMIT 0")
        types = {c: t.id for c, t in zip(described.columns, described.types, strict=True)}
        normal = normal_sql("frame", types, table.columns, unit)
        return connection.sql(normal).to_arrow_table().column("x")


def one_column(kind: str) -> Table:
    return Table.model_validate({"path": "rows.parquet", "columns": {"x": kind}})


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("integer", pd.array([1, None], "Int64"), [1, None]),
        ("integer", pd.array([1, 2], "uint8"), [1, 2]),
        ("integer", [1.0, np.nan, -3.0], [1, None, -3]),
        (
            "integer",
            [2.0**53, -(2.0**61), -(2.0**62), np.inf, 17.5],
            [2**53, -(2**61), None, None, None],
        ),
        ("integer", np.array([2**24], "float32"), [2**24]),
        ("integer", [2**70], [None]),
        ("integer", [LARGEST, -LARGEST, LARGEST + 1], [LARGEST, -LARGEST, None]),
        (
            "integer",
            pd.Series([17, "x", "4.0", True, 1e300, -(10**5000)], dtype=object),
            [17, None, 4, None, None, None],
        ),
        ("integer", pd.Categorical([3, 1, 3]), [3, 1, 3]),
        ("integer", pd.Series([1, None], dtype=object), [1, None]),
        ("integer", [np.nan, np.nan], [None, None]),
        ("integer", [], []),
        ("string", [17, -3], ["17", "-3"]),
        ("string", pd.Categorical([17, 3]), ["17", "3"]),
        ("string", pd.Categorical(["a", "b", None]), ["a", "b", None]),
        ("string", pd.array(["a", None], "string"), ["a", None]),
        (
            "string",
            pd.Series(["a", b"\xff", "\ud800", 17, {"quagzil": 1}, b"b"], dtype=object),
            ["a", None, None, "17", None, "b"],
        ),
        ("string", pd.Series([None, None], dtype=object), [None, None]),
        (
            "date",
            pd.Series([DAY, None, NOON, AWARE, pd.NaT], dtype=object),
            [DAY, None, None, None, None],
        ),
        ("date", pd.Series([DAY], dtype=pd.ArrowDtype(pa.date64())), [DAY]),
        ("date", pd.to_datetime([DAY, NOON, None]), [DAY, None, None]),
        ("date", pd.Series([datetime.datetime(2024, 1, 5)], dtype=object), [DAY]),
        ("timestamp", pd.to_datetime([AWARE, None]).tz_convert("Asia/Tokyo"), [NOON, None]),
        ("timestamp", pd.to_datetime([NOON, None]), [NOON, None]),
        (
            "timestamp",
            pd.Series([NOON, None, AWARE, DAY], dtype=object),
            [NOON, None, NOON, datetime.datetime(2024, 1, 5)],
        ),
        (
            "timestamp",
            pd.Series(
                [pd.Timestamp(np.datetime64("20000-01-01", "s")), NOON.replace(tzinfo=Failing())],
                dtype=object,
            ),
            [None, None],
        ),
        ("number", pd.Series([Decimal("sNaN"), Decimal("nan")], dtype=object), [None, None]),
        ("number", pd.Series([2**10_000_000, -(2**50_000)], dtype=object), [INFINITE, -INFINITE]),
        (
            "timestamp",
            pd.Series(np.array([0, 2**62], "datetime64[s]")),
            [datetime.datetime(1970, 1, 1), None],
        ),
        ("number", [1.5, np.nan], [1.5, None]),
        ("number", pd.array([1, None], "Int64"), [1, None]),
        ("number", pd.Series([Decimal("1.5")], dtype=object), [1.5]),
        ("boolean", pd.array([True, None], "boolean"), [True, None]),
        ("boolean", pd.Series([True, None, "no", 7], dtype=object), [True, None, False, None]),
    ],
)
def test_a_column_has_the_values_of_its_declared_type(
    kind: str, values: Any, expected: list[Any]
) -> None:
    frame = pd.DataFrame({"x": values})
    assert values_of(one_column(kind), frame).to_pylist() == expected
    assert not pa.types.is_dictionary(columns_of("t", one_column(kind), frame).column("x").type)


@pytest.mark.parametrize(
    ("kind", "values", "dtype", "remedy"),
    [
        ("timestamp", ["2024-01-05 12:00:00"], "str", "datetime64"),
        ("date", ["2024-01-05"], "str", "datetime.date"),
        ("integer", pd.to_timedelta([1], unit="s"), "timedelta64", "Int64"),
        ("integer", pd.to_datetime([NOON]), "datetime64[", "Int64"),
        ("integer", ["17"], "str", "Int64"),
        ("integer", [True], "bool", "Int64"),
        ("integer", pd.Series([17], dtype="Sparse[int]"), "Sparse", "Int64"),
        ("boolean", [1.0], "float64", "boolean"),
        ("boolean", [1], "int64", "boolean"),
        ("string", [np.nan, np.nan], "float64", "string"),
        ("string", pd.Categorical([1.5]), "category", "string"),
        ("number", ["17"], "str", "Float64"),
        ("number", [1j], "complex128", "Float64"),
    ],
)
def test_no_column_is_coerced(kind: str, values: Any, dtype: str, remedy: str) -> None:
    with pytest.raises(DataError) as refused:
        columns_of("t", one_column(kind), pd.DataFrame({"x": values}))
    message = str(refused.value)
    assert message.startswith(f"tables.t: column 'x' of the frame has dtype {dtype}")
    assert kind in message
    assert remedy in message
    assert "quagzil" not in message
    assert "17" not in message
    assert refused.value.__cause__ is None


def test_a_frame_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    spec = Small(ROWS, QUERIES).write(tmp_path)
    frame = frame_of(ROWS).assign(wh="quagzil")
    with pytest.raises(DataError, match="'wh' of the frame has dtype str, declared integer"):
        release.run(spec, tmp_path / "out", tables={"rows": frame})
    assert not (tmp_path / "out").exists()


def test_named_levels_of_an_index_are_columns(tmp_path: Path) -> None:
    spec_file = release.read_spec(Small(ROWS, QUERIES).write(tmp_path))
    expected = codes(spec_file, {"rows": frame_of(ROWS)})
    for names in (["unit"], ["unit", "day"], ["place"]):
        assert codes(spec_file, {"rows": frame_of(ROWS).set_index(names)}) == expected
    indexed = frame_of(ROWS).set_index("unit")
    data = release.dataset(indexed, unit="unit", rows=3, keys={"place": ["a", "b"]})
    assert list(data.columns) == ["unit", "place", "day", "kind", "wh"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_no_time_of_a_frame_makes_it_unreadable(
    unit: str, zone: str | None, tmp_path: Path
) -> None:
    """Whatever is stored: what is beyond all years is no value, and counted."""
    spec = Small(ROWS[:4], [query("count", by=[])]).plain("rows.parquet")
    spec["tables"]["rows"]["columns"] = {"unit": "string", "at": "timestamp"}
    spec["keys"] = {}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    ticks = [0, None, 2**63 - 1, -(2**63) + 1, 2**62, -(2**62)]
    arrow = pa.table(
        {"unit": list("abcdef"), "at": pa.array(ticks, pa.timestamp(unit, zone))},
    )
    plain = pd.DataFrame({"unit": list("abcdef"), "at": arrow.column("at").to_numpy()})
    for frame in (arrow, plain if zone is None else arrow):
        told = release.check(tmp_path / "spec.yaml", tables={"rows": frame})
        reasons = {reason.words: reason.count for reason in told.left_out}
        assert reasons["of at are missing"] == 1
        # Nanoseconds end in the year 2262; the engine takes their two ends for infinities.
        assert reasons.get("of at are not a timestamp, and count as missing", 0) == (
            2 if unit == "ns" else 4
        )


def test_what_a_frame_leaves_out_is_counted(tmp_path: Path) -> None:
    """As of a file: rows without a unit, and values that are none of their declared type."""
    spec_file = Small(ROWS, [query("count")]).write(tmp_path)
    frame = frame_of(ROWS).astype({"unit": object, "wh": object})
    frame.loc[0:4, "unit"] = None
    frame.loc[10:11, "wh"] = "many"
    frame.loc[12, "wh"] = None
    told = release.check(spec_file, tables={"rows": frame})
    reasons = {reason.words: (reason.count, reason.whole) for reason in told.left_out}
    assert reasons["have no unit, and are left out"] == (5, 20)
    assert reasons["of wh are not an integer, and count as missing"] == (2, 15)
    assert reasons["of wh are missing"] == (1, 15)


def texts_of(*octets: bytes) -> pa.Array:
    """Bytes as Arrow text that nobody has checked."""
    gaps, offsets, data = pa.array(octets, pa.binary()).buffers()
    return pa.StringArray.from_buffers(len(octets), offsets, data, gaps)


def test_text_of_any_bytes_is_missing_and_in_no_message() -> None:
    """As pandas reads a Parquet file of somebody else: its text is Arrow's."""
    frame = pa.table({"x": texts_of(b"abc", b"quagzil\xff")}).to_pandas(
        types_mapper={pa.string(): pd.StringDtype("pyarrow")}.get
    )
    assert values_of(one_column("string"), frame).to_pylist() == ["abc", None]
    indexed = frame.assign(y=1).set_index("x")
    assert values_of(one_column("string"), indexed).to_pylist() == ["abc", None]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2, None], "string", ["1", "2", None]),
        ([1.5, 2.5], "string", ["1.5", "2.5"]),
        ([2**53, 2**53 + 1, 0.5], "integer", [2**53, 2**53 + 1, None]),
    ],
)
def test_no_row_of_an_index_decides_what_the_others_are(
    values: list[Any], kind: str, expected: list[Any]
) -> None:
    """Of objects, as of a column of them."""
    index = pd.Index(values, dtype=object, name="x")
    for frame in (pd.DataFrame({"y": 1}, index=index), pd.DataFrame({"x": pd.Series(index)})):
        assert values_of(one_column(kind), frame).to_pylist() == expected


class Odd(Decimal):
    """A number whose own code raises."""

    def is_nan(self) -> bool:
        """Tell nothing."""
        raise RuntimeError("quagzil")


def test_a_value_that_raises_is_missing() -> None:
    frame = pd.DataFrame({"x": pd.Series([Odd(1), "a"], dtype=object)})
    assert values_of(one_column("string"), frame).to_pylist()[1] == "a"


def test_categories_of_polars_are_their_texts() -> None:
    for dtype in (pl.Categorical, pl.Enum(["a", "b"])):
        frame = pl.DataFrame({"x": pl.Series(["a", None, "b"], dtype=dtype)})
        assert values_of(one_column("string"), frame).to_pylist() == ["a", None, "b"]


def test_a_zero_of_many_decimals_is_zero() -> None:
    stored = pa.array([Decimal("0"), Decimal("7"), Decimal("0.5")], pa.decimal128(38, 10))
    frame = pd.DataFrame({"x": pd.Series(stored.to_pylist(), dtype=pd.ArrowDtype(stored.type))})
    assert values_of(one_column("integer"), frame).to_pylist() == [0, 7, None]


def test_the_fields_of_a_nested_type_are_in_no_message() -> None:
    table = pa.table({"x": [{"quagzil": 1}]})
    for frame in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
        with pytest.raises(DataError, match="struct") as caught:
            columns_of("t", one_column("string"), frame)
        assert "quagzil" not in str(caught.value)
