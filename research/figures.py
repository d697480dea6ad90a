"""Every table and figure of the sources, redrawn beside ours: ``python -m research``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from release.errors import SpecError, unknown_name
from release.records.files import storage_errors, write_anew
from research import distributions, errata, geng, qin, sadeghi, trade_offs
from research.ami import figure_14
from research.sheet import Sheet

Draw: TypeAlias = Callable[[Path], Sheet]
"""Computes a sheet; the path is the spec of the table that Figure 14 is drawn for."""


def _without_table(draw: Callable[[], Sheet]) -> Draw:
    return lambda _: draw()


FIGURES: dict[str, Draw] = {
    "kadam-05": _without_table(trade_offs.figure_5),
    "kadam-06": _without_table(trade_offs.figure_6),
    "kadam-07": _without_table(trade_offs.figure_7),
    "kadam-08": _without_table(distributions.figure_8),
    "kadam-09": _without_table(distributions.figure_9),
    "kadam-10": _without_table(distributions.figure_10),
    "kadam-11": _without_table(trade_offs.figure_11),
    "kadam-12": _without_table(trade_offs.figure_12),
    "kadam-13": _without_table(distributions.figure_13),
    "kadam-14": figure_14,
    "kadam-errata": _without_table(errata.closed_forms),
    "qin-07": _without_table(qin.figure_7),
    "qin-08": _without_table(qin.figure_8),
    "qin-09": _without_table(qin.figure_9),
    "qin-10": _without_table(qin.figure_10),
    "qin-table-5": _without_table(qin.table_5),
    "sadeghi-01": _without_table(sadeghi.figure_1),
    "sadeghi-02": _without_table(sadeghi.figure_2),
    "sadeghi-03": _without_table(sadeghi.figure_3),
    "sadeghi-04": _without_table(sadeghi.figure_4),
    "geng-theorem-3": _without_table(geng.theorem_3),
}
"""By name, in the order of the gallery."""


def select_figures(names: Iterable[str]) -> tuple[str, ...]:
    """The names in the order of the gallery; all figures where ``names`` is empty.

    Raises:
        SpecError: no figure has one of the names.
    """
    selection = set(names)
    for name in sorted(selection - FIGURES.keys()):
        raise SpecError("FIGURE", unknown_name(name, FIGURES))
    return tuple(name for name in FIGURES if name in selection or not selection)


def reproduce(name: str, spec: Path, out: Path) -> Sheet:
    """Compute one figure and write its picture and numbers into ``out``.

    Raises:
        ReleaseError: the spec of the table is refused, or the folder cannot be written.
    """
    sheet = FIGURES[name](spec)
    with storage_errors(out, f"{name}.png or {name}.csv"):
        sheet.save(out)
    return sheet


def write_gallery(sheets: Iterable[Sheet], out: Path) -> Path:
    """The page that shows the figures, ``out``/index.md.

    Raises:
        StorageError: the folder cannot be written.
    """
    page = out / "index.md"
    text = "# The figures of the sources, beside ours\n\n" + INTRODUCTION
    entries = "".join(sheet.markdown() for sheet in sheets)
    with storage_errors(out, page.name):
        write_anew(page, (text + entries).rstrip().encode() + b"\n")
    return page


INTRODUCTION = """\
Drawn by `python -m research`. *Printed* follows the paper to the letter, *ours* is what a release
would use: differences of both signs, an indicator for each difference, the loss that a reader sees.
Each figure says where the two differ and why.

"""
