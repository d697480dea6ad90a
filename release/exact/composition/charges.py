"""The composition of charges that are known by their ε and δ only.

A charge stands for any mechanism with its guarantee, so it counts as the worst of them. The result
holds for charges fixed in advance. What the mechanisms answer may depend on earlier answers; how
large the charges are may not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from release.exact.composition.distribution import LossDistribution, of_charge
from release.exact.composition.grid import Spread, short_step
from release.exact.composition.together import together


def compose(
    charges: Iterable[tuple[Fraction, Fraction]], step: Fraction | None = None
) -> LossDistribution:
    """Return a distribution whose profile is at least that of all ``charges`` together.

    Args:
        charges: (ε, δ) of each, ε at least 0 and δ at least 0; their order does not matter.
        step: the distance of the grid's losses; by default :func:`common_step`.
    """
    repetitions = Counter(charges) or Counter({(Fraction(0), Fraction(0)): 1})
    grid = step or common_step(repetitions)
    parts = []
    # Products fold and round, so the figure could depend on the order in its last places.
    for (epsilon, delta), times in sorted(repetitions.items()):
        parts.append((of_charge(epsilon, delta, grid), times))
    return together(parts)


def common_step(repetitions: Mapping[tuple[Fraction, Fraction], int]) -> Fraction:
    """Return a step that places every loss on the grid, or the finest with a short grid.

    The first is the greatest common divisor of the distances 2ε of the losses of each charge.
    With it no atom is split, so the composition is exact but for the rounding of masses.
    """
    spreads = []
    for (epsilon, _), times in repetitions.items():
        # With ε = 0 both losses are 0, which lies on every grid.
        if epsilon > 0:
            spreads.append(Spread(2 * epsilon, 2 * epsilon, times))
    return short_step(spreads)
