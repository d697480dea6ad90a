"""Privacy losses between two neighboring tables, cell by cell and of all cells together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dp_release_audit.laws import CellLaw
from dp_release_audit.words import Law, Outcome
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee

SLACK = Fraction(1, 2**40)
"""What is left out of distributions, at most: no smaller δ is told from 0."""

_SEEN = 2.0**-20
"""The attained ε is that of outcomes with this chance or more."""

_STEPS = 4000


@dataclass(frozen=True)
class Worst:
    """The outcome at which a guarantee fails most, and its chance in both tables."""

    outcome: Outcome
    here: Fraction
    there: Fraction


@dataclass(frozen=True, eq=False)
class CellPair:
    """One cell in two neighboring tables: the law of each. Compared by identity."""

    here: CellLaw
    there: CellLaw

    @cached_property
    def pairs(self) -> tuple[tuple[Law, Law], ...]:
        """The parts, side by side."""
        return tuple(zip(self.here.parts, self.there.parts, strict=True))

    @property
    def reversed(self) -> CellPair:
        """The same two tables the other way round."""
        return CellPair(self.there, self.here)

    @cached_property
    def attained(self) -> float:
        """The largest privacy loss at outcomes that are not next to impossible."""
        return sum(_largest_loss(here, there) for here, there in self.pairs)

    @cached_property
    def slack(self) -> Fraction:
        """What the δ of the cell may be off by."""
        own = SLACK
        for here, there in self.pairs:
            own += max(here.rest, Fraction(0)) + here.slack + 20 * there.slack
        return own

    @cached_property
    def left_out(self) -> float:
        """The chance in the neighboring table of all that was left out of its laws."""
        return float(sum(max(there.rest, Fraction(0)) for _, there in self.pairs))

    def delta(self, guarantee: Guarantee) -> Fraction:
        """The least δ that the cell has for certain at the ε of a guarantee; one part only."""
        ((here, there),) = self.pairs
        # From above, so that rounding never finds what is not there.
        ratio = exp_bounds(guarantee.epsilon)[1]
        total = Fraction(0)
        # Floats decide which outcomes are far below ε; rationals are formed for the others alone.
        least = float(guarantee.epsilon) - 1e-6
        for outcome, chance in here.chances.items():
            if _loss(here, there, outcome) < least:
                continue
            chance_there = there.chances.get(outcome, Fraction(0)) + there.rest
            if chance > ratio * chance_there:
                is_heavy = guarantee.definition is Definition.PROBABILISTIC
                total += chance if is_heavy else chance - ratio * chance_there
        return total

    def worst(self) -> Worst:
        """The outcome of the largest loss, of those that are not next to impossible."""
        outcome: Outcome = ()
        chances = [Fraction(1), Fraction(1)]
        for here, there in self.pairs:
            likely = [own for own, chance in here.chances.items() if chance >= _SEEN]
            own = max(likely or here.chances, key=lambda each: _loss(here, there, each))
            outcome += own
            chances[0] *= here.chances[own]
            chances[1] *= there.chances.get(own, Fraction(0))
        return Worst(outcome, *chances)

    def losses(self, step: float, *, up: bool) -> tuple[int, NDArray[np.float64], float]:
        """The masses of losses on a grid: the first place, the masses, and that of infinity."""
        losses = 0, np.ones(1), 0.0
        for here, there in self.pairs:
            losses = _joined(losses, _grid(here, there, step, up=up))
        return losses


Losses = tuple[int, NDArray[np.float64], float]


def _loss(here: Law, there: Law, outcome: Outcome) -> float:
    log_there = there.logs.get(outcome)
    return math.inf if log_there is None else here.logs.get(outcome, -math.inf) - log_there


def _largest_loss(here: Law, there: Law) -> float:
    losses = [0.0]
    # An outcome that the neighbor's law lacks may have been left out of it.
    least_there = -math.log(there.rest) if there.rest > 0 else math.inf
    # Shares of draws alone deviate both ways, and the largest of their ratios lies above the truth.
    is_estimated = bool(here.slack or there.slack)
    for outcome, chance in here.chances.items():
        if chance >= _SEEN:
            loss = _loss_for_certain if is_estimated else _loss
            losses.append(min(loss(here, there, outcome), here.logs[outcome] + least_there))
    return max(losses)


def _loss_for_certain(here: Law, there: Law, outcome: Outcome) -> float:
    """The least loss at an outcome that both laws' margins allow."""
    chance = here.chances[outcome] - here.slack
    chance_there = there.chances.get(outcome, Fraction(0)) + there.slack
    return math.log(chance / chance_there) if chance > 0 else 0.0


def _grid(here: Law, there: Law, step: float, *, up: bool) -> Losses:
    masses: Counter[int] = Counter()
    infinite = 0.0
    for outcome, chance in here.chances.items():
        loss = _loss(here, there, outcome)
        if loss == math.inf:
            infinite += float(chance)
        else:
            # The tolerance keeps a loss that lies on the grid there, whatever its last bit is.
            place = math.ceil(loss / step - 1e-9) if up else math.floor(loss / step + 1e-9)
            masses[place] += float(chance)  # type: ignore[assignment]  # a counter of floats
    first = min(masses, default=0)
    array = np.zeros(max(masses, default=0) - first + 1)
    for place, mass in masses.items():
        array[place - first] = mass
    return first, array, infinite


def _joined(first: Losses, second: Losses) -> Losses:
    infinite = 1 - (1 - first[2]) * (1 - second[2])
    return first[0] + second[0], np.convolve(first[1], second[1]), infinite


@dataclass(frozen=True)
class Together:
    """What all cells together lose: bounds of δ at the claimed ε, and the attained ε."""

    least_delta: float
    most_delta: float
    attained: float
    slack: float


class Composer:
    """Composes the losses of cells; equal sets of cells are composed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Together] = {}

    def compose(self, cells: Sequence[CellPair], epsilon: Fraction) -> Together:
        """What the cells lose together, at ``epsilon``."""
        key = (epsilon, *sorted(map(id, cells)))
        if key not in self._known:
            self._known[key] = _together(cells, float(epsilon))
        return self._known[key]


def _together(cells: Iterable[CellPair], epsilon: float) -> Together:
    cells = list(cells)
    attained = sum(cell.attained for cell in cells)
    # What was left out of the neighbor's laws may be of any outcome, at e^ε times its chance.
    slack = sum(float(cell.slack) + math.exp(epsilon) * cell.left_out for cell in cells)
    # No outcome loses more than ε, so nothing has to be composed: δ is 0 there.
    if attained <= epsilon and all(_is_bounded(cell) for cell in cells):
        return Together(0.0, 0.0, attained, slack)
    step = max(epsilon, 1e-3) / _STEPS
    deltas = []
    # With losses rounded down, and then up: δ lies between the two.
    for up in (False, True):
        first, masses, infinite = 0, np.ones(1), 0.0
        for cell in cells:
            first, masses, infinite = _joined((first, masses, infinite), cell.losses(step, up=up))
        losses = step * (first + np.arange(masses.size))
        above = losses > epsilon
        share = -np.expm1(epsilon - losses[above])
        deltas.append(float((masses[above] * share).sum()) + infinite)
    return Together(deltas[0], deltas[1], attained, slack)


def _is_bounded(cell: CellPair) -> bool:
    """Whether no outcome has a larger loss than those that count for the attained ε."""
    for here, there in cell.pairs:
        most = _largest_loss(here, there)
        if any(_loss(here, there, outcome) > most + 1e-9 for outcome in here.chances):
            return False
    return True
