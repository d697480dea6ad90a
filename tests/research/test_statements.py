"""Numbered results of the sources that have no test of their own elsewhere."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from release.exact.channel import Channel, answer_costs
from release.exact.domain import Group, Topology
from release.exact.losses import Loss, LossName, named_loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity, line_pairs
from release.noise.solve import design
from research.printed import bd_regions, bounded_difference, sd_breaks, single_distance
from research.programs import noise_deltas, our_masses, ours, printed
from research.published.clamping import (
    clamped,
    decay,
    discrete_gaussian,
    geometric,
    geometric_clamped,
    two_sided,
)
from research.published.integer_pmf import IntegerPmf
from research.published.qin import gaussian_input, solve_relaxed
from research.published.sadeghi import count_law, crossovers, lower_bounds, solve_counts
from research.qin.laws import optimal_size
from research.table_v import (
    one_sided_exponential,
    quantised_gaussian,
    quantised_laplace,
    staircase_noise,
    uniform_noise,
)
from tests.noise.test_solve import masses, solve

MATCHED = Fraction(4683, 10_000)


@given(st.lists(st.integers(1, 30), min_size=3, max_size=9), st.sampled_from(["0.2", "1", "2"]))
@settings(max_examples=60, deadline=None)
def test_the_approximate_delta_is_never_above_the_probabilistic_one(
    raw: list[int], epsilon: str
) -> None:
    """Kadam et al. 2024, Theorem 1; the converse is wrong."""
    law = Pmf.of(Group((len(raw),)), [2**10 - sum(raw[1:]), *raw[1:]])
    found = deltas(law, Sensitivity.of(law.group, [(1,)]), Fraction(epsilon))
    assert found.approximate <= found.probabilistic
    one = noise_deltas(two_sided(MATCHED), 0.5)
    # Σ_{k≥0} (f(k) - e^½ f(k+1)) and Σ_{k≥0} f(k) of a geometric series.
    assert float(one.probabilistic) == pytest.approx(1 / 1.4683, abs=1e-12)
    expected = (1 - 0.4683 * math.exp(0.5)) / 1.4683
    assert float(one.approximate) == pytest.approx(expected, abs=1e-12)


def test_a_bijection_keeps_both_deltas_and_any_map_a_pure_guarantee() -> None:
    """Proposition 1, over all permutations and all maps of four answers."""
    channel = geometric_clamped(4, Fraction(1))
    pairs, low, weak = line_pairs(4, [1]), exp_bounds(Fraction(1))[0], exp_bounds(Fraction(1, 2))[0]
    before = channel.deltas_of_pairs(pairs, weak)
    for image in itertools.product(range(4), repeat=4):
        rows = [[0] * 4 for _ in range(4)]
        for q, o in itertools.product(range(4), repeat=2):
            rows[q][image[o]] += int(channel.rows[q][o])
        after = Channel.near(rows)
        assert after.deltas_of_pairs(pairs, low).probabilistic == 0
        if len(set(image)) == 4:
            assert after.deltas_of_pairs(pairs, weak) == before
    # A map that is no bijection can raise a probabilistic δ: clamped Gaussian noise.
    gaussian = discrete_gaussian(Fraction(338, 100))
    inside = clamped(gaussian, 9).deltas_of_pairs(line_pairs(9, [1]), weak).probabilistic
    assert inside > noise_deltas(gaussian, 0.5).probabilistic


def test_error_rate_and_squared_error_of_wrapped_noise() -> None:
    """Definitions 3 and 4, answer by answer: 1 - f(0), and Σ η(N-η)f(η), not Σ η²f(η)."""
    n = 6
    law = our_masses(n, [1, 2], 1.0, 0.0)
    wrong = squared = 0.0
    for q, noise in itertools.product(range(n + 1), repeat=2):
        answer = (q + noise) % (n + 1)
        wrong += (answer != q) * law[noise] / (n + 1)
        squared += (answer - q) ** 2 * law[noise] / (n + 1)
    noises = np.arange(n + 1)
    assert wrong == pytest.approx(1 - law[0], abs=1e-12)
    assert squared == pytest.approx(noises * (n + 1 - noises) @ law, abs=1e-9)
    assert squared != pytest.approx(noises**2 @ law, abs=0.1)


def test_masses_fall_along_steps_and_not_along_noise() -> None:
    """Remarks 1 and 2: for μ̂ = 3 the mass at 3 is e^{-ε}f(0), that at 1 is e^{-3ε}f(0)."""
    law = printed(7, [3], 0.75, 0.0)
    along = law[np.arange(8) * 3 % 8]
    assert (np.diff(along) < 0).all()
    assert law[3] > law[1] > 0
    assert law[3] / law[1] == pytest.approx(math.exp(1.5), rel=1e-9)


def test_fewer_differences_never_cost_more() -> None:
    """Definition 7 and Lemma 1: every set within ±1..±4, against ±1..±4 itself."""
    everything = solve(10, [1, 2, 3, 4], "1")
    for size in (1, 2, 3):
        for steps in itertools.combinations((1, 2, 3, 4), size):
            best = solve(10, list(steps), "1")
            assert best.objective <= everything.objective + Fraction(1, 10**12)
            held = Sensitivity.of(Group((10,)), ((s,) for s in steps))
            assert deltas(everything.mechanism.pmf, held, Fraction(1)).probabilistic == 0
    assert solve(10, [1, 4], "1").objective < everything.objective - Fraction(1, 100)


@pytest.mark.parametrize(
    ("step", "order"), [(3, [0, 3, 6, 1, 4, 7, 2, 5]), (2, [0, 2, 4, 6]), (1, list(range(8)))]
)
def test_sorted_masses_stand_at_the_multiples_of_the_difference(
    step: int, order: list[int]
) -> None:
    """Lemma 2 and Figure 1, by the linear program."""
    for epsilon in (0.3, 0.75, 2.0):
        law = printed(7, [step], epsilon, 0.0)
        falling = sorted(np.flatnonzero(law > 1e-12).tolist(), key=lambda place: -law[place])
        assert falling == order


def test_bounded_differences_make_steps_of_their_width() -> None:
    """Lemma 4: (28) and (29), by the linear program."""
    for n, width, epsilon in ((8, 3, 1.5), (11, 4, 0.6), (7, 7, 1.0), (9, 1, 2.0)):
        law = np.sort(printed(n, range(1, width + 1), epsilon, 0.0))[::-1]
        steps = -(-np.arange(n + 1) // width)
        expected = np.exp(-epsilon * steps)
        assert law == pytest.approx(expected / expected.sum(), abs=1e-9)


def test_stretches_alternate_between_flat_and_linear() -> None:
    """Figures 2 and 4: n pairs of stretches, and b(b-1)/2 regions before f(0) = δ."""
    n, epsilon = 7, 0.75
    breaks = sd_breaks(n, epsilon)
    assert len(breaks) == n + 1
    for begins, ends in breaks[1:-1]:
        inside = [single_distance(n, 3, epsilon, d)[0] for d in (begins, (begins + ends) / 2, ends)]
        assert inside == pytest.approx([inside[0]] * 3, abs=1e-12)
    for (_, after), (begins, _) in itertools.pairwise(breaks):
        slope = [
            single_distance(n, 3, epsilon, after + t * (begins - after))[0] for t in (0, 0.5, 1)
        ]
        assert slope[1] == pytest.approx((slope[0] + slope[2]) / 2, abs=1e-9)
        assert slope[2] > slope[0]
    regions = bd_regions(24, 7, 0.8)
    b = 24 // 7
    assert len(regions) == 1 + b * (b - 1) // 2
    assert bounded_difference(24, 7, 0.8, 0.9)[0] == 0.9


def test_groups_of_a_region_fall_by_the_ratio() -> None:
    """(54) and Figure 3: the distinct masses of a flat region are e^{-iε}f(0)."""
    for region in bd_regions(25, 8, 0.7):
        law = bounded_difference(25, 8, 0.7, (region.begins + region.ends) / 2)
        groups = np.unique(law.round(14))[::-1]
        assert groups == pytest.approx(law[0] * np.exp(-0.7 * np.arange(groups.size)), abs=1e-12)
        assert [int(np.isclose(law, mass).sum()) for mass in groups] == [*filter(None, region.flat)]


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 2.5])
def test_long_rings_go_to_the_limits(epsilon: float) -> None:
    """(45), (49) and (50), mass by mass."""
    e = math.exp(-epsilon)
    law = printed(400, [1], epsilon, 0.0)
    assert law[:9] == pytest.approx((1 - e) * e ** np.arange(9), abs=1e-9)
    for width in (2, 3):
        law = np.sort(printed(400, range(1, width + 1), epsilon, 0.0))[::-1]
        first = (1 - e) / (1 - e + width * e)
        steps = -(-np.arange(9) // width)
        assert law[:9] == pytest.approx(first * e**steps, abs=1e-9)


def joint(size: int, moves: list[tuple[int, int]], epsilon: int, *, directed: bool) -> np.ndarray:
    """The pure optimum of two answers for the error rate, as a matrix."""
    optimum = design(
        Sensitivity.of(Group((size, size)), moves, directed=directed),
        Guarantee(Definition.PURE, Fraction(epsilon), Fraction(0)),
        Loss("error_rate", (np.arange(size * size) > 0).astype(np.int64)),
    )
    return optimum.mechanism.pmf.to_floats().reshape(size, size)


def test_the_joint_optimum_is_a_product_only_where_one_coordinate_moves() -> None:
    """Remark 4: f ≠ f₁f₂ for (57); f = f₁f₂ where neighbors differ in one coordinate."""
    law = joint(5, list(itertools.product(range(3), range(3))), 3, directed=True)
    marginal = law.sum(axis=1)
    assert marginal == pytest.approx([0.7681, 0.1073, 0.1073, 0.0086, 0.0086], abs=6e-5)
    assert law.sum(axis=0) == pytest.approx(marginal, abs=1e-12)
    assert abs(law - np.outer(marginal, marginal)).max() > 0.1
    # The single answers at half of ε have masses of their own, which no marginal is.
    single = printed(4, [1, 2], 1.5, 0.0)
    assert single == pytest.approx([0.6469, 0.1443, 0.1443, 0.0322, 0.0322], abs=6e-5)
    apart = joint(5, [(1, 0), (2, 0), (0, 1), (0, 2)], 1, directed=False)
    alone = our_masses(4, [1, 2], 1.0, 0.0)
    assert apart == pytest.approx(np.outer(alone, alone), abs=1e-12)


def test_the_printed_clamping_loses_a_mass() -> None:
    """(56): 1 - F(n-q) leaves out the noise n - q itself; with 1 - F(n-q-1) rows add up to 1."""
    noise, n = two_sided(MATCHED), 8
    for q in range(n + 1):
        inside = [float(noise.mass(k - q)) for k in range(1, n)]
        low = float(noise.below(-q) + noise.mass(-q))
        above = float(noise.above(n - q))
        row = [low, *inside, above + float(noise.mass(n - q))]
        assert sum(row) == pytest.approx(1, abs=1e-12)
        assert clamped(noise, n + 1).to_floats()[q] == pytest.approx(row, abs=1e-12)
        assert low + sum(inside) + above == pytest.approx(1 - float(noise.mass(n - q)), abs=1e-12)


def test_clamping_never_raises_the_delta_of_geometric_noise() -> None:
    """Figure 6 (a): 1/(1+α) of noise and of clamped noise; (b): the Gaussian's does rise."""
    noise, channel = two_sided(MATCHED), clamped(two_sided(MATCHED), 9)
    pairs = line_pairs(9, [1])
    for epsilon in ("0.05", "0.3", "0.5", "0.75", "0.76", "1", "2"):
        ratio = exp_bounds(Fraction(epsilon))[0]
        free, inside = noise.deltas(1, ratio), channel.deltas_of_pairs(pairs, ratio)
        # A unit of 2^-62 for every answer is rounded.
        assert inside.probabilistic <= free.probabilistic + Fraction(9, 2**62)
        assert inside.approximate <= free.approximate + Fraction(18, 2**62)
        expected = 1 / 1.4683 if float(epsilon) < -math.log(0.4683) else 0.0
        assert float(free.probabilistic) == pytest.approx(expected, abs=1e-12)
        assert float(inside.probabilistic) == pytest.approx(expected, abs=1e-12)


def test_figure_8_is_the_price_of_one_direction() -> None:
    e = math.exp(-1)
    one_sided, both = printed(8, [1], 1.0, 0.0)[0], our_masses(8, [1], 1.0, 0.0)[0]
    assert one_sided == pytest.approx((1 - e) / (1 - e**9), abs=1e-9)
    assert both == pytest.approx(1 / (1 + 2 * (e + e**2 + e**3 + e**4)), abs=1e-9)
    assert float(geometric(Fraction(1)).mass(0)) == pytest.approx((1 - e) / (1 + e), abs=1e-9)


def test_one_entry_of_a_vector_moves_and_its_delta_is_that_of_a_number() -> None:
    """Qin et al. 2022, Definition 1: two entries with noise of their own, one of which moves."""
    law = our_masses(4, [1], 1.0, 0.1)
    pair = np.outer(law, law)
    ratio = math.exp(0.7)
    moved = np.roll(pair, 1, axis=0)
    alone = np.maximum(0, law - ratio * np.roll(law, 1)).sum()
    assert np.maximum(0, pair - ratio * moved).sum() == pytest.approx(alone, abs=1e-12)
    both = np.roll(moved, 1, axis=1)
    assert np.maximum(0, pair - ratio * both).sum() > alone + 0.01


def test_the_five_pmfs_of_qin_add_up() -> None:
    """Figures 1 to 5, the masses as printed: all add up to 1 but η·e^{-ηk} on k ≥ 1."""
    laplace = quantised_laplace(Fraction(10))
    for k in (0, 1, 7):
        theirs = (1 - math.exp(-0.1)) / 2 * math.exp(-k / 10)
        assert float(laplace.mass(k)) == pytest.approx(theirs, abs=1e-12)
        assert laplace.mass(k) == laplace.mass(-1 - k)
    stairs = staircase_noise(4, Fraction(1, 2))
    for k in (0, 3, 4, 11):
        assert stairs.mass(k) == stairs.mass(-1 - k) == Fraction(1, 16) / 2 ** (k // 4)
    assert uniform_noise(-50, 49).mass(7) == Fraction(1, 100)
    gaussian = quantised_gaussian(100.0)
    assert float(sum(gaussian.masses)) == pytest.approx(1, abs=1e-12)
    exponential = one_sided_exponential(Fraction(1, 2))
    printed_sum = sum(0.5 * math.exp(-k / 2) for k in range(1, 200))
    assert printed_sum == pytest.approx(0.771, abs=5e-4)
    assert float(exponential.mass(1)) == pytest.approx(0.5 * math.exp(-0.5) / printed_sum, abs=1e-9)


def test_the_optimum_of_qin_is_a_staircase() -> None:
    """Figure 6: P2's law takes one value on a stretch, and the next is e^{-ε} of it, m farther."""
    noise = solve_relaxed(gaussian_input(), Fraction(1), 6).noise
    for k in range(1, 20):
        assert float(noise.mass(k + 6) / noise.mass(k)) == pytest.approx(math.exp(-1), rel=1e-6)
    heights = [float(noise.mass(k)) for k in range(24)]
    assert (np.diff(heights) < 1e-12).all()
    distinct = [k for k in range(1, 24) if heights[k] < heights[k - 1] * (1 - 1e-6)]
    # Each step has m integers, and goes down at once.
    assert set(np.diff(distinct)) == {6}


def test_optimal_noise_on_a_finer_grid_is_that_of_the_program() -> None:
    """The sheet of other steps: m = 5, Δ = 1 and ½ as m = 5 and 10 steps of 1."""
    for piece in (1, 2):
        program = solve_relaxed(gaussian_input(), Fraction(1), 5 * piece)
        assert optimal_size(piece) == pytest.approx(program.objective / piece, rel=1e-5)


def test_two_point_pmfs_are_the_corners() -> None:
    """Sadeghi et al. 2020, Proposition 1: each vertex of P1 to P3 has one mass on either side."""
    values = np.array([-2, -1, 1, 2, 3])
    equal = np.vstack([np.ones(5), values])
    rng = np.random.default_rng(7)
    for _ in range(40):
        vertex = linprog(rng.normal(size=5), A_eq=equal, b_eq=[0.4, 0.0], method="highs-ds").x
        support = values[vertex > 1e-9]
        assert support.size == 2
        low, high = support
        assert low < 0 < high
        assert vertex[values == low][0] == pytest.approx(0.4 * high / (high - low), abs=1e-9)


@pytest.mark.parametrize(("reach", "keep", "epsilon"), [(4, "0.5", "1"), (6, "0.8", "2.18")])
def test_the_bounds_of_the_count_law_are_below_its_program(
    reach: int, keep: str, epsilon: str
) -> None:
    """Lemmas 1 and 2, Theorems 1 and 2: the largest bound is met, and C says which it is."""
    ratio = exp_bounds(Fraction(epsilon))[0]
    bounds = lower_bounds(reach, Fraction(keep), ratio)
    program = solve_counts(9 * reach, reach, float(keep), float(epsilon), first=reach, shared=True)
    assert program is not None
    assert max(map(float, bounds)) == pytest.approx(program.single_outcome_delta, abs=1e-9)
    c, crossings = 2 * Fraction(keep) / (1 - Fraction(keep)), crossovers(reach, ratio)
    k = sum(crossing >= c for crossing in crossings) + 1
    assert bounds[k - 1] == max(bounds)


@given(st.integers(2, 12), st.sampled_from(["0.05", "0.7", "2", "5"]))
@settings(max_examples=40, deadline=None)
def test_the_crossovers_of_the_count_law_fall(reach: int, epsilon: str) -> None:
    """Lemma 4."""
    found = crossovers(reach, exp_bounds(Fraction(epsilon))[0])
    assert all(a > b for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(("variance", "epsilon"), [("0.266", "2.18"), ("3.38", "0.5"), ("9", "1")])
def test_the_delta_of_the_discrete_gaussian_is_45(variance: str, epsilon: str) -> None:
    """(45) in floats, beside the exact hockey-stick sum."""
    noise, parameter, e = discrete_gaussian(Fraction(variance)), float(variance), float(epsilon)
    spread = np.arange(-80, 81)
    masses_ = np.exp(-(spread**2) / 2 / parameter)
    masses_ /= masses_.sum()
    above = [masses_[spread > e * parameter + half].sum() for half in (-0.5, 0.5)]
    expected = above[0] - math.exp(e) * above[1]
    found = noise.deltas(1, exp_bounds(Fraction(epsilon))[0]).approximate
    assert float(found) == pytest.approx(expected, abs=1e-12)


def variance_of(noise: IntegerPmf) -> float:
    spread = range(noise.low, noise.high + 1)
    return float(sum((noise.mass(k) * k * k for k in spread), Fraction(0)))


def variance_of_geometric(epsilon: float) -> float:
    ratio = math.exp(-epsilon)
    return 2 * ratio / (1 - ratio) ** 2


def test_the_count_law_beats_the_gaussian_of_its_variance() -> None:
    """Figure 4 at ε = 2, η = 0.5, D = 6: both exact, both of one variance."""
    counts = count_law(6, Fraction(1, 2), Fraction(2))
    target = variance_of(counts.noise)
    low, high = 0.01, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        near = Fraction(middle).limit_denominator(10**9)
        low, high = (
            (middle, high) if variance_of(discrete_gaussian(near)) < target else (low, middle)
        )
    gaussian = discrete_gaussian(Fraction(high).limit_denominator(10**9))
    assert variance_of(gaussian) == pytest.approx(target, rel=1e-6)
    assert counts.delta < noise_deltas(gaussian, 2.0).approximate / 100
    # Geometric noise with ε = 2 has a smaller variance than both, and no δ.
    assert variance_of_geometric(2.0) < target


def test_the_middle_mass_decides_zero_epsilon() -> None:
    """Geng et al. 2018: of even pmfs that fall, the D middle masses are the (0, δ) exactly."""
    rng = np.random.default_rng(3)
    for steps in (1, 2, 3, 5):
        for _ in range(20):
            half = sorted(rng.integers(1, 50, size=6).tolist(), reverse=True)
            weights = [*half[:0:-1], half[0], *half[1:]]
            noise = IntegerPmf.of(-5, list(map(Fraction, weights)))
            middle = sorted((noise.mass(k) for k in range(-5, 6)), reverse=True)[:steps]
            assert noise.deltas(steps, Fraction(1)).approximate == sum(middle)


def test_the_cheapest_answer_is_that_of_the_named_loss() -> None:
    """The losses of the sheets are those of the definitions: costs of answers by their powers."""
    channel = Channel.of_mechanism(Modular(ours(4, [1], 1.0, 0.0).mechanism.pmf))
    named = named_loss(LossName.SQUARED, Topology.ORDERED, 5)
    law = solve(5, [1], "1")
    assert sum(masses(law)) == pytest.approx(1, abs=1e-12)
    assert channel.mean_loss(answer_costs(2, 5)) == named.of(law.mechanism.pmf)
    assert decay(Fraction(1)) >= Fraction(math.exp(-1)) - Fraction(1, 10**15)
