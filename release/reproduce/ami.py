"""Figure 14 of Kadam et al. 2024: laws for a table of meter readings."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from release.errors import SpecError
from release.guarantee import Differences
from release.pipeline import answer, find_differences, load
from release.reading import read_spec
from release.reproduce.kadam import ONE_SIDED, PAPER, bars
from release.reproduce.laws import ours, printed
from release.reproduce.sheet import Panel, Shape, Sheet
from release.spec import LevelQuery

PRINTED: tuple[tuple[int, tuple[int, ...]], ...] = ((10, (1, 2, 3, 4)), (16, (1, 3, 5, 6)))
"""n and the differences that the paper saw in its table."""


def seen_levels(spec: Path) -> list[tuple[str, int, list[int], float]]:
    """For each level query of a spec its name, n, the differences seen in the table, and ε.

    Raises:
        ReleaseError: the spec or its tables are refused, or no query is a level with empirical
            differences.
    """
    spec_file = read_spec(spec)
    with load(spec_file) as tables:
        found = find_differences(answer(tables, spec_file), spec_file)
    levels = [
        (query.name, moves.group.size - 1, _forward(moves), _epsilon(query))
        for query, moves in zip(spec_file.spec.released, found, strict=True)
        if isinstance(query, LevelQuery) and query.is_empirical
    ]
    if not levels:
        raise SpecError(
            "--spec", "has no level query with empirical differences; name one that has"
        )
    return levels


def _forward(moves: Differences) -> list[int]:
    """One of each pair of signs: the size of the move."""
    size = moves.group.size
    return sorted({min(shift[0], size - shift[0]) for shift in moves.shifts})


def _epsilon(query: LevelQuery) -> float:
    epsilon: Fraction = query.promised.epsilon
    return float(epsilon)


def figure_14(spec: Path) -> Sheet:
    """The printed sets of differences, and those seen in the table of ``spec``.

    What is seen in a table is confidential: draw this for a table that may be shown.
    """
    panels = []
    for letter, (n, steps) in zip("ab", PRINTED, strict=True):
        told = ", ".join(map(str, steps))
        series = (
            bars(f"printed, {{{told}}}", printed(n, steps, 1.0, 0.0)),
            bars(f"ours, ±{{{told}}}", ours(n, steps, 1.0, 0.0).law.to_floats(), dashed=True),
        )
        panels.append(Panel(f"({letter}) n = {n}, ε = 1", "η", "f(η)", series, Shape.BARS))
    table = []
    for name, n, seen, epsilon in seen_levels(spec):
        told = ", ".join(map(str, seen))
        law = ours(n, seen, epsilon, 0.0).law.to_floats()
        title = f"{name}: {n + 1} levels, ±{{{told}}} seen, ε = {epsilon:g}"
        panels.append(Panel(title, "η", "f(η)", (bars("ours", law),), Shape.BARS))
        table.append(f"{name}: ±{{{told}}}")
    return Sheet(
        "kadam-14",
        "laws for a table of meter readings",
        f"{PAPER}, Figure 14",
        f"printed: n = 10 and 16, ε = 1, δ = 0; below: {spec.name}",
        tuple(panels),
        (
            ONE_SIDED
            + " Error rates 0.6787 and 0.7336 printed, 0.7627 and 0.8010 with both signs.",
            "The paper's table is not public. Below are the differences that a replacement of "
            f"one home makes in the table of {spec.name} ({'; '.join(table)}), over all 12 "
            "circuits.",
        ),
    )
