"""Noise on the statistic beside what OpenDP and diffprivlib recommend for the same question.

Medians, quantiles, means, the commonest category and the three commonest, at pure ε = 1 on the same
tables, each library by its own call. Mean absolute errors of so many draws with 99.9 % intervals,
against the answer without noise; the last column is ours over theirs. OpenDP counts neighbors that
add or remove a row, diffprivlib those that replace one, so ours is given for each. A library that
is not installed is left out. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from bench_statistics import (
    DRAWS,
    ONE,
    Mean,
    binned,
    missed,
    show,
    sums_of,
)
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram
from release.queries.statistics import doubled_unless_added, rank_scores, rank_spread
from release.spec.declarations import Relation

Floats = NDArray[np.float64]
Answer = Callable[[], Any]
"""Publishes once."""

CALLS = 10_000
SLOW_CALLS = 2_000
POINTS, HIGH = 1_001, 1_000
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
ADDED, REPLACED = Relation.ADD_REMOVE, Relation.REPLACE_ONE


@dataclass(frozen=True)
class Rival:
    """A library's own answers; each takes the table, and gives what publishes once.

    ``median``, ``quartiles`` and ``mean`` take numbers of 0..1,000; ``top`` the counts of
    categories and how many are published. None where the library has no call for it.
    """

    title: str
    relation: Relation
    median: Callable[[Codes], Answer]
    quartiles: Callable[[Codes], Answer]
    mean: Callable[[Codes], Answer]
    top: Callable[[Codes, int], Answer] | None


def opendp() -> Rival:
    """Discrete candidates under permute-and-flip; a mean of known size; noisy top k."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

    def quantile(share: float, epsilon: float) -> Any:
        def make(scale: float) -> Any:
            return dp.m.make_private_quantile(
                *whole, dp.max_divergence(), candidates=list(range(POINTS)), alpha=share,
                scale=scale,
            )  # fmt: skip

        return make(dp.binary_search_param(make, d_in=1, d_out=epsilon, T=float))

    def median(values: Codes) -> Answer:
        made, given = quantile(0.5, 1.0), values.tolist()
        return lambda: made(given)

    def quartiles(values: Codes) -> Answer:
        given = values.tolist()
        parts = [quantile(float(share), 1 / 3) for share in QUARTILES]
        return lambda: [made(given) for made in parts]

    def mean(values: Codes) -> Answer:
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        sized = (
            space
            >> dp.t.then_clamp((0.0, float(HIGH)))
            >> dp.t.then_resize(values.size, HIGH / 2)
            >> dp.t.then_mean()
        )

        def make(scale: float) -> Any:
            return sized >> dp.m.then_laplace(scale=scale)

        made = make(dp.binary_search_param(make, d_in=1, d_out=1.0, T=float))
        given = values.astype(float).tolist()
        return lambda: made(given)

    def top(counts: Codes, k: int) -> Answer:
        metric = dp.linf_distance(T=int, monotonic=True)
        domain = dp.vector_domain(dp.atom_domain(T=int))

        def make(scale: float) -> Any:
            return dp.m.make_noisy_top_k(domain, metric, dp.max_divergence(), k=k, scale=scale)

        made, given = (
            make(dp.binary_search_param(make, d_in=1, d_out=1.0, T=float)),
            counts.tolist(),
        )
        return lambda: made(given)

    return Rival("OpenDP", ADDED, median, quartiles, mean, top)


def diffprivlib() -> Rival:
    """Its tools; its permute-and-flip for one category, and none for several."""
    tools: Any = import_module("diffprivlib.tools")
    mechanisms: Any = import_module("diffprivlib.mechanisms")

    def median(values: Codes) -> Answer:
        given = values.astype(float)
        return lambda: tools.median(given, epsilon=1.0, bounds=(0, HIGH))

    def quartiles(values: Codes) -> Answer:
        given, shares = values.astype(float), [float(share) for share in QUARTILES]
        return lambda: tools.quantile(given, shares, epsilon=1.0, bounds=(0, HIGH))

    def mean(values: Codes) -> Answer:
        given = values.astype(float)
        return lambda: tools.mean(given, epsilon=1.0, bounds=(0, HIGH))

    def top(counts: Codes, k: int) -> Answer:
        if k > 1:
            raise NotImplementedError
        utility = counts.tolist()
        made = mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=1, utility=utility)
        return lambda: [made.randomise()]

    return Rival("diffprivlib", REPLACED, median, quartiles, mean, top)


def called(answer: Answer, calls: int) -> Floats:
    """What so many calls publish, shape (calls, answers)."""
    return np.array([np.ravel(answer()) for _ in range(calls)], dtype=np.float64)


def absolute(published: Floats, true: Floats) -> Mean:
    """The mean absolute error over all answers and draws."""
    return Mean.of(np.abs(published - true).mean(axis=1))


def counted(values: Codes) -> Codes:
    """The rows at each point, shape (1, points)."""
    return np.bincount(values, minlength=POINTS)[None]


def own_median(values: Codes, relation: Relation) -> Floats:
    """Draws of our median."""
    at = counted(values)
    half = QUARTILES[1]
    scores = rank_scores(np.cumsum(at, axis=1) - at, at, half)
    made = PermuteAndFlip.fitted(ONE, POINTS, rank_spread(half, 1, relation))
    return made.draw(np.tile(scores, (CALLS, 1))).astype(np.float64)


def own_quartiles(values: Codes, relation: Relation) -> Floats:
    """Draws of our three quartiles."""
    replaces = relation is not ADDED
    made = JointQuantiles.fitted(ONE, POINTS, QUARTILES, 1, replaces=replaces)
    return made.draw(np.tile(counted(values), (SLOW_CALLS, 1))).astype(np.float64)


def own_mean(values: Codes, relation: Relation) -> Floats:
    """Draws of our mean, before any bin."""
    mechanism = sums_of(binned("mean", (0, HIGH, HIGH), (0, HIGH)), relation)
    total = int(values.sum())
    noisy = mechanism.draw(np.tile([[total, HIGH * values.size - total]], (DRAWS, 1)))
    count = 2 * np.maximum(noisy.sum(axis=1), HIGH)
    means = HIGH / 2 + HIGH * (noisy[:, 0] - noisy[:, 1]) / count
    return np.asarray(np.clip(means, 0, HIGH)[:, None])


def compare_numbers(rival: Rival) -> None:
    """Median, quartiles and mean of tables of two shapes and three sizes."""
    random = np.random.default_rng(5)
    for rows, kind in ((100, "even"), (1_000, "even"), (1_000, "skewed")):
        drawn = random.uniform(0, POINTS, rows)
        if kind == "skewed":
            drawn = POINTS / 8 * random.lognormal(0, 0.6, rows)
        values = np.clip(drawn, 0, HIGH).astype(np.int64)
        ranked = np.sort(values)
        true = np.array([ranked[math.ceil(share * rows) - 1] for share in QUARTILES])
        what = f"{rows:,} {kind} rows, {rival.relation.value}"
        ours = absolute(own_median(values, rival.relation), true[1:2])
        theirs = absolute(called(rival.median(values), CALLS), true[1:2])
        show(f"median, {what}", ours, f"{rival.title} n = {CALLS:,}", theirs)
        ours = absolute(own_quartiles(values, rival.relation), true)
        theirs = absolute(called(rival.quartiles(values), SLOW_CALLS), true)
        show(f"quartiles, {what}", ours, f"{rival.title} n = {SLOW_CALLS:,}", theirs)
        mean = np.array([values.mean()])
        ours = absolute(own_mean(values, rival.relation), mean)
        theirs = absolute(called(rival.mean(values), CALLS), mean)
        show(f"mean, {what}", ours, f"{rival.title} n = {CALLS:,}", theirs)


def compare_tops(rival: Rival) -> None:
    """The commonest of 24, 5 ahead, wrong; and three of counts that fall as 1/rank, missed."""
    if rival.top is None:
        return
    counts = np.full(24, 100, dtype=np.int64)
    counts[0] += 5
    made = PermuteAndFlip.fitted(ONE, 24, doubled_unless_added(1, rival.relation))
    ours = Mean(1 - made.chance_of_leader(5))
    theirs = Mean.of((called(rival.top(counts, 1), CALLS)[:, 0] != 0).astype(np.float64))
    what = f"of 24, {rival.relation.value}"
    show(f"commonest {what}: wrong", ours, f"{rival.title} n = {CALLS:,}", theirs)
    falling = np.rint(53 / np.arange(1, 25)).astype(np.int64)
    try:
        chosen = called(rival.top(falling, 3), CALLS).astype(np.int64)
    except NotImplementedError:
        print(f"  {rival.title} has no call for the three commonest")
        return
    bounds = CountBounds(24, 1, is_replaced=rival.relation is not ADDED)
    ours = missed(HistogramTop(NoisyHistogram.fitted(ONE, bounds), 3), falling, 3)
    theirs = Mean.of((falling[chosen] < falling[2]).sum(axis=1).astype(np.float64))
    show(f"three commonest {what}: missed", ours, f"{rival.title} n = {CALLS:,}", theirs)


RIVALS: dict[str, Callable[[], Rival]] = {"opendp": opendp, "diffprivlib": diffprivlib}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    for package, make in RIVALS.items():
        try:
            rival = make()
        except ImportError as error:
            print(f"{package} is not installed, so it is left out: {error}")
            continue
        print(f"{rival.title} {version(package)}, pure ε = 1: mean absolute errors")
        compare_numbers(rival)
        compare_tops(rival)


if __name__ == "__main__":
    main()
