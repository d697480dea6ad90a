"""The privacy profile of noise on the integers, whatever it is added to.

Clamping, rounding and remapping see the noisy integer only, so the profile of the noise bounds
theirs, and nothing depends on how many answers there are (docs/design/mathematics.md, 2.30).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from release.exact.composition.profile import (
    MOST_COMPARED,
    MOST_LOSSES,
    Profile,
    largest,
    profile_of_pairs,
    pure_profile,
)
from release.exact.integers.noise import MOST_PERIODS, IntegerNoise


def exact_profile(noise: IntegerNoise, distances: Sequence[int], step: Fraction) -> Profile:
    """Return the profile where neighbors differ by one of ``distances``, either way.

    Exact at the losses of the grid, but for upward rounding: each stretch of equal masses counts at
    once, and so does all of a tail. Of unimodal noise the largest distance has the largest profile.

    Args:
        noise: the noise.
        distances: each at least 1; without any the noise reveals nothing.
        step: distance of two losses of the grid.
    """
    if not distances:
        return Profile(step, (0,))
    # Noise with several peaks may reveal more of a step of 1 than of a step of 2.
    tried = [max(distances)] if noise.is_unimodal() else sorted(set(distances))
    both = (noise,) if noise.is_symmetric else (noise, noise.mirrored)
    profiles = []
    for distance, order in product(tried, both):
        profiles.append(profile_of_pairs(order.pairs(distance), step, MOST_LOSSES - 1))
    return largest(profiles)


def comparisons(noise: IntegerNoise, distances: Sequence[int]) -> int:
    """How many pairs of masses δ at one ε compares: stretches of equal masses for each distance."""
    tried = 1 if noise.is_unimodal() else len(distances)
    blocks = 0
    for tail in (noise.left, noise.right):
        blocks += min(max(distances, default=0) // tail.period, MOST_PERIODS) if tail else 0
    # Masses far out in a tail have many digits, and take as much longer.
    return tried * 2 * len(noise.runs) * (blocks + 3) * (1 + blocks // 8)


def is_cheap(noise: IntegerNoise, distances: Sequence[int]) -> bool:
    """Whether :func:`exact_profile` takes moments; far out in a tail masses have many digits."""
    farthest = max(distances, default=0)
    for tail in (noise.left, noise.right):
        if tail and farthest > MOST_PERIODS * tail.period:
            return False
    return comparisons(noise, distances) <= MOST_COMPARED


def grouped_profile(noise: IntegerNoise, distance: int, step: Fraction) -> Profile | None:
    """Return a bound of the profile at distances up to ``distance``; None where none is known.

    The loss of one period of the tails, as often as it takes, is a pure ε.
    """
    loss = noise.loss_by_groups(distance)
    return None if loss is None else pure_profile(loss, step)
