"""Hooks of the site: links to proofs become their names, and what is hidden takes no focus.

Sources are not on the site; in the repository ``[proofs/X.v](../../proofs/X.v)`` leads to one.
"""

from __future__ import annotations

import re
from typing import Any

_LINK = re.compile(r"\[(proofs/[\w./]+)\]\((?:\.\./)+proofs/[\w./]+\)")
_PALETTE = re.compile(r'(<input class="md-option" data-md-color-media="[^>]*) aria-hidden="true"')


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with names in place of links to proofs."""
    return _LINK.sub(r"\1", markdown)


def on_post_page(output: str, **_: Any) -> str:
    """The page, with the inputs of its palette out of reach of the keyboard."""
    # Material hides them from screen readers, and shows no switch for them.
    return _PALETTE.sub(r'\1 aria-hidden="true" tabindex="-1"', output)
