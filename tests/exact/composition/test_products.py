"""Long multiplication of polynomials against the sum that defines it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from release.exact.composition.products import product

COEFFICIENTS = st.lists(st.integers(0, 10**29) | st.integers(0, 3), min_size=1, max_size=12)


@given(COEFFICIENTS, COEFFICIENTS)
def test_a_product_is_the_sum_over_all_pairs(left: list[int], right: list[int]) -> None:
    expected = [0] * (len(left) + len(right) - 1)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            expected[i + j] += one * other
    assert product(left, right) == expected


def test_a_long_product_is_that_of_integers() -> None:
    """Longer than a transform of one word, and with every digit of a slot in use."""
    left, right = [10**28 - 1] * 3000, [10**28 - 1] * 2000
    found = product(left, right)
    assert found[0] == found[-1] == (10**28 - 1) ** 2
    assert found[2500] == 2000 * (10**28 - 1) ** 2
    assert sum(found) == sum(left) * sum(right)
