"""The notebooks are what their sources are, and show what a run of them shows today."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.conftest import PROJECT

SOURCES: dict[str, Any] = runpy.run_path(str(PROJECT / "docs" / "notebooks.py"))
NAMES = ("steward", "analyst", "auditor")


def shown(notebook: Any) -> list[list[Any]]:
    """What each cell shows: text, and values as text and HTML."""
    cells = []
    for cell in notebook.cells:
        # What is printed comes in as many pieces as the kernel happens to send.
        printed = "".join(one.get("text", "") for one in cell.get("outputs", []))
        values = [dict(one["data"]) for one in cell.get("outputs", []) if "data" in one]
        cells.append([printed, *values])
    return cells


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_its_run_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laws_of_run: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("DP_RELEASE_CACHE", str(laws_of_run))
    path = PROJECT / "docs" / "notebooks" / f"{name}.ipynb"
    # nbformat declares no types for it.
    kept: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    made = SOURCES["made"](name)
    assert [cell.source for cell in kept.cells] == [cell.source for cell in made.cells]
    again = SOURCES["executed"](name, tmp_path)
    assert shown(again) == shown(kept)
    # Every program ran, in order, and few show nothing.
    programs = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in programs] == list(range(1, len(programs) + 1))
    assert sum(not cell.outputs for cell in programs) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_names_no_place_of_a_machine(name: str) -> None:
    text = (PROJECT / "docs" / "notebooks" / f"{name}.ipynb").read_text("utf-8")
    assert len(text) < 40_000
    assert re.findall(r"/(?:tmp|home|root|work|usr|Users)/[^\"\\ ]*", text) == []
