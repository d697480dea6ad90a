"""The Parquet files of a tabulation: their names and their bytes."""

from __future__ import annotations

import pyarrow as pa

from release.bundle.tables.intervals import INTERVAL, LEVEL_TEXT
from release.bundle.tables.parquet import parquet_bytes
from release.exact.domain import Codes
from release.tabulations.files.descriptions import (
    COUNT,
    ESTIMATE,
    MEASURED,
    TITLES,
)
from release.tabulations.files.layout import counts_table, level_table
from release.tabulations.files.numbers import LevelNumbers
from release.tabulations.measure.table_count import file_name, table_file
from release.tabulations.spec.opened import NamedMargin, OpenTabulation

FORMAT = "dp-release/tabulation/v1"


def level_name(opened: OpenTabulation, level: int) -> str:
    """The name of the file of a level, in ``data/``."""
    return file_name(opened.name, opened.levels[level])


def measured_name(opened: OpenTabulation, table: NamedMargin) -> str:
    """The name of the file of a measured table, in ``data/``."""
    return table_file(opened.name, opened.levels[table.level], table.names)


def declared_name(opened: OpenTabulation) -> str:
    """The name of the file of the declared numbers, in ``data/``."""
    return file_name(opened.name, "declared")


def level_bytes(release_id: str, opened: OpenTabulation, numbers: LevelNumbers) -> bytes:
    """The file of the published numbers of a level."""
    return _bytes(
        release_id, opened, level_name(opened, numbers.level), level_table(opened, numbers)
    )


def measured_bytes(
    release_id: str,
    opened: OpenTabulation,
    table: NamedMargin,
    values: Codes,
    estimate: Codes | None,
) -> bytes:
    """The file of the noisy counts of a table; shape (areas, cells).

    ``estimate`` is in millionths, of a table that no level publishes.
    """
    columns = {MEASURED: values}
    if estimate is not None:
        columns[ESTIMATE] = estimate
    name = measured_name(opened, table)
    return _bytes(release_id, opened, name, counts_table(opened, table, columns))


def declared_bytes(
    release_id: str, opened: OpenTabulation, table: NamedMargin, values: Codes
) -> bytes:
    """The file of the declared numbers of a table; shape (areas, cells)."""
    name = declared_name(opened)
    return _bytes(release_id, opened, name, counts_table(opened, table, {COUNT: values}))


def _bytes(release_id: str, opened: OpenTabulation, name: str, table: pa.Table) -> bytes:
    entries = {"release_id": release_id, "query": name, "format": FORMAT}
    facts = {}
    for field in table.schema:
        # Areas and labels are texts, and may have any name.
        if not pa.types.is_string(field.type):
            facts[field.name] = _facts(field.name, opened.declared.units)
    return parquet_bytes(table, entries, facts)


def _facts(column: str, units: str | None) -> dict[str, str]:
    """What people are told of a column of numbers."""
    facts = {"title": TITLES[column]}
    if units is not None:
        facts["unit"] = units
    if column in INTERVAL:
        facts["interval"] = LEVEL_TEXT
    return facts
