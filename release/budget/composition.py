"""The tighter figure: what the charges of a scope amount to by privacy-loss distributions.

Information only. The ledger enforces basic composition in exact rationals; this is a float of
another library (dp-accounting, extra ``accounting``). It takes for each charge the worst mechanism
that satisfies it. It holds for charges fixed in advance, not for ones chosen by earlier results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from release.budget.entries import Spent
from release.errors import ReleaseError

STEP = 1e-4
"""The grid of privacy losses: each is rounded up to the next multiple, never down."""


def composed_epsilon(charges: Sequence[Spent], delta: Fraction) -> float:
    """Return an ε such that all ``charges`` together are (ε, ``delta``)-differentially private.

    Args:
        charges: (ε, δ) of each release, approximate (every definition here implies it).
        delta: the δ at which to read the composition, 0 ≤ delta < 1.

    Returns:
        An upper bound up to rounding of floats. It never exceeds the sum of the ε where basic
        composition applies, and is infinite where ``delta`` is below the δ that the charges have
        in any case.

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
    composition = privacy_loss_distribution.identity(value_discretization_interval=STEP)
    basic = sum(charges, Spent())
    repetitions = Counter((charge.epsilon, charge.delta) for charge in charges)
    # Composing one distribution with itself is much cheaper than composing copies one by one.
    for pair, times in sorted(repetitions.items()):
        parameters = common.DifferentialPrivacyParameters(*map(float, pair))
        distribution = privacy_loss_distribution.from_privacy_parameters(
            parameters, value_discretization_interval=STEP
        )
        composition = composition.compose(distribution.self_compose(times))
    tighter = float(composition.get_epsilon_for_delta(float(delta)))
    # With few charges, rounding up to the grid can exceed the plain sum.
    return min(tighter, float(basic.epsilon)) if basic.delta <= delta else tighter
