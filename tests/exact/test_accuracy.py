"""How near published answers are, against a sum over every true and every published answer."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.accuracy import (
    IN_95_OF_100,
    error_at_ends,
    far_error,
    likely_answers,
    loss_of_guess,
    losses_where,
    radius_of,
    shortest_run,
)
from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import RATIO_ONE, IntegerNoise, Tail
from release.exact.integers.staircase import staircase
from release.exact.losses import COST_POWERS, LossName, joint_loss, named_loss
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.noise.solvers.on_integers import with_ends

LINE, CIRCLE, NAMES = Topology.ORDERED, Topology.CYCLIC, Topology.NOMINAL


def domain(topology: Topology, size: int) -> AnswerDomain:
    if topology is NAMES:
        return AnswerDomain(topology, tuple(f"label {code}" for code in range(size)))
    return AnswerDomain(topology, tuple(range(size)))


def distance(topology: Topology, size: int, true: int, published: int) -> int:
    if topology is NAMES:
        return int(true != published)
    apart = abs(true - published)
    return min(apart, size - apart) if topology is CIRCLE else apart


def modular(moduli: tuple[int, ...], weights: list[int]) -> Modular:
    return Modular(Pmf.of(Group(moduli), weights))


def row(draw: st.DrawFn, size: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, 64), min_size=size - 1, max_size=size - 1)))
    return [b - a for a, b in itertools.pairwise([0, *cuts, 64])]


@st.composite
def noises(draw: st.DrawFn, topologies: tuple[Topology, ...]) -> tuple[Mechanism, AnswerDomain]:
    """Modular noise on any domain, or a channel, which is for answers in order."""
    topology, size = draw(st.sampled_from(topologies)), draw(st.integers(2, 8))
    if topology is LINE and draw(st.booleans()):
        return Channel.of([row(draw, size) for _ in range(size)]), domain(LINE, size)
    return modular((size,), row(draw, size)), domain(topology, size)


def chance(noise: Mechanism, true: int, published: int) -> Fraction:
    if isinstance(noise, Channel):
        return Fraction(int(noise.rows[true, published]), noise.total)
    assert isinstance(noise, Modular)
    return noise.pmf.mass((published - true) % noise.answers)


@given(noises((LINE, CIRCLE, NAMES)), st.integers(0, 8))
def test_chances_of_a_near_answer(case: tuple[Mechanism, AnswerDomain], radius: int) -> None:
    noise, answers = case
    codes = range(answers.size)
    near = sum(
        chance(noise, true, published)
        for true, published in itertools.product(codes, codes)
        if distance(answers.topology, answers.size, true, published) <= radius
    )
    assert noise.chance_within(answers, radius) == near / answers.size


@given(
    noises((LINE, CIRCLE)),
    st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(95, 100), Fraction(1)]),
)
def test_the_radius_is_the_least_that_holds_the_share(
    case: tuple[Mechanism, AnswerDomain], share: Fraction
) -> None:
    noise, answers = case
    radius = radius_of(noise, answers, share)
    assert radius is not None
    assert noise.chance_within(answers, radius) >= share
    assert radius == 0 or noise.chance_within(answers, radius - 1) < share


def test_names_have_no_radius_and_no_ends() -> None:
    noise = modular((4,), [1, 1, 1, 1])
    assert radius_of(noise, domain(NAMES, 4)) is None
    assert error_at_ends(noise, domain(NAMES, 4)) is None
    assert error_at_ends(noise, domain(CIRCLE, 4)) is None
    joint = JointDomain((domain(LINE, 2), domain(NAMES, 2)))
    assert radius_of(modular((2, 2), [1, 1, 1, 1]), joint) is None


@pytest.mark.parametrize(("missing", "radius"), [(0, 0), (1, 1)])
def test_the_usual_share_is_95_of_100(missing: int, radius: int) -> None:
    """One of five answers is right in three of four cases, less ``missing``; the others always."""
    total = 2**20
    rows = np.diag([3 * total // 4 - missing, *[total] * 4])
    rows[0, 1] = total - rows[0, 0]
    assert radius_of(Channel(rows, total), domain(LINE, 5)) == radius


@pytest.mark.parametrize("sizes", [(2, 7), (7, 2)])
def test_the_radius_of_joint_answers_reaches_over_the_largest_part(sizes: tuple[int, int]) -> None:
    """All noise moves both parts from one end to the other."""
    weights = [0] * (sizes[0] * sizes[1])
    weights[-1] = 4
    noise = modular(sizes, weights)
    answers = JointDomain(tuple(domain(LINE, size) for size in sizes))
    assert radius_of(noise, answers, Fraction(1)) == 6


@given(noises((LINE,)))
def test_errors_at_the_ends_are_those_of_the_lowest_and_highest_answer(
    case: tuple[Mechanism, AnswerDomain],
) -> None:
    noise, answers = case
    expected = tuple(
        sum((chance(noise, true, code) * abs(code - true) for code in range(answers.size)), 0)
        for true in (0, answers.size - 1)
    )
    assert error_at_ends(noise, answers) == expected


@given(st.lists(st.sampled_from([LINE, CIRCLE, NAMES]), min_size=1, max_size=2), st.data())
def test_errors_at_the_ends_of_joint_answers_add_up(
    topologies: list[Topology], data: st.DataObject
) -> None:
    parts = (domain(LINE, 3), *(domain(topology, 5) for topology in topologies))
    sizes = tuple(part.size for part in parts)
    weights = [data.draw(st.integers(0, 3)) for _ in range(int(np.prod(sizes)))]
    missing = 2**9 - sum(weights)
    noise = modular(sizes, [weights[0] + missing, *weights[1:]])
    expected = [Fraction(0), Fraction(0)]
    for element, moves in enumerate(itertools.product(*map(range, sizes))):
        for part, move in zip(parts, moves, strict=True):
            for end, true in enumerate((0, part.size - 1)):
                apart = distance(part.topology, part.size, true, (true + move) % part.size)
                expected[end] += noise.pmf.mass(element) * apart
    assert error_at_ends(noise, JointDomain(parts)) == tuple(expected)


@given(
    noises((LINE, CIRCLE)),
    st.integers(0, 7),
    st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(95, 100)]),
)
def test_the_likely_answers_are_the_shortest_run_that_holds_the_share(
    case: tuple[Mechanism, AnswerDomain], code: int, share: Fraction
) -> None:
    noise, answers = case
    size = answers.size
    published = code % size
    column = [chance(noise, true, published) for true in range(size)]
    expected = None
    for length in range(size - 1, 0, -1):
        starts = range(size if answers.topology is CIRCLE else size - length + 1)
        for start in reversed(starts):
            run = [(start + step) % size for step in range(length)]
            if sum(column[true] for true in run) >= share * sum(column):
                expected = (run[0], run[-1])
    if any(column):
        likely = run_of(noise, answers, published, share)
        assert likely == (expected or (0, size - 1))


def run_of(
    noise: Mechanism, answers: AnswerDomain, code: int, share: Fraction = IN_95_OF_100
) -> tuple[int, int]:
    likely = likely_answers(noise, answers, np.array([code]), share)
    assert likely is not None
    return int(likely[0].first[0]), int(likely[0].last[0])


def test_a_run_of_likely_answers_may_pass_the_end_of_a_circle() -> None:
    noise = modular((8,), [16, 8, 0, 0, 0, 0, 0, 8])
    assert run_of(noise, domain(CIRCLE, 8), 0) == (7, 1)
    # A share that is reached exactly is reached.
    assert run_of(noise, domain(CIRCLE, 8), 0, Fraction(1, 2)) == (0, 0)
    assert run_of(noise, domain(CIRCLE, 8), 4) == (3, 5)
    assert run_of(modular((8,), [4] * 8), domain(CIRCLE, 8), 4) == (0, 7)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_likely_answers_of_a_wide_domain_are_those_of_its_whole_column(
    most: int, epsilon: str, power: int
) -> None:
    """Near both ends, in the middle, and where the ends stop mattering."""
    noise = staircase(range(1, most + 1), Fraction(epsilon), power).noise
    size = 3000
    mechanism = with_ends(noise, size, power)
    narrow = mechanism.narrowed(np.array([0]))[0].answers
    assert narrow < size or epsilon == "1/4"
    half = narrow // 2
    near = [*range(0, 40), *range(half - 3, half + 4)]
    codes = np.array([*near, size // 2, *(size - 1 - code for code in near)])
    codes = codes[np.isin(codes, mechanism.published(np.arange(size)))]
    likely = likely_answers(mechanism, domain(LINE, size), codes)
    assert likely is not None
    runs, chances = [], []
    for code in codes.tolist():
        likelihood = mechanism.likelihood_of(code)
        runs.append(shortest_run(likelihood, IN_95_OF_100, LINE))
        chances.append(likelihood[code] / likelihood.sum())
    assert list(zip(likely[0].first.tolist(), likely[0].last.tolist(), strict=True)) == runs
    assert likely[0].chance == pytest.approx(chances, rel=1e-9)


def test_likely_answers_are_not_looked_for_where_noise_is_as_wide_as_the_domain() -> None:
    mechanism = IntegerMechanism(staircase((1,), Fraction(1, 10**4), 1).noise, 10**6)
    assert likely_answers(mechanism, domain(LINE, 10**6), np.arange(9)) is None


@pytest.mark.parametrize(("size", "is_looked_for"), [(2000, True), (2001, False)])
def test_runs_are_looked_for_up_to_four_million_pairs_of_answers(
    size: int, is_looked_for: bool
) -> None:
    exact = Channel(2 * np.eye(size, dtype=np.int64), 2)
    likely = likely_answers(exact, domain(LINE, size), np.arange(size))
    assert (likely is not None) == is_looked_for
    if likely is not None:
        assert (likely[0].first == np.arange(size)).all()
        assert (likely[0].last == np.arange(size)).all()


def test_all_integers_have_no_ends_at_which_errors_are_less() -> None:
    noise = staircase((1,), Fraction(1), 1).noise
    absolute = named_loss(LossName.ABSOLUTE, LINE, 2)
    everywhere = pytest.approx(float(noise.moment(1)), rel=1e-9)
    integers = AnswerDomain(LINE, range(2**53 - 1))
    wide = IntegerMechanism(noise, integers.size)
    ends = error_at_ends(wide, integers)
    losses = losses_where(wide, integers, absolute)
    assert ends is not None
    assert losses is not None
    assert list(map(float, [*ends, *losses])) == [everywhere] * 5
    narrow = error_at_ends(IntegerMechanism(noise, 101), domain(LINE, 101))
    assert narrow is not None
    assert float(narrow[0]) == pytest.approx(float(noise.moment(1)) / 2, rel=1e-9)


@pytest.mark.parametrize(("size", "share"), [(2**52 - 1, 2), (2**52, 1)])
def test_from_two_to_the_52_answers_on_the_ends_count_as_the_middle(size: int, share: int) -> None:
    """At an end half of all noise is clamped away, and in the middle none."""
    noise = staircase((1,), Fraction(1), 1).noise
    errors = error_at_ends(IntegerMechanism(noise, size), AnswerDomain(LINE, range(size)))
    assert errors is not None
    assert list(map(float, errors)) == [pytest.approx(float(noise.moment(1)) / share, rel=1e-9)] * 2


def test_the_worst_true_answer_may_lie_between_the_ends() -> None:
    absolute = named_loss(LossName.ABSOLUTE, LINE, 3)
    middle = Channel.of([[6, 1, 1], [3, 2, 3], [0, 2, 6]])
    found = losses_where(middle, domain(LINE, 3), absolute)
    assert found == (Fraction(3, 8), Fraction(2, 8), Fraction(6, 8))
    for rows, worst in (
        ([[2, 2, 4], [1, 6, 1], [0, 2, 6]], Fraction(10, 8)),
        ([[6, 2, 0], [1, 6, 1], [4, 2, 2]], Fraction(10, 8)),
    ):
        found = losses_where(Channel.of(rows), domain(LINE, 3), absolute)
        assert found is not None
        assert found[2] == max(found) == worst
    around = modular((3,), [2, 1, 1])
    cyclic = named_loss(LossName.ABSOLUTE, CIRCLE, 3)
    assert losses_where(around, domain(CIRCLE, 3), cyclic) is None
    names = named_loss(LossName.ERROR_RATE, NAMES, 3)
    assert losses_where(around, domain(NAMES, 3), names) is None


def test_the_losses_of_joint_answers_add_up_at_each_true_answer() -> None:
    parts = (domain(LINE, 2), domain(LINE, 2))
    noise = modular((2, 2), [5, 1, 1, 1])
    loss = joint_loss(LossName.ABSOLUTE, parts)
    each = Fraction(1 + 1 + 2, 8)
    assert losses_where(noise, JointDomain(parts), loss) == (each, each, each)


def near(size: int, total: int, chances: dict[int, int]) -> list[int]:
    """The weights of symmetric noise on a circle; the rest of the total is no noise."""
    weights = [0] * size
    for step, weight in chances.items():
        weights[step] = weights[-step] = weight
    weights[0] = total - sum(weights)
    return weights


@pytest.mark.parametrize(
    ("topology", "mechanism", "expected"),
    [
        # Ten standard deviations are 0.88 codes, and no error is less than one.
        (CIRCLE, modular((40,), near(40, 256, {1: 1})), 1),
        # They are 3.7 codes.
        (CIRCLE, modular((40,), near(40, 256, {1: 4, 3: 1, 5: 0})), 3),
        # They are 2.93 codes, and a tenth more would be 3.2.
        (CIRCLE, modular((40,), near(40, 256, {1: 2, 3: 1})), 2),
        # They are more than a tenth of the circle.
        (CIRCLE, modular((40,), near(40, 256, {1: 20, 5: 30, 12: 10})), 4),
        # On a line noise that wraps round is a large error.
        (LINE, modular((30,), near(30, 1024, {1: 4, 2: 1})), 3),
        (LINE, Channel.of([[99 * (a == b) + 1 for a in range(29)] for b in range(29)]), 2),
    ],
)
def test_a_large_error_is_ten_deviations_or_a_tenth_of_the_domain(
    topology: Topology, mechanism: Mechanism, expected: int
) -> None:
    size = mechanism.answers
    squares = beyond = 0
    for true in range(size):
        for published, weight in enumerate(mechanism.row(true).tolist()):
            apart = distance(topology, size, true, published)
            squares += weight * apart**2
            beyond += weight * (apart > expected)
    deviation = (squares / (size * mechanism.total)) ** 0.5
    assert max(1, int(min(size / 10, 10 * deviation))) == expected
    found = far_error(mechanism, domain(topology, size))
    assert found == (expected, Fraction(beyond, size * mechanism.total))
    assert far_error(mechanism, domain(NAMES, size)) is None


def test_a_large_error_on_a_wide_line_needs_no_table_of_costs() -> None:
    """Noise of 1/2 at 0 and 1/8, 1/16 … on each side has a variance of 3."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE // 2))
    size = 2**53 - 1
    found = far_error(IntegerMechanism(noise, size), AnswerDomain(LINE, range(size)))
    assert found is not None
    # Ten standard deviations are 17.3.
    assert found[0] == 17
    assert float(found[1]) == pytest.approx(2**-18, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "topology", "size"),
    [
        (LossName.ABSOLUTE, LINE, 10),
        (LossName.ABSOLUTE, CIRCLE, 8),
        (LossName.SQUARED, LINE, 9),
        (LossName.SQUARED, CIRCLE, 7),
        (LossName.ERROR_RATE, LINE, 5),
        (LossName.ERROR_RATE, CIRCLE, 5),
        (LossName.ERROR_RATE, NAMES, 5),
        (LossName.ABSOLUTE, NAMES, 4),
        (LossName.SQUARED, NAMES, 4),
    ],
)
def test_a_guess_loses_what_the_best_constant_answer_loses(
    loss: LossName, topology: Topology, size: int
) -> None:
    least = float("inf")
    for guess in range(size):
        total = 0
        for true in range(size):
            apart = distance(topology, size, true, guess)
            total += min(apart, 1) if loss is LossName.ERROR_RATE else apart ** COST_POWERS[loss]
        least = min(least, total / size)
    assert loss_of_guess(loss, domain(topology, size)) == pytest.approx(least, rel=1e-12)
    assert loss_of_guess(LossName.NOISE_SQUARED, domain(topology, size)) is None
