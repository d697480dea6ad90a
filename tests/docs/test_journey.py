"""The journey over real tables does what its page shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROJECT

JOURNEY: dict[str, Any] = runpy.run_path(str(PROJECT / "docs" / "journey.py"))
PAGE = (PROJECT / "docs" / "journey.md").read_text("utf-8")


def dateless(text: str) -> str:
    """Without the day of the run, which is not the day that the spec names."""
    return re.sub(r"published on \d{4}-\d{2}-\d{2}", "published on …", text)


def test_the_journey_prints_what_its_page_shows(
    lcl_halfhourly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laws_of_run: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("DP_RELEASE_CACHE", str(laws_of_run))
    again = JOURNEY["page"](JOURNEY["journey"](lcl_halfhourly, tmp_path))
    still = JOURNEY["without_draws"]
    assert dateless(still(again)) == dateless(still(PAGE))
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_only_the_digits_of_the_analyst_are_left_out_of_the_comparison() -> None:
    still = JOURNEY["without_draws"]
    screen = PAGE.partition("$ python chart.py\n")[2].partition("```")[0]
    answer = next(line for line in screen.splitlines() if "Affluent" in line)
    assert still(PAGE.replace(answer, answer.replace("Affluent", "Poor"))) != still(PAGE)
    assert still(PAGE.replace(answer, re.sub(r"\d+", "1", answer))) == still(PAGE)
    assert still(PAGE.replace("5,390,127 rows", "5,390,128 rows")) != still(PAGE)


def test_the_page_keeps_no_key_and_no_place_of_a_machine() -> None:
    assert re.findall(r"[0-9a-f]{64}|dp\+\w|/(?:tmp|home|root|work|usr|Users)/\S*", PAGE) == []
    for picture in ("chart", "report"):
        assert (PROJECT / "docs" / f"journey-{picture}.png").stat().st_size < 300_000
