"""Quantiles of noisy counts: private by exact ratios, estimated by least squares, well chosen."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.numbers import exp_bounds
from release.exact.statistics import quantile_tree
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.quantile_choice import best_quantiles
from release.exact.statistics.quantile_tree import QuantileTree, read_off
from research.studies.quantile_tree import rank_error
from tests.exact.statistics.test_joint_quantiles import neighbors, tables
from tests.exact.statistics.top.tables import fixed_source, power

ONE = Fraction(1)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
DECILES = tuple(Fraction(j, 10) for j in range(1, 10))


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("replaces", [False, True])
def test_no_noisy_count_is_more_likely_from_a_neighbor_than_promised(
    block: int, replaces: bool
) -> None:
    """Over all tables of three rows at four points: the ratios of all counts of all levels."""
    tree = QuantileTree.fitted(ONE, 4, QUARTILES, 1, block, replaces=replaces)
    assert tree.satisfies(ONE)
    assert not tree.satisfies(ONE * (1 - Fraction(1, 10**12)))
    masses = [tree.noise.mass(at) for at in range(-6, 7)]
    shifted = {
        shift: max(
            max(masses[at] / masses[at + shift], masses[at + shift] / masses[at])
            for at in range(len(masses) - shift)
        )
        for shift in range(3)
    }
    worst = ONE
    for table in tables(4, 3):
        for neighbor in neighbors(table, replaces=replaces):
            ratio = ONE
            for size in {1, block}:
                for start in range(0, 4, size):
                    change = sum(table[start : start + size]) - sum(neighbor[start : start + size])
                    ratio *= shifted[abs(change)]
            worst = max(worst, ratio)
    promised = power(tree.ratio, (1 + replaces) * len({1, block}))
    assert worst <= promised < worst * (1 + Fraction(1, 10**12))
    # Not by the tree's own word: the ratio of a forgotten factor would be that of another ε.
    low, high = exp_bounds(ONE)
    assert low * (1 - Fraction(1, 10**12)) < worst <= high


@pytest.mark.parametrize("block", [1, 2])
def test_a_tree_loses_in_proportion_where_it_is_private(block: int) -> None:
    """A row moves as many counts whichever it is; a unit of two rows loses half of ε for each."""
    tree = QuantileTree.fitted(ONE, 4, QUARTILES, 2, block, replaces=False)
    assert tree.loses_in_proportion(ONE)
    assert not tree.loses_in_proportion(ONE * (1 - Fraction(1, 10**12)))
    one_row = QuantileTree(4, QUARTILES, 1, False, block, tree.ratio)
    assert one_row.satisfies(ONE / 2)
    assert (tree.inputs, tree.outputs) == (4, 3)


@pytest.mark.parametrize("block", [2, 3, 4])
def test_estimates_are_those_of_least_squares(block: int) -> None:
    """Against a solver of the whole system; the last block is smaller where 7 is no multiple."""
    tree = QuantileTree.fitted(ONE, 7, QUARTILES, 1, block, replaces=False)
    rows = np.array([[3, 0, 9, 1, 4, 4, 8]])
    source = fixed_source(block)
    estimated = tree._estimated(rows, source)[0]
    again = fixed_source(block)
    starts = list(range(0, 7, block))
    points = rows[0] + tree.noise.draw(7, again)
    blocks = np.add.reduceat(rows[0], starts) + tree.noise.draw(len(starts), again)
    system = np.vstack([np.eye(7), np.zeros((len(starts), 7))])
    for place, start in enumerate(starts):
        system[7 + place, start : start + block] = 1
    solved = np.linalg.lstsq(system, np.concatenate([points, blocks]), rcond=None)[0]
    assert np.allclose(estimated, solved)


def test_without_blocks_each_count_is_noisy_once() -> None:
    """A second noisy count of the same rows would be paid for by nothing."""
    tree = QuantileTree.fitted(ONE, 5, QUARTILES, 1, 1, replaces=False)
    rows = np.array([[3, 0, 9, 1, 4], [0, 0, 7, 7, 0]])
    noise = tree.noise.draw(10, fixed_source(6)).reshape(2, 5)
    assert tree._estimated(rows, fixed_source(6)).tolist() == (rows + noise).tolist()


@pytest.mark.parametrize("replaces", [False, True])
def test_the_spread_is_that_of_joint_quantiles(replaces: bool) -> None:
    """Of quartiles and two rows: a row moves 8 where it is replaced, and else two less."""
    tree = QuantileTree.fitted(ONE, 5, QUARTILES, 2, 1, replaces=replaces)
    joint = JointQuantiles.fitted(ONE, 5, QUARTILES, 2, replaces=replaces)
    assert tree.spread == joint.spread == (16 if replaces else 12)


def test_cells_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = QuantileTree.fitted(ONE, 4, QUARTILES, 1, 2, replaces=False)
    for turn, chunk in enumerate((1, 4, 8, 100)):
        monkeypatch.setattr(quantile_tree, "_CHUNK", chunk)
        # So many rows at one point that all quantiles lie there, at others in every turn.
        places = np.roll([3, 0, 2, 1, 1], -turn)
        drawn = tree.draw(10**6 * np.eye(4, dtype=np.int64)[places], fixed_source(chunk))
        assert drawn.tolist() == [[place] * 3 for place in places.tolist()]


HALVES = st.integers(-9, 18).map(lambda twice: twice / 2)


@given(
    st.integers(2, 7).flatmap(
        lambda size: st.lists(
            st.lists(HALVES, min_size=size, max_size=size), min_size=1, max_size=3
        )
    )
)
def test_quantiles_are_where_the_middle_of_the_sums_reaches_their_share(
    tables: list[list[float]],
) -> None:
    """By the definition, cell by cell, of totals below 0 and between 0 and 1 as well."""
    codes = read_off(np.array(tables), DECILES).tolist()
    for counts, found in zip(tables, codes, strict=True):
        sums = list(accumulate(map(Fraction, counts)))
        middles = [(max(sums[: at + 1]) + min(sums[at:])) / 2 for at in range(len(sums))]
        for share, code in zip(DECILES, found, strict=True):
            reached = [
                at
                for at, middle in enumerate(middles)
                if middle >= share * max(Fraction(0), sums[-1])
            ]
            assert code == min(reached, default=len(sums) - 1)


@given(st.lists(st.integers(-5, 9), min_size=2, max_size=12))
def test_what_is_read_off_does_not_descend(counts: list[int]) -> None:
    codes = read_off(np.array([counts], dtype=np.float64), DECILES)[0]
    assert (np.diff(codes) >= 0).all()
    assert codes.min() >= 0
    assert codes.max() < len(counts)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(any))
def test_without_noise_the_quantiles_themselves_are_read_off(counts: list[int]) -> None:
    codes = read_off(np.array([counts], dtype=np.float64), DECILES)[0]
    values = np.repeat(np.arange(len(counts)), counts)
    for share, code in zip(DECILES, codes.tolist(), strict=True):
        assert code == values[-(-share.numerator * values.size // share.denominator) - 1]


def test_the_variance_that_decides_is_that_of_the_draws() -> None:
    """Distances from the rank on a large even table, for a histogram and for blocks."""
    points, rows = 60, 1000
    table = np.full((1, points), rows)
    for block in (1, 7):
        tree = QuantileTree.fitted(Fraction(1, 2), points, QUARTILES, 1, block, replaces=False)
        drawn = tree._estimated(np.repeat(table, 4000, axis=0), fixed_source(5))
        total = drawn.sum(axis=1)
        variances = []
        for share in QUARTILES:
            # Shares of whole blocks and within one, as the formula takes them on average.
            ends = int(share * points) + np.arange(block)
            for end in ends.tolist():
                off = drawn[:, :end].sum(axis=1) - float(Fraction(end, points)) * total
                variances.append(off.var())
        expected = fmean(tree.variances)
        assert abs(np.mean(variances) / expected - 1) < 0.1, block


@pytest.mark.parametrize(("block", "blocks"), [(1, 6), (2, 4), (3, 2), (4, 2)])
def test_the_variance_in_rank_is_that_of_the_system_of_counts(block: int, blocks: int) -> None:
    """Of least squares the covariances are the inverse of the normal matrix."""
    points = block * blocks
    tree = QuantileTree.fitted(ONE, points, (ONE / 2,), 1, block, replaces=False)
    system = np.eye(points)
    if block > 1:
        system = np.vstack([system, np.kron(np.eye(blocks), np.ones(block))])
    covariances = np.linalg.inv(system.T @ system)
    # Rows below the middle less half of all; then k points of a block less their share of it.
    half = np.repeat([1 / 2, -1 / 2], points // 2)
    variance = half @ covariances @ half
    for below in range(block):
        part = np.zeros(points)
        part[:block] = -below / block
        part[:below] += 1
        variance += part @ covariances @ part / block
    noise = float(tree.noise.moment(2))
    assert tree.variances == pytest.approx([noise * variance], rel=1e-9)


def test_the_variance_of_a_joint_draw_is_that_of_a_bridge() -> None:
    """Steps S_1, S_2, … less their share of the last sum: of variance 2b² each, independent."""
    for shares in (QUARTILES, DECILES, (ONE / 3,)):
        joint = JointQuantiles.fitted(ONE, 50, shares, 2, replaces=True)
        steps = len(shares) + 1
        expected = []
        for at in range(1, steps):
            weights = [1 - at / steps] * at + [-at / steps] * (steps - at)
            expected.append(2 * joint.row_scale**2 * sum(weight**2 for weight in weights))
        assert joint.variances == pytest.approx(expected, rel=1e-12)


def test_the_choice_rests_on_sizes() -> None:
    def chosen(points: int, shares: tuple[Fraction, ...], total: int | None = None) -> str:
        return best_quantiles(ONE, points, shares, 1, total, replaces=False)

    assert chosen(16, DECILES) == chosen(16, DECILES, 100) == "quantile_tree"
    assert chosen(1024, DECILES) == chosen(16, DECILES, 5) == "joint_quantiles"
    assert chosen(64, QUARTILES) == chosen(10**6, QUARTILES) == "joint_quantiles"
    assert chosen(1, QUARTILES) == "joint_quantiles"
    assert QuantileTree.best(ONE, 16, DECILES, 1, replaces=False).block == 1
    assert 8 < QuantileTree.best(ONE, 1024, DECILES, 1, replaces=False).block < 64


@pytest.mark.parametrize("points", [2, 3, 4, 5, 16, 40, 200])
def test_a_tree_has_the_block_of_least_variance(points: int) -> None:
    """The noise of all counts that lie below a point, with blocks of every size."""
    ratio = QuantileTree.fitted(ONE, points, QUARTILES, 1, 1, replaces=False).ratio / RATIO_ONE
    best = QuantileTree.best(ONE, points, QUARTILES, 1, replaces=False)
    assert 1 <= best.block <= max(1, points // 2)
    plain = 2 * ratio / (1 - ratio) ** 2 * points * (3 / 16 + 4 / 16 + 3 / 16) / 3
    least = plain
    for block in range(2, points // 2 + 1 if points > 3 else 2):
        halved = QuantileTree.fitted(ONE, points, QUARTILES, 1, block, replaces=False)
        own = halved.ratio / RATIO_ONE
        within = sum(k * (block - k) / block for k in range(block)) / block
        across = points / block * block / (block + 1) * (10 / 48)
        least = min(least, 2 * own / (1 - own) ** 2 * (across + within))
    assert fmean(best.variances) == pytest.approx(least, rel=1e-9)


def test_a_tree_is_taken_where_it_errs_by_a_quarter_less_and_cells_are_large() -> None:
    families = set()
    # The variances are as 0.68 to 1 at 150 points, as 0.79 at 200 and as 0.97 at 300.
    for points in (*range(2, 20), 60, 100, 150, 200, 300, 1000):
        tree = QuantileTree.best(ONE, points, DECILES, 1, replaces=False)
        joint = JointQuantiles.fitted(ONE, points, DECILES, 1, replaces=False)
        variance = fmean(tree.variances)
        is_less = variance <= 0.75 * fmean(joint.variances)
        rows = math.ceil(4 * math.sqrt(variance))
        chosen = [
            best_quantiles(ONE, points, DECILES, 1, total, replaces=False)
            for total in (None, rows, rows - 1)
        ]
        expected = "quantile_tree" if is_less else "joint_quantiles"
        assert chosen == [expected, expected, "joint_quantiles"]
        families.add(expected)
    assert len(families) == 2


def test_the_variance_of_a_joint_draw_is_that_of_its_draws() -> None:
    joint = JointQuantiles.fitted(ONE, 1000, DECILES, 1, replaces=False)
    rows = np.full((80, 1000), 1)
    drawn = joint.draw(rows, fixed_source(9))
    off = drawn + 0.5 - 1000 * np.array(list(map(float, DECILES)))
    assert abs((off**2).mean() / fmean(joint.variances) - 1) < 0.25


def test_of_few_points_it_is_nearer_than_a_joint_draw() -> None:
    """Nine quantiles of 1,000 rows on 16 points: less than half the distance in rank."""
    random = np.random.default_rng(16)
    rows = np.stack([np.bincount(random.integers(0, 16, 1000), minlength=16) for _ in range(20)])
    tree = QuantileTree.fitted(ONE, 16, DECILES, 1, 1, replaces=False)
    joint = JointQuantiles.fitted(ONE, 16, DECILES, 1, replaces=False)
    off = rank_error(rows, DECILES, tree.draw(rows, random.bytes))
    assert off < rank_error(rows, DECILES, joint.draw(rows, random.bytes)) / 2


@pytest.mark.parametrize(
    ("candidates", "shares", "block", "ratio"),
    [
        (1, QUARTILES, 1, RATIO_ONE // 2),
        (4, QUARTILES, 4, RATIO_ONE // 2),
        (4, QUARTILES, 0, RATIO_ONE // 2),
        (4, QUARTILES[::-1], 1, RATIO_ONE // 2),
        (4, (), 1, RATIO_ONE // 2),
        (4, (Fraction(1),), 1, RATIO_ONE // 2),
        (4, QUARTILES, 1, RATIO_ONE),
    ],
)
def test_what_is_no_tree_is_refused(
    candidates: int, shares: tuple[Fraction, ...], block: int, ratio: int
) -> None:
    with pytest.raises(ValueError, match=r"tree|shares|ratio"):
        QuantileTree(candidates, shares, 1, False, block, ratio)


def test_a_tree_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="a tree needs"):
        QuantileTree(4, QUARTILES, 0, False, 1, RATIO_ONE // 2)


def test_a_table_of_another_shape_is_refused() -> None:
    tree = QuantileTree.fitted(ONE, 4, QUARTILES, 1, 1, replaces=False)
    for shape in product((2,), (3, 5)):
        with pytest.raises(ValueError, match="column for each candidate"):
            tree.draw(np.zeros(shape, dtype=np.int64))
