"""Tables that add up beside its rivals, on the census of Hawaii: mean absolute errors.

State, 5 counties and 461 tracts; six margins each (``census_tables``); neighbors add or remove a
person. Every error is the mean over the cells of a table, then over the 18 tables, then over draws
of noise from the published distributions; ± is its standard error. "tract totals" is the error of
that one table. CPU seconds are those of one draw, with noise, estimates and whole numbers, on one
core. "/ ours" compares whole numbers with our whole numbers, and all else with our least squares.
Beside ours, at the same ε:

* one law per query: ε split evenly over the 18 tables, geometric noise clamped at 0;
* an even split with our estimate;
* the Census Bureau's way (``topdown``), with δ = 10⁻⁶, its ρ split evenly or by our convex program;
* OpenDP's geometric noise (pure) and its Gaussian noise (δ = 10⁻⁶), a measurement for each table,
  composed by its own combinators, clamped at 0. Its estimator for tables that add up asks for a
  tree whose areas all have the same number of areas below, and for one table a level: it does not
  serve here.

Then a made state of 20 million persons in 14,000 districts: the strategy, and the estimate with
variances, whole numbers and their check, in a process of its own for its peak memory.

Takes about two minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    by_margin,
    hawaii,
    made_state,
)
from table_ways import DELTA, Way, own_ways, rivals

from release.exact.sampling import RandomBytes
from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.estimate.variances import variances
from release.tabulations.estimate.whole import check_adds_up, targets_of, whole_tables
from release.tabulations.strategy.strategy import Choice, choose_strategy

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "census_pl94"
SLOW_DRAWS = 20
"""OpenDP draws at most as often: a draw of its noise takes longer than all of our estimate."""

TRACT_TOTALS = (2, 0)


@dataclass(frozen=True)
class Targets:
    """The most that ours may have: the objective, and the errors before and after rounding."""

    objective: float
    unrounded: float
    rounded: float


TARGETS = {
    Fraction(1, 2): Targets(16.00, 12.6, 12.1),
    Fraction(1): Targets(7.974, 6.3, 6.1),
    Fraction(4): Targets(1.766, 1.31, 1.28),
}


@dataclass(eq=False)
class Result:
    """The errors of all draws, each of shape (levels, margins), and the CPU seconds."""

    errors: list[Floats] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def by_table(self) -> Floats:
        """The mean over draws; shape (levels, margins)."""
        return np.asarray(np.mean(self.errors, axis=0))

    @property
    def mean(self) -> float:
        """The mean over draws and tables."""
        return float(self.by_table.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 for a single draw, which shows none."""
        means = np.mean(self.errors, axis=(1, 2))
        return float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else 0.0


def measure(state: State, way: Way, draws: int, source: RandomBytes) -> dict[str, Result]:
    """The results of a way by name; the time of what follows includes that of what comes first."""
    results: dict[str, Result] = {}
    for _ in range(draws):
        spent, start = 0.0, time.process_time()
        for name, tables in way(source):
            spent += time.process_time() - start
            result = results.setdefault(name, Result())
            result.errors.append(state.errors(tables))
            result.seconds += spent / draws
            start = time.process_time()
    return results


def show_strategy(choice: Choice, target: Targets, seconds: float) -> None:
    """The objectives, and which tables are measured."""
    geometric, gaussian = choice.geometric, choice.gaussian
    if geometric is None or gaussian is None:
        raise ValueError("this budget has noise of both families")
    ratio = geometric.objective / target.objective
    print(
        f"  objective (mean root variance): geometric {geometric.objective:.3f}, "
        f"{ratio:.4f} of {target.objective:.5g}: {verdict(ratio, 1.01)}; "
        f"Gaussian {gaussian.objective:.3f}, gap {gaussian.gap:.1e}, "
        f"ε {float(gaussian.epsilon):.6f}; {seconds:.1f} CPU s for both"
    )
    for (level, margin), cost in geometric.costs.items():
        name = f"{LEVELS[level]} {NAMES[margin]}"
        print(f"    measured: {name:18} ε {float(cost):.5f}")


def verdict(value: float, most: float) -> str:
    """Whether a figure keeps its target."""
    return f"at most {most:g}: {'holds' if value <= most else 'MISSED'}"


def compare(
    state: State, epsilon: Fraction, draws: int, source: RandomBytes, *, is_alone: bool
) -> None:
    """Print all ways at one ε, the targets, and the errors by table."""
    start = time.process_time()
    choice = choose_strategy(state.publication, epsilon, DELTA)
    target = TARGETS[epsilon]
    print(f"\nε = {epsilon}")
    show_strategy(choice, target, time.process_time() - start)
    results = {}
    compared = own_ways(state, choice)
    if not is_alone:
        compared |= rivals(state, epsilon)
    for name, way in compared.items():
        times = min(draws, SLOW_DRAWS) if "OpenDP" in name else draws
        for variant, result in measure(state, way, times, source).items():
            results[f"{name}: {variant}"] = result
    unrounded, rounded, *_ = results.values()
    print(
        f"  {'':57} {'draws':>5} {'error':>7} {'±':>6} {'/ ours':>7} {'tract totals':>12} "
        f"{'CPU s':>6}"
    )
    for name, result in results.items():
        ours = rounded if "whole" in name else unrounded
        totals = result.by_table[TRACT_TOTALS]
        print(
            f"  {name:57} {len(result.errors):5d} {result.mean:7.3f} {result.standard_error:6.3f} "
            f"{result.mean / ours.mean:6.2f}x {totals:12.2f} {result.seconds:6.3f}",
            flush=True,
        )
    kept = rounded.by_table[TRACT_TOTALS] / unrounded.by_table[TRACT_TOTALS]
    print(f"  unrounded {unrounded.mean:.3f}, {verdict(unrounded.mean, target.unrounded)}")
    print(f"  whole numbers {rounded.mean:.3f}, {verdict(rounded.mean, target.rounded)}")
    print(f"  tract totals, whole over unrounded {kept:.4f}, {verdict(kept, 1.02)}")
    show_tables(results)


def show_tables(results: Mapping[str, Result]) -> None:
    """The errors of each level and margin, ours and the Census Bureau's."""
    print(f"    {'':16}" + "".join(f"{name:>11}" for name in NAMES))
    for name in (
        "ours, geometric (pure): least squares",
        "ours, geometric (pure): whole numbers",
        "(c) Census's way, even: whole numbers",
    ):
        if name not in results:
            continue
        print(f"    {name}")
        for level, errors in zip(LEVELS, results[name].by_table, strict=True):
            print(f"    {level:16}" + "".join(f"{error:11.2f}" for error in errors))


def estimate_large(persons: int, districts: int) -> None:
    """Print the CPU seconds of each step of the estimate, and the peak memory of the process."""
    state = made_state(persons, districts, counties=64, seed=22)
    sizes = ", ".join(str(state.areas.size(level)) for level in range(3))
    forgetpeak()
    print(
        f"\nA made state: {state.persons:,} persons, areas {sizes}, {state.cells:,} published "
        f"cells, ε = 1; {peak():.0f} MiB before the first step"
    )
    clock = Clock()
    choice = choose_strategy(state.publication, Fraction(1), DELTA)
    best = choice.best
    clock.show(f"strategy ({best.family}, {len(best.noises)} tables, {best.objective:.3f})")
    measurements = {}
    for (level, margin), values in state.measured(best.noises, _seeded(22)).items():
        noise = best.noises[level, margin]
        measurements[level, MARGINS[margin]] = Measurement(values, noise.moment(2))
    clock.show("noise")
    estimated = estimates(state.areas, SIZES, measurements, PUBLISHED)
    tables = [estimated.table(level, margin) for level, margin in PUBLISHED]
    clock.show(f"least squares, all {len(tables)} tables")
    measured = {table: own.variance for table, own in measurements.items()}
    own = variances(state.areas, SIZES, measured, PUBLISHED)
    errors = [table.standard_errors() for table in own.values()]
    clock.show(f"variances of {sum(table.size for table in errors):,} cells")
    targets = targets_of(estimated, [MARGINS] * 3)
    levels = whole_tables(state.areas, targets)
    clock.show("whole numbers")
    check_adds_up(state.areas, [CELLS] * 3, [level.counts for level in levels])
    clock.show("check that they add up")
    clock.show_sum()
    unrounded = state.errors(by_margin([target.estimates / MILLION for target in targets]))
    rounded = state.errors(by_margin([level.counts for level in levels]))
    print(f"  errors of this draw: {unrounded.mean():.3f} unrounded, {rounded.mean():.3f} whole")


class Clock:
    """CPU seconds and peak memory, step by step."""

    def __init__(self) -> None:
        self._start = self._last = time.process_time()

    def show(self, step: str) -> None:
        """Print the step that has just ended."""
        now = time.process_time()
        print(f"  {step:46} {now - self._last:7.2f} CPU s, peak {peak():5.0f} MiB", flush=True)
        self._last = now

    def show_sum(self) -> None:
        """Print the sum of all steps."""
        print(f"  {'all':46} {self._last - self._start:7.2f} CPU s, peak {peak():5.0f} MiB")


def forgetpeak() -> None:
    """Let the peak begin anew: to make the state takes more memory than to estimate it."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> float:
    """The most memory of this process since the peak was forgotten, in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _seeded(seed: int) -> RandomBytes:
    """Reproducible bytes; a release takes the operating system's."""
    return np.random.default_rng(seed).bytes


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the census tables")
    parser.add_argument("--ours", action="store_true", help="without rivals")
    parser.add_argument("--no-large", action="store_true", help="without the made state")
    given = parser.parse_args()
    start = time.process_time()
    if given.data.is_dir():
        state, source = hawaii(given.data), _seeded(given.seed)
        print(
            f"Hawaii 2020: {state.persons:,} persons, {state.cells:,} cells in "
            f"{len(ALL_TABLES)} tables; {given.draws} draws of each, seed {given.seed}"
        )
        for epsilon in TARGETS:
            compare(state, epsilon, given.draws, source, is_alone=given.ours)
        print(f"\n{time.process_time() - start:.0f} CPU s")
    else:
        print(f"the real table {given.data.name} is not beside the project: Hawaii is left out")
    if not given.no_large:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(estimate_large, (20_000_000, 14_000))


if __name__ == "__main__":
    main()
