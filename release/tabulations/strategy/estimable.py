"""Which tables can be estimated from others, whatever the noise on them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.structure import Margin
from release.tabulations.strategy.publication import Floats, Publication, Table


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
        tables = {*measured, *self.publication.exact}
        missing = []
        for level, margin in sorted(self.publication.importance):
            at_least = areas.size(level)
            # By size, not by level: a level with as many areas as the one above repeats it.
            below = frozenset(m for at, m in tables if areas.size(at) >= at_least)
            if not self._follows(margin, below):
                missing.append((level, margin))
        return missing

    def _follows(self, margin: int, measured: frozenset[int]) -> bool:
        key = margin, measured
        if key not in self._known:
            margins = self.publication.margins
            sources = [margins[place] for place in sorted(measured)]
            self._known[key] = follows(margins[margin], sources)
        return self._known[key]


def follows(margin: Margin, measured: Iterable[Margin]) -> bool:
    """Whether the cells of ``margin`` are linear functions of the cells of ``measured``."""
    measured = list(measured)
    if any(source.refines(margin) for source in measured):
        return True
    # One margin alone determines the sums of its own cells and nothing else.
    if len(measured) < 2:
        return False
    # Combinations of categories that no margin tells apart count as one.
    cells = np.stack([margin.cell_of, *(source.cell_of for source in measured)])
    distinct = np.unique(cells, axis=1)
    sources = np.concatenate(list(map(_indicators, distinct[1:])))
    target = _indicators(distinct[0])
    # Weights are small rationals, so that a rest is nothing or not small.
    weights = np.linalg.lstsq(sources.T, target.T, rcond=None)[0]
    return bool(np.abs(sources.T @ weights - target.T).max() < 1e-6)


def _indicators(cells: Codes) -> Floats:
    """For each distinct cell, which entries are that cell."""
    return np.asarray(np.unique(cells)[:, None] == cells[None, :], dtype=np.float64)
