"""Writes the files of a tabulation, from noisy counts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify.digests import sha256
from release.bundle.tabulations.entries import (
    MeasuredTable,
    family_of,
    level_record,
    measured_record,
    objective_of,
)
from release.bundle.tabulations.files import (
    declared_bytes,
    declared_name,
    level_bytes,
    level_name,
    measured_bytes,
)
from release.bundle.tabulations.numbers import LevelNumbers, tabulated
from release.exact.integers.noise import IntegerNoise
from release.records.files import write
from release.records.models import OutputFile
from release.records.tabulations import DeclaredRecord, TabulationRecord
from release.spec.tabulations.opened import OpenTabulation, Table


@dataclass(frozen=True, eq=False)
class PublicTabulation:
    """A published tabulation: its entry in ``release.json``, and the numbers of each level.

    ``noises`` are those of the measured tables. ``rests_on`` is the assumption about its SQL.
    """

    opened: OpenTabulation
    record: TabulationRecord
    levels: tuple[LevelNumbers, ...]
    noises: Mapping[Table, IntegerNoise]
    rests_on: str | None = None


def write_tabulation(
    release_id: str, opened: OpenTabulation, measured: Sequence[MeasuredTable], public: Path
) -> PublicTabulation:
    """Write the measured, the declared and the published tables of a tabulation.

    Raises:
        OSError: the disk is full or read-only.
    """
    noises, counts = {}, {}
    entries = []
    for own in measured:
        table = opened.table(own.query.level, own.query.margin)
        noises[table.table], counts[table.table] = own.noise, own.counts
        path = f"measurements/{own.query.name}.parquet"
        data = measured_bytes(release_id, opened, table, own.counts)
        entries.append(measured_record(own, _written(public, path, data, own.counts.size)))
    declared = []
    for table in opened.declared_tables:
        facts = opened.facts[table.table]
        path = f"measurements/{declared_name(opened)}.parquet"
        data = declared_bytes(release_id, opened, table, facts)
        output = _written(public, path, data, facts.size)
        level = opened.levels[table.level]
        declared.append(DeclaredRecord(level=level, margin=list(table.names), output=output))
    # From the noisy counts alone: what follows is post-processing, and costs no privacy.
    levels = tabulated(opened, counts, noises, opened.half_widths(noises))
    outputs = []
    for numbers in levels:
        path = f"data/{level_name(opened, numbers.level)}.parquet"
        data = level_bytes(release_id, opened, numbers)
        output = _written(public, path, data, opened.rows(numbers.level))
        outputs.append(level_record(opened, numbers.level, output))
    record = TabulationRecord(
        name=opened.name,
        table=opened.declared.table,
        noise=family_of(list(noises.values())),
        objective=objective_of(opened, levels),
        levels=outputs,
        measured=entries,
        declared=declared,
    )
    return PublicTabulation(opened, record, levels, noises)


def _written(public: Path, path: str, data: bytes, rows: int) -> OutputFile:
    write(public / path, data)
    return OutputFile(path=path, sha256=sha256(data), rows=rows)
