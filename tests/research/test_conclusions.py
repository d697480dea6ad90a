"""Each sheet's conclusion, from the page, held against the numbers of its CSV file."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pytest

from research.figures import FIGURES
from tests.conftest import PROJECT

GALLERY = PROJECT / "docs" / "gallery"
Lines = dict[float, list[float]]


@cache
def table(name: str) -> dict[tuple[str, str], Lines]:
    """The y of every x, by panel and series."""
    lines: dict[tuple[str, str], Lines] = defaultdict(lambda: defaultdict(list))
    with (GALLERY / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for panel, series, x, y in list(csv.reader(file))[1:]:
            lines[panel, series][float(x)].append(float(y))
    return lines


def line(name: str, panel: str, series: str) -> Lines:
    """The line whose panel and series begin so."""
    (found,) = [
        values
        for (title, label), values in table(name).items()
        if title.startswith(panel) and label == series
    ]
    return found


def at(name: str, panel: str, series: str, x: float) -> float:
    """The last value at x: where a line jumps, that on the right."""
    return line(name, panel, series)[x][-1]


def values(name: str, panel: str, series: str) -> list[float]:
    return [y for ys in line(name, panel, series).values() for y in ys]


@cache
def conclusions() -> dict[str, str]:
    """The sentence in bold of every sheet."""
    page = (GALLERY / "index.md").read_text("utf-8")
    return dict(re.findall(r'<a id="([^"]+)"></a>\n\n#+ [^\n]*\n\n\*\*(.*?)\*\*\n', page))


Claims = Iterable[str]


def trade_off(name: str, panel: str, labels: Iterable[str], x: float, digits: int) -> Claims:
    return [f"{at(name, panel, label, x):.{digits}f}" for label in labels]


THREE = ("best modular, ±1", "geometric, clamped", "a release, ±1")


def of_7() -> Claims:
    labels = ("best modular, ±1", "discrete Gaussian, clamped", "a release, ±1")
    found = []
    for label in labels:
        points = line("kadam-07", "(a)", label)
        # A level stretch has its ends only.
        before = max(x for x in points if x <= 1)
        found.append(f"{points[before][-1]:.3f}")
    return found


def of_10() -> Claims:
    panels = ("(b)", "(c)", "(d)")
    return [f"{at('kadam-10', panel, 'δ = 0.1212', 0):.4f}" for panel in panels]


def of_14() -> Claims:
    claims = []
    for label in ("as printed, one-sided", "best modular, both signs"):
        for panel in ("(a)", "(b)"):
            claims.append(f"{1 - at('kadam-14', panel, label, 0):.4f}")
    return claims


def of_corollaries() -> Claims:
    points = line("kadam-corollaries", "(a)", "ρ = 0.3, closed form")
    jumps = [x for x, ys in points.items() if len(ys) > 1 and ys[0] > ys[-1]]
    last = max(jumps)
    return [f"jumps {len(jumps)} times", f"{last:.4f}", f"{points[last][0]:.2e}"]


def of_6() -> Claims:
    free, inside = (f"probabilistic, {place}" for place in ("n = ∞", "clamped"))
    first = [values("kadam-06", "(a)", label) for label in (free, inside)]
    assert max(first[0]) == pytest.approx(max(first[1]), abs=1e-15)
    for panel in ("(a)", "(b)"):
        before, after = (
            values("kadam-06", panel, f"approximate, {place}") for place in ("n = ∞", "clamped")
        )
        assert all(b <= a + 1e-15 for a, b in zip(before, after, strict=True))
    return [f"{max(first[0]):.6f}"]


def of_2() -> Claims:
    rates = line("kadam-02", "error rate", "Theorem 2, breakpoints (19)")
    places = sorted(rates)
    flat = sum(
        b - a
        for a, b in itertools.pairwise(places)
        if math.isclose(rates[a][0], rates[b][0], abs_tol=1e-9)
    )
    return [f"{rates[0.0][0]:.4f}", f"{flat:.3f}"]


def of_4() -> Claims:
    points = line("kadam-04", "(a)", "Theorem 3 corrected, breakpoints (37)")
    modes = [y for ys in points.values() for y in ys]
    levels = sorted({round(mode, 9) for mode in modes})[:-1]
    return [f"After {len(levels) - 1} pairs", *(f"{level:.4f}" for level in levels)]


def of_sadeghi_4() -> Claims:
    best = line("sadeghi-04", "δ", "best noise of that variance")
    first = min(x for x, ys in best.items() if ys[0] <= 1e-9)
    labels = ("exact, count noise", "Gaussian, variance equal")
    return [*(f"{at('sadeghi-04', 'δ', label, 2.0):.2e}" for label in labels), f"{first:.2f}"]


def of_qin_7() -> Claims:
    """The optimum of P2 is one for both inputs; gains are recomputed in test_results."""
    for epsilon in ("2", "4"):
        one, other = (
            values("qin-07", f"input {x}", f"P2, ε = {epsilon}")
            for x in ("Gaussian(0, 10)", "Poisson(5)")
        )
        assert one == pytest.approx(other, rel=1e-4, abs=1e-9)
    return ["16.45%", "9.61%"]


def of_qin_10() -> Claims:
    with (GALLERY / "qin-10-list.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    settings: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for epsilon, m, label, mean in rows:
        settings[epsilon, m][label] = float(mean)
    assert len(settings) == 4
    for means in settings.values():
        assert min(means, key=lambda label: means[label]) == "optimal (P2)"
    means = settings["2", "15"]
    return [f"{means[label]:.2f}" for label in ("optimal (P2)", "Laplacian, λ = (m+1)/ε")]


def of_large() -> Claims:
    losses, bounds, others = (
        [at("beyond-large", panel, label, 100_000) for panel in ("(a)", "(b)")]
        for label in ("approximate", "proved lower bound, approximate", "probabilistic")
    )
    gap = max(1 - b / a for a, b in zip(losses, bounds, strict=True))
    assert -1e-11 <= gap <= 1e-6
    power = max(-9, math.ceil(math.log10(max(gap, 1e-12))))
    first = [f"{losses[0]:.6f}", f"{losses[1]:.4f}", f"10^{power}"]
    return [*first, f"{others[0]:.6f}", f"{others[1]:.4f}"]


def of_tables() -> Claims:
    panels = [title for title, _ in table("beyond-tables")]
    means = []
    for label in ("the same, least squares", "best strategy found, least squares"):
        means.append(np.mean([values("beyond-tables", title, label) for title in set(panels)]))
    alone = values("beyond-tables", "state", "one by one, ε split evenly")[0]
    return [f"{alone:.2f}", *(f"{mean:.2f}" for mean in means)]


CLAIMS: dict[str, Callable[[], Claims]] = {
    "kadam-neighborhoods": lambda: [
        f"{at('kadam-neighborhoods', '(b)', f'± {label}', 1.0):.4f}"
        for label in ("arbitrary {1, 4, 5}", "bounded {1, …, 5}")
    ],
    "kadam-01": lambda: [f"{at('kadam-01', '(a)', 'Lemma 3', x):.4f}" for x in (3, 6)],
    "kadam-02": of_2,
    "kadam-03": lambda: [
        f"{at('kadam-03', panel, 'Theorem 3, corrected', 0):.4f}" for panel in ("(a)", "(b)")
    ],
    "kadam-04": of_4,
    "kadam-05": lambda: trade_off("kadam-05", "(a)", THREE, 1.0, 3),
    "kadam-06": of_6,
    "kadam-07": of_7,
    "kadam-08": lambda: [
        f"{at('kadam-08', '(a)', label, 0):.3f}"
        for label in ("printed optimum, one-sided", "best modular, ±1", "geometric noise")
    ],
    "kadam-09": lambda: [
        f"{at('kadam-09', panel, label, 0):.3f}"
        for panel, label in (
            ("(a)", "δ = 0.0"),
            ("(a)", "δ = 0.4"),
            ("best modular: ±3", "δ = 0.0"),
        )
    ],
    "kadam-10": of_10,
    "kadam-11": lambda: trade_off(
        "kadam-11", "(a)", ("as printed, ε = 2", "best modular, ε = 2", "a release, ε = 2"), 2, 3
    ),
    "kadam-12": lambda: trade_off(
        "kadam-12", "(b)", ("as printed, ε = 1", "best modular, ε = 1", "a release, ε = 1"), 0.2, 3
    ),
    "kadam-13": lambda: [
        f"{at('kadam-13', panel, '0', 0):.4f}"
        for panel in ("(a) n = 4, 0..2 each: (57), one", "(a) n = 4, 0..2 each: (57), both")
    ],
    "kadam-14": of_14,
    "kadam-corollaries": of_corollaries,
    "kadam-limits": lambda: [
        f"{at('kadam-limits', '(a)', 'limit', 0.5):.4f}",
        f"{at('kadam-limits', '(b)', 'limit', 1.0):.4f}",
        f"{at('kadam-limits', '(d)', 'φ₀ printed, (53)', 3):.5f}",
        f"{at('kadam-limits', '(d)', 'φ₀, limit of the lengths (31)', 3):.5f}",
    ],
    "kadam-remark-4": lambda: [
        f"{at('kadam-remark-4', panel, '0', 0):.4f}" for panel in ("(a)", "(b)")
    ],
    "kadam-errata": lambda: [
        f"{max(values('kadam-errata', 'sum of the masses', 'Theorem 3, printed')):.3f}",
        f"{min(values('kadam-errata', 'sum of the masses', 'Remark 3, printed')):.3f}",
    ],
    "qin-01": lambda: [
        f"{sum(values('qin-01', 'Figure 5', 'masses as printed')) / (1 - math.exp(-6)):.3f}"
    ],
    "qin-06": lambda: [f"{at('qin-06', '(a)', 'm = 6, ε = 1', x):.4f}" for x in (0, 6)],
    "qin-07": of_qin_7,
    "qin-08": lambda: [
        f"{at('qin-08', 'input Gaussian', label, 4.0):.3f}"
        for label in ("P1, exact", "Laplacian, λ = (m+1)/ε")
    ],
    "qin-09": lambda: [
        f"{at('qin-09', 'input Gaussian', 'P1, exact', 1.0):.3f}",
        f"{at('qin-09', 'input Gaussian', 'P1, exact', 25.0):.2f}",
    ],
    "qin-10": of_qin_10,
    "qin-table-5": lambda: [
        f"{at('qin-table-5', '(b)', 'Gaussian σ = 10, M = 40, printed', 30):.6f}",
        f"{at('qin-table-5', '(b)', 'Gaussian, exact at the printed ε', 30):.4f}",
        f"{at('qin-table-5', '(b)', 'exponential η = 0.1, exact at ηm', 1):.4f}",
    ],
    "qin-steps": lambda: [
        f"{at('qin-steps', '(a)', 'Laplacian, exact', 8):.2f}",
        f"{at('qin-steps', '(b)', 'P2', 1):.4f}",
        f"{at('qin-steps', '(b)', 'P2', 8):.4f}",
    ],
    "qin-vectors": lambda: [
        f"{at('qin-vectors', 'δ', label, 0.5):.4f}" for label in ("3 entries move", "1 entry moves")
    ],
    "sadeghi-01": lambda: [
        f"{at('sadeghi-01', 'prob', 'count noise', 1):.5f}",
        f"{at('sadeghi-01', 'prob', 'count noise', 2):.5f}",
        f"{at('sadeghi-01', 'prob', 'Gaussian, parameter = variance', 1):.5f}",
        f"{at('sadeghi-01', 'prob', 'Gaussian, variance equal', 1):.5f}",
    ],
    "sadeghi-02": lambda: [
        f"{at('sadeghi-02', 'δ', label, 1.5):.2e}"
        for label in ("printed (2D+1)δ̃, D = 8", "exact, D = 8")
    ],
    "sadeghi-03": lambda: [
        f"{at('sadeghi-03', 'ε = 1.1', label, 0.5):.2e}"
        for label in ("printed (2D+1)δ̃, D = 8", "exact, D = 8")
    ],
    "sadeghi-04": of_sadeghi_4,
    "sadeghi-example-1": lambda: [
        f"{at('sadeghi-example-1', '(b)', 'Proposition 2, N = 3', 1.0):.4f}",
        f"{at('sadeghi-example-1', '(d)', '0', 1):.4f}",
    ],
    "geng-theorem-3": lambda: [
        f"{min(values('geng-theorem-3', 'E noise²', 'any, Δ = 20 steps')):.3f}"
    ],
    "geng-alpha": lambda: [f"{at('geng-alpha', '(b)', 'magnitude E|x|/Δ (p = 1)', 0.5):.2f}"],
    "beyond-large": of_large,
    "beyond-symmetry": lambda: [
        f"{at('beyond-symmetry', '(a)', label, 0.15):.4f}"
        for label in ("best even noise", "best of all")
    ],
    "beyond-wrapping": lambda: [
        f"{at('beyond-wrapping', '(a)', 'best modular', 25):.2f}",
        f"{at('beyond-wrapping', '(a)', 'a release', 25):.3f}",
    ],
    "beyond-composition": lambda: [
        f"{at('beyond-composition', '(a)', label, 10):.1f}"
        for label in ("a release", "geometric, ε added up", "Gaussian, exactly accounted")
    ],
    "beyond-tables": of_tables,
}
"""What each conclusion has to say, from the CSV file."""


def test_every_sheet_has_a_conclusion_that_is_compared() -> None:
    assert set(CLAIMS) == set(FIGURES) == set(conclusions())


@pytest.mark.parametrize("name", CLAIMS)
def test_a_conclusion_is_that_of_its_numbers(name: str) -> None:
    sentence, place = conclusions()[name], 0
    claims = list(CLAIMS[name]())
    assert claims
    for claim in claims:
        # Each claim stands after the one before it, as a number of its own.
        found = re.search(rf"(?<![\d.]){re.escape(claim)}(?!\d)", sentence[place:])
        assert found, (claim, sentence)
        place += found.start() + 1
    assert sentence.endswith(".")


def test_no_number_of_the_gallery_is_missing() -> None:
    for name in FIGURES:
        for lines in table(name).values():
            assert all(math.isfinite(y) for ys in lines.values() for y in ys), name


@pytest.mark.parametrize("name", ["kadam-05", "kadam-07", "kadam-11", "kadam-12"])
def test_a_trade_off_has_its_three_lines(name: str) -> None:
    for panel in {title for title, _ in table(name)}:
        labels = [label for title, label in table(name) if title == panel]
        for begins in ("as printed", "best modular", "a release"):
            assert any(label.startswith(begins) for label in labels), (panel, begins)


def test_jumps_are_drawn_as_jumps() -> None:
    """Where a line of kadam-07 falls by more than a tenth, it does so within 0.003 of ε."""
    for (_, label), points in table("kadam-07").items():
        if label.startswith(("as printed", "best modular", "data-independent")):
            places = sorted(points)
            for left, right in itertools.pairwise(places):
                fall = points[left][-1] - points[right][0]
                assert fall < 0.1 or right - left < 0.003, (label, left, right)
