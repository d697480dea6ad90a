"""The drill book: every row names a test that is there, and every end has a row."""

from __future__ import annotations

import ast
import re

from release.operate.notices.notice import End
from tests.conftest import PROJECT

PAGE = (PROJECT / "docs" / "drills.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "::" in line]


def test_every_drill_names_a_test_that_is_there() -> None:
    named = [re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", row) for row in ROWS]
    assert all(len(tests) == 1 for tests in named)
    for ((path, name),) in named:
        tree = ast.parse((PROJECT / path).read_text("utf-8"))
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}, name


def test_every_end_that_people_are_told_of_has_a_drill() -> None:
    words = set(re.findall(r"\*([^*]+)\*", "\n".join(ROWS)))
    assert {end.value for end in End} == words
