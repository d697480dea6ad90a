"""What noise for several queries amounts to: exact accounting, every rounding upward.

A group is one noise distribution for several queries, and the patterns of differences by which one
unit can change the cells of each. Whatever a search in floats proposes is accepted by this account
alone (docs/design/mathematics.md, section 2.30).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import Profile, largest, profile_of_distribution
from release.exact.composition.together import together
from release.exact.integers.noise import IntegerNoise
from release.exact.integers.profile import exact_profile, grouped_profile, is_cheap

Pattern: TypeAlias = tuple[int, ...]
"""By how much one unit changes each cell that it touches, in answer codes; the signs do not matter.

A unit that touches no cell has the empty pattern."""

Group: TypeAlias = tuple[IntegerNoise, tuple[Pattern, ...], int]
"""Noise, the patterns of one unit, and how many queries have both."""


def undominated(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Return the patterns that no other exceeds in every cell; unimodal noise needs no others.

    Each is without signs and zeros, and falls. Where there are many, those with the largest
    differences come first.
    """
    maximal: list[Pattern] = []
    # By falling sums: a pattern can only be exceeded by one with a larger sum, which came before.
    for pattern in sorted(set(map(_ordered, patterns)), key=_by_sum, reverse=True):
        if not any(_exceeds(rival, pattern) for rival in maximal):
            maximal.append(pattern)
    return tuple(maximal)


def _ordered(pattern: Pattern) -> Pattern:
    """The pattern without signs, zeros and the order of its cells, which have the same noise."""
    return tuple(sorted(map(abs, filter(None, pattern)), reverse=True))


def _by_sum(pattern: Pattern) -> tuple[int, Pattern]:
    return sum(pattern), pattern


def _exceeds(rival: Pattern, pattern: Pattern) -> bool:
    # Both fall: if any assignment of cells exceeds, that of the largest to the largest does.
    return len(rival) >= len(pattern) and all(a >= b for a, b in zip(rival, pattern, strict=False))


@lru_cache(maxsize=64)
def difference_profile(noise: IntegerNoise, difference: int, step: Fraction) -> Profile:
    """Return the profile of noise on one answer that neighbors change by ``difference`` at most.

    That of :class:`release.exact.integers.mechanism.IntegerMechanism`, which a release publishes.

    Raises:
        ValueError: nothing is known of differences so large.
    """
    if is_cheap(noise, (difference,)):
        return exact_profile(noise, (difference,), step)
    profile = grouped_profile(noise, difference, step)
    if profile is None:
        raise ValueError("the noise has no bound of its losses at so large a difference")
    return profile


def group_profile(noise: IntegerNoise, patterns: Sequence[Pattern], step: Fraction) -> Profile:
    """Return the profile of one query: the largest over the patterns of what a unit does.

    Raises:
        ValueError: the noise is not unimodal, so that smaller differences may be worse.
    """
    if not noise.is_unimodal():
        raise ValueError("patterns are compared for unimodal noise only")
    profiles = []
    for pattern in undominated(patterns):
        if len(pattern) == 1:
            # A profile that goes through a distribution of losses may only get worse.
            profiles.append(difference_profile(noise, pattern[0], step))
            continue
        # Cells that change alike have one distribution: powers are cheaper than products.
        parts = []
        for difference, times in sorted(Counter(pattern).items()):
            parts.append((difference_profile(noise, difference, step).distribution(), times))
        losses = together(parts) if parts else Profile(step, (0,)).distribution()
        profiles.append(profile_of_distribution(losses, step))
    return largest(profiles).shortened()


def group_losses(
    noise: IntegerNoise, patterns: Sequence[Pattern], step: Fraction
) -> LossDistribution:
    """Return losses that dominate one query; as :func:`group_profile`."""
    return group_profile(noise, patterns, step).distribution()


def losses_of_groups(
    groups: Sequence[Group], step: Fraction, fixed: Sequence[tuple[LossDistribution, int]] = ()
) -> LossDistribution:
    """Return losses that dominate all groups and the ``fixed`` mechanisms together.

    Args:
        groups: noise, patterns, and how many queries have them.
        step: the grid's.
        fixed: losses of other mechanisms, on any grid, and how often each occurs.
    """
    parts = [(losses.regridded(step), times) for losses, times in fixed]
    for noise, patterns, times in groups:
        parts.append((group_losses(noise, patterns, step), times))
    return together(parts)


def certified_epsilon(
    groups: Sequence[Group],
    delta: Fraction,
    step: Fraction,
    fixed: Sequence[tuple[LossDistribution, int]] = (),
) -> Fraction | None:
    """Return an ε that all groups satisfy together at ``delta``; None where there is none.

    An upper bound of the least, by at most what the chords of the grid and the rounding of masses
    cost. Arguments as those of :func:`losses_of_groups`.
    """
    return losses_of_groups(groups, step, fixed).epsilon_at(delta)
