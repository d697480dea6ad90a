"""Products of the profiles of mechanisms: the enumerated truth below, dp_accounting's figure above.

test_charges.py has the same for charges that are known by their ε and δ alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import pytest
from dp_accounting.pld import privacy_loss_distribution

from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import Profile, profile_of_pairs
from release.exact.composition.together import together
from release.exact.domain import Group
from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.integers.profile import exact_profile
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.noise.composed.laws import exponential_power

STEP = Fraction(1, 100)
SCALE = 2**90
Masses = Mapping[int, Fraction]


@dataclass(frozen=True)
class Real:
    """A mechanism with symmetric noise: its profile, and the masses of two neighboring answers."""

    profile: Profile
    here: Masses
    there: Masses

    @cached_property
    def losses(self) -> LossDistribution:
        """Of the dominating pair."""
        return self.profile.distribution()

    def outcomes(self, most: int) -> list[tuple[int, int]]:
        """P's masses rounded down and Q's up, of the likeliest outcomes: no loss is overstated."""
        likely = sorted(self.here, key=lambda outcome: self.here[outcome], reverse=True)[:most]
        rounded = []
        for outcome in likely:
            light = self.there.get(outcome, Fraction(0))
            rounded.append((int(self.here[outcome] * SCALE), math.ceil(light * SCALE)))
        return rounded


def on_integers(noise: IntegerNoise, distance: int) -> Real:
    reach = noise.radius(1 - 1e-15) if noise.right else noise.high
    here = {place: noise.mass(place) for place in range(-reach, reach + 1)}
    there = {place + distance: mass for place, mass in here.items()}
    return Real(exact_profile(noise, (distance,), STEP), here, there)


def modular(half: Sequence[int], shift: int) -> Real:
    """On a ring of an odd number of answers; ``half`` has the weights of 1, 2 and so on."""
    size = 2 * len(half) + 1
    weights = [256 - 2 * sum(half), *half, *reversed(half)]
    pmf = Pmf.of(Group((size,)), weights)
    here = {place: Fraction(weight, 256) for place, weight in enumerate(weights) if weight}
    there = {(place + shift) % size: mass for place, mass in here.items()}
    moves = Sensitivity.of(pmf.group, [(shift,)])
    return Real(Modular(pmf).profile(moves, STEP), here, there)


def mechanisms(source: random.Random) -> list[Real]:
    """Thirty with losses of every form: infinite, of two values, spread out, not monotone."""
    found = []
    for _ in range(6):
        epsilon = Fraction(source.randrange(2, 200), 100)
        found.append(on_integers(geometric_noise(least_ratio(epsilon, 1)), 1))
        top, end = source.randrange(60, 150, 2), source.randrange(1, 30)
        window = IntegerNoise.symmetric([(1, top), (1, 128 - top // 2 - end), (1, end)])
        found.append(on_integers(window, source.randrange(1, 3)))
        part = source.randrange(2**58, 2**59)
        half = [(2, 2 * part), (1, 2**61 - 3 * part)]
        staircase = IntegerNoise.symmetric(half, Tail(2, source.randrange(2**60, 2**63)))
        found.append(on_integers(staircase, source.randrange(1, 4)))
        scale, power = (
            Fraction(source.randrange(20, 60), 10),
            Fraction(source.randrange(11, 21), 10),
        )
        found.append(on_integers(exponential_power(scale, power), 1))
        ring = [source.randrange(0, 40) for _ in range(source.randrange(1, 4))]
        found.append(modular(ring, source.randrange(1, len(ring) + 1)))
    return found


def dp_accountings(chosen: Sequence[Real], delta: float) -> float:
    """The pessimistic ε on our grid, from the logarithms of the masses as floats."""
    composition = privacy_loss_distribution.identity(value_discretization_interval=float(STEP))
    for real in chosen:
        logs = {place: math.log(mass) for place, mass in real.here.items()}
        shifted = {place: math.log(mass) for place, mass in real.there.items()}
        one = privacy_loss_distribution.from_two_probability_mass_functions(
            shifted, logs, value_discretization_interval=float(STEP), symmetric=True
        )
        composition = composition.compose(one)
    return float(composition.get_epsilon_for_delta(delta))


def enumerated(chosen: Sequence[Sequence[tuple[int, int]]], ratio: Fraction) -> Fraction:
    """Σ max(0, P - ratio·Q) over the joint outcomes of independent mechanisms."""
    numerator, denominator = ratio.numerator, ratio.denominator
    total = 0
    for outcome in product(*chosen):
        heavy = math.prod(mass for mass, _ in outcome)
        light = math.prod(mass for _, mass in outcome)
        total += max(0, heavy * denominator - numerator * light)
    return Fraction(total, denominator * SCALE ** len(chosen))


def composed(chosen: Sequence[Real]) -> LossDistribution:
    return together((real.losses, 1) for real in chosen)


@pytest.fixture(scope="module")
def products() -> list[list[Real]]:
    source = random.Random(20240302)  # noqa: S311 - cases of a test
    several = mechanisms(source)
    return [source.sample(several, source.randrange(2, 5)) for _ in range(200)]


def test_two_hundred_products_are_at_least_the_enumerated_truth(
    products: list[list[Real]],
) -> None:
    for chosen in products:
        found = composed(chosen)
        outcomes = [real.outcomes(7 if len(chosen) < 4 else 5) for real in chosen]
        for at in ("0", "0.31", "1.705"):
            ratio = exp_bounds(Fraction(at))[1]
            assert enumerated(outcomes, ratio) <= found.delta_at(Fraction(at))


def test_two_hundred_products_are_at_most_dp_accountings_pessimistic_figure(
    products: list[list[Real]],
) -> None:
    """At the same grid; 10⁻⁷ is for its floats."""
    source = random.Random(5)  # noqa: S311 - cases of a test
    finite = 0
    for chosen in products:
        delta = source.choice([Fraction(1, 10**5), Fraction(1, 1000), Fraction(1, 10)])
        theirs = dp_accountings(chosen, float(delta))
        found = composed(chosen).epsilon_at(delta)
        if found is None:
            assert theirs == math.inf
            continue
        finite += 1
        assert found <= theirs + 1e-7
    assert finite > 100


def test_delta_is_the_same_in_any_order_of_products() -> None:
    source = random.Random(9)  # noqa: S311 - cases of a test
    chosen = source.sample(mechanisms(source), 16)
    expected = composed(chosen)
    for _ in range(3):
        source.shuffle(chosen)
        one_by_one = chosen[0].losses
        for real in chosen[1:]:
            one_by_one = one_by_one.composed(real.losses)
        for found in (one_by_one, composed(chosen)):
            for at in map(Fraction, ("0", "1.003", "5", "20")):
                assert abs(found.delta_at(at) - expected.delta_at(at)) < Fraction(1, 10**10)


def response(epsilon: Fraction, infinite: Fraction) -> list[tuple[Fraction, Fraction]]:
    """(P, Q) of three answers of which neighbors exchange two, and of one that P alone gives."""
    ratio, rest = exp_bounds(epsilon)[0], 1 - infinite
    shares = [rest * ratio / (2 + ratio), rest / (2 + ratio)]
    heavy = [*shares, shares[1], infinite, Fraction(0)]
    light = [shares[1], shares[0], shares[1], Fraction(0), infinite]
    return list(zip(heavy, light, strict=True))


@pytest.mark.parametrize("epsilon", ["0.000001", "1", "50"])
@pytest.mark.parametrize("infinite", ["0", "1e-9", "0.25"])
def test_tiny_huge_and_infinite_losses_compose_to_the_truth(epsilon: str, infinite: str) -> None:
    """With every loss on the grid nothing is lost but roundings."""
    loss = Fraction(epsilon)
    pairs = response(loss, Fraction(infinite))
    profile = profile_of_pairs(pairs, loss / 2, 40)
    found = profile.distribution().repeated(3)
    for share in ("0", "0.4", "1", "1.9", "3"):
        at = loss * Fraction(share)
        if at > 100:
            continue
        ratio = exp_bounds(at)[0]
        truth = Fraction(0)
        for outcome in product(pairs, repeat=3):
            heavy = math.prod(mass for mass, _ in outcome)
            light = math.prod(mass for _, mass in outcome)
            truth += max(Fraction(0), heavy - ratio * light)
        # The bounds of e^loss are 10⁻²⁰ apart at most, in proportion.
        assert truth - Fraction(1, 10**20) <= found.delta_at(at) <= truth + Fraction(1, 10**20)


@pytest.mark.parametrize("place", range(1, 6))
@pytest.mark.parametrize("change", [-1, 1])
def test_a_last_bit_that_breaks_convexity_is_accounted_for(place: int, change: int) -> None:
    """One weight of geometric noise is a unit off, so ln f is neither convex nor concave there."""
    epsilon = Fraction(1, 2)
    ratio = 1 / exp_bounds(epsilon)[0]
    weights = [int(2**62 * ratio**distance * (1 - ratio) / (1 + ratio)) for distance in range(8)]
    weights[place] += change
    noise = _closed(weights, int(ratio * 2**64))
    profile = exact_profile(noise, (1,), STEP)
    pairs = noise.pairs(1)
    found = profile.distribution().composed(profile.distribution())
    off = 0
    for share in range(21):
        at = epsilon * share / 10
        at_ratio = exp_bounds(at)[1]
        truth = _two(pairs, at_ratio)
        assert truth <= found.delta_at(at)
        off += truth > 0
    # At 2ε the exact geometric noise has δ = 0; this one has not, and it is found.
    last = found.delta_at(2 * epsilon)
    assert 0 < _two(pairs, exp_bounds(2 * epsilon)[1]) <= last < Fraction(1, 10**15)
    assert off == 21


def _closed(weights: Sequence[int], ratio: int) -> IntegerNoise:
    """Symmetric noise with these weights and a tail; that of 0 makes the total a power of two."""
    *inner, last = weights
    # The last weight is that of itself and all that repeat it.
    half = [*inner[1:], last * 2**64 // (2**64 - ratio)]
    runs = [(1, weight) for weight in (2**62 - 2 * sum(half), *half)]
    return IntegerNoise.symmetric(runs, Tail(1, ratio))


def _two(pairs: Sequence[tuple[Fraction, Fraction]], ratio: Fraction) -> Fraction:
    """The hockey stick of two independent copies."""
    total = Fraction(0)
    for (heavy, light), (other, less) in product(pairs, repeat=2):
        total += max(Fraction(0), heavy * other - ratio * light * less)
    return total
