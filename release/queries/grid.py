"""sum, mean on a grid: a clamped sum or mean of a column of real numbers.

What is published of a float is the nearest grid point of a sum or mean of integers: each row is
divided by the grid's scale, rounded and clamped by itself, so that everything from there on is a
level of doubled integers. Doubled, because level k of a grid begins half a step below its point,
at 2·low - step + 2·k·step. Answers, sums, differences and their proofs are those of
:mod:`release.queries.binned`.

Rows without a number do not count (tables hold no NaN); infinite ones are clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from release.exact.numbers import format_exact
from release.queries.binned import Binned, BinnedQuery, StatisticQuery
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

    def sums(self) -> OnGrid:
        """The way from the sums of a cell to its answer."""
        return OnGrid.of(self)

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.NUMBER)}

    def shown_labels(self) -> tuple[str, ...]:
        """The points, in the column's own unit."""
        points = (int(label) * self.grid.scale for label in self.answers.labels)
        return tuple(("-" if point < 0 else "") + format_exact(abs(point)) for point in points)

    def facts(self) -> dict[str, Any]:
        """The scale: the unit of the integers that are published."""
        return {"scale": format_exact(self.grid.scale)}


@dataclass(frozen=True)
class OnGrid(Binned):
    """The grid points of one query; ``query`` is the level of doubled integers that it is."""

    scale: Fraction

    @classmethod
    def of(cls, query: GridQuery) -> OnGrid:
        """The kind that answers ``query``."""
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
        low, high = (bound // 2 for bound in self.query.row_bounds)
        scaled = f"{identifier(self.query.of)} * {float(1 / self.scale)!r}"
        return f"2 * CAST(greatest(least(round({scaled}), {high}), {low}) AS BIGINT)"
