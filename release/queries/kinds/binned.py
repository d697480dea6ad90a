"""sum, mean, min, max, median in bins: a statistic of a clamped integer column, quantised.

The code of x is clamp(floor((x - low)·L/(high - low)), 0, L-1), so code ≥ k exactly when x ≥
low + k·(high - low)/L: all that matters is how many of these thresholds x reaches.

- sum: the profile is the unit's sum.
- mean: its sum and its number of rows. The mean is the exact rational, so the threshold k is
compared as sum·L ≥ rows·(low·L + k·(high - low)) in integers.
- min, max, median: the profile is, for each level k, the number of the unit's rows at or above k,
and its number of rows. The max reaches k if at least one row does, the min if all rows do, the
median if the middle row (the lower of two) does. An empty cell has code 0.

With noise on the statistic the sum of a cell is noised before it is quantised, and a mean is made
of two noisy sums (:mod:`release.exact.statistics.sums`): its number of rows counts as one at least,
so that an empty cell is near the middle of the clamp. A median is the bin of best rank, and so is
the ``rank``-th least or largest value; the very least or largest has no rank that one unit could
not change, and is refused.

Global sensitivity. sum: a unit's sum lies between min(r·lo, 0) and max(r·hi, 0), for r rows at
most. A unit that comes in moves the sum that far; a replaced one moves it from one end to the
other. A change of D moves at most ⌈D·L/(high - low)⌉ thresholds. The others: every difference,
because a cell may hold this one unit only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import ceil, gcd, log
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from release.errors import SpecError
from release.exact.domain import AnswerDomain, Codes, level_edge
from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Scores, Statistic, Sums
from release.queries.base import Prepared, Profiles
from release.queries.on_statistic import OnStatisticQuery
from release.queries.reached import between, reached_by_order, reached_by_pairs, steps_between
from release.queries.statistics import (
    doubled_unless_added,
    place_scores,
    place_spread,
    rank_scores,
    rank_spread,
)
from release.spec.declarations import ColumnType, Count, Pair, Privacy, Relation
from release.spec.domains import AMOUNT_LIMIT, BinRange, Bins, ColumnInteger, Grid, plain_answers
from release.spec.expressions import identifier
from release.spec.query import bin_texts, spoken


def _as_codes(values: NDArray[Any]) -> Codes:
    return np.asarray(values, dtype=np.int64)


class StatisticName(StrEnum):
    """The statistics of a column."""

    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"


_IN_WORDS = {
    StatisticName.SUM: "sum of the",
    StatisticName.MEAN: "mean of the",
    StatisticName.MIN: "least",
    StatisticName.MAX: "largest",
    StatisticName.MEDIAN: "median of the",
}


class StatisticQuery(OnStatisticQuery):
    """A statistic of a column, clamped row by row, and quantised."""

    kind: Literal["sum", "mean", "min", "max", "median"] = Field(description="the statistic")
    of: str = Field(description="the column of the numbers")

    @property
    def answers(self) -> AnswerDomain:
        """The bins, or the points of the grid, in order."""
        return plain_answers(self.domain)

    def question(self, units: str) -> str:
        """The statistic of the column."""
        return f"the {_IN_WORDS[self.named]} {spoken(self.of)}"

    @property
    @abstractmethod
    def domain(self) -> Bins | Grid:
        """The bins or the grid as the possible answers."""

    def domain_record(self) -> dict[str, Any]:
        """As it stands in the spec."""
        return self.domain.model_dump(mode="json")

    @property
    def named(self) -> StatisticName:
        """The statistic that ``kind`` names."""
        return StatisticName(self.kind)

    @property
    def has_distances(self) -> bool:
        """Statistics are of numbers."""
        return True

    @abstractmethod
    def sums(self) -> Binned:
        """How its profiles become sums and answers."""

    def statistic(self, rows: int, relation: Relation) -> Statistic:
        """The sums, or how near each bin is to the rank."""
        return self.sums().statistic(rows, relation)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """A median is one quantile."""
        return (_MIDDLE,) if self.named is StatisticName.MEDIAN else ()

    @property
    def sum_bounds(self) -> tuple[int, int]:
        """The lowest and highest value a row counts as in its sums."""
        binned = self.sums()
        low, high = binned.query.row_bounds
        return low // binned.unit, high // binned.unit

    @property
    def wording(self) -> Wording:
        """A median's score is of doubled ranks."""
        scale = _MIDDLE.denominator if self.named is StatisticName.MEDIAN else 1
        return replace(super().wording, scores_a_row=scale)

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The noisy sums, or the code of the bin that was selected."""
        if not self.is_on_statistic or self.named in _BY_ROWS:
            return ("answer_code",)
        return ("noisy_sum",) if self.named is StatisticName.SUM else ("noisy_above", "noisy_below")

    def answer_codes(self, outcomes: Codes) -> list[Codes]:
        """The bins of the noisy sums, or those selected."""
        if self.outcome_columns == ("answer_code",):
            return [outcomes[:, 0]]
        return [self.sums().quantised(outcomes)]


class BinnedQuery(StatisticQuery):
    """A statistic of an integer column, published as the bin in which it lies."""

    bins: BinRange = Field(description="the bins of the answers")
    clamp: Pair | None = Field(
        default=None,
        description="the lowest and highest value a row counts as; else the range of the bins",
    )
    values: list[ColumnInteger] | None = Field(
        default=None,
        min_length=2,
        max_length=100,
        description="of a `sum` with noise on the answer, in place of `clamp`: all that a row can "
        "count as, ascending; a row counts as the largest that is not above it, else as the first",
    )
    rank: Count | None = Field(
        default=None, description="of `min` and `max`: which row, 1 the least or largest"
    )

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """The very least or largest value is refused where noise is on the statistic."""
        super().check(at, privacy, keys)
        if self.named not in (StatisticName.MIN, StatisticName.MAX) or not self.is_on_statistic:
            return
        if self.rank is None:
            remedy = "rank: NUMBER"
            # With a share or a target ε is found later.
            if self.guarantee is not None:
                far = self.best_rank(self.max_rows_per_unit or privacy.max_rows_per_unit)
                remedy = f"best from the {far}th on: rank: {far}"
            raise SpecError(
                f"{at}.rank",
                f"missing; the very {'least' if self.kind == 'min' else 'largest'} value rests on "
                f"one unit, so its bin would be noise; ask for another, {remedy}, or write "
                "noise: on_answer",
            )

    def question(self, units: str) -> str:
        """The statistic of the column; a rank by its number."""
        if self.rank is None or self.rank == 1:
            return super().question(units)
        end = "least" if self.named is StatisticName.MIN else "largest"
        return f"number {self.rank} of the {spoken(self.of)}, from the {end} on"

    @property
    def wording(self) -> Wording:
        """A cell needs as many rows as the rank says."""
        if self.rank is None:
            return super().wording
        rows = "1 row" if self.rank == 1 else f"{self.rank} rows"
        return replace(super().wording, rank_condition=f"in a cell of {rows} or more ")

    def fields_on_statistic(self, rows: int) -> dict[str, Any]:
        """A rank, in place of the very least or largest value."""
        if self.named in (StatisticName.MIN, StatisticName.MAX):
            return {"rank": self.best_rank(rows)}
        return {}

    def best_rank(self, rows: int) -> int:
        """From which rank on a value can be told, where a unit has at most ``rows`` rows."""
        epsilon = float(self.claimed.epsilon) or 1.0
        # So far off, all candidates together are accepted as seldom as one wrong one nearby.
        return ceil(place_spread(rows) / epsilon * log(self.bins.count))

    @model_validator(mode="after")
    def _check(self) -> BinnedQuery:
        Bins(bins=self.bins)
        if self.rank is not None and (
            self.named not in (StatisticName.MIN, StatisticName.MAX) or not self.is_on_statistic
        ):
            raise ValueError("rank is for min and max with noise on the statistic; leave it out")
        if self.values is not None:
            self._check_values(self.values)
        if self.clamp is None:
            if self.named is StatisticName.SUM and self.values is None:
                raise ValueError("a sum needs clamp: [lo, hi], the bounds of one row")
        elif not -AMOUNT_LIMIT <= self.clamp[0] < self.clamp[1] <= AMOUNT_LIMIT:
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±(2^31 - 1)")
        elif self.named is not StatisticName.SUM and not (
            self.clamp[0] < self.bins.high and self.bins.low <= self.clamp[1]
        ):
            low, high = self.clamp
            raise ValueError(
                f"rows count as {low} to {high} (clamp), and no such value lies in the bins from "
                f"{self.bins.low} to {self.bins.high}; make them overlap"
            )
        return self

    def _check_values(self, values: Sequence[int]) -> None:
        if self.named is not StatisticName.SUM or self.clamp is not None or self.is_on_statistic:
            raise ValueError("values is for a sum with noise: on_answer, and in place of clamp")
        if any(before >= after for before, after in pairwise(values)):
            raise ValueError("values must be ascending, each once")

    @property
    def domain(self) -> Bins:
        """The bins as the possible answers."""
        return Bins(bins=self.bins)

    @property
    def row_bounds(self) -> tuple[int, int]:
        """The lowest and highest value a row counts as: ``clamp``, else the range of the bins."""
        if self.values is not None:
            return self.values[0], self.values[-1]
        if self.clamp is None:
            return self.bins.low, self.bins.high
        return self.clamp[0], self.clamp[1]

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        clamp = None if self.values is not None else list(self.row_bounds)
        return {"of": self.of, "clamp": clamp, "values": self.values, "rank": self.rank}

    def sums(self) -> Binned:
        """How its profiles become sums and answers."""
        return Binned(self)

    @property
    def bounded(self) -> tuple[str, int, int]:
        """The column, and the bounds of a row."""
        return identifier(self.of), *self.row_bounds

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.INTEGER)}

    def shown_answers(self, codes: Sequence[int]) -> list[str]:
        """From the least integer of each bin to the largest; of means from edge to edge."""
        return bin_texts(self.bins, codes, is_real=self.kind == "mean")

    @property
    def step_word(self) -> str:
        """Bins."""
        return "bins"

    def edges(self) -> tuple[int, ...]:
        """The least integer of each bin, and the end of the last."""
        return (*map(int, self.answers.labels), self.bins.high)


_BY_ROWS = (StatisticName.MIN, StatisticName.MAX, StatisticName.MEDIAN)
_MIDDLE = Fraction(1, 2)


@dataclass(frozen=True)
class Binned:
    """The quantised statistic of one query."""

    query: BinnedQuery

    unit_sql = 'sum("#value")'
    unit = 1
    """What an integer of the column is in the sums."""

    @property
    def eligible_sql(self) -> str:
        """The row has a value."""
        return f"{identifier(self.query.of)} IS NOT NULL"

    @property
    def item_sql(self) -> str:
        """The level of the row where rows are counted by level, else the one sum."""
        if self.query.named not in _BY_ROWS:
            return "0"
        r = self.query.bins
        # Clamped before the division: it then truncates what is not negative, which is floor.
        inside = f"greatest(least({self.value_sql}, {r.high}), {r.low}) - ({r.low})"
        return f"least(CAST({inside} AS HUGEINT) * {r.count} // {r.high - r.low}, {r.count - 1})"

    @property
    def value_sql(self) -> str:
        """The value, clamped; or the declared one that it counts as."""
        if self.query.values is not None:
            first, *above_first = self.query.values
            column = identifier(self.query.of)
            cases = [f"WHEN {column} >= {value} THEN {value}" for value in reversed(above_first)]
            return f"CASE {' '.join(cases)} ELSE {first} END"
        low, high = self.query.row_bounds
        return f"greatest(least({identifier(self.query.of)}, {high}), {low})"

    @property
    def items(self) -> int:
        """One for each level where rows are counted by level."""
        return self.query.bins.count if self.query.named in _BY_ROWS else 1

    @property
    def width(self) -> int:
        """One sum; a sum and a number of rows; or rows at or above each level (0: all rows)."""
        return {StatisticName.SUM: 1, StatisticName.MEAN: 2}.get(
            self.query.named, self.query.bins.count
        )

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """A profile as the module's docstring says, by statistic."""
        if self.query.named in _BY_ROWS:
            # Rows at or above a level: a running sum from the highest level down.
            profiles[unit, item] = rows
            np.cumsum(profiles[:, ::-1], axis=1, out=profiles[:, ::-1])
            return
        profiles[unit, 0] = total
        if self.query.named is StatisticName.MEAN:
            profiles[unit, 1] = rows

    def decide(self, sums: Profiles) -> Codes:
        """The level of each row of sums."""
        statistic = self.query.named
        if statistic is StatisticName.SUM:
            return _as_codes(np.searchsorted(self._edges, sums[:, 0], side="right"))
        if statistic is StatisticName.MEAN:
            return self._mean_codes(sums)
        rows = sums[:, 0]
        # At least 1 each: in an empty cell 0 rows would be enough for every level, not for none.
        enough = {
            StatisticName.MAX: np.ones_like(rows),
            StatisticName.MIN: np.maximum(rows, 1),
            # The lower median is the row at place (rows-1)//2 from below: so many are not above it.
            StatisticName.MEDIAN: np.maximum(rows - (rows - 1) // 2, 1),
        }[statistic]
        return _as_codes((sums[:, 1:] >= enough[:, None]).sum(axis=1))

    def statistic(self, rows: int, relation: Relation) -> Statistic:
        """As :meth:`StatisticQuery.statistic`."""
        query, bins = self.query, self.query.bins.count
        if query.named is StatisticName.MEDIAN:
            spread = rank_spread(_MIDDLE, rows, relation)
            return Scores(bins, spread, lambda sums: rank_scores(*ranks_of(sums), _MIDDLE))
        if query.named in _BY_ROWS:
            return Scores(bins, place_spread(rows), self._place_scores)
        low, high = (bound // self.unit for bound in query.row_bounds)
        if query.named is StatisticName.MEAN:
            spread = doubled_unless_added(rows * (high - low), relation)
            return Sums(2, spread, self._above_and_below)
        down, up = rows * min(low, 0), rows * max(high, 0)
        spread = max(-down, up) if relation is Relation.ADD_REMOVE else up - down
        return Sums(1, spread, lambda sums: sums // self.unit)

    def _place_scores(self, sums: Profiles) -> Codes:
        below, at = ranks_of(sums)
        if self.query.named is StatisticName.MAX:
            below = sums[:, :1] - below - at
        return place_scores(below, at, self.query.rank or 1)

    def _above_and_below(self, sums: Profiles) -> Codes:
        """How far the rows lie above the lowest value together, and below the highest."""
        low, high = self.query.row_bounds
        total, rows = sums[:, 0], sums[:, 1]
        return np.stack([total - low * rows, high * rows - total], axis=1) // self.unit

    def quantised(self, outcomes: Codes) -> Codes:
        """The codes of noisy sums, or of the means that two noisy sums make."""
        noisy = outcomes.astype(object) * self.unit
        r = self.query.bins
        if self.query.named is StatisticName.SUM:
            over, under = noisy[:, 0], 1
        else:
            # (low + high)/2 + (high - low)·(A - B)/(2·max(A + B, high - low)), over one fraction.
            low, high = self.query.row_bounds
            count = 2 * np.maximum(noisy.sum(axis=1), high - low)
            over = count * (low + high) // 2 + (high - low) * (noisy[:, 0] - noisy[:, 1])
            over, under = np.minimum(np.maximum(over, count * low), count * high), count
        codes = (over - under * r.low) * r.count // (under * (r.high - r.low))
        return _as_codes(np.clip(codes, 0, r.count - 1))

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
        if self.query.named is StatisticName.SUM:
            return np.unique(entering[:, 0])
        if self.query.named is not StatisticName.MEAN:
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
        if self.query.named is StatisticName.SUM:
            return reached_by_order(self._edges, int(sums[0]), leaving[:, 0], entering)
        if self.query.named is not StatisticName.MEAN:
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
        if self.query.named is StatisticName.SUM:
            spans = np.array(_spans(low, high, rows), dtype=np.int64)
            return list(zip(spans[:, :1], spans[:, 1:], strict=True))
        if self.query.named is StatisticName.MEAN:
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
        if self.query.named is not StatisticName.SUM:
            return np.arange(r.count, dtype=np.int64)
        low, high = self.query.row_bounds
        least, most = rows * min(low, 0), rows * max(high, 0)
        if relation is not Relation.ADD_REMOVE:
            least, most = least - most, most - least
        # Rounded up: a change of less than a level can still cross the threshold in its way.
        down, up = -(least * r.count // (r.high - r.low)), -(-most * r.count // (r.high - r.low))
        steps = steps_between(down, up, r.count)
        return _as_codes(steps[steps % self._spacing() == 0])

    def _spacing(self) -> int:
        """The number of which every step of the answer is a multiple, by the declared values."""
        r = self.query.bins
        width, rest = divmod(r.high - r.low, r.count)
        common = gcd(*(self.query.values or (1,)))
        if rest or common % width:
            return 1
        # Sums are multiples of ``common``, and their codes ``spacing`` apart. Clamping leaves them
        # so where both ends are such codes.
        spacing = common // width
        ends = (-r.low // width, r.count - 1 + r.low // width)
        return spacing if r.low % width == 0 and not any(e % spacing for e in ends) else 1


def ranks_of(sums: Profiles) -> tuple[Codes, Codes]:
    """The rows below each bin, and in it, from those in or above each."""
    beyond = np.concatenate([sums[:, 1:], np.zeros_like(sums[:, :1])], axis=1)
    return sums[:, :1] - sums, sums - beyond


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
