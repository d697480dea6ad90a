"""What is found in a walk: failures, and figures that are pooled over all cases."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Something that must not be.

    Attributes:
        kind: a short signature, the same for all failures of a kind.
        line: what was seen.
    """

    kind: str
    line: str


@dataclass(frozen=True)
class Measure:
    """A figure of one table that is pooled over all cases.

    Attributes:
        of: what is measured.
        cells: over how many cells.
        found: what was found in them, added up.
        expected: what was to be expected.
        variance: of what is found, at most.
    """

    of: str
    cells: int
    found: float
    expected: float
    variance: float


def kind_of(text: str) -> str:
    """A message without what differs between cases."""
    text = re.sub(r"'[^']*'", "'…'", text)
    text = re.sub(r"/[\w./-]+", "PATH", text)
    text = re.sub(r"\b(q\d|part\d|both|own|largest)\b", "QUERY", text)
    text = re.sub(r"\d[\d.,/]*(e-?\d+)?", "#", text)
    text = re.sub(r"QUERY(, QUERY)+", "QUERY", text)
    return text[:150]
