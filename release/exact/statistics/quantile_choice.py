"""Whether several quantiles are drawn together or read off noisy counts, from declared sizes only.

The choice is published, so it may not depend on the table. It decides how near the quantiles are to
their ranks and nothing about the guarantee. Figures are in docs/design/quantiles-proof.md, section
5; ``research/studies/quantile_tree.py`` measures them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import fmean

from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.quantile_tree import QuantileTree

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
    tree = QuantileTree.best(epsilon, candidates, shares, rows, replaces=replaces)
    joint = JointQuantiles.fitted(epsilon, candidates, shares, rows, replaces=replaces)
    variance = fmean(tree.variances)
    is_less = variance <= _LESS * fmean(joint.variances)
    is_large = total is None or total >= _FEWEST * math.sqrt(variance)
    return QuantileTree.family if is_less and is_large else JointQuantiles.family
