"""Compares all mechanisms on one query: the loss of each by ε, and δ by ε at equal loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from release.exact.accuracy import radius_of
from release.exact.numbers import MAX_EPSILON
from release.exact.privacy import LEAST_EPSILON
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.select import compare, fitting

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
"""Losses are compared at these multiples of the ε that the spec claims."""

_HALVINGS = 12

_MOST_COMPARED = 10**7
"""Probabilities that δ at one ε compares; a curve takes it at 25, after some 15 solutions."""


@dataclass(frozen=True)
class Losses:
    """The loss of one family at each of several ε, with the δ of the spec; None where it fails."""

    mechanism: str
    epsilons: tuple[Fraction, ...]
    losses: tuple[Fraction | None, ...]


def losses_to_pandas(families_losses: Sequence[Losses]) -> pd.DataFrame:
    """A row for each mechanism, a column for each ε; missing where a mechanism does not exist."""
    import pandas as pd

    columns = [float(epsilon) for epsilon in families_losses[0].epsilons]
    rows = [
        [None if loss is None else float(loss) for loss in family.losses]
        for family in families_losses
    ]
    index = pd.Index([family.mechanism for family in families_losses], name="mechanism")
    return pd.DataFrame(rows, index=index, columns=pd.Index(columns, name="epsilon"))


@dataclass(frozen=True)
class Curve:
    """Approximate δ at several ε of one family, at about the loss of the best family.

    Both are empty where the family has too many pairs of neighboring answers to look at.
    """

    mechanism: str
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]


def losses_by_epsilon(asked: Asked, solvers: Solvers) -> tuple[Losses, ...]:
    """The loss of every family at multiples of the claimed ε."""
    claimed = asked.guarantee.epsilon
    parts = EPSILONS if claimed else (Fraction(1),)
    grid = [claimed * part for part in parts if not 0 < claimed * part < LEAST_EPSILON]
    grid = [epsilon for epsilon in grid if epsilon <= 100]
    by_family: dict[str, list[Fraction | None]] = {name: [] for name in fitting(asked)}
    for epsilon in grid:
        solved, _ = compare(_at(asked, epsilon), solvers)
        for name, losses in by_family.items():
            losses.append(solved[name].objective if name in solved else None)
    return tuple(Losses(name, tuple(grid), tuple(losses)) for name, losses in by_family.items())


def _at(asked: Asked, epsilon: Fraction) -> Asked:
    return replace(asked, guarantee=replace(asked.guarantee, epsilon=epsilon))


def curves_at_equal_loss(
    asked: Asked, solved: dict[str, AnyDesign], solvers: Solvers
) -> Iterator[Curve]:
    """The curve of each family in ``solved``, at the ε where its loss is that of the best.

    A family whose loss is always higher is left out.
    """
    if not asked.guarantee.epsilon:
        return
    target = min(mechanism.objective for mechanism in solved.values())
    top = min(float(asked.guarantee.epsilon) * 2, float(MAX_EPSILON))
    grid = np.linspace(0, top, 25).tolist()
    for name, as_claimed in solved.items():
        if as_claimed.mechanism.comparisons(asked.sensitivity) > _MOST_COMPARED:
            yield Curve(name, (), ())
            continue
        mechanism = _at_loss(asked, name, target, solvers)
        if mechanism is None:
            continue
        exact = [Fraction(epsilon).limit_denominator(10**9) for epsilon in grid]
        yield Curve(name, tuple(grid), tuple(_delta(mechanism, epsilon) for epsilon in exact))


def _at_loss(asked: Asked, name: str, target: Fraction, solvers: Solvers) -> AnyDesign | None:
    """The family at about the least ε where its loss is at most ``target``; None if nowhere."""
    enough = target * (1 + Fraction(1, 10**6))

    def at(epsilon: Fraction) -> AnyDesign | None:
        solved, _ = compare(_at(asked, epsilon), solvers, (name,))
        return solved.get(name)

    low, high = asked.guarantee.epsilon / 4, asked.guarantee.epsilon
    best = at(high)
    while best is None or best.objective > enough:
        low, high = high, 2 * high
        if high > min(Fraction(100), 16 * asked.guarantee.epsilon):
            return None
        best = at(high)
    for _ in range(_HALVINGS):
        middle = Fraction((low + high) / 2).limit_denominator(10_000)
        mechanism = at(middle)
        if mechanism is not None and mechanism.objective <= enough:
            high, best = middle, mechanism
        else:
            low = middle
    return best


def _delta(design: AnyDesign, epsilon: Fraction) -> float:
    """The approximate δ at ε."""
    return float(design.mechanism.deltas(design.sensitivity, epsilon).approximate)


@dataclass(frozen=True)
class Side:
    """The noise distribution of one family around a true answer in the middle."""

    mechanism: str
    offsets: tuple[int, ...]
    masses: tuple[float, ...]
    radius: int | None


def side_by_side(asked: Asked, solved: dict[str, AnyDesign], reach: int = 8) -> tuple[Side, ...]:
    """What each family publishes for a true answer in the middle, up to ``reach`` codes away."""
    size = asked.domain.size
    middle = size // 2
    offsets = range(-min(reach, middle), min(reach, size - 1 - middle) + 1)
    sides = []
    for name, design in solved.items():
        row = design.mechanism.probabilities(middle)
        masses = tuple(float(row[middle + offset]) for offset in offsets)
        radius = radius_of(design.mechanism, asked.domain)
        sides.append(Side(name, tuple(offsets), masses, radius))
    return tuple(sides)
