"""The figures of the sources: what is committed is what the command draws, and remarks are true."""

from __future__ import annotations

import csv
import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from release.errors import SpecError, StorageError
from research.__main__ import main as research
from research.figures import (
    BEYOND,
    FIGURES,
    page_of,
    reproduce,
    reproduce_all,
    select_figures,
    write_gallery,
)
from research.programs import ours, per_difference
from research.sheet import Panel, Series, Shape, Sheet
from tests.conftest import PROJECT

GALLERY = PROJECT / "docs" / "gallery"
TABLE = PROJECT / "data" / "ami_levels.yaml"
SEVERAL_OPTIMA = {"kadam-03", "kadam-09", "kadam-10"}
"""Figures of laws of which only f(0) is the same in all optima of the error rate."""

LCL = PROJECT / "tests" / "specs" / "lcl_daily.yaml"


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


def kept_panels(name: str) -> list[Panel]:
    """The panels of a figure as they are committed, which are those that the command draws."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for panel, label, x, y in rows((GALLERY / f"{name}.csv").read_bytes())[1:]:
        panels.setdefault(panel, {}).setdefault(label, []).append((float(x), float(y)))
    found = []
    for title, curves in panels.items():
        series = []
        for label, points in curves.items():
            xs, ys = zip(*points, strict=True)
            series.append(Series(label, xs, ys))
        found.append(Panel(title, "x", "y", tuple(series)))
    return found


def lines(panel: Panel) -> dict[str, np.ndarray]:
    return {series.label: np.array(series.y) for series in panel.series}


HEAVY = {
    *("kadam-05", "kadam-07", "kadam-11", "kadam-12", "kadam-errata"),
    *("geng-theorem-3", "qin-08", "qin-table-5"),
}
"""Sheets of many programs, which take most of the time of all."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly if name in HEAVY else ()) for name in FIGURES],
)
def test_the_gallery_is_what_the_command_draws(name: str) -> None:
    sheet = FIGURES[name](TABLE)
    found, kept = rows(sheet.csv()), rows((GALLERY / f"{name}.csv").read_bytes())
    assert [row[:2] for row in found] == [row[:2] for row in kept]
    if name in SEVERAL_OPTIMA:
        found, kept = ([row for row in table if row[2] in ("x", "0")] for table in (found, kept))
    numbers, expected = (np.array([row[2:] for row in t[1:]], float) for t in (found, kept))
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)
    level = 3 if name.startswith(BEYOND) else 2
    entry = sheet.markdown(level)
    assert entry in (GALLERY / "index.md").read_text("utf-8") + "\n"
    listing = GALLERY / f"{name}-list.csv"
    kept_list = rows(listing.read_bytes()) if listing.exists() else []
    assert [list(row) for row in sheet.listing] == kept_list
    picture = (GALLERY / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", picture[16:24])) > 300
    assert len(picture) < 150_000


def test_table_one_is_redrawn() -> None:
    """Kadam et al., Table I, all four columns, and (57) to four digits."""
    printed = lines(FIGURES["kadam-10"](TABLE).panels[1])
    table = {
        "0.0": [0.5432, *[0.1212] * 3, *[0.0270] * 3, *[0.0060] * 2],
        "0.1212": [0.5432, *[0.1212] * 3, *[0.0270] * 3, *[0.0060] * 2],
        "0.1238": [0.5548, *[0.1238] * 3, *[0.0276] * 2, *[0.0062] * 3],
        "0.1522": [0.5575, *[0.1244] * 3, *[0.0278] * 2, *[0.0062] * 2, 0.0014],
    }
    for delta, column in table.items():
        assert printed[f"δ = {delta}"] == pytest.approx(column, abs=1.1e-4)
    joint, _, other = FIGURES["kadam-13"](TABLE).panels[:3]
    assert [round(mass, 4) for mass in joint.series[0].y] == [
        0.6954,
        0.0346,
        0.0346,
        0.0017,
        0.0017,
    ]
    arbitrary = np.array([series.y for series in other.series])
    assert arbitrary[0, 0] == pytest.approx(0.8175, abs=5e-5)
    assert arbitrary[[1, 1, 3, 3], [2, 5, 2, 5]] == pytest.approx([0.0407] * 4, abs=5e-5)


def test_both_directions_cost_more_than_one() -> None:
    """Ours is never below the least that one direction allows (an indicator for each)."""
    for n, steps, epsilon, delta in ((9, [1, 2], 1.0, 0.2), (9, [3], 0.5, 0.3), (7, [1], 2.0, 0.1)):
        one_sided = 1 - per_difference(n, steps, epsilon, delta)[0]
        assert float(ours(n, steps, epsilon, delta).objective) >= one_sided - 1e-9


@pytest.mark.parametrize("name", ["kadam-11", "kadam-12"])
def test_error_rates_are_rates(name: str) -> None:
    for panel in kept_panels(name):
        for rates in lines(panel).values():
            assert ((rates > 0) & (rates < 1)).all()


def test_clamping_does_what_its_page_says() -> None:
    gaussian = kept_panels("kadam-06")[1]
    before, after = (gaussian.line(f"probabilistic, {place}") for place in ("n = ∞", "clamped"))
    places = np.linspace(0.03, 1.9, 200)
    free, inside = (np.interp(places, series.x, series.y) for series in (before, after))
    assert (inside >= free - 1e-15).all()
    assert (inside > free + 0.1).any()
    found = lines(gaussian)
    assert (found["approximate, clamped"] <= found["approximate, n = ∞"] + 1e-15).all()


def test_the_exact_program_of_qin_is_below_the_printed_one() -> None:
    for name in ("qin-08", "qin-09"):
        for panel in kept_panels(name):
            found = lines(panel)
            assert (found["P1, exact"] <= found["P2 as printed"] * (1 + 1e-6)).all()
            for label, distances in found.items():
                assert (found["P1, exact"] <= distances * (1 + 1e-6)).all(), label
    assert any("16.45%" in remark for remark in FIGURES["qin-07"](TABLE).remarks)


def test_the_exact_delta_of_counts_is_below_the_printed_bound() -> None:
    ratios = []
    for name in ("sadeghi-02", "sadeghi-03"):
        for panel in kept_panels(name):
            found = lines(panel)
            for reach in (4, 6, 8):
                printed = found[f"printed (2D+1)δ̃, D = {reach}"]
                ratios.append(printed / found[f"exact, D = {reach}"])
    every = np.concatenate(ratios)
    assert (every.min(), every.max()) == pytest.approx((1.1, 8.1), abs=0.05)


def test_figure_14_sees_the_differences_of_the_table() -> None:
    """In the real table where it is: those of 11 and 17 levels."""
    assert len(kept_panels("kadam-14")) == 8
    for panel in kept_panels("kadam-14")[4:]:
        assert "seen" in panel.title
        (law,) = panel.series
        assert sum(law.y) == pytest.approx(1, abs=1e-12)
    if not (PROJECT.parent / "shared" / "data" / "lcl_daily").is_dir():
        pytest.skip("the table of London homes is not here")
    real = FIGURES["kadam-14"](LCL)
    titles = [panel.title for panel in real.panels[4:6]]
    assert titles == [
        "mean_energy_11: 11 levels, ±{1} seen\npure (ε = 1, δ = 0)",
        "mean_energy_17: 17 levels, ±{1} seen\npure (ε = 1, δ = 0)",
    ]


def test_figure_14_takes_any_guarantee_and_name_of_a_spec(tmp_path: Path) -> None:
    """ε = 0 with a δ, another loss; a file's name that is a formula and a heading elsewhere."""
    text = TABLE.read_text("utf-8").replace("path: ", f"path: {TABLE.parent}/")
    text = text.replace(
        'guarantee: {definition: pure, epsilon: "1"}',
        'guarantee: {definition: approximate, epsilon: "0", delta: "0.2"}\n    loss: absolute\n'
        "    mechanism: modular",
        1,
    )
    odd = tmp_path / "a](x) $_$b$ # h.yaml"
    odd.write_text(text.replace('delta: "0"}', 'delta: "0.5"}'), "utf-8")
    made = reproduce("kadam-14", odd, tmp_path)
    assert "approximate (ε = 0, δ = 0.2)" in made.panels[4].title
    assert "a](x)" not in made.markdown()


def test_an_old_file_stays_where_a_new_one_cannot_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "sadeghi-01.csv").mkdir()
    with pytest.raises(StorageError, match="sadeghi-01"):
        reproduce("sadeghi-01", TABLE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sadeghi-01.csv"]


def test_figures_are_chosen_by_name_in_the_order_of_the_page() -> None:
    assert select_figures([]) == tuple(FIGURES)
    assert select_figures(["qin-08", "kadam-05"]) == ("kadam-05", "qin-08")
    with pytest.raises(SpecError, match="did you mean 'kadam-05'"):
        select_figures(["kadam-5"])


def test_the_command_draws_twice_the_same(tmp_path: Path) -> None:
    names = ["kadam-08", "sadeghi-01"]

    def draw() -> dict[str, bytes]:
        research([*names, "--out", str(tmp_path)])
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    first = draw()
    assert sorted(first) == [
        "contact-sheet.png",
        "index.md",
        *(f"{name}.{kind}" for name in names for kind in ("csv", "png")),
    ]
    assert draw() == first


def test_several_processes_draw_what_one_draws(tmp_path: Path) -> None:
    names = ("kadam-08", "geng-alpha", "kadam-03")
    alone, together = tmp_path / "alone", tmp_path / "together"
    one = [sheet.name for sheet in reproduce_all(names, TABLE, alone)]
    assert one == [sheet.name for sheet in reproduce_all(names, TABLE, together, 2)] == list(names)
    for path in alone.iterdir():
        assert path.read_bytes() == (together / path.name).read_bytes()


def test_the_page_has_the_results_and_ends_beyond_the_sources() -> None:
    page = page_of([FIGURES[name](TABLE) for name in ("kadam-08", "geng-alpha", "beyond-wrapping")])
    order = ["## What holds", "## Kadam et al. 2024, Figure 8", "## Beyond the sources", "### Bey"]
    places = [page.index(heading) for heading in order]
    assert places == sorted(places)
    whole = (GALLERY / "index.md").read_text("utf-8")
    headings = [line for line in whole.splitlines() if line.startswith("## ")]
    assert headings[-1] == "## Beyond the sources"
    assert page.partition("<a id=")[0] == whole.partition("<a id=")[0]


def test_no_sheet_is_asked_for_in_words_that_name_none() -> None:
    with pytest.raises(SystemExit):
        research([])


def test_the_command_lists_names_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    research(["--list"])
    assert capsys.readouterr().out.split() == list(FIGURES)
    with pytest.raises(SpecError, match="kadam-15"):
        research(["kadam-15"])


def test_the_process_refuses_in_one_line_with_status_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "research", "kadam-15"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: SHEET: 'kadam-15' is not there")
    assert done.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(StorageError, match="kadam-08"):
        reproduce("kadam-08", TABLE, tmp_path / "file")
    with pytest.raises(StorageError, match=r"index\.md"):
        write_gallery([], tmp_path / "file")


def test_a_sheet_shows_every_number_that_it_draws() -> None:
    series = (Series.of("a, b", [1, 2], [0.5, 1e-13]), Series.of("c", [1], [float("nan")]))
    panel = Panel("one", "x", "y", series, Shape.BARS)
    made = Sheet("x", "t", "s", "p", (panel,), "It is so.", ("why",))
    assert rows(made.csv()) == [
        ["panel", "series", "x", "y"],
        ["one", "a, b", "1", "0.5"],
        ["one", "a, b", "2", "1e-13"],
        ["one", "c", "1", "nan"],
    ]
    assert made.markdown().endswith("- why\n\n")
    assert "**It is so.**" in made.markdown()
    assert made.markdown(3).startswith('<a id="x"></a>\n\n### s: t\n')
