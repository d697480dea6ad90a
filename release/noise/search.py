"""The least ε or δ that keeps a loss under a cap (Kadam et al. 2024, (15)).

The least loss falls as ε or δ grows, so bisection on exact decimals finds the place; every trial is
a proved design, and what is returned is the design at the found value, never an interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, TypeVar

from release.errors import DesignError
from release.exact.losses import Loss
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.noise.solve import design


def least_epsilon(
    sensitivity: Sensitivity,
    definition: Definition,
    delta: Fraction,
    loss: Loss,
    cap: Fraction,
    resolution: Fraction = Fraction(1, 1000),
) -> Design[Modular]:
    """The design with the least ε, a multiple of ``resolution``, whose loss is at most ``cap``.

    Raises:
        DesignError: not even ε = 100 loses so little.
    """
    return least(
        lambda steps: design(sensitivity, Guarantee(definition, steps * resolution, delta), loss),
        int(100 / resolution),
        cap,
        "epsilon",
    )


def least_delta(
    sensitivity: Sensitivity,
    definition: Definition,
    epsilon: Fraction,
    loss: Loss,
    cap: Fraction,
    resolution: Fraction = Fraction(1, 10_000),
) -> Design[Modular]:
    """The design with the least δ, a multiple of ``resolution``, whose loss is at most ``cap``.

    Raises:
        DesignError: not even δ near 1 loses so little.
    """

    def at(steps: int) -> Design[Modular]:
        delta = steps * resolution
        kind = definition if delta else Definition.PURE
        return design(sensitivity, Guarantee(kind, epsilon, delta), loss)

    at_zero = at(0)
    if at_zero.objective <= cap:
        return at_zero
    return least(at, int(1 / resolution) - 1, cap, "delta")


class HasLoss(Protocol):
    """What a search can rank."""

    @property
    def objective(self) -> Fraction:
        """The expected loss."""
        ...


Found = TypeVar("Found", bound=HasLoss)


def least(at: Callable[[int], Found], most: int, cap: Fraction, name: str) -> Found:
    """What ``at`` gives at the least number of steps up to ``most`` that keeps the loss at ``cap``.

    Bisection: the invariant is that ``most`` steps are enough and ``low`` are not.

    Raises:
        DesignError: not even ``most`` steps are enough.
    """
    low, tries = 0, min(most, 64)
    # Doubling first: what is far above the answer may be far harder to solve.
    while (enough := at(tries)).objective > cap:
        if tries == most:
            raise DesignError(f"no {name} in range keeps the loss at the cap; raise the cap")
        low, tries = tries, min(most, 2 * tries)
    most = tries
    while low + 1 < most:
        middle = (low + most) // 2
        tried = at(middle)
        if tried.objective <= cap:
            most, enough = middle, tried
        else:
            low = middle
    return enough
