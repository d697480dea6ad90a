"""The trade-offs of Figures 5, 7, 11 and 12: by independent programs, and by what they claim."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from release.exact.channel import answer_costs
from release.exact.losses import LossName
from release.exact.privacy import Definition
from release.noise.search import least_delta as searched
from research.kadam.least_delta import corollary_1, least_released
from research.kadam.rivals import (
    FAMILIES,
    least_loss,
    least_rival_delta,
    members,
)
from research.lines import corners, refined, root
from research.printed import sd_delta, sd_jumps
from research.programs import (
    channel_delta,
    exact,
    least_delta,
    loss,
    ours,
    released,
    sensitivity,
)
from research.published.clamping import clamped, geometric


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 1.4])
@pytest.mark.parametrize("directed", [True, False])
def test_the_least_delta_is_the_inverse_of_the_least_loss(epsilon: float, directed: bool) -> None:
    """(15) by PuLP, beside a bisection of proved designs to a thousandth."""
    found = least_delta(7, [1], epsilon, 0.3, LossName.ERROR_RATE, directed=directed)
    proved = searched(
        sensitivity(7, [1], directed=directed),
        Definition.PROBABILISTIC,
        exact(epsilon),
        loss(LossName.ERROR_RATE, 7),
        Fraction(3, 10),
        resolution=Fraction(1, 1000),
    )
    assert found - 1e-6 <= float(proved.guarantee.delta) <= found + 1e-3 + 1e-6
    if directed:
        assert found == pytest.approx(sd_delta(7, 1, epsilon, 0.3), abs=1e-6)


def test_the_jumps_of_corollary_1_are_roots_of_25() -> None:
    for n, rate in ((7, 0.3), (4, 0.5), (12, 0.1)):
        jumps = sd_jumps(n, rate)
        for k, jump in enumerate(jumps):
            mode = (1 - math.exp(-jump)) / (1 - math.exp(-(n + 1 - k) * jump))
            assert mode == pytest.approx(1 - rate, abs=1e-9)
            before, after = (sd_delta(n, 1, jump + s, rate) for s in (-1e-9, 1e-9))
            assert before > after * 1.5
        assert jumps == sorted(jumps, reverse=True)
    line = corollary_1(7, 0.3)
    # The same x twice, one value on each side.
    assert sum(a == b for a, b in itertools.pairwise(line.x)) == 7


def test_rivals_are_channels_with_their_exact_delta() -> None:
    """The floats of a grid, beside the exact δ of its channels."""
    family = members("geometric, clamped", 4)
    grid = np.geomspace(0.02, 6.0, 240)
    for place in (0, 60, 150, 239):
        parameter = exact(float(grid[place]), 4)
        channel = clamped(geometric(parameter), 5)
        assert family.squared[place] == pytest.approx(
            float(channel.mean_loss(answer_costs(2, 5))), abs=1e-12
        )
        for epsilon in (0.3, 1.1):
            assert family.deltas(epsilon)[place] == pytest.approx(
                channel_delta(channel, epsilon), abs=1e-9
            )
    # At δ = 0 the geometric mechanism has to have ε itself, up to the grid.
    least = least_loss("geometric, clamped", 4, 0.0, 1.0, squared=True)
    own = float(clamped(geometric(Fraction(1)), 5).mean_loss(answer_costs(2, 5)))
    assert own <= least <= own * 1.06


@pytest.mark.parametrize("label", FAMILIES)
def test_every_rival_has_a_value_everywhere(label: str) -> None:
    """No nan: there is always noise enough."""
    for epsilon in (0.25, 3.0):
        assert 0 < least_loss(label, 8, 0.3, epsilon, squared=True) < 20
        assert 0 <= least_rival_delta(label, 8, 0.6101, epsilon, squared=True) <= 1


def test_figure_5_compares_by_what_a_reader_sees() -> None:
    """N = 8, δ = 0.3, ε = 1: modular 3.39, clamped geometric 1.34, a release 0.39."""
    modular = float(ours(8, [1], 1.0, 0.3, LossName.SQUARED).objective)
    design = released(8, [1], 1.0, 0.3, LossName.SQUARED)
    own = float(clamped(geometric(Fraction(1)), 9).mean_loss(answer_costs(2, 9)))
    assert float(design.objective) < own < modular
    assert float(design.objective) == pytest.approx(float(design.lower_bound), abs=1e-9)
    assert channel_delta(design.mechanism, 1.0) <= 0.3
    # The channel's loss from its rows.
    rows = design.mechanism.to_floats()
    answers = np.arange(9)
    costs = (answers[:, None] - answers[None, :]) ** 2
    assert (rows * costs).sum() / 9 == pytest.approx(float(design.objective), abs=1e-9)


@pytest.mark.nightly
def test_figure_7_compares_by_what_a_reader_sees() -> None:
    """Squared error 0.6101 at ε = 1: a release needs a fraction of the modular δ."""
    least = least_released(8, 0.6101, LossName.SQUARED, 1.0)
    assert float(released(8, [1], 1.0, least, LossName.SQUARED).objective) <= 0.6101
    less = least - 1 / 128
    named = released(8, [1], 1.0, least, LossName.SQUARED, "channel")
    best = released(8, [1], 1.0, least, LossName.SQUARED)
    assert best.name == "channel"
    assert best.objective == named.objective
    assert float(released(8, [1], 1.0, less, LossName.SQUARED).objective) > 0.6101
    modular = least_delta(8, [1], 1.0, 0.6101, LossName.SQUARED, directed=False)
    assert least < modular / 3


def test_wide_differences_end_at_randomised_response() -> None:
    """Figure 11: 1 - max(δ, e^ε/(e^ε+n)) from where every answer is a neighbor of every other."""
    for epsilon, delta in ((1.0, 0.2), (2.0, 0.1)):
        ratio = math.exp(epsilon)
        expected = 1 - max(delta, ratio / (ratio + 9))
        for width in (5, 7, 9):
            wide = ours(9, range(1, width + 1), epsilon, delta)
            assert float(wide.objective) == pytest.approx(expected, abs=1e-6)
        narrow = ours(9, range(1, 5), epsilon, delta)
        assert float(narrow.objective) < expected - 1e-3


def test_a_release_never_loses_more_than_its_candidates() -> None:
    """`best` beside the modular noise that protects fewer pairs less: the line knows its ends."""
    for steps in ([1], [3]):
        release = released(9, steps, 1.0, 0.2)
        modular = ours(9, steps, 1.0, 0.2)
        assert float(release.objective) <= float(modular.objective) + 1e-9


def test_lines_are_refined_at_their_jumps() -> None:
    x, y = refined(lambda t: 1.0 if t < 0.7 else 0.25 * (1 - t), [0.0, 1.0], width=0.001)
    jumps = [(a, b) for a, b, u, v in zip(x, x[1:], y, y[1:], strict=False) if u - v > 0.5]
    ((left, right),) = jumps
    assert left < 0.7 <= right
    assert right - left <= 0.001
    assert corners([0, 1, 2, 3, 4], [1, 1, 1, 2, 3]) == ([0, 2, 3, 4], [1, 1, 2, 3])
    assert root(lambda t: 2 - t, 0.0, 5.0) == pytest.approx(2, abs=1e-12)
