"""The tighter figure: what the charges of a scope amount to by privacy-loss distributions.

Information only. The ledger enforces basic composition in exact rationals; this is a float of
another library (dp-accounting, extra ``accounting``). It takes each charge for the worst mechanism
that keeps it, and it holds for charges fixed in advance, not for ones chosen by what was published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from release.budget.entries import Spent
from release.errors import ReleaseError

STEP = 1e-4
"""Of privacy loss: each charge is rounded up to the next multiple, never down."""


def composed_epsilon(charges: Sequence[Spent], delta: Fraction) -> float:
    """Return an ε such that all ``charges`` together are (ε, ``delta``)-differentially private.

    Args:
        charges: (ε, δ) of each release, approximate (every definition here implies it).
        delta: the δ at which to read the composition, 0 ≤ delta < 1.

    Returns:
        An upper bound up to rounding of floats, never above the sum of the ε where that bound
        holds too; infinity where ``delta`` is below what the charges' own δ add up to in any case.

    Raises:
        ReleaseError: ``dp-accounting`` is not installed.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3 (the dominating pair of an (ε, δ) charge).
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta is {delta}; it must be at least 0 and below 1")
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise ReleaseError(
            "the tighter figure needs dp-accounting; pip install 'dp-release[accounting]'"
        ) from error
    total = privacy_loss_distribution.identity(value_discretization_interval=STEP)
    for charge, times in sorted(Counter((one.epsilon, one.delta) for one in charges).items()):
        parameters = common.DifferentialPrivacyParameters(*map(float, charge))
        one = privacy_loss_distribution.from_privacy_parameters(
            parameters, value_discretization_interval=STEP
        )
        total = total.compose(one.self_compose(times))
    tighter = float(total.get_epsilon_for_delta(float(delta)))
    added = sum((one.epsilon for one in charges), Fraction(0))
    basic_holds = sum((one.delta for one in charges), Fraction(0)) <= delta
    return min(tighter, float(added)) if basic_holds else tighter
