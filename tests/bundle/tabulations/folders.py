"""Public folders with tabulations for tests, from draws: tables, records and descriptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import rfc8785

from dp_release_verify.digests import sha256
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry, table_sizes
from release.bundle.tabulations.entries import family_of, level_record, objective_of
from release.bundle.tabulations.files import (
    declared_bytes,
    declared_name,
    level_bytes,
    level_name,
    measured_bytes,
    measured_name,
)
from release.bundle.tabulations.numbers import LevelNumbers, tabulated
from release.bundle.tabulations.writing import PublicTabulation
from release.queries.read import parse_spec
from release.records.files import write
from release.records.models import (
    ChargeRecord,
    MechanismFile,
    OutputFile,
    ReleaseRecord,
    canonical,
    parse,
)
from release.records.tabulations import (
    DeclaredRecord,
    LevelRecord,
    MeasuredRecord,
    TabulationRecord,
)
from release.spec.model import Spec
from release.spec.tabulations.areas import nested
from release.spec.tabulations.open import with_areas
from release.spec.tabulations.opened import NamedMargin, OpenTabulation, Table
from tests.bundle.tabulations.cases import (
    LINES,
    TABULATION,
    Draw,
    Lines,
    draw_of,
    spec_text,
)
from tests.conftest import PROJECT

SAMPLE = PROJECT / "tests" / "formats" / "v1" / "public" / "small" / "release.json"
RELEASE = "census-2024"


@dataclass(frozen=True, eq=False)
class Folder:
    """A public folder, and what was written into it."""

    public: Path
    spec: Spec
    record: ReleaseRecord
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
    sample = json.loads(SAMPLE.read_bytes())
    sample |= {
        "release_id": RELEASE,
        "queries": [],
        "tabulations": [one.record.model_dump(mode="json") for one in tabulations],
    }
    sample["guarantee"]["kind"] = "worst-case"
    sample.pop("expressions", None)
    record = parse(ReleaseRecord, rfc8785.dumps(sample))
    write(public / "release.json", canonical(record))
    write(public / "spec.yaml", text)
    sizes = table_sizes(public, record)
    write(public / DATAPACKAGE, datapackage(spec, record, sizes))
    write(public / REGISTRY, registry(spec, record))
    return Folder(public, spec, record, tabulations)


def _tabulation(public: Path, draw: Draw) -> PublicTabulation:
    opened = draw.opened
    levels = tabulated(opened, draw.measured, draw.noises, draw.widths)
    measured = []
    for table, counts in draw.measured.items():
        named = _named(opened, table)
        path = f"measurements/{measured_name(opened, named)}.parquet"
        data = measured_bytes(RELEASE, opened, named, counts)
        measured.append(_measured(draw, named, _written(public, path, data, counts.size)))
    declared = []
    for table, counts in opened.facts.items():
        named = _named(opened, table)
        path = f"measurements/{declared_name(opened)}.parquet"
        data = declared_bytes(RELEASE, opened, named, counts)
        output = _written(public, path, data, counts.size)
        entry = {"level": opened.levels[0], "margin": list(named.names), "output": output}
        declared.append(DeclaredRecord.model_validate(entry))
    record = TabulationRecord(
        name=opened.name,
        table=opened.declared.table,
        noise=family_of(list(draw.noises.values())),
        objective=objective_of(opened, levels),
        levels=[_level(public, draw, numbers) for numbers in levels],
        measured=measured,
        declared=declared,
    )
    return PublicTabulation(opened, record, levels, draw.noises)


def _named(opened: OpenTabulation, table: Table) -> NamedMargin:
    level, margin = table
    names = {one.margin: one.names for one in opened.margins}[margin]
    return opened.table(opened.levels[level], names)


def _level(public: Path, draw: Draw, numbers: LevelNumbers) -> LevelRecord:
    path = f"data/{level_name(draw.opened, numbers.level)}.parquet"
    data = level_bytes(RELEASE, draw.opened, numbers)
    rows = draw.opened.rows(numbers.level)
    return level_record(draw.opened, numbers.level, _written(public, path, data, rows))


def _written(public: Path, path: str, data: bytes, rows: int) -> OutputFile:
    write(public / path, data)
    return OutputFile(path=path, sha256=sha256(data), rows=rows)


def _measured(draw: Draw, named: NamedMargin, output: OutputFile) -> MeasuredRecord:
    name = measured_name(draw.opened, named)
    return MeasuredRecord(
        name=name,
        level=draw.opened.levels[named.level],
        margin=list(named.names),
        cells=draw.opened.cells(named.table),
        definition="pure",
        epsilon="0.5",
        delta="0",
        charge=ChargeRecord(epsilon="0.5", delta="0"),
        mechanism_file=MechanismFile(path=f"mechanisms/{name}.json", sha256="0" * 64),
        output=output,
    )
