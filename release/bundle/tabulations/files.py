"""The Parquet files of a tabulation: their names and their bytes."""

from __future__ import annotations

from release.bundle.tables.parquet import parquet_bytes
from release.bundle.tabulations.descriptions import COUNT, ESTIMATE, MEASURED
from release.bundle.tabulations.layout import counts_table, level_table
from release.bundle.tabulations.numbers import LevelNumbers
from release.exact.domain import Codes
from release.queries.tabulations.table_count import file_name, table_file
from release.spec.tabulations.opened import NamedMargin, OpenTabulation

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
    entries = metadata_of(release_id, level_name(opened, numbers.level))
    return parquet_bytes(level_table(opened, numbers), entries)


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
    entries = metadata_of(release_id, measured_name(opened, table))
    columns = {MEASURED: values}
    if estimate is not None:
        columns[ESTIMATE] = estimate
    return parquet_bytes(counts_table(opened, table, columns), entries)


def declared_bytes(
    release_id: str, opened: OpenTabulation, table: NamedMargin, values: Codes
) -> bytes:
    """The file of the declared numbers of a table; shape (areas, cells)."""
    entries = metadata_of(release_id, declared_name(opened))
    return parquet_bytes(counts_table(opened, table, {COUNT: values}), entries)


def metadata_of(release_id: str, name: str) -> dict[str, str]:
    """The entries in the metadata of a file; ``name`` is that of the file."""
    return {"release_id": release_id, "query": name, "format": FORMAT}
