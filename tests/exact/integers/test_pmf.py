"""Laws over all integers: exact δ against sums to the end, and the theorems of Qin et al."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.numbers import exp_bounds
from research.published.clamping import discrete_gaussian, geometric, gumbel
from research.published.integer_pmf import IntegerPmf, Tail, theorem_1, theorem_2
from research.table_v import uniform_noise

HALF = Fraction(1, 2)


@st.composite
def laws(draw: st.DrawFn) -> IntegerPmf:
    masses = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
    ratios = st.sampled_from([Fraction(1, 3), HALF, Fraction(1, 7)])
    tails = st.none() | st.builds(Tail, st.integers(1, len(masses)), ratios)
    return IntegerPmf.of(
        draw(st.integers(-4, 4)), list(map(Fraction, masses)), *draw(st.tuples(tails, tails))
    )


@given(laws(), st.integers(1, 4), st.sampled_from([Fraction(1), Fraction(5, 4), Fraction(3)]))
@settings(max_examples=50, deadline=None)
def test_deltas_are_the_sums_over_a_long_stretch(
    law: IntegerPmf, most: int, ratio: Fraction
) -> None:
    """Tails of ratio at most 1/2 hold less than 10⁻¹² beyond 300 integers."""
    stretch = range(-300, 301)
    found = law.deltas(most, ratio)
    approximate, probabilistic = Fraction(0), Fraction(0)
    for shift in range(-most, most + 1):
        pairs = [(law.mass(k), law.mass(k + shift)) for k in stretch]
        excess = sum((max(Fraction(0), a - ratio * b) for a, b in pairs), Fraction(0))
        approximate = max(approximate, excess)
        probabilistic = max(probabilistic, sum((a for a, b in pairs if a > ratio * b), Fraction(0)))
    assert 0 <= found.approximate - approximate < Fraction(1, 10**12)
    assert 0 <= found.probabilistic - probabilistic < Fraction(1, 10**12)


@given(laws(), st.integers(-20, 20), st.integers(0, 25), st.sampled_from([3, 40]))
def test_units_follow_a_tail_step_by_step(
    law: IntegerPmf, low: int, more: int, places: int
) -> None:
    def units(noise: int) -> int:
        tail = law.right if noise > law.high else law.left
        if law.low <= noise <= law.high:
            return int(law.mass(noise) * 2**places)
        if tail is None:
            return 0
        nearer = noise - tail.period if noise > law.high else noise + tail.period
        return int(units(nearer) * tail.ratio)

    high = max(low + more, law.low)
    low = min(low, law.high)
    assert law.units(low, high, places) == [units(noise) for noise in range(low, high + 1)]


@given(laws(), st.sampled_from([Fraction(1), Fraction(3)]))
def test_one_and_the_same_answer_has_no_delta(law: IntegerPmf, ratio: Fraction) -> None:
    found = law.deltas(0, ratio)
    assert (found.probabilistic, found.approximate) == (Fraction(0), Fraction(0))
    assert theorem_1(law, 0) == 1


def test_noise_that_never_occurs_bounds_nothing() -> None:
    law = IntegerPmf(0, (Fraction(1, 4), HALF, Fraction(1, 4)))
    kept = theorem_2(law, 1, range(5, 8))
    assert kept is not None
    assert (kept.bound, kept.delta) == (Fraction(1), Fraction(1))


@given(laws(), st.integers(-40, 40))
@settings(max_examples=100, deadline=None)
def test_masses_add_up_on_both_sides(law: IntegerPmf, noise: int) -> None:
    assert law.above(noise) + law.mass(noise) + law.below(noise) == 1
    assert law.above(noise - 1) - law.above(noise) == law.mass(noise)
    assert law.below(noise) >= 0


@given(laws(), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_theorem_1_is_where_delta_becomes_zero(law: IntegerPmf, most: int) -> None:
    """Necessary and sufficient: no δ at c_b, some below it, and some at any ratio without c_b."""
    bound = theorem_1(law, most)
    if bound is None:
        assert law.deltas(most, Fraction(10**12)).approximate > 0
        return
    assert law.deltas(most, bound).approximate == 0
    if bound > 1:
        assert law.deltas(most, max(Fraction(1), bound * Fraction(999, 1000))).approximate > 0
    assert bound >= (theorem_1(law, most - 1) or 0) if most > 1 else True


@given(laws(), st.integers(1, 3), st.integers(-5, 0), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_theorem_2_is_sufficient(law: IntegerPmf, most: int, low: int, length: int) -> None:
    found = theorem_2(law, most, range(low, low + length))
    if found is not None:
        assert law.deltas(most, found.bound).approximate <= found.delta


def test_theorem_2_needs_the_noise_of_x_in_the_numerator() -> None:
    """Read with Θ₁ in the denominator, uniform noise would keep (0, 0); its δ is m/(b-a+1)."""
    law = uniform_noise(0, 9)
    support = range(10)
    denominators = {law.mass(k - m) / law.mass(k) for k in support for m in range(-2, 3)}
    assert max(denominators) == 1
    assert law.deltas(2, Fraction(1)).approximate == Fraction(2, 10)
    assert theorem_2(law, 2, support) is None
    kept = theorem_2(law, 2, range(2, 8))
    assert kept is not None
    assert kept.bound == 1
    assert kept.delta == Fraction(4, 10)


def test_noise_of_the_literature() -> None:
    two = geometric(Fraction(1))
    e = math.exp(-1)
    assert float(two.mass(-4)) == pytest.approx((1 - e) / (1 + e) * e**4, rel=1e-14)
    bound = theorem_1(two, 1)
    assert bound is not None
    assert bound <= exp_bounds(Fraction(1))[0]
    gauss = discrete_gaussian(Fraction(9, 4))
    weights = {k: math.exp(-k * k / 4.5) for k in range(-40, 41)}
    assert float(gauss.mass(3)) == pytest.approx(weights[3] / sum(weights.values()), rel=1e-13)
    bell = gumbel(1.5, 0.25)
    edge = [math.exp(-math.exp(-(x - 0.25) / 1.5)) for x in (1.5, 2.5)]
    assert float(bell.mass(2)) == pytest.approx(edge[1] - edge[0], rel=1e-12)
    mean = sum(k * float(bell.mass(k)) for k in range(-60, 200))
    assert mean == pytest.approx(0.25 + 1.5 * 0.5772156649, abs=2e-3)


def test_what_is_no_law_is_refused() -> None:
    for wrong in (
        lambda: Tail(0, HALF),
        lambda: Tail(1, Fraction(1)),
        lambda: Tail(1, Fraction(0)),
        lambda: Tail(1, Fraction(-1, 2)),
        # Its period would reach beyond the window, where the same sum of 1 is of nothing.
        lambda: IntegerPmf(0, (HALF,), Tail(2, HALF)),
        lambda: IntegerPmf(0, (HALF,), None, Tail(2, HALF)),
        lambda: IntegerPmf(0, (Fraction(1, 3),)),
        lambda: IntegerPmf(0, (Fraction(-1), Fraction(2))),
        lambda: IntegerPmf(0, (Fraction(1),), Tail(2, HALF)),
        lambda: geometric(Fraction(0)),
        lambda: discrete_gaussian(Fraction(0)),
        lambda: geometric(Fraction(1)).deltas(-1, Fraction(1)),
        lambda: theorem_1(geometric(Fraction(1)), -1),
        lambda: gumbel(0.003),
    ):
        with pytest.raises(ValueError, match=r"."):
            wrong()
