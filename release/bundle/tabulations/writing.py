"""Writes the files of a tabulation, from noisy counts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from release.budget.cost import Charge
from release.bundle.tabulations.files import (
    declared_bytes,
    declared_name,
    level_bytes,
    level_name,
    measured_bytes,
)
from release.bundle.tabulations.numbers import LevelNumbers, tabulated
from release.exact.domain import Codes
from release.exact.integer_noise import IntegerNoise
from release.exact.numbers import format_exact, format_up
from release.exact.statistics.sums import geometric_noise
from release.exact.tables.rounding import MILLION
from release.queries.tabulations.table_count import TableCount
from release.records.files import write
from release.records.hashes import sha256
from release.records.models import ChargeRecord, MechanismFile, OutputFile, definition_name
from release.records.tabulations import (
    DeclaredRecord,
    LevelRecord,
    MeasuredRecord,
    TabulationRecord,
)
from release.spec.tabulations.opened import OpenTabulation, Table


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table that was measured, and its public mechanism.

    ``counts`` are the noisy ones; shape (areas, cells).
    """

    query: TableCount
    charge: Charge
    noise: IntegerNoise
    file: MechanismFile
    counts: Codes


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
        entries.append(_measured_record(own, _written(public, path, data, own.counts.size)))
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


def _measured_record(own: MeasuredTable, output: OutputFile) -> MeasuredRecord:
    query, promised = own.query, own.query.promised
    return MeasuredRecord(
        name=query.name,
        level=query.level,
        margin=query.margin,
        cells=query.cells,
        definition=definition_name(promised.definition),
        epsilon=format_exact(promised.epsilon),
        delta=format_exact(promised.delta),
        charge=ChargeRecord(
            epsilon=format_exact(own.charge.epsilon), delta=format_exact(own.charge.delta)
        ),
        mechanism_file=own.file,
        output=output,
    )


def level_record(opened: OpenTabulation, level: int, output: OutputFile) -> LevelRecord:
    """The entry of a level."""
    return LevelRecord(
        level=opened.levels[level],
        areas=opened.named.areas.size(level),
        margins=[list(margin.names) for margin in opened.published_at(level)],
        output=output,
    )


def family_of(noises: Sequence[IntegerNoise]) -> Literal["geometric", "gaussian"]:
    """The family of the noise of all measured tables."""
    return "geometric" if all(map(_is_geometric, noises)) else "gaussian"


def _is_geometric(noise: IntegerNoise) -> bool:
    # By its masses, as a verifier knows no more: the ratio of a tail names the only candidate.
    return noise.right is not None and noise == geometric_noise(noise.right.ratio)


def objective_of(opened: OpenTabulation, levels: Sequence[LevelNumbers]) -> str:
    """The mean standard error of the published tables, weighted by importance; as published."""
    total, weights = Fraction(0), Fraction(0)
    for level in levels:
        weight = opened.declared.importance.get(opened.levels[level.level], Fraction(1))
        for numbers in level.margins:
            errors = numbers.standard_error
            # In rationals of published integers, so that a verifier finds the same digits.
            total += weight * Fraction(int(errors.sum()), errors.size * MILLION)
            weights += weight
    return format_up(total / weights, 6)
