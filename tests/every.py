"""How much of a long list of cases the tests take: a part, and with ``EVERY=1`` all of it."""

from __future__ import annotations

import os


def every(usual: int) -> int:
    """The step through a list of cases: ``usual``, or what the variable ``EVERY`` says."""
    return int(os.environ.get("EVERY", usual))


def some(all_of_them: int) -> int:
    """How many of so many random cases are tried: a quarter, or as ``EVERY`` says."""
    return max(1, all_of_them // every(4))
