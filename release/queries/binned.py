"""sum, mean, min, max, median in bins: a statistic of a clamped integer column, quantised.

The code of x is clamp(floor((x - low)·L/(high - low)), 0, L-1), so code ≥ k exactly when x ≥
low + k·(high - low)/L: all that matters is how many of these thresholds x reaches.

- sum: the profile is the unit's sum. - mean: its sum and its number of rows; the mean is the exact
rational, so the threshold k is compared as sum·L ≥ rows·(low·L + k·(high - low)) in integers.
- min, max, median: the profile is, for each level k, the number of the unit's rows at or above k,
and its number of rows. At least one row at or above k: max. All: min. Enough that the middle row
(the lower of two) is at or above: median. An empty cell has code 0.

Global sensitivity. sum: a unit's sum lies between r·lo or 0 and r·hi or 0, for r rows at most.
Coming in it moves the sum that far, replaced it moves it from one end to the other; a change of D
moves at most ⌈D·L/(high - low)⌉ thresholds. The others: everything, because a cell may hold this
one unit only.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from release.exact.domain import AnswerDomain, Codes, level_edge
from release.queries.base import (
    Prepared,
    Profiles,
    SummedQuery,
    between,
    reached_by_order,
    reached_by_pairs,
    steps_between,
)
from release.spec.declarations import ColumnType, Pair, Relation
from release.spec.domains import INTEGER_LIMIT, BinRange, Bins, Grid, plain_answers
from release.spec.expressions import identifier
from release.spec.query import PlainQuery, bin_interval, bin_labels


def _as_codes(values: NDArray[Any]) -> Codes:
    return np.asarray(values, dtype=np.int64)


class Statistic(StrEnum):
    """The statistics of a column."""

    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"


class Noise(StrEnum):
    """Where noise is added: to the code of the quantised answer."""

    ON_ANSWER = "on_answer"


class StatisticQuery(PlainQuery, SummedQuery):
    """A statistic of a column, clamped row by row, quantised before noise is added."""

    kind: Literal["sum", "mean", "min", "max", "median"] = Field(description="the statistic")
    of: str = Field(description="the column of the numbers")
    noise: Noise = Field(default=Noise.ON_ANSWER, strict=False, description="where noise is added")

    @property
    def answers(self) -> AnswerDomain:
        """The bins, or the points of the grid, in order."""
        return plain_answers(self.domain)

    @property
    @abstractmethod
    def domain(self) -> Bins | Grid:
        """The bins or the grid as the possible answers."""

    def domain_record(self) -> dict[str, Any]:
        """As it stands in the spec."""
        return self.domain.model_dump(mode="json")

    @property
    def statistic(self) -> Statistic:
        """The statistic that ``kind`` names."""
        return Statistic(self.kind)


class BinnedQuery(StatisticQuery):
    """A statistic of an integer column, published as the bin in which it lies."""

    bins: BinRange = Field(description="the bins of the answers")
    clamp: Pair | None = Field(
        default=None,
        description="the lowest and highest value a row counts as; else the range of the bins",
    )

    @model_validator(mode="after")
    def _check(self) -> BinnedQuery:
        Bins(bins=self.bins)
        if self.clamp is None:
            if self.statistic is Statistic.SUM:
                raise ValueError("a sum needs clamp: [lo, hi], the bounds of one row")
        elif not -INTEGER_LIMIT <= self.clamp[0] < self.clamp[1] <= INTEGER_LIMIT:
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±(2^31 - 1)")
        return self

    @property
    def domain(self) -> Bins:
        """The bins as the possible answers."""
        return Bins(bins=self.bins)

    @property
    def row_bounds(self) -> tuple[int, int]:
        """The lowest and highest value a row counts as: ``clamp``, else the range of the bins."""
        if self.clamp is None:
            return self.bins.low, self.bins.high
        return self.clamp[0], self.clamp[1]

    def sums(self) -> Binned:
        """The way from the sums of a cell to its answer."""
        return Binned(self)

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.INTEGER)}

    def shown_labels(self) -> tuple[str, ...]:
        """From the least integer of each bin to the largest."""
        return bin_labels(self.answers)

    def shown_interval(self, first: int, last: int) -> tuple[str, str]:
        """From where the first bin begins to where the last one ends."""
        return bin_interval(self.answers, first, last)

    def edges(self) -> tuple[int, ...]:
        """The least integer of each bin, and the end of the last."""
        return (*map(int, self.answers.labels), self.bins.high)


_BY_ROWS = (Statistic.MIN, Statistic.MAX, Statistic.MEDIAN)


@dataclass(frozen=True)
class Binned:
    """The quantised measure of one query."""

    query: BinnedQuery

    @property
    def eligible_sql(self) -> str:
        """The row has a value."""
        return f"{identifier(self.query.of)} IS NOT NULL"

    @property
    def item_sql(self) -> str:
        """The level of the row where rows are counted by level, else the one sum."""
        if self.query.statistic not in _BY_ROWS:
            return "0"
        r = self.query.bins
        # Clamped before dividing, so that truncation is floor.
        inside = f"greatest(least({self.value_sql}, {r.high}), {r.low}) - ({r.low})"
        return f"least(CAST({inside} AS HUGEINT) * {r.count} // {r.high - r.low}, {r.count - 1})"

    @property
    def value_sql(self) -> str:
        """The value, clamped."""
        low, high = self.query.row_bounds
        return f"greatest(least({identifier(self.query.of)}, {high}), {low})"

    @property
    def unit_sql(self) -> str:
        """Their sum."""
        return 'sum("#value")'

    @property
    def items(self) -> int:
        """One for each level where rows are counted by level."""
        return self.query.bins.count if self.query.statistic in _BY_ROWS else 1

    @property
    def width(self) -> int:
        """One sum; a sum and a number of rows; or rows at or above each level (0: all rows)."""
        return {Statistic.SUM: 1, Statistic.MEAN: 2}.get(
            self.query.statistic, self.query.bins.count
        )

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """A profile as the module's docstring says, by measure."""
        if self.query.statistic in _BY_ROWS:
            profiles[unit, item] = rows
            np.cumsum(profiles[:, ::-1], axis=1, out=profiles[:, ::-1])
            return
        profiles[unit, 0] = total
        if self.query.statistic is Statistic.MEAN:
            profiles[unit, 1] = rows

    def decide(self, sums: Profiles) -> Codes:
        """The level of each row of sums."""
        measure = self.query.statistic
        if measure is Statistic.SUM:
            return _as_codes(np.searchsorted(self._edges, sums[:, 0], side="right"))
        if measure is Statistic.MEAN:
            return self._mean_codes(sums)
        rows = sums[:, 0]
        enough = {
            Statistic.MAX: np.ones_like(rows),
            Statistic.MIN: np.maximum(rows, 1),
            # The lower median is the row at place (rows-1)//2 from below: so many are not above it.
            Statistic.MEDIAN: np.maximum(rows - (rows - 1) // 2, 1),
        }[measure]
        return _as_codes((sums[:, 1:] >= enough[:, None]).sum(axis=1))

    @cached_property
    def _edges(self) -> Codes:
        """The least integer of each level but the first."""
        r = self.query.bins
        edges = [level_edge(r.low, r.high, r.count, code) for code in range(1, r.count)]
        return np.array(edges, dtype=np.int64)

    def _mean_codes(self, sums: Profiles) -> Codes:
        codes = np.zeros(len(sums), dtype=np.int64)
        for rows in np.unique(sums[:, 1]).tolist():
            if rows == 0:
                continue
            here = sums[:, 1] == rows
            codes[here] = np.searchsorted(self._mean_edges(rows), sums[here, 0], side="right")
        return codes

    def prepared(self, entering: Profiles) -> Prepared:
        """The sums, ascending; for a mean by number of rows; else the profiles."""
        if self.query.statistic is Statistic.SUM:
            return np.unique(entering[:, 0])
        if self.query.statistic is not Statistic.MEAN:
            return entering
        rows = np.unique(entering[:, 1]).tolist()
        return [(n, np.unique(entering[entering[:, 1] == n, 0])) for n in rows]

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By order for a sum; for a mean by order within each number of rows; else by pairs.

        The cost of a mean is that of a sum for each pair of row numbers: what is compared is the
        sum, with the edges of the new number of rows.
        """
        if self.query.statistic is Statistic.SUM:
            return reached_by_order(self._edges, int(sums[0]), leaving[:, 0], entering)
        if self.query.statistic is not Statistic.MEAN:
            return reached_by_pairs(self, sums, leaving, entering)
        found: set[int] = set()
        total, rows = sums.tolist()
        for fewer in np.unique(leaving[:, 1]).tolist():
            out = leaving[leaving[:, 1] == fewer, 0]
            for more, into in entering:
                left = rows - fewer + more
                if left == 0:
                    found.add(0)
                    continue
                found.update(reached_by_order(self._mean_edges(left), total, out, into).tolist())
        return np.array(sorted(found), dtype=np.int64)

    def _mean_edges(self, rows: int) -> Codes:
        """For each level but the first the least sum of ``rows`` rows whose mean reaches it."""
        r = self.query.bins
        # sum ≥ rows·(low + k·(high-low)/L), as the least integer sum; Python integers, exact.
        edges = [
            -(-rows * (r.low * r.count + code * (r.high - r.low)) // r.count)
            for code in range(1, r.count)
        ]
        return np.array(edges, dtype=np.int64)

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """All codes from those of the lowest rows that can come in to those of the highest.

        There are no gaps: sums go by ones, and rows may all lie at one place. Fewer rows reach
        less, or what no row at all reaches; only the sums of lowest rows above 0, or highest below,
        have to be looked at by the number of rows. Cost: |leaving|·(intervals of sums).
        """
        size = self.query.bins.count
        rest = np.unique(sums - leaving, axis=0)
        ends = [
            between(self.decide(rest + low), self.decide(rest + high), size)
            for low, high in self._incoming(rows)
        ]
        return np.unique(np.concatenate(ends))

    def _incoming(self, rows: int) -> list[tuple[Codes, Codes]]:
        """The lowest and highest profiles that can come in, for each interval of them."""
        low, high = self.query.row_bounds
        if self.query.statistic is Statistic.SUM:
            return [(np.array([a]), np.array([b])) for a, b in _spans(low, high, rows)]
        if self.query.statistic is Statistic.MEAN:
            many = (np.array([rows * low, rows]), np.array([rows * high, rows]))
        else:
            levels = np.arange(self.query.bins.count)
            many = (
                rows * (levels <= self._row_code(low)),
                rows * (levels <= self._row_code(high)),
            )
        nothing = np.zeros(self.width, dtype=np.int64)
        return [(nothing, nothing), many]

    def _row_code(self, value: int) -> int:
        r = self.query.bins
        return min(max((value - r.low) * r.count // (r.high - r.low), 0), r.count - 1)

    def steps(self, rows: int, relation: Relation) -> Codes:
        """For a sum the levels that a unit's range can span; everything for the others."""
        r = self.query.bins
        if self.query.statistic is not Statistic.SUM:
            return np.arange(r.count, dtype=np.int64)
        low, high = self.query.row_bounds
        least, most = rows * min(low, 0), rows * max(high, 0)
        if relation is not Relation.ADD_REMOVE:
            least, most = least - most, most - least
        down, up = (-(-distance * r.count // (r.high - r.low)) for distance in (-least, most))
        return steps_between(down, up, r.count)


@lru_cache
def _spans(low: int, high: int, rows: int) -> tuple[tuple[int, int], ...]:
    """What up to ``rows`` numbers from ``low`` to ``high`` can add up to, as intervals."""
    found = []
    start, stop = 0, 0
    for number in range(1, rows + 1):
        least, most = number * low, number * high
        if least > stop + 1 or most < start - 1:
            found.append((start, stop))
            start, stop = least, most
        else:
            start, stop = min(start, least), max(stop, most)
    return (*found, (start, stop))
