"""The answers of a report: intervals that hold the truth, one unit, and pictures with figures."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from release.bundle.report import page as page_module
from release.bundle.report.answer_pictures import pictures_of
from release.bundle.report.answers import AnswerColumn
from release.bundle.report.charts import NARROW
from release.bundle.report.long_tables import Column, plain_table
from release.exact.channel import Channel
from release.exact.numbers import parse_exact
from release.exact.statistics.sums import NoisySums
from release.queries.intervals import Interval, around_sums, mean_of_sums
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import parse_spec
from release.street import run_release
from tests.small import Row, Small, joint, mechanism_of, part, query
from tests.tabulations.files.test_report import rows_of

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9}
    for i in range(400)
]
EVERY = {"sensitivity": "global"}


def public_of(folder: Path, *queries: dict[str, Any]) -> Path:
    path = Small(ROWS, list(queries), max_rows_per_unit=1).write(folder)
    return run_release(path, folder / "out").public


def page_of(public: Path) -> str:
    return (public / "report.html").read_text("utf-8")


def figures(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def ends_of(interval: str) -> tuple[str, str]:
    """Both ends of an interval; one number is both."""
    ends = interval.split(" to ")
    return ends[0], ends[-1]


def test_an_answer_on_a_grid_has_one_unit_in_table_picture_and_words(tmp_path: Path) -> None:
    """The file has integers of the scale: the page showed them times 0.001 beside a chart of them.

    Every number of the picture and of the table is that of the file.
    """
    grid = {"low": 0, "high": 1000, "step": 50, "scale": "0.001"}
    fine = query("on_grid", name="mean", statistic="mean", units="Wh", **EVERY)
    public = public_of(tmp_path, fine | {"grid": grid, "clamp": [0, 1000]})
    page = page_of(public)
    stored = pq.read_table(public / "data" / "mean.parquet").column("answer").to_pylist()
    rows = rows_of(page, "Mean: published answers")
    assert [int(row[1]) for row in rows] == stored
    assert '<th scope="col" class="number">answer, Wh</th>' in page
    (words,) = re.findall(r'aria-label="(Published answers\. [^"]+)"', page)
    for row in rows:
        place, answer, _ = row
        low, high = ends_of(row[2])
        assert f"{place}: {answer} Wh (answer of the rows read {low} to {high})" in words
    svg = page.split('id="q-mean"')[1].split("<svg")[1].split("</svg>")[0]
    ticks = [float(text) for text in re.findall(r">(\d+)</text>", svg)]
    assert max(ticks) >= max(stored) / 2
    assert max(ticks) <= 1.5 * max(float(ends_of(row[2])[1]) for row in rows)


def test_the_intervals_of_noisy_sums_hold_the_truth(tmp_path: Path) -> None:
    """Over many draws of the noise, in at least 95 of 100, for a sum and for a mean."""
    generator = np.random.default_rng(20)
    for statistic in ("sum", "mean"):
        asked = query("binned", statistic=statistic, **EVERY) | {"noise": "on_statistic"}
        small = Small([], [asked | {"bins": {"low": 0, "high": 400, "count": 80}}])
        spec = parse_spec(yaml.safe_dump(small.plain()).encode())
        (released,) = spec.released
        count = 1 if statistic == "sum" else 2
        mechanism = NoisySums.geometric(parse_exact("0.5"), count, 20)
        ratio = mechanism.noise.right
        assert ratio is not None
        p = 1 - float(ratio.fraction)
        true = np.array([[180], [30]] if count == 1 else [[900, 1500], [40, 60]])
        assert isinstance(released, OnStatisticQuery)
        truth = true[:, 0] if count == 1 else mean_of_sums(released, true)
        draws = 2000
        for sums, own in zip(true, truth, strict=True):
            shape = draws, count
            noise = generator.geometric(p, shape) - generator.geometric(p, shape)
            interval = around_sums(released, mechanism, sums + noise)
            held = np.count_nonzero((interval.low <= own) & (own <= interval.high))
            assert held / draws >= 0.94, (statistic, own)


def test_the_interval_of_each_answer_is_the_shortest_that_holds_95_of_100(tmp_path: Path) -> None:
    """For each cell, and for each part of a tuple by itself."""
    public = public_of(
        tmp_path,
        part("one", "count"),
        part("two", "mode"),
        joint("one", "two", name="both", **EVERY),
    )
    law = mechanism_of(public, "both")
    channel = Channel.of_mechanism(law).to_floats().reshape(6, 4, 6, 4)
    for row in rows_of(page_of(public), "Both: published answers"):
        answer, category = int(row[1]), int(row[3])
        low, high = map(int, ends_of(row[2]))
        likelihood = channel[:, :, answer, category].sum(axis=1)
        shares = likelihood / likelihood.sum()
        assert shares[low : high + 1].sum() >= 0.95 - 1e-9
        width = high - low
        assert all(shares[at : at + width].sum() < 0.95 for at in range(6))


def test_a_category_has_its_chance_to_be_true(tmp_path: Path) -> None:
    """Randomised response at ε = 1 over three: e/(e + 2) = 0.576."""
    asked = query("mode", domain={"nominal": ["a", "b", "c"]}, of="place", **EVERY)
    page = page_of(public_of(tmp_path, asked))
    rows = rows_of(page, "The mode: published answers")
    assert [row[2] for row in rows] == ["57 %", "57 %"]


def test_an_empirical_answer_has_no_interval(tmp_path: Path) -> None:
    """It would tell of the mechanism, which depends on the table."""
    page = page_of(public_of(tmp_path, query("count")))
    assert "true from" not in page
    assert "95 of 100" not in page.split('id="auditors"')[0]


def test_hours_stand_round_a_circle(tmp_path: Path) -> None:
    asked = query(
        "mode",
        domain={"cyclic": 24},
        of="kind",
        guarantee={"definition": "pure", "epsilon": "8"},
        **EVERY,
    )
    page = page_of(public_of(tmp_path, asked))
    rows = rows_of(page, "The mode: published answers")
    (words,) = re.findall(r'aria-label="(Published answers on a circle of 24[^"]+)"', page)
    for place, answer, interval in rows:
        low, high = ends_of(interval)
        assert f"{place}: {answer} (answer of the rows read {low} to {high})" in words
    svg = page.split('id="q-the_mode"')[1].split("<svg")[1].split("</svg>")[0]
    for place, answer, _ in rows:
        assert f">{place}: {answer}</text>" in svg
    # The hand of hour h ends at the angle of h, clockwise from the top.
    hands = re.findall(
        r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" fill="none" stroke="#1f5582"', svg
    )
    for hand, row in zip(hands, rows, strict=True):
        x, y, to_x, to_y = map(float, hand)
        hours = np.degrees(np.arctan2(to_x - x, y - to_y)) / 15 % 24
        assert min(abs(hours - int(row[1])), 24 - abs(hours - int(row[1]))) < 0.1


def page_by_place(folder: Path, places: list[str], *asked: dict[str, Any]) -> str:
    """The report of queries by place, with these places."""
    small = Small(ROWS, list(asked), max_rows_per_unit=1)
    plain = small.plain() | {"keys": {"place": places, "day": {"range": [1, 2]}}}
    small.write(folder)
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(json.loads(json.dumps(plain)), sort_keys=False))
    return page_of(run_release(spec, folder / "out").public)


def test_many_cells_are_searched_and_downloaded_from_the_page_itself(tmp_path: Path) -> None:
    """The data beside the table are the whole table, and no key can end their element."""
    keys = [f"</script><b>{place}" for place in range(300)]
    page = page_by_place(tmp_path, keys, query("count", **EVERY))
    rows = rows_of(page, "The count: published answers")
    assert len(rows) == 200
    assert '<p class="cut">100 more rows are in the file.</p>' in page
    (stored,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    columns = json.loads(stored)["columns"]
    whole = []
    for column in columns:
        numbers = column.get("rows", range(len(column["texts"])))
        whole.append([column["texts"][number] for number in numbers])
    assert whole[0] == sorted(keys)
    assert [list(map(str, row)) for row in zip(*whole, strict=True)][:200] == rows


def test_a_page_holds_whole_tables_as_far_as_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred tables of 10,000 cells made a page of 16 MB."""
    asked = [query("count", name=name, **EVERY) for name in ("one", "two", "three")]
    monkeypatch.setattr(page_module, "EMBEDDED_IN_ALL", 700)
    page = page_by_place(tmp_path, [f"place {place:03}" for place in range(300)], *asked)
    # Those without room keep their first rows and the name of their file.
    assert len(re.findall(r'<script type="application/json">', page)) == 2
    assert page.count('<p class="cut">100 more rows are in the file.</p>') == 3
    assert page.count("<td>place 199</td>") == 3
    assert "<td>place 200</td>" not in page


def test_a_table_as_data_keeps_every_row() -> None:
    columns = [Column("a", ["x", "x", "y"]), Column("b", ["1", "2", "3"], is_number=False)]
    assert plain_table(columns) == {
        "columns": [
            {"head": "a", "number": True, "texts": ["x", "y"], "rows": [0, 0, 1]},
            {"head": "b", "number": False, "texts": ["1", "2", "3"]},
        ]
    }


@pytest.mark.parametrize("cells", [1, 2, 24, 25, 60, 61, 2000])
@pytest.mark.parametrize("kind", ["count", "cyclic", "nominal", "binned"])
def test_every_picture_is_well_formed_and_told_with_figures(kind: str, cells: int) -> None:
    fields: dict[str, Any] = {"noise": "on_answer"}
    if kind == "nominal":
        asked = query("mode", domain={"nominal": ["<b>", "&"]}, of="place", **fields, **EVERY)
    elif kind == "cyclic":
        asked = query("mode", domain={"cyclic": 12}, **fields, **EVERY)
    elif kind == "binned":
        asked = query("binned", **EVERY)
    else:
        asked = query("count", **EVERY)
    (released,) = parse_spec(yaml.safe_dump(Small([], [asked]).plain()).encode()).released
    (own,) = released.parts
    codes = np.arange(cells) % own.answers.size
    interval = None
    if kind != "nominal":
        interval = Interval(codes, np.minimum(codes + 1, own.answers.size - 1))
    column = AnswerColumn("", own, "Wh", codes, interval)
    keys = [(f"<k>{place}" + "x" * 30,) for place in range(cells)]
    pictures = pictures_of("q", ["place"], keys, [column])
    assert len(pictures) == (0 if kind == "nominal" and cells == 1 else 1)
    for picture in pictures:
        root = fromstring(picture.svg)  # noqa: S314 - our own text
        assert "nan" not in picture.svg
        assert root.attrib["viewBox"].startswith(f"0 0 {NARROW:g} ")
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert -1 <= float(text.attrib["x"]) <= NARROW
        assert figures(picture.words)
        assert len(unescape(picture.words)) > 20
    if kind != "nominal" and cells == 2:
        assert own.shown_answers([1])[0] in pictures[0].words


def test_a_picture_has_its_keys_in_the_order_of_people() -> None:
    """A file is in the order of characters; each answer goes with its key."""
    asked = query("count", **EVERY)
    (released,) = parse_spec(yaml.safe_dump(Small([], [asked]).plain()).encode()).released
    (own,) = released.parts
    keys = [(name,) for name in ("0", "1", "10", "11", "2")]
    codes = np.array([0, 1, 3, 4, 2])
    column = AnswerColumn("", own, "", codes, Interval(codes, codes))
    (picture,) = pictures_of("q", ["hour"], keys, [column])
    root = fromstring(picture.svg)  # noqa: S314 - our own text
    heights: dict[str, float] = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        # The keys stand at the left of the rows.
        if text.text in {"0", "1", "2", "10", "11"} and text.attrib.get("text-anchor") == "end":
            heights[text.text] = float(text.attrib["y"])
    assert sorted(heights, key=heights.__getitem__) == ["0", "1", "2", "10", "11"]
    told = [picture.words.index(f"{key}: {answer}") for key, answer in ((2, 2), (10, 3), (11, 4))]
    assert told == sorted(told)
