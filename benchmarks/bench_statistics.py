"""Noise on the statistic beside noise on the answer, the linear programs and other mechanisms.

Expected errors are exact where all outcomes can be enumerated; the others are means of so many
draws, with 99.9 % intervals. The last column is ours over the rival's, from this run; where a
target is given, a ratio that misses it is marked. Rival libraries are in
``bench_statistics_rivals.py``. Takes about four minutes; ``--only NAME`` runs one part.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp

import numpy as np
from box_program import arrangements, box_optimum, box_states
from numpy.typing import NDArray
from pydantic import TypeAdapter
from timing import median_seconds

from release.exact.domain import AnswerDomain, Codes, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.gap_table import cascade
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE, StatisticMechanism, least_ratio
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.choice import best_top
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram
from release.exact.statistics.top.peeled import PeeledTop
from release.exact.statistics.two_categories import TwoCategories
from release.noise.design import Asked
from release.noise.families import AnyDesign
from release.noise.on_statistic import design_on_statistic
from release.noise.select import choose
from release.queries.kinds.binned import BinnedQuery
from release.queries.statistics import rank_scores, rank_spread
from release.spec.declarations import Relation
from release.spec.kinds import AnyQuery
from tests.exact.statistics.rank_errors import rank_errors, recursive, sample, split
from tests.exact.statistics.test_cascade import errors, least_mean_error

Floats = NDArray[np.float64]

ONE = Fraction(1)
PURE = Guarantee(Definition.PURE, ONE, Fraction(0))
DRAWS, TOP_DRAWS, SETS = 100_000, 10_000, 10
ADDED_TABLES, REPLACED_TABLES = 600, 150
SIGMAS = 3.29
"""99.9 in 100 of a normal distribution lie within so many standard errors."""


@dataclass(frozen=True)
class Mean:
    """An expected error, and half the width of its interval: 0 where it is exact."""

    value: float
    half: float = 0.0

    @classmethod
    def of(cls, samples: Floats) -> Mean:
        """The mean of independent samples."""
        return cls(float(samples.mean()), SIGMAS * float(samples.std()) / samples.size**0.5)

    def __str__(self) -> str:
        return f"{self.value:.4g}" + (f" ± {self.half:.2g}" if self.half else "")


def show(what: str, ours: Mean, rival: str, theirs: Mean, target: float | None = None) -> None:
    """One line: our figure, the rival's, their ratio, and whether it meets the target."""
    if not theirs.value:
        print(f"  {what:<50}{ours!s:>17}   {rival:<38}{theirs!s:>17}  no ratio", flush=True)
        return
    ratio = ours.value / theirs.value
    met = "" if target is None else f"  ≤ {target}: {'met' if ratio <= target else 'MISSED'}"
    print(
        f"  {what:<50}{ours!s:>17}   {rival:<38}{theirs!s:>17}  ratio {ratio:.4f}{met}", flush=True
    )


def accepted_chances(ratio: float, gaps: Codes) -> Floats:
    """The chance of each candidate under permute-and-flip, p_s·∫₀¹ Π(1 - u·p_t) du over the others.

    The integrand is a polynomial, for which Gauss's rule is exact up to rounding.
    """
    nodes, weights = np.polynomial.legendre.leggauss(gaps.size // 2 + 1)
    shares = ratio ** gaps.astype(np.float64)
    factors = 1 - (nodes[:, None] + 1) / 2 * shares
    # Nodes lie within (0, 1), so that no factor is 0.
    others = factors.prod(axis=1, keepdims=True) / factors
    return np.asarray(shares * (weights / 2 @ others))


def exponential_chances(ratio: float, gaps: Codes) -> Floats:
    """The chances under the exponential mechanism of the same range, and so the same ratio."""
    shares = ratio ** gaps.astype(np.float64)
    return np.asarray(shares / shares.sum())


def on_answer(size: int, topology: Topology, loss: LossName, steps: Codes | None) -> AnyDesign:
    """The best noise on the code of an answer that a unit moves by ``steps``, else anywhere."""
    domain = AnswerDomain(topology, tuple(range(size)))
    moved = Sensitivity.everything(domain.group)
    if topology is Topology.ORDERED:
        moved = Sensitivity.on_line(size, range(size) if steps is None else steps.tolist())
    return choose(Asked(domain, moved, PURE, named_loss(loss, topology, size), loss))


def binned(kind: str, bins: tuple[int, int, int], clamp: tuple[int, int]) -> BinnedQuery:
    """A statistic in bins, under global sensitivity."""
    made = TypeAdapter(AnyQuery).validate_python(
        {
            "name": "q",
            "kind": kind,
            "table": "t",
            "by": [],
            "of": "x",
            "bins": dict(zip(("low", "high", "count"), bins, strict=True)),
            "clamp": list(clamp),
            "sensitivity": "global",
            "guarantee": {"definition": "pure", "epsilon": "1"},
        }
    )
    if not isinstance(made, BinnedQuery):
        raise TypeError(f"{kind} is no statistic in bins")
    return made


def heads() -> None:
    """The four answers that noise on the code cannot give."""
    print("noise on the statistic beside noise on the code, pure ε = 1, one row a unit, add/remove")
    code = on_answer(24, Topology.CYCLIC, LossName.ERROR_RATE, None)
    lead = PermuteAndFlip.fitted(ONE, 24, 1).chance_of_leader(5)
    wrong = Mean(1 - lead)
    show("commonest of 24, lead 5: wrong", wrong, "on_answer", Mean(float(code.objective)))
    _head_median()
    _head_mean()
    _head_level()


def _head_median() -> None:
    levels, rows = 301, 117
    at = np.bincount(np.arange(rows) * levels // rows, minlength=levels)[None]
    below = np.cumsum(at, axis=1) - at
    half = Fraction(1, 2)
    gaps = -rank_scores(below, at, half)[0]
    ratio = least_ratio(ONE, rank_spread(half, 1, Relation.ADD_REMOVE)) / RATIO_ONE
    off = np.abs(np.arange(levels) - int(gaps.argmin()))
    ours = Mean(float(accepted_chances(ratio, gaps) @ off))
    code = on_answer(levels, Topology.ORDERED, LossName.ABSOLUTE, None)
    what = f"median of {levels} levels, {rows:,} rows spread evenly: levels off"
    print(f"  {what}")
    show("", ours, "on_answer, mean over true answers", Mean(float(code.objective)))
    if isinstance(code.mechanism, IntegerMechanism):
        worst = Mean(float(code.mechanism.worst(1)[1]))
        show("", ours, "on_answer, worst true answer", worst)


def _head_mean() -> None:
    rows, high = 10_000, 1_000
    query = binned("mean", (0, high, high), (0, high))
    true = np.linspace(0.0, high, 21)
    off = _mean_errors(sums_of(query, Relation.ADD_REMOVE), true, rows, high)
    code = on_answer(high, Topology.ORDERED, LossName.ABSOLUTE, None)
    what = f"mean of 0..{high:,} over {rows:,} rows: off"
    show(what, off, "on_answer, mean over true answers", Mean(float(code.objective)))
    if isinstance(code.mechanism, IntegerMechanism):
        worst = Mean(float(code.mechanism.worst(1)[1]))
        show(what, off, "on_answer, worst true answer", worst)


def sums_of(query: BinnedQuery, relation: Relation) -> NoisySums:
    """The mechanism of two sums that a release takes."""
    made = design_on_statistic(query.statistic(1, relation), "best", PURE).mechanism
    if not isinstance(made, NoisySums):
        raise TypeError(f"a mean is answered by {made.family}")
    return made


def _mean_errors(mechanism: NoisySums, true: Floats, rows: int, high: int) -> Mean:
    """Mean absolute error of the means that two noisy sums make, before any bin."""
    totals = np.rint(np.resize(true, DRAWS) * rows).astype(np.int64)
    noisy = mechanism.draw(np.stack([totals, high * rows - totals], axis=1)).astype(np.float64)
    count = np.maximum(noisy.sum(axis=1), high)
    means = np.clip(high / 2 + high * (noisy[:, 0] - noisy[:, 1]) / (2 * count), 0, high)
    return Mean.of(np.abs(means - totals / rows))


def _head_level() -> None:
    homes, high, levels = 117, 40_000, 17
    query = binned("mean", (0, high, levels), (0, high))
    rng = np.random.default_rng(117)
    totals = rng.integers(0, homes * high + 1, DRAWS)
    true = query.sums().decide(np.stack([totals, np.full(DRAWS, homes)], axis=1))
    mechanism = sums_of(query, Relation.ADD_REMOVE)
    drawn = mechanism.draw(np.stack([totals, high * homes - totals], axis=1))
    ours = Mean.of((query.answer_codes(drawn)[0] != true).astype(np.float64))
    what = f"one of {levels} levels, {homes} homes, any mean: wrong"
    for word, steps in (("everything", None), ("±1 found", np.array([1]))):
        code = on_answer(levels, Topology.ORDERED, LossName.ERROR_RATE, steps)
        show(what, ours, f"on_answer, {word} ({code.name})", Mean(float(code.objective)))


def box_error(categories: int, most: int, epsilon: Fraction) -> float:
    """The same mean error of permute-and-flip."""
    ratio = least_ratio(epsilon, 1) / RATIO_ONE
    total = 0.0
    for state in box_states(categories, most):
        gaps = state[0] - np.array(state)
        wrong = float(accepted_chances(ratio, gaps)[gaps > 0].sum())
        total += arrangements(state) * wrong / (most + 1) ** categories
    return total


def modes() -> None:
    """The commonest category beside the optimum of linear programs; all figures are exact."""
    print("the commonest category, mean error over all counts: permute-and-flip, add/remove")
    for (categories, most), epsilon in product(
        ((2, 24), (3, 24), (4, 13), (5, 9)), (Fraction(1, 2), ONE, Fraction(2))
    ):
        ours = Mean(box_error(categories, most, epsilon))
        optimum = Mean(box_optimum(categories, most, float(epsilon)))
        what = f"{categories} categories of 0..{most}, ε = {epsilon}"
        show(what, ours, "linear program", optimum, 1.01)
    print("the same where a row may be replaced: closed form of two, gap tables of 3 to 5")
    for (categories, cap), epsilon in product(
        ((2, 20), (3, 16), (4, 8), (5, 5)), (Fraction(1, 2), ONE, Fraction(2))
    ):
        optimum = Mean(least_mean_error(categories, cap, epsilon))
        table = cascade(categories, cap, epsilon)
        if table is None:
            print(f"  {categories} categories, gaps to {cap}, ε = {epsilon}: no gap table")
            continue
        what = f"{categories} categories, gaps to {cap}, ε = {epsilon}"
        if categories == 2:
            closed = TwoCategories(least_ratio(epsilon, 1))
            # The state of a tie has no wrong category.
            leads = [float(closed.error_at_lead(lead)) for lead in range(1, cap + 1)]
            ours = Mean(sum(leads) / (cap + 1))
        else:
            ours = Mean(float(errors(table).mean()))
        show(what, ours, "linear program", optimum, 1.001 if categories == 2 else 1.02)


TOPS: dict[str, Callable[[CountBounds, int], StatisticMechanism]] = {
    "top_histogram": lambda bounds, k: HistogramTop(NoisyHistogram.fitted(ONE, bounds), k),
    "top_canonical": partial(CanonicalTop.fitted, ONE),
    "top_peeled": partial(PeeledTop.fitted, ONE),
}


def missed(mechanism: StatisticMechanism, counts: Codes, k: int) -> Mean:
    """How many published categories are rarer than the true last one."""
    drawn = np.concatenate(
        [mechanism.draw(np.tile(counts, (TOP_DRAWS // SETS, 1)))[:, :k] for _ in range(SETS)]
    )
    last = np.sort(counts)[-k]
    return Mean.of((counts[drawn] < last).sum(axis=1).astype(np.float64))


def tops() -> None:
    """The k commonest of 24 whose counts fall as 1/rank, by what the engine chooses."""
    print(f"the k commonest of 24, ε = 1: members missed, {TOP_DRAWS:,} draws each")
    for touched, k, rows in product((1, 3, 24), (3, 10), (200, 1_000)):
        harmonic = float((1 / np.arange(1, 25)).sum())
        counts = np.rint(rows / harmonic / np.arange(1, 25)).astype(np.int64)
        bounds = CountBounds(24, touched)
        chosen = best_top(ONE, bounds, k, int(counts.sum()))
        found = {name: missed(make(bounds, k), counts, k) for name, make in TOPS.items()}
        what = f"k = {k}, {rows:,} rows, {touched} a unit: {chosen}"
        # The target is set against the histogram for one row a unit, else against the selections.
        held_to = ("top_histogram",) if touched == 1 else ("top_canonical", "top_peeled")
        best = min(held_to, key=lambda name: found[name].value)
        for name, theirs in found.items():
            show(what, found[chosen], name, theirs, 1.1 if name == best else None)


def one_quantile() -> None:
    """One quantile beside the exponential mechanism, exact: both of the same range of scores."""
    print("one quantile of 301 points, ε = 1: expected distance in rank, rows, exact")
    worst = 0.0
    random = np.random.default_rng(301)
    for kind, rows, relation in product(
        ("even", "skewed"), (20, 100, 1_000), (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
    ):
        at = sample(kind, rows, 301, random)[None]
        below = np.cumsum(at, axis=1) - at
        for share in (Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)):
            gaps = -rank_scores(below, at, share)[0]
            ratio = least_ratio(ONE, rank_spread(share, 1, relation)) / RATIO_ONE
            off = gaps / share.denominator
            ours = Mean(float(accepted_chances(ratio, gaps) @ off))
            theirs = Mean(float(exponential_chances(ratio, gaps) @ off))
            worst = max(worst, ours.value / theirs.value)
            if share == Fraction(1, 2):
                what = f"median, {rows:,} {kind} rows, {relation.value}"
                show(what, ours, "exponential mechanism", theirs, 1.0)
    print(f"  largest ratio at 1/2, 1/4 and 9/10, all of the above: {worst:.4f}")


def batched_ratio(ours: Floats, theirs: Floats) -> Mean:
    """The ratio of two means over the same tables, with the interval of its linearisation."""
    ratio = ours.mean() / theirs.mean()
    spread = (ours - ratio * theirs).std() / theirs.mean()
    return Mean(float(ratio), SIGMAS * float(spread) / ours.size**0.5)


def many_quantiles() -> None:
    """Several quantiles of 1,000 rows, drawn jointly, beside two ways with permute-and-flip."""
    print(f"quantiles at even shares, 1,000 rows, 1,001 points, ε = 1, {ADDED_TABLES} tables each")
    print(f"  ({REPLACED_TABLES} where a row is replaced)")
    print("  mean distance in rank: joint, each by itself (split), recursive (AQ)")
    for kind, replaces, count in product(("even", "skewed"), (False, True), (3, 5, 7, 9)):
        found = quantile_errors(kind, count, replaces=replaces)
        joint, apart, recursion = (found[name] for name in ("joint", "split", "recursive"))
        lines = []
        for rival, target in ((apart, 0.9), (recursion, 1.25)):
            ratio = batched_ratio(joint, rival)
            met = "met" if ratio.value <= target else "MISSED"
            lines.append(f"{ratio!s:>15} ≤ {target}: {met}")
        means = "".join(f"{float(values.mean()):8.2f}" for values in (joint, apart, recursion))
        relation = "replace_one" if replaces else "add_remove"
        print(f"  {kind:<7}{relation:<12}{count}{means}  {'  '.join(lines)}", flush=True)


def quantile_errors(kind: str, count: int, *, replaces: bool) -> dict[str, Floats]:
    """Mean distances of rank for each of so many tables: rivals take half of ε where replaced."""
    random = np.random.default_rng(count)
    shares = tuple(Fraction(j, count + 1) for j in range(1, count + 1))
    joint = JointQuantiles.fitted(ONE, 1_001, shares, 1, replaces=replaces)
    epsilon = 0.5 if replaces else 1.0
    found: dict[str, list[float]] = {"joint": [], "split": [], "recursive": []}
    for _ in range(REPLACED_TABLES if replaces else ADDED_TABLES):
        rows = sample(kind, 1_000, 1_001, random)
        published = {
            "joint": joint.draw(rows[None])[0],
            "split": split(rows, shares, epsilon, random),
            "recursive": recursive(rows, shares, epsilon, random),
        }
        for name, codes in published.items():
            found[name].append(float(np.mean(rank_errors(rows, shares, codes))))
    return {name: np.array(values) for name, values in found.items()}


def draw_seconds() -> None:
    """Seconds of a joint draw of nine quantiles beside the recursion, which is drawn in floats."""
    print("nine quantiles of 10,001 points, ε = 1: seconds a draw, median of 9")
    random = np.random.default_rng(1)
    shares = tuple(Fraction(j, 10) for j in range(1, 10))
    joint = JointQuantiles.fitted(ONE, 10_001, shares, 1, replaces=False)
    for count in (1_000, 100_000):
        rows = sample("skewed", count, 10_001, random)
        ours = median_seconds(lambda rows=rows: joint.draw(rows[None]), 9)  # type: ignore[misc] # a default binds the loop variable
        theirs = median_seconds(lambda rows=rows: recursive(rows, shares, 1.0, random), 9)  # type: ignore[misc] # as above
        met = "met" if ours <= 0.6 else "MISSED"
        print(f"  {count:>7,} rows{ours:8.3f} ≤ 0.6: {met}{theirs:8.3f}  ratio {ours / theirs:.1f}")


def geometric(epsilon: float, size: int, random: np.random.Generator) -> Floats:
    """Two-sided geometric noise of ratio e^-epsilon, from floats: for rivals only."""
    share = 1 - exp(-epsilon)
    both = random.geometric(share, (2, size)) - 1
    return np.asarray((both[0] - both[1]).astype(np.float64))


def means() -> None:
    """A mean from two sums beside a sum and a count that share ε."""
    print(f"mean of 0..1,000, ε = 1, add/remove: absolute error, {DRAWS:,} draws")
    high, random = 1_000, np.random.default_rng(1)
    mechanism = sums_of(binned("mean", (0, high, high), (0, high)), Relation.ADD_REMOVE)
    for rows, at in product((100, 1_000, 10_000), (100, 500, 900)):
        ours = _mean_errors(mechanism, np.array([float(at)]), rows, high)
        what = f"{rows:,} rows, true mean {at}"
        for rival, middle in (("sum and count, ε/2 each", 0), ("the same, sum of x - 500", 500)):
            reach = max(high - middle, middle)
            total = (at - middle) * rows + geometric(0.5 / reach, DRAWS, random)
            count = np.maximum(rows + geometric(0.5, DRAWS, random), 1)
            published = np.clip(middle + total / count, 0, high)
            show(what, ours, rival, Mean.of(np.abs(published - at)), 1.0)


PARTS: dict[str, Callable[[], None]] = {
    "heads": heads,
    "mode": modes,
    "top": tops,
    "quantile": one_quantile,
    "quantiles": many_quantiles,
    "draws": draw_seconds,
    "mean": means,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[*PARTS], default=[])
    only = parser.parse_args().only
    for name, part in PARTS.items():
        if not only or name in only:
            part()


if __name__ == "__main__":
    main()
