"""Exact δ against a computation straight from the definitions, and laws that are none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.domain import Group
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.solvers.closed_form import pure_pmf


@st.composite
def laws(draw: st.DrawFn) -> Pmf:
    """Random laws, lumpy ones and ones with zeros among them."""
    size = draw(st.integers(2, 12))
    bits = draw(st.sampled_from([4, 20, 62, 100]))
    cuts = sorted(draw(st.lists(st.integers(0, 2**bits), min_size=size - 1, max_size=size - 1)))
    weights = [b - a for a, b in zip([0, *cuts], [*cuts, 2**bits], strict=True)]
    return Pmf.of(Group((size,)), weights)


@given(laws(), st.data())
def test_deltas_are_those_of_the_definitions(law: Pmf, data: st.DataObject) -> None:
    size = law.group.size
    shifts = data.draw(st.lists(st.integers(1, size - 1), min_size=1, max_size=4))
    epsilon = data.draw(st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(5, 2)]))
    sensitivity = Sensitivity.of(law.group, ((s,) for s in shifts))
    ratio, _ = exp_bounds(epsilon)
    probabilistic = approximate = Fraction(0)
    for (shift,) in sensitivity.shifts:
        pairs = [(law.mass(e), law.mass((e + shift) % size)) for e in range(size)]
        tail = sum((f for f, g in pairs if f > ratio * g), Fraction(0))
        probabilistic = max(probabilistic, tail)
        excess = sum((max(Fraction(0), f - ratio * g) for f, g in pairs), Fraction(0))
        approximate = max(approximate, excess)
    found = deltas(law, sensitivity, epsilon)
    assert found.probabilistic == probabilistic
    assert found.approximate == approximate
    assert found.approximate <= found.probabilistic


def test_differences_are_closed_reduced_and_without_zero() -> None:
    group = Group((9,))
    assert Sensitivity.of(group, [(1,), (-2,), (9,), (10,)]).shifts == ((1,), (2,), (7,), (8,))
    assert Sensitivity.of(group, [(1,)], directed=True).shifts == ((1,),)
    assert len(Sensitivity.everything(Group((3, 4))).shifts) == 11


def test_the_papers_one_sided_law_protects_one_direction_only() -> None:
    """Table I, δ = 0 (Kadam et al. 2024): f(0)/f(8) = 90 while e^1.5 = 4.48."""
    one_way = Sensitivity.of(Group((9,)), [(1,), (2,), (3,)], directed=True)
    steps = one_way.group.steps_from_zero(one_way.shifts)
    law = pure_pmf(one_way.group, steps, exp_bounds(Fraction(3, 2))[0])
    assert deltas(law, one_way, Fraction(3, 2)).probabilistic == 0
    both = Sensitivity.of(law.group, [(1,), (2,), (3,)])
    found = deltas(law, both, Fraction(3, 2))
    assert float(found.probabilistic) == pytest.approx(0.786, abs=1e-3)
    assert float(found.approximate) == pytest.approx(0.610, abs=1e-3)


@pytest.mark.parametrize(
    ("weights", "total"),
    [([1, 2], 4), ([3, 0], 3), ([-1, 5], 4), ([4], 4), ([2**62, 2**62, 2**62, 2**62 + 4], 4)],
)
def test_what_is_not_a_law_is_refused(weights: list[int], total: int) -> None:
    with pytest.raises(ValueError, match=r"weight|total|add up"):
        Pmf(Group((len(weights) if len(weights) > 1 else 2,)), np.array(weights), total)


@pytest.mark.parametrize(
    ("definition", "epsilon", "delta"),
    [
        (Definition.PURE, Fraction(0), Fraction(0)),
        (Definition.PURE, Fraction(101), Fraction(0)),
        (Definition.PURE, Fraction(1), Fraction(1, 10)),
        (Definition.APPROXIMATE, Fraction(1), Fraction(1)),
        (Definition.APPROXIMATE, Fraction(1), Fraction(-1)),
    ],
)
def test_a_promise_out_of_range_is_refused(
    definition: Definition, epsilon: Fraction, delta: Fraction
) -> None:
    with pytest.raises(ValueError, match=r"must be|has delta 0"):
        Guarantee(definition, epsilon, delta)
