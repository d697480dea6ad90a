"""sum, mean, min, max, median in bins: a statistic of a clamped integer column, quantised.

The code of x is clamp(floor((x - low)·L/(high - low)), 0, L-1), so code ≥ k exactly when x ≥
low + k·(high - low)/L: all that matters is how many of these thresholds x reaches.

- sum: the profile is the unit's sum.
- mean: its sum and its number of rows. The mean is the exact rational, so the threshold k is
compared as sum·L ≥ rows·(low·L + k·(high - low)) in integers.
- min, max, median: the profile is, for each level k, the number of the unit's rows at or above k,
and its number of rows. The max reaches k if at least one row does, the min if all rows do, the
median if the middle row (the lower of two) does. An empty cell has code 0.

Global sensitivity. sum: a unit's sum lies between min(r·lo, 0) and max(r·hi, 0), for r rows at
most. A unit that comes in moves the sum that far; a replaced one moves it from one end to the
other. A change of D moves at most ⌈D·L/(high - low)⌉ thresholds. The others: every difference,
because a cell may hold this one unit only.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache, partial
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
        """How its profiles become sums and answers."""
        return Binned(self)

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.INTEGER)}

    def shown_labels(self) -> tuple[str, ...]:
        """From the least integer of each bin to the largest."""
        return bin_labels(self.answers)

    @property
    def step_word(self) -> str:
        """Bins."""
        return "bins"

    def shown_interval(self, first: int, last: int) -> tuple[str, str]:
        """From where the first bin begins to where the last one ends."""
        return bin_interval(self.answers, first, last)

    def edges(self) -> tuple[int, ...]:
        """The least integer of each bin, and the end of the last."""
        return (*map(int, self.answers.labels), self.bins.high)


_BY_ROWS = (Statistic.MIN, Statistic.MAX, Statistic.MEDIAN)


@dataclass(frozen=True)
class Binned:
    """The quantised statistic of one query."""

    query: BinnedQuery

    unit_sql = 'sum("#value")'

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
        # Clamped before the division: it then truncates what is not negative, which is floor.
        inside = f"greatest(least({self.value_sql}, {r.high}), {r.low}) - ({r.low})"
        return f"least(CAST({inside} AS HUGEINT) * {r.count} // {r.high - r.low}, {r.count - 1})"

    @property
    def value_sql(self) -> str:
        """The value, clamped."""
        low, high = self.query.row_bounds
        return f"greatest(least({identifier(self.query.of)}, {high}), {low})"

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
        """A profile as the module's docstring says, by statistic."""
        if self.query.statistic in _BY_ROWS:
            # Rows at or above a level: a running sum from the highest level down.
            profiles[unit, item] = rows
            np.cumsum(profiles[:, ::-1], axis=1, out=profiles[:, ::-1])
            return
        profiles[unit, 0] = total
        if self.query.statistic is Statistic.MEAN:
            profiles[unit, 1] = rows

    def decide(self, sums: Profiles) -> Codes:
        """The level of each row of sums."""
        statistic = self.query.statistic
        if statistic is Statistic.SUM:
            return _as_codes(np.searchsorted(self._edges, sums[:, 0], side="right"))
        if statistic is Statistic.MEAN:
            return self._mean_codes(sums)
        rows = sums[:, 0]
        # At least 1 each: in an empty cell 0 rows would be enough for every level, not for none.
        enough = {
            Statistic.MAX: np.ones_like(rows),
            Statistic.MIN: np.maximum(rows, 1),
            # The lower median is the row at place (rows-1)//2 from below: so many are not above it.
            Statistic.MEDIAN: np.maximum(rows - (rows - 1) // 2, 1),
        }[statistic]
        return _as_codes((sums[:, 1:] >= enough[:, None]).sum(axis=1))

    @cached_property
    def _edges(self) -> Codes:
        """The least integer of each level but the first."""
        r = self.query.bins
        edges = map(partial(level_edge, r.low, r.high, r.count), range(1, r.count))
        return np.array(list(edges), dtype=np.int64)

    def _mean_codes(self, sums: Profiles) -> Codes:
        codes = np.zeros(len(sums), dtype=np.int64)
        for rows in np.unique(sums[:, 1]).tolist():
            # A cell without rows has no mean, and keeps code 0.
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
        by_rows = []
        for rows in np.unique(entering[:, 1]).tolist():
            by_rows.append((rows, np.unique(entering[entering[:, 1] == rows, 0])))
        return by_rows

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By order for a sum; for a mean by order within each number of rows; else by pairs.

        A mean costs as much as a sum for each pair of row numbers: its sum is compared with the
        edges of the new number of rows.
        """
        if self.query.statistic is Statistic.SUM:
            return reached_by_order(self._edges, int(sums[0]), leaving[:, 0], entering)
        if self.query.statistic is not Statistic.MEAN:
            return reached_by_pairs(self, sums, leaving, entering)
        codes: set[int] = set()
        total, rows = sums.tolist()
        for fewer in np.unique(leaving[:, 1]).tolist():
            out = leaving[leaving[:, 1] == fewer, 0]
            for more, into in entering:
                changed = rows - fewer + more
                if changed == 0:
                    # Every threshold would be 0 ≥ 0; an empty cell has code 0 instead.
                    codes.add(0)
                    continue
                edges = self._mean_edges(changed)
                codes.update(reached_by_order(edges, total, out, into).tolist())
        return np.array(sorted(codes), dtype=np.int64)

    def _mean_edges(self, rows: int) -> Codes:
        """For each level but the first the least sum of ``rows`` rows whose mean reaches it."""
        r = self.query.bins
        # sum ≥ rows·(low + k·(high-low)/L), as the least integer sum, rounded up: -(-a // b).
        # Python integers, because the product may pass 2^63 before it is divided.
        edges = []
        for code in range(1, r.count):
            scaled = rows * (r.low * r.count + code * (r.high - r.low))
            edges.append(-(-scaled // r.count))
        return np.array(edges, dtype=np.int64)

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """All codes from those of the lowest rows that can come in to those of the highest.

        Cost: |leaving|·(intervals of sums).
        """
        # No code in between is left out: sums go by ones, and rows may all have the same value.
        # Fewer rows reach no code that most rows, or no row at all, do not. Sums are the exception
        # where 0 lies outside the bounds of a row, hence one interval for each number of rows.
        rest = np.unique(sums - leaving, axis=0)
        intervals = []
        for low, high in self._incoming(rows):
            lowest, highest = self.decide(rest + low), self.decide(rest + high)
            intervals.append(between(lowest, highest, self.query.bins.count))
        return np.unique(np.concatenate(intervals))

    def _incoming(self, rows: int) -> list[tuple[Codes, Codes]]:
        """The lowest and highest profiles that can come in, for each interval of them."""
        low, high = self.query.row_bounds
        if self.query.statistic is Statistic.SUM:
            spans = np.array(_spans(low, high, rows), dtype=np.int64)
            return list(zip(spans[:, :1], spans[:, 1:], strict=True))
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
        """For a sum the levels that a unit's range can span; every step for the others."""
        r = self.query.bins
        if self.query.statistic is not Statistic.SUM:
            return np.arange(r.count, dtype=np.int64)
        low, high = self.query.row_bounds
        least, most = rows * min(low, 0), rows * max(high, 0)
        if relation is not Relation.ADD_REMOVE:
            least, most = least - most, most - least
        # Rounded up: a change of less than a level can still cross the threshold in its way.
        down, up = -(least * r.count // (r.high - r.low)), -(-most * r.count // (r.high - r.low))
        return steps_between(down, up, r.count)


@lru_cache
def _spans(low: int, high: int, rows: int) -> tuple[tuple[int, int], ...]:
    """What up to ``rows`` numbers from ``low`` to ``high`` can add up to, as intervals."""
    spans = []
    start, stop = 0, 0
    for number in range(1, rows + 1):
        least, most = number * low, number * high
        # Integer intervals that touch are one; a gap stays where 0 lies outside the bounds.
        if least > stop + 1 or most < start - 1:
            spans.append((start, stop))
            start, stop = least, most
        else:
            start, stop = min(start, least), max(stop, most)
    return (*spans, (start, stop))
