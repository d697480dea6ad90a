"""What the charges of a scope amount to together, certified.

The ledger enforces basic composition: it adds charges up. Composed exactly, many charges amount to
less. This figure is computed in integers with every rounding upward, so it is proved. It holds for
charges fixed in advance, not for ones chosen after earlier results were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from release.budget.entries import Spent
from release.exact.composition.charges import compose


def composed_epsilon(charges: Sequence[Spent], delta: Fraction) -> Fraction | None:
    """Return an ε such that all ``charges`` together are (ε, ``delta``)-differentially private.

    Args:
        charges: (ε, δ) of each release, approximate (every definition here implies it).
        delta: the δ at which to read the composition, 0 <= delta < 1.

    Returns:
        An upper bound, never above the sum of the ε where basic composition applies. None where no
        ε has so small a δ: the charges have a larger one in any case.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta is {delta}; it must be at least 0 and below 1")
    epsilon = compose((charge.epsilon, charge.delta) for charge in charges).epsilon_at(delta)
    basic = sum(charges, Spent())
    if basic.delta > delta:
        return epsilon
    # Masses that are folded or rounded count as δ, so that the sum can be the smaller one.
    return basic.epsilon if epsilon is None else min(epsilon, basic.epsilon)
