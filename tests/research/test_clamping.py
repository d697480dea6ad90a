"""Channels and the mechanisms that ours are compared with."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.channel import Channel, answer_costs
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import (
    Definition,
    Deltas,
    Guarantee,
    deltas,
    deltas_at_ratio,
    largest_allowed,
)
from release.exact.sensitivity import Sensitivity, line_pairs
from release.noise.solve import design
from research.published.clamping import (
    BASELINES,
    clamped,
    data_independent,
    discrete_gaussian,
    exponential,
    geometric,
    geometric_modular,
    law_near,
    modular,
    randomised_response,
    truncated,
)
from research.table_v import one_sided_exponential, staircase_noise, uniform_noise
from tests.noise.test_solve import solve


def floats(channel: Channel) -> np.ndarray:
    return channel.to_floats()


def test_the_losses_of_the_design_page() -> None:
    """For n = 24, ε = 1, uniform prior: squared 19.43 modular, 1.662 clamped; error 0.5379, 0.5164.

    The best modular law is hardly better than wrapped geometric noise: wrapping is what costs.
    """
    one = Fraction(1)
    inside, round_ = (BASELINES[f"geometric_{way}"](25, one) for way in ("clamped", "modular"))
    squared, wrong = answer_costs(2, 25), answer_costs(0, 25)
    assert float(inside.mean_loss(squared)) == pytest.approx(1.662, abs=5e-4)
    assert float(inside.mean_loss(wrong)) == pytest.approx(0.5164, abs=5e-5)
    assert float(round_.mean_loss(squared)) == pytest.approx(19.43, abs=5e-3)
    assert float(round_.mean_loss(wrong)) == pytest.approx(0.5379, abs=5e-5)
    best = solve(25, [1], "1", loss=LossName.SQUARED, topology=Topology.ORDERED)
    assert 0 < round_.mean_loss(squared) - best.objective < Fraction(1, 1000)


@pytest.mark.parametrize("answers", [2, 5, 25])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3", "20"])
def test_pure_baselines_keep_their_epsilon_in_integers(answers: int, epsilon: str) -> None:
    exact = Fraction(epsilon)
    low, _ = exp_bounds(exact)
    pairs = line_pairs(answers, [1])
    for name in ("geometric_clamped", "exponential", "geometric_modular"):
        found = BASELINES[name](answers, exact).deltas_of_pairs(pairs, low)
        assert found.approximate == found.probabilistic == 0, name
    everything = line_pairs(answers, range(1, answers))
    said = BASELINES["randomised_response"](answers, exact)
    assert said.deltas_of_pairs(everything, low).probabilistic == 0


def test_truncated_geometric_noise_breaks_the_epsilon_of_its_noise() -> None:
    """Rows are scaled each by itself, so near an end the ratio is larger than e^ε."""
    found = truncated(geometric(Fraction(1)), 25).deltas_of_pairs(
        line_pairs(25, [1]), exp_bounds(Fraction(1))[0]
    )
    assert found.approximate > Fraction(1, 10)


@given(st.integers(2, 9), st.sampled_from(["0.3", "1", "2"]), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_ways_onto_the_answers_are_those_of_their_words(n: int, epsilon: str, answer: int) -> None:
    """Clamped, truncated and wrapped, summed noise value by noise value."""
    noise, q = geometric(Fraction(epsilon)), answer % n
    stretch = range(-120, 121)
    masses = {k: float(noise.mass(k)) for k in stretch}
    at_ends, round_ = np.zeros(n), np.zeros(n)
    for k, mass in masses.items():
        at_ends[min(max(0, q + k), n - 1)] += mass
        round_[(q + k) % n] += mass
    inside = np.array([masses[o - q] for o in range(n)])
    assert floats(clamped(noise, n))[q] == pytest.approx(at_ends, abs=1e-12)
    assert floats(truncated(noise, n))[q] == pytest.approx(inside / inside.sum(), abs=1e-12)
    assert floats(Channel.of_mechanism(Modular(modular(noise, n))))[q] == pytest.approx(
        round_, abs=1e-12
    )


def test_the_exponential_mechanism_is_the_truncated_geometric_at_half_epsilon() -> None:
    found = floats(exponential(7, Fraction(2)))
    scores = np.exp(-np.abs(np.arange(7)[:, None] - np.arange(7)[None, :]))
    assert found == pytest.approx(scores / scores.sum(axis=1, keepdims=True), abs=1e-12)


def test_baselines_with_one_number() -> None:
    e = math.exp(1.5)
    law = randomised_response(6, Fraction(3, 2))
    assert law.to_floats() == pytest.approx([e / (e + 5), *[1 / (e + 5)] * 5], rel=1e-14)
    fixed = data_independent(8, Fraction(3, 10))
    assert fixed.to_floats() == pytest.approx([0.7, *[0.3 / 7] * 7], rel=1e-14)
    assert set(BASELINES) >= {"geometric_clamped", "geometric_truncated", "geometric_modular"}
    for name, make in BASELINES.items():
        made = make(9, Fraction(1, 2))
        assert made.rows.shape == (9, 9), name


@given(st.integers(2, 7), st.lists(st.integers(1, 50), min_size=7, max_size=7))
@settings(max_examples=60, deadline=None)
def test_modular_noise_is_the_same_as_a_law_and_as_a_channel(n: int, raw: list[int]) -> None:
    weights = raw[: n - 1]
    law = Pmf.of(Group((n,)), [2**10 - sum(weights), *weights])
    channel = Channel.of_mechanism(Modular(law))
    ratio = Fraction(3, 2)
    pairs = [(a, (a + s) % n) for a in range(n) for s in (1, -1)]
    by_law = Sensitivity.of(law.group, [(1,)])
    assert channel.deltas_of_pairs(pairs, ratio) == deltas_at_ratio(law, by_law, ratio)
    squared = named_loss(LossName.SQUARED, Topology.ORDERED, n)
    assert channel.mean_loss(answer_costs(2, n)) == squared.of(law)
    assert channel.loss(answer_costs(0, n)) == (1 - law.mass(0),) * n


@given(st.integers(1, 6), st.integers(1, 6), st.integers(28, 40), st.data())
@settings(max_examples=80)
def test_losses_and_ceilings_are_exact_up_to_the_largest_weights_and_costs(
    answers: int, width: int, bits: int, data: st.DataObject
) -> None:
    """Each term by Python's integers; sums go beyond 64 bits, and costs beyond 32."""
    shares = st.lists(st.integers(0, 2**62), min_size=width, max_size=width).filter(any)
    rows = data.draw(st.lists(shares, min_size=answers, max_size=answers))
    channel = Channel.near(rows)
    cost = st.integers(0, 2**bits - 1)
    grid = st.lists(cost, min_size=width, max_size=width)
    costs = data.draw(st.lists(grid, min_size=answers, max_size=answers))
    weights = channel.rows.tolist()
    assert channel.loss(np.array(costs)) == tuple(
        Fraction(sum(w * c for w, c in zip(*both, strict=True)), 2**62)
        for both in zip(weights, costs, strict=True)
    )
    ratio = data.draw(st.fractions(1, 3))
    assert largest_allowed(channel.rows, channel.total, ratio).tolist() == [
        [min(2**62, math.floor(ratio * w)) for w in row] for row in weights
    ]


def test_clamping_noise_lowers_delta_and_never_raises_the_hockey_stick() -> None:
    """Clamping is post-processing: approximate δ cannot grow; the probabilistic one does.

    Kadam et al. 2024, Figure 6 counts the probabilistic one.
    """
    noise = discrete_gaussian(Fraction(338, 100))
    pairs, ratio = line_pairs(9, [1]), exp_bounds(Fraction(1, 2))[0]
    before, after = noise.deltas(1, ratio), clamped(noise, 9).deltas_of_pairs(pairs, ratio)
    assert after.approximate <= before.approximate + Fraction(1, 2**55)
    assert after.probabilistic > before.probabilistic + Fraction(1, 100)


def test_the_optimum_beats_every_modular_baseline() -> None:
    """Of all laws that keep (ε, δ), for the loss it was made for."""
    epsilon, size = Fraction(1), 9
    sensitivity = Sensitivity.of(Group((size,)), [(1,)])
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, size)
    rivals = [
        geometric_modular(size, epsilon),
        modular(discrete_gaussian(Fraction(3)), size),
        data_independent(size, Fraction(1, 3)),
        modular(uniform_noise(-2, 2), size),
    ]
    for rival in rivals:
        delta = deltas(rival, sensitivity, epsilon).approximate
        definition = Definition.APPROXIMATE if delta else Definition.PURE
        if delta < 1:
            best = design(sensitivity, Guarantee(definition, epsilon, delta), loss)
            assert best.objective <= loss.of(rival) + Fraction(1, 10**12)


def test_wrapping_follows_tails_to_their_end() -> None:
    """Whatever their period and ratio; weak noise wraps round thousands of times."""
    stairs = modular(staircase_noise(3, Fraction(1, 2)), 4)
    sums = np.zeros(4)
    for k in range(-300, 300):
        sums[k % 4] += 1 / 12 * 0.5 ** (k // 3 if k >= 0 else (-k - 1) // 3)
    assert stairs.to_floats() == pytest.approx(sums, abs=1e-12)
    weak = geometric_modular(10, Fraction(1, 10**6)).to_floats()
    assert weak == pytest.approx([0.1] * 10, abs=1e-6)


@pytest.mark.parametrize("epsilon", ["1e-8", "0.001", "100"])
def test_the_ends_of_epsilon(epsilon: str) -> None:
    exact = Fraction(epsilon)
    said = randomised_response(1009, exact)
    everything = Sensitivity.everything(said.group)
    assert deltas(said, everything, exact).probabilistic == 0
    pairs, low = line_pairs(30, [1]), exp_bounds(exact)[0]
    for name in ("geometric_clamped", "exponential", "geometric_modular"):
        assert BASELINES[name](30, exact).deltas_of_pairs(pairs, low).probabilistic == 0, name


def test_what_is_out_of_range_is_refused() -> None:
    for wrong in (
        lambda: randomised_response(25, Fraction(1, 10**17)),
        lambda: geometric_modular(25, Fraction(1, 10**10)),
        lambda: exponential(25, Fraction(101)),
        lambda: law_near([Fraction(1)] * 1009, 1 + Fraction(1, 10**15)),
        lambda: truncated(one_sided_exponential(Fraction(1)), 1),
        lambda: data_independent(1, Fraction(0)),
        lambda: data_independent(3, Fraction(2)),
        lambda: answer_costs(7, 1000),
    ):
        with pytest.raises(ValueError, match=r"."):
            wrong()


def test_what_is_no_channel_is_refused() -> None:
    for rows, total in (
        (np.array([1, 3]), 4),
        (np.array([[1, 3], [-1, 5]]), 4),
        (np.array([[1, 3], [2, 1]]), 4),
        (np.array([[1, 2]]), 3),
    ):
        with pytest.raises(ValueError, match=r"."):
            Channel(rows, total)


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=2, max_size=5))
def test_the_deltas_of_a_channel_are_those_of_the_definition(shares: list[list[int]]) -> None:
    """Sums over all outcomes of all pairs, as the definitions write them."""
    channel = Channel.near([[1 + share for share in row] for row in shares], bits=6)
    ratio = Fraction(3, 2)
    pairs = line_pairs(len(shares), range(1, len(shares)))
    approximate = probabilistic = Fraction(0)
    for a, b in product(range(len(shares)), repeat=2):
        over = beyond = Fraction(0)
        for here, there in zip(channel.rows[a].tolist(), channel.rows[b].tolist(), strict=True):
            if here > ratio * there:
                over += (here - ratio * there) / channel.total
                beyond += Fraction(here, channel.total)
        approximate, probabilistic = max(approximate, over), max(probabilistic, beyond)
    assert sorted(pairs) == list(pairs)
    assert channel.deltas_of_pairs(pairs, ratio) == Deltas(probabilistic, approximate)
