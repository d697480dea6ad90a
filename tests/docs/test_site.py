"""The site as it is built: no warning, no link to nowhere, a text for every name of the package.

Needs the extra ``site``; skipped where it is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
import typer.core
from typer.main import get_command

import release
from release.cli.main import app
from tests.conftest import PROJECT
from tests.every import every


@dataclass
class Page(HTMLParser):
    """What a page links to or shows, its anchors, and its text from each anchor on."""

    links: list[str] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)
    anchor: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps links and anchors."""
        given = dict(attrs)
        self.links += [given[name] or "" for name in ("href", "src") if name in given]
        if identifier := given.get("id"):
            self.anchor = identifier
            self.anchors.setdefault(identifier, "")

    def handle_data(self, data: str) -> None:
        """Keeps the text."""
        if self.anchor:
            self.anchors[self.anchor] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the extra site is not installed")
    pytest.importorskip("mkdocstrings", reason="the extra site is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Page()
        found[path].feed(path.read_text("utf-8"))
    return found


def test_every_link_leads_somewhere_inside(site: Path, pages: dict[Path, Page]) -> None:
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto") or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            inside = target.is_relative_to(site.resolve()) and target.is_file()
            if not inside or (anchor and anchor not in pages[target].anchors):
                lost.append((path.name, link))
    assert lost == []


def test_a_page_loads_nothing_from_another_host(pages: dict[Path, Page]) -> None:
    outside = {
        urlsplit(link).hostname
        for page in pages.values()
        for link in page.links
        if link.endswith((".js", ".css", ".woff2", ".png", ".svg")) and "://" in link
    }
    assert outside == set()


def test_every_public_name_is_on_the_page_of_python(site: Path, pages: dict[Path, Page]) -> None:
    anchors = pages[site / "reference" / "python.html"].anchors
    for name in set(release.__all__) - {"__version__"}:
        value = getattr(release, name)
        place = f"{value.__module__}.{name}" if isinstance(value, type) else f"release.{name}"
        first = str(value.__doc__).splitlines()[0]
        # Markup takes the quotes of code away.
        words = first.replace("`", "").split()[:4]
        assert " ".join(words) in " ".join(anchors[place].split()), place


def test_every_command_has_a_page(site: Path, pages: dict[Path, Page]) -> None:
    folder = site / "reference" / "commands"
    root = get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    listed = pages[folder / "index.html"].links
    for name, command in root.commands.items():
        page = pages[folder / f"{name}.html"]
        assert f"dp-release {name}" in page.anchors[f"dp-release-{name}"], name
        assert f"{name}.html" in listed
        for below in getattr(command, "commands", {}):
            assert f"dp-release-{name}-{below}" in page.anchors, below


def test_the_first_page_is_the_shortest_way_to_a_release(
    site: Path, pages: dict[Path, Page]
) -> None:
    links = pages[site / "index.html"].links
    assert links.index("five-minutes.html") < links.index("tutorial.html")


WIDTHS = (360, 1280)
WIDE = ("index", "gallery/index", "reference/commands/run", "reference/python")
"""Each layout of a wide screen once: the navigation beside a page is that of all pages."""
MAIN = (
    *("index", "five-minutes", "tutorial", "journey", "census", "counts", "auditors", "answers"),
    *("kinds", "operations", "concepts", "glossary", "privacy", "contracts", "design/format"),
    *("design/architecture", "gallery/index", "reference/spec"),
    *("reference/commands/index", "reference/commands/run", "reference/commands/ledger"),
    *("reference/verdict", "reference/python"),
)
LONG = {"design/format"} if every(2) > 1 else set()
"""Text and tables as on other pages, of which axe reads for longer than of all commands."""


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_on_the_main_pages(width: int, site: Path) -> None:
    """No finding of any impact, and no page that is wider than the screen."""
    assert set(WIDE) < set(MAIN)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
    from axe_playwright_python.sync_playwright import Axe

    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in MAIN if width < max(WIDTHS) or not LONG else WIDE:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto((site / f"{name}.html").as_uri())
            if name not in LONG:
                violations = [each["id"] for each in Axe().run(page).response["violations"]]
                assert not violations, (name, width, violations)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            page.close()
        browser.close()
