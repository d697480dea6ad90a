"""Distributions enumerated from the code that draws, against those that are stated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dp_release_audit.words import ExhaustedError, IrregularError, enumerated
from release.exact.channel import Channel
from release.exact.domain import Codes, Group
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.sampling import RandomBytes, random_below_power
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import NoisySums, geometric_noise

NOISE = geometric_noise(least_ratio(Fraction(1), 1))
RING = Modular(Pmf.of(Group((4,)), [4, 2, 1, 1]))
ROWS = Channel.of([[6, 1, 1], [2, 4, 2], [1, 2, 5]])


@pytest.mark.parametrize("mechanism", [RING, ROWS])
@pytest.mark.parametrize("code", [0, 1, 2])
def test_every_weight_is_found_exactly(mechanism: Mechanism, code: int) -> None:
    def drawing(draws: int, source: RandomBytes) -> Codes:
        return mechanism.draw(np.full(draws, code), source)[:, np.newaxis]

    law, _ = enumerated(drawing)
    stated = mechanism.row(code).tolist()
    assert law.rest == 0
    for outcome, weight in enumerate(stated):
        assert law.chances.get((outcome,), 0) == Fraction(weight, mechanism.total)


def test_noise_with_tails_is_found_up_to_what_is_left_out() -> None:
    mechanism = IntegerMechanism(NOISE, 8)

    def drawing(draws: int, source: RandomBytes) -> Codes:
        return mechanism.draw(np.full(draws, 2), source)[:, np.newaxis]

    law, limits = enumerated(drawing)
    assert 0 <= law.rest < Fraction(1, 2**40)
    for outcome in range(1, 7):
        assert abs(law.chances[(outcome,)] - NOISE.mass(outcome - 2)) < Fraction(1, 2**40)
    again, known = enumerated(drawing, earlier=limits)
    assert known is limits
    assert again.chances == law.chances


def test_each_of_several_wide_noises_is_found() -> None:
    """The side of the second noise decides which of its tails counts: tails are not multiplied."""
    sums = NoisySums.geometric(Fraction(1, 2), 2, 12)

    def drawing(draws: int, source: RandomBytes) -> Codes:
        return sums.draw(np.tile([3, 5], (draws, 1)), source)[:, 1:]

    law, _ = enumerated(drawing)
    assert 0 <= law.rest < Fraction(1, 2**40)
    assert len(law.chances) > 1000
    for outcome in (-200, 4, 5, 6, 300):
        assert abs(law.chances[(outcome,)] - sums.noise.mass(outcome - 5)) < Fraction(1, 2**50)


def test_more_boxes_than_are_tried_say_nothing_against_the_draw() -> None:
    wide = NoisySums.geometric(Fraction(1, 10_000), 1, 12)

    def drawing(draws: int, source: RandomBytes) -> Codes:
        return wide.draw(np.zeros((draws, 1), dtype=np.int64), source)

    with pytest.raises(ExhaustedError, match="boxes"):
        enumerated(drawing)


def test_words_without_limits_are_refused() -> None:
    def drawing(draws: int, source: RandomBytes) -> Codes:
        words = random_below_power(64, draws, source)
        return (words % np.uint64(3)).astype(np.int64)[:, np.newaxis]

    with pytest.raises(IrregularError, match=r"limits|within a box"):
        enumerated(drawing)


def test_noise_on_several_words_of_one_request_is_found() -> None:
    def drawing(draws: int, source: RandomBytes) -> Codes:
        first, second = random_below_power(1, 2 * draws, source).reshape(2, draws).astype(np.int64)
        both: Codes = first + second
        return both[:, np.newaxis]

    law, _ = enumerated(drawing)
    quarter = Fraction(1, 4)
    assert law.chances == {(0,): quarter, (1,): 2 * quarter, (2,): quarter}
