"""The distributions of Table V of Qin et al. 2022: what is printed beside the exact figures."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from release.exact.numbers import exp_bounds
from research.published.integer_pmf import theorem_1
from research.table_v import (
    one_sided_exponential,
    quantised_gaussian,
    quantised_laplace,
    staircase_noise,
    uniform_noise,
)

HALF = Fraction(1, 2)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_the_five_laws_of_table_v(most: int) -> None:
    """Qin et al. 2022, Table V with Δ = 1, each beside the exact figures of its law."""
    lam = Fraction(5, 2)
    laplace = theorem_1(quantised_laplace(lam), most)
    assert laplace is not None
    # Printed (m+Δ)/λ bounds it; the law itself keeps m/λ.
    assert math.log(laplace) == pytest.approx(most / float(lam), abs=1e-12)
    for width in (1, 2, 4, 7):
        stairs = theorem_1(staircase_noise(width, Fraction(1, 3)), most)
        assert stairs == 3 ** -(-most // width)
    uniform = uniform_noise(-6, 13)
    assert theorem_1(uniform, most) is None
    assert uniform.deltas(most, Fraction(1)).approximate == Fraction(most, 20)
    # Its support has an end, so by the paper's own (9) it is ε-private for no ε; printed is ηm.
    exponential = one_sided_exponential(HALF)
    assert theorem_1(exponential, most) is None
    at_printed = exponential.deltas(most, exp_bounds(HALF * most)[0] + 1)
    assert float(at_printed.approximate) == pytest.approx(1 - math.exp(-most / 2), abs=1e-9)


@pytest.mark.parametrize(("most", "cut"), [(1, 20), (1, 35), (3, 30), (5, 40)])
def test_the_gaussian_of_table_v_keeps_what_is_printed(most: int, cut: int) -> None:
    """Table V and (43): ε = (m+1)(2M+1-m)/2σ² and δ = 2·P(θ ≥ M), with μ = 0 and σ = 10."""
    law = quantised_gaussian(100.0)
    assert theorem_1(law, most) is None
    epsilon = Fraction((most + 1) * (2 * cut + 1 - most), 200)
    printed = 2 * float(law.above(cut - 1))
    assert float(law.deltas(most, exp_bounds(epsilon)[0]).approximate) <= printed


def test_the_gaussian_of_table_v_can_break_what_is_printed() -> None:
    """Where m² is above M it leaves out too little noise: the exact δ is larger.

    (14) takes the supremum over m₀ of both signs, so it has 2M+1+m, and that ε is large enough.
    """
    law, most, cut = quantised_gaussian(100.0), 30, 40
    epsilon = Fraction((most + 1) * (2 * cut + 1 - most), 200)
    printed = 2 * float(law.above(cut - 1))
    assert float(law.deltas(most, exp_bounds(epsilon)[0]).approximate) > printed
    theorem = Fraction((most + 1) * (2 * cut + 1 + most), 200)
    assert float(law.deltas(most, exp_bounds(theorem)[0]).approximate) <= printed


def test_the_integrals_of_table_v() -> None:
    """(2): p(k) is the density's integral from k to k+1."""
    law = quantised_laplace(Fraction(2))
    assert float(law.mass(0)) == pytest.approx((1 - math.exp(-0.5)) / 2, abs=1e-15)
    assert float(law.mass(-1)) == pytest.approx((1 - math.exp(-0.5)) / 2, abs=1e-15)
    assert float(law.mass(3)) == pytest.approx((math.exp(-1.5) - math.exp(-2)) / 2, abs=1e-15)
    normal = quantised_gaussian(4.0, 0.5)
    for k in (-9, -1, 0, 3, 30):
        a, b = ((edge - 0.5) / 2 / math.sqrt(2) for edge in (k, k + 1))
        expected = (math.erf(b) - math.erf(a)) / 2
        assert float(normal.mass(k)) == pytest.approx(expected, abs=1e-16)
    assert 0 < float(normal.mass(40)) < 1e-80
