"""What each mechanism keeps, held against sums over its outcomes.

Mechanisms of scores and of counts are made here by the package that draws them, whose own tests
hold them against their exact chances: the least noise that it takes has to be just enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import ceil, exp, log
from random import Random
from typing import NamedTuple, TypeAlias

import pytest
from scipy.optimize import linprog

from dp_release_verify import forms
from dp_release_verify.canonical import SCALE, below_e
from dp_release_verify.errors import Refused
from dp_release_verify.losses import PARTS
from dp_release_verify.mechanisms.base import Mechanism
from dp_release_verify.mechanisms.bound import closed_bound
from dp_release_verify.mechanisms.gap_table import GapTable
from dp_release_verify.mechanisms.integers import Integers
from dp_release_verify.mechanisms.noise import UNIT, NoiseLaw
from dp_release_verify.mechanisms.rows import Channel, Modular
from dp_release_verify.mechanisms.selection import (
    JointQuantiles,
    PermuteAndFlip,
    QuantileTree,
    RatioSelection,
    TopCanonical,
    TopHistogram,
    TopPeeled,
    TwoCategories,
)
from dp_release_verify.mechanisms.sums import NoisySums
from dp_release_verify.reach import Reach
from release.exact.statistics import joint_quantiles, quantile_tree
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import NoisyHistogram
from release.exact.statistics.top.peeled import PeeledTop
from tests.verifier.questions import (
    WAYS,
    Plain,
    count_of_rows,
    of_rows,
    of_units,
    on_statistic,
    reach_of,
)

FILE = "mechanism.json"
EPSILONS = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)]
STEP = Fraction(1, 8)

Chances: TypeAlias = dict[int, Fraction]


def ratio_of(epsilon: Fraction) -> Fraction:
    return Fraction(below_e(epsilon), SCALE)


def keeps(mechanism: Mechanism, epsilon: Fraction | float) -> bool:
    """Whether it is pure at this ε."""
    found = mechanism.deltas(Fraction(epsilon))
    assert (found.probabilistic == 0) == (found.approximate == 0)
    return found.approximate == 0


def check_least_epsilon(mechanism: Mechanism, largest_ratio: Fraction | None) -> None:
    """It is pure from the logarithm of the largest ratio of two chances on, and not before."""
    if largest_ratio is None:
        assert not keeps(mechanism, 50)
    else:
        least = log(largest_ratio)
        assert keeps(mechanism, least + 1e-9)
        assert least < 1e-9 or not keeps(mechanism, least - 1e-9)


# ---- Noise on the integers

REPEATS = 40
BEYOND = Fraction(1, 2**28)
"""More than the last eight of so many repetitions of tails, which halve each time, and the rest."""


def random_noise(seed: int, *, is_even: bool, is_unimodal: bool) -> forms.Noise:
    """A few runs, mostly with tails of which each period is at most half the one before."""
    rng = Random(seed)  # noqa: S311 - laws of a test
    weights = [rng.randrange(1, 30) for _ in range(rng.randrange(2, 5))]
    if is_unimodal:
        weights.sort()
    lengths = [rng.randrange(1, 4) for _ in weights]
    left = forms.Tail(rng.randrange(1, lengths[0] + 1), UNIT * rng.randrange(1, 9) // 16)
    right = forms.Tail(1, UNIT * rng.randrange(1, 9) // 16)
    if is_even:
        lengths = [*lengths, rng.choice([1, 3]), *reversed(lengths)]
        weights = [*weights, weights[-1] + 1, *reversed(weights)]
        right = left
    else:
        lengths.append(1)
        weights.append(1)
    low = -(sum(lengths) // 2)
    if rng.random() < 0.2:
        return forms.Noise(low, lengths, weights)
    return forms.Noise(low, lengths, weights, left, right)


def chances_of(noise: forms.Noise) -> Chances:
    """The probability of each integer, by the words of the format page."""
    window = []
    for length, weight in zip(noise.lengths, noise.weights, strict=True):
        window += [weight] * length
    chances = {}
    for place, weight in enumerate(window):
        chance = Fraction(weight, sum(window))
        code = noise.low + place
        tail, side = None, 1
        if noise.left is not None and place < noise.left.period:
            tail, side = noise.left, -1
        if noise.right is not None and place >= len(window) - noise.right.period:
            tail = noise.right
        if tail is None:
            chances[code] = chance
            continue
        rho = Fraction(tail.ratio, UNIT)
        for times in range(REPEATS):
            chances[code + side * times * tail.period] = chance * (1 - rho) * rho**times
    return chances


def delta_of(chances: Chances, distances: Iterable[int], ratio: Fraction) -> Fraction:
    """The largest Σ max(0, f(k) − ratio·f(k ± s))."""
    worst = Fraction(0)
    for distance, sign in product(distances, (1, -1)):
        terms = (p - ratio * chances.get(k + sign * distance, 0) for k, p in chances.items())
        worst = max(worst, sum((max(Fraction(0), term) for term in terms), Fraction(0)))
    return worst


def largest_ratio_of(chances: Chances, distances: Iterable[int], near: int) -> Fraction | None:
    """The largest f(k)/f(k ± s) over |k| ≤ near, which shows it; none where it is infinite."""
    worst = Fraction(0)
    for distance, sign, k in product(distances, (1, -1), range(-near, near + 1)):
        if k not in chances:
            continue
        if k + sign * distance not in chances:
            return None
        worst = max(worst, chances[k] / chances[k + sign * distance])
    return worst


def is_one_hill(chances: Chances) -> bool:
    falls = []
    for k in range(min(chances) - 1, max(chances) + 1):
        here, there = chances.get(k, 0), chances.get(k + 1, 0)
        if here != there:
            falls.append(here > there)
    return falls == sorted(falls)


def integers(noise: forms.Noise, reach: Reach, found: forms.Found | None = None) -> Integers:
    ends = forms.Shifts([], [])
    return Integers(
        FILE, forms.IntegersLaw("dp-release/mechanism/v1", "integers", noise, ends), reach, found
    )


def noisy_sums(noise: forms.Noise, reach: Reach) -> NoisySums:
    return NoisySums(FILE, forms.SumsLaw("dp-release/mechanism/v1", "noisy_sums", noise), reach)


NOISE = [
    pytest.param(random_noise(seed, is_even=is_even, is_unimodal=is_unimodal), seed)
    for seed in range(6)
    for is_even in (True, False)
    for is_unimodal in (True, False)
]


@pytest.mark.parametrize(("noise", "seed"), NOISE)
def test_noise_keeps_the_delta_of_its_worst_distance(noise: forms.Noise, seed: int) -> None:
    chances = chances_of(noise)
    assert 1 - BEYOND < sum(chances.values()) <= 1
    distances = Random(seed).sample(range(1, 9), 1 + seed % 3)  # noqa: S311 - a test
    reach = reach_of(count_of_rows(20), rows=8)
    mechanism = integers(noise, reach, forms.Found(distances=distances))
    for epsilon in EPSILONS:
        exact = delta_of(chances, distances, ratio_of(epsilon))
        found = mechanism.deltas(epsilon)
        assert abs(found.approximate - exact) <= BEYOND
        # The tables of the ends can join outcomes.
        assert found.probabilistic == (found.approximate > 0)
    for far in distances:
        values = mechanism.exact_cell(far, STEP, Fraction(1))
        assert values is not None
        within = [each for each in distances if each <= far]
        for place in range(len(values) + 2):
            exact = delta_of(chances, within, ratio_of(place * STEP))
            value = values[min(place, len(values) - 1)]
            assert (exact - BEYOND) * PARTS <= value <= (exact + BEYOND) * PARTS + 1


@pytest.mark.parametrize(("noise", "seed"), NOISE)
def test_noise_is_described_as_it_is(noise: forms.Noise, seed: int) -> None:
    law, chances = NoiseLaw(FILE, noise), chances_of(noise)
    assert law.is_unimodal == is_one_hill(chances)
    assert law.is_symmetric == all(chances.get(-k) == p for k, p in chances.items())
    for power in range(3):
        # No noise is no error, also of the power 0.
        exact = sum(abs(k) ** power * p for k, p in chances.items() if k)
        assert exact <= law.moment(power) <= exact + 2**20 * BEYOND
    # One step loses its part of ε, so that a smaller change costs less.
    step = largest_ratio_of(chances, [1], 30)
    mechanism = integers(noise, reach_of(count_of_rows(20), rows=1 + seed % 3))
    far = max(mechanism.distances)
    if step is None:
        assert not mechanism.loses_in_proportion(Fraction(50))
    else:
        assert mechanism.loses_in_proportion(Fraction(far * (log(step) + 1e-9)))
        assert step == 1 or not mechanism.loses_in_proportion(Fraction(far * (log(step) - 1e-9)))


@pytest.mark.parametrize(("rows", "ways"), [(300, 1), (400, 2), (2000, 1)])
def test_a_change_of_many_periods_costs_as_many_steps(rows: int, ways: int) -> None:
    # The chance of k falls by 999/1000 with each step away from 0.
    ratio = UNIT * 999 // 1000
    tail = forms.Tail(1, ratio)
    noise = forms.Noise(-1, [1, 1, 1], [999, 1, 999], tail, tail)
    mechanism = integers(noise, reach_of(count_of_rows(10**4), rows=rows, ways=ways))
    assert mechanism.noise.is_far(mechanism.distances)
    check_least_epsilon(mechanism, Fraction(UNIT, ratio) ** rows)


@pytest.mark.parametrize(("noise", "seed"), NOISE)
@pytest.mark.parametrize("ways", WAYS)
def test_a_sum_is_pure_for_all_that_a_unit_moves(noise: forms.Noise, seed: int, ways: int) -> None:
    low, high = -(seed % 2), 1 + seed % 3
    plain = on_statistic("sum", clamp=[low, high])
    mechanism = noisy_sums(noise, reach_of(plain, ways=ways))
    most = high if ways == 1 else high - low
    check_least_epsilon(mechanism, largest_ratio_of(chances_of(noise), range(1, most + 1), 30))


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_two_sums_of_a_mean_lose_together(rows: int, ways: int) -> None:
    ratio = UNIT * 3 // 4
    tail = forms.Tail(1, ratio)
    noise = forms.Noise(-1, [1, 1, 1], [3, 1, 3], tail, tail)
    plain = on_statistic("mean", clamp=[-2, 3])
    mechanism = noisy_sums(noise, reach_of(plain, rows=rows, ways=ways))
    # A row lies 0 to 5 above the lower bound, and the rest of 5 below the upper.
    check_least_epsilon(mechanism, Fraction(UNIT, ratio) ** (5 * rows * ways))
    steeper = forms.Noise(-1, [1, 1, 1], [2, 1, 2], tail, tail)
    assert not keeps(noisy_sums(steeper, reach_of(plain, ways=ways)), 50)
    uneven = forms.Noise(-1, [1, 1, 1], [3, 1, 3], tail, forms.Tail(1, ratio - 1))
    assert not keeps(noisy_sums(uneven, reach_of(plain, ways=ways)), 50)


# ---- Laws that are written out


def deltas_of_pairs(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], ratio: Fraction
) -> tuple[Fraction, Fraction]:
    """The largest probabilistic and the largest approximate δ, of laws with one total."""
    above = excess = Fraction(0)
    for own, other in pairs:
        total = sum(own)
        both = list(zip(own, other, strict=True))
        above = max(above, Fraction(sum(p for p, q in both if p > ratio * q), total))
        terms = (max(Fraction(0), p - ratio * q) for p, q in both)
        excess = max(excess, sum(terms, Fraction(0)) / total)
    return above, excess


def check_written_out(
    mechanism: Mechanism, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> None:
    for epsilon in EPSILONS:
        found = mechanism.deltas(epsilon)
        exact = deltas_of_pairs(pairs, ratio_of(epsilon))
        assert (found.probabilistic, found.approximate) == exact
    values = mechanism.exact_cell(0, STEP, Fraction(1))
    assert values is not None
    for place in range(len(values) + 2):
        _, exact_delta = deltas_of_pairs(pairs, ratio_of(place * STEP))
        assert values[min(place, len(values) - 1)] == ceil(exact_delta * PARTS)


@pytest.mark.parametrize("seed", range(8))
def test_noise_in_a_group_keeps_the_delta_of_its_worst_difference(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - laws of a test
    sizes = (4, 3) if seed % 2 else (5,)
    parts = [
        on_statistic("mode", name=f"part{size}", domain={"cyclic": size}, count="rows")
        | {"noise": "on_answer"}
        for size in sizes
    ]
    plain = parts[0]
    if len(sizes) > 1:
        for part in parts:
            del part["guarantee"]
        plain = {"name": "own", "kind": "tuple", "of": [part["name"] for part in parts]}
        plain["guarantee"] = on_statistic("mode")["guarantee"]
    reach = reach_of(plain, *(parts if len(sizes) > 1 else []))
    elements = list(product(*(range(size) for size in sizes)))
    moved = rng.sample(elements[1:], 2)
    negative = [tuple(-c % n for c, n in zip(each, sizes, strict=True)) for each in moved]
    differences = sorted({*moved, *negative})
    weights = [rng.randrange(9) for _ in elements]
    mechanism = Modular(
        FILE,
        forms.ModularLaw("dp-release/mechanism/v1", "modular", weights),
        reach,
        forms.Found(differences=[list(each) for each in differences]),
    )
    of = dict(zip(elements, weights, strict=True))
    pairs = []
    for by in differences:
        sums = [zip(each, by, sizes, strict=True) for each in elements]
        pairs.append((weights, [of[tuple((a + b) % n for a, b, n in each)] for each in sums]))
    check_written_out(mechanism, pairs)


@pytest.mark.parametrize("moved", [[[1]], [[1], [4], [0]], [[1], [9]], [[1, 0], [4, 0]], []])
def test_differences_that_do_not_go_both_ways_are_refused(moved: list[list[int]]) -> None:
    plain = on_statistic("mode", domain={"cyclic": 5}, count="rows", noise="on_answer")
    law = forms.ModularLaw("dp-release/mechanism/v1", "modular", [4, 1, 1, 1, 1])
    mechanism = Modular(FILE, law, reach_of(plain), forms.Found(differences=moved))
    with pytest.raises(Refused):
        mechanism.deltas(Fraction(1))


@pytest.mark.parametrize("seed", range(8))
def test_a_channel_keeps_the_delta_of_its_worst_neighbors(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - laws of a test
    size = 5
    rows = []
    for _ in range(size):
        cuts = sorted(rng.sample(range(1, 64), size - 1))
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, 64], strict=True)])
    distances = rng.sample(range(1, size), 2)
    mechanism = Channel(
        FILE,
        forms.ChannelLaw("dp-release/mechanism/v1", "channel", rows),
        reach_of(count_of_rows(size - 1)),
        forms.Found(distances=distances),
    )
    pairs = [
        (rows[a], rows[b]) for a, b in product(range(size), repeat=2) if abs(a - b) in distances
    ]
    check_written_out(mechanism, pairs)


# ---- Choices among scores


@pytest.mark.parametrize("seed", range(20))
def test_a_table_of_gaps_is_pure_for_every_change_of_a_vote(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - laws of a test
    size, cap = 3, 2 + seed % 3
    total = 2**62 - 4
    rows = []
    of: dict[tuple[int, ...], dict[int, int]] = {}
    for rest in combinations_with_replacement(range(cap + 1), size - 1):
        state = (0, *rest)
        wanted = {gap: exp(-gap * 0.4) * rng.uniform(0.8, 1) for gap in sorted(set(state))}
        unit = total / sum(wanted[gap] for gap in state)
        by_gap = {gap: int(wanted[gap] * unit) for gap in wanted}
        # The gap that occurs once takes what is left over; else all are even.
        single = next((gap for gap in state if state.count(gap) == 1), None)
        if single is not None:
            by_gap[single] += total - sum(by_gap[gap] for gap in state)
        of[state] = by_gap
        rows.append([by_gap[gap] for gap in state])

    def weights_of(scores: Sequence[int]) -> list[int]:
        gaps = [min(max(scores) - each, cap) for each in scores]
        return [of[tuple(sorted(gaps))][gap] for gap in gaps]

    worst = Fraction(0)
    for below in product(range(cap + 6), repeat=size):
        before = weights_of([-each for each in below])
        for rises, falls in permutations(range(size + 1), 2):
            moved = [(place == rises) - (place == falls) - each for place, each in enumerate(below)]
            for p, q in zip(before, weights_of(moved), strict=True):
                worst = max(worst, Fraction(p, q), Fraction(q, p))
    plain = of_rows("mode")
    law = forms.GapLaw("dp-release/mechanism/v1", "gap_table", cap, rows)
    check_least_epsilon(GapTable(FILE, law, reach_of(plain, ways=2)), worst)


FIVE = {"cyclic": 5}
TOP: Plain = {"domain": FIVE, "k": 2, "counts": False, "histogram": False}
SHARES = (Fraction(1, 10), Fraction(1, 2))
QUANTILES = on_statistic("quantiles", at=["0.1", "0.5"], domain={"ordered": {"min": 0, "max": 6}})


def bounds_of_rows(rows: int, ways: int) -> CountBounds:
    return CountBounds(5, 1, rows, is_replaced=ways == 2)


def bounds_of_units(rows: int, ways: int) -> CountBounds:
    return CountBounds(5, rows, 1, is_replaced=ways == 2)


def ratio_law(family: str) -> Callable[[int], forms.RatioLaw]:
    return lambda ratio: forms.RatioLaw("dp-release/mechanism/v1", family, ratio)


def tree_law(block: int) -> Callable[[int], forms.TreeLaw]:
    return lambda ratio: forms.TreeLaw("dp-release/mechanism/v1", "quantile_tree", ratio, block)


def tree_ratio(block: int) -> Callable[[Fraction, int, int], int]:
    def ratio(epsilon: Fraction, rows: int, ways: int) -> int:
        made = quantile_tree.QuantileTree.fitted(
            epsilon, 7, SHARES, rows, block, replaces=ways == 2
        )
        return made.ratio

    return ratio


def joint_ratio(epsilon: Fraction, rows: int, ways: int) -> int:
    made = joint_quantiles.JointQuantiles.fitted(epsilon, 7, SHARES, rows, replaces=ways == 2)
    return made.ratio


class Choice(NamedTuple):
    """A family, how its law is written, a question, and the least ratio of an ε, rows and ways."""

    family: type[RatioSelection]
    law: Callable[[int], forms.RatioLaw | forms.TreeLaw]
    question: Plain
    least_ratio: Callable[[Fraction, int, int], int]


CHOICES: dict[str, Choice] = {
    "median": Choice(
        PermuteAndFlip,
        ratio_law("permute_and_flip"),
        on_statistic("median"),
        # One row moves the score of an answer by 1 one way or the other; of two, one may go.
        lambda epsilon, rows, ways: least_ratio(epsilon, 2 * rows * ways),
    ),
    "histogram of rows": Choice(
        TopHistogram,
        ratio_law("top_histogram"),
        of_rows("top", **TOP),
        lambda epsilon, *unit: NoisyHistogram.fitted(epsilon, bounds_of_rows(*unit)).ratio,
    ),
    "histogram of units": Choice(
        TopHistogram,
        ratio_law("top_histogram"),
        of_units("top", **TOP),
        lambda epsilon, *unit: NoisyHistogram.fitted(epsilon, bounds_of_units(*unit)).ratio,
    ),
    "sets of rows": Choice(
        TopCanonical,
        ratio_law("top_canonical"),
        of_rows("top", **TOP),
        lambda epsilon, *unit: CanonicalTop.fitted(epsilon, bounds_of_rows(*unit), 2).ratio,
    ),
    "sets of units": Choice(
        TopCanonical,
        ratio_law("top_canonical"),
        of_units("top", **TOP),
        lambda epsilon, *unit: CanonicalTop.fitted(epsilon, bounds_of_units(*unit), 2).ratio,
    ),
    "one after the other": Choice(
        TopPeeled,
        ratio_law("top_peeled"),
        of_rows("top", **TOP),
        lambda epsilon, *unit: PeeledTop.fitted(epsilon, bounds_of_rows(*unit), 2).ratio,
    ),
    "quantiles together": Choice(
        JointQuantiles,
        ratio_law("joint_quantiles"),
        QUANTILES,
        joint_ratio,
    ),
    "tree of single answers": Choice(QuantileTree, tree_law(1), QUANTILES, tree_ratio(1)),
    "tree of blocks": Choice(QuantileTree, tree_law(3), QUANTILES, tree_ratio(3)),
}


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(3)])
@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", CHOICES)
def test_the_least_noise_of_a_choice_is_just_enough(
    name: str, rows: int, ways: int, epsilon: Fraction
) -> None:
    choice = CHOICES[name]
    law = choice.law(choice.least_ratio(epsilon, rows, ways))
    mechanism = choice.family(FILE, law, reach_of(choice.question, rows=rows, ways=ways))
    assert keeps(mechanism, epsilon)
    assert not keeps(mechanism, epsilon * Fraction(9999, 10000))


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(3)])
def test_a_choice_of_two_costs_what_one_vote_moves(epsilon: Fraction) -> None:
    plain = of_rows("mode", domain={"cyclic": 2})
    law = ratio_law("two_categories")(least_ratio(epsilon, 1))
    mechanism = TwoCategories(FILE, law, reach_of(plain, ways=2))
    assert keeps(mechanism, epsilon)
    assert not keeps(mechanism, epsilon * Fraction(9999, 10000))


# ---- Bounds


def least_loss(most: int, degree: int, centre: Fraction, epsilon: float) -> float:
    """The least Σ abs(z + centre)^degree·f(z) of noise for the distances 1 … most, by a program.

    Beyond a window it falls by e^-ε with each period of ``most``, as noise of this kind may.
    """
    window = range(-12 * most, 12 * most + 1)
    fall = exp(-epsilon)
    cost, whole = [], []
    for z in window:
        is_end = abs(z) > 12 * most - most
        repeats = range(400 if is_end else 1)
        side = most if z > 0 else -most
        moments = [fall**t * abs(z + t * side + centre) ** degree for t in repeats]
        cost.append(float(sum(moments)) if degree else float(z + centre != 0) * sum(moments))
        whole.append(sum(fall**t for t in repeats))
    rows = []
    for (i, z), (j, other) in product(enumerate(window), repeat=2):
        if 0 < abs(z - other) <= most:
            row = [0.0] * len(window)
            row[i], row[j] = 1.0, -exp(epsilon)
            rows.append(row)
    found = linprog(cost, A_ub=rows, b_ub=[0.0] * len(rows), A_eq=[whole], b_eq=[1.0])
    return float(found.fun)


@pytest.mark.parametrize("unit", [1, 2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize(("most", "epsilon"), [(1, 1), (2, Fraction(1, 2)), (3, 2), (3, 4)])
def test_no_noise_is_better_than_the_closed_bound(
    most: int, epsilon: Fraction, degree: int, unit: int
) -> None:
    distances = {unit * each for each in range(1, most + 1)}
    bound = float(closed_bound(distances, degree, Fraction(epsilon), Fraction(0)))
    # Changes are multiples of the unit, so noise is best on the multiples plus one remainder.
    losses = [
        unit**degree * least_loss(most, degree, Fraction(rest, unit), float(epsilon))
        for rest in range(unit)
    ]
    # The program keeps each of its rows to 10^-7.
    assert bound <= min(losses) * (1 + 1e-4)
    if degree < 2 or unit == 1:
        assert bound >= min(losses) * (1 - 1e-4)
