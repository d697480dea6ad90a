"""The report in a real browser: what a stranger reads, at every width, with a script or without.

Needs the extra ``browser`` and a Chromium of the machine; skipped where there is none.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from release.street import run_release
from tests.conftest import PROJECT
from tests.small import Row, Small, joint, part, query
from tests.tabulations.files.cases import TABULATION, spec_text
from tests.tabulations.files.folders import folder_of
from tests.tabulations.files.test_report import page_of

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": i % 9}
    for i in range(60)
]
EVERY: dict[str, Any] = {"sensitivity": "global"}

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Reports of the samples, a plan and a comparison."""
    from typer.testing import CliRunner

    from release.cli.main import app

    place = tmp_path_factory.mktemp("pages")
    found = [
        run_release(PROJECT / "data" / f"{name}.yaml", place / "out").public / "report.html"
        for name in ("ami", "persons", "census")
    ]
    spec = str(PROJECT / "data" / "ami.yaml")
    for arguments in (["plan", spec], ["compare", spec, "heavy_evenings"]):
        page = place / f"{arguments[0]}.html"
        assert CliRunner().invoke(app, [*arguments, "--html", str(page)]).exit_code == 0
        found.append(page)
    return found


WIDTHS = (360, 768, 1280)

KINDS = [
    query("count", title="People with some", units="people", **EVERY),
    query("mode", domain={"cyclic": 24}, name="hour", title="The hour", **EVERY),
    query("binned", name="total", units="Wh", loss="absolute", **EVERY),
    query("on_grid", name="real", units="half Wh", **EVERY),
    query("mode", name="first", **EVERY) | {"kind": "top", "k": 2, "noise": "on_statistic"},
    query("binned", name="quarters", **EVERY)
    | {"kind": "quantiles", "at": ["1/4", "1/2", "3/4"], "noise": "on_statistic"},
    query("count", name="by_two", by=["place", "day"], where="wh > 2", **EVERY),
    part("one", "count"),
    part("two", "mode"),
    joint("one", "two", name="both", sensitivity="global"),
    query("count", name="seen"),
]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a release with a query of each kind."""
    place = tmp_path_factory.mktemp("kinds")
    path = Small(ROWS, KINDS, max_rows_per_unit=1).write(place)
    return run_release(path, place / "out").public / "report.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a count over 2,000 tracts."""
    place = tmp_path_factory.mktemp("large")
    small = Small(ROWS, [query("count", **EVERY)], max_rows_per_unit=1)
    small.write(place)
    tracts = [f"t{number:04}" for number in range(2000)]
    plain = small.plain() | {"keys": {"place": tracts, "day": {"range": [1, 2]}}}
    spec = place / "spec.yaml"
    spec.write_text(yaml.safe_dump(json.loads(json.dumps(plain)), sort_keys=False), "utf-8")
    return run_release(spec, place / "out").public / "report.html"


def test_axe_finds_nothing_at_three_widths(
    browser: Any, pages: list[Path], kinds: Path, large: Path
) -> None:
    """No finding of any impact, and no page that is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    for path in (*pages, kinds, large):
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(path.as_uri())
            page.evaluate(
                "document.querySelectorAll('details').forEach((part) => part.open = true)"
            )
            # All reports have the layouts of the last two, which have every kind and 2,000 rows.
            if width == min(WIDTHS) or path in (kinds, large):
                found = [one["id"] for one in Axe().run(page).response["violations"]]
                assert not found, (path.name, width, found)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()


def test_the_page_loads_nothing_and_breaks_no_rule_of_its_own(browser: Any, large: Path) -> None:
    page = browser.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(large.as_uri())
    page.get_by_label("Search").fill("t1")
    assert asked == [large.as_uri()]
    assert said == []
    page.close()


def test_text_of_pictures_can_be_read_on_a_telephone(
    browser: Any, pages: list[Path], kinds: Path, large: Path
) -> None:
    """11 pixels or more: they were below 6."""
    script = """() => Array.from(document.querySelectorAll('svg'), (svg) =>
        parseFloat(getComputedStyle(svg).fontSize) * svg.getScreenCTM().a)"""
    for path in (*pages, kinds, large):
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
        sizes = page.evaluate(script)
        assert sizes
        assert min(sizes) >= 11, path
        page.close()


def test_no_text_of_a_picture_lies_on_a_line(
    browser: Any, pages: list[Path], kinds: Path, large: Path
) -> None:
    """A legend or a note on a curve hides both."""
    script = """() => {
        const hits = [];
        document.querySelectorAll('svg').forEach((svg) => {
            const boxes = Array.from(svg.querySelectorAll('text'), (text) =>
                [text.textContent, text.getBoundingClientRect()]);
            svg.querySelectorAll('polyline').forEach((line) => {
                const across = line.getScreenCTM();
                const length = line.getTotalLength();
                for (let part = 0; part <= 200; part += 1) {
                    const at = line.getPointAtLength(length * part / 200).matrixTransform(across);
                    boxes.forEach(([words, box]) => {
                        // A clipped part of a line is not drawn.
                        const area = svg.querySelector('clipPath path').getBBox();
                        const local = line.getPointAtLength(length * part / 200);
                        if (local.y < area.y || local.y > area.y + area.height) { return; }
                        if (at.x > box.left + 1 && at.x < box.right - 1 &&
                            at.y > box.top + 2 && at.y < box.bottom - 2) { hits.push(words); }
                    });
                }
            });
        });
        return hits;
    }"""
    for path in (*pages, kinds, large):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        assert page.evaluate(script) == [], path
        page.close()


def test_wide_tables_and_pictures_scroll_in_their_boxes(browser: Any, kinds: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(kinds.as_uri())
    boxes = page.evaluate(
        """() => Array.from(document.querySelectorAll('.scroll, .pan'), (box) => {
            const around = box.getBoundingClientRect();
            box.scrollLeft = 100000;
            const inner = box.firstElementChild.getBoundingClientRect();
            return [around.left, around.right, box.scrollWidth > box.clientWidth, inner.right];
        })"""
    )
    assert any(is_wide for _, _, is_wide, _ in boxes)
    for left, right, _, end in boxes:
        assert left >= 0
        assert right <= 360
        # Scrolled to its end, the box shows the last column.
        assert end <= right + 1
    page.close()


def test_no_digit_of_a_table_is_cut_without_a_hint(
    browser: Any, pages: list[Path], kinds: Path, large: Path
) -> None:
    """A reader of 53 for 535 did not see that the table was wider than the telephone."""
    script = """() => Array.from(document.querySelectorAll('.scroll, .pan'), (box) => {
        const before = box.previousElementSibling;
        return {
            name: box.textContent.trim().slice(0, 60),
            wide: box.scrollWidth > box.clientWidth + 1,
            long: box.scrollHeight > box.clientHeight + 1,
            edges: getComputedStyle(box).backgroundAttachment.includes('local'),
            hint: before && before.matches('.hint') && before.checkVisibility()
                ? before.textContent : '',
        };
    })"""
    for path in (*pages, kinds, large):
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
        page.wait_for_timeout(300)
        has_script = page.locator("script:not([type])").count() > 0
        for box in page.evaluate(script):
            ways = {"sideways": box["wide"], "down": box["long"]}
            assert box["edges"], (path, box)
            for way, is_more in ways.items():
                # A plan and a comparison have no script: the shadow at the edge is their hint.
                assert (way in box["hint"]) == (is_more and has_script), (path, box)
        page.close()


def test_tables_of_answers_fit_a_telephone(browser: Any, pages: list[Path]) -> None:
    """An answer stands beside its interval, and its error beside its margin."""
    for path in pages[:3]:
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
        wide = page.evaluate(
            """() => Array.from(document.querySelectorAll('#readers ~ .scroll, .rows .scroll'))
                .filter((box) => box.scrollWidth > box.clientWidth)
                .filter((box) => document.getElementById('auditors')
                    .compareDocumentPosition(box) & Node.DOCUMENT_POSITION_PRECEDING)
                .map((box) => box.textContent.trim().slice(0, 60))"""
        )
        assert wide == [], path
        heads = page.evaluate(
            """() => Array.from(document.querySelectorAll('table')).flatMap((table) =>
                Array.from(table.querySelectorAll('tbody tr:first-child > *'), (cell, place) => [
                    getComputedStyle(cell).textAlign,
                    getComputedStyle(table.tHead.rows[0].cells[place]).textAlign]))"""
        )
        assert all(cell == head for cell, head in heads), path
        page.close()


def test_a_stranger_reads_the_question_before_the_answer(browser: Any, kinds: Path) -> None:
    """Title, condition and unit in words; then the picture and the table; at last the auditor's."""
    page = browser.new_page()
    page.goto(kinds.as_uri())
    text = page.inner_text("main")
    reader, auditor = text.split("For auditors\n", 1)
    assert "People with some" in reader
    assert "Asked: The number of people" in reader
    assert "Asked: The number of rows where the wh is above 2; for each place and day." in reader
    assert "published answers, in people." in reader
    for word in ("codes", "1 queries", "A count", "A mode", "A real", "SHA-256", "commitment"):
        assert word not in reader
    order = ["Questions and answers", "What the guarantee means", "What was not protected"]
    places = [reader.index(f"{heading}\n") for heading in order]
    assert places == sorted(places)
    assert "Noise distributions" in auditor
    headings = page.evaluate(
        """() => Array.from(document.querySelectorAll('#readers ~ h3'), (head) => head.id)
            .filter((id) => id.startsWith('q-'))"""
    )
    for own in headings:
        kinds_of = page.evaluate(
            """(own) => { const tags = [];
                for (let at = document.getElementById(own).nextElementSibling;
                     at && !['H2', 'H3'].includes(at.tagName); at = at.nextElementSibling) {
                    tags.push(at.className || at.tagName); }
                return tags; }""",
            own,
        )
        assert kinds_of[0] == "asked"
        assert kinds_of[-1] == "rows"
        assert "FIGURE" in kinds_of
    page.close()


def test_pictures_and_tables_have_the_same_numbers(browser: Any, kinds: Path) -> None:
    """The picture of a real number was 1,000 times its table: every label is near its answers."""
    page = browser.new_page()
    page.goto(kinds.as_uri())
    for name in ("real", "total", "the_count"):
        shown = page.evaluate(
            """(name) => {
                const part = document.querySelector(`.rows[data-name="${name}"]`);
                let picture = part;
                while (picture.tagName !== 'FIGURE') { picture = picture.previousElementSibling; }
                const labels = Array.from(picture.querySelectorAll('text'), (t) => t.textContent);
                const rows = Array.from(part.querySelectorAll('tbody tr'), (row) =>
                    Array.from(row.cells, (cell) => cell.textContent));
                return [labels, rows, picture.querySelector('[role=img]').ariaLabel];
            }""",
            name,
        )
        labels, rows, words = shown
        ticks = [float(label.replace("−", "-")) for label in labels if label[-1:].isdigit()]
        ends = [float(row[-1].removesuffix(" or more").split()[-1]) for row in rows]
        assert max(ticks) >= 0.4 * max(ends)
        assert max(ticks) <= 2.5 * max(1.0, *ends)
        for row in rows:
            assert row[1] in words
    page.close()


def test_a_large_release_is_searched_paged_and_downloaded(
    browser: Any, large: Path, tmp_path: Path
) -> None:
    page = browser.new_page(accept_downloads=True)
    page.goto(large.as_uri())
    rows = page.locator(".rows tbody tr")
    assert rows.count() == 100
    status = page.locator(".tools [role=status]")
    assert status.inner_text() == "Rows 1 to 100 of 2,000"
    page.get_by_role("button", name="Next").click()
    assert rows.first.locator("td").first.inner_text() == "t0100"
    page.get_by_label("Search").fill("t1999")
    assert rows.count() == 1
    assert status.inner_text() == "Rows 1 to 1 of 1 found"
    page.get_by_label("Search").fill("nowhere")
    assert status.inner_text() == "No row has this."
    with page.expect_download() as started:
        page.get_by_role("button", name="Download as CSV").click()
    started.value.save_as(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        head, *lines = list(csv.reader(file))
    stored = pq.read_table(large.parent / "data" / "the_count.parquet").to_pylist()
    assert head == ["place", "answer, rows", "true from", "true to"]
    assert [(line[0], int(line[1])) for line in lines] == [
        (row["place"], row["answer"]) for row in stored
    ]
    link = page.locator(".rows .file a").get_attribute("href")
    assert (large.parent / link).is_file()
    page.close()


def test_the_tables_of_a_tabulation_are_searched(browser: Any, tmp_path: Path) -> None:
    lines = tuple(("hi", f"c{place % 30:02}", f"t{place:05}") for place in range(600))
    folder = folder_of(tmp_path / "public", spec_text(TABULATION), (lines,))
    (tmp_path / "report.html").write_text(page_of(folder), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    part = page.locator("details", has_text="tract: age").first
    part.locator("summary").click()
    assert part.get_by_role("status").inner_text() == "Rows 1 to 100 of 1,200"
    part.get_by_label("Search").fill("t00599")
    assert part.locator("tbody tr").count() == 2
    assert part.locator("tbody tr").first.locator("td").nth(1).inner_text() == "t00599"
    page.close()


def test_without_scripts_the_first_rows_are_there(browser: Any, large: Path, kinds: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(large.as_uri())
    assert page.locator(".rows tbody tr").count() == 200
    assert "1,800 more rows are in the file." in page.inner_text("main")
    page.goto(kinds.as_uri())
    assert page.locator('.rows[data-name="the_count"] tbody tr').count() == 2
    context.close()


def test_pages_print(browser: Any, pages: list[Path]) -> None:
    for path in pages:
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.pdf(format="A4").startswith(b"%PDF")
        page.close()
