"""Whether one profile lies below another: beside the curves themselves, at many ratios."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.composition.distribution import UNIT, of_charge
from release.exact.composition.dominance import dominated, profile_of_losses
from release.exact.composition.profile import Profile, largest, profile_of_pairs
from release.exact.numbers import exp_bounds
from tests.exact.composition.exponential import exponential

Law = list[tuple[Fraction, Fraction]]
STEPS = st.sampled_from([Fraction(1, 8), Fraction(1, 4), Fraction(1, 7)])


@st.composite
def laws(draw: st.DrawFn) -> Law:
    size = draw(st.integers(2, 4))
    sides = []
    for _ in "PQ":
        weights = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
        sides.append([Fraction(weight, sum(weights)) for weight in weights])
    return list(zip(*sides, strict=True))


def profile_of(law: Law, step: Fraction) -> Profile:
    ways = (law, [(q, p) for p, q in law])
    return largest([profile_of_pairs(way, step, 400) for way in ways])


def curve(law: Law, ratio: Fraction) -> Fraction:
    """The profile at a ratio t, in rationals."""
    ways = (law, [(q, p) for p, q in law])
    return max(sum((max(Fraction(0), p - ratio * q) for p, q in way), Fraction(0)) for way in ways)


def chord(profile: Profile, place: int, share: Fraction) -> tuple[Fraction, Fraction]:
    """A ratio on the way from one grid loss to the next, and δ on the chord there."""
    at, then = exp_bounds(place * profile.step)[0], exp_bounds((place + 1) * profile.step)[0]
    before = profile.delta_at(place * profile.step)
    after = profile.delta_at((place + 1) * profile.step)
    return at + share * (then - at), before + share * (after - before)


@given(laws(), STEPS, laws(), STEPS)
def test_what_is_dominated_lies_below_at_every_ratio(
    one: Law, step: Fraction, other: Law, other_step: Fraction
) -> None:
    by, mechanism = profile_of(one, step), profile_of(other, other_step)
    if not dominated(by, mechanism):
        return
    for place in range(len(by.values) + 1):
        for share in (Fraction(0), Fraction(1, 3), Fraction(4, 5)):
            ratio, delta = chord(by, place, share)
            assert curve(other, ratio) <= delta + Fraction(1, 10**25)


@given(laws(), STEPS, st.integers(0, 40))
def test_a_profile_fits_itself_and_nothing_smaller(law: Law, step: Fraction, place: int) -> None:
    profile = profile_of(law, step)
    assert dominated(profile, profile)
    values = list(profile.values)
    place %= len(values)
    if values[place] > 0 and (place + 1 == len(values) or values[place] > values[place + 1]):
        values[place] -= 1
        less = Profile(step, tuple(values))
        assert not dominated(less, profile)
        assert dominated(profile, less)


@pytest.mark.parametrize(
    ("slot", "release", "fits"),
    [
        (("1", "0"), ("1", "0"), True),
        (("1", "0"), ("0.9", "0"), True),
        (("1", "0"), ("1.0001", "0"), False),
        (("1", "0"), ("0.5", "1e-9"), False),
        (("1", "1e-6"), ("0.9", "1e-7"), True),
        (("1", "1e-6"), ("0.5", "2e-6"), False),
        # Where ε grows and δ falls the curves cross: neither fits the other.
        (("1", "0.01"), ("1.02", "0"), False),
        (("1.02", "0"), ("1", "0.01"), False),
        (("0", "0.01"), ("0", "0.01"), True),
        (("0", "0.01"), ("0.1", "0"), False),
    ],
)
def test_charges_fit_by_their_worst_cases(
    slot: tuple[str, str], release: tuple[str, str], *, fits: bool
) -> None:
    curves = [Profile.of_charge(Fraction(one), Fraction(two)) for one, two in (slot, release)]
    assert dominated(*curves) is fits


def test_a_kink_of_either_curve_decides() -> None:
    half, tenth = UNIT // 2, UNIT // 10
    straight = Profile(Fraction(2), (half, 0))
    # Below the chord at loss 0 and 2, above it at 1.
    assert not dominated(straight, Profile(Fraction(1), (half, half, 0)))
    # A chord of the mechanism lies above a bent curve between its own losses.
    bent = Profile(Fraction(1), (half, tenth, 0))
    assert not dominated(bent, straight)
    assert dominated(straight, bent)
    # What lies beyond the last loss counts.
    assert not dominated(straight, Profile(Fraction(3), (tenth, 1)))


def test_the_profile_of_losses_is_on_their_own_grid() -> None:
    charge = of_charge(Fraction("0.3"), Fraction(1, 1000), Fraction("0.2"))
    profile = profile_of_losses(charge)
    assert profile.step == Fraction("0.2")
    for place in range(4):
        loss = place * profile.step
        assert charge.delta_at(loss) <= profile.delta_at(loss)


@pytest.mark.parametrize(("share", "fits"), [(Fraction(3, 8), False), (Fraction(2, 5), True)])
def test_chords_are_straight_in_the_ratio(share: Fraction, *, fits: bool) -> None:
    """A loss of 1/2 is 0.3775 of the way from 1 to e: so far a curve below has fallen there."""
    by = Profile(Fraction(1), (UNIT // 2, 0))
    between = UNIT // 2 - int(share * UNIT) // 2
    assert dominated(by, Profile(Fraction(1, 2), (UNIT // 2, between, 0))) is fits


@pytest.mark.parametrize("place", [1, 3])
def test_a_unit_beside_a_chord_decides(place: int) -> None:
    """A chord between two losses is irrational: of the units around it one lies below, one above.

    It counts for more than it is where it has to lie below, and for less where above.
    """
    coarse = [UNIT // 2, UNIT // 4, UNIT // 16]
    share = (exponential(Fraction(1, 2)) - 1) / (exponential(Fraction(1)) - 1)
    chords = [before + share * (after - before) for before, after in pairwise(coarse)]
    rounded = {}
    for rounding in (floor, ceil):
        between = [rounding(each) for each in chords]
        rounded[rounding] = [coarse[0], between[0], coarse[1], between[1], coarse[2]]
    of_coarse = Profile(Fraction(1), tuple(coarse))
    under, over = (Profile(Fraction(1, 2), tuple(rounded[each])) for each in (floor, ceil))
    assert dominated(of_coarse, under)
    assert dominated(over, of_coarse)
    one_over, one_under = list(under.values), list(over.values)
    one_over[place], one_under[place] = over.values[place], under.values[place]
    assert not dominated(of_coarse, Profile(Fraction(1, 2), tuple(one_over)))
    assert not dominated(Profile(Fraction(1, 2), tuple(one_under)), of_coarse)


def test_a_chord_never_leaves_its_ends() -> None:
    """Also on a grid so short that the bounds of its step are far apart in proportion."""
    by = Profile(Fraction("3e-40"), (10, 5))
    assert dominated(by, Profile(Fraction("2.9e-40"), (5, 5)))
    assert not dominated(by, Profile(Fraction("2.9e-40"), (10, 10, 6)))


def test_what_the_bounds_of_a_chord_do_not_decide_is_refused() -> None:
    """Half of the way, to within the bounds of e^step: neither is proved to lie below the other."""
    coarse = Profile(Fraction("1e-38"), (UNIT, 0))
    fine = Profile(Fraction("5e-39"), (UNIT, UNIT // 2, 0))
    assert not dominated(coarse, fine)
    assert not dominated(fine, coarse)
