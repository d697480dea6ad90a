"""Which tables can be estimated from others, whatever the noise on them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from release.exact.domain import Codes
from release.exact.tables.structure import Margin
from release.noise.tables.publication import Floats, Publication, Table


@dataclass(eq=False)
class Estimability:
    """What can be estimated in a publication, remembered from question to question.

    A table of a level follows from the tables measured at that level and below. Those above do not
    help, because the rest of what they contain is not known as well; but where every area above has
    one area of the level, both levels are the same.
    """

    publication: Publication
    _known: dict[tuple[int, frozenset[int]], bool] = field(default_factory=dict)

    def allows(self, measured: Iterable[Table]) -> bool:
        """Whether all published tables can be estimated."""
        return not self.missing(measured)

    def missing(self, measured: Iterable[Table]) -> list[Table]:
        """The published tables that cannot be estimated, in order."""
        areas = self.publication.areas
        known = {*measured, *self.publication.exact}
        missing = []
        for level, margin in sorted(self.publication.importance):
            at_least = areas.size(level)
            below = frozenset(m for at, m in known if areas.size(at) >= at_least)
            if not self._follows(margin, below):
                missing.append((level, margin))
        return missing

    def _follows(self, margin: int, others: frozenset[int]) -> bool:
        key = margin, others
        if key not in self._known:
            margins = self.publication.margins
            self._known[key] = follows(
                margins[margin], [margins[place] for place in sorted(others)]
            )
        return self._known[key]


def follows(margin: Margin, others: Iterable[Margin]) -> bool:
    """Whether the cells of ``margin`` are linear functions of the cells of ``others``."""
    others = list(others)
    if any(other.refines(margin) for other in others):
        return True
    if len(others) < 2:
        return False
    # Combinations of categories that no margin tells apart count as one.
    cells = np.stack([margin.cell_of, *(other.cell_of for other in others)])
    distinct = np.unique(cells, axis=1)
    known = np.concatenate([_indicators(row) for row in distinct[1:]])
    wanted = _indicators(distinct[0])
    # Weights are small rationals, so that a rest is nothing or not small.
    weights = np.linalg.lstsq(known.T, wanted.T, rcond=None)[0]
    return bool(np.abs(known.T @ weights - wanted.T).max() < 1e-6)


def _indicators(cells: Codes) -> Floats:
    """For each distinct cell, which entries are that cell."""
    return np.asarray(np.unique(cells)[:, None] == cells[None, :], dtype=np.float64)
