"""Whether several quantiles are drawn together or read off noisy counts, from declared sizes only.

The choice is published, so it may not depend on the table. It decides how near the quantiles are to
their ranks and nothing about the guarantee. Figures are in docs/design/quantiles-proof.md, section
5; ``research/studies/quantile_tree.py`` measures them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.quantile_tree import QuantileTree

_LARGEST_BLOCK = 4096

_LESS = 3 / 4
"""A tree is taken where its variance is at most so much of that of a joint draw."""

_FEWEST = 4
"""It is taken where a cell has at least so many times its standard deviation in rows."""


def best_quantiles(
    epsilon: Fraction,
    candidates: int,
    shares: tuple[Fraction, ...],
    rows: int,
    total: int | None = None,
    *,
    replaces: bool,
) -> str:
    """The family to use, where a unit has at most ``rows`` rows.

    ``total`` is the number of rows of a cell, declared by order of magnitude. Without it cells are
    taken to be large.

    Raises:
        ValueError: ε is too small for 64 bits.
    """
    if candidates < 2:
        return JointQuantiles.family
    tree = best_tree(epsilon, candidates, shares, rows, replaces=replaces)
    joint = JointQuantiles.fitted(epsilon, candidates, shares, rows, replaces=replaces)
    variance = mean(variances_in_rank(tree))
    is_less = variance <= _LESS * mean(joint_variances(joint))
    is_large = total is None or total >= _FEWEST * math.sqrt(variance)
    return QuantileTree.family if is_less and is_large else JointQuantiles.family


def best_tree(
    epsilon: Fraction, candidates: int, shares: tuple[Fraction, ...], rows: int, *, replaces: bool
) -> QuantileTree:
    """The tree of least variance: with noise on the candidates' rows alone, or with blocks.

    Raises:
        ValueError: ε is too small for 64 bits.
    """
    about = epsilon, candidates, shares, rows
    plain = QuantileTree.fitted(*about, 1, replaces=replaces)
    if candidates < 4:
        return plain
    # Blocks halve what ε is left for each count, whatever their size is.
    crossing = mean([float(share * (1 - share)) for share in shares])
    sizes = range(2, min(candidates // 2, _LARGEST_BLOCK) + 1)
    block = min(sizes, key=lambda size: _in_blocks(candidates, size, crossing))
    split = QuantileTree.fitted(*about, block, replaces=replaces)
    return min(plain, split, key=lambda tree: mean(variances_in_rank(tree)))


def variances_in_rank(tree: QuantileTree) -> list[float]:
    """The variance of the noise of each quantile in rank, in rows, where rows are spread evenly.

    It is that of the rows below a point less their share of all rows. Counts before the point weigh
    1 - share in it, and those after it -share.
    """
    ratio = tree.ratio / RATIO_ONE
    variance = 2 * ratio / (1 - ratio) ** 2
    variances = []
    for share in tree.shares:
        crossing = float(share * (1 - share))
        counts = tree.candidates * crossing
        if tree.block > 1:
            counts = _in_blocks(tree.candidates, tree.block, crossing)
        variances.append(variance * counts)
    return variances


def _in_blocks(candidates: int, block: int, crossing: float) -> float:
    """The variance in those of one count.

    By least squares a block's sum has the variance block/(block + 1). Within the block of the
    quantile k of its points lie below: they add k·(block - k)/block, here the mean over k.
    """
    across = block / (block + 1) * (candidates / block) * crossing
    return across + (block**2 - 1) / (6 * block)


def joint_variances(joint: JointQuantiles) -> list[float]:
    """The same of joint quantiles, whose distances from the ranks are a bridge of Laplace steps.

    There is one step more than there are shares.
    """
    steps = len(joint.shares) + 1
    return [2 * joint.row_scale**2 * at * (steps - at) / steps for at in range(1, steps)]


def mean(numbers: list[float]) -> float:
    """The mean of one number or more."""
    return sum(numbers) / len(numbers)
