"""Figure 14 of Kadam et al. 2024: laws for a table of meter readings."""

from __future__ import annotations

from pathlib import Path

from release.errors import SpecError
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.pipeline import answer, find_sensitivity, load, reached
from release.queries.binned import BinnedQuery
from release.queries.read import read_spec
from release.research.kadam import ONE_SIDED, PAPER, bars, law_panel
from release.research.laws import ours, printed
from release.research.sheet import Sheet
from release.spec.losses import loss_of

PRINTED: tuple[tuple[int, tuple[int, ...]], ...] = ((10, (1, 2, 3, 4)), (16, (1, 3, 5, 6)))
"""n and the differences that the paper saw in its table."""


def seen_levels(spec: Path) -> tuple[str, list[tuple[BinnedQuery, Sensitivity]]]:
    """The id of a spec's release, and its binned queries with the differences seen in the table.

    Raises:
        ReleaseError: the spec or its tables are refused, or no query has bins and empirical
            differences.
    """
    spec_file = read_spec(spec)
    with load(spec_file) as tables:
        runs = find_sensitivity(answer(tables, spec_file), spec_file)
    found = [reached(run.sensitivity) for run in runs]
    levels = [
        (query, moves)
        for query, moves in zip(spec_file.spec.released, found, strict=True)
        if isinstance(query, BinnedQuery) and query.is_empirical
    ]
    if not levels:
        raise SpecError(
            "--spec", "has no query with bins and empirical sensitivity; name one that has"
        )
    return spec_file.spec.release.id, levels


def _told(moves: Sensitivity) -> str:
    """The sizes of the moves, either way round."""
    size = moves.group.size
    sizes = sorted({min(shift[0], size - shift[0]) for shift in moves.shifts})
    return f"±{{{', '.join(map(str, sizes))}}}"


def figure_14(spec: Path) -> Sheet:
    """The printed sets of differences, and those seen in the table of ``spec``.

    What is seen in a table is confidential: draw this for a table that may be shown.
    """
    panels = []
    for letter, (n, steps) in zip("ab", PRINTED, strict=True):
        told = ", ".join(map(str, steps))
        series = (
            bars(f"printed, {{{told}}}", printed(n, steps, 1.0, 0.0)),
            bars(
                f"ours, ±{{{told}}}",
                ours(n, steps, 1.0, 0.0).mechanism.pmf.to_floats(),
                dashed=True,
            ),
        )
        panels.append(law_panel(f"({letter}) n = {n}, ε = 1", series))
    release, levels = seen_levels(spec)
    table = []
    for query, moves in levels:
        promise = query.promised.to_guarantee()
        law = design(moves, promise, loss_of(query)).mechanism.pmf.to_floats()
        title = f"{query.name}: {moves.group.size} levels, {_told(moves)} seen\n{promise}"
        panels.append(law_panel(title, [bars("ours", law)]))
        table.append(f"{query.name}: {_told(moves)}")
    return Sheet(
        "kadam-14",
        "laws for a table of meter readings",
        f"{PAPER}, Figure 14",
        f"printed: n = 10 and 16, ε = 1, δ = 0; below: {release}",
        tuple(panels),
        (
            ONE_SIDED
            + " Error rates 0.6787 and 0.7336 printed, 0.7627 and 0.8010 with both signs.",
            "The paper's table is not public. Below are the differences that a neighboring table "
            f"makes in that of {release} ({'; '.join(table)}).",
        ),
    )
