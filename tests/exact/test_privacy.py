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
from release.exact.privacy import MAX_WORK, Definition, Guarantee, deltas, deltas_at_ratio, keeps
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


TINY = Fraction(1, 10**60)
LEAST = Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("definition", "epsilon", "delta"),
    [
        (Definition.PURE, LEAST, Fraction(0)),
        (Definition.PURE, Fraction(100), Fraction(0)),
        (Definition.PROBABILISTIC, Fraction(1), 1 - TINY),
        (Definition.APPROXIMATE, Fraction(1), Fraction(0)),
        # The δ of a law for ε = 0 may be 2·10^-30 below what was asked for.
        (Definition.APPROXIMATE, Fraction(0), LEAST - Fraction(2, 10**30)),
    ],
)
def test_a_promise_at_the_edge_of_its_range_is_taken(
    definition: Definition, epsilon: Fraction, delta: Fraction
) -> None:
    assert Guarantee(definition, epsilon, delta).delta == delta


@pytest.mark.parametrize(
    ("definition", "epsilon", "delta", "says"),
    [
        (Definition.PURE, LEAST - TINY, Fraction(0), r"at least 10\^-12"),
        (Definition.PURE, Fraction(-1), Fraction(0), r"at least 10\^-12"),
        (Definition.PURE, 100 + TINY, Fraction(0), "at most 100"),
        (Definition.PURE, Fraction(1), TINY, "a pure guarantee has delta 0"),
        (Definition.PROBABILISTIC, Fraction(1), Fraction(1), "below 1"),
        (Definition.PROBABILISTIC, Fraction(1), -TINY, "at least 0"),
        (Definition.PROBABILISTIC, Fraction(0), Fraction(1, 2), "with an approximate guarantee"),
        (Definition.APPROXIMATE, Fraction(0), Fraction(0), "with an approximate guarantee"),
        (
            Definition.APPROXIMATE,
            Fraction(0),
            LEAST - Fraction(2, 10**30) - TINY,
            "with an approximate guarantee",
        ),
    ],
)
def test_a_promise_just_outside_its_range_is_refused(
    definition: Definition, epsilon: Fraction, delta: Fraction, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        Guarantee(definition, epsilon, delta)


def test_a_guarantee_is_satisfied_under_its_own_definition() -> None:
    """3/4 against 1/4 breaks a ratio of 2: the tail is 3/4, the excess 3/4 - 2/4."""
    law = Pmf.of(Group((2,)), [3, 1])
    sensitivity = Sensitivity.of(law.group, [(1,)])
    found = deltas_at_ratio(law, sensitivity, Fraction(2))
    assert (found.probabilistic, found.approximate) == (Fraction(3, 4), Fraction(1, 4))
    for definition, delta in (
        (Definition.PROBABILISTIC, Fraction(3, 4)),
        (Definition.APPROXIMATE, Fraction(1, 4)),
        (Definition.PURE, Fraction(0)),
    ):
        guarantee = Guarantee(definition, Fraction(1), delta)
        pure = definition is Definition.PURE
        assert found.under(definition) == (Fraction(3, 4) if pure else delta)
        assert keeps(law, sensitivity, guarantee, Fraction(2)) is not pure
        assert keeps(law, sensitivity, guarantee, Fraction(3))
    less = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 4) - TINY)
    assert not keeps(law, sensitivity, less, Fraction(2))


def test_a_law_is_not_checked_against_the_differences_of_another_group() -> None:
    law = Pmf.of(Group((4,)), [1, 1, 1, 1])
    with pytest.raises(ValueError, match="different groups"):
        deltas_at_ratio(law, Sensitivity.of(Group((2, 2)), [(1, 0)]), Fraction(2))


def test_the_work_of_a_verifier_is_bounded_as_the_format_says() -> None:
    assert MAX_WORK == 1_000_000_000


def test_a_strict_excess_violates_and_equality_does_not() -> None:
    law = Pmf.of(Group((3,)), [2, 1, 1])
    sensitivity = Sensitivity.of(law.group, [(1,)])
    assert deltas_at_ratio(law, sensitivity, Fraction(2)).probabilistic == 0
    below = deltas_at_ratio(law, sensitivity, 2 - TINY)
    assert below.probabilistic == Fraction(1, 2)
    assert below.approximate == TINY / 4
