"""Writes a starting spec for a table from its schema, for ``dp-release init TABLE``.

Only names and types are read: the schema in the footer of a Parquet file, the first line of a CSV
file. So two tables of one schema get the same text, and the text reveals no row. It is a valid spec
with safe placeholders; ``# CHOOSE:`` marks every choice that a person has to make. Files of other
formats are refused, and tables without a column that could name the privacy unit.
"""

from __future__ import annotations

import csv
import glob
import os
import re
import sys
import unicodedata
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pydantic import TypeAdapter, ValidationError

from release.errors import SpecError, no_file, unknown_name
from release.queries.read import ENGINE_NAMES, parse_spec
from release.spec.declarations import Column, ColumnType, CsvFormat, other_separator
from release.spec.periods import is_template
from release.spec.refusals.unfinished import TODO
from release.tables.formats.base import ending_of
from release.tables.formats.csv_files import Csv
from release.tables.formats.parquet import Parquet
from release.tables.lines import header_of
from release.tables.schemas import likely_encoding, type_of

_TAKEN = "give the path of one .parquet or .csv file"
_MOST_COLUMNS = 10_000
_LONGEST_LINE = 2**20
_LONGEST_KEY = 1000
"""YAML takes keys of up to 1024 characters."""
_SHOWN = 60
"""Characters of a name or a type that a reason shows."""

_COLUMN: TypeAdapter[str] = TypeAdapter(Column)
_COUNTED = (ColumnType.STRING, ColumnType.INTEGER)
"""The types that a privacy unit, and the category of a mode, can have."""

_VALUE = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
"""Names that look like values."""
_YEAR = re.compile(r"(19|20)[0-9]{2}")
_ID = re.compile(r"(?:^|[\W\d_])[iI][dD]$|[a-z]I[dD]$")
_PERSON = re.compile(r"household|person|meter")


@dataclass(frozen=True)
class StoredColumn:
    """A column of the table; one without a type is left out, for ``reason``."""

    name: str
    kind: ColumnType | None
    reason: str = ""
    is_instant: bool = False


def starting_spec(
    path: Path, unit: str | None = None, folder: Path | None = None, skip: int = 0
) -> str:
    """The text of a commented spec for the table at ``path``; no value of the table is read.

    ``unit`` is the column that names the privacy unit, by default one suggested by its name.
    ``folder`` will hold the spec, by default the folder of the table. ``skip`` lines stand before
    the header of a CSV file.

    Raises:
        SpecError: the file cannot be read, is no table, or has no column that a spec can use;
            ``unit`` is not a column of it that can name a unit.
    """
    schema = read_schema(path, unit, folder, skip)
    text = head(schema) + _queries(schema)
    # The reader of specs alone knows every rule of names, so it has the last word.
    parse_spec(text.encode())
    return text


@dataclass(frozen=True)
class TableSchema:
    """What is read of a table: names and types.

    Attributes:
        path: the table.
        relative: its path from the folder of the spec.
        columns: those that a spec can use, with their types.
        left_out: the others.
        instants: the columns whose times are of a zone.
        unit: the column that names the privacy unit.
        form: how a CSV file is written; None of a Parquet file.
    """

    path: Path
    relative: str
    columns: dict[str, ColumnType]
    left_out: tuple[StoredColumn, ...]
    instants: tuple[str, ...]
    unit: str
    form: CsvFormat | None = None

    @property
    def name(self) -> str:
        """The name of the table in the spec."""
        return _table_name(self.stem)

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return self.path.name[: -len(ending_of(self.path))]


def read_schema(path: Path, unit: str | None, folder: Path | None, skip: int = 0) -> TableSchema:
    """The schema of a table; arguments and errors as those of :func:`starting_spec`."""
    if path.exists() and not path.is_file():
        raise SpecError("TABLE", f"is no plain file; {_TAKEN}")
    ending = ending_of(path)
    if ending not in Parquet.endings | Csv.endings:
        raise SpecError("TABLE", f"{path.name!r} is neither; {_TAKEN}")
    if not path.exists():
        raise SpecError("TABLE", no_file(path, _TAKEN))
    form = _csv_form(path, skip) if ending in Csv.endings else None
    relative = path.name if folder is None else os.path.relpath(path, folder)
    if TODO in relative:
        raise SpecError(
            "TABLE", f"its path holds {TODO}, which marks an unfinished spec; rename it"
        )
    usable = _usable(path, _parquet(path) if form is None else _csv(path, form))
    columns: dict[str, ColumnType] = {}
    left_out = []
    for column in usable:
        if column.kind is None:
            left_out.append(column)
        else:
            columns[column.name] = column.kind
    instants = tuple(column.name for column in usable if column.is_instant)
    own = _unit(path, columns, tuple(left_out), unit)
    return TableSchema(path, relative, columns, tuple(left_out), instants, own, form)


def _parquet(path: Path) -> list[StoredColumn]:
    try:
        schema = pq.read_schema(path)
        return list(map(_stored, schema.names, schema.types))
    except OSError as error:
        raise SpecError("TABLE", f"{path.name!r} cannot be read as Parquet; {_TAKEN}") from error
    # A name that is not UTF-8 raises a ValueError.
    except (ValueError, pa.ArrowException) as error:
        raise SpecError("TABLE", f"{path.name!r} is not a Parquet file; {_TAKEN}") from error


def _stored(name: str, stored: pa.DataType) -> StoredColumn:
    kind = type_of(stored)
    if kind is not None:
        is_instant = pa.types.is_timestamp(stored) and stored.tz is not None
        return StoredColumn(name, kind, is_instant=is_instant)
    # A type of nested fields names them all, so its text may be of any length.
    text = scalar(str(stored)[:_SHOWN])
    return StoredColumn(
        name, None, f"no type of a spec holds its {text}; store it as one that does"
    )


def _csv_form(path: Path, skip: int) -> CsvFormat:
    """How a CSV file seems to be written, by its header alone."""
    form = CsvFormat(skip=skip)
    try:
        header = header_of(path, form)
    except UnicodeDecodeError:
        form = CsvFormat(encoding=likely_encoding(path), skip=skip)
        header = []
        with suppress(UnicodeDecodeError, OSError, csv.Error):
            header = header_of(path, form)
    # Whatever else is wrong is said where the names are read.
    except (OSError, ValueError, csv.Error):
        return form
    other = other_separator(header, form.separator_of(path))
    return form if other is None else form.model_copy(update={"separator": other})


def _csv(path: Path, form: CsvFormat) -> list[StoredColumn]:
    """The titles in the first line; no line after it is parsed."""
    try:
        # Strict: a quoted title may not continue in the next line, which is a row.
        titles = header_of(path, form)
    except (OSError, pa.ArrowException) as error:
        raise SpecError("TABLE", f"{path.name!r} cannot be read; {_TAKEN}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError(
            "TABLE",
            f"line {form.skip + 1} of {path.name!r} cannot be read as CSV; write the names there",
        ) from error
    line = "".join(titles)
    if not line.strip() or len(line) > _LONGEST_LINE or "\0" in line:
        raise SpecError(
            "TABLE", f"{path.name!r} has no header; write the names of its columns in line 1"
        )
    unnamed = sum(1 for title in titles if not title.strip())
    if 2 * unnamed >= len(titles):
        raise SpecError(
            "TABLE",
            f"line {form.skip + 1} of {path.name!r} names {len(titles) - unnamed} of {len(titles)} "
            "columns; where other lines stand before the header, say how many: --skip",
        )
    numbers = sum(1 for title in titles if _VALUE.fullmatch(title) and not _YEAR.fullmatch(title))
    # What the line holds may be a person's, and a spec gets published.
    if numbers:
        raise SpecError(
            "TABLE",
            f"line {form.skip + 1} of {path.name!r} has numbers or dates for {numbers} of "
            f"{len(titles)} names, as a row has; write the names of the columns there",
        )
    return [StoredColumn(title, ColumnType.STRING) for title in titles]


def _usable(path: Path, stored: list[StoredColumn]) -> list[StoredColumn]:
    """The columns; one whose name no spec can hold loses its type and gets a reason."""
    if len(stored) > _MOST_COLUMNS:
        raise SpecError(
            "TABLE",
            f"{path.name!r} has {len(stored)} columns, at most {_MOST_COLUMNS} are read; "
            "keep those that are needed",
        )
    # DuckDB takes names that differ by case alone for one.
    alike = Counter(column.name.casefold() for column in stored)
    usable = []
    for column in stored:
        reason = _why_unusable(column.name, alike[column.name.casefold()])
        usable.append(StoredColumn(column.name[:_SHOWN], None, reason) if reason else column)
    return usable


def _why_unusable(name: str, alike: int) -> str:
    """Why no spec can hold a column of this name; empty where one can."""
    if alike > 1:
        return f"{alike} columns have this name but for case; rename one"
    if len(scalar(name)) > _LONGEST_KEY:
        return "a name of which this is the beginning is too long"
    if name.casefold() in ENGINE_NAMES:
        return "the engine that reads tables has a column of this name; rename it"
    if TODO in name:
        return "its name holds the mark of an unfinished spec; rename it"
    try:
        _COLUMN.validate_python(name)
    except ValidationError:
        return "a name may not be empty, begin with '#' or hold control characters; rename it"
    return ""


def _unit(
    path: Path,
    columns: dict[str, ColumnType],
    left_out: tuple[StoredColumn, ...],
    unit: str | None,
) -> str:
    units = [name for name, kind in columns.items() if kind in _COUNTED]
    if not units:
        raise SpecError(
            "TABLE",
            f"{path.name!r} has no column of a usable type to name the privacy unit; "
            "add a string or an integer one",
        )
    if unit is None:
        # Of several with one rank, min returns the first in the table.
        ranks = [_rank(name, columns[name]) for name in units]
        return units[ranks.index(min(ranks))]
    if unit in units:
        return unit
    if unit in columns:
        raise SpecError(
            "--unit", f"{unit!r} is a {columns[unit].value} column; name a string or an integer one"
        )
    for column in left_out:
        if column.name == unit:
            raise SpecError("--unit", f"{scalar(unit)} is no unit: {column.reason}")
    raise SpecError("--unit", unknown_name(unit, list(map(scalar, units))))


def _rank(name: str, kind: ColumnType) -> int:
    """A rank that is lower the more a name looks like the identifier of a person or a home."""
    is_id, is_person = bool(_ID.search(name)), bool(_PERSON.search(name.casefold()))
    if is_id or is_person:
        return 0 if is_id and is_person else 1
    return 2 if kind is ColumnType.STRING else 3


def scalar(text: str) -> str:
    """The text as YAML on one line, quoted where it has to be, also between flow brackets."""
    template = is_template(text.encode("utf-8", "surrogatepass"))
    if not template and _dumped([text], None)[1:-1] == text:
        return text
    # Double quotes escape line breaks such as U+2028; single ones would let them into a comment.
    quoted = _dumped(text, '"')
    # The bytes of a placeholder make the whole spec a template, even inside a quoted name.
    return quoted.replace("{period", r"\x7Bperiod") if template else quoted


def _dumped(value: object, style: str | None) -> str:
    return yaml.safe_dump(
        value, default_style=style, default_flow_style=True, allow_unicode=True, width=sys.maxsize
    ).rstrip("\n")


def _release_id(stem: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", _ascii(stem)).strip("-._")[:100] or "release"


def _table_name(stem: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", _ascii(stem)).strip("_") or "rows"
    return (name if name[0].isalpha() else f"t_{name}")[:63]


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()


def head(schema: TableSchema) -> str:
    """The beginning of a starting spec: everything but what is asked of the table."""
    columns = left_out = ""
    for name, kind in schema.columns.items():
        told = _INSTANTS if name in schema.instants else ""
        columns += f"      {scalar(name)}: {kind.value}{told}\n"
    # In comments: scalar() escapes line breaks, or a name could write a line of the spec.
    for column in schema.left_out:
        left_out += f"      # Left out: {scalar(column.name)}: {column.reason}.\n"
    return _HEAD.substitute(
        file=scalar(schema.path.name),
        id=scalar(_release_id(schema.stem)),
        table=scalar(schema.name),
        # A spec reads brackets in a path as a pattern.
        path=scalar(glob.escape(schema.relative)),
        untyped="" if schema.form is None else _written(schema.form) + _UNTYPED,
        columns=columns,
        left_out=left_out,
        unit=scalar(schema.unit),
    )


def _queries(schema: TableSchema) -> str:
    columns, unit = schema.columns, schema.unit
    # Not the unit itself: an answer for each unit would be one about each person.
    examples = [name for name, kind in columns.items() if kind in _COUNTED and name != unit]
    key = examples[0] if examples else "column"
    text = _QUERIES.substitute(unit=scalar(unit), key=scalar(key))
    return text + _examples(columns, examples)


def _examples(columns: dict[str, ColumnType], names: list[str]) -> str:
    integers = [name for name in names if columns[name] is ColumnType.INTEGER]
    text = ""
    if names:
        text += _MORE
        is_integer = names[0] in integers
        domain = "{ordered: {min: 0, max: 23}}" if is_integer else "{nominal: [first, second]}"
        text += _MODE.substitute(of=scalar(names[0]), domain=domain)
    if integers:
        # Tables tend to have keys in their first columns and measurements in their last.
        text += _LEVEL.substitute(of=scalar(integers[-1]))
    return text


_HEAD = Template("""\
# A starting spec for $file: names and types are the table's, no value of it was read.
# Decide what is marked CHOOSE and TODO(curator) before anything is run.
spec: dp-release/spec/v1
release:
  id: $id
  title: TODO(curator)
  # Readers also look for curator, contact, purpose, period and license.
tables:
  $table:
    path: $path      # relative to this file
${untyped}    columns:
${columns}${left_out}\
privacy:
  # CHOOSE: whom the guarantee protects, with all rows of theirs: a person or a home, and never a
  #   column that names a row, a visit or a device of theirs.
  unit: $unit
  # CHOOSE: add_remove hides even whether a unit is in the table; replace_one takes their number as
  #   public.
  neighbors: add_remove
  # CHOOSE: the most rows of a unit that the way the table is made allows (25 for hourly readings of
  #   a day), never a number counted in it. Rows beyond it are left out; docs/bounds.md.
  max_rows_per_unit: 1
# CHOOSE: the ledger's account that pays, one for all releases about the same units; and what all
#   answers together may tell of a unit: small is safe, and 1 is usual.
budget: {scope: $id, epsilon: 1}
""")

_QUERIES = Template("""\
# CHOOSE: the cells that get an answer: lists that were public before, such as
#   {$key: [first, second]}, and never taken from the table.
keys: {}
queries:
  - name: units
    kind: count
    of: $unit      # units are counted; without this line rows are
    by: []      # one answer for the whole table; or columns that have keys
    guarantee: {epsilon: 1}
""")


def _written(form: CsvFormat) -> str:
    """How a CSV file is written, as a field of the spec, and the words for what is missing."""
    marks = []
    if form.separator is not None:
        mark = _dumped(form.separator, '"')
        marks.append(f"separator: {mark}")
    if form.skip:
        marks.append(f"skip: {form.skip}")
    if not form.is_utf8:
        marks.append(f"encoding: {form.encoding}")
    if not marks:
        return _WORDS
    told = ""
    if form.separator == ";":
        told = '      # CHOOSE: with decimal: "," where numbers are like 3,5'
    return f"    csv: {{{', '.join(marks)}}}{told}\n{_WORDS}"


_INSTANTS = "      # instants, in UTC; in local time: {type: timestamp, zone: Europe/London}"

_WORDS = """\
    missing: [NA, N/A, "NULL", "null"]      # CHOOSE: words that stand for no value; [] for none
"""

_UNTYPED = """\
    # CHOOSE: a CSV file has no types, so all are declared string: declare what each one means
    #   (integer, date, timestamp, number, boolean). The names are line 1 of the file: see that it
    #   is a header, for the spec gets published.
"""

_MORE = """\
# Others, for which the budget has to be larger. What is in them, bounds and categories, is known
# without the table and never read from it (CHOOSE).
"""

_MODE = Template("""\
#  - {name: commonest, kind: mode, of: $of,
#     domain: $domain, guarantee: {epsilon: 1}}
""")

_LEVEL = Template("""\
#  - {name: mean_value, kind: mean, of: $of, clamp: [0, 1000],
#     bins: {low: 0, high: 1000, count: 1000}, guarantee: {epsilon: 1}}
#  - {name: quartiles, kind: quantiles, of: $of, at: ["0.25", "0.5", "0.75"],
#     domain: {ordered: {min: 0, max: 1000}}, guarantee: {epsilon: 1}}
""")
