"""The results of the sources as data: each has a test and a sheet, and each number is right."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from release.exact.domain import Topology
from release.exact.losses import LossName
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, deltas
from release.exact.sensitivity import Sensitivity
from research.figures import FIGURES
from research.kadam.least_delta import least_released
from research.printed import (
    GOLDEN,
    Form,
    bd_limit,
    bd_regions,
    bd_section_mode,
    bounded_difference,
    sd_limit,
    single_distance,
)
from research.programs import least_delta, noise_deltas, our_masses, printed, released
from research.published.clamping import discrete_gaussian, two_sided
from research.published.qin import gaussian_input, poisson_input, solve_exact, solve_relaxed
from research.published.sadeghi import count_law, solve_counts
from research.results import SOURCES, Result, Verdict, read_source, read_sources, results_markdown
from research.table_v import quantised_gaussian
from research.verbatim import Indicators
from tests.conftest import PROJECT
from tests.noise.test_solve import masses, solve
from tests.research.test_printed import delta_of
from tests.research.test_reference_numbers import one_sided, printed_program
from tests.research.test_statements import joint, variance_of

PROBABILISTIC = Definition.PROBABILISTIC
MATCHED = Fraction(4683, 10_000)
EVERY: dict[str, Result] = {
    f"{key} {result.name}": result for key in SOURCES for result in read_source(key).results
}


def program(size: int, width: int, epsilon: str, delta: str, indicators: Indicators) -> float:
    """f(0) of (13) with (13g)."""
    steps = list(range(1, width + 1))
    return float(printed_program(size, steps, epsilon, delta, indicators).masses[0])


def each(size: int, width: int, epsilon: str, delta: str) -> float:
    """f(0) by the definition, one-sided, in exact integers."""
    steps = list(range(1, width + 1))
    return masses(solve(size, steps, epsilon, delta, PROBABILISTIC, directed=True))[0]


@cache
def squared_law() -> list[float]:
    return masses(solve(9, [1, 2], "1", loss=LossName.NOISE_SQUARED))


@cache
def joint_57() -> np.ndarray:
    return joint(5, [(a, b) for a in range(3) for b in range(3)], 3, directed=True)


@cache
def joint_arbitrary() -> np.ndarray:
    return joint(7, [(a, b) for a in (1, 3) for b in (2, 5)], 3, directed=True)


def jump(n: int, rate: float) -> float:
    """ε_0 of (22), by halving."""
    low, high = 1e-6, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        mode = (1 - math.exp(-middle)) / (1 - math.exp(-(n + 1) * middle))
        low, high = (low, middle) if mode >= 1 - rate else (middle, high)
    return high


def error_rate(size: int, steps: list[int], *, directed: bool = False) -> float:
    return float(solve(size, steps, "1", directed=directed).objective)


def gain(name: str) -> float:
    x = {"gaussian": gaussian_input(), "poisson": poisson_input()}[name]
    best, relaxed = (f(x, Fraction(4), 15).distance for f in (solve_exact, solve_relaxed))
    return 100 * (1 - best / relaxed)


def gaussian_of_table_v() -> float:
    return 2 * float(quantised_gaussian(100.0).above(39))


def gaussian_exact() -> float:
    ratio = exp_bounds(Fraction(31 * 51, 200))[0]
    return float(quantised_gaussian(100.0).deltas(30, ratio).approximate)


@cache
def matched_gaussian() -> float:
    """The exact δ at ε = 2 of the Gaussian with the variance of the count distribution."""
    target = variance_of(count_law(6, Fraction(1, 2), Fraction(2)).noise)
    low, high = 0.01, 20.0
    for _ in range(45):
        middle = (low + high) / 2
        near = variance_of(discrete_gaussian(Fraction(middle).limit_denominator(10**9)))
        low, high = (middle, high) if near < target else (low, middle)
    gaussian = discrete_gaussian(Fraction(high).limit_denominator(10**9))
    return float(noise_deltas(gaussian, 2.0).approximate)


FIGURE_1 = count_law(6, Fraction("0.8"), Fraction("2.18"))
SMALL_ETA = count_law(2, Fraction("0.1"), Fraction("0.2"))


def figure_9(step: int, delta: str) -> float:
    definition = Definition.PURE if delta == "0" else PROBABILISTIC
    return masses(solve(8, [step], "0.75", delta, definition, directed=True))[0]


def program_of_counts(first: int, *, shared: bool) -> float:
    found = solve_counts(8, 4, 0.5, 1.0, first=first, shared=shared)
    assert found is not None
    return found.single_outcome_delta


def example_delta() -> float:
    found = solve_counts(3, 2, 0.5, 1.0)
    assert found is not None
    return found.single_outcome_delta


def both_signs_delta() -> float:
    law = one_sided(9, [1, 2, 3], "1.5")
    both = Sensitivity.of(law.group, [(1,), (2,), (3,)])
    return float(deltas(law, both, Fraction("1.5")).probabilistic)


def region_31() -> tuple[float, float]:
    (region,) = [r for r in bd_regions(24, 6, 0.6) if (r.h, r.j) == (3, 1)]
    law = bounded_difference(24, 6, 0.6, region.begins)
    return region.begins, delta_of(law, list(range(1, 7)), 0.6)


def modular_squared() -> float:
    """Σ η(N-η)f(η) of the best modular noise, from its masses."""
    law = masses(
        solve(9, [1], "1", "0.3", PROBABILISTIC, LossName.SQUARED, topology=Topology.ORDERED)
    )
    return sum(noise * (9 - noise) * mass for noise, mass in enumerate(law))


def clamped_squared() -> float:
    """Clamped geometric noise, answer by answer."""
    a = math.exp(-1)
    pmf = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-200, 201)}
    costs = [
        sum(mass * (min(max(0, q + k), 8) - q) ** 2 for k, mass in pmf.items()) for q in range(9)
    ]
    return sum(costs) / 9


def falling_cost() -> float:
    """The least cost of an even pmf that falls and has at most 0.6 on 4 middle values."""
    costs = np.array([0.0, *(2.0 * k * k for k in range(1, 13))])
    falls = np.eye(13, k=1)[:-1] - np.eye(13)[:-1]
    middle = np.array([1.0, 2.0, 1.0, *[0.0] * 10])
    total = np.array([[1.0, *[2.0] * 12]])
    found = linprog(costs, np.vstack([falls, middle]), [0.0] * 12 + [0.6], total, [1.0])
    return float(found.fun)


THEOREM_3 = (8, 4, 0.5, 0.169)

NUMBERS: dict[str, dict[str, Callable[[], float]]] = {
    "kadam Theorem 1": {
        "approximate": lambda: (1 - 0.4683 * math.exp(0.5)) / 1.4683,
        "probabilistic": lambda: 1 / 1.4683,
    },
    "kadam Definition 4, (11)": {
        "mode": lambda: squared_law()[2],
        "zero": lambda: squared_law()[0],
    },
    "kadam Remarks 1 and 2": {
        "third": lambda: float(printed(7, [3], 0.75, 0.0)[3]),
        "first": lambda: float(printed(7, [3], 0.75, 0.0)[1]),
    },
    "kadam (13)": {
        "shared": lambda: program(9, 3, "1.5", "0.1212", Indicators.SHARED),
        "each": lambda: each(9, 3, "1.5", "0.1212"),
    },
    "kadam (13g)": {
        "with_it": lambda: program(9, 3, "1", "0.4", Indicators.SHARED),
        "without": lambda: each(9, 3, "1", "0.4"),
    },
    "kadam f(0) ≥ 0.5": {
        "most": lambda: masses(solve(8, [3], "0.3", "0.2", PROBABILISTIC, directed=True))[0]
    },
    "kadam Definition 6": {"probabilistic": both_signs_delta},
    "kadam Lemma 1": {
        "subset": lambda: error_rate(10, [1, 4, 5]),
        "all": lambda: error_rate(10, [1, 2, 3, 4, 5]),
    },
    "kadam Remark 3": {
        "sum": lambda: float(single_distance(7, 2, 0.25, 0.0, Form.PRINTED).sum()),
    },
    "kadam Corollary 1": {"last": lambda: jump(7, 0.3)},
    "kadam Theorem 3": {
        "golden": lambda: GOLDEN,
        "claimed": lambda: region_31()[0],
        "actual": lambda: region_31()[1],
    },
    "kadam (34) to (36)": {
        "printed": lambda: float(bounded_difference(*THEOREM_3, Form.PRINTED)[0]),
        "sum": lambda: float(bounded_difference(*THEOREM_3, Form.PRINTED).sum()),
        "right": lambda: program(9, 4, "0.5", "0.169", Indicators.SHARED),
    },
    "kadam (40), (41)": {"each": lambda: each(9, 4, "1.5", "0.5")},
    "kadam (44)": {"right": lambda: sd_limit(0.5)},
    "kadam (48)": {"right": lambda: bd_limit(3, 1.0)},
    "kadam (52), (53)": {
        "printed": lambda: bd_section_mode(5, 3, 2, 1.0, Form.PRINTED),
        "right": lambda: bd_section_mode(5, 3, 2, 1.0),
    },
    "kadam Remark 4": {
        "marginal": lambda: float(joint_57().sum(axis=1)[0]),
        "product": lambda: float(joint_57().sum(axis=1)[0] ** 2),
        "joint": lambda: float(joint_57()[0, 0]),
    },
    "kadam (55), (56)": {"sum": lambda: 1 - float(two_sided(MATCHED).mass(0))},
    "kadam (57)": {
        "first": lambda: float(joint_57()[0, 0]),
        "second": lambda: float(joint_57()[1, 2]),
        "third": lambda: float(joint_57()[3, 0]),
    },
    "kadam Table I": {
        "first": lambda: each(9, 3, "1.5", "0.1212"),
        "second": lambda: each(9, 3, "1.5", "0.1522"),
    },
    "kadam Figure 5": {
        "modular": modular_squared,
        "clamped": clamped_squared,
        "channel": lambda: float(released(8, [1], 1.0, 0.3, LossName.SQUARED).objective),
    },
    "kadam Figure 6": {"geometric": lambda: 1 / 1.4683},
    "kadam Figure 7": {
        "modular": lambda: least_delta(8, [1], 1.0, 0.6101, LossName.SQUARED, directed=False),
        "channel": lambda: least_released(8, 0.6101, LossName.SQUARED, 1.0),
    },
    "kadam Figure 8": {
        "one_sided": lambda: float(printed(8, [1], 1.0, 0.0)[0]),
        "both": lambda: float(our_masses(8, [1], 1.0, 0.0)[0]),
        "geometric": lambda: math.tanh(0.5),
    },
    "kadam Figure 9": {
        "a": lambda: figure_9(3, "0"),
        "b": lambda: figure_9(3, "0.1"),
        "c": lambda: figure_9(3, "0.4"),
        "d": lambda: figure_9(2, "0"),
    },
    "kadam Figure 13": {
        "zero": lambda: float(joint_arbitrary()[0, 0]),
        "step": lambda: float(joint_arbitrary()[1, 2]),
    },
    "kadam Figure 14": {
        "a": lambda: error_rate(11, [1, 2, 3, 4], directed=True),
        "b": lambda: error_rate(17, [1, 3, 5, 6], directed=True),
        "c": lambda: error_rate(11, [1, 2, 3, 4]),
        "d": lambda: error_rate(17, [1, 3, 5, 6]),
    },
    "qin (43), Table V: Gaussian": {"claimed": gaussian_of_table_v, "exact": gaussian_exact},
    "qin (23), (24), Table V: exponential": {
        "sum": lambda: 0.5 * math.exp(-0.5) / (1 - math.exp(-0.5)),
        "delta": lambda: 1 - math.exp(-0.5),
    },
    "qin Figure 7": {"gaussian": lambda: gain("gaussian"), "poisson": lambda: gain("poisson")},
    "sadeghi Example 1, (4) to (6)": {"delta": example_delta},
    "sadeghi Remarks 1 and 2": {
        "bound": lambda: float(FIGURE_1.bound_delta),
        "exact": lambda: float(FIGURE_1.delta),
    },
    "sadeghi Proposition 3, (14) to (16)": {
        "each": lambda: program_of_counts(4, shared=False),
        "one": lambda: program_of_counts(4, shared=True),
    },
    "sadeghi Theorem 3": {
        "claimed": lambda: float(SMALL_ETA.claimed),
        "exact": lambda: float(SMALL_ETA.outcome_delta),
    },
    "sadeghi Figure 1": {
        "one": lambda: float(FIGURE_1.noise.mass(1)),
        "two": lambda: float(FIGURE_1.noise.mass(2)),
        "parameter": lambda: variance_of(FIGURE_1.noise),
        "own": lambda: variance_of(discrete_gaussian(Fraction(variance_of(FIGURE_1.noise)))),
    },
    "sadeghi Figure 2": {
        "near": lambda: float(
            sum(count_law(8, Fraction(1, 2), Fraction("1.5")).noise.mass(k) for k in range(-3, 4))
        )
    },
    "sadeghi Figure 4": {
        "counts": lambda: float(count_law(6, Fraction(1, 2), Fraction(2)).delta),
        "gaussian": matched_gaussian,
    },
    "geng Main result, Figure 1": {
        # Masses 0.2 at even and 0.1 at odd values of -3..3, and the best that falls.
        "any": lambda: 2 * (0.1 * 1 + 0.2 * 4 + 0.1 * 9),
        "falling": falling_cost,
    },
}
"""Each number of the data, by its result and its key, computed again."""


def test_every_number_of_the_data_is_computed_here() -> None:
    quoted = {name: set(result.numbers) for name, result in EVERY.items() if result.numbers}
    assert {name: set(keys) for name, keys in NUMBERS.items()} == quoted


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_the_data_is_right(name: str) -> None:
    """To the digits that it is quoted with."""
    for key, quoted in EVERY[name].numbers.items():
        digits = len(quoted.partition(".")[2])
        computed = NUMBERS[name][key]()
        assert f"{computed:.{digits}f}" == quoted or abs(computed - float(quoted)) < (
            0.51 * 10**-digits
        ), (name, key, computed)


def functions_of(file: str) -> set[str]:
    tree = ast.parse((PROJECT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", EVERY)
def test_every_result_has_a_test_and_a_sheet(name: str) -> None:
    result = EVERY[name]
    file, _, function = result.test.partition("::")
    assert function.startswith("test_")
    assert function in functions_of(file), result.test
    assert result.sheet in FIGURES
    # A result that does not hold as printed says what is wrong, or what does hold.
    assert len(result.says) > 20


def test_sentences_name_their_numbers_and_write_none_out() -> None:
    """A decimal of two places or more stands in ``numbers``; settings have fewer, or a letter."""
    for name, result in EVERY.items():
        text = re.sub(r"(ε|δ|α|ratio) ?=? ?\d+\.\d+", "", result.template)
        assert not re.search(r"\d\.\d\d", text), name
        for key in result.numbers:
            assert result.template.count(f"{{{key}}}") >= 1, (name, key)
        # Braces that are left are those of sets, indices and exponents.
        assert not re.search(r"{[a-z_]{2,}}", result.says), name


def test_every_numbered_result_of_the_sources_is_there() -> None:
    """All theorems, lemmas, corollaries, propositions, definitions, remarks, figures and tables."""
    expected = {
        "kadam": [
            *(f"Definition {k}" for k in range(1, 8)),
            *(f"Theorem {k}" for k in range(1, 4)),
            *(f"Lemma {k}" for k in range(1, 5)),
            *(f"Corollary {k}" for k in (1, 2)),
            *(f"Figure {k}" for k in range(1, 15)),
            *("Proposition 1", "Remark 3", "Remark 4", "Table I", "(13)", "(14)", "(15)", "(57)"),
            *(f"({k})" for k in (44, 45, 48, 51, 54)),
        ],
        "qin": [*(f"Definition {k}" for k in (1, 2, 3)), *(f"Theorem {k}" for k in range(1, 5))],
        "sadeghi": [
            *(f"Proposition {k}" for k in range(1, 5)),
            *(f"Figure {k}" for k in range(1, 5)),
            *("Lemma 3", "Lemma 4", "Theorem 3", "Example 1", "Definition 1", "Definition 2"),
        ],
        "geng": ["Theorem 3", "Figure 1"],
    }
    for key, names in expected.items():
        text = "\n".join(result.name for result in read_source(key).results)
        for name in names:
            assert re.search(rf"(?<![\w(]){re.escape(name)}(?![\d])", text) or name in text, name


def test_the_table_shows_every_result_once() -> None:
    sources = read_sources()
    page = results_markdown(sources)
    for source in sources:
        assert f"### {source.title}" in page
        assert sum(source.counts.values()) == len(source.results)
        for result in source.results:
            says = result.says.replace("|", "\\|")
            assert page.count(f"| {says} |") >= 1
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and "| verdict |" not in line
    ]
    assert len(rows) == len(EVERY)
    assert {result.verdict for result in EVERY.values()} == set(Verdict)
