"""The format that the page about extending shows, put in as the page says."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from release.errors import DataError, SpecError
from release.queries.read import read_spec
from release.street import answered
from release.tables import sources
from tests.docs.blocks import blocks
from tests.small import Row, Small, query, table_of

ROWS: list[Row] = [
    {"unit": f"u{i % 9}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 7 or None}
    for i in range(40)
]


@pytest.fixture(autouse=True)
def arrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shown = blocks("design/extending", "python")
    (module,) = (block for block in shown if "class ArrowFile" in block)
    (entry,) = (block for block in shown if block.startswith("FORMATS"))
    (tmp_path / "arrow_file.py").write_text(module, "utf-8")
    place = importlib.util.spec_from_file_location("arrow_file", tmp_path / "arrow_file.py")
    assert place is not None
    assert place.loader is not None
    loaded = importlib.util.module_from_spec(place)
    monkeypatch.setitem(sys.modules, "arrow_file", loaded)
    place.loader.exec_module(loaded)
    names = {"FORMATS": sources.FORMATS, "ArrowFile": loaded.ArrowFile}
    exec(entry, names)  # noqa: S102 - the line of our own page
    monkeypatch.setattr(sources, "FORMATS", names["FORMATS"])
    yield


def spec_of(folder: Path, table: pa.Table) -> Path:
    path = Small(ROWS, [query("count", of="unit"), query("mode", weight="wh")]).write(folder)
    pyarrow.feather.write_feather(table, folder / "rows.feather", chunksize=16)
    path.write_text(path.read_text("utf-8").replace("rows.parquet", "rows.feather"), "utf-8")
    return path


def test_its_answers_are_those_of_the_same_rows_in_parquet(tmp_path: Path) -> None:
    (tmp_path / "parquet").mkdir()
    plain = Small(ROWS, [query("count", of="unit"), query("mode", weight="wh")])
    expected = answered(read_spec(plain.write(tmp_path / "parquet")))
    found = answered(read_spec(spec_of(tmp_path, table_of(ROWS))))
    assert [run.codes.tolist() for run in found] == [run.codes.tolist() for run in expected]
    assert len({tuple(run.codes.tolist()) for run in found}) == 2


def test_an_empty_table_has_answers(tmp_path: Path) -> None:
    (counts, _) = answered(read_spec(spec_of(tmp_path, table_of(ROWS).slice(0, 0))))
    assert set(counts.codes.tolist()) == {0}


def test_it_is_refused_for_its_schema_and_for_what_is_no_such_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, table_of(ROWS).drop_columns(["wh"]))
    with pytest.raises(SpecError, match=r"rows\.feather has no such column"):
        answered(read_spec(spec))
    (tmp_path / "rows.feather").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"rows\.feather is no readable Arrow file"):
        answered(read_spec(spec))
