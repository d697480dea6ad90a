"""The blocks of code that a page shows."""

from __future__ import annotations

import re

from tests.conftest import PROJECT


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page of ``docs/`` in one language, in their order."""
    text = (PROJECT / "docs" / f"{page}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
