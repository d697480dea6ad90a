"""Figure 14 of Kadam et al. 2024: noise distributions for a table of meter readings."""

from __future__ import annotations

from pathlib import Path

from release.errors import SpecError
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.pipeline import answer, find_sensitivity, load, reached
from release.queries.binned import BinnedQuery
from release.queries.read import read_spec
from release.spec.losses import loss_of
from research.kadam import ONE_SIDED, PAPER, bars, pmf_panel
from research.programs import our_masses, printed
from research.sheet import Panel, Sheet

PRINTED: tuple[tuple[int, tuple[int, ...]], ...] = ((10, (1, 2, 3, 4)), (16, (1, 3, 5, 6)))
"""n and the differences that the paper saw in its table."""


def empirical_levels(spec: Path) -> tuple[str, list[tuple[BinnedQuery, Sensitivity]]]:
    """The id of a spec's release, and its binned queries with their empirical sensitivity.

    Raises:
        ReleaseError: the spec or its tables are refused, or no query has bins and empirical
            sensitivity.
    """
    spec_file = read_spec(spec)
    with load(spec_file) as tables:
        runs = find_sensitivity(answer(tables, spec_file), spec_file)
    levels = []
    for run in runs:
        query, sensitivity = run.query, reached(run.sensitivity)
        if isinstance(query, BinnedQuery) and query.is_empirical:
            levels.append((query, sensitivity))
    if not levels:
        raise SpecError(
            "--spec", "has no query with bins and empirical sensitivity; name one that has"
        )
    return spec_file.spec.release.id, levels


def _sizes(sensitivity: Sensitivity) -> str:
    """The sizes of the shifts, the shorter way round."""
    ring = sensitivity.group.size
    sizes = {min(shift[0], ring - shift[0]) for shift in sensitivity.shifts}
    return f"±{{{', '.join(map(str, sorted(sizes)))}}}"


def _printed_panel(letter: str, n: int, steps: tuple[int, ...]) -> Panel:
    sizes = f"{{{', '.join(map(str, steps))}}}"
    series = (
        bars(f"printed, {sizes}", printed(n, steps, 1.0, 0.0)),
        bars(f"ours, ±{sizes}", our_masses(n, steps, 1.0, 0.0), dashed=True),
    )
    return pmf_panel(f"({letter}) n = {n}, ε = 1", series)


def figure_14(spec: Path) -> Sheet:
    """The printed sensitivity sets, and the empirical ones of the table of ``spec``.

    Empirical sensitivity is confidential: draw this for a table that may be shown.
    """
    panels = [_printed_panel(letter, *case) for letter, case in zip("ab", PRINTED, strict=True)]
    release, levels = empirical_levels(spec)
    table = []
    for query, sensitivity in levels:
        guarantee = query.promised.to_guarantee()
        pmf = design(sensitivity, guarantee, loss_of(query)).mechanism.pmf
        sizes = _sizes(sensitivity)
        title = f"{query.name}: {sensitivity.group.size} levels, {sizes} seen\n{guarantee}"
        panels.append(pmf_panel(title, [bars("ours", pmf.to_floats())]))
        table.append(f"{query.name}: {sizes}")
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
