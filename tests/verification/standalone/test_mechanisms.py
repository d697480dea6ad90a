"""The verifier in one file: mechanism files on answers, by sums over every pair of masses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from release.exact.bounds import Multipliers, lower_bound
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.verification import standalone
from tests.verification.standalone.alone import PURE, Plain, asked, query_of, refused, set_in

FILE, ON_THE_LINE = "mechanisms/own.json", standalone.ON_THE_LINE
APPROXIMATE: Plain = {"definition": "approximate", "epsilon": "1/2", "delta": "1"}
SCALE = 10**40


def up(value: Fraction) -> str:
    return standalone.up(value, 60)


def deltas(pairs: list[tuple[list[int], list[int]]], total: int, epsilon: str) -> Plain:
    """What a file states of its pairs of lists."""
    r = Fraction(standalone.below_e(Fraction(epsilon)), SCALE)
    heavy = [sum(p for p, q in zip(*pair, strict=True) if p > r * q) for pair in pairs]
    most = [
        sum((max(Fraction(0), p - r * q) for p, q in zip(*pair, strict=True)), Fraction(0)) / total
        for pair in pairs
    ]
    stated = {"delta_approximate": up(max(most)), "epsilon_everywhere": "1"}
    return stated | {"delta_probabilistic": standalone.exact(Fraction(max(heavy), total))}


def stated(family: str, group: list[int], total: int, guarantee: Plain, **own: Any) -> Plain:
    design: Plain = {
        **{"method": "staircase", "loss": "error_rate", "solver": "none", "objective": "0.5"},
        **{"bounded_loss": "0.50", "lower_bound": "0.25", "gap": "0.25"},
        **{"bound_of": "every mechanism", "bound": "solver", "notes": [], "multipliers": []},
    }
    accuracy = {"p_exact": "0", "mean_absolute": "0", "p_within_1": "0"}
    return {
        **{"schema": "dp-release/mechanism/v1", "query": "own", "mechanism": family},
        **{"group": group, "total": str(total), "directed": False, "guarantee": guarantee},
        **{"design": design, "accuracy": accuracy, **own},
    }


WEIGHTS = [5 * 2**20 + 1, 2**20, 2**21 - 1]


def ring(guarantee: Plain = APPROXIMATE) -> tuple[Plain, Plain]:
    """A query on a cycle of three, and modular noise for it."""
    weights, total = WEIGHTS, 2**23
    pairs = [(weights, weights[d:] + weights[:d]) for d in (1, 2)]
    plain = stated("modular", [3], total, guarantee, sensitivity=[[1], [2]])
    plain |= {"weights": list(map(str, weights))}
    plain["recomputed"] = deltas(pairs, total, guarantee["epsilon"])
    query = asked("mode", domain={"cyclic": 3}, noise="on_answer", guarantee=guarantee)
    return query, plain


ROWS = [[5, 2, 1, 0], [2, 4, 1, 1], [1, 1, 4, 2], [0, 1, 1, 6]]


def line(guarantee: Plain = APPROXIMATE, *, rows: int = 1) -> tuple[Plain, Plain]:
    """A count of up to so many rows of a unit, on four answers, and a channel for it."""
    total, near = 8, [(a, b) for a in range(4) for b in range(4) if 1 <= abs(a - b) <= rows]
    plain = stated("channel", [4], total, guarantee, pairs=list(map(list, near)))
    plain |= {"rows": [list(map(str, row)) for row in ROWS]}
    plain["recomputed"] = deltas([(ROWS[a], ROWS[b]) for a, b in near], total, guarantee["epsilon"])
    domain = {"ordered": {"min": 0, "max": 3}}
    return asked("count", domain=domain, max_rows_per_unit=rows, guarantee=guarantee), plain


MASSES = {-2: 65537, -1: 196607, 0: 524288, 1: 196608, 2: 65536}
WHOLE = 2**20


def integer(guarantee: Plain = APPROXIMATE, *, rows: int = 1) -> tuple[Plain, Plain]:
    """The same count on ten answers, and noise on the integers without tails."""
    noise = {"low": -2, "lengths": [1] * 5, "weights": list(map(str, MASSES.values()))}
    plain = stated("integer", [10], WHOLE, guarantee, noise=noise | {"left": None, "right": None})
    plain |= {"distances": [[1, rows]], "low_end": [], "high_end": []}
    wide = range(-2 - rows, 3 + rows)
    pairs = [
        ([MASSES.get(k, 0) for k in wide], [MASSES.get(k + d, 0) for k in wide])
        for d in range(1, rows + 1)
    ]
    plain["recomputed"] = deltas(pairs, WHOLE, guarantee["epsilon"]) | {"delta_probabilistic": "1"}
    return asked("count", max_rows_per_unit=rows, guarantee=guarantee), plain


Made = tuple[Plain, Plain]


def check(query: Plain, plain: Plain, file: str = FILE, **entry: Any) -> standalone.Mechanism:
    own = {"mechanism": plain["mechanism"], **plain["guarantee"], **entry}
    read = query_of(query, max_rows_per_unit=3, neighbors="add_remove")
    return standalone.check_mechanism(file, plain, read, own)


@pytest.mark.parametrize("made", [ring, line, integer])
@pytest.mark.parametrize("definition", ["approximate", "probabilistic"])
def test_a_mechanism_satisfies_what_it_claims_and_no_less(
    made: Callable[[Plain], Made], definition: str
) -> None:
    guarantee = APPROXIMATE | {"definition": definition}
    used, _ = check(*made(guarantee))
    _, plain = made(guarantee)
    stated = Fraction(plain["recomputed"][f"delta_{definition}"])
    assert 0 <= stated - used < Fraction(1, 10**60)
    check(*made(guarantee | {"delta": standalone.exact(used)}))
    if used < 1:
        less = standalone.exact(used - Fraction(1, 10**30))
        with refused(f"{FILE}: guarantee: found δ "):
            check(*made(guarantee | {"delta": less}))


def test_a_pure_claim_leaves_no_mass_alone() -> None:
    pure = {"definition": "pure", "epsilon": "2", "delta": "0"}
    with refused("guarantee: found δ"):
        check(*line(pure))
    assert check(*ring(pure))[0] == 0
    with refused("guarantee: found δ 1, expected 0"):
        check(*integer(pure))


FORGED: list[tuple[Callable[[], Made], str, Any, str]] = [
    (ring, "schema", "dp-release/mechanism/v2", "schema"),
    (ring, "query", "other", "query"),
    (ring, "group", [4], "group"),
    (ring, "directed", True, "directed"),
    (ring, "total", str(2**22), "weights"),
    (ring, "weights", ["5", "1", "2"], "weights"),
    (ring, "weights", [str(2**22), str(2**22)], "weights"),
    (ring, "weights", [str(2**23), "0", "0"], "weights: found no noise"),
    (ring, "sensitivity", [[2], [1]], "sensitivity"),
    (ring, "sensitivity", [[1]], "sensitivity"),
    (ring, "sensitivity", [[0], [1], [2]], "sensitivity"),
    (ring, "sensitivity", [], "sensitivity, distances"),
    (ring, "recomputed.delta_probabilistic", "0.5", "delta_probabilistic"),
    (ring, "recomputed.delta_approximate", "0.5", "delta_approximate"),
    (ring, "design.loss", "absolute", "design.loss: found absolute"),
    (ring, "design.bounded_loss", "0.51", "design.bounded_loss"),
    (ring, "design.objective", "0.51", "design.bounded_loss"),
    (ring, "design.multipliers", [{"distance": 1, "prices": ["1"]}], "design.multipliers"),
    (ring, "design.bound_of", ON_THE_LINE, "design.bound_of: found modular"),
    (ring, "design.lower_bound", "0.500000001", "design.lower_bound"),
    (ring, "design.gap", "0.250", "design.gap"),
    (ring, "design.gap", "0.2", "design.gap"),
    (ring, "total", "1", "total: found 1"),
    (ring, "total", "3", "total: found 3"),
    (ring, "total", "0", "total: found 0"),
    (ring, "total", str(2**260), "total: found 18"),
    (ring, "total", str(2**259), "weights"),
    (ring, "total", "2", "weights"),
    (line, "total", str(2**62), "rows"),
    (line, "total", str(2**63), "total: found 92"),
    (line, "rows.1", ["8", "0", "0", "0"], "rows: found no noise"),
    (line, "rows.1", ["2", "4", "1", "2"], "rows: found [(4, 8), (4, 9)"),
    (line, "rows.1", ["2", "4", "2"], "rows"),
    (line, "rows", [["2", "4", "1", "1"]] * 3, "rows"),
    (line, "pairs", [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3]], "pairs"),
    (line, "pairs", [[1, 0], [0, 1], [1, 2], [2, 1], [2, 3], [3, 2]], "pairs"),
    (line, "pairs", [], "sensitivity, distances"),
    (line, "pairs", [[0, 2], [1, 3], [2, 0], [3, 1]], "sensitivity, distances: found without [1]"),
    (line, "design.bound_of", ON_THE_LINE, "design.bound_of: found channel"),
    (integer, "total", str(2**62), "noise"),
    (integer, "total", str(2**63), "total"),
    (integer, "noise.low", -(2**62) - 1, "noise"),
    (integer, "distances", [[2, 2]], "sensitivity, distances: found without [1]"),
    (integer, "distances", [], "sensitivity, distances"),
    (integer, "distances", [[0, 1]], "distances: found (0, 1), expected ascending"),
    (integer, "distances", [[2, 1]], "distances: found (2, 1), expected ascending"),
    (integer, "distances", [[1, 1], [2, 3]], "distances: found (2, 3), expected ascending"),
    (integer, "distances", [[1, 1], [1, 3]], "distances: found (1, 3), expected ascending"),
    (integer, "distances", [[1, 1], [3, 4], [5, 5]], "distances: found (5, 5), expected ascending"),
    (integer, "distances", [[1, 10]], "distances: found (1, 10), expected ascending"),
    (integer, "low_end", [[0, 1]], "low_end: found (0, 1)"),
    (integer, "low_end", [[1, -1]], "low_end: found (1, -1)"),
    (integer, "low_end", [[2, 8], [1, 8]], "low_end: found (1, 8)"),
    (integer, "low_end", [[2, 9]], "low_end: found (2, 9)"),
    (integer, "high_end", [[2, 1]], "high_end: found (2, 1)"),
    (integer, "high_end", [[1, 1]], "high_end: found (1, 1)"),
    (integer, "high_end", [[2, -9]], "high_end: found (2, -9)"),
    (integer, "low_end", [[10, 0], [1, -1]], "low_end, high_end: found [11, 0]"),
    (integer, "recomputed.delta_probabilistic", "0.5", "delta_probabilistic"),
]


NEAR = 2**21
"""How far from its end the table of an end may reach on more than 2^22 answers."""


@pytest.mark.parametrize(
    ("end", "runs", "size", "is_near"),
    [
        ("low_end", [[NEAR - 1, 1]], 2**22 + 1, True),
        ("low_end", [[NEAR, 1]], 2**22 + 1, False),
        ("low_end", [[NEAR, 1]], 2**22, True),
        ("low_end", [[1, 0], [NEAR - 1, -1]], 2**40, True),
        ("low_end", [[1, 0], [NEAR, -1]], 2**40, False),
        ("low_end", [[1, NEAR]], 2**40, False),
        ("high_end", [[NEAR - 1, -1]], 2**22 + 1, True),
        ("high_end", [[NEAR, -1]], 2**22 + 1, False),
        ("high_end", [[NEAR, -1]], 2**22, True),
        ("high_end", [[NEAR - 1, 1], [1, 0]], 2**40, True),
        ("high_end", [[NEAR, 1], [1, 0]], 2**40, False),
        ("high_end", [[1, -NEAR]], 2**40, False),
    ],
)
def test_a_table_of_a_wide_domain_stays_near_its_end(
    end: str, runs: list[list[int]], size: int, is_near: bool
) -> None:
    query, plain = integer()
    query["domain"] = {"ordered": {"min": 0, "max": size - 1}}
    plain |= {"group": [size], end: runs}
    if is_near:
        check(query, plain)
        return
    with refused(f"{FILE}: {end}: found "):
        check(query, plain)


@pytest.mark.parametrize("place", range(len(FORGED)))
def test_a_field_that_does_not_fit_is_refused(place: int) -> None:
    made, at, value, says = FORGED[place]
    query, plain = made()
    set_in(plain, at, value)
    with refused(f"{FILE}: {says}"):
        check(query, plain)


@pytest.mark.parametrize(
    ("made", "change"),
    [
        (ring, {"recomputed.delta_probabilistic": "7/8"}),
        (ring, {"design.lower_bound": "0.5", "design.gap": "0"}),
        (ring, {"design.bound_of": "modular noise"}),
        (line, {"design.bounded_loss": "1/2"}),
        (integer, {"low_end": [[1, 9]], "high_end": [[1, -9]]}),
        (integer, {"low_end": [[2, 8], [1, 7]]}),
        (integer, {"high_end": [[1, 0], [8, 1], [1, 0]]}),
        (integer, {"low_end": [[10, 0]]}),
        (integer, {"low_end": [[5, 1]], "high_end": [[5, -1]]}),
    ],
)
def test_a_field_that_fits_is_read(made: Callable[[], Made], change: Plain) -> None:
    query, plain = made()
    for at, value in change.items():
        set_in(plain, at, value)
    check(query, plain)


def test_there_are_a_million_distances_at_most() -> None:
    for last in (10**6 - 1, 10**6, 2**52):
        query, plain = integer()
        plain["distances"], plain["group"] = [[1, last], [2**53 - 2, 2**53 - 2]], [2**53 - 1]
        plain["recomputed"] = deltas([([*MASSES.values()], [0] * 5)], WHOLE, "1/2")
        plain["recomputed"]["delta_probabilistic"] = "1"
        query["domain"] = {"integers": {}}
        if last < 10**6:
            check(query, plain)
            continue
        with refused(f"{FILE}: distances: found {last + 1}, expected at most 10^6 in all"):
            check(query, plain)


def test_every_vector_of_a_cycle_is_there() -> None:
    query, plain = ring()
    four = {"group": [4], "weights": ["5", "1", "1", "1"], "total": "8", "sensitivity": [[2]]}
    with refused(f"{FILE}: sensitivity, distances: found without [(1,), (3,)]"):
        check(query | {"domain": {"cyclic": 4}}, plain | four)


def geometric(distance: int, epsilon: str, **guarantee: str) -> Made:
    """A count on all integers, and noise that falls by e^-1 at each step."""
    ratio = least_ratio(Fraction(1), 1) + 2**8
    noise = geometric_noise(ratio)
    lengths, weights = zip(*noise.runs, strict=True)
    tail = {"period": 1, "ratio": str(ratio)}
    plain: Plain = {"low": noise.low, "lengths": list(lengths), "left": tail, "right": tail}
    plain["weights"] = list(map(str, weights))
    claim = {"definition": "pure", "epsilon": epsilon, "delta": "0", **guarantee}
    file = stated("integer", [2**53 - 1], 2**62, claim, noise=plain, distances=[[1, distance]])
    file |= {"low_end": [], "high_end": []}
    file["recomputed"] = {"delta_approximate": "0", "delta_probabilistic": "0"}
    file["recomputed"]["epsilon_everywhere"] = "1"
    return asked("count", max_rows_per_unit=1, domain={"integers": {}}, guarantee=claim), file


def test_noise_without_a_delta_is_pure() -> None:
    assert check(*geometric(1, "1"))[0] == 0
    with refused(f"{FILE}: guarantee: found δ 1, expected 0"):
        check(*geometric(1, "0.999"))
    query, plain = geometric(1, "1")
    plain["recomputed"]["delta_probabilistic"] = "1"
    with refused(f"{FILE}: delta_probabilistic"):
        check(query, plain)


def test_noise_far_out_that_is_not_pure_has_a_delta_of_1() -> None:
    with refused(f"{FILE}: guarantee: found δ 1, expected 0.5"):
        check(*geometric(300, "100", definition="approximate", delta="0.5"))


def test_a_file_may_state_more_distances_than_there_are() -> None:
    query, plain = integer(rows=3)
    query["max_rows_per_unit"] = 1
    check(query, plain)
    plain["distances"] = [[1, 1], [3, 9]]
    wide = deltas([([*MASSES.values()], [0] * 5)], WHOLE, "1/2")
    plain["recomputed"] = wide | {"delta_probabilistic": "1"}
    check(query, plain)


@pytest.mark.parametrize("name", ["mechanisms/own.json", "mechanisms/first.json"])
def test_a_file_is_named_by_its_path(name: str) -> None:
    query, plain = ring()
    plain["query"] = name.split("/")[1].removesuffix(".json")
    check(query, plain, name)


def test_a_family_fits_its_domain() -> None:
    query, plain = ring()
    with refused(f"{FILE}: mechanism: found channel, expected ('modular',)"):
        check(query, plain, mechanism="channel")
    with refused(f"{FILE}: mechanism: found modular"):
        check(*line(), mechanism="modular")
    with refused(f"{FILE}: mechanism: found permute_and_flip"):
        check(query, plain, mechanism="permute_and_flip")
    with refused(f"{FILE}: mechanism: found 'channel', expected 'modular'"):
        check(query, plain | {"mechanism": "channel"}, mechanism="modular")
    named, plain = line()
    check(named | {"mechanism": "channel"}, plain)
    with refused(f"{FILE}: design.method: found 'staircase', expected 'baseline exponential'"):
        check(named | {"mechanism": "exponential"}, plain)
    plain["design"]["method"] = "baseline exponential"
    check(named | {"mechanism": "exponential"}, plain)
    _, channel = line()
    channel["design"]["method"] = "baseline randomised_response"
    four = query | {"domain": {"cyclic": 4}, "mechanism": "randomised_response"}
    with refused(f"{FILE}: mechanism: found channel, expected one ordered part"):
        check(four, channel)


@pytest.mark.parametrize("field", ["definition", "epsilon", "delta"])
def test_a_file_repeats_the_guarantee_of_its_entry(field: str) -> None:
    other: Plain = {"definition": "probabilistic", "epsilon": "0.5", "delta": "1.0"}
    with refused(f"{FILE}: guarantee.{field}: found"):
        check(*ring(), **{field: other[field]})


def test_noise_in_two_dimensions_is_rolled_by_both() -> None:
    group = [2, 3]
    weights = [5, 1, 1, 4, 3, 2]
    for a, b in product(range(2), range(3)):
        moved = [weights[(x + a) % 2 * 3 + (y + b) % 3] for x, y in product(range(2), range(3))]
        assert standalone.rolled(weights, group, (a, b)) == moved
    deep = list(range(24))
    found = standalone.rolled(deep, [2, 3, 4], (1, 2, 3))
    places = product(range(2), range(3), range(4))
    assert found == [deep[((x + 1) % 2 * 3 + (y + 2) % 3) * 4 + (z + 3) % 4] for x, y, z in places]


def test_a_cell_counts_what_lies_within_its_distance() -> None:
    for made, far in ((line, 3), (integer, 3)):
        query, plain = made(rows=3)
        cell = check(query, plain)[1]
        for most in (1, 2, 3):
            near = check(*made(rows=most))[1]
            assert cell(most, Fraction(1, 4)) == near(most, Fraction(1, 4))
        assert cell(1, Fraction(1, 4)) != cell(far, Fraction(1, 4))
    weights = [str(each) for each in (7, 4, 2, 1, 2)]
    query, plain = ring()
    plain |= {"group": [5], "weights": weights, "total": "16", "sensitivity": [[1], [2], [3], [4]]}
    rolls = [
        ([*map(int, weights)], [int(weights[(i + d) % 5]) for i in range(5)]) for d in range(1, 5)
    ]
    plain["recomputed"] = deltas(rolls, 16, "1/2")
    cell = check(query | {"domain": {"cyclic": 5}}, plain)[1]
    whole = [standalone.Pairs(dict.fromkeys(zip(p, q, strict=True), 1), 16) for p, q in rolls]
    step = Fraction(1, 4)
    assert cell(0, step) == cell(2, step) != cell(1, step)
    assert cell(1, step)[0] == max(
        -(-standalone.PARTS * each.excess(SCALE) // (SCALE * 16)) for each in (whole[0], whole[3])
    )


def test_large_groups_are_compared_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "compared_within", lambda *_: ([], None))
    for size, says in ((1000, ""), (1002, "size: found 1002, expected at most 10^9 in all")):
        domain = {"nominal": ["x", "y"]}
        query = query_of(asked("mode", of="sort", domain=domain, noise="on_answer"))
        query.group, query.source = [10**6], "empirical"
        vectors = [[i] for i in range(1, size // 2 + 1)]
        vectors += [[10**6 - i] for i in range(size // 2, 0, -1)]
        plain = {"weights": ["1"] * 10**6, "total": str(10**6), "sensitivity": vectors}
        if not says:
            standalone.modular("f", plain, query)
            continue
        with refused(f"f: {says}"):
            standalone.modular("f", plain, query)


def compared(*apart: tuple[int, list[int]], total: int = 8) -> tuple[list[int], Any]:
    """Which pairs are made when they are read, and the profile of a cell; q is p in each."""
    made: list[int] = []

    def of(masses: list[int]) -> tuple[list[int], list[int]]:
        made.append(len(masses))
        return masses, masses

    pairs, cell = standalone.compared_within(list(apart), of, total)
    assert made == []
    assert next(iter(pairs)).total == total
    assert made == [len(apart[0][1])]
    made.clear()
    return made, cell


def test_one_pair_is_compared_after_another() -> None:
    made, cell = compared((1, [1, 2]), (2, [3]), (3, [4, 4, 4]))
    for far, sizes in ((1, [2]), (2, [2, 1]), (3, [2, 1, 3]), (9, [2, 1, 3]), (0, [2, 1, 3])):
        assert cell(far, Fraction(1)) == [0]
        assert made == sizes
        made.clear()


def test_many_masses_leave_a_profile_rough() -> None:
    half = list(range(1, 150_000))
    # Each list has a value for each of its masses, and one.
    _, cell = compared((1, half), (2, half[::-1]), (2, [*half[:-1], 7 * 10**6]), (3, [1]))
    assert cell(2, Fraction(1)) == [0]
    assert cell(3, Fraction(1)) == []


def test_many_comparisons_leave_a_profile_rough() -> None:
    ones = [1] * 10**6
    made, cell = compared(*[(1, ones)] * 10, (2, [1]), (3, [1]))
    assert cell(1, Fraction(1)) == [0]
    made.clear()
    assert cell(3, Fraction(1)) == []
    assert len(made) == 11


@pytest.mark.parametrize("distances", [{1}, {1, 2}, {2, 4}, {3}, {1, 2, 3, 4, 5}, {3, 6, 9, 12}])
@pytest.mark.parametrize("epsilon", ["0.01", "1/2", "3"])
def test_the_closed_bound_is_that_of_the_package(distances: set[int], epsilon: str) -> None:
    for degree, delta in product((0, 1, 2), (Fraction(0), Fraction(1, 100))):
        found = standalone.closed_bound(distances, degree, Fraction(epsilon), delta)
        expected = lower_bound(sorted(distances), Fraction(epsilon), delta, degree)
        assert max(found, Fraction(0)) == expected


def test_there_is_no_closed_bound_of_other_distances() -> None:
    for distances, epsilon in (({1, 3}, Fraction(1)), ({1, 2}, Fraction(0)), ({2, 3}, Fraction(1))):
        assert standalone.closed_bound(distances, 0, epsilon, Fraction(0)) == 0


def prices(distance: int, *twentieths: int) -> Plain:
    return {"distance": distance, "prices": [str(2**80 * each // 20) for each in twentieths]}


PRICED: list[Plain] = [prices(1, 0, 0, 8, 16, 17), prices(3, 0, 0, 0, 1, 3)]


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("delta", ["0", "0.000001", "0.001", "0.9"])
@pytest.mark.parametrize("listed", [PRICED[:1], PRICED[1:], PRICED])
def test_prices_prove_the_bound_of_the_package(
    degree: int, delta: str, listed: list[Plain]
) -> None:
    plain = {"guarantee": APPROXIMATE | {"delta": delta}, "design": {"multipliers": listed}}
    found = standalone.priced_bound("f", plain, {1, 2, 3}, degree)
    prices = {each["distance"]: tuple(map(int, each["prices"])) for each in listed}
    expected = Multipliers(prices).lower_bound(Fraction(1, 2), Fraction(delta), degree)
    assert found == max(expected, Fraction(0))
    assert (found > 0) == (delta != "0.9" and listed[0] == PRICED[0])


@pytest.mark.parametrize(
    "listed",
    [
        [prices(1, 0, 0, 10, 0, 0)],
        [prices(1, *[0] * 13), prices(3, *[0] * 6, 10, *[0] * 6)],
    ],
)
def test_the_least_value_may_be_the_first_of_constant_prices(listed: list[Plain]) -> None:
    plain = {"guarantee": PURE | {"delta": "0"}, "design": {"multipliers": listed}}
    found = standalone.priced_bound("f", plain, {1, 3}, 0)
    by_distance = {each["distance"]: tuple(map(int, each["prices"])) for each in listed}
    assert found == Multipliers(by_distance).lower_bound(Fraction(1), Fraction(0), 0)
    # 1 + ½·(1 − Ē), beyond the last k of which some price is not constant.
    assert Fraction(14, 100) < found < Fraction(15, 100)


@pytest.mark.parametrize(
    "listed",
    [
        [PRICED[0], {"distance": 3, "prices": ["1", "2", "3"]}],
        [{"distance": 1, "prices": ["1", "2"]}],
        [PRICED[0], PRICED[0]],
        [PRICED[0] | {"distance": 4}],
    ],
)
def test_multipliers_have_one_form(listed: list[Plain]) -> None:
    plain = {"guarantee": APPROXIMATE, "design": {"multipliers": listed}}
    with refused("f: multipliers: found "):
        standalone.priced_bound("f", plain, {1, 2, 3}, 1)


def test_the_work_on_multipliers_is_counted_before_it_is_done() -> None:
    most = 10**6 // 2 - 2
    for far in (most, most + 1, 2**52):
        listed = [PRICED[0], PRICED[1] | {"distance": far}]
        plain = {"guarantee": APPROXIMATE | {"delta": "0"}, "design": {"multipliers": listed}}
        if far == most:
            standalone.priced_bound("f", plain, {1, far}, 1)
            continue
        with refused(f"f: multipliers: found {2 * far + 4}, expected at most 10^6 (number times"):
            standalone.priced_bound("f", plain, {1, far}, 1)


def on_the_line(least: str, loss: str = "error_rate", **design: Any) -> Made:
    """Noise on the integers whose loss far from the ends is compared with a bound."""
    query, plain = integer(APPROXIMATE | {"delta": "0.35"})
    query["loss"] = loss
    degree = standalone.LINE_LOSSES.index(loss)
    moment = sum(abs(k) ** degree * mass for k, mass in MASSES.items() if k)
    bounded = standalone.exact(Fraction(-(-moment * 10**18 // WHOLE), 10**18))
    gap = standalone.exact(Fraction(bounded) - Fraction(least))
    plain["design"] |= {"bound_of": ON_THE_LINE, "bound": "proved", "loss": loss}
    plain["design"] |= {"objective": "0.4", "bounded_loss": bounded, "gap": gap}
    plain["design"] |= {"lower_bound": least, **design}
    return query, plain


@pytest.mark.parametrize("loss", ["error_rate", "absolute", "squared"])
def test_what_is_bounded_on_the_line_is_the_moment_of_the_noise(loss: str) -> None:
    check(*on_the_line("0", loss))
    for wrong in ("0.499999999999999999", "0.5000", "0.6"):
        with refused(f"{FILE}: design.bounded_loss"):
            check(*on_the_line("0", loss, bounded_loss=wrong))


def test_a_proved_bound_is_proved() -> None:
    most = standalone.closed_bound({1}, 0, Fraction(1, 2), Fraction(7, 20))
    right = standalone.exact(Fraction(int(most * 10**18), 10**18))
    wrong = standalone.exact(Fraction(int(most * 10**18) + 1, 10**18))
    check(*on_the_line(right))
    check(*on_the_line(standalone.exact(most)))
    with refused(f"{FILE}: lower_bound: found {wrong}, expected at most "):
        check(*on_the_line(wrong))
    check(*on_the_line(wrong, bound="solver"))
    with refused(f"{FILE}: lower_bound"):
        check(*on_the_line("0.000000000000000001", "absolute"))
    zero = [{"distance": 1, "prices": ["0"]}]
    check(*on_the_line(right, multipliers=zero))
    with refused(f"{FILE}: lower_bound"):
        check(*on_the_line(wrong, multipliers=zero))


def test_prices_prove_more_than_the_closed_form() -> None:
    """With a δ above 0 only multipliers bound the absolute loss."""
    listed = [prices(1, 0, 8, 16)]
    _, plain = on_the_line("0", "absolute", multipliers=listed)
    best = standalone.priced_bound("f", plain, {1}, 1)
    assert best > Fraction(1, 10)
    for above in (0, 1):
        stated = Fraction(int(best * 10**18) + above, 10**18)
        text = standalone.exact(stated)
        query, plain = on_the_line(text, "absolute", multipliers=listed)
        if not above:
            check(query, plain)
            continue
        with refused(f"{FILE}: lower_bound: found {text}"):
            check(query, plain)


def test_a_bound_of_nothing_is_proved_by_nothing() -> None:
    """Of distances 2 and 4 and a large ε the closed form of the squared loss is below 0."""
    assert standalone.closed_bound({2, 4}, 2, Fraction(9), Fraction(0)) < 0
    _, plain = on_the_line("0", "squared")
    plain["guarantee"] = {"definition": "pure", "epsilon": "9", "delta": "0"}
    noise = standalone.Noise("f", plain["noise"], WHOLE)
    standalone.check_line_bound("f", plain, noise, {2, 4})
    plain["design"]["loss"] = "noise_squared"
    with refused("f: design.loss: found noise_squared"):
        standalone.check_line_bound("f", plain, noise, {2, 4})


def test_a_mechanism_of_a_table_names_any_loss() -> None:
    query, plain = integer()
    read = query_of(query, max_rows_per_unit=1)
    plain["design"]["loss"] = "squared"
    entry = {"mechanism": "integer", **plain["guarantee"]}
    with refused(f"{FILE}: design.loss"):
        standalone.check_mechanism(FILE, plain, read, entry)
    read.is_table = True
    standalone.check_mechanism(FILE, plain, read, entry)


def test_a_mechanism_file_has_the_form_of_its_family() -> None:
    query, plain = ring()
    with refused(f"{FILE}: "):
        check(query, plain | {"noise": {}})
    assert PURE["definition"] == "pure"
