"""The report in a real browser: no serious finding of axe-core, nothing wider than the screen.

Needs the extra ``browser`` and a Chromium of the machine; skipped where there is none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from release.pipeline import run_release
from tests.conftest import PROJECT

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
    """Reports of both samples, a plan and a comparison."""
    from typer.testing import CliRunner

    from release.cli.main import app

    place = tmp_path_factory.mktemp("pages")
    found = [
        run_release(PROJECT / "data" / f"{name}.yaml", place / "out").public / "report.html"
        for name in ("ami", "persons")
    ]
    spec = str(PROJECT / "data" / "ami.yaml")
    for arguments in (["plan", spec], ["compare", spec, "heavy_evenings"]):
        page = place / f"{arguments[0]}.html"
        assert CliRunner().invoke(app, [*arguments, "--html", str(page)]).exit_code == 0
        found.append(page)
    return found


def test_axe_finds_nothing_serious_at_three_widths(browser: Any, pages: list[Path]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for path in pages:
        for width in (360, 768, 1280):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(path.as_uri())
            found = Axe().run(page).response["violations"]
            serious = [one["id"] for one in found if one["impact"] in {"serious", "critical"}]
            assert not serious, (path.name, width, serious)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()


def test_pages_print(browser: Any, pages: list[Path]) -> None:
    for path in pages:
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.pdf(format="A4").startswith(b"%PDF")
        page.close()
