"""The pages of the documentation do what they say: commands, Python and reference."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

import release
from release.spec.load import parse_models
from tests.conftest import PROJECT
from tests.docs import warm
from tests.docs.blocks import blocks

DOCS = PROJECT / "docs"
PAGES = (
    "index",
    "five-minutes",
    "tutorial",
    "census",
    "rounding",
    "counts",
    "auditors",
    "concepts",
    "contracts",
    "answers",
    "kinds",
    "reference/python",
    "operations",
)


@dataclass
class Command:
    """A command of a page, the status it ends with, and what of its output is shown."""

    text: str
    status: int
    shown: list[str] = field(default_factory=list)


def _commands(page: str) -> list[Command]:
    return _session("".join(blocks(page, "console")))


def _session(lines: str) -> list[Command]:
    found: list[Command] = []
    for line in lines.splitlines():
        if line.startswith("$ "):
            text, _, remark = line[2:].partition(" # ")
            status = re.search(r"exit status (\d+)", remark)
            found.append(Command(text.strip(), int(status[1]) if status else 0))
        elif line.strip():
            found[-1].shown.append(line)
    return found


def _programs(page: str) -> list[tuple[str, str | None]]:
    """The Python of a page, and what it prints where that stands right after it."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    pattern = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?"
    return [
        (code, shown or None) for code, shown in re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    ]


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The address of a process that is the command ``dp-release`` without its imports."""
    with warm.listening(tmp_path_factory.mktemp("listener")) as address:
        yield address


@pytest.fixture
def place(tmp_path: Path, laws_of_run: Path, listener: Path) -> Path:
    """A working folder such as the project's root, with ``dp-release`` on its path."""
    work = tmp_path / "work"
    for folder in ("data", "schemas", "docs/reference/example", "dp_release_verify"):
        shutil.copytree(PROJECT / folder, work / folder)
    warm.write_command(tmp_path / "bin", listener)
    (tmp_path / "cache").symlink_to(laws_of_run)
    return work


def _environment(place: Path) -> dict[str, str]:
    # Within a page laws are kept, as they are for whoever follows it.
    path = f"{place.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    own = {"DP_RELEASE_CACHE": str(place.parent / "cache")}
    # Without an address of a server, a flow starts one of its own, which keeps its database here.
    own["PREFECT_HOME"] = str(place.parent / "prefect")
    return {**os.environ, "PATH": path, **own}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_can_be_run(page: str, place: Path) -> None:
    environment = _environment(place)
    _run_as_shown(_commands(page), place)
    for program, shown in _programs(page):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert shown is None or done.stdout == shown


def _run_as_shown(commands: list[Command], place: Path) -> None:
    for command in commands:
        done = subprocess.run(
            ["/bin/sh", "-c", command.text],
            cwd=place,
            env=_environment(place),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == command.status, f"{command.text}: {done.stderr}"
        _is_printed(command, done.stdout + done.stderr)


def test_the_screens_of_the_commands_are_what_they_print(place: Path) -> None:
    text = (DOCS / "reference" / "example" / "commands.txt").read_text("utf-8")
    _run_as_shown(_session(re.sub(r"^# .+\n", "", text, flags=re.MULTILINE)), place)


def _is_printed(command: Command, output: str) -> None:
    """The shown lines are printed, in this order; … stands for anything."""
    printed = iter(output.splitlines())
    for line in command.shown:
        if line.strip() == "…":
            continue
        parts = map(re.escape, line.rstrip().split("…"))
        pattern = re.compile(".*".join(parts))
        assert any(pattern.fullmatch(one.rstrip()) for one in printed), f"{command.text}: {line}"


def test_pages_without_commands_are_few() -> None:
    # The Python of its reference is run elsewhere.
    assert [page for page in PAGES if not _commands(page)] == ["index", "reference/python"]


def _reference() -> Any:
    wanted = util.spec_from_file_location("docs_reference", DOCS / "reference.py")
    assert wanted is not None
    assert wanted.loader is not None
    module = util.module_from_spec(wanted)
    wanted.loader.exec_module(module)
    return module


def test_the_reference_is_what_schemas_and_commands_say() -> None:
    for name, text in _reference().pages().items():
        assert (DOCS / "reference" / name).read_text("utf-8") == text, "python docs/reference.py"


EXAMPLES = sorted(DOCS.glob("reference/example/*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.stem))
def test_the_examples_of_the_reference_can_be_released(example: Path, tmp_path: Path) -> None:
    published = release.run(example, tmp_path)
    assert release.verify(published.public, published.auditor, require="none").status == 0


def test_the_examples_of_the_reference_show_every_kind() -> None:
    queries = [query for path in EXAMPLES for query in parse_models(path.read_bytes()).queries]
    assert {type(query).__name__ for query in queries} == {
        name for name in _reference().objects_of("spec") if name.endswith("Query")
    }


def _pages_of(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from _pages_of(value)
    elif isinstance(nav, list):
        for value in nav:
            yield from _pages_of(value)


def test_the_site_names_all_pages_and_no_other() -> None:
    site = yaml.safe_load((PROJECT / "mkdocs.yml").read_text("utf-8"))
    named = sorted(_pages_of(site["nav"]))
    assert named == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize(
    "document", sorted(DOCS.glob("reference/**/*.md")), ids=lambda path: str(path.name)
)
def test_links_of_the_reference_lead_somewhere(document: Path) -> None:
    text = document.read_text("utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-")
        for one in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for file, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
        assert not file or (document.parent / file).exists(), file
        assert file or anchor in headings, anchor
