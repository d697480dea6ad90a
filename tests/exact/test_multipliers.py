"""Dual multipliers: the bound of a table is that of the definition, far beyond its ends."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.bounds import Multipliers
from release.exact.numbers import exp_bounds
from release.exact.statistics.sums import geometric_noise

ONE = 2**80


def of(tables: Mapping[int, list[float]]) -> Multipliers:
    """Multipliers that are given in units of 1."""
    return Multipliers(
        {step: tuple(round(price * ONE) for price in prices) for step, prices in tables.items()}
    )


def term(own: Multipliers, ratio: Fraction, power: int, k: int) -> Fraction:
    """|k|^power plus the mean price of k and -k, each price looked up by itself."""
    loss = Fraction(abs(k) ** power) if k or power else Fraction(0)
    for step, prices in own.of.items():
        for sign in (1, -1):
            for place, weight in ((sign * k, Fraction(1)), (sign * k - step, -ratio)):
                is_listed = abs(place) <= own.reach
                price = prices[place + own.reach] if is_listed else max(prices)
                loss += weight * price / (2 * ONE)
    return loss


def defined(own: Multipliers, epsilon: Fraction, delta: Fraction, power: int) -> Fraction:
    """The least of very many terms, and what δ takes from it."""
    ratio = exp_bounds(epsilon)[1]
    terms = [term(own, ratio, power, k) for k in range(4 * (own.reach + max(own.of)) + 4)]
    caps = Fraction(sum(max(prices) for prices in own.of.values()), ONE)
    return max(Fraction(0), min(terms) - delta * caps)


@given(data=st.data())
def test_the_bound_is_the_least_of_all_terms(data: st.DataObject) -> None:
    steps = data.draw(st.sets(st.integers(1, 3), min_size=1, max_size=2))
    length = 2 * data.draw(st.integers(0, 3)) + 1
    prices = st.lists(st.floats(0, 0.4), min_size=length, max_size=length)
    own = of({step: data.draw(prices) for step in steps})
    power = data.draw(st.integers(0, 2))
    delta = data.draw(st.sampled_from([Fraction(0), Fraction(1, 7)]))
    for epsilon in (Fraction(1, 9), Fraction(1)):
        assert own.lower_bound(epsilon, delta, power) == defined(own, epsilon, delta, power)


BEST: list[tuple[int, dict[int, list[float]]]] = [
    (0, {1: [0, 0, 0, 0, 0.6065, 0.2131, 0, 0, 0.2131]}),
    (0, {1: [0, 0, 0, 0, 0.1292, 0, 0, 0, 0.1292], 2: [0, 0, 0, 0, 0.4773, 0, 0, 0, 0.0838]}),
    (1, {1: [0, 0, 0, 0, 1.3152, 2.7988, 3.2448, 1.9801, 3.2448]}),
    (2, {1: [0, 0, 0, 0, 3.0885, 9.269, 13.4589, 10.3668, 13.4589]}),
    (
        2,
        {
            1: [0, 0, 0, 0, 0, 0, 0.5517, 4.5216, 4.5216],
            2: [0, 0, 0, 0, 3.9738, 5.9476, 5.9476, 5.9476, 5.9476],
        },
    ),
]
"""Powers, and multipliers of noise up to 4 that a linear program found the best for ε = 1/2."""


@pytest.mark.parametrize(("power", "tables"), BEST)
def test_of_the_best_prices_any_term_may_be_the_least(
    power: int, tables: dict[int, list[float]]
) -> None:
    """All are nearly equal; which is the least changes with ε, and with each of the prices."""
    own = of(tables)
    assert own.lower_bound(Fraction(1, 2), Fraction(0), power) > Fraction(1, 2)
    for epsilon in (Fraction(2, 5), Fraction(1, 2), Fraction(13, 25)):
        expected = defined(own, epsilon, Fraction(0), power)
        assert own.lower_bound(epsilon, Fraction(0), power) == expected
    for step, prices in tables.items():
        for place in range(len(prices)):
            raised = {step: [*prices[:place], prices[place] + 0.01, *prices[place + 1 :]]}
            changed = of(tables | raised)
            expected = defined(changed, Fraction(1, 2), Fraction(0), power)
            assert changed.lower_bound(Fraction(1, 2), Fraction(0), power) == expected


@pytest.mark.parametrize(
    ("tables", "place"),
    [
        ({1: [0, 0, 0, 0, 1.2, 2.2, 1.7, 0, 9.6]}, 5),
        (
            {
                1: [0, 0, 0.16, 0, 0, 0.96, 1.35, 0, 1.27, 0, 11.92],
                3: [0, 0, 0, 0, 0, 0, 0, 0.19, 0, 1.33, 3.68],
            },
            8,
        ),
        # The first at which every price is that of beyond the reach.
        ({1: [15.6, 5.31, 2.05, 0, 0, 0, 1.04, 1.65, 0.56, 0, 0, 10.17, 13.14]}, 8),
    ],
)
def test_the_least_term_may_be_beyond_all_that_is_listed(
    tables: dict[int, list[float]], place: int
) -> None:
    """Found by linear programs: prices for which each other term is larger."""
    own = of(tables)
    # ln 3/2 = 0.405465…
    epsilon = Fraction("0.405465")
    ratio = exp_bounds(epsilon)[1]
    terms = [term(own, ratio, 1, k) for k in range(40)]
    assert terms.index(min(terms)) == place > own.reach
    assert own.lower_bound(epsilon, Fraction(0), 1) == min(terms) > 0


@pytest.mark.parametrize("power", [0, 1, 2])
def test_no_private_noise_is_below_the_bound(power: int) -> None:
    """The geometric noise of ε is private for it, whatever the prices."""
    noise = geometric_noise(2**63)
    # ln 2, rounded up.
    epsilon = Fraction("0.693148")
    for highest in (0.1, 0.3, 0.5):
        prices = [highest * min(1.0, abs(k) / 6) for k in range(-8, 9)]
        bound = of({1: prices}).lower_bound(epsilon, Fraction(0), power)
        moment = 1 - noise.mass(0) if power == 0 else noise.moment(power)
        assert bound <= moment


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({1: (1, 2)}, "one odd length"),
        ({1: (1,), 2: (1, 2, 1)}, "one odd length"),
        ({0: (1,)}, "steps of 1 or more"),
        ({0: (1,), 2: (1,)}, "steps of 1 or more"),
        ({1: (1, -1, 1)}, "below 0"),
        ({1: (1, -1, 1), 2: (1, 1, 1)}, "below 0"),
        ({10**6: (0, 0, 0)}, "more than 1,000,000"),
        ({1: (0,), 500_001: (0,)}, "more than 1,000,000"),
    ],
)
def test_tables_that_are_none_are_refused(tables: dict[int, tuple[int, ...]], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Multipliers(tables)


@pytest.mark.parametrize(
    "tables", [{10**6 - 1: (0, 0, 0)}, {10**6: (0,)}, {1: (0,), 500_000: (0,)}]
)
def test_tables_may_have_a_million_distances_and_noises(tables: dict[int, tuple[int, ...]]) -> None:
    assert Multipliers(tables).of == tables


def test_a_price_of_nothing_is_a_price() -> None:
    assert Multipliers({1: (0,)}).lower_bound(Fraction(1), Fraction(0), 1) == 0
