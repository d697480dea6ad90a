"""The verifier in one file: masses, pairs and moments of noise, by a second computation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import pytest

from release.exact.integers.noise import IntegerNoise, Run, Tail
from release.exact.integers.profile import comparisons, exact_profile, grouped_profile
from release.exact.numbers import exp_bounds
from release.verification import standalone
from tests.verification.standalone.alone import Plain, refused

UNIT, SCALE = 2**64, 10**40
HALF = UNIT // 2


def noise_of(
    low: int, runs: Sequence[Run], left: Tail | None = None, right: Tail | None = None
) -> tuple[standalone.Noise, IntegerNoise]:
    """The same noise as each party reads it; a last weight makes the sum 2^10."""
    tails = {
        name: {"period": tail.period, "ratio": str(tail.ratio)} if tail else None
        for name, tail in (("left", left), ("right", right))
    }
    lengths, weights = zip(*runs, strict=True)
    total = sum(length * weight for length, weight in runs)
    plain = {"low": low, "lengths": list(lengths), "weights": list(map(str, weights)), **tails}
    return standalone.Noise("f", plain, total), IntegerNoise(low, tuple(runs), left, right)


ONE, TWO, SLOW = Tail(1, HALF), Tail(2, UNIT // 3), Tail(3, UNIT * 9 // 10)
UNEVEN = Tail(2, UNIT * 9 // 10)
Shape = tuple[int, list[Run], Tail | None, Tail | None]
NOISES: list[Shape] = [
    (-1, [(1, 256), (1, 512), (1, 256)], ONE, ONE),
    (-2, [(1, 100), (1, 200), (1, 424), (1, 200), (1, 100)], TWO, TWO),
    (-2, [(2, 128), (1, 512), (2, 128)], TWO, TWO),
    (-3, [(3, 100), (1, 424), (3, 100)], SLOW, SLOW),
    (-1, [(1, 24), (1, 500), (2, 250)], ONE, TWO),
    (0, [(1, 1000), (1, 24)], None, ONE),
    (-1, [(1, 24), (1, 1000)], ONE, None),
    (-1, [(1, 256), (1, 512), (1, 256)], None, None),
    (-3, [(2, 256), (1, 0), (1, 512)], None, None),
    (-1, [(1, 512), (1, 0), (1, 512)], ONE, ONE),
    (2, [(4, 128), (1, 512)], None, Tail(1, 3)),
    (-6, [(1, 512), (4, 128)], Tail(1, UNIT - 9), None),
    (0, [(4, 256)], None, SLOW),
    (-3, [(8, 128)], SLOW, TWO),
    (-3, [(8, 128)], None, None),
    (-2, [(1, 100), (1, 120), (1, 584), (1, 120), (1, 100)], UNEVEN, UNEVEN),
    (0, [(1, 1024)], None, ONE),
    (-4, [(1, 24), (2, 100), (1, 400), (3, 92), (1, 124)], TWO, SLOW),
]
PLACES = range(len(NOISES))


@pytest.mark.parametrize("place", PLACES)
def test_pairs_are_those_of_the_package(place: int) -> None:
    ours, theirs = noise_of(*NOISES[place])
    for distance, epsilon in itertools.product((1, 2, 3, 5, 8), ("0", "1/3", "1", "4")):
        ratio = standalone.below_e(Fraction(epsilon))
        found = theirs._violated(distance, Fraction(ratio, SCALE))
        mirrored = theirs.mirrored._violated(distance, Fraction(ratio, SCALE))
        for sign, (heavy, light) in ((1, found), (-1, mirrored)):
            pairs = ours.pairs(sign * distance)
            expected = heavy - Fraction(ratio, SCALE) * light
            assert Fraction(pairs.excess(ratio), SCALE * pairs.total) == expected
            assert Fraction(pairs.above[pairs.count(ratio)], pairs.total) == heavy
            assert Fraction(pairs.above[-1], pairs.total) == 1


@pytest.mark.parametrize("place", PLACES)
def test_masses_add_up_to_moments(place: int) -> None:
    ours, theirs = noise_of(*NOISES[place])
    assert [ours.moment(power) for power in (1, 2)] == [theirs.moment(power) for power in (1, 2)]
    assert ours.moment(0) == 1 - theirs.mass(0)
    assert (ours.low, ours.high) == (theirs.low, theirs.high)


@pytest.mark.parametrize("place", PLACES)
def test_shape_and_work_are_those_of_the_package(place: int) -> None:
    ours, theirs = noise_of(*NOISES[place])
    assert ours.is_unimodal == theirs.is_unimodal()
    for distances in (
        {1},
        {1, 2},
        {3, 5, 40},
        set(range(1, 20)),
        {1, 256},
        {257},
        {1, 512},
        {513, 514},
        {769, 1000},
    ):
        chosen, work, is_far = ours.size(distances)
        assert chosen == ({max(distances)} if theirs.is_unimodal() else distances)
        assert work == comparisons(theirs, sorted(distances))
        periods = [tail.period for tail in (theirs.left, theirs.right) if tail]
        assert is_far == any(max(distances) // period > 256 for period in periods)


def mass(low: int, weights: list[int], tails: list[Tail | None], k: int) -> Fraction:
    """f(k) by the page: what is beyond the window repeats its last period."""
    total, high = sum(weights), low + len(weights) - 1
    left, right = tails
    place, share = k, Fraction(1)
    if right and k > high - right.period:
        times = max(0, -(-(k - high) // right.period))
        place, rho = k - times * right.period, right.fraction
        share = (1 - rho) * rho**times
    if left and k < low + left.period:
        times = max(0, -(-(low - k) // left.period))
        place, rho = k + times * left.period, left.fraction
        share = (1 - rho) * rho**times
    return share * Fraction(weights[place - low], total) if low <= place <= high else Fraction(0)


@pytest.mark.parametrize("place", PLACES)
def test_masses_are_those_of_the_page(place: int) -> None:
    low, runs, left, right = NOISES[place]
    ours, _ = noise_of(*NOISES[place])
    weights = [weight for length, weight in runs for _ in range(length)]
    for most in (1, 2):
        starts, masses = ours.masses(most)
        whole = ours.total * UNIT ** (most + 1)
        first = low - most * ours.periods[0]
        last = ours.high + most * ours.periods[1]
        for k in range(first - 2, last + 3):
            found = masses[sum(start <= k for start in starts)]
            inside = first <= k <= last
            expected = mass(low, weights, [left, right], k) if inside else Fraction(0)
            assert Fraction(found, whole) == expected, k


BASE: Plain = {
    **{"low": -1, "lengths": [1, 1, 1], "weights": ["1", "2", "1"]},
    **{"left": {"period": 1, "ratio": "5"}, "right": {"period": 1, "ratio": "7"}},
}
FAR = 2**62


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"weights": ["1", "1", "1"]}, "a window"),
        ({"weights": ["1", "3", "0"]}, ""),
        ({"weights": ["0", "4", "0"]}, ""),
        ({"lengths": [1, 2], "weights": ["0", "2"]}, ""),
        ({"lengths": [1, 2, 0], "weights": ["0", "2", "1"]}, "a window"),
        ({"lengths": [2, 1, -1], "weights": ["1", "3", "1"], "low": 0}, "a window"),
        ({"lengths": [1, 1], "weights": ["2", "2"]}, "runs of equal weight"),
        ({"lengths": [1, 1, 1], "weights": ["1", "1", "2"]}, "runs of equal weight"),
        ({"left": None, "right": None}, ""),
        ({"left": {"period": 0, "ratio": "5"}}, "noise: found {'period': 0"),
        ({"left": {"period": 1, "ratio": "0"}}, "noise: found {'period': 1"),
        ({"right": {"period": 1, "ratio": "1"}}, ""),
        ({"right": {"period": 1, "ratio": str(UNIT - 1)}}, ""),
        ({"right": {"period": 1, "ratio": str(UNIT)}}, "noise: found {'period': 1"),
        ({"right": {"period": 2, "ratio": "5"}}, ""),
        ({"right": {"period": 3, "ratio": "5"}}, "periods"),
        ({"left": {"period": 2, "ratio": "5"}}, ""),
        ({"left": {"period": 3, "ratio": "5"}}, "periods"),
        ({"low": 0}, ""),
        ({"low": 1}, "periods"),
        ({"low": -2}, ""),
        ({"low": -3}, "periods"),
        ({"low": 1, "left": None}, ""),
        ({"low": -3, "right": None}, ""),
        ({"left": {"period": 2, "ratio": "5"}, "right": {"period": 2, "ratio": "5"}}, "periods"),
        ({"low": -FAR, "right": None}, ""),
        ({"low": -FAR - 1, "right": None}, "a window"),
        ({"low": FAR - 2, "left": None}, ""),
        ({"low": FAR - 1, "left": None}, "a window"),
    ],
)
def test_a_window_and_its_tails_keep_their_limits(change: Plain, says: str) -> None:
    if not says:
        standalone.Noise("f", BASE | change, 4)
        return
    with refused("f: noise: ", says) if "noise" not in says else refused("f: ", says):
        standalone.Noise("f", BASE | change, 4)


def test_each_run_has_one_weight() -> None:
    for lengths in ([1, 1], [1, 1, 1, 1]):
        with pytest.raises(ValueError, match="zip"):
            standalone.Noise("f", BASE | {"lengths": lengths}, 4)


def brute(of: dict[tuple[int, int], int], ratio: int) -> tuple[int, int]:
    """The sum of max(0, p − r·q), and how many pairs have p > r·q."""
    above = [p * SCALE - ratio * q for p, q in of if p]
    times = [n for (p, _), n in of.items() if p]
    return sum(max(0, a) * n for a, n in zip(above, times, strict=True)), sum(a > 0 for a in above)


LONG = 2**61 - 1
CLOSE = {(LONG - 2, LONG - 1): 1, (LONG - 1, LONG): 2}
"""Two ratios that differ by about 2^-122, the smaller first."""


@pytest.mark.parametrize(
    "of",
    [
        {(0, 0): 2, (3, 2): 4, (1, 2): 3, (0, 5): 2, (2, 0): 1, (100, 1): 1, (2, 2): 1},
        {(0, 3): 1},
        {(5, 0): 2},
        {(10**30, 1): 1, (1, 0): 3, (1, 10**30): 7, (7, 7): 1},
        CLOSE,
    ],
)
def test_pairs_of_masses_are_compared_one_by_one(of: dict[tuple[int, int], int]) -> None:
    pairs = standalone.Pairs(of, 1000)
    ratios = [SCALE * p // q + more for p, q in of if q for more in (-1, 0, 1)]
    for ratio in (*ratios, SCALE, 0):
        if ratio >= 0:
            assert (pairs.excess(ratio), pairs.count(ratio)) == brute(of, ratio)
    finite = [Fraction(p, q) for p, q in of if p and q]
    p, q = pairs.finite
    assert (Fraction(p, q) if p else Fraction(0)) == max(finite, default=Fraction(0))
    assert pairs.above[-1] == sum(p * n for (p, _), n in of.items())


def test_a_ratio_between_two_close_ones_tells_them_apart() -> None:
    low, high = (Fraction(p, q) for p, q in CLOSE)
    assert 0 < high - low < Fraction(1, 10**36)
    for of in (CLOSE, dict(reversed(CLOSE.items()))):
        pairs = standalone.Pairs(of, 10**60)
        assert pairs.pairs[0] == (LONG - 1, LONG)
        assert pairs.count(int(SCALE * high)) == 1


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 4), (1, 1), (3, 9)])
@pytest.mark.parametrize("period", [1, 2, 5])
def test_moments_of_a_run_are_its_sums(first: int, last: int, period: int) -> None:
    run = range(first, last + 1)
    still = standalone.moments(first, last, period, Fraction(0))
    assert still == [len(run), sum(run), sum(k * k for k in run)]
    rho = Fraction(1, 3)
    moved = standalone.moments(first, last, period, rho)
    for power in (0, 1, 2):
        terms = ((k + g * period) ** power * (1 - rho) * rho**g for k in run for g in range(80))
        assert abs(float(moved[power] - sum(terms, Fraction(0)))) < 1e-20


def test_steps_are_within_a_ratio_or_not() -> None:
    even, _ = noise_of(-1, [(1, 256), (1, 512), (1, 256)], ONE, ONE)
    # 512 beside 256·½: two steps from 0 the masses are in the ratio 4.
    assert even.falls_by(HALF // 2)
    assert not even.falls_by(HALF // 2 + 1)
    ends, _ = noise_of(-1, [(1, 256), (1, 512), (1, 256)])
    assert not ends.falls_by(1)
    one_sided, _ = noise_of(0, [(1, 512), (2, 256)], None, ONE)
    assert not one_sided.falls_by(1)


def test_a_period_has_the_largest_ratio_of_its_steps() -> None:
    even, theirs = noise_of(*NOISES[2])
    assert even.step_ratio() == 1 / theirs._least_share(2)
    assert noise_of(*NOISES[0])[0].step_ratio() == 4
    for place in (4, 5, 6, 7, 9, 13, 14, 16):
        assert noise_of(*NOISES[place])[0].step_ratio() is None
    same_period = noise_of(-1, [(1, 256), (1, 512), (1, 256)], ONE, Tail(1, HALF + 1))[0]
    assert same_period.step_ratio() is None
    same_ratio = noise_of(-1, [(1, 256), (1, 512), (2, 128)], ONE, Tail(2, HALF))[0]
    assert same_ratio.step_ratio() is None


def test_work_up_to_the_limit_is_done() -> None:
    """At a distance of 40 periods a run takes 2·(80 + 3)·(1 + 10) = 1826 comparisons."""

    def runs(count: int) -> standalone.Noise:
        tail = {"period": 1, "ratio": str(HALF)}
        # Of the weights 1 and 2 by turns, so that all distances are compared.
        weights = [str(1 + place % 2) for place in range(count)]
        plain: Plain = {"low": -(count // 2), "lengths": [1] * count, "weights": weights}
        return standalone.Noise("f", plain | {"left": tail, "right": tail}, count * 3 // 2)

    assert runs(546).size({40}) == ({40}, 996996, False)
    assert len(runs(546).proved("f", {40}, Fraction(1))) == 2
    with refused("f: size: found 1000648, expected at most 10^6"):
        runs(548).proved("f", {40}, Fraction(1))
    assert runs(164).cell({40}, Fraction(1)) != []
    # 3·10^5 is 164.3 times as many.
    assert runs(166).cell({40}, Fraction(1)) == []


def test_distances_far_out_are_not_proved_of_uneven_noise() -> None:
    noise, _ = noise_of(*NOISES[0])
    # c is 4, so 257 periods have a pure ε of 257·ln 4 = 356.27….
    assert noise.proved("f", {257}, Fraction(100)) == []
    for place in (5, 9, 13):
        other, _ = noise_of(*NOISES[place])
        assert other.proved("f", {900}, Fraction(100)) == []


def geometric(ratio: int) -> standalone.Noise:
    """Noise that falls by ρ everywhere, as nearly as 2^62 lets it."""
    total = 2**62
    side = -(-total * ratio // (UNIT + ratio))
    tail = {"period": 1, "ratio": str(ratio)}
    weights = [str(side), str(total - 2 * side), str(side)]
    plain: Plain = {"low": -1, "lengths": [1, 1, 1], "weights": weights}
    return standalone.Noise("f", plain | {"left": tail, "right": tail}, total)


STAIR = Tail(2, UNIT * 99 // 100)
STAIRS: Shape = (-2, [(2, 261483), (1, 2644), (2, 261483)], STAIR, STAIR)
"""Noise that falls by a little more than 1 % in every two integers."""


@pytest.mark.parametrize("period", [1, 2])
def test_far_noise_is_pure_if_the_power_of_its_ratio_is(period: int) -> None:
    noise = geometric(UNIT * 99 // 100) if period == 1 else noise_of(*STAIRS)[0]
    ratio = noise.step_ratio()
    assert ratio is not None
    many = Context(prec=60)
    loss = many.ln(many.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    for periods in (257, 300, 1000):
        epsilon = periods * Fraction(loss)
        for distance in {period * periods, period * periods - (period - 1) * (periods > 257)}:
            (found,) = noise.proved("f", {1, distance}, epsilon + Fraction(1, 10**20))
            assert Fraction(found.excess(SCALE), found.total) == 0
            assert noise.proved("f", {1, distance}, epsilon - Fraction(1, 10**20)) == []


STEPS = [Fraction(1, 64), Fraction(1, 5), Fraction(1)]


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5, 9, 13, 14])
def test_a_cell_has_the_profile_of_the_package(place: int) -> None:
    ours, theirs = noise_of(*NOISES[place])
    for distances, step in itertools.product([{1}, {1, 2}, {2, 5}], STEPS):
        expected = exact_profile(theirs, sorted(distances), step).shortened()
        assert ours.cell(distances, step) == list(expected.values)


def test_a_cell_far_out_has_a_pure_profile_or_none() -> None:
    ours, theirs = noise_of(*STAIRS)
    for distance in (514, 515, 700):
        expected = grouped_profile(theirs, distance, Fraction(1, 4))
        assert expected is not None
        found = ours.cell({1, distance}, Fraction(1, 4))
        assert found == list(expected.shortened().values)
        assert (len(found) > 9) == (distance > 513)
    for place in (5, 7, 9):
        far, _ = noise_of(*NOISES[place])
        assert bool(far.cell({300}, Fraction(1))) == (place == 7)
    uneven, _ = noise_of(*NOISES[3][:2], SLOW, Tail(3, SLOW.ratio + 1))
    assert uneven.cell({900}, Fraction(1)) == []


def test_both_directions_are_compared() -> None:
    noise, _ = noise_of(*NOISES[4])
    ratio = standalone.below_e(Fraction(1, 2))
    found = [pairs.excess(ratio) for pairs in noise.proved("f", {3}, Fraction(1, 2))]
    assert found == [noise.pairs(3).excess(ratio), noise.pairs(-3).excess(ratio)]
    assert found[0] != found[1]


def test_the_limits_of_work_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, _ = noise_of(*NOISES[4])
    cell = noise.cell({2}, Fraction(1))
    work = 10**6
    monkeypatch.setattr(standalone.Noise, "size", lambda _, distances: (distances, work, False))
    assert len(noise.proved("f", {1}, Fraction(1))) == 2
    work = 3 * 10**5
    assert noise.cell({2}, Fraction(1)) == cell
    work += 1
    assert noise.cell({2}, Fraction(1)) == []


def test_a_quotient_is_rounded_up_to_a_hundred_digits() -> None:
    for ratio in (Fraction(1, 3), Fraction(2, 3), Fraction(5, 4)):
        found = Fraction(standalone.rounded_up(ratio))
        assert ratio <= found < ratio + Fraction(1, 10**99)
        assert len(standalone.rounded_up(ratio).as_tuple().digits) in (100, 3)
        assert (found == ratio) == (ratio == Fraction(5, 4))


@pytest.mark.parametrize("text", ["0", "1/10", "0.5", "1", "9.75", "100"])
def test_e_lies_between_its_two_rationals(text: str) -> None:
    value = Fraction(text)
    below, above = exp_bounds(value)
    ours = Fraction(standalone.below_e(value), SCALE), Fraction(standalone.above_e(value), SCALE)
    assert (below, above) == ours
    many = Context(prec=130)
    whole = many.exp(many.divide(Decimal(value.numerator), Decimal(value.denominator)))
    assert standalone.floor_of_e(value) == int(many.multiply(whole, Decimal(SCALE)))
    if not value:
        assert ours == (Fraction(1), 1 + Fraction(1, SCALE))
