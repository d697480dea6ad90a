"""The verifier in one file: mechanisms on statistics, and the tables of gaps."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import pytest

from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.verification import standalone
from tests.verification.standalone.alone import Plain, asked, query_of, refused

UNIT, SCALE, TOTAL = 2**64, 10**40, 2**62
FILE = "mechanisms/own.json"
ONE, STEP = Fraction(1), Fraction(1, 64)


@pytest.mark.parametrize("ratio", [1, 2**40, UNIT // 3, UNIT // 2, UNIT - 2**20, UNIT - 1])
def test_a_loss_is_an_upper_bound_of_its_logarithm(ratio: int) -> None:
    """At most 10⁻⁴⁰ too large, by a logarithm of twice as many digits."""
    many = Context(prec=160)
    exact = Fraction(many.ln(many.divide(Decimal(UNIT), Decimal(ratio))))
    assert exact < standalone.loss_of(ratio) <= exact + Fraction(1, 10**40)


@pytest.mark.parametrize("factor", [1, 2, 7, 1024])
def test_only_the_least_ratio_is_accepted(factor: int) -> None:
    for epsilon in (ONE, Fraction(1, 100)):
        least = least_ratio(epsilon, factor)
        standalone.check_ratio("f", least, factor, epsilon)
        for ratio in (least - 1, least + 1):
            with refused(f"f: ratio: found {ratio}, expected the least with {factor} times"):
                standalone.check_ratio("f", ratio, factor, epsilon)


def test_a_ratio_lies_between_0_and_1() -> None:
    standalone.check_ratio("f", 1, 1, Fraction(45))
    standalone.check_ratio("f", 1, 1, standalone.loss_of(1))
    for ratio in (0, UNIT, UNIT + 1, -1):
        with refused(f"f: ratio: found {ratio}"):
            standalone.check_ratio("f", ratio, 1, Fraction(45))
    with refused("f: ratio: found 2"):
        standalone.check_ratio("f", 2, 1, Fraction(45))


def test_a_ratio_is_refused_where_one_less_would_do() -> None:
    ratio = UNIT // 3
    standalone.check_ratio("f", ratio - 1, 1, standalone.loss_of(ratio - 1))
    with refused(f"f: ratio: found {ratio}"):
        standalone.check_ratio("f", ratio, 1, standalone.loss_of(ratio - 1))
    # No ratio below 1 has so small a loss.
    with refused(f"f: ratio: found {UNIT}"):
        standalone.check_ratio("f", UNIT, 10**9, Fraction(1, 10**12))


def on_statistic(family: str, factor: int, **own: Any) -> Plain:
    plain: Plain = {"schema": "dp-release/mechanism/v1", "query": "own", "mechanism": family}
    plain["guarantee"] = {"definition": "pure", "epsilon": "1", "delta": "0"}
    return plain | {"ratio": str(least_ratio(ONE, factor))} | own


TOP: Plain = {"categories": 6, "replaced": True}
Case = tuple[Plain, Plain, Plain]
"""A query, fields of ``privacy``, and its file."""
ONE_WAY: Plain = {"neighbors": "add_remove"}
QUARTERS: Plain = {"at": ["1/4", "3/4"]}
TREE: Plain = {"candidates": 9, "shares": ["0.25", "0.75"], "rows": 2, "spread": 16}
CASES: list[Case] = [
    (asked("mode"), {}, on_statistic("permute_and_flip", 2, spread=2, candidates=4)),
    (asked("mode"), ONE_WAY, on_statistic("permute_and_flip", 1, spread=1, candidates=4)),
    (asked("mode"), {}, on_statistic("exponential_mechanism", 2, spread=2, candidates=4)),
    (
        asked("mode", domain={"cyclic": 2}, max_rows_per_unit=1),
        {},
        on_statistic("two_categories", 1, spread=2),
    ),
    (
        asked("top"),
        {},
        on_statistic(
            "top_histogram",
            4,
            **TOP,
            **{"spread": 4, "members": 2, "touched": 2, "weight": 1},
            **{"counts": False, "histogram": False},
        ),
    ),
    (
        asked("top", counts=True),
        {},
        on_statistic(
            "top_histogram",
            4,
            **TOP,
            **{"spread": 4, "members": 2, "touched": 2, "weight": 1},
            **{"counts": True, "histogram": False},
        ),
    ),
    *(
        (
            asked("top", k=k, count=count, domain={"cyclic": 6}),
            privacy,
            on_statistic(
                "top_canonical",
                factor,
                **TOP | {"replaced": privacy == {}},
                **{"members": k, "spread": spread},
                **{"touched": 2 if count == "units" else 1, "weight": weight},
            ),
        )
        for k, count, privacy, weight, spread, factor in (
            (2, "units", {}, 1, 4, 4),
            (1, "units", {}, 1, 4, 2),
            (5, "units", {}, 1, 4, 2),
            (2, "rows", {}, 2, 4, 4),
            (2, "units", ONE_WAY, 1, 2, 2),
            (2, "rows", ONE_WAY, 2, 2, 2),
        )
    ),
    *(
        (
            asked("top", k=3, count=count),
            privacy,
            on_statistic(
                "top_peeled",
                factor,
                **TOP | {"replaced": privacy == {}},
                **{"members": 3, "spread": spread},
                **{"touched": 2 if count == "units" else 1, "weight": weight},
            ),
        )
        for count, privacy, weight, spread, factor in (
            ("units", {}, 1, 4, 6),
            ("rows", {}, 2, 4, 12),
            ("rows", ONE_WAY, 2, 2, 6),
        )
    ),
    (
        asked("quantiles", **QUARTERS),
        {},
        on_statistic(
            "joint_quantiles",
            1024 * 16,
            spread=16,
            candidates=9,
            sublevels=256,
            shares=TREE["shares"],
        ),
    ),
    *(
        (
            asked("quantiles", **QUARTERS),
            privacy,
            on_statistic(
                "quantile_tree",
                factor,
                **TREE | {"spread": spread},
                **{"replaced": privacy == {}, "block": block},
            ),
        )
        for privacy, block, spread, factor in (
            ({}, 1, 16, 4),
            ({}, 2, 16, 8),
            ({}, 8, 16, 8),
            (ONE_WAY, 1, 12, 2),
            (ONE_WAY, 3, 12, 4),
        )
    ),
]


def check(case: Case, **change: Any) -> standalone.Mechanism:
    query, privacy, plain = case
    read = query_of({"max_rows_per_unit": 2} | query, max_rows_per_unit=3, **privacy)
    plain = plain | change
    return standalone.check_mechanism(
        FILE, plain, read, {"mechanism": plain["mechanism"], **plain["guarantee"]}
    )


@pytest.mark.parametrize("place", range(len(CASES)))
def test_a_family_has_the_factor_of_the_page(place: int) -> None:
    plain = CASES[place][2]
    used, cell = check(CASES[place])
    in_range = plain["mechanism"] == "exponential_mechanism"
    assert used == 0
    assert cell(0, STEP) == standalone.pure_values(ONE, Fraction(0), STEP, in_range=in_range)
    for more in (-1, 1):
        with refused(f"{FILE}: ratio: found "):
            check(CASES[place], ratio=str(int(plain["ratio"]) + more))
    for name, value in plain.items():
        if name in ("schema", "query", "mechanism", "guarantee", "ratio", "block"):
            continue
        other = not value if isinstance(value, bool) else ["1/2"] if name == "shares" else value + 1
        with refused(f"{FILE}: {name}: found {other!r}, expected {value!r}"):
            check(CASES[place], **{name: other})


def test_noise_on_a_statistic_needs_some_epsilon() -> None:
    none = {"definition": "pure", "epsilon": "0", "delta": "0"}
    with refused(f"{FILE}: epsilon: found 0, expected above 0"):
        check(CASES[0], guarantee=none)


def noisy(ratio: int, **own: Any) -> Plain:
    """Geometric noise of a ratio."""
    noise = geometric_noise(ratio)
    lengths, weights = zip(*noise.runs, strict=True)
    tail = {"period": 1, "ratio": str(ratio)}
    plain: Plain = {"low": noise.low, "lengths": list(lengths), "left": tail, "right": tail}
    plain["weights"] = list(map(str, weights))
    whole = on_statistic("noisy_sums", 1) | {"noise": plain} | own
    del whole["ratio"]
    return whole


SUM = asked("sum", clamp=[0, 3], max_rows_per_unit=1)
MEAN = asked("mean", clamp=[0, 3], max_rows_per_unit=1)


def test_the_noise_of_a_sum_is_private_at_its_spread() -> None:
    ratio = least_ratio(ONE, 3)
    right: Case = (SUM, {}, noisy(ratio + 2**12, spread=3, sums=1))
    used, cell = check(right)
    assert used == 0
    noise = standalone.Noise("f", right[2]["noise"], TOTAL)
    assert cell(1, STEP) == cell(3, STEP) == noise.cell({3}, STEP)
    with refused(f"{FILE}: guarantee: found a pure δ above 0"):
        check((SUM, {}, noisy(ratio - 2**12, spread=3, sums=1)))
    with refused(f"{FILE}: noise: found a window"):
        check((SUM, {}, noisy(ratio, spread=3, sums=1, noise=right[2]["noise"] | {"low": 2**63})))


UNEVEN: Plain = {"low": -1, "lengths": [1, 1, 1], "left": None, "right": None}


def test_noise_with_two_peaks_is_compared_at_every_distance() -> None:
    """The masses 3, 1, 3 over and over: alike at even distances, and not at odd ones."""
    side = 3 * TOTAL // 8
    tail = {"period": 2, "ratio": str(UNIT - 2**40)}
    weights = [str(TOTAL // 8), str(side), str(TOTAL // 8), str(side)]
    noise = {"low": -2, "lengths": [1] * 4, "weights": weights, "left": tail, "right": tail}
    read = standalone.Noise("f", noise, TOTAL)
    assert not read.is_unimodal
    weak = {"definition": "pure", "epsilon": "2", "delta": "0"}
    plain = noisy(UNIT // 2, spread=2, sums=1, noise=noise, guarantee=weak)
    query = SUM | {"clamp": [0, 2], "guarantee": {"definition": "pure", "epsilon": "2"}}
    _, cell = check((query, {}, plain))
    assert cell(0, STEP) == standalone.pure_values(Fraction(2), Fraction(0), STEP)
    low = {"definition": "pure", "epsilon": "1", "delta": "0"}
    with refused(f"{FILE}: guarantee: found a pure δ above 0, expected 0 at every distance"):
        check((SUM | {"clamp": [0, 2]}, {}, plain | {"guarantee": low}))
    for rows, says in ((10**6 // 2, "size: found"), (10**6 // 2 + 1, "spread: found 1000002")):
        large = query | {"clamp": [0, 2], "max_rows_per_unit": rows}
        owner = query_of(large, max_rows_per_unit=10**6, neighbors="add_remove")
        with refused(f"{FILE}: {says}"):
            standalone.check_statistic(FILE, plain | {"spread": 2 * rows}, owner, Fraction(2))


def test_every_distance_up_to_the_spread_counts() -> None:
    """The masses 3, 1, 3/2, 1/2 …: ratios of 6, 2 and 12 at the distances 1, 2 and 3."""
    tail = {"period": 2, "ratio": str(UNIT // 2)}
    weights = [str(TOTAL // 8), str(3 * TOTAL // 8)] * 2
    noise = {"low": -2, "lengths": [1] * 4, "weights": weights, "left": tail, "right": tail}
    for epsilon, most in (("1.7", 0), ("1.8", 2), ("2.4", 2), ("2.5", 3)):
        weak = {"definition": "pure", "epsilon": epsilon, "delta": "0"}
        for spread in (1, 2, 3):
            query = SUM | {"clamp": [0, spread], "guarantee": weak}
            plain = noisy(UNIT // 2, spread=spread, sums=1, noise=noise, guarantee=weak)
            if spread <= most:
                check((query, {}, plain))
                continue
            with refused(f"{FILE}: guarantee: found a pure δ above 0"):
                check((query, {}, plain))


def test_the_noise_of_two_sums_falls_evenly_on_both_sides() -> None:
    ratio = least_ratio(ONE, 6)
    two = noisy(ratio, spread=6, sums=2)
    case: Case = (MEAN, {}, two)
    assert check(case)[1](0, STEP) == standalone.pure_values(ONE, Fraction(0), STEP)
    with refused(f"{FILE}: ratio: found {ratio + 1}, expected the least with 6 times"):
        check((MEAN, {}, noisy(ratio + 1, spread=6, sums=2)))
    noise = two["noise"]
    for right in ({"period": 1, "ratio": str(ratio - 1)}, None):
        with refused(f"{FILE}: noise.right: found"):
            check(case, noise=noise | {"right": right})
    with refused(f"{FILE}: ratio: found 0, expected the least with 6 times"):
        check(case, noise=noise | {"left": None, "right": None})
    low, middle, high = map(int, noise["weights"])
    steep = [str(low - 2**30), str(middle + 2**31), str(high - 2**30)]
    with refused(f"{FILE}: noise: found a step above 1/ρ"):
        check(case, noise=noise | {"weights": steep})
    with refused(f"{FILE}: sums: found 1, expected 2"):
        check(case, sums=1)


def test_a_sum_far_from_its_tails_has_the_profile_of_its_claim() -> None:
    """257 periods of a tail: proved period by period, and not as noise on the integers."""
    plain = noisy(least_ratio(ONE, 257) + 2**14, spread=257, sums=1)
    _, cell = check((SUM | {"clamp": [0, 257]}, {}, plain))
    assert cell(0, STEP) == standalone.pure_values(ONE, Fraction(0), STEP)


@pytest.mark.parametrize(
    ("size", "is_read"),
    [((3 * 10**5, False), True), ((3 * 10**5 + 1, False), False), ((1, True), False)],
)
def test_a_sum_with_much_work_has_the_profile_of_its_claim(
    size: tuple[int, bool], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone.Noise, "size", lambda _, distances: (distances, *size))
    plain = noisy(least_ratio(ONE, 3) + 2**12, spread=3, sums=1)
    _, cell = check((SUM, {}, plain))
    claimed = standalone.pure_values(ONE, Fraction(0), STEP)
    noise = standalone.Noise("f", plain["noise"], TOTAL)
    assert cell(0, STEP) == (noise.cell({3}, STEP) if is_read else claimed)
    assert noise.cell({3}, STEP) != claimed


WHOLE = TOTAL - 4


def gaps(size: int, cap: int, lists: list[list[int]]) -> Plain:
    weights = [list(map(str, each)) for each in lists]
    return {"categories": size, "cap": cap, "spread": 2, "weights": weights}


def states(size: int, cap: int) -> list[tuple[int, ...]]:
    return sorted(
        each
        for each in product(range(cap + 1), repeat=size)
        if each[0] == 0 and list(each) == sorted(each)
    )


def weighed(size: int, cap: int, fall: int) -> list[list[int]]:
    """Weights that are divided by ``fall`` for each step of a gap."""
    lists = []
    for state in states(size, cap):
        parts = [fall ** (cap - gap) for gap in state]
        unit = WHOLE // sum(parts)
        own = [unit * part for part in parts]
        leaders = state.count(0)
        missing = WHOLE - sum(own)
        own = [
            each + (missing // leaders if gap == 0 else 0)
            for each, gap in zip(own, state, strict=True)
        ]
        lists.append(own)
    return lists


def worst(size: int, cap: int, lists: list[list[int]]) -> Fraction:
    """The largest ratio of two weights of a category, by trying all votes of one unit."""
    table = dict(zip(states(size, cap), lists, strict=True))

    def weights(scores: list[int]) -> list[int]:
        below = [min(max(scores) - score, cap) for score in scores]
        state = tuple(sorted(below))
        return [table[state][state.index(gap)] for gap in below]

    largest = Fraction(1)
    for scores in product(range(cap + 3), repeat=size):
        before = weights(list(scores))
        for rises, falls in product(range(size + 1), repeat=2):
            moved = list(scores)
            for place, by in ((rises, 1), (falls, -1)):
                if place < size:
                    moved[place] += by
            for v, w in zip(before, weights(moved), strict=True):
                largest = max(largest, Fraction(v, w), Fraction(w, v))
    return largest


@pytest.mark.parametrize(("size", "cap", "fall"), [(3, 1, 2), (3, 2, 2), (3, 3, 1), (4, 1, 3)])
def test_a_gap_table_is_private_at_its_largest_ratio(size: int, cap: int, fall: int) -> None:
    lists = weighed(size, cap, fall)
    plain = gaps(size, cap, lists)
    if any(sum(each) != WHOLE for each in lists):
        lists = [[each[0] + WHOLE - sum(each), *each[1:]] for each in lists]
    assert all(sum(each) == WHOLE for each in lists)
    plain = gaps(size, cap, lists)
    largest = ceil(worst(size, cap, lists) * SCALE)
    standalone.check_gaps("f", plain, largest)
    with refused("f: weights: found (", "expected within ε"):
        standalone.check_gaps("f", plain, largest - 1)


SHARES = [(1, 1, 1), (1, 1, 1), (41, 41, 18), (46, 27, 27), (40, 33, 27), (44, 28, 28)]
"""Of the states of three categories up to a gap of 2: most moves where a vote only falls."""


def test_a_vote_that_only_falls_is_a_change() -> None:
    lists = [[WHOLE * share // sum(own) for share in own] for own in SHARES]
    lists = [[a, b, c] if a == b != c else [WHOLE - b - c, b, c] for a, b, c in lists]
    lists = [[(WHOLE - c) // 2] * 2 + [c] if a == b != c else [a, b, c] for a, b, c in lists]
    lists = [[a, b, c - (a + b + c - WHOLE)] for a, b, c in lists]
    largest = worst(3, 2, lists)
    assert abs(largest - Fraction(100, 54)) < Fraction(1, 10**9)
    standalone.check_gaps("f", gaps(3, 2, lists), ceil(largest * SCALE))
    with refused("f: weights: found ("):
        standalone.check_gaps("f", gaps(3, 2, lists), ceil(largest * SCALE) - 1)


THIRDS = [WHOLE // 3] * 3
LISTS = [THIRDS, [WHOLE // 2 - 8, WHOLE // 2 - 8, 16], [WHOLE - 32, 16, 16]]
GAPS = gaps(3, 1, LISTS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"spread": 1}, "spread: found 1"),
        ({"categories": 2}, "categories: found (2, 1), expected 3 to 6"),
        ({"categories": 7}, "categories: found (7, 1), expected 3 to 6"),
        ({"categories": 6}, "weights: found [(3,"),
        ({"cap": 0}, "categories: found (3, 0)"),
        ({"cap": 2}, "weights: found [(3,"),
        ({"cap": 254}, "weights: found [(3,"),
        ({"cap": 255}, "states: found (3, 255), expected at most 2^15"),
        ({"weights": GAPS["weights"][:2]}, "weights"),
        ({"weights": [*GAPS["weights"][:2], ["1", "1"]]}, "weights"),
        ({"weights": [*GAPS["weights"][:2], [str(WHOLE - 33), "16", "16"]]}, "weights"),
        ({"weights": [*GAPS["weights"][:2], [str(WHOLE - 33), "16", "17"]]}, "equal gaps"),
    ],
)
def test_a_gap_table_has_one_form(change: Plain, says: str) -> None:
    huge = 10**80
    if not says:
        standalone.check_gaps("f", GAPS | change, huge)
        return
    with refused(f"f: {says}"):
        standalone.check_gaps("f", GAPS | change, huge)


def test_a_gap_table_answers_a_mode_of_one_row() -> None:
    plain = on_statistic("gap_table", 1) | GAPS
    del plain["ratio"]
    mode = asked("mode", domain={"cyclic": 3}, max_rows_per_unit=1)
    e = {"definition": "pure", "epsilon": "50", "delta": "0"}
    used, cell = check(
        (mode | {"guarantee": {"definition": "pure", "epsilon": "50"}}, {}, plain), guarantee=e
    )
    assert (used, cell(0, ONE)) == (
        Fraction(0),
        standalone.pure_values(Fraction(50), Fraction(0), ONE),
    )
    with refused(f"{FILE}: weights: found (", "expected within ε"):
        check((mode, {}, plain))
    with refused(f"{FILE}: categories: found 4, expected 3"):
        check((mode, {}, plain), categories=4)
