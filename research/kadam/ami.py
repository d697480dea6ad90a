"""Figure 14 of Kadam et al. 2024: noise distributions for a table of meter readings."""

from __future__ import annotations

from pathlib import Path

from release.errors import SpecError
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.queries.kinds.binned import BinnedQuery
from release.queries.read import read_spec
from release.spec.losses import loss_of
from release.street import answered
from research.kadam.common import ONE_SIDED, PAPER, bars, pmf_panel
from research.programs import our_masses, printed
from research.sheet import Panel, Sheet, Stroke

PRINTED: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("(a)", 10, (1, 2, 3, 4)),
    ("(b)", 16, (1, 3, 5, 6)),
    ("arXiv (a)", 10, (1, 2, 3)),
    ("arXiv (b)", 16, (1, 4, 5)),
)
"""n and the differences that the paper saw in its tables: Figure 14, and Figure 12 of arXiv."""


def empirical_levels(spec: Path) -> tuple[str, list[tuple[BinnedQuery, Sensitivity]]]:
    """The id of a spec's release, and its binned queries with their empirical sensitivity.

    Raises:
        ReleaseError: the spec or its tables are refused, or no query has bins and empirical
            sensitivity.
    """
    spec_file = read_spec(spec)
    levels = []
    for run in answered(spec_file):
        if isinstance(run.query, BinnedQuery) and run.query.is_empirical:
            levels.append((run.query, run.sensitivity))
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
        bars("as printed, one-sided", printed(n, steps, 1.0, 0.0), Stroke.DOTTED, pair="ours"),
        bars("best modular, both signs", our_masses(n, steps, 1.0, 0.0), pair="ours"),
    )
    return pmf_panel(f"{letter} n = {n}, {sizes}", series)


def figure_14(spec: Path) -> Sheet:
    """The printed sensitivity sets, and the empirical ones of the table of ``spec``.

    Empirical sensitivity is confidential: draw this for a table that may be shown.
    """
    panels = [_printed_panel(*case) for case in PRINTED]
    release, levels = empirical_levels(spec)
    table = []
    for query, sensitivity in levels:
        guarantee = query.claimed.to_guarantee()
        pmf = design(sensitivity, guarantee, loss_of(query)).mechanism.pmf
        sizes = _sizes(sensitivity)
        title = f"{query.name}: {sensitivity.group.size} levels, {sizes} seen\n{guarantee}"
        panels.append(pmf_panel(title, [bars("empirical sensitivity", pmf.to_floats())]))
        table.append(f"{query.name}: {sizes}")
    rates = [1 - series.at(0) for panel in panels[:4] for series in panel.series]
    return Sheet(
        "kadam-14",
        "pmfs for a table of meter readings",
        f"{PAPER}, Figure 14, and Figure 12 of the arXiv text",
        f"First four: printed sets, ε = 1, δ = 0; then {release}",
        tuple(panels),
        f"For the printed sets of Figure 14 the error rates are {rates[0]:.4f} and {rates[2]:.4f} "
        f"as printed, {rates[1]:.4f} and {rates[3]:.4f} with both signs.",
        (
            ONE_SIDED,
            f"The sets of the arXiv text have {rates[4]:.4f} and {rates[6]:.4f} as printed, "
            f"{rates[5]:.4f} and {rates[7]:.4f} with both signs. It names no ε; here 1.",
            "The paper's table is not public. Below are the differences that a neighboring table "
            f"makes in that of {release} ({'; '.join(table)}).",
        ),
    )
