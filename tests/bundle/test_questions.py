"""Questions in words: title, unit and condition, for every kind of query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from release.bundle.opened import open_public
from release.bundle.report.questions import plural, unit_word
from release.street import run_release
from tests.small import Row, Small, joint, part, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ("household_id", "household"),
        ("person_id", "person"),
        ("meter_number", "meter"),
        ("LCLid", "LCLid"),
        ("id", "id"),
        ("unit", "unit"),
    ],
)
def test_a_unit_is_a_thing_and_not_a_column(column: str, word: str) -> None:
    assert unit_word(column) == word


def test_several_units_have_their_plural() -> None:
    words = ["household", "person", "family", "day", "class", "box"]
    assert list(map(plural, words)) == [
        "households",
        "people",
        "families",
        "days",
        "classes",
        "boxes",
    ]


def page_of(folder: Path, *queries: dict[str, Any]) -> str:
    path = Small(ROWS, list(queries), max_rows_per_unit=1).write(folder)
    return (run_release(path, folder / "out").public / "report.html").read_text("utf-8")


def test_each_kind_says_what_it_asks(tmp_path: Path) -> None:
    every = {"sensitivity": "global"}
    page = page_of(
        tmp_path,
        query("count", title="people with some", where="wh > 2 AND kind <> 1", **every),
        query("count", name="units", of="unit", **every),
        query("mode", **every),
        query("binned", units="Wh", **every),
        query("binned", name="the_mean", statistic="mean", **every),
        query("on_grid", name="grid", **every),
        part("one", "count", where="wh = 1"),
        part("two", "mode"),
        joint("one", "two", name="both", sensitivity="global"),
        query("mode", name="first", **every) | {"kind": "top", "k": 2, "noise": "on_statistic"},
    )
    asked = "<strong>Asked:</strong> "
    for text in (
        "The number of rows where the wh is above 2 and the kind is not 1; for each place.",
        "The number of units; for each place.",
        "The kind of most rows; for each place.",
        "The sum of the wh; for each place.",
        "The mean of the wh; for each place.",
        "The sum of the kwh; for each place.",
        "The number of rows where the wh is 1; and the kind of most rows; for each place.",
        "The 2 values of kind of most units; for each place.",
    ):
        assert asked + text in page
    assert ">People with some</h3>" in page
    assert "Here “kwh” means: the wh times 0.3." in page
    assert "published answers, in Wh." in page
    # No column name, kind or code stands for a thing.
    assert "A mode" not in page
    assert "codes" not in page.split('id="auditors"')[0]


def test_the_record_says_which_column_is_the_unit(tmp_path: Path) -> None:
    """The page speaks of a household; the record keeps the column, which a verifier compares."""
    spec = Small(ROWS, [query("count", sensitivity="global")], fixed=["place"])
    plain = spec.write(tmp_path)
    text = plain.read_text().replace("unit: string", "household_id: string")
    text = text.replace("unit: unit", "unit: household_id")
    plain.write_text(text)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "rows.parquet")
    names = ["household_id" if name == "unit" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), tmp_path / "rows.parquet")
    public = run_release(plain, tmp_path / "out").public
    page = (public / "report.html").read_text("utf-8")
    assert "household_id" not in page
    assert "all rows of one household are replaced by those of another" in page
    assert "The place of a household, which is held to be public." in page
    assert open_public(public).record.asked.privacy.unit == "household_id"
