"""What the sources do not show of many answers: noise for one budget, and tables that add up."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from release.noise.composed.search import gaussian_deviation
from release.noise.composed.share import noise_for
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.strategy.measured import Strategy
from release.tabulations.strategy.publication import Publication, Table, moves_of_a_row
from release.tabulations.strategy.strategy import choose_strategy
from research.beyond.rings import SOURCE
from research.sheet import Panel, Series, Shape, Sheet, Stroke

COUNTS = (2, 5, 8, 10, 20, 30, 100)
"""How many counts share (1, 10⁻⁶)."""


def geometric_variance(epsilon: float) -> float:
    """2r/(1-r)², r = e^-ε: the variance of two-sided geometric noise."""
    ratio = math.exp(-epsilon)
    return 2 * ratio / (1 - ratio) ** 2


def composition() -> Sheet:
    """The variance of one count of K that share one budget."""
    deviation = gaussian_deviation(1.0, math.log(1e-6))
    ours = [float(noise_for(k, Fraction(1), Fraction(1, 10**6), 2).moment(2)) for k in COUNTS]
    basic = [geometric_variance(1 / k) for k in COUNTS]
    gaussian = [k * deviation**2 for k in COUNTS]
    panels = (
        Panel(
            "(a) variance of one count",
            "K",
            "variance",
            (
                Series.of("geometric, ε added up", COUNTS, basic, Stroke.DOTTED),
                Series.of("Gaussian, exactly accounted", COUNTS, gaussian, Stroke.DASHED),
                Series.of("a release", COUNTS, ours, marked=True),
            ),
            log=True,
            log_x=True,
        ),
        Panel(
            "(b) variance over that of a release",
            "K",
            "ratio",
            (
                Series.of(
                    "geometric, ε added up",
                    COUNTS,
                    [a / b for a, b in zip(basic, ours, strict=True)],
                    Stroke.DOTTED,
                ),
                Series.of(
                    "Gaussian, exactly accounted",
                    COUNTS,
                    [a / b for a, b in zip(gaussian, ours, strict=True)],
                    Stroke.DASHED,
                ),
            ),
            log=True,
            log_x=True,
        ),
    )
    added, accounted, release = (line.at(10) for line in panels[0].series)
    return Sheet(
        "beyond-composition",
        "noise for many counts of one budget",
        SOURCE,
        "K counts, each moved by 1, within ε = 1 and δ = 10⁻⁶ together",
        panels,
        f"For 10 counts a release has a variance of {release:.1f} each, geometric noise "
        f"{added:.1f} and Gaussian noise {accounted:.1f}.",
        (
            "Masses go as exp(-(|η|/t)^p), p between 1 (geometric) and 2 (Gaussian); the account "
            "is exact and rounded upwards (mathematics, 2.33).",
            "The sources add noise to one answer, or split ε.",
        ),
    )


RACES, AGES, COUNTIES, TRACTS = 7, 2, 5, 60
LEVELS = ("state", "county", "tract")
NAMES = ("total", "age", "race", "race × age")


@lru_cache
def publication() -> Publication:
    """One state, 5 counties, 60 tracts; four margins at each level, one row a person."""
    races, ages = kept_whole(RACES), kept_whole(AGES)
    margins = (
        Margin((summed_out(RACES), summed_out(AGES))),
        Margin((summed_out(RACES), ages)),
        Margin((races, summed_out(AGES))),
        Margin((races, ages)),
    )
    parents = np.repeat(np.arange(COUNTIES), TRACTS // COUNTIES)
    zeros = (np.zeros(1, dtype=np.int64), np.zeros(COUNTIES, dtype=np.int64))
    areas = Areas(LEVELS, (*zeros, parents))
    moves = moves_of_a_row(areas, margins, is_replaced=False)
    return Publication(areas, margins, dict.fromkeys(moves, 1.0), moves)


def strategy(shares: dict[Table, float] | None) -> Strategy:
    """Geometric noise within ε = 1 for all tables: with these shares, or the best that is found."""
    choice = choose_strategy(publication(), Fraction(1), family="geometric", shares=shares)
    assert choice.geometric is not None  # noqa: S101 - nothing but geometric noise was asked for
    return choice.geometric


def tables() -> Sheet:
    """Standard errors of twelve tables, one by one and made to add up."""
    published = publication()
    even, best = strategy(dict.fromkeys(published.tables, 1.0)), strategy(None)
    alone = math.sqrt(geometric_variance(1 / len(published.tables)))
    panels = []
    for level, name in enumerate(LEVELS):
        places = range(len(NAMES))
        series = (
            Series.of("one by one, ε split evenly", places, [alone] * len(NAMES), Stroke.DOTTED),
            Series.of("the same, least squares", places, even.errors[level], Stroke.DASHED),
            Series.of("best strategy found, least squares", places, best.errors[level]),
        )
        margins = ", ".join(f"{place} {margin}" for place, margin in enumerate(NAMES))
        panels.append(Panel(f"{name}: {margins}", "margin", "standard error", series, Shape.BARS))
    means = [float(np.mean(strategy_.errors)) for strategy_ in (even, best)]
    measured = ", ".join(
        f"{LEVELS[level]} {NAMES[margin]}" for level, margin in sorted(best.noises)
    )
    return Sheet(
        "beyond-tables",
        "tables that add up",
        SOURCE,
        f"1 state, {COUNTIES} counties, {TRACTS} tracts; {RACES} races × {AGES} ages; ε = 1 in all",
        tuple(panels),
        f"Twelve tables one by one have a standard error of {alone:.2f}; made to add up they have "
        f"{means[0]:.2f} in the mean, and {means[1]:.2f} with the best strategy found.",
        (
            f"The best strategy found measures {len(best.noises)} of 12 tables: {measured}. Least "
            "squares gives all others, and all add up.",
            "Standard errors follow from public structure alone; no data are drawn. The search has "
            "no bound.",
        ),
    )
