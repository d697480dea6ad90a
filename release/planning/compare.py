"""One query, all mechanisms: what each loses at every ε, and what it keeps at equal loss."""

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
"""Where losses are compared: these parts of the ε that the spec promises."""

_HALVINGS = 12


@dataclass(frozen=True)
class Losses:
    """What one family loses at each of several ε, with the δ of the spec; None where it cannot."""

    mechanism: str
    epsilons: tuple[Fraction, ...]
    losses: tuple[Fraction | None, ...]


def losses_to_pandas(found: Sequence[Losses]) -> pd.DataFrame:
    """A row for each mechanism, a column for each ε; missing where a mechanism does not exist."""
    import pandas as pd

    columns = [float(epsilon) for epsilon in found[0].epsilons]
    rows = [[None if loss is None else float(loss) for loss in one.losses] for one in found]
    index = pd.Index([one.mechanism for one in found], name="mechanism")
    return pd.DataFrame(rows, index=index, columns=pd.Index(columns, name="epsilon"))


@dataclass(frozen=True)
class Kept:
    """δ at several ε of one family, made to lose what the best loses at the promise."""

    mechanism: str
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]


def losses_by_epsilon(asked: Asked, solvers: Solvers) -> tuple[Losses, ...]:
    """The loss of every family at multiples of the promised ε."""
    promised = asked.guarantee.epsilon
    parts = EPSILONS if promised else (Fraction(1),)
    grid = [promised * part for part in parts if not 0 < promised * part < LEAST_EPSILON]
    grid = [epsilon for epsilon in grid if epsilon <= 100]
    found: dict[str, list[Fraction | None]] = {name: [] for name in fitting(asked)}
    for epsilon in grid:
        there, _ = compare(_at(asked, epsilon), solvers)
        for name, losses in found.items():
            losses.append(there[name].objective if name in there else None)
    return tuple(Losses(name, tuple(grid), tuple(losses)) for name, losses in found.items())


def _at(asked: Asked, epsilon: Fraction) -> Asked:
    return replace(asked, guarantee=replace(asked.guarantee, epsilon=epsilon))


def kept_at_equal_loss(
    asked: Asked, found: dict[str, AnyDesign], solvers: Solvers
) -> Iterator[Kept]:
    """For each family of ``found`` δ by ε, at an ε of its own: where it loses what the best loses.

    Approximate δ. A family that never loses so little is left out.
    """
    if not asked.guarantee.epsilon:
        return
    target = min(made.objective for made in found.values())
    top = min(float(asked.guarantee.epsilon) * 2, float(MAX_EPSILON))
    grid = np.linspace(0, top, 25)
    for name in found:
        made = _losing(asked, name, target, solvers)
        if made is not None:
            curve = tuple(_delta(made, Fraction(float(e)).limit_denominator(10**9)) for e in grid)
            yield Kept(name, tuple(grid.tolist()), curve)


def _losing(asked: Asked, name: str, target: Fraction, solvers: Solvers) -> AnyDesign | None:
    """The family at about the least ε where it loses at most ``target``; None where none does."""

    def at(epsilon: Fraction) -> AnyDesign | None:
        made, _ = compare(_at(asked, epsilon), solvers, (name,))
        return made.get(name)

    low, high = asked.guarantee.epsilon / 4, asked.guarantee.epsilon
    best = at(high)
    while best is None or best.objective > target * (1 + Fraction(1, 10**6)):
        low, high = high, 2 * high
        if high > min(Fraction(100), 16 * asked.guarantee.epsilon):
            return None
        best = at(high)
    for _ in range(_HALVINGS):
        middle = Fraction((low + high) / 2).limit_denominator(10_000)
        made = at(middle)
        if made is not None and made.objective <= target * (1 + Fraction(1, 10**6)):
            high, best = middle, made
        else:
            low = middle
    return best


def _delta(design: AnyDesign, epsilon: Fraction) -> float:
    """The approximate δ at ε."""
    return float(design.mechanism.deltas(design.sensitivity, epsilon).approximate)


@dataclass(frozen=True)
class Side:
    """A family's law beside the others: its chances around a true answer in the middle."""

    mechanism: str
    offsets: tuple[int, ...]
    masses: tuple[float, ...]
    radius: int | None


def side_by_side(asked: Asked, found: dict[str, AnyDesign], reach: int = 8) -> tuple[Side, ...]:
    """What each family publishes for a true answer in the middle, up to ``reach`` codes away."""
    size = asked.domain.size
    middle = size // 2
    offsets = range(-min(reach, middle), min(reach, size - 1 - middle) + 1)
    sides = []
    for name, design in found.items():
        row = design.mechanism.probabilities(middle)
        masses = tuple(float(row[middle + offset]) for offset in offsets)
        radius = radius_of(design.mechanism, asked.domain)
        sides.append(Side(name, tuple(offsets), masses, radius))
    return tuple(sides)
