"""Values that add up: their bias and variance are those of the table, and sums allow for them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import release
from release.analysis.estimation import Estimates, estimate, estimate_wide, likelihood
from release.analysis.intervals import TableNoise
from release.analysis.unbiased import of_noise, of_table
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.spec.domains import MOST_IN_ORDER

DRAWS, LEVEL = 100, 0.9


def designed(
    answers: int, epsilon: str, loss: str, mechanism: str = "integer", delta: str = "0"
) -> IntegerMechanism:
    made = release.design(
        answers,
        "ordered",
        sensitivity=[1],
        epsilon=epsilon,
        delta=delta,
        loss=loss,
        mechanism=mechanism,
    )
    assert isinstance(made.mechanism, IntegerMechanism)
    return made.mechanism


def line(answers: int) -> AnswerDomain:
    return AnswerDomain(Topology.ORDERED, range(answers))


def lopsided() -> IntegerMechanism:
    """Noise that is not symmetric, and a table of one end only."""
    plain = designed(90, "1/2", "absolute")
    noise = replace(plain.noise, left=plain.noise.left, right=None)
    return IntegerMechanism(noise, 90, low=((1, 2), (2, 1)))


@pytest.mark.parametrize(
    "mechanism",
    [
        designed(200, "1/3", "squared", "geometric_clamped"),
        designed(150, "1/4", "squared"),
        designed(60, "1/2", "absolute"),
        lopsided(),
    ],
    ids=["clamped", "squared", "absolute", "lopsided"],
)
def test_bias_and_variance_are_those_of_the_table(mechanism: IntegerMechanism) -> None:
    masses = np.exp(likelihood(mechanism))
    codes = np.arange(mechanism.size)
    for made in (of_noise(mechanism), of_table(masses, codes.astype(float))):
        expected = masses @ made.values
        assert made.bias == pytest.approx(expected - codes, abs=1e-7)
        spread = masses @ made.values**2 - expected**2
        assert made.variance == pytest.approx(spread, rel=1e-6, abs=1e-6)


def test_clamped_geometric_noise_needs_its_ends_moved_and_nothing_else() -> None:
    mechanism = designed(400, "1/5", "squared", "geometric_clamped")
    made = of_noise(mechanism)
    assert np.abs(made.bias).max() < 1e-9
    alpha = math.exp(-1 / 5)
    # The mean of what is clamped to 0: of a geometric tail from 0 downwards.
    assert made.values[0] == pytest.approx(-alpha / (1 - alpha))
    assert made.values[1:-1] == pytest.approx(np.arange(1, 399))


def test_least_squares_leave_a_bias_that_is_small_beside_the_noise() -> None:
    """What is published at 0 is 12.6 off on average, and nothing undoes all of that."""
    mechanism = designed(300, "1/10", "squared")
    masses, codes = np.exp(likelihood(mechanism)), np.arange(300.0)
    made = of_table(masses, codes)
    assert masses[0] @ codes > 12
    assert 1e-3 < np.abs(made.bias).max() < 0.02 * math.sqrt(made.variance[150])
    assert made.variance.max() < 1.1 * float(mechanism.noise.moment(2))


@pytest.mark.parametrize("mechanism", ["integer", "geometric_clamped"])
@pytest.mark.parametrize("labels", [range(1500), range(-7, 4493, 3)], ids=["counts", "grid"])
def test_a_wide_domain_is_estimated_from_the_answers_near_its_ends(
    mechanism: str, labels: range
) -> None:
    made = designed(1500, "1/2", "squared", mechanism)
    domain = AnswerDomain(Topology.ORDERED, labels)
    codes = np.array([0, 1, 2, 5, 40, 700, 701, 1400, 1494, 1498, 1499])
    codes = np.unique(made.published(codes))
    whole = estimate(codes, likelihood(made), domain)
    near = estimate_wide(codes, made, domain)
    assert made.narrowed(codes)[0].size < 500
    for one, other in zip(whole.cells, near.cells, strict=True):
        assert (one.published, one.mode) == (other.published, other.mode)
        for name in ("posterior_mean", "unbiased", "standard_error"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6)
    for one, other in zip(whole.cells, near.cells, strict=True):
        assert (one.low, one.high) == (other.low, other.high)
    for level in (0.5, 0.95):
        first, second = intervals(whole, level), intervals(near, level)
        assert np.array_equal(first, second)
    assert isinstance(whole.noise, TableNoise)
    assert isinstance(near.noise, TableNoise)
    for one_sum, other_sum in zip(
        vars(whole.noise.summands(0.99)).values(),
        vars(near.noise.summands(0.99)).values(),
        strict=True,
    ):
        assert one_sum == pytest.approx(other_sum, rel=1e-6, abs=1e-6)


def test_bins_of_uneven_labels_are_not_added_up_as_codes_are() -> None:
    made = designed(3000, "1/2", "squared", "geometric_clamped")
    labels = tuple(code * 10 // 3 for code in range(3000))
    codes = np.full(12, 1500)
    found = estimate_wide(codes, made, AnswerDomain(Topology.ORDERED, labels))
    named = replace(found, by=("bin",), keys=tuple((str(i),) for i in range(12)))
    total, reach = named.sum(), made.noise.radius(0.95 ** (1 / 12))
    assert total.method == "cells"
    assert total.low == 12 * labels[1500 - reach]
    assert total.high == 12 * labels[1500 + reach]


def test_noise_that_leans_is_corrected_where_nothing_is_clamped() -> None:
    """The Gumbel noise of a count on all integers has a mean that is not 0."""
    made = designed(10**6, "1", "squared", "gumbel_clamped", delta="1/1000")
    whole = AnswerDomain(Topology.ORDERED, range(-(MOST_IN_ORDER // 2), MOST_IN_ORDER // 2 + 1))
    far = IntegerMechanism(made.noise, whole.size)
    true = whole.size // 2 + 40
    codes = far.draw(np.full(4_000, true), random.Random(5).randbytes)  # noqa: S311 - repeatable
    found = estimate_wide(codes, far, whole)
    assert found.unbiased is not None
    off = found.unbiased - 40
    assert abs(made.noise.mean) > 10 * off.std() / math.sqrt(4_000)
    assert abs(off.mean()) < 5 * off.std() / math.sqrt(4_000)
    assert off.var() == pytest.approx(found.cells[0].variance, rel=0.2)


def intervals(estimates: Estimates, level: float) -> Any:
    assert estimates.noise is not None
    return np.stack(estimates.noise.intervals(level))


@pytest.mark.parametrize(
    ("answers", "epsilon", "mechanism", "most"),
    [
        (300, "1/4", "integer", 1.6),
        (5_000, "1/100", "integer", 4.0),
        (3_000_001, "1", "best", 1.1),
        (3_000_001, "1/100", "best", 1.1),
    ],
)
def test_sums_of_near_empty_cells_hold_as_often_as_they_say(
    answers: int, epsilon: str, mechanism: str, most: float
) -> None:
    """Seven cells in ten are 0; the interval is at most ``most`` times as wide as noise alone."""
    made, rng = designed(answers, epsilon, "squared", mechanism), np.random.default_rng(3)
    true = np.where(rng.random(500) < 0.7, 0, rng.geometric(0.03, 500))
    source = random.Random(4).randbytes  # noqa: S311 - repeatable draws
    table = likelihood(made) if answers <= 2000 else None
    radius = 1.645 * math.sqrt(500 * float(made.noise.moment(2)))
    held = 0
    for _ in range(DRAWS):
        codes = made.draw(true, source)
        if table is None:
            found = estimate_wide(codes, made, line(answers))
        else:
            found = estimate(codes, table, line(answers))
        named = replace(found, by=("cell",), keys=tuple((str(i),) for i in range(500)))
        total = named.sum(level=LEVEL)
        assert total.method == "normal"
        assert (total.high - total.low) / 2 < most * radius
        held += total.low <= true.sum() <= total.high
    assert held / DRAWS > LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / DRAWS)
