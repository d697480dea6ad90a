"""What the public queries of a release amount to together, certified.

Each query has a privacy profile: what one unit does to all its cells. The profiles compose exactly,
with every rounding upward (:mod:`release.exact.composition`); the ε of the release is read from the
result at the δ of the spec. Queries whose mechanism depends on the table have no profile: their
charges are added to that (docs/design/mathematics.md 2.31).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, gcd, isqrt

from release.budget.entries import ReleaseCharge, Spent
from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import Profile
from release.exact.composition.together import together
from release.exact.mechanism import Mechanism
from release.exact.numbers import common_denominator
from release.exact.sensitivity import Sensitivity

LEAST_STEPS, STEPS_A_ROOT, MOST_STEPS = 1000, 50, 2**14
"""The ε of a release has so many steps of the grid, or so many times the root of its cells.

Chords of n steps add about 3K/n² to the variance of K equal queries: a thousandth.
"""


@dataclass(frozen=True)
class Together:
    """The profiles of a release's public queries, on one grid.

    Attributes:
        step: the grid's.
        profiles: one for each query, in any order.
    """

    step: Fraction
    profiles: tuple[Profile, ...]

    @cached_property
    def losses(self) -> LossDistribution:
        """A distribution whose profile is at least that of all queries together."""
        equal = Counter(self.profiles)
        parts = []
        # Equal profiles together: what occurs n times takes about log n products.
        for profile, times in equal.items():
            parts.append((profile.distribution(), times))
        return together(parts)

    def total(self, delta: Fraction, basic: Spent) -> Spent:
        """The ε of all queries together at ``delta``; their basic sum where that is less.

        Args:
            delta: at least 0 and below 1.
            basic: the sum of their charges.
        """
        if basic.delta > delta:
            epsilon = self.losses.epsilon_at(delta)
            # No ε at all has so small a δ: the caller's cap is exceeded by the sum of the δ.
            return basic if epsilon is None else Spent(epsilon, delta)
        # Masses that are folded or rounded count as δ, so that the sum can be the smaller one.
        if not delta:
            return basic
        epsilon = self.losses.epsilon_at(delta)
        return basic if epsilon is None or epsilon >= basic.epsilon else Spent(epsilon, delta)


def release_charge(
    epsilon: Fraction, delta: Fraction, together: Together | None, *, has_profile: bool
) -> ReleaseCharge:
    """What a release hands to the ledger.

    Args:
        epsilon: the charged ε.
        delta: the charged δ.
        together: the profiles of its mechanisms, where they are known.
        has_profile: whether no query is instance-specific (mathematics, 2.19).
    """
    if not has_profile:
        return ReleaseCharge(epsilon, delta, None)
    if together is None:
        return ReleaseCharge.of(epsilon, delta)
    return ReleaseCharge(epsilon, delta, together.losses)


def step_for(epsilons: Iterable[Fraction], cap: Fraction, cells: int) -> Fraction:
    """Return the grid on which a release composes, from public figures alone.

    Args:
        epsilons: the claimed ε of the queries that have one.
        cap: the largest ε that the release may reach, above 0.
        cells: in how many cells one unit counts, over all queries.
    """
    steps = _steps(cells)
    claimed = {epsilon for epsilon in epsilons if epsilon > 0}
    if claimed:
        common = common_denominator(claimed)
        shared = Fraction(gcd(*(int(epsilon * common) for epsilon in claimed)), common)
        # A grid that holds every ε splits no mass of a pure mechanism.
        if shared * MOST_STEPS >= cap:
            return shared / ceil(shared * steps / cap)
    return step_of_budget(cap, cells)


def step_of_budget(cap: Fraction, cells: int) -> Fraction:
    """Return the grid of a budget that is shared out among mechanisms.

    Args:
        cap: its ε, above 0.
        cells: how many mechanisms share it, each cell that a unit touches counted.
    """
    steps = _steps(cells)
    # A grid that holds equal parts of the cap splits no mass of equal pure mechanisms.
    return cap / (ceil(Fraction(steps, cells)) * cells if 1 < cells <= LEAST_STEPS else steps)


def _steps(cells: int) -> int:
    return min(MOST_STEPS, max(LEAST_STEPS, STEPS_A_ROOT * (isqrt(max(1, cells) - 1) + 1)))


def found_epsilon(
    mechanism: Mechanism, sensitivity: Sensitivity, step: Fraction, delta: Fraction
) -> Fraction | None:
    """The ε of one cell at ``delta``, read from its profile on the grid of the release.

    Rounded up to 12 decimals. None where no ε has so small a δ.
    """
    return mechanism.profile(sensitivity, step).distribution().epsilon_at(delta)
