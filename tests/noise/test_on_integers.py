"""Designed noise on the integers: pure to the last bit, and ends treated as well as can be."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.channel import answer_costs
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import RATIO_ONE, IntegerNoise, Tail
from release.exact.integers.staircase import staircase
from release.exact.losses import COST_POWERS, LossName, named_loss
from release.exact.mechanism import BoundOf
from release.exact.numbers import exp_below_any_verifier, exp_bounds
from release.exact.privacy import Definition, Deltas, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import GAIN, Asked
from release.noise.solvers.answers.laws import design_channel
from release.noise.solvers.answers.problem import ChannelProblem
from release.noise.solvers.approximate import _stretched, bounded_noise
from release.noise.solvers.on_integers import STRETCHED, design_integer, runs_of, tables, with_ends
from tests.conftest import PROJECT
from tests.exact.integers.test_mechanism import LOSSES, close, exact_rows, line, published_by_force
from tests.exact.integers.test_noise import deltas_of, second

NOTHING = Deltas(Fraction(0), Fraction(0))

EPSILONS = [Fraction(text) for text in ("1/1000000000", "1/1000000", "0.01", "1/3", "1", "12")]
EPSILONS += [Fraction(40), Fraction(100)]
STEPS = [(1,), (1, 2), (1, 2, 3, 4, 5), tuple(range(1, 41)), (3,), (2, 4), (2, 5)]


def asked(
    size: int, steps: tuple[int, ...], epsilon: Fraction, name: LossName, delta: str = "0"
) -> Asked:
    domain = line(size)
    definition = Definition.APPROXIMATE if Fraction(delta) else Definition.PURE
    return Asked(
        domain,
        Sensitivity.on_line(size, steps),
        Guarantee(definition, epsilon, Fraction(delta)),
        named_loss(name, Topology.ORDERED, size),
        name,
    )


LOST = [(steps, EPSILONS[0]) for steps in STEPS if max(steps) >= 5]
"""Where rounding takes more from the top than ε allows; a design is then refused."""


@pytest.mark.parametrize(("steps", "epsilon"), LOST)
def test_an_epsilon_that_62_bits_cannot_tell_from_0_is_refused(
    steps: tuple[int, ...], epsilon: Fraction
) -> None:
    with pytest.raises(ValueError, match="too small"):
        staircase(steps, epsilon, 2)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [(s, e) for s in STEPS for e in EPSILONS if (s, e) not in LOST],
)
def test_the_noise_is_pure_for_any_verifier(
    steps: tuple[int, ...], epsilon: Fraction, power: int
) -> None:
    found, ratio = staircase(steps, epsilon, power), exp_below_any_verifier(epsilon)
    assert found.noise.is_symmetric
    assert found.noise.deltas(steps, ratio) == NOTHING
    if max(steps) <= 5:
        assert deltas_of(second(found.noise), steps, ratio) == NOTHING
    # No more is given away than rounding to 2^-62 costs.
    assert found.lower_bound <= found.loss == found.noise.moment(power)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("steps", [(1,), (1, 2, 3), tuple(range(1, 101)), (3,)])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "12"])
def test_the_noise_reaches_its_bound(steps: tuple[int, ...], epsilon: str, power: int) -> None:
    found = staircase(steps, Fraction(epsilon), power)
    assert found.lower_bound > 0
    assert found.loss - found.lower_bound <= found.loss / 10**9


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9 + 1), Fraction(101), Fraction(0)])
def test_an_epsilon_out_of_reach_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        staircase((1,), epsilon, 1)


@pytest.mark.parametrize("power", [0])
def test_the_rounding_of_many_integers_costs_no_guarantee(power: int) -> None:
    steps, epsilon = tuple(range(1, 10**4 + 1)), Fraction(1, 10**7)
    found = staircase(steps, epsilon, power)
    # The largest step first: a violation there is found at once.
    ratio = exp_below_any_verifier(epsilon)
    assert found.noise.is_unimodal()
    assert found.noise.deltas(steps[-1:], ratio) == NOTHING


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 17, 30])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_one_apart_nothing_loses_less(size: int, epsilon: str, power: int) -> None:
    """The optimum over all channels, by the remapped geometric channel in exact integers."""
    guarantee = Guarantee(Definition.PURE, Fraction(epsilon), Fraction(0))
    prior = (Fraction(1, size),) * size
    best = design_channel(ChannelProblem((1,), guarantee, answer_costs(power, size), prior))
    noise = staircase((1,), Fraction(epsilon), power).noise
    mechanism = with_ends(noise, size, power)
    found = mechanism.expected_loss(named_loss(LOSSES[power], Topology.ORDERED, size), line(size))
    least = float(best.objective)
    assert float(found) >= least - 1e-9
    # Tables are left out where they gain less than a thousandth.
    if mechanism.low or mechanism.high:
        assert float(found) == pytest.approx(least, abs=1e-9)
    else:
        assert float(found) <= least / (1 - float(GAIN)) + 1e-9


questions = st.tuples(
    st.integers(2, 40),
    st.sampled_from([(1,), (1, 2), (1, 2, 3), (3,), (2, 4), (1, 4)]),
    st.sampled_from([Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(6)]),
    st.sampled_from(LOSSES),
)


@settings(max_examples=20)
@given(questions)
def test_the_ends_never_lose_more_than_clamping(
    question: tuple[int, tuple[int, ...], Fraction, LossName],
) -> None:
    size, steps, epsilon, name = question
    power = COST_POWERS[name]
    noise, loss = staircase(steps, epsilon, power).noise, named_loss(name, Topology.ORDERED, size)
    clamped = IntegerMechanism(noise, size).expected_loss(loss, line(size))
    treated = with_ends(noise, size, power)
    assert treated.expected_loss(loss, line(size)) <= clamped
    exact, least = against_the_best(treated, power)
    assert float(treated.expected_loss(loss, line(size))) == close(exact / size)
    # Tables of wide noise are coarse: see below.
    if float(noise.moment(max(power, 1))) ** (1 / max(power, 1)) < 100:
        assert exact <= least * (1 + Fraction(11, 10_000)) + Fraction(1, 10**9)


def against_the_best(mechanism: IntegerMechanism, power: int) -> tuple[Fraction, Fraction]:
    """The loss, exactly, and with the best answer for each outcome; sums over true answers."""
    size = mechanism.size
    rows = exact_rows(IntegerMechanism(mechanism.noise, size))
    published, exact, least = published_by_force(mechanism), Fraction(0), Fraction(0)
    costs = answer_costs(power, size).tolist()
    for outcome in range(size):
        each = [
            sum((row[outcome] * costs[q][answer] for q, row in enumerate(rows)), Fraction(0))
            for answer in range(size)
        ]
        exact, least = exact + each[published[outcome]], least + min(each)
    return exact, least


@pytest.mark.parametrize("size", [3, 6])
def test_few_answers_under_wide_noise_are_treated_at_the_ends(size: int) -> None:
    noise = staircase((1, 2), Fraction(1, 200), 2).noise
    exact, least = against_the_best(with_ends(noise, size, 2), 2)
    assert exact <= least * (1 + Fraction(11, 10_000))


@pytest.mark.parametrize("power", [1, 2])
def test_noise_wider_than_what_is_listed_has_ends_that_stay_in_their_half(power: int) -> None:
    """The least table would publish the middle of 2^40 answers, of which 2^22 are looked at."""
    wide = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE - 2))
    mechanism = with_ends(wide, 2**40, power)
    ((outcomes, shift),) = mechanism.low
    assert outcomes == 1
    assert 2**20 < shift < 2**21
    assert mechanism.high == ((1, -shift),)


@settings(max_examples=40)
@given(questions, st.integers(0, 6))
def test_designed_mechanisms_are_as_they_say(
    question: tuple[int, tuple[int, ...], Fraction, LossName], radius: int
) -> None:
    size, steps, epsilon, name = question
    steps = tuple(step for step in steps if step < size) or (1,)
    asked_for = asked(size, steps, epsilon, name)
    design = design_integer(asked_for)
    mechanism, rows = design.mechanism, exact_rows(design.mechanism)
    ratio = exp_bounds(epsilon)[0]
    for step in steps:
        for low in range(size - step):
            for here, there in zip(rows[low], rows[low + step], strict=True):
                assert here <= ratio * there
                assert there <= ratio * here
    assert mechanism.deltas(asked_for.sensitivity, epsilon) == NOTHING
    within = sum(row[o] for q, row in enumerate(rows) for o in range(size) if abs(o - q) <= radius)
    assert float(mechanism.chance_within(line(size), radius)) == close(Fraction(within) / size)
    assert design.bound_of is BoundOf.INTEGERS
    assert design.noise_loss == mechanism.noise.moment(COST_POWERS[name])
    assert design.objective == mechanism.objective(asked_for.loss, line(size))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [3, 20, 300])
@pytest.mark.parametrize("steps", [(1,), (1, 2)])
def test_a_weaker_promise_never_loses_more(
    size: int, steps: tuple[int, ...], name: LossName
) -> None:
    losses, bounds = [], []
    for epsilon in ("0.01", "0.1", "0.3", "0.9", "1", "1.1", "2", "4", "12", "40"):
        design = design_integer(asked(size, steps, Fraction(epsilon), name))
        losses.append(float(design.noise_loss or 0))
        bounds.append(float(design.lower_bound))
    assert losses == sorted(losses, reverse=True)
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [3, 20, 300])
def test_one_apart_a_weaker_promise_never_loses_more_on_answers(size: int, name: LossName) -> None:
    losses = []
    for epsilon in ("0.01", "0.1", "0.3", "0.9", "1", "1.1", "2", "4", "12", "40"):
        losses.append(float(design_integer(asked(size, (1,), Fraction(epsilon), name)).objective))
    for smaller, larger in zip(losses[1:], losses, strict=False):
        # Tables are left out where they gain less than a thousandth.
        assert smaller <= larger * (1 + 1.01 * float(GAIN))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("delta", ["0.000001", "0.01", "0.3"])
@pytest.mark.parametrize("steps", [(1,), (1, 2)])
def test_an_approximate_guarantee_has_a_bound_that_its_noise_attains(
    steps: tuple[int, ...], delta: str, name: LossName
) -> None:
    design = design_integer(asked(20, steps, Fraction(1), name, delta))
    pure = design_integer(asked(20, steps, Fraction(1), name))
    kept = design.mechanism.deltas(design.sensitivity, Fraction(1)).approximate
    assert 0 < kept <= Fraction(delta)
    assert design.is_within(Fraction(1, 10**8))
    assert 0 < design.lower_bound <= design.bounded_loss < pure.bounded_loss
    # The mixture with the truth can always be had, so the optimum is no larger.
    assert design.lower_bound <= (1 - Fraction(delta)) * pure.bounded_loss


@pytest.mark.parametrize(("most", "delta"), [(40, "0.01"), (41, "0.05"), (1000, "0.01")])
@pytest.mark.parametrize("name", [LossName.ABSOLUTE, LossName.SQUARED])
def test_far_neighbors_gain_from_delta(most: int, delta: str, name: LossName) -> None:
    """Too far apart for a program: the noise of near ones is stretched, and gains as much."""
    epsilon, steps = Fraction(1, 10), tuple(range(1, most + 1))
    design = design_integer(asked(5000, steps, epsilon, name, delta))
    pure = design_integer(asked(5000, steps, epsilon, name))
    assert design.method == STRETCHED
    near = design_integer(asked(5000, (1,), epsilon, name, delta))
    near_pure = design_integer(asked(5000, (1,), epsilon, name))
    gained = float(design.bounded_loss / pure.bounded_loss)
    assert gained == pytest.approx(float(near.bounded_loss / near_pure.bounded_loss), rel=0.08)
    noise, ratio = design.mechanism.noise, exp_below_any_verifier(epsilon)
    kept = noise.deltas(steps, ratio).approximate
    assert 0.99 * float(delta) < kept <= Fraction(delta)
    if most < 100:
        assert deltas_of(second(noise), steps, ratio).approximate == kept


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
def test_stretched_noise_is_the_sum_it_stands_for(size: int) -> None:
    """s·K + V by convolution; V is uniform on s integers, for even s an average of two places."""
    noise = bounded_noise((1,), Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 100)), 2)
    assert noise is not None
    made = _stretched(noise.noise, size)
    place = Counter({v: Fraction(1, size) for v in range(-((size - 1) // 2), size // 2 + 1)})
    places = [place, Counter({-v: share for v, share in place.items()})]
    for eta in range(noise.noise.low * size - size, 1):
        mass = Fraction(0)
        for k in range(noise.noise.low, noise.noise.high + 1):
            mass += noise.noise.mass(k) * sum(each[eta - k * size] for each in places) / 2
        assert float(made.mass(eta)) == pytest.approx(float(mass), abs=1e-16)
        assert made.mass(eta) == made.mass(-eta)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30))
def test_tables_hold_all_shifts(values: list[int]) -> None:
    shifts = np.array(values, dtype=np.int64)
    low, high = tables(shifts)
    left = [shift for length, shift in low for _ in range(length)]
    right = [shift for length, shift in high for _ in range(length)]
    assert len(left) + len(right) <= len(values)
    assert left + [0] * (len(values) - len(left) - len(right)) + right == values
    flat = [value for length, value in runs_of(shifts) for _ in range(length)]
    assert flat == values


def test_a_domain_is_a_line() -> None:
    assert line(4) == AnswerDomain(Topology.ORDERED, (0, 1, 2, 3))


SPREAD = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (4, 4))
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from release.exact.integers.staircase import staircase
steps = tuple(range(2, 801, 2))
assert staircase(steps, Fraction(1), 1).noise.deltas(steps, Fraction(5, 2)).approximate > 0
"""


def test_noise_for_many_even_distances_is_proved_at_once() -> None:
    """It is noise for the distances 1 to 400, and there the largest has the largest δ."""
    even = staircase((2, 4, 6), Fraction(1), 1).noise
    dense = staircase((1, 2, 3), Fraction(1), 1).noise
    assert all(even.mass(2 * k) == dense.mass(k) for k in range(30))
    assert even.deltas((2, 4, 6), Fraction(2)) == dense.deltas((1, 2, 3), Fraction(2))
    ran = subprocess.run([sys.executable, "-c", SPREAD], check=False, cwd=PROJECT)
    assert ran.returncode == 0
