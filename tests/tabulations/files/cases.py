"""Small tabulations for tests, and one draw of their noisy counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.noise.published.baselines import geometric
from release.queries.read import parse_spec
from release.spec.model import Spec
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.intervals import HalfWidth, HalfWidths
from release.tabulations.estimate.structure import Margin, kept_whole
from release.tabulations.estimate.variances import variances
from release.tabulations.spec.areas import nested
from release.tabulations.spec.open import with_areas, with_facts
from release.tabulations.spec.opened import OpenTabulation, Table
from tests.tabulated import plain_spec

LEVELS = ("state", "county", "tract")

Lines = Sequence[tuple[str, ...]]

LINES: Lines = (
    ("hi", "north", "t4"),
    ("hi", "north", "t1"),
    ("hi", "south", "t2"),
    ("hi", "south", "t3"),
    ("hi", "south", "t9"),
)

TABULATION: dict[str, Any] = {
    "name": "census",
    "units": "persons",
    "table": "persons",
    "hierarchy": {"file": "tracts.csv", "levels": list(LEVELS)},
    "attributes": {"race": ["a", "b", "c"], "age": ["young", "old"]},
    "groupings": {"hispanic": {"of": "race", "classes": {"hisp": ["a"], "other": ["b", "c"]}}},
    "publish": {
        "state": [[], ["age", "race"]],
        "county": [["hispanic"], [], ["race", "age"]],
        "tract": [["age"], ["race", "age"], ["hispanic", "age"]],
    },
}


def spec_of(tabulation: Mapping[str, Any]) -> Spec:
    """A spec with one tabulation."""
    return parse_spec(spec_text(tabulation))


def spec_text(*tabulations: Mapping[str, Any]) -> bytes:
    """The file of a spec with these tabulations."""
    columns = dict.fromkeys(["person", "tract", "race", "age"], "string")
    plain = plain_spec(tabulations, columns=columns, budget=("3", "0"), release="census-2024")
    # By JSON, because YAML would write a value that stands twice as an alias.
    return json.dumps(plain).encode()


def opened_of(tabulation: Mapping[str, Any] = TABULATION, lines: Lines = LINES) -> OpenTabulation:
    """The tabulation with these areas, without declared numbers."""
    levels = tabulation["hierarchy"]["levels"]
    return with_areas(spec_of(tabulation), 0, nested("areas", levels, lines))


@dataclass(frozen=True, eq=False)
class Draw:
    """A tabulation, its true counts in full detail, and what was measured of it."""

    opened: OpenTabulation
    truth: tuple[Codes, ...]
    measured: Mapping[Table, Codes]
    noises: Mapping[Table, IntegerNoise]
    widths: Mapping[Table, HalfWidths]


def detail_of(opened: OpenTabulation) -> Margin:
    """The margin of all combinations of categories."""
    return Margin(tuple(map(kept_whole, opened.sizes)))


def draw_of(
    opened: OpenTabulation,
    tables: Mapping[Table, Fraction],
    rng: np.random.Generator,
    fact: Margin | None = None,
    persons: int = 3,
) -> Draw:
    """One draw.

    Args:
        opened: the tabulation.
        tables: the ε of each measured table.
        rng: for counts and noise.
        fact: the margin of the highest level that is declared.
        persons: how many there are in a cell of the lowest level, on average.
    """
    areas, detail = opened.named.areas, detail_of(opened)
    lowest = rng.poisson(persons, (areas.size(len(opened.levels) - 1), detail.cells))
    possible = opened.possible(detail)
    truth = [lowest if possible is None else lowest * possible]
    for level in range(len(opened.levels) - 1, 0, -1):
        truth.insert(0, areas.summed_up(level, truth[0]))
    if fact is not None:
        opened = with_facts(opened, {(0, fact): coarsened(truth[0], detail, fact)})
    measured, noises = {}, {}
    for (level, margin), epsilon in tables.items():
        true = coarsened(truth[level], detail, margin)
        noises[level, margin] = geometric(epsilon)
        ratio = 1 - np.exp(-float(epsilon))
        added = rng.geometric(ratio, true.shape) - rng.geometric(ratio, true.shape)
        measured[level, margin] = true + added
    return Draw(opened, tuple(truth), measured, noises, widths_of(opened, noises))


def widths_of(
    opened: OpenTabulation, noises: Mapping[Table, IntegerNoise]
) -> dict[Table, HalfWidths]:
    """Half widths that depend on the cell: about 1.96 times its standard error, in eighths."""
    known = {table: noise.moment(2) for table, noise in noises.items()}
    known |= dict.fromkeys(opened.facts, Fraction(0))
    tables = [one.table for one in opened.published]
    widths = {}
    for table, own in variances(opened.named.areas, opened.sizes, known, tables).items():
        values = tuple(tuple(map(_width, row)) for row in own.values)
        widths[table] = HalfWidths(own.kinds, own.sorts, values)
    return widths


def _width(variance: Fraction) -> HalfWidth:
    return HalfWidth(Fraction(round(8 * 1.96 * float(variance) ** 0.5), 8), 0.95, 0.94)


def permuted(draw: Draw, opened: OpenTabulation, places: Sequence[Codes]) -> Draw:
    """The same draw, the areas of each level being in other places.

    Args:
        draw: the draw.
        opened: the tabulation with the areas in their new places.
        places: for each level the old place of every area.
    """
    measured = {table: values[places[table[0]]] for table, values in draw.measured.items()}
    widths = widths_of(opened, draw.noises)
    return replace(draw, opened=opened, measured=measured, widths=widths)
