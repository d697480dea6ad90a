"""The noisy histogram: its exact ratios, its draws, and the largest that are read off it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.sums import geometric_noise
from release.exact.statistics.top.bounds import CountBounds, Published
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram, largest
from tests.exact.statistics.top.tables import RELATIONS, fixed_source, neighbors, p_value, power

REACH = 12
"""Beyond so many integers the masses of the noise fall by one ratio."""


def ratio_of_shift(noise_masses: dict[int, Fraction], shift: int) -> Fraction:
    """The largest ratio of masses that lie ``shift`` apart, either way."""
    pairs = [
        (noise_masses[at], noise_masses[at + shift])
        for at in noise_masses
        if at + shift in noise_masses
    ]
    return max(max(a / b, b / a) for a, b in pairs)


@pytest.mark.parametrize("bounds", RELATIONS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_no_output_is_more_likely_from_a_neighbor_than_promised(
    bounds: CountBounds, epsilon: Fraction
) -> None:
    mechanism = NoisyHistogram.fitted(epsilon, bounds)
    assert mechanism.satisfies(epsilon)
    assert not mechanism.satisfies(epsilon * (1 - Fraction(1, 10**12)))
    masses = {at: mechanism.noise.mass(at) for at in range(-REACH, REACH + 1)}
    ratios = {shift: ratio_of_shift(masses, shift) for shift in range(3)}
    worst = Fraction(1)
    # Counts have independent noise, so the ratio of a table's outputs is a product.
    for one, other in set(neighbors(bounds)):
        product = Fraction(1)
        for a, b in zip(one, other, strict=True):
            product *= ratios[abs(a - b)]
        worst = max(worst, product)
    promised = power(mechanism.ratio, bounds.norm)
    assert worst <= promised < worst * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("ratio", [1, RATIO_ONE // 3, RATIO_ONE * 9 // 10, RATIO_ONE - 2**40])
def test_the_noise_falls_by_no_more_than_its_ratio_anywhere(ratio: int) -> None:
    noise = geometric_noise(ratio)
    masses = [noise.mass(at) for at in range(-3, 4)]
    share = Fraction(ratio, RATIO_ONE)
    assert all(share <= a / b <= 1 / share for a, b in pairwise(masses))
    exact = (1 - share) / (1 + share)
    assert 0 <= exact - noise.mass(0) <= Fraction(1, 2**61)


@pytest.mark.parametrize("ratio", [0, RATIO_ONE, RATIO_ONE - 1])
def test_ratios_without_noise_are_refused(ratio: int) -> None:
    with pytest.raises(ValueError, match="ratio"):
        NoisyHistogram(CountBounds(4, 1), ratio)


def test_every_count_gets_noise_of_its_own() -> None:
    mechanism = NoisyHistogram.fitted(Fraction(1), CountBounds(2, 1))
    counts = np.tile([5, 2**40], (4000, 1))
    noise = mechanism.draw(counts, fixed_source(1)) - counts
    # The tails are gathered at ±2.
    masses = {at: mechanism.noise.mass(at) for at in (-1, 0, 1)}
    masses[-2] = masses[2] = (1 - sum(masses.values(), Fraction(0))) / 2
    pairs = [(int(a), int(b)) for a, b in np.clip(noise, -2, 2)]
    chances = {(a, b): masses[a] * masses[b] for a in masses for b in masses}
    assert p_value(pairs, chances) > 1e-6


def test_the_largest_are_in_descending_order_and_equals_in_that_of_codes() -> None:
    noisy = np.array([[3, 7, 7, -2], [0, 0, 0, 0], [-5, -1, -9, -1]])
    assert largest(noisy, 3).tolist() == [[1, 2, 0], [0, 1, 2], [1, 3, 0]]
    assert largest(noisy, 4).tolist()[0] == [1, 2, 0, 3]
    assert largest(noisy, 1).tolist() == [[1], [0], [1]]


@pytest.mark.parametrize("members", [0, 5])
def test_so_many_largest_there_are_not(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 4"):
        largest(np.zeros((2, 4), dtype=np.int64), members)


def test_each_cell_has_one_integer_for_each_category() -> None:
    mechanism = NoisyHistogram.fitted(Fraction(1), CountBounds(4, 1))
    assert mechanism.draw(np.zeros((2, 4), dtype=np.int64)).shape == (2, 4)
    with pytest.raises(ValueError, match="4 counts"):
        mechanism.draw(np.zeros((2, 3), dtype=np.int64))


@pytest.mark.parametrize("counts", Published)
def test_a_release_has_the_members_and_the_noisy_counts_that_it_names(counts: Published) -> None:
    """All of it is read off one noisy histogram: the same bytes give the same one."""
    histogram = NoisyHistogram.fitted(Fraction(1, 3), CountBounds(5, 1))
    table = np.array([[30, 4, 4, 0, 19], [0, 2, 90, 3, 1], [7, 7, 7, 7, 7]])
    noisy = histogram.draw(table, fixed_source(11)).tolist()
    mechanism = HistogramTop(histogram, 2, counts)
    drawn = mechanism.draw(table, fixed_source(11))
    assert drawn.shape == (3, mechanism.outputs)
    for row, all_counts in zip(drawn.tolist(), noisy, strict=True):
        first, second = sorted(range(5), key=lambda code: (-all_counts[code], code))[:2]
        shown = {
            Published.NONE: [],
            Published.MEMBERS: [all_counts[first], all_counts[second]],
            Published.ALL: all_counts,
        }
        assert row == [first, second, *shown[counts]]


def test_members_are_as_private_as_the_histogram_and_lose_in_proportion() -> None:
    histogram = NoisyHistogram.fitted(Fraction(1), CountBounds(5, 3))
    mechanism = HistogramTop(histogram, 4)
    less = 1 - Fraction(1, 10**12)
    for holds in (mechanism.satisfies, mechanism.loses_in_proportion):
        assert holds(Fraction(1))
        assert not holds(less)
    # A unit that counts in one category of the three loses a third.
    assert NoisyHistogram(CountBounds(5, 1), histogram.ratio).satisfies(Fraction(1, 3))
    assert (mechanism.inputs, mechanism.outputs) == (5, 4)


@pytest.mark.parametrize("members", [0, 5])
def test_a_release_of_none_and_of_all_is_refused(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 4"):
        HistogramTop(NoisyHistogram.fitted(Fraction(1), CountBounds(5, 1)), members)
