"""Sums, differences, ratios and ranks of the true answers of several cells, with intervals.

Every interval holds the true value with probability ``level`` or more, whatever the true answers
are, unless its ``method`` says otherwise:

- ``noise``: of a sum or difference where noise was added and nothing was kept within ends, from the
  distribution of the summed noise;
- ``cells``: from intervals of all cells that hold at once with probability ``level``. As cells have
  independent noise, each has the level to the power of one over their number. What follows holds
  wherever they do, so all ranks hold at once too (Klein, Wright and Wieczorek 2020);
- ``normal``: of a sum of ten cells or more whose answers have ends: an unbiased sum and its
  standard error under a normal approximation, which holds ``level`` nearly. Where no unbiased sum
  exists, one of small bias, and the interval is wider by all the bias that there can be.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.analysis.intervals import (
    AddedNoise,
    CellNoise,
    ClampedNoise,
    MeanNoise,
    TableNoise,
    radius_of_sum,
)
from release.errors import DesignError, SpecError
from release.exact.numbers import safe_text

KeyValue: TypeAlias = str | int | datetime.date
Key: TypeAlias = tuple[KeyValue, ...] | KeyValue
"""The values of the key columns of a cell; of one column its value alone."""
Method: TypeAlias = Literal["noise", "cells", "normal"]
Floats = NDArray[np.float64]

_FEW = 10
"""Fewer cells are no case for a normal approximation."""


class Estimates(Protocol):
    """What is needed of :class:`release.analysis.estimation.Estimates`."""

    @property
    def cells(self) -> tuple[Any, ...]:
        """An estimate for each cell."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """The key columns."""
        ...

    @property
    def keys(self) -> tuple[tuple[Any, ...], ...]:
        """The key of each cell."""
        ...

    @property
    def noise(self) -> CellNoise | None:
        """The noise of the cells."""
        ...

    @property
    def unbiased(self) -> Floats | None:
        """The unbiased values."""
        ...

    def column(self, name: str) -> list[Any]:
        """One field of all estimates."""
        ...


@dataclass(frozen=True)
class Combined:
    """A value of several cells; ``low`` and ``high`` bound its interval, both included."""

    value: float
    low: float
    high: float
    level: float
    method: Method


def total_of(estimates: Estimates, keys: Sequence[Key] | None, level: float) -> Combined:
    """The sum of the true answers of the cells ``keys``; of all cells without.

    Raises:
        SpecError: no such cell, the level is wrong, or the answers are not numbers that add up.
    """
    places = list(range(len(estimates.cells))) if keys is None else _places(estimates, keys)
    return _weighted(estimates, places, [1] * len(places), level)


def difference_of(estimates: Estimates, first: Key, second: Key, level: float) -> Combined:
    """The true answer of the cell ``first`` less that of ``second``.

    Raises:
        SpecError: as :func:`total_of`.
    """
    return _weighted(estimates, _places(estimates, [first, second]), [1, -1], level)


def ratio_of(above: tuple[Estimates, Key], below: tuple[Estimates, Key], level: float) -> Combined:
    """The true answer of one cell over that of another, which may be of another query.

    ``high`` is infinite where the lower answer may be 0.

    Raises:
        SpecError: as :func:`total_of`.
        DesignError: the lower answer may be negative as well as positive.
    """
    own = _share(level, 2)
    ends = []
    for estimates, key in (above, below):
        (place,) = _places(estimates, [key])
        lows, highs = _cells(estimates, own)
        value = _values(estimates)[place]
        ends.append((float(value), float(lows[place]), float(highs[place])))
    (over, low_over, high_over), (under, low_under, high_under) = ends
    if low_under < 0:
        raise DesignError(
            "the interval of the lower answer holds numbers below 0, so the ratio has none; add "
            "cells up first"
        )
    value = over / under if under > 0 else math.inf
    # A quotient is least over the largest divisor, unless it is negative: then over the smallest.
    least = _quotient(low_over, high_under if low_over >= 0 else low_under)
    most = _quotient(high_over, low_under if high_over >= 0 else high_under)
    return Combined(value, least, most, level, "cells")


def _quotient(above: float, below: float) -> float:
    """One end of a ratio; over 0 anything may be reached, from 0 on."""
    if below:
        return above / below
    return math.copysign(math.inf, above) if above else 0.0


def ranks_of(estimates: Estimates, level: float) -> tuple[Combined, ...]:
    """The rank of each cell, 1 for the largest true answer; ties share the better rank.

    All intervals hold at once with probability ``level``.

    Raises:
        SpecError: as :func:`total_of`.
    """
    values = _values(estimates)
    low, high = _cells(estimates, _share(level, len(values)))
    ranks = []
    for place in range(len(values)):
        # Surely larger cells stand before it, surely not larger ones do not.
        before = int((low > high[place]).sum())
        behind = int((high <= low[place]).sum()) - int(high[place] <= low[place])
        rank = 1 + int((values > values[place]).sum())
        ranks.append(Combined(rank, 1 + before, len(values) - behind, level, "cells"))
    return tuple(ranks)


def _weighted(estimates: Estimates, places: list[int], signs: list[int], level: float) -> Combined:
    if isinstance(estimates.noise, MeanNoise) and set(signs) == {1}:
        raise SpecError("query", "means do not add up; add the noisy sums of the cells up instead")
    low, high = _cells(estimates, _share(level, len(places)))
    values = _values(estimates)[places]
    value = math.fsum((values * signs).tolist())
    noise = estimates.noise
    # The sum of independent noises has a distribution of its own, far narrower than the sum of
    # their intervals.
    if isinstance(noise, AddedNoise) and noise.noise.is_symmetric:
        reach = radius_of_sum(noise.noise, len(places), level)
        if reach is not None:
            radius: float = noise.step * reach
            return Combined(value, value - radius, value + radius, level, "noise")
    if estimates.unbiased is not None and len(places) >= _FEW:
        variances = estimates.column("variance")
        # Without bias a variance can come out negative, even a sum of few.
        variance = math.fsum(variances[place] or 0.0 for place in places)
        if variance > 0:
            radius = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance)
            return Combined(value, value - radius, value + radius, level, "normal")
    if isinstance(noise, TableNoise | ClampedNoise) and len(places) >= _FEW:
        nearly = _nearly_unbiased(noise, places, level)
        if nearly is not None:
            return nearly
    # Sorted, because a minus sign exchanges the ends.
    ends = np.sort(np.stack([low[places] * signs, high[places] * signs]), axis=0)
    return Combined(value, math.fsum(ends[0]), math.fsum(ends[1]), level, "cells")


def _nearly_unbiased(
    noise: TableNoise | ClampedNoise, places: list[int], level: float
) -> Combined | None:
    """The sum of values of small bias; None where there are none."""
    # A little of the level goes to the intervals of all cells, within which the bias is bounded.
    apart = (1 - level) / 20
    found = noise.summands(_share(1 - apart, len(places)))
    if found is None:
        return None
    value, least, most, variance = (
        math.fsum(part[places].tolist())
        for part in (found.values, found.least_bias, found.most_bias, found.variance)
    )
    radius = NormalDist().inv_cdf((1 + level + apart) / 2) * math.sqrt(variance)
    return Combined(value, value - most - radius, value - least + radius, level, "normal")


def _share(level: float, cells: int) -> float:
    """The level of each of so many independent intervals that all hold with ``level``."""
    # True is an integer to Python, and 1 is no level.
    if isinstance(level, bool) or not (isinstance(level, int | float) and 0 < level < 1):
        raise SpecError("level", f"found {safe_text(level)}; write a number above 0 and below 1")
    return float(level ** (1 / max(cells, 1)))


def _cells(estimates: Estimates, level: float) -> tuple[Floats, Floats]:
    if estimates.noise is None:
        raise SpecError(
            "query", "its answers are categories or go round a circle; they have no such numbers"
        )
    return estimates.noise.intervals(level)


def _values(estimates: Estimates) -> Floats:
    """Unbiased where that exists, else as published."""
    unbiased = estimates.unbiased
    if unbiased is not None:
        return unbiased
    return np.array(estimates.column("published"), dtype=np.float64)


def _places(estimates: Estimates, keys: Sequence[Key]) -> list[int]:
    # By their texts, so that 7 and "7" name one cell, and a day may be written.
    place_of = {tuple(map(str, key)): place for place, key in enumerate(estimates.keys)}
    places = []
    for key in keys:
        # One column may be named by its value alone, for which its letters would be taken.
        name = (str(key),) if type(key) is not tuple else tuple(map(str, key))
        if name not in place_of:
            columns = ", ".join(estimates.by) or "no columns"
            raise SpecError(
                "key", f"found {safe_text(key)}; write the values of {columns} of a cell"
            )
        places.append(place_of[name])
    if len(set(places)) < len(places):
        raise SpecError("key", "a cell is named twice; name each once")
    return places
