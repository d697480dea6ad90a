"""Ways to publish the tables of a census at one ε: ours, and those that it is compared with.

A way draws its noise once, and gives the tables that are published from it, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
from census_tables import ALL_TABLES, CELLS, MARGINS, PUBLISHED, SIZES, State, Tables, by_margin
from topdown import TopDown, zcdp_noises

from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import RandomBytes
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.estimate.whole import check_adds_up, targets_of, whole_tables
from release.tabulations.strategy.gaussian import least_split
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Table
from release.tabulations.strategy.strategy import Choice

DELTA = Fraction(1, 10**6)

Way: TypeAlias = Callable[[RandomBytes], Iterator[tuple[str, Tables]]]
"""One draw of noise, and the tables that are published from it, by name."""


def adding_up(state: State, noises: Mapping[Table, IntegerNoise]) -> Way:
    """Our estimate from some measured tables, and its whole numbers."""

    def draw(source: RandomBytes) -> Iterator[tuple[str, Tables]]:
        measurements = {}
        for (level, margin), values in state.measured(noises, source).items():
            variance = noises[level, margin].moment(2)
            measurements[level, MARGINS[margin]] = Measurement(values, variance)
        estimated = estimates(state.areas, SIZES, measurements, PUBLISHED)
        targets = targets_of(estimated, [MARGINS] * 3)
        yield "least squares", by_margin([target.estimates / MILLION for target in targets])
        counts = [level.counts for level in whole_tables(state.areas, targets)]
        check_adds_up(state.areas, [CELLS] * 3, counts)
        yield "whole numbers", by_margin(counts)

    return draw


def one_law_each(state: State, noises: Mapping[Table, IntegerNoise]) -> Way:
    """Every table by itself, clamped at 0."""

    def draw(source: RandomBytes) -> Iterator[tuple[str, Tables]]:
        tables = {}
        for table, values in state.measured(noises, source).items():
            tables[table] = np.maximum(values, 0).astype(np.float64)
        yield "clamped", tables

    return draw


def census_way(topdown: TopDown) -> Way:
    """The Census Bureau's whole numbers."""

    def draw(source: RandomBytes) -> Iterator[tuple[str, Tables]]:
        yield "whole numbers", by_margin(topdown.draw(source))

    return draw


def opendp_ways(state: State, epsilon: Fraction) -> dict[str, Way]:
    """OpenDP's measurements, the most precise that its own combinators allow; none if absent."""
    try:
        dp: Any = import_module("opendp.prelude")
    except ImportError as error:
        print(f"  OpenDP is left out: {error}")
        return {}
    dp.enable_features("contrib")
    vector, count = dp.vector_domain(dp.atom_domain(T=int)), len(ALL_TABLES)
    taxicab, euclidean = (vector, dp.l1_distance(T=int)), (vector, dp.l2_distance(T=int))

    def pure(scale: float) -> Any:
        return dp.c.make_composition([taxicab >> dp.m.then_geometric(scale=scale)] * count)

    def approximate(scale: float) -> Any:
        composed = dp.c.make_composition([euclidean >> dp.m.then_gaussian(scale=scale)] * count)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(composed), float(DELTA))

    search, budget = dp.binary_search_param, float(epsilon)
    geometric = search(pure, d_in=1, d_out=budget, T=float)
    gaussian = search(approximate, d_in=1, d_out=(budget, float(DELTA)), T=float)
    title = f"OpenDP {version('opendp')}"
    return {
        f"{title}, geometric": _opendp_way(state, taxicab >> dp.m.then_geometric(scale=geometric)),
        f"{title}, Gaussian": _opendp_way(state, euclidean >> dp.m.then_gaussian(scale=gaussian)),
    }


def _opendp_way(state: State, measurement: Callable[[list[int]], list[int]]) -> Way:
    def draw(_: RandomBytes) -> Iterator[tuple[str, Tables]]:
        tables = {}
        for table, true in state.truth.items():
            noisy = measurement(true.astype(np.int64).reshape(-1).tolist())
            tables[table] = np.maximum(noisy, 0).astype(np.float64).reshape(true.shape)
        yield "clamped", tables

    return draw


def own_ways(state: State, choice: Choice) -> dict[str, Way]:
    """Ours by name, geometric noise first."""
    own = {}
    if choice.geometric is not None:
        own["ours, geometric (pure)"] = adding_up(state, choice.geometric.noises)
    if choice.gaussian is not None:
        own["ours, Gaussian, exactly accounted"] = adding_up(state, choice.gaussian.noises)
    return own


def rivals(state: State, epsilon: Fraction) -> dict[str, Way]:
    """The others by name."""
    even = dict.fromkeys(ALL_TABLES, geometric_noise(least_ratio(epsilon / len(ALL_TABLES), 1)))
    even_gaussian = zcdp_noises(dict.fromkeys(ALL_TABLES, 1.0), epsilon, DELTA)
    shares = least_split(Objective(state.publication)).shares
    optimised = zcdp_noises(shares, epsilon, DELTA)
    totals_first = TopDown(state, even_gaussian, totals_first=True)
    others = {
        "(a) one law per query (pure)": one_law_each(state, even),
        "(b) even split, our estimate (pure)": adding_up(state, even),
        "(c) Census's way, even": census_way(TopDown(state, even_gaussian)),
        "(c) Census's way, even, totals first": census_way(totals_first),
        "(c) Census's way, optimised": census_way(TopDown(state, optimised)),
    }
    for name, way in opendp_ways(state, epsilon).items():
        others[f"(d) {name}"] = way
    return others
