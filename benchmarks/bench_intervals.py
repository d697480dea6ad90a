"""Intervals of tables that add up, on the census of Hawaii: how often they cover, and how wide.

State, 5 counties and 461 tracts; six margins each (``census_tables``). The half widths are those of
``release.tabulations.estimate.intervals``. Errors are drawn: noise from the published distributions
on every measured cell, and least squares of it in floats, by a program of its own that knows
neither components nor types of areas. So what is counted here shares no code with the half widths.

For every table, over kinds of area and sorts of cell: the least coverage that is computed, the
least that is counted, how many standard errors a count lies from what is computed at most, the
greatest coverage that is computed for one step less (below 95 %), the coverage of ±1.96 standard
errors that is counted, least and mean, and the mean half width beside that.

Takes under two minutes; ``--draws 10000`` takes ten times as long.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from census_tables import (
    ALL_TABLES,
    CELLS,
    LEVELS,
    MARGINS,
    NAMES,
    PUBLISHED,
    SIZES,
    Floats,
    State,
    hawaii,
)

from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import RandomBytes
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.intervals import HalfWidths, half_widths
from release.tabulations.estimate.variances import variances
from release.tabulations.strategy.measured import Family
from release.tabulations.strategy.publication import Table
from release.tabulations.strategy.strategy import choose_strategy

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "census_pl94"
DELTA = Fraction(1, 10**6)
CASES: tuple[tuple[Fraction, Family], ...] = (
    (Fraction(1, 2), "geometric"),
    (Fraction(1), "geometric"),
    (Fraction(4), "geometric"),
    (Fraction(1), "gaussian"),
)
BATCH = 100
SUMS = tuple(
    coarsened(np.eye(CELLS.cells, dtype=np.int64), CELLS, margin).astype(float)
    for margin in MARGINS
)
"""Which of the 16 cells each cell of a margin adds up; (16, cells)."""


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Errors of the 16 cells of all areas, from noise; the tracts' 16 cells must be measured."""

    state: State
    noises: Mapping[Table, IntegerNoise]

    def draw(self, count: int, source: RandomBytes) -> list[Floats]:
        """The errors of each level; shapes (draws, areas, 16)."""
        areas, size = self.state.areas, CELLS.cells
        starts = [np.flatnonzero(np.diff(own, prepend=-1)) for own in areas.parents]
        estimates: list[Floats] = []
        covariances: list[Floats] = []
        sums: list[tuple[Floats, Floats]] = []
        for level in reversed(range(len(LEVELS))):
            shape = count, areas.size(level), size
            information, right = np.zeros((shape[1], size, size)), np.zeros(shape)
            if estimates:
                known = np.add.reduceat(estimates[0], starts[level + 1], axis=1)
                total = np.add.reduceat(covariances[0], starts[level + 1], axis=0)
                sums.insert(0, (known, total))
                information += np.linalg.inv(total)
                right += np.einsum("dai,aij->daj", known, information)
            for (own, margin), noise in self.noises.items():
                if own == level:
                    cells = MARGINS[margin].cells
                    drawn = noise.draw(count * shape[1] * cells, source)
                    precision = 1 / float(noise.moment(2))
                    values = drawn.reshape(count, shape[1], cells)
                    right += values @ SUMS[margin].T * precision
                    information += SUMS[margin] @ SUMS[margin].T * precision
            covariances.insert(0, np.asarray(np.linalg.inv(information), dtype=np.float64))
            estimates.insert(0, np.einsum("dai,aij->daj", right, covariances[0]))
        for level in range(1, len(LEVELS)):
            known, total = sums[level - 1]
            parents = areas.parents[level]
            surplus = (estimates[level - 1] - known)[:, parents]
            gains = np.linalg.solve(total[parents], covariances[level])
            estimates[level] = estimates[level] + np.einsum("dai,aij->daj", surplus, gains)
        return estimates


def compare(state: State, epsilon: Fraction, family: Family, draws: int, seed: int) -> float:
    """Print one strategy's coverage and widths; returns the least coverage that is counted."""
    choice = choose_strategy(state.publication, epsilon, DELTA, family)
    noises = choice.best.noises
    by_margin = {(level, MARGINS[margin]): noise for (level, margin), noise in noises.items()}
    start = time.process_time()
    widths = half_widths(state.areas, SIZES, by_margin, [], PUBLISHED)
    seconds = time.process_time() - start
    own = {table: noise.moment(2) for table, noise in by_margin.items()}
    known = variances(state.areas, SIZES, own, PUBLISHED)
    normal = [1.959964 * known[table].standard_errors() for table in PUBLISHED]
    inside = [(np.zeros(reach.shape), np.zeros(reach.shape)) for reach in normal]
    source = np.random.default_rng(seed).bytes
    program = LeastSquares(state, noises)
    for first in range(0, draws, BATCH):
        levels = program.draw(min(BATCH, draws - first), source)
        for place, (level, margin) in enumerate(ALL_TABLES):
            errors = np.abs(levels[level] @ SUMS[margin])
            # The sums of floats are off by some 10^-13, also where they are whole numbers.
            reaches = of_cells(widths[PUBLISHED[place]]), normal[place]
            for way, reach in enumerate(reaches):
                inside[place][way][:] += (errors <= reach + 1e-9).sum(axis=0)
    print(f"\nε = {epsilon}, {family}, {len(noises)} tables measured; {seconds:.2f} CPU s")
    print(
        f"  {'':20} {'computed':>8} {'counted':>8} {'off by':>7} {'narrower':>8} "
        f"{'±1.96 se: least':>15} {'mean':>7} {'width /':>8}"
    )
    least = 1.0
    for place, (level, margin) in enumerate(ALL_TABLES):
        name = f"{LEVELS[level]} {NAMES[margin]}"
        hits = [own / draws for own in inside[place]]
        least = min(least, show(name, widths[PUBLISHED[place]], hits, normal[place], draws))
    return least


def show(name: str, widths: HalfWidths, hits: list[Floats], normal: Floats, draws: int) -> float:
    """One line; returns the least coverage that is counted."""
    cells = [own for row in widths.values for own in row]
    counted, ordinary = (by_type(widths, own) for own in hits)
    computed = np.array([[own.coverage for own in row] for row in widths.values])
    numbers = by_type(widths, np.ones_like(normal), is_sum=True)
    # As if cells were independent: they nearly are, but for classes and areas that share a sum.
    scores = (counted - computed) / np.sqrt(computed * (1 - computed) / (draws * numbers))
    wider = (of_cells(widths) / normal).mean()
    print(
        f"  {name:20} {computed.min():8.4f} {counted.min():8.4f} {np.abs(scores).max():7.2f} "
        f"{max(own.narrower for own in cells):8.4f} {ordinary.min():15.4f} {hits[1].mean():7.4f} "
        f"{wider:7.3f}x",
        flush=True,
    )
    return float(counted.min())


def of_cells(widths: HalfWidths) -> Floats:
    """The half width of every cell; shape (areas, cells)."""
    values = np.array([[float(own.value) for own in row] for row in widths.values])
    return np.asarray(values[widths.kinds][:, widths.sorts])


def by_type(widths: HalfWidths, values: Floats, *, is_sum: bool = False) -> Floats:
    """Means or sums over the cells of each kind of area and sort of cell; (kinds, sorts)."""
    shape = len(widths.values), len(widths.values[0])
    numbers = np.add.outer(widths.kinds * shape[1], widths.sorts).reshape(-1)
    sums = np.bincount(numbers, values.reshape(-1), minlength=shape[0] * shape[1])
    counts = 1 if is_sum else np.bincount(numbers, minlength=shape[0] * shape[1])
    return np.asarray((sums / counts).reshape(shape))


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the census tables")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"the real table {given.data.name} is not beside the project: nothing is measured")
        return
    state = hawaii(given.data)
    print(f"Hawaii 2020: {state.cells:,} cells; {given.draws} draws, seed {given.seed}")
    for epsilon, family in CASES:
        least = compare(state, epsilon, family, given.draws, given.seed)
        print(f"  the least coverage counted is {least:.4f}", flush=True)


if __name__ == "__main__":
    main()
