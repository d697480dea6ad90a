"""The report on tabulations: its numbers are the published ones, and anyone can read it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from release.analysis.summary import summarise
from release.bundle.report.long_tables import MAX_ROWS
from release.bundle.report.page import report_html
from release.cli.main import app
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.files.numbers import MarginNumbers
from release.tabulations.picture import SizedTable, sizes_svg
from release.tabulations.report import amount
from tests.bundle.test_report import Page
from tests.tabulations.files.cases import LINES, TABULATION, spec_text
from tests.tabulations.files.folders import Folder, census, folder_of

TITLE = "Persons &lt;by&gt; age"

CONSTRAINTS = [
    {"level": "state", "margin": ["age"], "file": "ages.csv"},
    {"impossible": {"race": ["b"], "age": ["young"]}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    place = tmp_path_factory.mktemp("reported") / "public"
    return census(place, title="Persons <by> age", constraints=CONSTRAINTS)


def page_of(folder: Folder) -> str:
    return report_html(folder.record, folder.spec, (), folder.tabulations)


def rows_of(page: str, caption: str) -> list[list[str]]:
    """The rows of the table with this caption, below its head."""
    (body,) = re.findall(
        rf"<caption>{re.escape(caption)}</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL
    )
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [
        list(map(unescape, re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)))
        for row in rows
    ]


def plain(text: str) -> list[int]:
    """The numbers of a text."""
    return [int(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,]*", text)]


def test_every_table_has_its_published_numbers(folder: Folder) -> None:
    page = page_of(folder)
    (tabulation,) = folder.tabulations
    opened = tabulation.opened
    for level in tabulation.levels:
        for named, numbers in zip(opened.published_at(level.level), level.margins, strict=True):
            name = opened.levels[named.level]
            rows = rows_of(page, f"{TITLE}, {name}: {named.text}")
            assert [plain(row[-2])[0] for row in rows] == numbers.rounded.reshape(-1).tolist()
            for end, values in ((0, numbers.low), (-1, numbers.high)):
                assert [plain(row[-1])[end] for row in rows] == values.reshape(-1).tolist()
            labels = [opened.by_name[name].labels for name in named.names]
            areas = opened.named.names[level.level]
            keys = [[area, *key] for area in areas for key in product(*labels)]
            assert [row[-3 - len(labels) : -2] for row in rows] == keys
    # The last table of the highest level, its first row.
    first = rows_of(page, f"{TITLE}, state: race × age")[0]
    low, high = first[-1].split(" to ")
    example = f"Published {first[-2]} persons for state hi, race a, age young: the true count "
    assert example + f"lies from {low} to {high} in 95 of 100" in page
    # The county stands beside its tract; the only state would say nothing.
    tracts = rows_of(page, f"{TITLE}, tract: age")
    assert tracts[0][:3] == ["north", "t1", "young"]
    assert rows_of(page, f"{TITLE}, county: total")[0][0] == "north"


def test_the_overview_has_the_mean_errors(folder: Folder) -> None:
    rows = rows_of(page_of(folder), f"{TITLE}: how near the numbers are")
    (tabulation,) = folder.tabulations
    tables: list[MarginNumbers] = []
    for level in tabulation.levels:
        tables += level.margins
    for row, numbers in zip(rows, tables, strict=True):
        assert plain(row[1]) == [numbers.rounded.size]
        error = float(np.mean(numbers.standard_error)) / MILLION
        assert float(row[2]) == pytest.approx(error, abs=0.06)
        width = float(np.mean(numbers.high - numbers.answer / MILLION))
        assert float(row[3].removeprefix("± ")) == pytest.approx(width, abs=0.06)
        share = float(np.mean(numbers.low > 0))
        assert plain(row[4])[0] == int(100 * share + 1e-9)
    assert [row[0] for row in rows[:3]] == ["state: total", "state: race × age", "county: hispanic"]


def test_auditors_see_what_was_measured(folder: Folder) -> None:
    page = page_of(folder)
    rows = rows_of(page, "census: what was measured")
    assert [row[0] for row in rows] == ["tract: race × age", "state: race × age"]
    # Two-sided geometric noise of ε has the variance 1/(cosh ε − 1).
    for row, epsilon in zip(rows, (0.5, 0.25), strict=True):
        assert float(row[4]) == pytest.approx((np.cosh(epsilon) - 1) ** -0.5, abs=0.05)
    assert "mechanisms/census_tract_race_age.json" in rows[0][5]
    charges = rows_of(page, "Claimed guarantee and charge of each query and measured table")
    assert [row[0] for row in charges] == ["census_tract_race_age", "census_state_race_age"]


def test_public_facts_are_told_apart_from_noisy_numbers(folder: Folder, tmp_path: Path) -> None:
    page = page_of(folder)
    assert "Known without noise, and kept to exactly by the rounded numbers: state: age." in page
    assert "Declared impossible, so that the rounded number is 0: race b with age young." in page
    assert "but for the declared numbers, was changed by random noise" in page
    without = page_of(census(tmp_path / "public"))
    assert "Known without noise" not in without
    assert "Every answer here was changed by random noise" in without


def test_an_impossible_range_is_shown_by_its_ends(tmp_path: Path) -> None:
    ages = {"attributes": TABULATION["attributes"] | {"age": {"range": [0, 9]}}}
    zeros = {"constraints": [{"impossible": {"race": ["b", "c"], "age": {"range": [0, 4]}}}]}
    text = spec_text(TABULATION | ages | zeros).replace(b'"age": "string"', b'"age": "integer"')
    page = page_of(folder_of(tmp_path / "public", text, (LINES,)))
    assert "the rounded number is 0: race b, c with age 0 to 4." in page


def test_anyone_can_read_the_page(folder: Folder) -> None:
    """Elements are closed, pictures are told in words, headings and links lead somewhere."""
    text = page_of(folder)
    page = Page(text)
    assert not page.open
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    assert "t-census" in ids
    for _, attributes in page.elements:
        if attributes.get("role") == "img":
            assert len(attributes["aria-label"] or "") > 20
    assert "Persons &lt;by&gt; age" in text
    assert "<by>" not in text
    assert page_of(folder) == text


def test_what_rests_on_sql_is_on_trust(tmp_path: Path) -> None:
    folder = census(tmp_path / "public", where="age <> 'old' and race < 'd'")
    (tabulation,) = folder.tabulations
    told = replace(tabulation, rests_on="census: that the engine evaluated its condition")
    page = report_html(folder.record, folder.spec, (), (told,))
    assert "<li>census: that the engine evaluated its condition</li>" in page
    assert "provided that the conditions of the queries" in page
    assert "where <code>age &lt;&gt; &#39;old&#39; and race &lt; &#39;d&#39;</code>" in page


def test_long_tables_are_cut(tmp_path: Path) -> None:
    """A page of a country is no longer than one of a county; files are named for the rest."""
    lines = tuple(("hi", f"c{place % 30:02}", f"t{place:05}") for place in range(600))
    folder = folder_of(tmp_path / "public", spec_text(TABULATION), (lines,))
    page = page_of(folder)
    assert len(rows_of(page, "census, tract: age")) == MAX_ROWS
    assert "1,000 more rows are in the file." in page
    # For search and download the page has every row of it.
    stored = re.findall(r'<script type="application/json">(.*?)</script>', page)
    tables = [
        {column["head"]: column for column in json.loads(found)["columns"]} for found in stored
    ]
    whole = tables[0]
    assert list(whole) == ["county", "tract", "age", "persons", "true count, 95 of 100"]
    # Each end is a column of its own in the file that is downloaded.
    assert whole["true count, 95 of 100"]["ends"] == ["true from", "true to"]
    assert [len(whole[name]["rows"]) for name in ("tract", "age")] == [1200, 1200]
    assert len(whole["tract"]["texts"]) == 600
    assert len(rows_of(page, "census, county: race × age")) == 180
    assert page.count("<tr>") < 1500


@pytest.mark.parametrize("size", [(0,) * 5, (0, 0, 3, 7, 10), (2.0e6,) * 5])
@pytest.mark.parametrize("width", [0.0, 0.3, 1e5])
def test_any_table_can_be_drawn(size: tuple[float, ...], width: float) -> None:
    """Each margin of error where it is beside the counts: left of larger ones, right of others."""
    tables = [SizedTable("state", "total", size, width)]
    svg = sizes_svg("picture", "persons", tables)
    assert svg == sizes_svg("picture", "persons", tables)
    assert "nan" not in svg
    assert "inf" not in svg
    median = float(re.findall(r'<circle cx="([0-9.]+)"', svg)[0])
    mark = float(re.findall(r'<polyline points="([0-9.]+),', svg)[0])
    assert np.sign(median - mark) == np.sign(size[2] - width)
    places = [float(place) for place in re.findall(r'<text x="([0-9.]+)"', svg)]
    assert all(0 <= place <= 576 for place in places)


def test_few_digits_are_shown() -> None:
    assert [amount(value) for value in (0.0, 0.567, 12.34, 99.96, 1234.5)] == [
        "0.00",
        "0.57",
        "12.3",
        "100.0",
        "1,234",
    ]


def test_the_summary_names_tabulations(folder: Folder) -> None:
    summary = summarise(folder.public)
    (told,) = summary.tabulations
    assert (told.tables, told.cells) == (8, 85)
    assert told.areas == "state 1, county 2, tract 5"
    assert told.noise == "geometric on 2 tables"
    assert told.charge == "at most ε 1, δ 0"
    done = CliRunner().invoke(app, ["report", str(folder.public)])
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.output.splitlines() if line.startswith("census "))
    assert re.split(r"\s{2,}", line) == [
        "census",
        "state 1, county 2, tract 5",
        "8",
        "85",
        "geometric on 2 tables",
        "at most ε 1, δ 0",
        told.error,
    ]
    assert summary.plain()["tabulations"][0]["name"] == "census"
