"""What profiles are held against: the hockey stick of two distributions, in rationals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import Profile
from release.exact.numbers import exp_bounds

HAIR = Fraction(1, 10**20)


def hockey_stick(heavy: Sequence[Fraction], light: Sequence[Fraction], ratio: Fraction) -> Fraction:
    """Σ max(0, P - ratio·Q)."""
    both = zip(heavy, light, strict=True)
    return sum((max(Fraction(0), p - ratio * q) for p, q in both), Fraction(0))


def standing(profile: Profile, ratio: Fraction) -> Fraction:
    """The curve that the values of a profile stand for, at any t > 0: chords, a constant, mirrored.

    Grid losses enter by rational bounds, such that the result is at most a hair above the curve.
    """
    if ratio < 1:
        return 1 - ratio + ratio * standing(profile, 1 / ratio)
    values = [Fraction(value, UNIT) for value in profile.values]
    for place, (before, after) in enumerate(pairwise(values)):
        near, far = exp_bounds(place * profile.step), exp_bounds((place + 1) * profile.step)
        if ratio < far[0]:
            share = (far[1] - ratio) / (far[0] - near[1])
            return after + min(Fraction(1), share) * (before - after)
    return values[-1]
