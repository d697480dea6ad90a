"""CSV files: read as text, a line at a time (:mod:`release.tables.lines`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from release.spec.declarations import Table
from release.tables.columns import with_ascii
from release.tables.formats.base import Format, Source
from release.tables.lines import read_lines
from release.tables.schemas import read_header


@dataclass(frozen=True)
class Csv(Format):
    """CSV files, each with a header; their schema is what the spec declares."""

    endings = frozenset({".csv"})

    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[pa.Table]:
        """As every format, as text; the first batch is empty. Confidential.

        Raises:
            SpecError: a header lacks a declared column.
            DataError: a file cannot be read.
        """
        files = source.fetched(folder).files
        headers = [read_header(name, table, file) for file in files]
        for file, header in zip(files, headers, strict=True):
            for lines in read_lines(name, file, header, list(table.columns)):
                yield with_ascii(lines, table.columns)
