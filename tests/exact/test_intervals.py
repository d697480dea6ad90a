"""Intervals that hold every true answer, against the whole law of each mechanism."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import release
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.intervals import reach, runs_of, true_answers
from release.exact.mechanism import Mechanism

LEVEL = 0.95


def laws(mechanism: Mechanism) -> np.ndarray:
    """P(published | true), row by row."""
    return np.stack([mechanism.probabilities(code) for code in range(mechanism.answers)])


def coverage(mechanism: Mechanism, domain: AnswerDomain, level: float = LEVEL) -> float:
    """The least chance, over all true answers, that the interval holds it; summed directly."""
    codes = np.arange(domain.size)
    ends = true_answers(mechanism, domain, codes, level)
    assert ends is not None
    first, last = ends
    held = []
    for true, law in enumerate(laws(mechanism)):
        if domain.topology is Topology.CYCLIC:
            is_in = (true - first) % domain.size <= (last - first) % domain.size
        else:
            is_in = (first <= true) & (true <= last)
        held.append(float(law[is_in].sum()))
    return min(held)


@pytest.mark.parametrize("top", [60, 100])
@pytest.mark.parametrize("loss", ["error_rate", "absolute", "squared"])
def test_every_true_answer_is_held_whatever_the_noise(top: int, loss: str) -> None:
    domain = AnswerDomain(Topology.ORDERED, range(top + 1))
    for epsilon, farthest in product(("1/50", "1/4", "1/2", "1"), (1, 2, 3)):
        moves = list(range(1, farthest + 1))
        made = release.design(top + 1, "ordered", sensitivity=moves, epsilon=epsilon, loss=loss)
        assert coverage(made.mechanism, domain) >= LEVEL, (epsilon, farthest)


def test_an_interval_is_hardly_longer_than_one_that_misses_some_answers() -> None:
    """The shortest runs with 95 % of the posterior have 11.25 on average (61 answers, ε ½)."""
    made = release.design(61, "ordered", sensitivity=[1], epsilon="1/2", loss="squared").mechanism
    domain = AnswerDomain(Topology.ORDERED, range(61))
    ends = true_answers(made, domain, np.arange(61), LEVEL)
    assert ends is not None
    lengths = ends[1] - ends[0] + 1
    assert 11.2 < float((laws(made) @ lengths).mean()) < 11.4


@pytest.mark.parametrize("hours", [7, 24])
def test_round_a_circle(hours: int) -> None:
    made = release.design(hours, "cyclic", sensitivity=[1, 2], epsilon="1", loss="squared")
    assert coverage(made.mechanism, AnswerDomain(Topology.CYCLIC, range(hours))) >= LEVEL


@pytest.mark.parametrize("size", [1990, 2500, 100_000])
def test_wide_domains_have_the_intervals_of_their_noise(size: int) -> None:
    """As of a table near the ends and in the middle, or the noise's own quantile."""
    domain = AnswerDomain(Topology.ORDERED, range(size))
    made = release.design(size, "ordered", sensitivity=[1], epsilon="1/4", loss="absolute")
    mechanism = made.mechanism
    assert isinstance(mechanism, IntegerMechanism)
    for true in (0, 3, 40, size // 2, size - 2):
        near = np.unique(np.clip(np.arange(true - 400, true + 401), 0, size - 1))
        first, stop = int(near[0]), int(near[-1]) + 1
        law = mechanism.probabilities(true)[first:stop]
        ends = true_answers(mechanism, domain, near, LEVEL)
        assert ends is not None
        is_in = (ends[0] <= true) & (true <= ends[1])
        assert law[is_in].sum() >= LEVEL
        farthest = reach(mechanism, domain, LEVEL)
        assert farthest is not None
        assert int(np.maximum(near - ends[0], ends[1] - near).max()) <= farthest


tables = st.integers(2, 7).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any),
        min_size=size,
        max_size=size,
    )
)


@given(tables, st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(19, 20)]))
def test_random_tables_hold_every_true_answer(rows: list[list[int]], level: Fraction) -> None:
    """In rationals, with ties and outcomes that never occur."""
    masses = np.array([[weight / sum(row) for weight in row] for row in rows])
    first, last = runs_of(masses, Topology.ORDERED, level)
    for true, row in enumerate(rows):
        held = sum(row[o] for o in range(len(row)) if first[o] <= true <= last[o])
        assert Fraction(held, sum(row)) >= level
