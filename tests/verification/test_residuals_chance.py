"""The chance that the residual test states, against the sum over all outcomes of small noises."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.queries.kinds.count import CountQuery
from release.verification import residual_noise as module
from release.verification.residual_noise import chance_of_at_least, residual_pmf, spacing
from release.verification.residuals import Released, Residuals, no_residuals, residuals
from tests.small import query

SLACK = Fraction(2, 10**9)
"""What may be added to a chance because it is computed in floats."""


def falling(size: int, base: int) -> Pmf:
    """Symmetric noise whose masses fall by ``base`` a step, except that the total is a power."""
    weights = [base ** (6 - min(i, size - i, 6)) for i in range(size)]
    total = 1 << sum(weights).bit_length()
    weights[0] += total - sum(weights)
    return Pmf.of(Group((size,)), weights)


def count(name: str, by: list[str], size: int) -> CountQuery:
    domain = {"ordered": {"min": 0, "max": size - 1}}
    return TypeAdapter(CountQuery).validate_python(query("count", name=name, by=by, domain=domain))


def released(name: str, mechanism: Mechanism, places: int, days: int, codes: list[int]) -> Released:
    """Counts by place, or by day and place where there are days."""
    columns = ["day", "place"] if days else ["place"]
    keys: list[tuple[str, ...]] = [(f"p{place}",) for place in range(places)]
    if days:
        keys = [(str(day), *key) for day in range(days) for key in keys]
    return Released(
        count(name, columns, mechanism.answers), mechanism, tuple(keys), np.array(codes)
    )


def pair_of(total: Mechanism, parts: Mechanism, share: int) -> tuple[Released, Released]:
    """One total of ``share`` parts, all of them 0: the residual is 0."""
    return released("total", total, 1, 0, [0]), released("parts", parts, 1, share, [0] * share)


def shares_of(total: Pmf, parts: Pmf, share: int) -> dict[int, Fraction]:
    """The exact chance of each absolute residual of noise alone."""
    sums = {0: Fraction(1)}
    for law in [total, *[parts] * share]:
        size = law.group.size
        longer: dict[int, Fraction] = defaultdict(Fraction)
        for (so_far, mass), element in itertools.product(sums.items(), range(size)):
            centred = element if element <= size // 2 else element - size
            longer[so_far + centred] += mass * law.mass(element)
        sums = longer
    absolute: dict[int, Fraction] = defaultdict(Fraction)
    for value, mass in sums.items():
        absolute[abs(value)] += mass
    return absolute


def spacing_of(total: int, parts: int, share: int) -> int:
    """Every noisy count is off by one domain at most, up or down: all sums of these, compared."""
    wraps = {
        up * total + parts * times
        for up in (-1, 0, 1)
        for times in map(sum, itertools.product((-1, 0, 1), repeat=share))
    }
    return min(abs(one - two) for one in wraps for two in wraps if one != two)


@pytest.mark.parametrize("share", [1, 2, 3, 4])
def test_the_spacing_is_that_of_all_sums_of_domains(share: int) -> None:
    for total, parts in itertools.product(range(2, 24), repeat=2):
        assert spacing(total, parts, share) == spacing_of(total, parts, share)


SIZES = [*itertools.product(range(4, 11), repeat=2), (30, 30), (31, 31), (24, 36), (33, 22)]


@pytest.mark.parametrize("share", [1, 2, 3])
@pytest.mark.parametrize("base", [2, 5])
def test_the_chance_of_one_residual_is_the_one_that_is_documented(base: int, share: int) -> None:
    """That of noise within the bound, and that of noise from half the spacing less the bound on."""
    below_one = 0
    for sizes in SIZES:
        laws = falling(sizes[0], base), falling(sizes[1], base)
        shares = shares_of(*laws, share)
        reached = list(itertools.accumulate(shares[i] for i in range(max(shares) + 1)))
        within = next(i for i, mass in enumerate(reached) if mass >= Fraction(1, 2))
        far = spacing_of(sizes[0], sizes[1], share) // 2 - within
        wrapped = sum((mass for value, mass in shares.items() if value >= far), Fraction(0))
        expected = min(Fraction(1), reached[within] + wrapped)
        found = residuals(*pair_of(Modular(laws[0]), Modular(laws[1]), share))
        assert found is not None
        assert (found.cells, found.small, found.within) == (1, 1, within)
        if expected == 1:
            assert found.chance == 1
        else:
            assert expected < Fraction(found.chance) <= expected + SLACK
            below_one += 1
    assert below_one > 0


def test_no_residual_is_left_out_where_the_law_just_fits_its_transform() -> None:
    """The largest residuals are those that a transform too short would fold onto others."""
    for sizes, share in itertools.product(itertools.product((4, 5, 6, 7), repeat=2), (1, 2, 3)):
        laws = falling(sizes[0], 2), falling(sizes[1], 2)
        found = residual_pmf(*laws, share)
        assert found is not None
        assert (found >= 0).all()
        for value, mass in shares_of(*laws, share).items():
            assert found[value] == pytest.approx(float(mass), abs=1e-14)


@pytest.mark.parametrize(
    ("sizes", "share", "is_tested"),
    [
        ((9, 7), 1, True),
        ((8, 8), 1, False),
        ((5, 3), 5, True),
        ((3, 5), 3, True),
        ((3, 5), 4, False),
    ],
)
def test_residuals_whose_law_is_too_long_are_not_tested(
    sizes: tuple[int, int], share: int, is_tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A law of 2r + 1 residuals takes a transform of more elements: at most the longest allowed."""
    monkeypatch.setattr(module, "_LONGEST", 16)
    total, parts = Modular(falling(sizes[0], 2)), Modular(falling(sizes[1], 2))
    assert (residuals(*pair_of(total, parts, share)) is not None) is is_tested


LAWS = [
    ([4, 3, 3, 3, 3], True),
    ([5, 4, 2, 1, 4], False),
    ([5, 3, 2, 3, 3], False),
    ([4, 3, 2, 3, 4], False),
    ([4, 4, 2, 2, 4], True),
    ([6, 1, 4, 4, 1], False),
    ([8, 1, 6, 1], False),
    ([6, 4, 2, 4], True),
    ([4, 3, 3, 3, 3, 0], False),
    ([4, 3, 2, 2, 2, 3], True),
    ([4, 3, 1, 4, 1, 3], False),
]


@pytest.mark.parametrize(("weights", "falls_off"), LAWS)
def test_only_laws_that_fall_off_from_zero_on_both_sides_are_added_up(
    weights: list[int], falls_off: bool
) -> None:
    """Of others nothing but a residual of exactly 0 is bounded, as of channels."""
    odd, good = Pmf.of(Group((len(weights),)), weights), falling(9, 2)
    for total, parts in ((odd, good), (good, odd)):
        found = residuals(*pair_of(Modular(total), Modular(parts), 2))
        assert found is not None
        assert (found.within > 0) is falls_off


def rows_of(*rows: list[int]) -> Channel:
    return Channel.of(list(rows))


SHARP = rows_of([14, 1, 1], [4, 8, 4], [2, 2, 12])
CERTAIN = rows_of([2, 0, 0], [0, 2, 0], [0, 0, 2])


@pytest.mark.parametrize(
    ("total", "parts", "most"),
    [
        (SHARP, SHARP, (14**2 + 2) / 256),
        (SHARP, Modular(Pmf.of(Group((3,)), [2, 1, 1])), (198 / 256 * 6 / 16) ** 0.5),
        (Modular(Pmf.of(Group((3,)), [2, 1, 1])), SHARP, (198 / 256 * 6 / 16) ** 0.5),
        (Modular(Pmf.of(Group((3,)), [1, 2, 1])), Modular(falling(5, 5)), None),
        (CERTAIN, CERTAIN, 1.0),
    ],
)
def test_of_a_channel_the_chance_of_zero_is_bounded_at_its_sharpest_rows(
    total: Mechanism, parts: Mechanism, most: float | None
) -> None:
    most = most or total.concentration() * parts.concentration()
    found = residuals(*pair_of(total, parts, 1))
    assert found is not None
    assert (found.within, found.small) == (0, 1)
    assert min(1.0, most + 0.5e-9) <= found.chance <= min(1.0, most + 2e-9)


def test_a_residual_at_the_bound_is_small_and_the_next_is_not() -> None:
    law = Modular(falling(31, 2))
    found = residuals(*pair_of(law, law, 2))
    assert found is not None
    bound = found.within
    assert bound > 0
    codes = [10, 10 + bound, 10 - bound, 11 + bound, 9 - bound]
    total = released("total", law, 5, 0, codes)
    parts = released("parts", law, 5, 2, [4] * 5 + [6] * 5)
    several = residuals(total, parts)
    assert several is not None
    assert (several.cells, several.small, several.within) == (5, 3, bound)
    # The parts of a place are added up wherever they stand.
    shuffled = released("parts", law, 5, 2, [4, 5, 6, 7, 8, 6, 5, 4, 3, 2])
    assert residuals(total, shuffled) == several


def test_a_finding_says_what_was_compared_and_how_likely_it_is() -> None:
    told = str(Residuals("total", "parts", 60, 59, 3, 1.234e-12))
    assert told == (
        "total minus the sums of parts: 59 of 60 residuals are within ±3, "
        "as many or more with chance 1.2e-12 or less"
    )


def test_the_chance_of_many_is_exact_for_few_cells_and_never_above_one() -> None:
    for number, percent in itertools.product((1, 2, 7, 40, 333, 1000), (1, 10, 37, 50, 90, 99)):
        assert chance_of_at_least(number, 0, percent / 100) <= 1
        assert chance_of_at_least(number, 0, percent / 100) == pytest.approx(1)
    assert chance_of_at_least(3, 2, 0.5) == 0.5
    assert chance_of_at_least(4, 4, 0.25) == 2**-8
    assert chance_of_at_least(1, 1, 1.0) == 1
    ways = sum(comb(1000, k) for k in range(600, 1001))
    assert chance_of_at_least(1000, 600, 0.5) == pytest.approx(ways / 2**1000, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("number", "successes", "chance", "expected"),
    [
        (1001, 1001, 0.5, np.exp(-500.5)),
        (2000, 1200, 0.5, np.exp(-40.0)),
        (5000, 2500, 0.5, 1.0),
        (5000, 2499, 0.5, 1.0),
        (5000, 0, 0.5, 1.0),
    ],
)
def test_for_many_cells_it_is_the_bound_of_hoeffding(
    number: int, successes: int, chance: float, expected: Any
) -> None:
    """exp(-2n·t²), with t how far the share of successes is above the chance of each."""
    assert chance_of_at_least(number, successes, chance) == pytest.approx(
        float(expected), rel=1e-9, abs=0
    )


def test_too_few_differences_are_counted_by_their_zeros() -> None:
    """Three zeros of five, each with a quarter: 10·9 + 5·3 + 1 of 4^5 ways."""
    found = no_residuals(("total", "parts"), np.array([0, 3, 0, -1, 0]), 0.25)
    chance = (10 * 9 + 5 * 3 + 1) / 4**5
    assert found == Residuals("total", "parts", 5, 3, 0, found.chance)
    assert found.chance == pytest.approx(chance, rel=1e-7)
    assert no_residuals(("total", "parts"), np.array([1, 2]), 0.25).chance == pytest.approx(1)
    # Noise that always differs by 0 is never found too small.
    assert no_residuals(("total", "parts"), np.array([0, 0]), 1.0).chance == 1
