"""Public folders with tabulations for tests, from draws: tables, records and descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.budget.cost import Charge
from release.bundle.files.asked import asked_of
from release.bundle.files.laws import law_of
from release.bundle.metadata import DATAPACKAGE, datapackage, described
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.privacy import Definition
from release.queries.read import parse_spec
from release.records.files import write
from release.spec.guarantees import GuaranteeSpec
from release.spec.model import Spec
from release.tabulations.files.entries import MeasuredTable
from release.tabulations.files.writing import PublicTabulation, write_tabulation
from release.tabulations.measure.table_count import CENTER, table_count
from release.tabulations.spec.areas import nested
from release.tabulations.spec.open import with_areas
from release.tabulations.spec.opened import NamedMargin, OpenTabulation, Table
from tests.tabulations.files.cases import (
    LINES,
    TABULATION,
    Draw,
    Lines,
    draw_of,
    spec_text,
)
from tests.verifier.made import seal

RELEASE, DAY = "census-2024", "2026-01-01"
TOTAL = forms.Claim("pure", Fraction(1), Fraction(0))
HALF = GuaranteeSpec(definition=Definition.PURE, epsilon=Fraction(1, 2), delta=Fraction(0))


@dataclass(frozen=True, eq=False)
class Folder:
    """A public folder, and what was written into it."""

    public: Path
    spec: Spec
    record: forms.Release
    tabulations: tuple[PublicTabulation, ...]


def census(public: Path, **changes: Any) -> Folder:
    """The folder of the small tabulation: all detail is measured below, and ages at the top.

    Args:
        public: the folder, which does not exist.
        changes: fields of the tabulation.
    """
    return folder_of(public, spec_text(TABULATION | changes), (LINES,))


def folder_of(public: Path, text: bytes, lines: tuple[Lines, ...], persons: int = 3) -> Folder:
    """Write the public folder of a release of one draw of each tabulation, and of no query.

    Args:
        public: the folder, which does not exist.
        text: the spec.
        lines: the areas of each tabulation.
        persons: how many there are in a cell of the lowest level, on average.
    """
    spec, random, draws = parse_spec(text), np.random.default_rng(1), []
    for place, own in enumerate(lines):
        levels = spec.tabulations[place].hierarchy.levels
        opened = with_areas(spec, place, nested("areas", levels, own))
        fact = None
        for known in opened.declared.facts:
            fact = opened.margin(known.margin)
        # Both are published: only such tables have a name.
        last, cells = len(levels) - 1, opened.finest
        tables = {(last, cells[last]): Fraction(1, 2), (0, cells[0]): Fraction(1, 4)}
        draws.append(draw_of(opened, tables, random, fact, persons))
    return folder_of_draws(public, text, tuple(draws))


def folder_of_draws(public: Path, text: bytes, draws: tuple[Draw, ...]) -> Folder:
    """Write the public folder of a release of these draws, and of no query."""
    spec = parse_spec(text)
    tabulations = tuple(_tabulation(public, draw) for draw in draws)
    made = forms.Made([], TOTAL, [own.made for own in tabulations])
    software = forms.Software("0", "0" * 64)
    record = forms.Release("dp-release/release/v1", "RELEASE", DAY, asked_of(spec), made, software)
    write(public / "release.json", forms.dumps(record))
    write(public / "spec.yaml", text)
    write(public / DATAPACKAGE, datapackage(spec, made, DAY, described(public)))
    for own in tabulations:
        for table, noise in zip(own.made.measured, own.noises.values(), strict=True):
            mechanism = IntegerMechanism(noise, 1 - 2 * CENTER, (), ())
            law = SimpleNamespace(mechanism=mechanism, bound_proved=False, lower_bound=0)
            law.bound_of = law.multipliers = None
            path = public / f"mechanisms/{table.mechanism}.json"
            write(path, forms.dumps(law_of(law)))  # type: ignore[arg-type]
    seal(public)
    return Folder(public, spec, record, tabulations)


def _tabulation(public: Path, draw: Draw) -> PublicTabulation:
    opened, measured = draw.opened, []
    for table, counts in draw.measured.items():
        query = table_count(opened, _named(opened, table), HALF)
        charge = Charge(query.cells, Fraction(1, 2), Fraction(0))
        noise = draw.noises[table]
        measured.append(MeasuredTable(query, charge, noise, query.name, counts))
    return write_tabulation(RELEASE, opened, measured, public)


def _named(opened: OpenTabulation, table: Table) -> NamedMargin:
    level, margin = table
    names = {one.margin: one.names for one in opened.margins}[margin]
    return opened.table(opened.levels[level], names)
