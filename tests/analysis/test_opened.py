"""A release opened as frames: what was published, what intervals are, what each column means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import release
from release.errors import SpecError, VerificationError
from tests.small import Row, Small, joint, part, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("opened")
    told = {"sensitivity": "global", "title": "Homes", "units": "homes"}
    counted = query("count", **told)
    pinned = query("count", name="pinned", mechanism="geometric_clamped", **told)
    places = {"nominal": ["a", "b", "c"]}
    of_place = query("mode", name="named", of="place", domain=places, sensitivity="global")
    parts = [part("one", "count"), part("two", "mode")]
    both = joint("one", "two", name="both", sensitivity="global")
    spec = Small(ROWS, [counted, pinned, query("mode"), of_place, *parts, both]).write(place)
    return release.run(str(spec), str(place / "out")).public


def test_a_frame_holds_what_was_published_and_its_intervals(public: Path) -> None:
    opened = release.open(str(public))
    assert list(opened) == ["the_count", "pinned", "the_mode", "named", "both"]
    frame = opened["pinned"].to_pandas()
    table = pq.read_table(public / "data" / "pinned.parquet")
    assert list(frame.columns) == ["place", "answer", "low", "high", "standard_error"]
    assert frame["place"].tolist() == table.column("place").to_pylist()
    assert frame["answer"].tolist() == table.column("answer").to_pylist()
    cells = release.estimate(public, "pinned").cells
    assert frame["low"].tolist() == [cell.low for cell in cells]
    assert frame["high"].tolist() == [cell.high for cell in cells]
    assert frame["standard_error"].tolist() == [cell.standard_error for cell in cells]
    assert (frame["low"] <= frame["high"]).all()
    assert frame.attrs["unit"] == "homes"
    assert frame.attrs["title"] == "Homes"
    assert frame.attrs["query"] == "pinned"
    assert frame.attrs["release"] == "small"


def test_where_noise_is_not_public_there_are_no_intervals(public: Path) -> None:
    opened = release.open(public)
    assert list(opened["the_mode"].to_pandas().columns) == ["place", "answer"]
    assert list(opened["both"].to_pandas().columns) == ["place", "answer_one", "answer_two"]
    # Categories have no interval, and a law that tells too little apart no standard error.
    assert list(opened["named"].to_pandas().columns) == ["place", "answer"]
    assert opened["the_count"].to_pandas()["standard_error"].dtype == "float64"


def test_what_cannot_be_opened_is_one_line(public: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'pinned'"):
        release.open(public)["pined"]
    with pytest.raises(SpecError, match=r"folder: .* holds no release; name OUT/public/RELEASE"):
        release.open(tmp_path)
    assert release.open(public.parent.parent)["pinned"] == release.open(public)["pinned"]
    copied = release.open(public)["pinned"]
    path = public / "data" / "pinned.parquet"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-1] + b"?")
        with pytest.raises(VerificationError, match="SHA-256"):
            copied.to_pandas()
    finally:
        path.write_bytes(whole)


def test_plans_and_estimates_are_frames_on_request(public: Path) -> None:
    spec = public / "spec.yaml"
    frame = release.plan(spec).to_pandas()
    taken = frame[frame["taken"]]
    assert taken["query"].tolist()[:2] == ["the_count", "pinned"]
    assert (taken["charge_epsilon"] > 0).all()
    found = release.estimate(public, "pinned").to_pandas()
    assert found["place"].tolist() == ["a", "b"]


def test_a_release_opened_is_a_mapping(public: Path) -> None:
    opened: Any = release.open(public)
    assert "pinned" in opened
    assert "pined" not in opened
    assert 3 not in opened
    assert opened.get("pined") is None
    with pytest.raises(KeyError, match=r"^query: 3 is not there; known are both, "):
        opened[3]
