"""Whether the profile of one mechanism lies below that of another, at every ε.

The values of a profile stand for the chords between them, in t = e^ε, and for the last value
beyond. A mechanism lies below its own chords, because its curve is convex. So it is dominated by
another profile if its chords lie below the other ones. Both are linear between the losses of the
two grids taken together, and constant beyond. So it suffices to compare there: at the grid losses
of either. Below t = 1 both follow from H(t) = 1 - t + t·H(1/t), which keeps the order.
"""

from __future__ import annotations

from fractions import Fraction

from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import Profile, profile_of_distribution
from release.exact.numbers import exp_bounds


def dominated(by: Profile, mechanism: Profile) -> bool:
    """Return whether the chords of ``mechanism`` are proved to lie below those of ``by``.

    On one grid this compares integers, so that a profile is dominated by itself. Between two
    losses of a grid a chord is rounded to the side that refuses.
    """
    for place, value in enumerate(mechanism.values):
        if value > _chord(by, place * mechanism.step, upward=False):
            return False
    for place, value in enumerate(by.values):
        if _chord(mechanism, place * by.step, upward=True) > value:
            return False
    return True


def profile_of_losses(losses: LossDistribution) -> Profile:
    """Return the profile that a distribution stands for, on its own grid."""
    return profile_of_distribution(losses.regridded(losses.step), losses.step)


def _chord(profile: Profile, loss: Fraction, *, upward: bool) -> Fraction:
    """δ on the chord of a profile at a loss of at least 0, in units of 1/UNIT, rounded."""
    place, rest = divmod(loss, profile.step)
    if place >= len(profile.values) - 1:
        return Fraction(profile.values[-1])
    before, after = profile.values[place], profile.values[place + 1]
    if rest == 0 or before == after:
        return Fraction(before)
    # The share of the way from one loss to the next, in t.
    (low, high), (step_low, step_high) = exp_bounds(rest), exp_bounds(profile.step)
    if upward:
        return before - (low - 1) / (step_high - 1) * (before - after)
    return before - min(Fraction(1), (high - 1) / (step_low - 1)) * (before - after)
