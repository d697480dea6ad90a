"""Frames in place of files: the same integers, refusals without values, nothing left behind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import release
from release.errors import DataError, SpecError
from release.pipeline import answer, load
from release.tables.frames import with_frames
from tests.small import MARKED, Row, Small, check_unmarked, query, table_of

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]
QUERIES = [query("count"), query("mode"), query("binned"), query("on_grid")]


def frame_of(rows: list[Row]) -> pd.DataFrame:
    frame: pd.DataFrame = table_of(rows).to_pandas()
    return frame


def codes(spec_file: Any, frames: dict[str, pd.DataFrame]) -> list[list[int]]:
    with with_frames(spec_file, frames) as declared, load(declared) as tables:
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
    assert release.verify(public, require="none").complete
    assert (public / "spec.yaml").read_bytes() == spec.read_bytes()
    assert list(scratch.iterdir()) == []
    check_unmarked(tmp_path)


@pytest.mark.parametrize(
    ("frames", "error", "told"),
    [
        ({"raws": frame_of(ROWS)}, SpecError, "did you mean 'rows'"),
        ({"rows": frame_of(ROWS).drop(columns="wh")}, DataError, "no column 'wh'; add it"),
        (
            {"rows": frame_of(ROWS).assign(wh="quagzil")},
            DataError,
            "column 'wh' of the frame has values that are no integer",
        ),
        (
            {"rows": frame_of(ROWS).assign(wh=2**70)},
            DataError,
            "column 'wh' of the frame has values that are no integer",
        ),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_without_its_values(
    frames: dict[str, pd.DataFrame], error: type[Exception], told: str, tmp_path: Path
) -> None:
    spec = Small(ROWS, QUERIES).write(tmp_path)
    with pytest.raises(error, match=told) as refused:
        release.run(spec, tmp_path / "out", tables=frames)
    assert "quagzil" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert not (tmp_path / "out" / "public").exists()
