"""Writes the files of a tabulation, from noisy counts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify import forms
from release.exact.integers.noise import IntegerNoise
from release.records.files import write
from release.tabulations.files.entries import MeasuredTable, family_of, made_table, objective_of
from release.tabulations.files.files import (
    declared_bytes,
    declared_name,
    level_bytes,
    level_name,
    measured_bytes,
)
from release.tabulations.files.numbers import LevelNumbers, tabulated
from release.tabulations.spec.opened import OpenTabulation, Table


@dataclass(frozen=True, eq=False)
class PublicTabulation:
    """A published tabulation: its entry in ``release.json``, and the numbers of each level.

    ``noises`` are those of the measured tables, of the ``family``, and ``objective`` the mean
    standard error of a published number. ``rests_on`` is the assumption about its SQL.
    """

    opened: OpenTabulation
    made: forms.MadeTabulation
    levels: tuple[LevelNumbers, ...]
    noises: Mapping[Table, IntegerNoise]
    family: str
    objective: str
    rests_on: str | None = None


def write_tabulation(
    release_id: str, opened: OpenTabulation, measured: Sequence[MeasuredTable], public: Path
) -> PublicTabulation:
    """Write the measured, the declared and the published tables of a tabulation.

    Raises:
        OSError: the disk is full or read-only.
    """
    noises, counts, besides = {}, {}, []
    for own in measured:
        table = opened.table(own.query.level, own.query.margin)
        noises[table.table], counts[table.table] = own.noise, own.counts
        # A reader proves the least squares from the estimates of all that was measured.
        if not opened.declared.publishes(own.query.level, own.query.margin):
            besides.append(table.table)
    # From the noisy counts alone: what follows is post-processing, and costs no privacy.
    found = tabulated(opened, counts, noises, opened.half_widths(noises), besides)
    data = public / "data"
    for own in measured:
        table = opened.table(own.query.level, own.query.margin)
        estimate = found.estimates.get(table.table)
        written = measured_bytes(release_id, opened, table, own.counts, estimate)
        write(data / f"{own.query.name}.parquet", written)
    declared = None
    for table in opened.declared_tables:
        declared = declared_name(opened)
        facts = declared_bytes(release_id, opened, table, opened.facts[table.table])
        write(data / f"{declared}.parquet", facts)
    levels = []
    for numbers in found.levels:
        name = level_name(opened, numbers.level)
        write(data / f"{name}.parquet", level_bytes(release_id, opened, numbers))
        levels.append(forms.MadeLevel(opened.levels[numbers.level], name))
    made = forms.MadeTabulation(opened.name, list(map(made_table, measured)), levels, declared)
    return PublicTabulation(
        opened,
        made,
        found.levels,
        noises,
        family_of(list(noises.values())),
        objective_of(opened, found.levels),
    )
