"""One query, all mechanisms: what each loses at every ε, and what it keeps at equal loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from release.exact.accuracy import radius_of
from release.exact.channel import Channel, channel_deltas
from release.exact.numbers import MAX_EPSILON, exp_bounds
from release.exact.privacy import LEAST_EPSILON, deltas
from release.noise.select import Asked, Chosen, ChosenChannel, Solvers, compare, families, noise_of

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
"""Where losses are compared: these parts of the ε that the spec promises."""

_HALVINGS = 12

_MOST_COMPARED = 10**7
"""Probabilities that δ at one ε compares; a curve takes it at 25, after some 15 solutions."""


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
    """δ at several ε of one family, made to lose what the best loses at the promise.

    Both are empty where the family has too many pairs of neighboring answers to look at.
    """

    mechanism: str
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]


def losses_by_epsilon(asked: Asked, solvers: Solvers) -> tuple[Losses, ...]:
    """The loss of every family at multiples of the promised ε."""
    promised = asked.guarantee.epsilon
    parts = EPSILONS if promised else (Fraction(1),)
    grid = [promised * part for part in parts if not 0 < promised * part < LEAST_EPSILON]
    grid = [epsilon for epsilon in grid if epsilon <= 100]
    found: dict[str, list[Fraction | None]] = {name: [] for name in families(asked)}
    for epsilon in grid:
        there, _ = compare(_at(asked, epsilon), solvers)
        for name, losses in found.items():
            losses.append(there[name].objective if name in there else None)
    return tuple(Losses(name, tuple(grid), tuple(losses)) for name, losses in found.items())


def _at(asked: Asked, epsilon: Fraction) -> Asked:
    return replace(asked, guarantee=replace(asked.guarantee, epsilon=epsilon))


def kept_at_equal_loss(asked: Asked, found: dict[str, Chosen], solvers: Solvers) -> Iterator[Kept]:
    """For each family of ``found`` δ by ε, at an ε of its own: where it loses what the best loses.

    Approximate δ. A family that never loses so little is left out.
    """
    if not asked.guarantee.epsilon:
        return
    target = min(made.objective for made in found.values())
    top = min(float(asked.guarantee.epsilon) * 2, float(MAX_EPSILON))
    grid = np.linspace(0, top, 25)
    for name, fitting in found.items():
        if _compared(fitting) > _MOST_COMPARED:
            yield Kept(name, (), ())
            continue
        made = _losing(asked, name, target, solvers)
        if made is not None:
            curve = tuple(_delta(made, Fraction(float(e)).limit_denominator(10**9)) for e in grid)
            yield Kept(name, tuple(grid.tolist()), curve)


def _compared(made: Chosen) -> int:
    """How many probabilities δ at one ε compares."""
    if isinstance(made, ChosenChannel):
        return len(made.pairs) * made.channel.answers
    return len(made.sensitivity.shifts) * made.law.group.size


def _losing(asked: Asked, name: str, target: Fraction, solvers: Solvers) -> Chosen | None:
    """The family at about the least ε where it loses at most ``target``; None where none does."""

    def at(epsilon: Fraction) -> Chosen | None:
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


def _delta(made: Chosen, epsilon: Fraction) -> float:
    """The approximate δ at ε."""
    if isinstance(made, ChosenChannel):
        ratio = exp_bounds(epsilon)[0]
        return float(channel_deltas(made.channel, made.pairs, ratio).approximate)
    return float(deltas(made.law, made.sensitivity, epsilon).approximate)


@dataclass(frozen=True)
class Side:
    """A family's law beside the others: its chances around a true answer in the middle."""

    mechanism: str
    offsets: tuple[int, ...]
    masses: tuple[float, ...]
    radius: int | None


def side_by_side(asked: Asked, found: dict[str, Chosen], reach: int = 8) -> tuple[Side, ...]:
    """What each family publishes for a true answer in the middle, up to ``reach`` codes away."""
    size = asked.domain.size
    middle = size // 2
    offsets = range(-min(reach, middle), min(reach, size - 1 - middle) + 1)
    sides = []
    for name, made in found.items():
        noise = noise_of(made)
        row = (
            noise.to_floats()[middle]
            if isinstance(noise, Channel)
            else np.roll(noise.to_floats(), middle)
        )
        masses = tuple(float(row[middle + offset]) for offset in offsets)
        sides.append(Side(name, tuple(offsets), masses, radius_of(noise, asked.domain)))
    return tuple(sides)
