"""sum, mean on a grid: a clamped sum or mean of a column of real numbers.

The published answer is the grid point nearest to a sum or mean of integers. Each row is divided by
the grid's scale, rounded and clamped by itself; from there on the answer is a bin of doubled
integers. Answers, sums, sensitivity and its proof are those of :mod:`release.queries.kinds.binned`.

Rows without a number do not count (tables hold no NaN); infinite ones are clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from release.exact.numbers import format_exact
from release.queries.kinds.binned import Binned, BinnedQuery, StatisticQuery
from release.spec.declarations import ColumnType, Pair
from release.spec.domains import GRID_LIMIT, BinRange, Grid, GridRange
from release.spec.expressions import identifier


class GridQuery(StatisticQuery):
    """A sum or mean of a column of real numbers, rounded to a declared grid.

    Rows are rounded to whole units of the grid's ``scale`` before anything is added up, and
    ``clamp`` bounds them in these units: no float is summed or published.
    """

    kind: Literal["sum", "mean"] = Field(description="the statistic")
    grid: GridRange = Field(description="the points of the answers")
    clamp: Pair = Field(description="the lowest and highest value a row counts as, in whole scales")

    @model_validator(mode="after")
    def _check(self) -> GridQuery:
        Grid(grid=self.grid)
        if not -GRID_LIMIT <= self.clamp[0] < self.clamp[1] <= GRID_LIMIT:
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±2^29")
        return self

    @property
    def domain(self) -> Grid:
        """The grid as the possible answers."""
        return Grid(grid=self.grid)

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {"of": self.of, "clamp": self.clamp}

    def sums(self) -> OnGrid:
        """How its profiles become sums and answers."""
        return OnGrid.of(self)

    @property
    def bounded(self) -> tuple[str, int, int]:
        """The value in units of the scale, rounded, and its bounds."""
        return OnGrid.of(self).scaled_sql, self.clamp[0], self.clamp[1]

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.NUMBER)}

    def facts(self) -> dict[str, Any]:
        """By what to multiply a published integer, to have it in the column's unit of measure."""
        return {"scale_factor": format_exact(self.grid.scale)}


@dataclass(frozen=True)
class OnGrid(Binned):
    """The grid points of one query; ``query`` is the equal query in bins of doubled integers."""

    scale: Fraction
    unit = 2

    @classmethod
    def of(cls, query: GridQuery) -> OnGrid:
        """The sums of ``query``."""
        # Doubled, because the bin of point k begins half a step below it: in doubled units at
        # 2·low - step + 2·k·step, an integer. The bin is that of the nearest point.
        grid = query.grid
        doubled = BinRange(
            low=2 * grid.low - grid.step,
            high=2 * grid.high + grid.step,
            count=(grid.high - grid.low) // grid.step + 1,
        )
        binned = BinnedQuery(
            kind=query.kind,
            name=query.name,
            table=query.table,
            by=query.by,
            of=query.of,
            clamp=[2 * bound for bound in query.clamp],
            bins=doubled,
        )
        return cls(binned, grid.scale)

    @property
    def value_sql(self) -> str:
        """Twice the value in units of the scale, rounded and clamped."""
        # Rounded and clamped before anything is added: a sum of floats would depend on the order of
        # its rows. The bounds are halved, because those of ``query`` are doubled.
        low, high = self.query.row_bounds
        return f"2 * CAST(greatest(least({self.scaled_sql}, {high // 2}), {low // 2}) AS BIGINT)"

    @property
    def scaled_sql(self) -> str:
        """The value in units of the scale, rounded."""
        return f"round({identifier(self.query.of)} * {float(1 / self.scale)!r})"
