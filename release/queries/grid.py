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

from release.queries.binned import Binned
from release.spec.domains import BinRange
from release.spec.expressions import identifier
from release.spec.model import BinnedQuery, GridQuery


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
