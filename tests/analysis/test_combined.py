"""Sums, differences, ratios and ranks: their intervals hold the truth as often as they say."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import release
from release.analysis.combined import Combined
from release.analysis.estimation import Estimates, estimate, likelihood
from release.analysis.intervals import AddedNoise, TableNoise, radius_of_sum
from release.errors import DesignError, SpecError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.noise.published.baselines import geometric_clamped, geometric_modular
from tests.small import Small, query
from tests.tabulations.files.folders import census

SIZE, DRAWS, LEVEL = 25, 1500, 0.9
CLAMPED, WRAPPED = geometric_clamped(SIZE, Fraction(1)), geometric_modular(SIZE, Fraction(1))
TRUE = np.array([0, 1, 3, 12, 12, 13, 24, 23, 8, 0, 5, 24])
NAMES = tuple((str(place),) for place in range(len(TRUE)))


def geometric() -> IntegerNoise:
    """Noise without ends, far from any power of the sample's own: 3/8 at 0 and tails of 1/2."""
    made = release.design(1000, "ordered", sensitivity=[1], epsilon=1, mechanism="integer")
    assert isinstance(made.mechanism, IntegerMechanism)
    return made.mechanism.noise


NOISE = geometric()


def estimates_of(codes: Any, mechanism: Any = CLAMPED) -> Estimates:
    found = estimate(codes, likelihood(mechanism), range(SIZE))
    return Estimates(found.cells, ("place",), NAMES, found.noise)


def added(values: Any) -> Estimates:
    """The estimates of values with noise that has no ends."""
    found = estimate(np.zeros(len(values), dtype=np.int64), likelihood(CLAMPED), range(SIZE))
    cells = tuple(
        type(cell)(int(value), int(value), unbiased=float(value))
        for cell, value in zip(found.cells, values, strict=True)
    )
    own = AddedNoise(np.array(values, dtype=np.float64), NOISE)
    return Estimates(cells, ("place",), NAMES[: len(values)], own)


def holds(found: Combined, true: float) -> bool:
    return found.low <= true <= found.high


def least(level: float) -> float:
    """What chance alone would fall below about once in a million."""
    return level - 5 * math.sqrt(level * (1 - level) / DRAWS)


@pytest.mark.parametrize("mechanism", [CLAMPED, WRAPPED], ids=["clamped", "wrapped"])
def test_intervals_of_cells_hold_every_true_answer_exactly(mechanism: Any) -> None:
    """No draws: the mass of the outcomes whose interval holds the answer, for each answer."""
    masses = np.exp(likelihood(mechanism))
    codes = np.arange(SIZE)
    for level in (0.5, 0.9, 0.999):
        low, high = TableNoise(masses, codes, codes.astype(float)).intervals(level)
        held = [masses[q][(low <= q) & (q <= high)].sum() for q in range(SIZE)]
        assert min(held) >= level - 1e-9


@pytest.mark.parametrize("mechanism", [CLAMPED, WRAPPED], ids=["clamped", "wrapped"])
def test_differences_ratios_and_ranks_hold_as_often_as_they_say(mechanism: Any) -> None:
    source = random.Random(5).randbytes  # noqa: S311 - repeatable draws
    ranks = [1 + int((own < TRUE).sum()) for own in TRUE]
    held = np.zeros(3)
    for _ in range(DRAWS // 5):
        found = estimates_of(mechanism.draw(TRUE, source), mechanism)
        held[0] += holds(found.difference("3", "2", level=LEVEL), 9)
        held[1] += holds(found.ratio("2", "3", level=LEVEL), 3 / 12)
        pairs = zip(found.ranks(level=LEVEL), ranks, strict=True)
        held[2] += all(holds(one, rank) for one, rank in pairs)
    assert (held / (DRAWS // 5) >= LEVEL - 5 * math.sqrt(LEVEL * (1 - LEVEL) / (DRAWS // 5))).all()


def test_sums_of_many_cells_hold_nearly_as_often_as_they_say() -> None:
    source = random.Random(6).randbytes  # noqa: S311 - repeatable draws
    held = []
    for _ in range(DRAWS):
        total = estimates_of(CLAMPED.draw(TRUE, source)).sum(level=LEVEL)
        assert total.method == "normal"
        held.append(holds(total, TRUE.sum()))
    assert abs(np.mean(held) - LEVEL) < 0.03


def test_sums_of_noise_without_ends_hold_as_often_as_the_convolution_says() -> None:
    source = random.Random(7).randbytes  # noqa: S311 - repeatable draws
    reach = radius_of_sum(NOISE, 5, LEVEL)
    assert reach is not None
    drawn = NOISE.draw(5 * 20_000, source).reshape(-1, 5)
    far = np.abs(drawn.sum(axis=1))
    slack = 5 * math.sqrt(LEVEL * (1 - LEVEL) / len(far))
    # The least such radius: it holds, and one step less does not.
    assert (far <= reach).mean() > LEVEL - slack
    assert (far <= reach - 1).mean() < LEVEL + slack
    found = added(1000 + drawn[0])
    total = found.sum(level=LEVEL)
    assert (total.method, total.low, total.high) == (
        "noise",
        total.value - reach,
        total.value + reach,
    )
    gap = found.difference("0", "1", level=LEVEL)
    assert gap.high - gap.value == radius_of_sum(NOISE, 2, LEVEL)


def test_the_radius_of_one_noise_is_its_own() -> None:
    for level in (0.5, 0.9, 0.99, 0.9999):
        assert radius_of_sum(NOISE, 1, level) == NOISE.radius(level)


def test_ratios_at_and_below_nothing() -> None:
    found = added([40, 0, 1000])
    assert found.ratio("0", "2").low > 0
    with pytest.raises(DesignError, match="holds numbers below 0, so the ratio has none"):
        found.ratio("0", "1")
    # Answers that are never below 0 leave the ratio without an upper end.
    open_ended = estimates_of(np.array([12] + [0] * 11)).ratio("0", "1")
    assert (open_ended.high, open_ended.low > 0) == (math.inf, True)


def test_what_has_no_sum_is_refused(tmp_path: Path) -> None:
    rows = [{"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4} for i in range(20)]
    asked = [query("mode", sensitivity="global"), query("count", sensitivity="global")]
    public = release.run(Small(rows, asked).write(tmp_path), tmp_path / "out").public
    with pytest.raises(SpecError, match="categories or go round a circle; they have no such"):
        release.estimate(public, "the_mode").sum()
    counts = release.estimate(public, "the_count")
    assert counts.sum(["a", "b"]) == counts.sum([("a",), ("b",)]) == counts.sum()
    for told, call in (
        ("key: found 'c'; write the values of place", lambda: counts.difference("a", "c")),
        ("key: a cell is named twice", lambda: counts.difference(("a",), ("a",))),
        ("level: found 1; write a number above 0", lambda: counts.sum(level=1)),
        ("level: found 'x'; write a number above 0", lambda: counts.ranks(level="x")),  # type: ignore[arg-type]
    ):
        with pytest.raises(SpecError) as error:
            call()
        assert str(error.value).startswith(told)


def test_cells_of_a_tabulation_are_refused_for_their_correlation(tmp_path: Path) -> None:
    folder = census(tmp_path / "public")
    (tabulation,) = folder.record.made.tabulations or []
    with pytest.raises(SpecError, match=r"correlated by least squares.*open\(…\)\.table\(level"):
        release.estimate(folder.public, tabulation.name)
