"""Opening a tabulation: its files are read, and refused in one line where they do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from release.errors import SpecError, unknown_name
from release.exact.domain import Codes
from release.spec.model import Spec
from release.tabulations.spec.areas import NamedAreas, read_areas
from release.tabulations.spec.attributes import attributes_of, places_of
from release.tabulations.spec.lines import read_lines
from release.tabulations.spec.model import DeclaredNumbers
from release.tabulations.spec.opened import NamedMargin, OpenTabulation, Table

MOST_CELLS = 2**25
"""Cells of one level: 256 MB of integers."""


MOST_UNITS = 4 * 10**9
"""Units that can be declared in all: whole numbers are computed in millionths, in 62 bits."""


def open_tabulation(spec: Spec, place: int, folder: Path) -> OpenTabulation:
    """The tabulation ``tabulations[place]`` with the files that it names, below ``folder``.

    Raises:
        SpecError: a file cannot be read or does not fit; the message names the field.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    hierarchy, kinds = declared.hierarchy, spec.table_columns(declared.table)
    named = read_areas(f"{at}.hierarchy", folder / hierarchy.file, hierarchy.levels, kinds)
    opened = with_areas(spec, place, named)
    facts = {}
    for number, constraint in enumerate(declared.constraints):
        if isinstance(constraint, DeclaredNumbers):
            field = f"{at}.constraints[{number}]"
            table = _fact_table(field, opened, constraint)
            path = folder / constraint.file
            facts[table.table] = _declared_numbers(f"{field}.file", path, opened, table)
    return with_facts(opened, facts)


def with_areas(spec: Spec, place: int, named: NamedAreas) -> OpenTabulation:
    """The tabulation with its areas, as a verifier has it from the published tables.

    Raises:
        SpecError: there are too many cells.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    attributes = attributes_of(spec, place)
    # First without what it publishes: it makes its margins itself, from its attributes.
    unpublished = OpenTabulation(
        declared, named, attributes.categories, attributes.by_name, (), {}, attributes.zeros
    )
    published = []
    for level, name in enumerate(declared.hierarchy.levels):
        for names in declared.publish[name]:
            ordered = declared.in_order(names)
            published.append(NamedMargin(level, ordered, unpublished.margin(ordered)))
    opened = replace(unpublished, published=tuple(published))
    for level, name in enumerate(opened.levels):
        cells = max(named.areas.size(level) * opened.finest[level].cells, opened.rows(level))
        if cells > MOST_CELLS:
            raise SpecError(
                f"{at}.publish.{name}", f"{cells} cells; at most {MOST_CELLS}: publish coarser ones"
            )
    return opened


def with_facts(opened: OpenTabulation, facts: Mapping[Table, Codes]) -> OpenTabulation:
    """The tabulation with its declared numbers; shape (areas, cells) each."""
    return replace(opened, facts=facts)


def _fact_table(field: str, opened: OpenTabulation, constraint: DeclaredNumbers) -> NamedMargin:
    names = opened.in_order(constraint.margin)
    margin = opened.margin(names)
    # Declared numbers bind the cells of the highest level: these have to add up to them.
    if not opened.finest[0].refines(margin):
        raise SpecError(
            f"{field}.margin",
            f"the margins published of {constraint.level} and below are coarser; publish this one",
        )
    return NamedMargin(0, names, margin)


def _declared_numbers(field: str, path: Path, opened: OpenTabulation, table: NamedMargin) -> Codes:
    """The declared numbers in a file; shape (areas, cells)."""
    areas = opened.named.names[0]
    # As in the published tables: the areas, then the classes in row-major order.
    axes = [areas, *opened.labels(table.names)]
    places = list(map(places_of, axes))
    # -1 where no line has been read: counts are at least 0.
    numbers = np.full(tuple(map(len, axes)), -1, dtype=np.int64)
    lines = read_lines(field, path, [opened.levels[0], *table.names, "count"])
    for number, (*labels, count) in enumerate(lines, start=2):
        at = f"{field} (line {number})"
        for place, label in enumerate(labels):
            if label not in places[place]:
                raise SpecError(at, unknown_name(label, axes[place]))
        cell = tuple(of[label] for of, label in zip(places, labels, strict=True))
        if numbers[cell] >= 0:
            raise SpecError(at, "the cell has a number already; keep one")
        numbers[cell] = _count(at, count)
    missing = int((numbers < 0).sum())
    if missing:
        raise SpecError(field, f"{missing} of {numbers.size} cells have no number; give 0 for none")
    counts = numbers.reshape(len(areas), table.margin.cells)
    if int(counts.sum()) > MOST_UNITS:
        raise SpecError(field, f"the counts add up to more than {MOST_UNITS}; declare fewer units")
    possible = opened.possible(table.margin)
    if possible is not None and (counts[:, ~possible] > 0).any():
        raise SpecError(field, "a number above 0 is of an impossible combination; write 0")
    return counts


def _count(at: str, text: str) -> int:
    # No more digits than the bound has, so that no sum of 2^25 counts overflows.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_UNITS))):
        raise SpecError(
            at, f"the count is {text[:40]!r}; write a whole number from 0 to {MOST_UNITS}"
        )
    return int(text)
