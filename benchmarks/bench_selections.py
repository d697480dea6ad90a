"""K selections of one of 24 that share (1, 10⁻⁶): which mechanism, and by whose account.

The figure is the lead, in rows, at which the commonest candidate is published with a chance of
95 %, whatever the other scores are: less is better. "basic" is permute-and-flip with an equal part
of ε, "dp_accounting" the same composed as randomised response on its default grid, "zCDP" the
exponential mechanism with ρ = ε²/8 and the tight conversion (Cesar and Rogers 2021). "OpenDP" is
its own noisy max at the scale that its own search finds, if it is installed. Ours is what a shared
budget chooses, certified; the seconds are those of one choice. Takes about ten seconds.

From about 20 selections on zCDP needs less: ours composes one pair of distributions that dominates
every exponential mechanism at every ε at once, and ρ = ε²/8 knows that no mechanism is all of them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from fractions import Fraction

from dp_accounting.pld import common, privacy_loss_distribution
from rival_accounts import is_installed, noisy_max, opendp_scale, title
from zcdp import rho_within

from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.noise.composed.groups import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    Kind,
    Selected,
    ShareRequest,
)
from release.noise.composed.share import share_out

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
CANDIDATES, SPREAD = 24, 1
COUNTS = (1, 3, 4, 5, 6, 8, 12, 16, 20, 50, 200)
CHANCE = 0.95

Choice = Callable[[Fraction, int, int], PermuteAndFlip | ExponentialMechanism]


def lead(choice: Choice, epsilon: float) -> int:
    """The least lead with the chance, for a mechanism with so much ε."""
    mechanism = choice(Fraction(epsilon).limit_denominator(10**9), CANDIDATES, SPREAD)
    rows = 1
    while mechanism.chance_of_leader(rows) < CHANCE:
        rows += 1
    return rows


def accounted(count: int) -> float:
    """The most ε of each that dp_accounting allows where all are randomised response."""

    def is_within(epsilon: float) -> bool:
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0)
        )
        return bool(one.self_compose(count).get_epsilon_for_delta(1e-6) <= 1 + 1e-9)

    low, high = 1 / count, 2.0
    if not is_within(low):
        return low
    for _ in range(14):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return low


def by_opendp(count: int) -> int | None:
    """The lead under OpenDP's noisy max, whose Gumbel noise makes it the exponential mechanism."""
    if not is_installed("opendp"):
        return None
    scale = opendp_scale(lambda scale: [noisy_max(scale)] * count, 1.0, 1e-6)
    return lead(ExponentialMechanism.fitted, 1 / scale)


def ours(count: int) -> tuple[int, Selected]:
    """The lead under the mechanism of a shared budget, and what it is."""
    requests = []
    for place in range(count):
        requests.append(
            ShareRequest(
                str(place),
                weight=Fraction(1),
                loss_power=1,
                kind=Kind.SELECTION,
                candidates=CANDIDATES,
                spread=SPREAD,
                families=(PERMUTE_AND_FLIP, EXPONENTIAL),
            )
        )
    found = share_out(requests, EPSILON, DELTA)[0].mechanism
    assert isinstance(found, Selected)  # noqa: S101 - a selection was asked for
    choice = PermuteAndFlip if found.family == PERMUTE_AND_FLIP else ExponentialMechanism
    return lead(choice.fitted, float(found.epsilon)), found


def main() -> None:
    """Print the comparison."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rho = rho_within(1.0, 1e-6)
    print(", ".join(map(title, ("dp-accounting", "opendp"))))
    print("K: lead basic, dp_accounting, zCDP, OpenDP | ours, the best rival over ours, what")
    for count in COUNTS:
        start = time.perf_counter()
        rows, found = ours(count)
        seconds = time.perf_counter() - start
        rivals = (
            lead(PermuteAndFlip.fitted, 1 / count),
            lead(PermuteAndFlip.fitted, accounted(count)),
            lead(ExponentialMechanism.fitted, math.sqrt(8 * rho / count)),
        )
        opendp = by_opendp(count)
        leads = f"{rivals[0]:6d} {rivals[1]:6d} {rivals[2]:6d} {opendp or '-':>6}"
        print(
            f"  {count:4d}: {leads} | {rows:6d} "
            f"{min(rivals) / rows:.3f}×, {found.family} at ε {float(found.epsilon):.4f}, "
            f"{seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
