"""Every table and figure of the sources, redrawn beside ours: ``python -m research``."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from release.errors import SpecError, unknown_name
from release.records.files import storage_errors, write_anew
from research import geng
from research.beyond import many, rings
from research.kadam import (
    clamping,
    distributions,
    errata,
    least_delta,
    limits,
    losses,
    neighborhoods,
    structure,
    vectors,
    widths,
)
from research.kadam.ami import figure_14
from research.qin import distances, laws
from research.qin.table_5 import table_5
from research.results import read_sources, results_markdown
from research.sadeghi import example_1, figures
from research.sheet import Sheet

Draw: TypeAlias = Callable[[Path], Sheet]
"""Computes a sheet; the path is the spec of the table that Figure 14 is drawn for."""


def _without_table(draw: Callable[[], Sheet]) -> Draw:
    return lambda _: draw()


FIGURES: dict[str, Draw] = {
    "kadam-neighborhoods": _without_table(neighborhoods.neighborhoods),
    "kadam-01": _without_table(structure.figure_1),
    "kadam-02": _without_table(structure.figure_2),
    "kadam-03": _without_table(structure.figure_3),
    "kadam-04": _without_table(structure.figure_4),
    "kadam-05": _without_table(losses.figure_5),
    "kadam-06": _without_table(clamping.figure_6),
    "kadam-07": _without_table(least_delta.figure_7),
    "kadam-08": _without_table(distributions.figure_8),
    "kadam-09": _without_table(distributions.figure_9),
    "kadam-10": _without_table(distributions.figure_10),
    "kadam-11": _without_table(widths.figure_11),
    "kadam-12": _without_table(widths.figure_12),
    "kadam-13": _without_table(vectors.figure_13),
    "kadam-14": figure_14,
    "kadam-corollaries": _without_table(limits.corollaries),
    "kadam-limits": _without_table(limits.limits),
    "kadam-remark-4": _without_table(vectors.remark_4),
    "kadam-errata": _without_table(errata.closed_forms),
    "qin-01": _without_table(laws.figures_1_to_5),
    "qin-06": _without_table(laws.figure_6),
    "qin-07": _without_table(distances.figure_7),
    "qin-08": _without_table(distances.figure_8),
    "qin-09": _without_table(distances.figure_9),
    "qin-10": _without_table(distances.figure_10),
    "qin-table-5": _without_table(table_5),
    "qin-steps": _without_table(laws.steps),
    "qin-vectors": _without_table(laws.vectors),
    "sadeghi-01": _without_table(figures.figure_1),
    "sadeghi-02": _without_table(figures.figure_2),
    "sadeghi-03": _without_table(figures.figure_3),
    "sadeghi-04": _without_table(figures.figure_4),
    "sadeghi-example-1": _without_table(example_1.example_1),
    "geng-theorem-3": _without_table(geng.theorem_3),
    "geng-alpha": _without_table(geng.alpha),
    "beyond-large": _without_table(rings.large),
    "beyond-symmetry": _without_table(rings.symmetry),
    "beyond-wrapping": _without_table(rings.wrapping),
    "beyond-composition": _without_table(many.composition),
    "beyond-tables": _without_table(many.tables),
}
"""By name, in the order of the gallery."""


def select_figures(names: Iterable[str]) -> tuple[str, ...]:
    """The names in the order of the gallery; all sheets where ``names`` is empty.

    Raises:
        SpecError: no sheet has one of the names.
    """
    selection = set(names)
    for name in sorted(selection - FIGURES.keys()):
        raise SpecError("SHEET", unknown_name(name, FIGURES))
    return tuple(name for name in FIGURES if name in selection or not selection)


def reproduce(name: str, spec: Path, out: Path) -> Sheet:
    """Compute one sheet and write its picture and numbers into ``out``.

    Raises:
        ReleaseError: the spec of the table is refused, the folder cannot be written, or there is
            nothing to draw with.
    """
    if find_spec("matplotlib") is None:
        # It is no dependency of the product, whose report draws for itself.
        raise SpecError("", "drawing needs matplotlib; pip install matplotlib")
    # Slow to load, and not there for a list of names.
    from research.picture import save

    sheet = FIGURES[name](spec)
    with storage_errors(out, f"{name}.png or {name}.csv"):
        save(sheet, out)
    return sheet


def reproduce_all(
    names: Sequence[str], spec: Path, out: Path, processes: int = 1
) -> Iterator[Sheet]:
    """The sheets as :func:`reproduce` makes them, in their order, several at a time.

    Raises:
        ReleaseError: as :func:`reproduce`.
    """
    if processes <= 1 or len(names) == 1:
        for name in names:
            yield reproduce(name, spec, out)
        return
    # Started anew, and not forked: a solver's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        # The longest first, so that no process waits for one at the end.
        order = sorted(names, key=lambda name: name not in LONGEST)
        waiting = {name: pool.submit(reproduce, name, spec, out) for name in order if name != TABLE}
        for name in names:
            # A refused spec is told here: its error does not travel between processes.
            yield reproduce(name, spec, out) if name == TABLE else waiting[name].result()


def write_gallery(sheets: Iterable[Sheet], out: Path) -> Path:
    """The page that shows the sheets, ``out``/index.md, and their contact sheet.

    Raises:
        StorageError: the folder cannot be written.
    """
    page, drawn = out / "index.md", tuple(sheets)
    with storage_errors(out, page.name):
        write_anew(page, page_of(drawn).encode())
        if drawn:
            from research.contact import NAME, contact_sheet

            write_anew(out / NAME, contact_sheet([sheet.name for sheet in drawn], out))
    return page


def page_of(sheets: Sequence[Sheet]) -> str:
    """The page: what holds, the sheets of the sources, then what the sources do not show."""
    sources = [sheet for sheet in sheets if not sheet.name.startswith(BEYOND)]
    beyond = [sheet for sheet in sheets if sheet.name.startswith(BEYOND)]
    text = "# The figures of the sources, beside ours\n\n" + INTRODUCTION
    text += results_markdown(read_sources())
    text += "".join(sheet.markdown() for sheet in sources)
    if beyond:
        text += BEYOND_INTRODUCTION + "".join(sheet.markdown(level=3) for sheet in beyond)
    return text.rstrip() + "\n"


TABLE = "kadam-14"
"""The sheet that reads a table."""

BEYOND = "beyond-"
"""How the names of sheets begin that are of no source."""

LONGEST = ("kadam-07", "kadam-12", "kadam-05", "kadam-11", "qin-08", "kadam-errata")

INTRODUCTION = """\
Drawn by `python -m research --all`, from a checkout or from the installed package
(`dp-release-reproduce --all`). Each sheet says in bold what to conclude. A test compares that
with its numbers.

A trade-off has three lines of one hue. *As printed* (dotted) follows the paper to the letter, for
differences of one sign. *Best modular* (dashed) protects both signs, with an indicator for each
difference. *A release* (solid) is what `mechanism: best` takes for answers in order.

"""

BEYOND_INTRODUCTION = """\
## Beyond the sources

What the sources do not show, each with its number and its command.

"""
