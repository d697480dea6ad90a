"""What a family of mechanisms computes faster is what the base class computes from the rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.losses import (
    Loss,
    LossName,
    joint_loss,
    named_loss,
    prior_loss,
    table_loss,
    worst_case,
)
from release.exact.mechanism import Domain, Mechanism
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity

RATIOS = st.sampled_from(
    [Fraction(1), Fraction(3, 2), exp_bounds(Fraction(1))[0], exp_bounds(Fraction(5))[0]]
)
FEW = settings(max_examples=60, deadline=None)


class ByRows(Mechanism):
    """A mechanism that overrides nothing: all follows from the rows."""

    family = "rows"

    def __init__(self, mechanism: Mechanism) -> None:
        self.total = mechanism.total
        self.rows = [mechanism.row(code) for code in range(mechanism.answers)]

    @property
    def answers(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def row(self, code: int) -> NDArray[Any]:
        """The row as it was written out."""
        return self.rows[code]


def plain_domain(topology: Topology, size: int) -> AnswerDomain:
    if topology is Topology.NOMINAL:
        return AnswerDomain(topology, tuple(map(str, range(size))))
    return AnswerDomain(topology, tuple(range(size)))


PLAIN = st.builds(plain_domain, st.sampled_from(Topology), st.integers(2, 7))
SMALL_PARTS = st.builds(plain_domain, st.sampled_from(Topology), st.integers(2, 4))
JOINT = st.builds(JointDomain, st.tuples(SMALL_PARTS, SMALL_PARTS))
DOMAINS = st.one_of(PLAIN, JOINT)
LINES = st.builds(plain_domain, st.just(Topology.ORDERED), st.integers(2, 7))


@st.composite
def weights(draw: st.DrawFn, size: int, bits: int) -> list[int]:
    """Integers that add up to 2^bits, with zeros and equal ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, 2**bits), min_size=size - 1, max_size=size - 1)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, 2**bits], strict=True)]


@st.composite
def modulars(draw: st.DrawFn, domain: Domain) -> Modular:
    bits = draw(st.sampled_from([3, 20, 62, 100]))
    return Modular(Pmf.of(domain.group, draw(weights(domain.size, bits))))


@st.composite
def channels(draw: st.DrawFn, domain: Domain) -> Channel:
    bits = draw(st.sampled_from([3, 20, 62, 100]))
    rows = [draw(weights(domain.size, bits)) for _ in range(domain.size)]
    if draw(st.booleans()):
        # Two equal rows: a channel that tells these answers apart nowhere.
        rows[-1] = rows[0]
    return Channel.of(rows)


@st.composite
def mechanisms(draw: st.DrawFn) -> tuple[Domain, Modular | Channel]:
    domain = draw(DOMAINS)
    if draw(st.booleans()):
        return domain, draw(modulars(domain))
    return domain, draw(channels(domain))


@st.composite
def sensitivities(draw: st.DrawFn, domain: Domain) -> Sensitivity:
    if domain.is_line:
        steps = draw(st.lists(st.integers(1, domain.size - 1), min_size=1, max_size=3))
        return Sensitivity.on_line(domain.size, steps)
    elements = draw(st.lists(st.integers(1, domain.size - 1), min_size=1, max_size=3))
    directed = draw(st.booleans())
    return Sensitivity.of(domain.group, map(domain.group.shift, elements), directed=directed)


def losses(domain: Domain) -> list[Loss]:
    """Every named loss on the domain, and a table of costs."""
    table = table_loss(tuple(Fraction(element, 3) for element in range(domain.size)))
    return [*(joint_loss(name, domain.parts) for name in LossName), table]


@FEW
@given(mechanisms(), st.data(), RATIOS)
def test_deltas_are_those_of_the_rows(
    case: tuple[Domain, Mechanism], data: st.DataObject, ratio: Fraction
) -> None:
    domain, mechanism = case
    sensitivity = data.draw(sensitivities(domain))
    deltas = mechanism.deltas_at_ratio(sensitivity, ratio)
    assert deltas == ByRows(mechanism).deltas_at_ratio(sensitivity, ratio)
    # Beside the base class, the definitions themselves in fractions.
    probabilistic = approximate = Fraction(0)
    for true, neighbor in sensitivity.pairs(domain.size):
        rows = mechanism.row(true).tolist(), mechanism.row(neighbor).tolist()
        here, there = ([Fraction(int(w), mechanism.total) for w in row] for row in rows)
        pairs = list(zip(here, there, strict=True))
        probabilistic = max(probabilistic, sum((p for p, q in pairs if p > ratio * q), Fraction(0)))
        excess = sum((max(Fraction(0), p - ratio * q) for p, q in pairs), Fraction(0))
        approximate = max(approximate, excess)
    assert (deltas.probabilistic, deltas.approximate) == (probabilistic, approximate)


@FEW
@given(mechanisms(), st.data(), st.sampled_from(Definition))
def test_a_guarantee_is_satisfied_up_to_its_delta_exactly(
    case: tuple[Domain, Mechanism], data: st.DataObject, definition: Definition
) -> None:
    domain, mechanism = case
    sensitivity, ratio = data.draw(sensitivities(domain)), exp_bounds(Fraction(1))[0]
    delta = mechanism.deltas(sensitivity, Fraction(1)).under(definition)
    if definition is Definition.PURE or delta == 1:
        return
    exact = Guarantee(definition, Fraction(1), delta)
    assert mechanism.satisfies(sensitivity, exact, ratio)
    if delta:
        less = Guarantee(definition, Fraction(1), delta * Fraction(999, 1000))
        assert not mechanism.satisfies(sensitivity, less, ratio)


@FEW
@given(mechanisms())
def test_the_largest_ratio_and_constancy_are_those_of_the_rows(
    case: tuple[Domain, Mechanism],
) -> None:
    _, mechanism = case
    rows = ByRows(mechanism)
    assert mechanism.ratio_everywhere() == rows.ratio_everywhere()
    assert mechanism.is_constant() == rows.is_constant()
    assert mechanism.is_constant() == (len({tuple(row.tolist()) for row in rows.rows}) == 1)


@pytest.mark.parametrize("published", range(3))
def test_a_mechanism_that_publishes_one_answer_only_is_constant_and_fully_private(
    published: int,
) -> None:
    rows = [[8 * (code == published) for code in range(3)]] * 3
    channel = Channel.of(rows)
    assert channel.is_constant()
    assert channel.ratio_everywhere() == 1
    assert Modular(Pmf.of(Group((4,)), [2] * 4)).is_constant()
    assert not Modular(Pmf.of(Group((4,)), [8, 0, 0, 0])).is_constant()


@FEW
@given(DOMAINS, st.data())
def test_modular_noise_loses_what_its_rows_lose(domain: Domain, data: st.DataObject) -> None:
    mechanism = data.draw(modulars(domain))
    rows = ByRows(mechanism)
    for loss in losses(domain):
        assert mechanism.expected_loss(loss, domain) == rows.expected_loss(loss, domain), loss.name


@FEW
@given(LINES, st.data())
def test_a_channel_loses_what_its_rows_lose(domain: AnswerDomain, data: st.DataObject) -> None:
    mechanism = data.draw(channels(domain))
    rows = ByRows(mechanism)
    for loss in losses(domain):
        if loss.name in ("noise_squared", "table"):
            # These are costs of noise, of which a channel has none.
            with pytest.raises(ValueError, match="error_rate, absolute or squared"):
                mechanism.expected_loss(loss, domain)
        else:
            assert mechanism.expected_loss(loss, domain) == rows.expected_loss(loss, domain)


def test_a_channel_has_no_expected_loss_on_a_circle() -> None:
    domain = plain_domain(Topology.CYCLIC, 4)
    channel = Channel.of([[4, 4, 4, 4]] * 4)
    with pytest.raises(ValueError, match="a channel needs the loss"):
        channel.expected_loss(joint_loss(LossName.ABSOLUTE, (domain,)), domain)


def steps_apart(part: AnswerDomain, first: int, second: int) -> int:
    """The distance of two codes, written out for each topology."""
    if part.topology is Topology.NOMINAL:
        return int(first != second)
    steps = abs(first - second)
    return min(steps, part.size - steps) if part.topology is Topology.CYCLIC else steps


@FEW
@given(mechanisms())
def test_the_chance_within_a_radius_is_that_of_the_rows(case: tuple[Domain, Mechanism]) -> None:
    domain, mechanism = case
    rows = ByRows(mechanism)
    cells = [domain.group.shift(code) for code in range(domain.size)]
    for radius in range(max(domain.group.moduli) + 1):
        near = 0
        for true in range(domain.size):
            for published, weight in enumerate(mechanism.row(true).tolist()):
                off = map(steps_apart, domain.parts, cells[true], cells[published])
                near += weight * (max(off) <= radius)
        chance = Fraction(near, domain.size * mechanism.total)
        assert mechanism.chance_within(domain, radius) == chance
        assert rows.chance_within(domain, radius) == chance


@FEW
@given(mechanisms(), st.data())
def test_the_error_at_an_answer_adds_up_over_the_parts(
    case: tuple[Domain, Mechanism], data: st.DataObject
) -> None:
    domain, mechanism = case
    true = data.draw(st.integers(0, domain.size - 1))
    expected = Fraction(0)
    for published, weight in enumerate(mechanism.row(true).tolist()):
        cells = domain.group.shift(true), domain.group.shift(published)
        expected += Fraction(int(weight), mechanism.total) * sum(
            map(steps_apart, domain.parts, *cells)
        )
    assert mechanism.error_at(domain, true) == expected
    assert ByRows(mechanism).error_at(domain, true) == expected


@FEW
@given(mechanisms(), st.data())
def test_likelihoods_are_the_columns_of_the_rows(
    case: tuple[Domain, Mechanism], data: st.DataObject
) -> None:
    domain, mechanism = case
    code = data.draw(st.integers(0, domain.size - 1))
    likelihood = mechanism.likelihood_of(code)
    assert np.array_equal(likelihood, ByRows(mechanism).likelihood_of(code))
    for true in range(domain.size):
        assert likelihood[true] == int(mechanism.row(true)[code]) / mechanism.total
        assert mechanism.probabilities(true)[code] == likelihood[true]


def multiset(here: Sequence[float], there: Sequence[float]) -> frozenset[tuple[Any, int]]:
    """The pairs of probabilities of two neighboring rows, whatever answers they belong to."""
    return frozenset(Counter(zip(here, there, strict=True)).items())


@FEW
@given(mechanisms(), st.data())
def test_neighboring_rows_are_those_of_the_pairs(
    case: tuple[Domain, Mechanism], data: st.DataObject
) -> None:
    """One pair of modular rows stands for all with its difference: they hold the same masses."""
    domain, mechanism = case
    sensitivity = data.draw(sensitivities(domain))
    sides = mechanism.neighboring_rows(sensitivity, 10**6)
    all_sides = ByRows(mechanism).neighboring_rows(sensitivity, 10**6)
    assert sides is not None
    assert all_sides is not None
    kinds = {multiset(*map(tuple, pair)) for pair in zip(*sides, strict=True)}
    assert kinds == {multiset(*map(tuple, pair)) for pair in zip(*all_sides, strict=True)}
    if isinstance(mechanism, Channel):
        assert all(map(np.array_equal, sides, all_sides))


@FEW
@given(mechanisms(), st.data())
def test_comparisons_count_the_masses_beside_each_other(
    case: tuple[Domain, Mechanism], data: st.DataObject
) -> None:
    domain, mechanism = case
    sensitivity = data.draw(sensitivities(domain))
    number = mechanism.comparisons(sensitivity)
    sides = mechanism.neighboring_rows(sensitivity, number)
    assert sides is not None
    assert sides[0].size == sides[1].size == number
    assert mechanism.neighboring_rows(sensitivity, number - 1) is None
    by_rows = ByRows(mechanism).comparisons(sensitivity)
    if isinstance(mechanism, Modular) and sensitivity.distances is None:
        number *= domain.size
    assert by_rows >= number if isinstance(mechanism, Modular) else by_rows == number


@FEW
@given(mechanisms(), st.data())
def test_noise_is_what_every_row_is_moved_by(
    case: tuple[Domain, Mechanism], data: st.DataObject
) -> None:
    domain, mechanism = case
    if isinstance(mechanism, Channel):
        assert mechanism.modular_noise is None
        return
    assert mechanism.modular_noise is not None
    true, published = (data.draw(st.integers(0, domain.size - 1)) for _ in range(2))
    steps = zip(domain.group.shift(published), domain.group.shift(true), strict=True)
    element = domain.group.element(tuple(a - b for a, b in steps))
    assert mechanism.modular_noise.weights[element] == mechanism.row(true)[published]


def every_word(bits: int) -> bytes:
    """Words of 64 bits whose high ``bits`` are 0, 1, 2, … in order."""
    words = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    return words.astype("<u8").tobytes()


@FEW
@given(DOMAINS, st.data())
def test_draws_follow_the_row_of_the_true_answer(domain: Domain, data: st.DataObject) -> None:
    """With every word of its bits for once, a row is drawn from as its weights say."""
    bits = 6
    true = data.draw(st.integers(0, domain.size - 1))
    drawn = data.draw(weights(domain.size, bits))
    rows = [data.draw(weights(domain.size, bits)) for _ in range(domain.size)]
    for mechanism in (Modular(Pmf.of(domain.group, drawn)), Channel.of(rows)):
        answers = np.full(2**bits, true, dtype=np.int64)
        for drawer in (mechanism, ByRows(mechanism)):
            codes = drawer.draw(answers, lambda count: every_word(bits)[:count])
            counts = np.bincount(codes, minlength=domain.size)
            assert counts.tolist() == mechanism.row(true).tolist()


def test_cells_of_different_answers_are_drawn_each_from_its_row() -> None:
    channel = Channel.of([[64, 0, 0], [0, 64, 0], [0, 0, 64]])
    answers = np.array([2, 0, 1, 1, 0, 2, 2], dtype=np.int64)
    drawn: list[int] = []

    def source(count: int) -> bytes:
        drawn.append(count)
        return bytes(count)

    assert np.array_equal(channel.draw(answers, source), answers)
    assert drawn == [8 * answers.size]


@pytest.mark.parametrize("code", [-1, 3])
@pytest.mark.parametrize("family", ["modular", "channel"])
def test_codes_outside_the_domain_are_drawn_for_by_no_family(code: int, family: str) -> None:
    modular = Modular(Pmf.of(Group((3,)), [2, 1, 1]))
    mechanism = modular if family == "modular" else Channel.of_mechanism(modular)
    with pytest.raises(ValueError, match=r"^an answer code is outside the domain$"):
        mechanism.draw(np.array([0, code], dtype=np.int64))


def test_rows_of_wide_totals_are_not_drawn_from() -> None:
    channel = Channel.of([[2**63, 2**63]] * 2)
    with pytest.raises(ValueError, match=r"at most 2\^62"):
        channel.draw(np.zeros(1, dtype=np.int64))


@FEW
@given(DOMAINS, st.data())
def test_writing_out_the_rows_changes_nothing(domain: Domain, data: st.DataObject) -> None:
    mechanism = data.draw(modulars(domain))
    channel = Channel.of_mechanism(mechanism)
    assert channel.total == mechanism.total
    assert math.prod(channel.rows.shape) == domain.size**2
    for code in range(domain.size):
        assert np.array_equal(channel.row(code), mechanism.row(code))


LINE_OF_3 = plain_domain(Topology.ORDERED, 3)
LEANING = Channel.of([[6, 1, 1], [3, 2, 3], [0, 2, 6]])


def test_an_objective_is_over_the_prior_or_at_the_worst_answer() -> None:
    """Absolute errors of 3/8, 6/8 and 2/8."""
    absolute = named_loss(LossName.ABSOLUTE, Topology.ORDERED, 3)
    assert LEANING.objective(absolute, LINE_OF_3) == Fraction(11, 24)
    shares = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    weighed = prior_loss(LossName.ABSOLUTE, Topology.ORDERED, shares)
    assert LEANING.objective(weighed, LINE_OF_3) == Fraction(3 * 3 + 2 * 6 + 2, 48)
    worst = worst_case(LossName.ABSOLUTE, Topology.ORDERED, 3)
    assert LEANING.objective(worst, LINE_OF_3) == Fraction(6, 8)
    assert LEANING.worst_loss(absolute, LINE_OF_3) == (1, Fraction(6, 8))


@given(
    st.lists(st.integers(0, 40), min_size=3, max_size=9),
    st.sampled_from([LossName.ABSOLUTE, LossName.SQUARED, LossName.ERROR_RATE]),
)
@FEW
def test_modular_noise_loses_most_where_its_rows_do(weights: list[int], name: LossName) -> None:
    """Noise that leans to one side wraps round more at one end of the line."""
    size = len(weights)
    weights[0] += (1 << max(1, sum(weights)).bit_length()) - sum(weights)
    mechanism = Modular(Pmf.of(Group((size,)), weights))
    loss, domain = named_loss(name, Topology.ORDERED, size), plain_domain(Topology.ORDERED, size)
    losses = [mechanism.expected_loss_at(loss, domain, code) for code in range(size)]
    code, worst = mechanism.worst_loss(loss, domain)
    assert float(worst) == pytest.approx(float(max(losses)), rel=1e-12)
    assert float(losses[code]) == pytest.approx(float(max(losses)), rel=1e-12)


def test_no_mechanism_is_taken_to_lose_in_proportion_without_a_proof() -> None:
    two = Sensitivity.on_line(3, (1, 2))
    around = Modular(Pmf.of(Group((3,)), (2, 1, 1)))
    assert not LEANING.loses_in_proportion(two, Fraction(99))
    assert not around.loses_in_proportion(two, Fraction(99))


def test_the_concentration_of_a_row_is_the_root_of_its_squares() -> None:
    assert Modular(Pmf.of(Group((3,)), (2, 1, 1))).concentration() == pytest.approx(6**0.5 / 4)
    assert LEANING.concentration() == pytest.approx(40**0.5 / 8)


def test_modular_noise_loses_most_at_an_end_of_joint_answers() -> None:
    """Noise of 1 in the first part wraps the last of its answers round to the first."""
    parts = (plain_domain(Topology.ORDERED, 4), plain_domain(Topology.ORDERED, 2))
    loss = joint_loss(LossName.ABSOLUTE, parts)
    upward = Modular(Pmf.of(Group((4, 2)), (4, 0, 4, 0, 0, 0, 0, 0)))
    assert upward.worst_loss(loss, JointDomain(parts)) == (7, Fraction(3, 2))
    downward = Modular(Pmf.of(Group((4, 2)), (4, 0, 0, 0, 0, 0, 4, 0)))
    assert downward.worst_loss(loss, JointDomain(parts)) == (0, Fraction(3, 2))


def test_a_rough_profile_begins_without_a_loss_and_lies_above() -> None:
    step, near = Fraction(1, 8), Sensitivity.on_line(3, (1,))
    small = Channel.of([[5, 2, 1], [3, 2, 3], [1, 2, 5]])
    exact, rough = small.profile(near, step), small.rough_profile(near, step)
    # Exact at the places 0, 1, 4 and 16, with chords between.
    for place in (0, 1, 4):
        assert abs(rough.values[place] - exact.values[place]) <= 1
    for value, above in zip(exact.values, rough.values, strict=False):
        assert value <= above + 1
    assert rough.values[0] > rough.values[1] > 0
    # No loss is above ln 3 = 1.1, so that δ is 0 at the place 16, where the list ends.
    assert (len(rough.values), rough.values[16]) == (17, 0)
