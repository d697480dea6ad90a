"""Several quantiles read off noisy counts, beside quantiles that are drawn together.

*Question.* Where is a tree of noisy counts nearer to the ranks than joint quantiles, and do
declared sizes tell?

*Method.* Even and lognormal rows on a grid, even shares, both relations. A setting compares joint
quantiles, the tree that a release would take (noise on the points, or on points and blocks), and
the best in hindsight of deeper trees: parts of two, four or sixteen, even parts of ε or parts that
grow by 2^(1/3) from level to level, and the plain histogram. Rank errors are means over the same
tables. The rule of ``release.exact.statistics.quantile_choice`` sees ε, the points, the shares, the
relation and the number of rows.

*Finding.* A tree is better where points are few beside quantiles, not where rows are few: see
docs/design/quantiles-proof.md, section 5. The figures there are those that this prints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.quantile_choice import best_quantiles
from release.exact.statistics.quantile_tree import QuantileTree, read_off

POINTS = (16, 64, 256, 1024)
ROWS = (10, 30, 100, 300, 1000)
QUANTILES = (3, 9)
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
TABLES = 40
GROWTHS = (1.0, 2 ** (1 / 3))

_SMALL = 0.02
"""Added to both errors of a ratio, so that it means something where both are nearly 0."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """What is asked, of which rows."""

    kind: str
    replaces: bool
    points: int
    rows: int
    quantiles: int
    epsilon: Fraction

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Even shares."""
        return tuple(Fraction(j, self.quantiles + 1) for j in range(1, self.quantiles + 1))

    def __str__(self) -> str:
        relation = "replace" if self.replaces else "add or remove"
        return (
            f"{self.kind:6} {relation:13} points {self.points:4} rows {self.rows:4} "
            f"m = {self.quantiles} ε = {float(self.epsilon):3}"
        )


@dataclass(frozen=True)
class Errors:
    """Mean distances in rank, and what the rule takes."""

    joint: float
    tree: float
    hindsight: float
    chosen: str

    @property
    def ratio(self) -> float:
        """The tree's error over that of joint quantiles."""
        return (self.tree + _SMALL) / (self.joint + _SMALL)

    @property
    def of_choice(self) -> float:
        """The chosen one's error over the other one's."""
        return self.ratio if self.chosen == QuantileTree.family else 1 / self.ratio


def samples(setting: Setting, random: np.random.Generator) -> Codes:
    """The rows at each point of so many tables, shape (tables, points)."""
    points, shape = setting.points, (TABLES, setting.rows)
    even = random.uniform(0, points, shape)
    skewed = points / 8 * random.lognormal(0, 0.6, shape)
    values = np.clip(even if setting.kind == "even" else skewed, 0, points - 1).astype(np.int64)
    return np.stack([np.bincount(row, minlength=points) for row in values])


def levels_below(points: int, parts: int) -> int:
    """How many levels a tree has below its root; 0 where the parts do not fit."""
    levels, reached = 0, 1
    while reached < points:
        levels, reached = levels + 1, reached * parts
    return levels if reached == points else 0


def deep_counts(
    tables: Codes,
    parts: int,
    growth: float,
    spent: float,
    random: np.random.Generator,
) -> Floats:
    """Estimated rows at each point from noisy counts of all levels, shape (tables, points).

    ``spent`` is ε over the sum by which a unit moves the counts of a level.
    """
    count, points = tables.shape
    levels = levels_below(points, parts)
    weights = growth ** np.arange(levels)
    ratios = np.exp(-spent * weights / weights.sum())
    variances = 2 * ratios / (1 - ratios) ** 2
    noisy = []
    for level in range(1, levels + 1):
        true = tables.reshape(count, parts**level, -1).sum(axis=2)
        chance = 1 - ratios[level - 1]
        noise = random.geometric(chance, true.shape) - random.geometric(chance, true.shape)
        noisy.append((true + noise).astype(np.float64))
    # Upwards: the best estimate of each part from what lies below it and its own count.
    estimates, precision = [noisy[-1]], 1 / variances[-1]
    for level in range(levels - 2, -1, -1):
        below = estimates[0].reshape(count, parts ** (level + 1), parts).sum(axis=2)
        own, summed = 1 / variances[level], precision / parts
        precision = own + summed
        estimates.insert(0, (own * noisy[level] + summed * below) / precision)
    # Downwards: what a part has more than its own parts together is shared out evenly.
    final = estimates[0]
    for level in range(1, levels):
        lower = estimates[level].reshape(count, parts**level, parts)
        rest = (final - lower.sum(axis=2)) / parts
        final = (lower + rest[:, :, None]).reshape(count, -1)
    return np.asarray(final)


def rank_error(tables: Codes, shares: tuple[Fraction, ...], published: Codes) -> float:
    """The mean number of rows between what is published and the rank of its share."""
    above = np.cumsum(tables, axis=1)
    ranks = above[:, -1:] * np.array(list(map(float, shares)))
    up_to = np.take_along_axis(above, published, axis=1)
    below = up_to - np.take_along_axis(tables, published, axis=1)
    return float(np.maximum(0, np.maximum(below - ranks, ranks - up_to)).mean())


def compared(setting: Setting) -> Errors:
    """The errors of one setting."""
    numbers = setting.rows, setting.points, setting.quantiles, int(4 * setting.epsilon)
    random = np.random.default_rng([*numbers, setting.replaces])
    tables, shares, moved = samples(setting, random), setting.shares, 1 + setting.replaces
    epsilon, points = setting.epsilon, setting.points
    joint = JointQuantiles.fitted(epsilon, points, shares, 1, replaces=setting.replaces)
    tree = QuantileTree.best(epsilon, points, shares, 1, replaces=setting.replaces)
    deep = []
    for parts, growth in product((2, 4, 16, points), GROWTHS):
        if levels_below(points, parts):
            counts = deep_counts(tables, parts, growth, float(epsilon) / moved, random)
            deep.append(rank_error(tables, shares, read_off(counts, shares)))
    return Errors(
        rank_error(tables, shares, joint.draw(tables, random.bytes)),
        rank_error(tables, shares, tree.draw(tables, random.bytes)),
        min(deep),
        best_quantiles(epsilon, points, shares, 1, setting.rows, replaces=setting.replaces),
    )


def main() -> None:
    """Print a line for each setting, and what the rule gains and loses over all of them."""
    measured = []
    for kind, replaces, points, rows in product(("even", "skewed"), (False, True), POINTS, ROWS):
        for quantiles, epsilon in product(QUANTILES, EPSILONS):
            setting = Setting(kind, replaces, points, rows, quantiles, epsilon)
            errors = compared(setting)
            measured.append(errors)
            figures = f"joint {errors.joint:6.2f} tree {errors.tree:6.2f} ({errors.hindsight:.2f})"
            print(f"{setting} {figures} tree/joint {errors.ratio:.2f} {errors.chosen}", flush=True)
    for family in (QuantileTree.family, JointQuantiles.family):
        ratios = [errors.of_choice for errors in measured if errors.chosen == family]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"{family} chosen {len(ratios)} times: {mean:.2f} of the other on average, at most "
            f"{max(ratios):.2f}, above 1.1 in {sum(ratio > 1.1 for ratio in ratios)}"
        )


if __name__ == "__main__":
    main()
