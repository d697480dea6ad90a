"""Profiles and compositions, held against laws of few outcomes that are composed one by one."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp, log
from random import Random
from typing import TypeAlias

import pytest

from dp_release_verify import losses
from dp_release_verify.canonical import SCALE, below_e
from dp_release_verify.losses import (
    PARTS,
    Losses,
    Pairs,
    composed,
    largest,
    profile_of_patterns,
    rough_profile,
    worst_case,
)

Law: TypeAlias = dict[tuple[int, int], int]

STEP = Fraction(1, 200)


def random_law(rng: Random) -> tuple[Law, int]:
    """How often each pair of masses occurs, of two laws that are each other's mirror image."""
    masses = [rng.randrange(1, 40) for _ in range(rng.randrange(2, 5))]
    if rng.random() < 0.3:
        masses.append(0)
    pairs = Counter(zip(masses, masses[::-1], strict=True))
    return dict(pairs), sum(masses)


def exact_delta(laws: list[tuple[Law, int]], epsilon: Fraction) -> Fraction:
    """Σ max(0, P − r(ε)·Q) over all joint outcomes of independent laws."""
    ratio, total = Fraction(below_e(epsilon), SCALE), Fraction(0)
    for outcome in product(*(law.items() for law, _ in laws)):
        p = q = Fraction(1)
        count = 1
        for ((own, other), times), (_, whole) in zip(outcome, laws, strict=True):
            p *= Fraction(own, whole)
            q *= Fraction(other, whole)
            count *= times
        total += count * max(Fraction(0), p - ratio * q)
    return total


@pytest.mark.parametrize("seed", range(24))
def test_composed_losses_bound_the_exact_delta_closely(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - laws of a test
    laws = [random_law(rng) for _ in range(rng.randrange(1, 4))]
    both = composed((Losses.of(Pairs(law, total).profile(STEP), STEP), 1) for law, total in laws)
    for _ in range(6):
        epsilon = Fraction(rng.randrange(1, 4000), 1000)
        exact, bound = exact_delta(laws, epsilon), both.delta_at(epsilon)
        assert exact <= bound
        # A grid of 1/200 shifts no loss by more, of each law.
        nearer = exact_delta(laws, max(Fraction(0), epsilon - len(laws) * STEP))
        assert bound <= nearer + Fraction(1, 10**20)
        coarse = both.coarser(8).delta_at(epsilon)
        assert bound <= coarse + Fraction(1, 10**24)
        assert coarse <= exact_delta(laws, max(Fraction(0), epsilon - Fraction(1, 5))) + Fraction(
            1, 10**20
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_rough_profile_lies_above_and_not_far(seed: int) -> None:
    law, total = random_law(Random(seed))  # noqa: S311 - a law of a test
    pairs = Pairs(law, total)

    def delta(loss: Fraction) -> Fraction:
        return Fraction(pairs.excess(below_e(loss)), SCALE * total)

    exact, rough = pairs.profile(STEP), rough_profile(delta, STEP)
    for place in range(max(len(exact), len(rough))):
        own = exact[min(place, len(exact) - 1)]
        bound = rough[min(place, len(rough) - 1)]
        assert own <= bound
        before = exact[min(place // 4, len(exact) - 1)]
        assert bound <= before + 1


def test_equal_cells_are_composed_as_often_as_they_occur() -> None:
    rng = Random(3)  # noqa: S311 - a law of a test
    law, total = random_law(rng)

    def cell(far: int, step: Fraction) -> list[int]:
        return Pairs(law, total).profile(step)

    values = profile_of_patterns(cell, [(1, 1, 1)], STEP)
    for place in range(0, len(values), 37):
        assert exact_delta([(law, total)] * 3, place * STEP) * PARTS <= values[place] + 1
    # A single cell is less than three.
    assert largest([values, profile_of_patterns(cell, [(1,)], STEP)], STEP) == values


def test_many_cells_are_composed_on_a_coarser_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all cells on the fine grid would be too much work: above them, and hardly."""
    epsilon, step, cells = Fraction(3, 5), Fraction(1, 1000), 12
    single = worst_case(epsilon, Fraction(0), step)
    monkeypatch.setattr(losses, "MOST_COMPOSED", 2**9)
    values = profile_of_patterns(lambda far, grid: single, [(1,) * cells], step)
    fine = Losses.of(single, step).repeated(cells).profile()
    for place in range(0, len(fine), 50):
        bound = values[min(place, len(values) - 1)]
        assert fine[place] <= bound + PARTS // 10**18
        assert bound <= fine[max(0, place - 40)]


def test_the_worst_case_of_a_guarantee_attains_it() -> None:
    for epsilon in (Fraction(1, 7), Fraction(1), Fraction(5)):
        values = worst_case(epsilon, Fraction(1, 1000), epsilon / 64)
        assert values[64] == PARTS // 1000
        share = (exp(epsilon) - 1) / (exp(epsilon) + 1)
        assert float(Fraction(values[0], PARTS)) == pytest.approx(0.001 + 0.999 * share)
        ranged = worst_case(epsilon, Fraction(0), epsilon / 64, in_range=True)
        assert all(a <= b for a, b in zip(ranged, values, strict=False))


def test_a_moment_is_that_of_the_losses() -> None:
    law, total = {(3, 1): 1, (1, 3): 1}, 4
    law_of_losses = Losses.of(Pairs(law, total).profile(Fraction(1, 1000)), Fraction(1, 1000))
    moment, cut = law_of_losses.moment(3)
    # E exp(2·loss) over P: 3/4 at ln 3, 1/4 at −ln 3.
    exact = 0.75 * exp(2 * log(3)) + 0.25 * exp(-2 * log(3))
    assert exact <= float(moment) < exact * 1.01
    assert cut < Fraction(1, 10**20)
