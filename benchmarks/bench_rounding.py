"""What whole numbers cost, on the census of Hawaii: answers, rounded and clamped, cell by cell.

State, 5 counties and 461 tracts; six margins each (``census_tables``); neighbors add or remove a
person; pure ε. Three numbers for each of the 7,376 cells of race and age by tract:

* answer: least squares, which has no bias and may be below 0;
* rounded: whole numbers that are not below 0 and add up;
* clamped: the answer, or 0 where it is below 0. Nothing publishes these.

Errors are shown by the true count, and for sums of one race and age over 10, 100 and all tracts:
over tracts chosen at random, and over those where fewest such persons live. "error" is the mean of
the errors, the bias; "|error|" the mean of their absolute values. "/ root" is the root mean square
error of the answers' sum, divided by the root of the sum of their squared standard errors;
"within" says how often the sum is off by at most twice that root.

Then what a 0 stands for, and where intervals begin at 0.

Everything is a mean over cells or sets of tracts, and over draws of noise from the published
distributions. ± is the standard error of "error", the largest of the three. ``--csv FILE`` keeps
the bias by true count at ε = 1, from which docs/pictures.py draws. Takes under a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from census_tables import ALL_TABLES, CELLS, MARGINS, PUBLISHED, SIZES, Floats, State, hawaii
from numpy.typing import NDArray
from table_ways import adding_up

from release.exact.integers.noise import IntegerNoise
from release.tabulations.estimate.intervals import half_widths
from release.tabulations.estimate.variances import variances
from release.tabulations.strategy.publication import Table
from release.tabulations.strategy.strategy import choose_strategy

Sets: TypeAlias = list[NDArray[np.int64]]
"""Sets of tracts, by number."""

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "census_pl94"
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(4))
WAYS = ("answer", "rounded", "clamped")
CLASSES = ((0, 0), (1, 2), (3, 9), (10, 49), (50, None))
"""The least and the greatest true count of each class."""

TRACTS = 2, len(MARGINS) - 1
"""Race and age by tract."""

NUMBERS = (10, 100)
CHOICES = 100
"""So many sets of tracts are chosen at random."""

DRAWN = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 23, 30, 40, 60, 100)
"""Least true counts of the points of the picture; the last is the end."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Race and age by tract, drawn many times.

    Attributes:
        true: the true counts; shape (461, 16).
        values: the numbers by way; shape (draws, 461, 16) each.
    """

    true: Floats
    values: Mapping[str, Floats]

    def errors(self, way: str) -> Floats:
        """The errors of a way; shape (draws, 461, 16)."""
        return self.values[way] - self.true


def drawn(
    state: State, noises: Mapping[Table, IntegerNoise], draws: int, random: np.random.Generator
) -> Draws:
    """So many draws of the noise, and the three numbers of each."""
    way = adding_up(state, noises)
    values: dict[str, list[Floats]] = {name: [] for name in WAYS}
    for _ in range(draws):
        tables = dict(way(random.bytes))
        answer = tables["least squares"][TRACTS]
        values["answer"].append(answer)
        values["rounded"].append(tables["whole numbers"][TRACTS])
        values["clamped"].append(np.maximum(answer, 0))
    stacked = {name: np.stack(own) for name, own in values.items()}
    return Draws(state.truth[TRACTS], stacked)


def within(true: Floats, least: int, most: int | None) -> NDArray[np.bool_]:
    """Which cells are of a class."""
    return (true >= least) & (true <= (np.inf if most is None else most))


def show_classes(draws: Draws) -> None:
    """Print the errors of single cells, by true count."""
    print("  single cells, by true count")
    show_head(f"{'true':>14} {'cells':>7}")
    for least, most in (*CLASSES, (0, None)):
        chosen = within(draws.true, least, most)
        name = f"{least} or more" if most is None else f"{least} to {most}"
        show_line(f"{name:>14} {chosen.sum():7d}", [draws.errors(way)[:, chosen] for way in WAYS])


def show_head(first: str) -> None:
    """Print the heads of a table of errors."""
    errors = "".join(f"{way + ' error':>15}" for way in WAYS)
    print(f"    {first}{errors}{'±':>7}" + "".join(f"{way + ' |error|':>17}" for way in WAYS))


def show_line(first: str, errors: Sequence[Floats]) -> None:
    """Print a line of a table of errors; those of each way have a row for each draw."""
    noise = max(standard_error(own.mean(axis=1)) for own in errors)
    means = "".join(f"{own.mean():15.2f}" for own in errors)
    absolute = "".join(f"{np.abs(own).mean():17.2f}" for own in errors)
    print(f"    {first}{means}{noise:7.2f}{absolute}", flush=True)


def standard_error(values: Floats) -> float:
    """Of the mean; 0 for a single value, which shows none."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def show_sums(draws: Draws, variance: Floats, random: np.random.Generator) -> None:
    """Print the errors of sums of one race and age over tracts."""
    print("  sums of one race and age over tracts")
    show_head(f"{'tracts':>14} {'/ root':>7} {'within':>7}")
    for name, chosen in sets_of_tracts(draws.true, random).items():
        errors = [sums_over(draws.errors(way), chosen) for way in WAYS]
        independent = sums_over(variance[None], chosen)
        ratio = np.sqrt((errors[0] ** 2).mean() / independent.mean())
        inside = (np.abs(errors[0]) <= 2 * np.sqrt(independent)).mean()
        show_line(f"{name:>14} {ratio:7.3f} {inside:7.1%}", errors)


def sets_of_tracts(true: Floats, random: np.random.Generator) -> dict[str, list[Sets]]:
    """Sets of tracts by name, for each of the 16 cells."""
    tracts, cells = true.shape
    ascending = np.argsort(true, axis=0, kind="stable")
    sets = {}
    for number in NUMBERS:
        at_random = [
            [random.choice(tracts, number, replace=False) for _ in range(CHOICES)]
            for _ in range(cells)
        ]
        sets[f"{number} at random"] = at_random
        sets[f"{number} fewest"] = [[ascending[:number, cell]] for cell in range(cells)]
    sets[f"all {tracts}"] = [[ascending[:, cell]] for cell in range(cells)]
    return sets


def sums_over(values: Floats, chosen: Sequence[Sets]) -> Floats:
    """The sums over each set of tracts of its cell.

    Args:
        values: shape (draws, 461, 16).
        chosen: for each of the 16 cells, sets of tracts.

    Returns:
        a row for each draw, a column for each set.
    """
    sums = []
    for cell, sets in enumerate(chosen):
        sums += [values[:, tracts, cell].sum(axis=1) for tracts in sets]
    return np.stack(sums, axis=1)


def show_zeros(draws: Draws, widths: Floats) -> None:
    """Print what is true where 0 is published, and the intervals that begin at 0."""
    true = np.broadcast_to(draws.true, draws.values["rounded"].shape)
    is_zero = draws.values["rounded"] == 0
    behind = true[is_zero]
    print(
        f"  rounded is 0 in {is_zero.mean():.1%} of the cells, the true count in "
        f"{(draws.true == 0).mean():.1%}; where rounded is 0 the true count is 0 in "
        f"{(behind == 0).mean():.1%}, its mean {behind.mean():.2f}, and at most "
        f"{np.quantile(behind, 0.95, method='higher'):.0f} in 95 of 100"
    )
    answers = draws.values["answer"]
    print(
        f"  answers below 0: {(answers < 0).mean():.1%} of all, "
        f"{(answers < 0)[true == 0].mean():.1%} where the true count is 0"
    )
    low = np.maximum(np.ceil(answers - widths), 0)
    high = np.maximum(np.floor(answers + widths), 0)
    covered = (low <= true) & (true <= high)
    starts, empty = low == 0, high == 0
    print(
        f"  intervals: half width {widths.min():.1f} to {widths.max():.1f}, {covered.mean():.1%} "
        f"cover; {starts.mean():.1%} begin at 0, and {covered[starts].mean():.1%} of these cover; "
        f"they end at {high[starts].mean():.1f} in the mean, {high[is_zero].mean():.1f} where "
        f"rounded is 0; {empty.mean():.1%} are 0 to 0, and {covered[empty].mean():.1%} of these "
        f"cover"
    )


def half_widths_of_tracts(state: State, noises: Mapping[Table, IntegerNoise]) -> Floats:
    """The half widths of the intervals of race and age by tract; shape (461, 16)."""
    named = {(level, MARGINS[margin]): noise for (level, margin), noise in noises.items()}
    widths = half_widths(state.areas, SIZES, named, [], [(TRACTS[0], CELLS)])[TRACTS[0], CELLS]
    values = np.array([[float(own.value) for own in row] for row in widths.values])
    return np.asarray(values[widths.kinds][:, widths.sorts])


def variances_of_tracts(state: State, noises: Mapping[Table, IntegerNoise]) -> Floats:
    """The variances of the answers of race and age by tract; shape (461, 16)."""
    own = {(level, MARGINS[margin]): noise.moment(2) for (level, margin), noise in noises.items()}
    place = PUBLISHED[ALL_TABLES.index(TRACTS)]
    return np.asarray(variances(state.areas, SIZES, own, PUBLISHED)[place].standard_errors() ** 2)


def bias_by_count(draws: Draws) -> str:
    """The bias of the three numbers by true count, as CSV."""
    lines = ["least,most,mean_true,cells," + ",".join(WAYS)]
    for least, end in pairwise(DRAWN):
        chosen = within(draws.true, least, end - 1)
        means = [f"{draws.errors(way)[:, chosen].mean():.4f}" for way in WAYS]
        first = f"{least},{end - 1},{draws.true[chosen].mean():.3f},{chosen.sum()}"
        lines.append(",".join([first, *means]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the census tables")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"the real table {given.data.name} is not beside the project: nothing is measured")
        return
    state = hawaii(given.data)
    print(
        f"Hawaii 2020: {state.truth[TRACTS].size:,} cells of race and age by tract; "
        f"{given.draws} draws, seed {given.seed}"
    )
    for epsilon in EPSILONS:
        random = np.random.default_rng(given.seed)
        choice = choose_strategy(state.publication, epsilon, family="geometric")
        noises = choice.best.noises
        variance = variances_of_tracts(state, noises)
        print(f"\nε = {epsilon}; standard error of an answer {np.sqrt(variance).mean():.2f}")
        draws = drawn(state, noises, given.draws, random)
        show_classes(draws)
        show_sums(draws, variance, random)
        show_zeros(draws, half_widths_of_tracts(state, noises))
        if given.csv and epsilon == 1:
            given.csv.write_text(bias_by_count(draws), "utf-8")


if __name__ == "__main__":
    main()
