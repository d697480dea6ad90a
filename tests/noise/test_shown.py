"""What notebooks show: names, numbers and units, and nothing that a browser would run."""

from __future__ import annotations

from pathlib import Path

import release
from release.noise.shown import facts_html
from tests.small import Small, query

ROWS = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]


def test_what_comes_from_outside_is_escaped() -> None:
    shown = facts_html("<b>", {"<script>": "a & b"})
    assert "<script>" not in shown
    assert shown.startswith("<table><caption>&lt;b&gt;</caption>")
    assert "<th>&lt;script&gt;</th><td>a &amp; b</td>" in shown


def test_a_design_shows_its_guarantee_and_its_gap() -> None:
    design = release.design(24, "cyclic", sensitivity=[1], epsilon=1, loss="squared")
    shown = design._repr_html_()
    assert "<td>pure (ε = 1, δ = 0)</td>" in shown
    assert "<th>gap</th>" in shown
    # In a terminal: one line, in place of 24 weights and a fraction of 600 digits.
    assert repr(design).startswith("<design: mechanism modular, answers 24, guarantee pure (ε = 1")
    assert len(repr(design)) < 300


def test_a_release_and_its_tables_show_what_is_published(tmp_path: Path) -> None:
    asked = [query("count", sensitivity="global", title="<i>homes</i>", units="homes")]
    public = release.run(Small(ROWS, asked).write(tmp_path), tmp_path / "out").public
    opened = release.open(public)
    assert "<th>the_count</th><td>count, 2 cells</td>" in opened._repr_html_()
    shown = opened["the_count"]._repr_html_()
    assert "&lt;i&gt;homes&lt;/i&gt;" in shown
    assert "<i>" not in shown
    assert "<th>interval</th>" in shown
    estimates = release.estimate(public, "the_count")._repr_html_()
    # Sets of categories are not there for counts.
    assert "<th>credible</th>" not in estimates
    assert "<th>mode</th>" in estimates
