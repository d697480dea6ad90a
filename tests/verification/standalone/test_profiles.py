"""The verifier in one file: profiles and losses, beside the package and by exact sums."""

from __future__ import annotations

import itertools
from decimal import Context, Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest

from release.budget.profiles import profile_of_patterns
from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import (
    Profile,
    profile_of_distribution,
    profile_of_weights,
    pure_profile,
)
from release.exact.composition.renyi import moment
from release.exact.composition.together import together
from release.exact.statistics.exponential import bounded_range_profile
from release.verification import standalone
from tests.verification.standalone.alone import Plain, asked, plain_spec, spec_of

PARTS, SCALE, NOTHING = 10**28, 10**40, Fraction(0)
QUARTER, TENTH = Fraction(1, 4), Fraction(1, 10)


def test_the_limits_are_those_of_the_page() -> None:
    page = (256, 10**28, 2**14, 10**40, 2**64)
    own = standalone
    assert page == (own.FAR, own.PARTS, own.LONGEST, own.SCALE, own.UNIT)
    assert own.SMALL == 10**6


def theirs(losses: standalone.Losses) -> LossDistribution:
    highest = (losses.low + len(losses.masses) - 1) * losses.step
    return LossDistribution(losses.step, highest, tuple(reversed(losses.masses)), losses.infinite)


PROFILES = [
    standalone.pure_values(Fraction(1), NOTHING, QUARTER),
    standalone.pure_values(Fraction(2), NOTHING, QUARTER, in_range=True),
    standalone.pure_values(Fraction(3, 8), Fraction(1, 1000), QUARTER),
    [PARTS // 2, PARTS // 3, PARTS // 7, 5],
    [PARTS // 9, PARTS // 9 - 1, 0],
    [10**20],
    [0],
]


@pytest.mark.parametrize("values", PROFILES)
@pytest.mark.parametrize("step", [QUARTER, Fraction(1)])
def test_a_profile_becomes_the_distribution_of_the_package(
    values: list[int], step: Fraction
) -> None:
    found = theirs(standalone.losses_of(values, step))
    assert found == Profile(step, tuple(values)).distribution()


@pytest.mark.parametrize("place", range(len(PROFILES)))
def test_compositions_are_those_of_the_package(place: int) -> None:
    first = standalone.losses_of(PROFILES[place], QUARTER)
    for values in PROFILES:
        second = standalone.losses_of(values, QUARTER)
        both = first.composed(second)
        assert theirs(both) == theirs(first).composed(theirs(second))
        expected = standalone.largest([both.values()], QUARTER)
        assert both.values() == expected
    for times in (1, 2, 3, 6, 7):
        whole = standalone.all_of([(PROFILES[place], times), (PROFILES[0], 2)], QUARTER)
        parts = [(theirs(first), times), (theirs(standalone.losses_of(PROFILES[0], QUARTER)), 2)]
        assert theirs(whole) == together(parts)


def test_the_shortest_are_composed_first() -> None:
    """Of five lengths in any order, because roundings differ by the order."""
    lists = [standalone.pure_values(Fraction(n), NOTHING, QUARTER) for n in (3, 1, 2, 5, 4)]
    for order in itertools.islice(itertools.permutations(lists), 0, 120, 17):
        whole = standalone.all_of([(values, 1) for values in order], QUARTER)
        parts = [(Profile(QUARTER, tuple(values)).distribution(), 1) for values in order]
        assert theirs(whole) == together(parts)


def losses(low: int, *masses: int, infinite: int = 0) -> standalone.Losses:
    return standalone.Losses(QUARTER, low, list(masses), infinite)


ALL = losses(0, PARTS)
"""What changes nothing that it is composed with."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (losses(-2, 5, 7, PARTS, 6), losses(0, PARTS + 12, infinite=6)),
        (losses(-1, 10**6, PARTS, 10**6), losses(0, PARTS + 10**6, infinite=10**6)),
        (losses(-1, 10**6 + 1, PARTS, 10**6 + 1), losses(-1, 10**6 + 1, PARTS, 10**6 + 1)),
        (
            losses(-2, 1, 10**6, PARTS, 10**6, 1),
            losses(-1, 10**6 + 1, PARTS, 10**6, infinite=1),
        ),
        (losses(3, 5, 7), losses(3, 5, infinite=7)),
        (losses(3, 7), losses(3, 7)),
        (losses(0, 0, PARTS, 0), losses(1, PARTS)),
        (losses(0, PARTS, infinite=9), losses(0, PARTS, infinite=9)),
    ],
)
def test_small_masses_at_the_ends_are_folded(
    before: standalone.Losses, after: standalone.Losses
) -> None:
    assert before.composed(ALL) == after
    assert ALL.composed(before) == after
    assert theirs(after) == theirs(before).composed(theirs(ALL))


def test_masses_multiply_and_are_rounded_up() -> None:
    half, third = losses(-1, PARTS // 2, 0, PARTS // 2), losses(2, PARTS // 3, 1, infinite=3)
    found = half.composed(third)
    masses = [PARTS // 3 // 2 + 1, 1, PARTS // 3 // 2 + 1, 1]
    # (0.333…3)/2 ends in …66.5, and the last mass, of a half, is folded.
    assert found.low == 1
    assert (found.masses, found.infinite) == (masses[:3], 3 + 1)
    long = losses(-9, *(PARTS // (9 + 7 * n % 11) for n in range(19)), infinite=PARTS // 99)
    for other in (half, third, long):
        assert theirs(long.composed(other)) == theirs(long).composed(theirs(other))
    both = losses(0, 5, infinite=PARTS).composed(losses(0, 7, infinite=PARTS // 2))
    # ⌈(U·(7 + U/2) + U/2·5)/U⌉ = 7 + U/2 + ⌈2.5⌉
    assert both.infinite == 7 + PARTS // 2 + 3


@pytest.mark.parametrize(
    "own",
    [
        losses(-2, 9, 5, PARTS // 2, PARTS // 3, PARTS // 9, infinite=4),
        losses(2, PARTS // 2, PARTS // 3),
        losses(-3, PARTS // 2, PARTS // 3),
        losses(-1, PARTS // 2, PARTS // 3, infinite=8),
        losses(0, 0, PARTS, infinite=PARTS),
        losses(5, PARTS),
    ],
)
def test_delta_is_the_sum_of_what_lies_above(own: standalone.Losses) -> None:
    many = Context(prec=60)
    for epsilon in (NOTHING, Fraction(1, 8), QUARTER, Fraction(1), Fraction(3)):
        exact = Decimal(own.infinite)
        for place, mass in enumerate(own.masses, own.low):
            above = place * QUARTER - epsilon
            if above > 0:
                loss = many.divide(Decimal(-above.numerator), Decimal(above.denominator))
                fall = many.exp(loss)
                exact = many.fma(Decimal(mass), many.subtract(Decimal(1), fall), exact)
        found = own.delta_at(epsilon)
        assert 0 <= found - Fraction(exact) < Fraction(PARTS, 10**26)
    top = own.low + len(own.masses) - 1
    values = own.values()
    if top > 0:
        assert values == list(profile_of_distribution(theirs(own), QUARTER).shortened().values)
    assert len(values) <= max(top, 0) + 1
    for place in range(len(values)):
        bound = min(Fraction(PARTS), own.delta_at(place * QUARTER))
        assert 0 <= values[place] - bound < len(own.masses) + 3
    assert values[-1] == min(PARTS, own.infinite) or top > 0
    assert values == [*standalone.largest([values], QUARTER)]


def test_delta_on_a_fine_grid_is_summed_to_thirty_digits_more() -> None:
    """Roundings of single masses would add up, and a δ of 10^-15 be refused that is kept."""
    step, epsilon = Fraction(1, 500), Fraction(1, 3)
    masses = [(place * 10**21 + 7) % (10**22 - 1) for place in range(1000)]
    own = standalone.Losses(step, -200, masses, 5)
    whole = Fraction(own.infinite)
    for place, mass in enumerate(masses, own.low):
        if (above := place * step - epsilon) > 0:
            whole += mass * (1 - Fraction(SCALE, standalone.above_e(above)))
    assert 0 <= own.delta_at(epsilon) - whole < Fraction(1, 10**9)


def test_losses_beyond_a_hundred_count_whole() -> None:
    far = standalone.Losses(Fraction(50), 2, [7, 11, 13], 5)
    assert far.delta_at(NOTHING) == 5 + 11 + 13 + 7 * (
        1 - Fraction(SCALE, standalone.above_e(Fraction(100)))
    )
    assert far.delta_at(Fraction(1)) == 5 + 13 + 11 + 7 * (
        1 - Fraction(SCALE, standalone.above_e(Fraction(99)))
    )
    near = standalone.Losses(Fraction(201, 2), 1, [7], 0)
    assert near.delta_at(NOTHING) == 7
    assert near.moment(2) == (NOTHING, Fraction(7, PARTS))
    assert losses(0, PARTS).moment(2) == (Fraction(1), NOTHING)
    value, cut = far.moment(2)
    assert cut * PARTS == 5 + 11 + 13
    assert value * PARTS * SCALE == 7 * standalone.above_e(Fraction(100))


@pytest.mark.parametrize("order", [2, 3, 9])
def test_a_moment_is_no_more_than_the_package_states(order: int) -> None:
    many = Context(prec=80)
    for values in PROFILES[:3]:
        own = standalone.losses_of(values, QUARTER)
        exact = Decimal(0)
        for place, mass in enumerate(own.masses, own.low):
            power = many.exp((order - 1) * Decimal(place) / 4)
            exact = many.add(exact, many.multiply(Decimal(mass), power))
        found, cut = own.moment(order)
        stated = moment(theirs(own), order)
        assert Fraction(exact) / PARTS <= found <= stated.value
        assert found - Fraction(exact) / PARTS < Fraction(1, 10**28)
        assert cut <= stated.cut < cut + Fraction(1, 10**29)
        extra = max(0, own.infinite + sum(own.masses) - PARTS)
        assert cut * PARTS == own.infinite + extra
    whole = losses(0, PARTS, infinite=PARTS)
    assert whole.moment(order)[1] == 1
    assert losses(0, PARTS // 2, infinite=PARTS // 2).moment(order)[1] == Fraction(1, 2)
    assert losses(0, PARTS // 2, infinite=3).moment(order)[1] == Fraction(3, PARTS)


WEIGHTS: list[dict[tuple[int, int], int]] = [
    {(5, 2): 1, (2, 5): 1, (1, 1): 1},
    {(5, 0): 1, (3, 2): 1, (0, 6): 1},
    {(5, 4): 1, (4, 5): 1, (0, 0): 3},
    {(8, 0): 1, (0, 8): 1},
    {(4, 4): 2},
]


@pytest.mark.parametrize("of", WEIGHTS)
@pytest.mark.parametrize("step", [Fraction(1, 64), TENTH, Fraction(1), Fraction(60)])
def test_values_of_pairs_are_those_of_the_package(
    of: dict[tuple[int, int], int], step: Fraction
) -> None:
    total = sum(p * times for (p, _), times in of.items())
    found = standalone.largest([standalone.values_of_pair(standalone.Pairs(of, total), step)], step)
    pairs = [pair for pair, times in of.items() for _ in range(times)]
    expected = profile_of_weights(pairs, total, step, standalone.LONGEST - 1).shortened()
    assert found == list(expected.values)


@pytest.mark.parametrize(("step", "count"), [("1", 101), ("50", 3), ("33.5", 3), ("33", 4)])
def test_values_end_at_a_loss_of_a_hundred(step: str, count: int) -> None:
    endless = standalone.Pairs({(10**48, 1): 1}, 10**48)
    values = standalone.values_of_pair(endless, Fraction(step))
    assert len(values) == count


def test_values_end_at_their_largest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "LONGEST", 8)
    endless = standalone.Pairs({(10, 1): 1}, 10)
    assert len(standalone.values_of_pair(endless, TENTH)) == 8
    for in_range in (False, True):
        for steps, count in ((7, 8), (8, 8), (9, 8)):
            values = standalone.pure_values(steps * TENTH, NOTHING, TENTH, in_range=in_range)
            assert len(values) == count
            assert (values[-1] == 0) == (steps == 7)
    assert len(standalone.largest([list(range(9, 0, -1))], TENTH)) == 8


def test_a_list_is_shortened() -> None:
    assert standalone.largest([[9, 5, 5, 5]], TENTH) == [9, 5]
    assert standalone.largest([[5, 5]], TENTH) == [5]
    assert standalone.largest([[5]], TENTH) == [5]
    assert standalone.largest([[9, 1], [7, 6, 0], [8]], TENTH) == [9, 8]
    assert standalone.largest([[9, 1], [7, 6, 0], [3]], TENTH) == [9, 6, 3]
    # ⌊100/h⌋ + 2 values.
    assert standalone.largest([[9, 8, 7, 6, 5]], Fraction(40)) == [9, 8, 7, 6]
    assert standalone.largest([[9, 8, 7, 6, 5]], Fraction(50)) == [9, 8, 7, 6]
    assert standalone.largest([[9, 8, 7, 6, 5]], Fraction(51)) == [9, 8, 7]
    assert standalone.largest([[9, 8, 7, 6, 5]], Fraction(101, 3)) == [9, 8, 7, 6]


@pytest.mark.parametrize("step", [Fraction(1, 64), TENTH, Fraction(3)])
@pytest.mark.parametrize("text", ["0", f"1/{10**45}", "1/1000000000000", "0.2", "1", "7.3", "100"])
def test_worst_cases_are_those_of_the_package(text: str, step: Fraction) -> None:
    epsilon = Fraction(text)
    if epsilon == 100:
        step = max(step, Fraction(1, 2))
    pure = pure_profile(epsilon, step).shortened()
    assert standalone.pure_values(epsilon, NOTHING, step) == list(pure.values)
    if epsilon:
        ranged = bounded_range_profile(epsilon, step).shortened()
        found = standalone.pure_values(epsilon, NOTHING, step, in_range=True)
        assert found == list(ranged.values)


def test_beyond_a_hundred_nothing_is_private() -> None:
    assert standalone.pure_values(Fraction(100) + TENTH, NOTHING, Fraction(1)) == [PARTS]


def test_a_delta_is_added_to_the_worst_case() -> None:
    delta = Fraction(1, 3)
    values = standalone.pure_values(Fraction(1), delta, QUARTER)
    whole = standalone.pure_values(Fraction(1), NOTHING, QUARTER)
    assert values[-1] == PARTS // 3 + 1
    for value, pure in zip(values, whole, strict=True):
        assert 0 <= value - PARTS * delta - (1 - delta) * pure <= 1
    charge = Profile.of_charge(Fraction(1), delta)
    assert values[0] == charge.values[0]


@pytest.mark.parametrize(
    "patterns", [[[1]], [[2, 1], [1, 1, 1]], [[3, 3]], [[1] * 9, [3]], [[2, 2, 1, 1]]]
)
def test_patterns_compose_as_the_package_does(patterns: list[list[int]]) -> None:
    cells = {far: standalone.pure_values(far * QUARTER, NOTHING, TENTH) for far in (1, 2, 3)}
    found = standalone.profile_of((NOTHING, lambda far, _: cells[far]), patterns, TENTH)
    profiles = {far: Profile(TENTH, tuple(values)) for far, values in cells.items()}
    expected = profile_of_patterns(profiles, [tuple(pattern) for pattern in patterns])
    assert found == list(expected.values)


def test_a_rough_cell_or_very_many_cells_leave_a_profile_open() -> None:
    """The values of a cell times ⌊√t⌋ + 1 are at most 2¹⁶: 648 times 101 are."""

    def cell(far: int, _: Fraction) -> list[int]:
        return list(range(far - 1, -1, -1))

    own = (NOTHING, cell)
    assert standalone.profile_of(own, [[3], [0]], TENTH) == []
    assert standalone.profile_of(own, [[3]], TENTH) == [2, 1, 0]
    assert standalone.profile_of(own, [[648] * 10**4], TENTH) != []
    assert standalone.profile_of(own, [[649] * 10**4], TENTH) == []
    assert standalone.profile_of(own, [[2**12] * 15**2], TENTH) != []
    assert standalone.profile_of(own, [[648, *[2] * 10**4]], TENTH) != []
    assert standalone.profile_of(own, [[2, *[649] * 10**4]], TENTH) == []
    assert standalone.profile_of(own, [[2**16 + 1]], Fraction(1, 10**6)) != []


def charged(epsilon: str, touched: int, **plain: Any) -> standalone.Charged:
    query = cast("standalone.Query", SimpleNamespace(is_composed=plain.get("composed", False)))
    # What is charged in proportion is less: it has no bearing on the grid.
    charge = (Fraction(epsilon), NOTHING)
    return standalone.Charged(query, {"epsilon": epsilon}, None, touched, NOTHING, charge, [])


def step_by_page(claims: list[tuple[str, int]], budget: Fraction, *, composed: bool) -> Fraction:
    """The step of section 4.3.1, with roots and multiples by counting."""
    count = sum(touched for _, touched in claims)
    root = next(n for n in range(count + 1) if n * n >= count)
    most = max(1000, 50 * root)
    steps = min(2**14, most)
    if 1 < count <= 1000:
        steps = next(n for n in range(most, most + count) if n % count == 0)
    if composed:
        return budget / steps
    asked = sum((touched * Fraction(epsilon) for epsilon, touched in claims), NOTHING)
    least = min(budget, asked) or budget
    unit = NOTHING
    for epsilon, _ in claims:
        value = Fraction(epsilon)
        while value:
            unit, value = value, unit % value
    if unit and 2**14 * unit >= least:
        return unit / -(-unit * min(2**14, most) // least)
    return least / steps


@pytest.mark.parametrize("composed", [False, True])
@pytest.mark.parametrize(
    "claims",
    [
        [("1", 1)],
        [("1", 2)],
        [("1/4", 1), ("1/3", 1)],
        [("1", 3), ("0.00001", 4)],
        [("0", 2)],
        [("0", 2), ("1/2", 1)],
        [("0.01", 401)],
        [("0.01", 441)],
        [("0.01", 442)],
        [("0.01", 1000)],
        [("0.01", 1001)],
        [("0.001", 200_000)],
        [("1/16384", 1), ("1", 3)],
        [("1/16384", 1), ("16383/16384", 1)],
        [("1/16384", 1), ("1", 1)],
    ],
)
@pytest.mark.parametrize("budget", ["0.3", "1", "50"])
def test_the_grid_of_a_release_is_that_of_the_page(
    claims: list[tuple[str, int]], budget: str, composed: bool
) -> None:
    plain = plain_spec(asked("count"))
    plain["budget"]["epsilon"] = budget
    public = [charged(epsilon, touched, composed=composed) for epsilon, touched in claims]
    found = standalone.step_of(public, standalone.Spec(plain))
    assert found == step_by_page(claims, Fraction(budget), composed=composed)


def test_one_share_is_enough_for_the_grid_of_the_budget() -> None:
    public = [charged("1", 2, composed=True), charged("1", 1)]
    assert standalone.step_of(public, spec_of(asked("count"))) == Fraction(1000, 1002)


def test_steps_have_a_common_divisor() -> None:
    assert standalone.common_step([Fraction(1, 4), Fraction(1, 6)]) == Fraction(1, 12)
    assert standalone.common_step([Fraction(3), Fraction(9, 2)]) == Fraction(3, 2)
    assert standalone.common_step([NOTHING]) == 0


def slot(name: str, times: int, **fields: Any) -> Plain:
    return {"name": name, "times": times, **fields}


def stated(times: int, epsilon: str, delta: str = "0", **fields: Any) -> Plain:
    return slot(f"s{epsilon}", times, epsilon=epsilon, delta=delta, **fields)


def curved(times: int, *values: int, step: str = "0.25") -> Plain:
    profile = {"step": step, "values": list(map(str, values))}
    return slot(f"c{values[0]}", times, profile=profile)


def keeps(epsilon: str, delta: str, *planned: Plain) -> bool:
    found = standalone.plan_keeps({"epsilon": epsilon, "delta": delta, "planned": list(planned)})
    assert isinstance(found, bool)
    return found


def test_a_plan_of_sums_keeps_its_cap() -> None:
    assert keeps("1", "0", stated(4, "0.25"))
    assert not keeps("0.99", "0", stated(4, "0.25"))
    assert keeps("1", "0.1", stated(4, "0.25", "0.025"))
    assert not keeps("1", "0.09", stated(4, "0.25", "0.025"))
    assert keeps("1", "0", stated(2, "0.25"), stated(1, "0.5"))
    assert keeps("1", "0.2", stated(2, "0.25", "0.1", declared=True), stated(1, "0.5"))
    assert not keeps("0.99", "0.2", stated(2, "0.25", "0.1", declared=True), stated(1, "0.5"))
    assert not keeps("1", "0.19", stated(2, "0.25", "0.1", declared=True), stated(1, "0.5"))
    assert keeps("0.5", "0.2", stated(2, "0.25", "0.1", declared=True))
    assert not keeps("0.4", "0.2", stated(2, "0.25", "0.1", declared=True))
    assert not keeps("0.5", "0.1", stated(2, "0.25", "0.1", declared=True))
    assert not keeps("0.4", "0.5", stated(1, "0.5", declared=True), stated(1, "0.1"))
    assert not keeps("0.65", "0.3", stated(1, "0.25", "0.1"), stated(1, "0.5", "0.2"))
    assert not keeps("1", "0.2", stated(1, "0.05", "0.15"), stated(1, "0.06", "0.15"))
    # The exact composition would round a δ up to more than 0.
    assert keeps("37.5", "0", stated(50, "0.25"), stated(50, "0.5"))


def test_a_plan_that_composes_exactly_keeps_less() -> None:
    """60 times ε = 0.1: their sum is 6, and by the exact composition 3.4 at δ = 10⁻³."""
    values = standalone.pure_values(TENTH, NOTHING, TENTH)
    whole = standalone.all_of([(values, 60)], TENTH)
    epsilon = next(n for n in range(100) if whole.delta_at(n * TENTH) <= PARTS / 1000) * TENTH
    assert 2 < epsilon < 4
    assert keeps(standalone.exact(epsilon), "0.001", stated(60, "0.1"))
    assert not keeps(standalone.exact(epsilon - TENTH), "0.001", stated(60, "0.1"))
    exact = whole.delta_at(epsilon) / PARTS
    assert keeps(standalone.exact(epsilon), standalone.up(exact, 40), stated(60, "0.1"))
    less = exact - Fraction(1, 10**30)
    assert not keeps(standalone.exact(epsilon), standalone.up(less, 40), stated(60, "0.1"))


def test_curves_of_a_plan_share_one_step() -> None:
    ninth = PARTS // 9
    assert keeps("1", "0.5", curved(1, ninth, 0))
    assert keeps("0", "0.1111112", curved(1, ninth, 0))
    assert not keeps("0", "0.1111", curved(1, ninth, 0))
    assert keeps("0.25", "0", curved(1, ninth, 0))
    assert not keeps("0.2", "0", curved(1, ninth, 0))
    assert not keeps("9", "0.9", curved(1, ninth, 0), curved(1, ninth - 1, 0, step="0.5"))
    assert keeps("9", "0.9", curved(1, ninth, 0), curved(1, ninth - 1, 0))
    assert not keeps("9", "0.9", curved(1, ninth, 0, step="0"))
    assert keeps("2", "0.1000001", curved(1, ninth, 0), stated(1, "0.5", "0.1"))
    assert not keeps("2", "0.09", curved(1, ninth, 0), stated(1, "0.5", "0.1"))
    more = stated(1, "1.6", declared=True)
    assert not keeps("2", "0.1", curved(1, ninth, 0), more, stated(1, "0.5", "0.1"))


def test_a_slot_stands_for_its_curve_or_its_worst_case() -> None:
    assert standalone.values_of(curved(1, 9, 3), QUARTER) == [9, 3]
    own = standalone.values_of(stated(1, "0.5", "0.1"), QUARTER)
    assert own == standalone.pure_values(Fraction(1, 2), TENTH, QUARTER)
    assert spec_of(asked("count")).ways == 2
