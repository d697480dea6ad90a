"""Compares all mechanisms on one query: expected loss by ε, and δ by ε at equal expected loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from release.budget.cost import Charge
from release.exact.accuracy import radius_of
from release.exact.numbers import MAX_EPSILON, format_exact
from release.exact.privacy import LEAST_EPSILON
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.select import compare, fitting
from release.spec.mechanisms import BEST

EPSILONS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
"""Losses are compared at these multiples of the ε that the spec claims."""

_HALVINGS = 12

_MOST_COMPARED = 10**7
"""Probabilities that δ at one ε compares; a curve takes it at 25, after some 15 solutions."""


@dataclass(frozen=True)
class Losses:
    """The expected loss of one family at several ε and the spec's δ; None where it has none.

    ``claimed`` is its design at the ε that the spec claims.
    """

    mechanism: str
    epsilons: tuple[Fraction, ...]
    losses: tuple[Fraction | None, ...]
    claimed: AnyDesign | None

    @property
    def texts(self) -> list[str]:
        """The losses to four digits, and - where there is none."""
        return ["-" if loss is None else f"{float(loss):.4g}" for loss in self.losses]


def charge_texts(charge: Charge | None) -> list[str]:
    """ε and δ of a charge, and - where a mechanism does not satisfy the guarantee."""
    if charge is None:
        return ["-", "-"]
    return [format_exact(charge.epsilon), format_exact(charge.delta)]


@dataclass(frozen=True)
class Curve:
    """Approximate δ at several ε of one family, at about the expected loss of the best family.

    Both are empty where the family has too many pairs of neighboring answers to compare.
    """

    mechanism: str
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]


def losses_by_epsilon(request: Asked, own: str, solvers: Solvers) -> tuple[Losses, ...]:
    """The expected loss of every family at multiples of the claimed ε.

    ``own`` is the mechanism that the spec names. It is compared on any domain, even where a search
    for its parameter would take too long to do for all.
    """
    claimed = request.guarantee.epsilon
    grid = []
    # An ε of 0 has a single multiple: itself. Beyond 100 no mechanism is worth comparing.
    for factor in EPSILONS if claimed else (Fraction(1),):
        if not 0 < claimed * factor < LEAST_EPSILON and claimed * factor <= 100:
            grid.append(claimed * factor)
    names = list(fitting(request))
    if own != BEST and own not in names:
        names.append(own)
    designs = [compare(_at(request, epsilon), solvers, names)[0] for epsilon in grid]
    families = []
    for name in names:
        # None where no mechanism of the family satisfies the guarantee at this ε.
        solved = [at_epsilon.get(name) for at_epsilon in designs]
        losses = tuple(None if design is None else design.objective for design in solved)
        families.append(Losses(name, tuple(grid), losses, solved[grid.index(claimed)]))
    return tuple(families)


def _at(request: Asked, epsilon: Fraction) -> Asked:
    return replace(request, guarantee=replace(request.guarantee, epsilon=epsilon))


def curves_at_equal_loss(
    request: Asked, solved: dict[str, AnyDesign], solvers: Solvers
) -> Iterator[Curve]:
    """The curve of each family in ``solved``, at the ε where its expected loss is the best one's.

    A family whose expected loss is always higher is left out.
    """
    if not request.guarantee.epsilon:
        return
    target = min(mechanism.objective for mechanism in solved.values())
    top = min(float(request.guarantee.epsilon) * 2, float(MAX_EPSILON))
    grid = np.linspace(0, top, 25).tolist()
    for name, as_claimed in solved.items():
        # Before the search for an equal loss, which would be in vain.
        if as_claimed.mechanism.comparisons(request.sensitivity) > _MOST_COMPARED:
            yield Curve(name, (), ())
            continue
        mechanism = _at_loss(request, name, target, solvers)
        if mechanism is None:
            continue
        deltas = []
        for epsilon in grid:
            # Short fractions: e^ε is bracketed in integers, which grow with the denominator.
            deltas.append(_delta(mechanism, Fraction(epsilon).limit_denominator(10**9)))
        yield Curve(name, tuple(grid), tuple(deltas))


def _at_loss(request: Asked, name: str, target: Fraction, solvers: Solvers) -> AnyDesign | None:
    """The family at about the least ε where its loss is at most ``target``; None if nowhere."""
    # Numerical solutions miss their optimum by a little, so equal losses may differ that much.
    enough = target * (1 + Fraction(1, 10**6))

    def at(epsilon: Fraction) -> AnyDesign | None:
        solved, _ = compare(_at(request, epsilon), solvers, (name,))
        return solved.get(name)

    # The loss falls with ε: doubled until it is low enough, then halved in between.
    low, high = request.guarantee.epsilon / 4, request.guarantee.epsilon
    best = at(high)
    while best is None or best.objective > enough:
        low, high = high, 2 * high
        if high > min(Fraction(100), 16 * request.guarantee.epsilon):
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


def side_by_side(request: Asked, solved: dict[str, AnyDesign], reach: int = 8) -> tuple[Side, ...]:
    """The pmf of each family for a true answer in the middle, up to ``reach`` codes away."""
    size = request.domain.size
    middle = size // 2
    offsets = range(-min(reach, middle), min(reach, size - 1 - middle) + 1)
    sides = []
    for name, design in solved.items():
        row = design.mechanism.probabilities(middle)
        masses = tuple(row[middle + offsets.start : middle + offsets.stop].tolist())
        radius = radius_of(design.mechanism, request.domain)
        sides.append(Side(name, tuple(offsets), masses, radius))
    return tuple(sides)
