"""The tables of tabulations as pandas frames: one margin of one level at a time.

A file holds all margins of a level, so a margin is filtered in Arrow before pandas sees a row.
As in :mod:`release.analysis.opened`, only the SHA-256 of a file is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dp_release_verify.digests import sha256
from release.errors import SpecError, VerificationError, unknown_name
from release.records.models import OutputFile, ReleaseRecord
from release.records.tabulations import LevelRecord, TabulationRecord
from release.spec.named import names_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

NUMBERS = ("answer", "rounded", "low", "high", "standard_error")

_MOST_NAMED = 12
"""Margins that a message names."""

_INTERVAL = "95%, of each cell by itself"


def table_frame(
    public: Path,
    record: ReleaseRecord,
    level: str,
    margin: Sequence[str] = (),
    tabulation: str | None = None,
) -> pd.DataFrame:
    """A row for each published cell of one margin: areas, categories, and the numbers.

    The columns are those of all levels down to ``level``, one for each name of ``margin``, then
    :data:`NUMBERS`. ``attrs`` has the release, tabulation, level, margin, unit, and the meaning of
    the interval.

    Args:
        public: the public folder.
        record: its ``release.json``.
        level: the level of the areas.
        margin: attributes and groupings in any order; none for the total.
        tabulation: its name, where the release has several.

    Raises:
        SpecError: no such tabulation, level or margin; the message names those there are.
        VerificationError: the file does not have the SHA-256 in ``release.json``.
    """
    source = _tabulation(record, tabulation)
    depth, entry = _level(source, level)
    names = _margin(entry, margin)
    # The file of a level has the areas above it as well, and none below.
    levels = source.level_names[: depth + 1]
    table = _read_level(public, entry, levels)
    chosen = table.filter(_rows(table, _columns(table, levels), names))
    frame: pd.DataFrame = chosen.select([*levels, *names, *NUMBERS]).to_pandas()
    facts = table.schema.field("answer").metadata or {}
    frame.attrs = {
        "release": record.release_id,
        "tabulation": source.name,
        "level": level,
        "margin": names,
        **({"unit": facts[b"unit"].decode()} if b"unit" in facts else {}),
        "interval": _INTERVAL,
    }
    return frame


def list_tables(public: Path, record: ReleaseRecord) -> pd.DataFrame:
    """A row for each published table: what :func:`table_frame` takes, its size and its error.

    The columns are tabulation, level, margin (a list of names), areas, cells (rows of the table),
    and the mean standard error of a cell.

    Raises:
        VerificationError: a file does not have the SHA-256 in ``release.json``.
    """
    import pandas as pd
    import pyarrow.compute as pc

    rows = []
    for tabulation in record.tabulations or ():
        for depth, entry in enumerate(tabulation.levels):
            levels = tabulation.level_names[: depth + 1]
            table = _read_level(public, entry, levels)
            errors = table.column("standard_error")
            for names in entry.margins:
                chosen = errors.filter(_rows(table, _columns(table, levels), names))
                mean = pc.mean(chosen).as_py()
                rows.append((tabulation.name, entry.level, names, entry.areas, len(chosen), mean))
    columns = ["tabulation", "level", "margin", "areas", "cells", "mean_standard_error"]
    return pd.DataFrame(rows, columns=columns)


def _read_level(public: Path, entry: LevelRecord, levels: Sequence[str]) -> pa.Table:
    """The file of a level.

    Raises:
        VerificationError: as :func:`read_table`, or it lacks a column.
    """
    table = read_table(public, entry.output)
    for name in (*levels, *chain.from_iterable(entry.margins), *NUMBERS):
        if name not in table.column_names:
            raise VerificationError(entry.output.path, "columns", "no such column", repr(name))
    return table


def read_table(public: Path, output: OutputFile) -> pa.Table:
    """A published file.

    Raises:
        VerificationError: the file does not have the SHA-256 in ``release.json``.
    """
    # Late, so that programs that only compute need not load Arrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = output.path
    try:
        data = (public / file).read_bytes()
        if sha256(data) != output.sha256:
            raise VerificationError(file, "SHA-256", sha256(data), output.sha256)
        # Not read_table: it would take folders called a=b above the file for columns.
        with pq.ParquetFile(public / file) as parquet:
            return parquet.read()
    except (OSError, pa.ArrowException) as error:
        raise VerificationError(file, "format", "nothing readable", "a Parquet file") from error


def no_such_query(query: object, record: ReleaseRecord) -> str:
    """The message for a query that is not published."""
    names = names_of(record.queries)
    text = unknown_name(query, names) if names else f"{query!r} is not there; there are no queries"
    if record.tabulations is None:
        return text
    return f"{text}; a table of a tabulation is opened by .table(level, margin)"


def _tabulation(record: ReleaseRecord, name: str | None) -> TabulationRecord:
    tabulations = record.tabulations or []
    names = names_of(tabulations)
    if not names:
        raise SpecError("tabulation", "the release has none; open a query by its name")
    if name is None and len(names) == 1:
        return tabulations[0]
    if name is None:
        raise SpecError("tabulation", f"there are several; name one of {', '.join(names)}")
    if name not in names:
        raise SpecError("tabulation", unknown_name(name, names))
    return tabulations[names.index(name)]


def _level(tabulation: TabulationRecord, name: str) -> tuple[int, LevelRecord]:
    names = tabulation.level_names
    if name not in names:
        raise SpecError("level", unknown_name(name, names))
    depth = names.index(name)
    return depth, tabulation.levels[depth]


def _margin(entry: LevelRecord, names: Sequence[str]) -> list[str]:
    """The names of a published margin in its own order."""
    # A text is a sequence of letters, and nobody means these.
    chosen = [names] if isinstance(names, str) else list(names)
    for margin in entry.margins:
        if sorted(margin) == sorted(chosen):
            return margin
    # Of very many margins a few, because a message is one line.
    published = ", ".join(map(str, entry.margins[:_MOST_NAMED]))
    more = ", …" if len(entry.margins) > _MOST_NAMED else ""
    raise SpecError(
        "margin", f"{chosen} is not published of the {entry.level}; there are {published}{more}"
    )


def _columns(table: pa.Table, levels: Sequence[str]) -> list[str]:
    """The columns of the margins."""
    return [name for name in table.schema.names if name not in {*levels, *NUMBERS}]


def _rows(table: pa.Table, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Which rows are of the margin: a value where it breaks down, none where it does not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    masks = []
    for column in columns:
        values = table.column(column)
        masks.append(pc.is_valid(values) if column in names else pc.is_null(values))
    # A file of totals alone has no columns of categories, so that every row is taken.
    everything = pa.chunked_array([pa.repeat(True, table.num_rows)])
    return reduce(pc.and_, masks, everything)
