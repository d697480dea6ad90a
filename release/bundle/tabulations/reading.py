"""Reads the Parquet files of a tabulation back strictly.

All but the numbers follows from the spec and the public areas. So a file is checked against the one
that would be written: every key, the order of the rows, the types, the metadata, and, by the same
version of the Parquet library, every byte. Nothing is decompressed before the footer is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from release.bundle.tables.parquet import (
    check_encoding,
    check_entries,
    check_shape,
    expect,
    missing_values,
    parquet_bytes,
    source_of,
    unreadable,
    with_facts,
)
from release.bundle.tabulations.descriptions import COUNT, MEASURED
from release.bundle.tabulations.files import declared_name, level_name, measured_name, metadata_of
from release.bundle.tabulations.layout import (
    counts_table,
    level_keys,
    level_table,
    schema_of,
    table_keys,
)
from release.bundle.tabulations.numbers import LevelNumbers
from release.errors import SpecError, VerificationError
from release.exact.domain import Codes
from release.queries.tabulations.table_count import CENTER
from release.spec.declarations import ColumnType
from release.spec.domains import MAX_ANSWERS
from release.spec.tabulations.areas import NamedAreas, check_name, nested
from release.spec.tabulations.open import MOST_CELLS
from release.spec.tabulations.opened import NamedMargin, OpenTabulation
from release.tables.columns import numbers_of

_BYTES_PER_ROW, _BYTES_PER_FILE = 2_000, 1_000_000

_LAST = -CENTER
"""Counts beyond ± this are published as this."""


@dataclass(frozen=True, eq=False)
class CheckedCounts:
    """The numbers of a table whose file passed every check.

    Attributes:
        values: shape (areas, cells).
        by_bytes: whether every byte was compared, as in ``CheckedTable`` of other released tables.
    """

    values: Codes
    by_bytes: bool


def check_level(
    file: str, path: Path, release_id: str, opened: OpenTabulation, numbers: LevelNumbers
) -> bool:
    """Check that the file of a level holds these numbers and nothing else.

    Args:
        file: its name in messages.
        path: where it is.
        release_id: the name of the release.
        opened: the tabulation.
        numbers: what the noisy counts give.

    Returns:
        Whether every byte was compared: the same version of the Parquet library wrote it.

    Raises:
        VerificationError: the first check that fails.
    """
    entries = metadata_of(release_id, level_name(opened, numbers.level))
    # The rows that follow from the spec, not those that the file claims: its claim is checked
    # before anything of that size is read.
    opened_file = _opened(file, path, level_keys(opened, numbers.level).rows)
    expected = level_table(opened, numbers)
    actual = _read(file, opened_file, expected.schema, entries)
    return _check_equal(file, opened_file, (actual, expected), entries)


def check_measured(
    file: str, path: Path, release_id: str, opened: OpenTabulation, table: NamedMargin
) -> CheckedCounts:
    """Read the noisy counts of a table, and check that the file holds nothing else.

    Raises:
        VerificationError: the first check that fails.
    """
    entries = metadata_of(release_id, measured_name(opened, table))
    return _check_counts(file, path, entries, opened, (table, MEASURED))


def check_declared(
    file: str, path: Path, release_id: str, opened: OpenTabulation, table: NamedMargin
) -> CheckedCounts:
    """Read the declared numbers of a table, and check that the file holds nothing else.

    Raises:
        VerificationError: the first check that fails; also a number below 0.
    """
    entries = metadata_of(release_id, declared_name(opened))
    checked = _check_counts(file, path, entries, opened, (table, COUNT))
    if (checked.values < 0).any():
        raise VerificationError(file, COUNT, "a number below 0", "numbers of at least 0")
    return checked


def _check_counts(
    file: str,
    path: Path,
    entries: dict[str, str],
    opened: OpenTabulation,
    what: tuple[NamedMargin, str],
) -> CheckedCounts:
    table, column = what
    keys = table_keys(opened, table)
    opened_file = _opened(file, path, keys.rows)
    schema = schema_of(keys, [column], opened.declared.units)
    actual = _read(file, opened_file, schema, entries)
    numbers = numbers_of(actual.column(column).combine_chunks())
    if (numbers < -_LAST).any() or (numbers > _LAST).any():
        raise VerificationError(file, column, "a number beyond 52 bits", f"±{_LAST} at most")
    values = numbers.reshape(-1, table.margin.cells)
    expected = counts_table(opened, table, column, values)
    return CheckedCounts(values, _check_equal(file, opened_file, (actual, expected), entries))


def areas_of(
    file: str, path: Path, rows: int, levels: Sequence[str], kinds: Mapping[str, ColumnType]
) -> NamedAreas:
    """The areas that the file of the lowest level names.

    ``check_level`` then checks the whole file against them, its order and repetitions too.

    Args:
        file: its name in messages.
        path: where it is.
        rows: how many rows ``release.json`` says that it has.
        levels: the columns, from the highest level to the lowest.
        kinds: the types of columns of the table; other columns are text.

    Raises:
        VerificationError: it cannot be read, lacks a column, or its areas do not nest.
    """
    if not 0 < rows <= MOST_CELLS:
        raise VerificationError(file, "rows", str(rows), f"1 to {MOST_CELLS}")
    parquet = _opened(file, path, rows).parquet
    schema = parquet.schema_arrow
    expect(file, "column names", schema.names[: len(levels)], list(levels))
    expect(file, "column types", schema.types[: len(levels)], [pa.string()] * len(levels))
    try:
        keys = parquet.read(columns=list(levels))
        # By Arrow: millions of rows name a few thousand areas.
        distinct = keys.group_by(list(levels)).aggregate([])
        expect(file, "missing names of areas", missing_values(distinct), 0)
        if distinct.num_rows > MAX_ANSWERS:
            raise VerificationError(file, "areas", str(distinct.num_rows), f"up to {MAX_ANSWERS}")
        names = distinct.to_pydict().values()
    except (OSError, pa.ArrowException, ValueError) as error:
        raise unreadable(file) from error
    try:
        for level, own in zip(levels, names, strict=True):
            for name in set(own):
                check_name(level, level, name, kinds)
        return nested(levels[-1], levels, list(zip(*names, strict=True)))
    except SpecError as error:
        raise VerificationError(file, "areas", error.problem, "areas that nest") from error


@dataclass(frozen=True, eq=False)
class _Opened:
    """The bytes of a file, and the same as Parquet with a checked footer."""

    data: bytes
    parquet: pq.ParquetFile


def _opened(file: str, path: Path, rows: int) -> _Opened:
    """The file, if it asks for no more than so many rows need."""
    try:
        # Read once, so that what is checked and what is compared are the same bytes.
        data = path.read_bytes()
        parquet = pq.ParquetFile(source_of(data))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise unreadable(file) from error
    check_shape(file, parquet.metadata, rows, _BYTES_PER_ROW * rows + _BYTES_PER_FILE)
    check_encoding(file, parquet.metadata)
    return _Opened(data, parquet)


def _read(file: str, opened_file: _Opened, schema: pa.Schema, entries: dict[str, str]) -> pa.Table:
    """The table of a file with these columns, without a missing number or area."""
    parquet = opened_file.parquet
    actual = parquet.schema_arrow
    expect(file, "column names", actual.names, schema.names)
    expect(file, "column types", actual.types, schema.types)
    expect(file, "columns with gaps", _with_gaps(actual), _with_gaps(schema))
    if not actual.equals(with_facts(schema), check_metadata=True):
        raise VerificationError(file, "field metadata", "another", "what the spec says of a field")
    # After the columns: the entries tell of them too, and a reader has to learn which is wrong.
    check_entries(file, parquet.metadata, entries, schema)
    try:
        return parquet.read()
    except (OSError, pa.ArrowException, ValueError) as error:
        raise unreadable(file) from error


def _with_gaps(schema: pa.Schema) -> list[str]:
    """The columns that may have missing values."""
    return [field.name for field in schema if field.nullable]


def _check_equal(
    file: str, opened_file: _Opened, tables: tuple[pa.Table, pa.Table], entries: dict[str, str]
) -> bool:
    """Whether the file is byte for byte that of the expected table, to which its own is equal."""
    actual, expected = tables
    for name in expected.column_names:
        if not actual.column(name).equals(expected.column(name)):
            # A comparison with a missing text is missing itself, and no index finds it.
            row = pc.index(pc.not_equal(actual.column(name), expected.column(name)), True).as_py()
            place = f"row {row + 1}" if row >= 0 else "a missing text, or one too many"
            raise VerificationError(
                file, name, place, "what follows from the spec, the areas and the noisy counts"
            )
    expected_bytes = parquet_bytes(expected, entries)
    writer = pq.ParquetFile(source_of(expected_bytes)).metadata.created_by
    # Versions of the library write the same table differently: bytes bind within one of them.
    same_writer = writer == opened_file.parquet.metadata.created_by
    if same_writer and expected_bytes != opened_file.data:
        raise VerificationError(file, "bytes", "others", "those that these numbers are written as")
    return expected_bytes == opened_file.data
