"""Every command that the README shows is run, and every link in the documents leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from tests import attempts
from tests.audit.draws import DRAWS
from tests.audit.leaks import LEAKS
from tests.conftest import PROJECT
from tests.planted.audited import NOT_FOUND, chosen
from tests.planted.errors import ERRORS, SeenBy
from tests.process import test_twin_run as twin_run

DOCUMENTS = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md"), PROJECT / "data/README.md"]


def test_the_readmes_commands_run_as_shown(tmp_path: Path, laws_of_run: Path) -> None:
    text = (PROJECT / "README.md").read_text("utf-8")
    commands = re.findall(
        r"^dp-release ((?:run|verify|check|key|ledger|plan|compare|doctor) .+?)(?: +#(.*))?$",
        text,
        re.MULTILINE,
    )
    assert len(commands) == 4
    for command, remark in commands:
        arguments = [
            str(tmp_path / word) if word.startswith("out") else word
            for word in shlex.split(command)
        ]
        done = subprocess.run(
            [sys.executable, "-m", "release", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=PROJECT,
            env={**os.environ, "DP_RELEASE_CACHE": str(laws_of_run)},
        )
        promised = re.search(r"exit status (\d)", remark or "")
        assert done.returncode == (int(promised[1]) if promised else 0), done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
        assert (document.parent / link).exists(), link


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    wanted = [*project["dependencies"], *extras]
    reasons = (PROJECT / "docs" / "dependencies.md").read_text("utf-8")
    pins = (PROJECT / "supply" / "python3.11.txt").read_text("utf-8")
    for requirement in wanted:
        name = re.split(r"[<>=\[]", requirement)[0].lower()
        assert name in reasons or name.startswith("types-"), name
        assert re.search(rf"^{re.escape(name)}==", pins, re.MULTILINE), name


def test_the_python_of_the_documentation_runs(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "mechanisms.md").read_text("utf-8")
    shown = []
    for program in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        shown.append(ran.stdout)
    assert len(shown) == 3
    assert shown[0].startswith("linear-program")


def test_the_page_shows_every_class_of_attempts() -> None:
    page = (PROJECT / "docs" / "verify.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    shown = {cells[0].removeprefix("| "): cells[1:] for cells in rows}
    findable = len(chosen()) - len(NOT_FOUND)
    # These are counted here; the others by what runs for minutes.
    files = sum(error.seen_by is SeenBy.FILES for error in ERRORS[::8])
    sample = len(range(0, findable, 19)) + len(range(0, len(LEAKS), 8))
    numbers = (files, sample, len(DRAWS[::3]), len(twin_run.LEAKS))
    places = (0, 1, 2, 5)
    counted = dict(zip((attempts.ROWS[place].text for place in places), numbers, strict=True))
    for text in (
        f"{len(chosen())} mistakes that make a guarantee false",
        f"it finds {findable}. Of the other {len(NOT_FOUND)},",
        f"it finds each of {len(LEAKS)} planted leaks.",
    ):
        assert text in " ".join(page.split())
    for row in attempts.ROWS:
        often, ending = shown[row.text]
        words = re.split(r"\{\w+\}", row.ending)
        assert all(word in ending for word in words), row.text
        number = int(often.replace(",", ""))
        assert number == counted.get(row.text, number)
        assert number >= 15 or row.text in counted
