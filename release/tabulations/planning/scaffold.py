"""Writes a starting spec with a tabulation, from public files and the schema of a table.

The levels are the columns of a file of areas, the categories those of key files. No row of the
table is read, so the text reveals none.
"""

from __future__ import annotations

import csv
import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template

from release.errors import SpecError, unknown_name
from release.planning.scaffold import TableSchema, head, read_schema, scalar
from release.queries.read import parse_spec
from release.spec.declarations import ColumnType
from release.spec.key_sets import check_keys, key_text
from release.spec.model import Spec
from release.spec.refusals.unfinished import TODO
from release.tabulations.spec.areas import NamedAreas, check_name, nested
from release.tabulations.spec.lines import read_lines
from release.tabulations.spec.open import with_areas

_HIERARCHY, _ATTRIBUTE = "--hierarchy", "--attribute"

_MOST_LEVELS = 12
_LONGEST_HEADER = 2**20
_WIDEST = 90
"""Characters of a list on one line; a longer one gets a line for each item."""


@dataclass(frozen=True)
class _Public:
    """What the public files hold.

    Attributes:
        file: the path of the areas from the folder of the spec.
        areas: the areas, from the highest level to the lowest.
        attributes: the categories of each column.
    """

    file: str
    areas: NamedAreas
    attributes: dict[str, tuple[str, ...]]


def starting_tabulation(
    path: Path,
    hierarchy: Path,
    attributes: Sequence[str],
    unit: str | None = None,
    folder: Path | None = None,
) -> str:
    """The text of a commented spec with a tabulation of the table at ``path``.

    Args:
        path: the table, of which the names and types of columns are read alone.
        hierarchy: a CSV file of areas: a column for each level, a line for each lowest area.
        attributes: of each a text COLUMN=FILE; the file has the column, and a category a line.
        unit: the column that names the privacy unit; else one is suggested by its name.
        folder: it will hold the spec; else the folder of the table.

    Raises:
        SpecError: a file cannot be read, levels do not nest, the lowest level or an attribute is
            no column of the table, or there are too many cells.
    """
    schema = read_schema(path, unit, folder)
    # A spec names files from its own folder, wherever the command is started.
    relative = os.path.relpath(hierarchy, path.parent if folder is None else folder)
    if TODO in relative:
        raise SpecError(
            _HIERARCHY, f"its path holds {TODO}, which marks an unfinished spec; rename it"
        )
    areas = _areas(hierarchy, schema)
    categories: dict[str, tuple[str, ...]] = {}
    for text in attributes:
        column, keys = _attribute(text, schema)
        if column in categories:
            raise SpecError(_ATTRIBUTE, f"{column!r} stands twice; keep one")
        categories[column] = keys
    public = _Public(relative, areas, categories)
    text = head(schema) + _tabulation(schema, public)
    _check(text, areas)
    return text


def _check(text: str, areas: NamedAreas) -> Spec:
    # The reader of specs alone knows every rule of names and sizes, so it has the last word.
    spec = parse_spec(text.encode())
    with_areas(spec, 0, areas)
    return spec


def _areas(path: Path, schema: TableSchema) -> NamedAreas:
    names = _header(path)
    lines = read_lines(_HIERARCHY, path, names)
    if not lines:
        raise SpecError(_HIERARCHY, f"{path.name} names no area; give a line for each")
    for number, line in enumerate(lines, start=2):
        for name, value in zip(names, line, strict=True):
            check_name(f"{_HIERARCHY} (line {number})", name, value, schema.columns)
    # By the number of areas, for a level above has no more. Of columns with as many areas, one is
    # the other by another name: the table's comes last.
    columns = []
    for place, values in enumerate(zip(*lines, strict=True)):
        columns.append((len(set(values)), names[place] in schema.columns, place))
    order = [place for _, _, place in sorted(columns)]
    levels = [names[place] for place in order]
    if levels[-1] not in schema.columns:
        raise SpecError(
            _HIERARCHY,
            f"the lowest level of {path.name} is no column of the table: "
            f"{unknown_name(levels[-1], schema.columns)}",
        )
    try:
        by_level = list(zip(*lines, strict=True))
        in_order = list(zip(*(by_level[place] for place in order), strict=True))
        return nested(_HIERARCHY, levels, in_order)
    except SpecError as error:
        raise SpecError(
            _HIERARCHY, f"{error.problem}, or keep the columns of levels alone in {path.name}"
        ) from error


def _header(path: Path) -> list[str]:
    """The columns of the file of areas."""
    try:
        # Bounded: a file without a line break would be read whole.
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER).decode("utf-8")
        names = next(csv.reader([line], strict=True), [])
    except (OSError, ValueError, csv.Error) as error:
        raise SpecError(_HIERARCHY, f"{path.name} cannot be read as UTF-8 CSV") from error
    if not 1 <= len(names) <= _MOST_LEVELS or not all(names):
        raise SpecError(
            _HIERARCHY,
            f"{path.name} names its levels in line 1; write from 1 to {_MOST_LEVELS} columns there",
        )
    return names


def _attribute(text: str, schema: TableSchema) -> tuple[str, tuple[str, ...]]:
    """A column of the table with its categories, from COLUMN=FILE."""
    column, is_given, file = text.partition("=")
    if not (column and is_given and file):
        raise SpecError(_ATTRIBUTE, "write COLUMN=KEYS.csv, a column of the table and its keys")
    if column not in schema.columns:
        raise SpecError(_ATTRIBUTE, unknown_name(column, schema.columns))
    at, kind = f"{_ATTRIBUTE} {column}", schema.columns[column]
    if kind not in {ColumnType.STRING, ColumnType.INTEGER, ColumnType.DATE}:
        raise SpecError(at, f"is a {kind.value} column; name one of strings, integers or dates")
    keys = []
    for number, (key,) in enumerate(read_lines(at, Path(file), [column]), start=2):
        keys.append(key_text(f"{at} (line {number})", key, kind))
    return column, check_keys(at, keys)


def _tabulation(schema: TableSchema, public: _Public) -> str:
    levels = list(map(scalar, public.areas.areas.levels))
    attributes = publish = importance = ""
    for column, keys in public.attributes.items():
        attributes += _categories(scalar(column), keys, schema.columns[column])
    for level in levels:
        publish += f"      {level}:\n{_margins(public)}"
        importance += f'      {level}: "1"\n'
    return _TABULATION.substitute(
        table=scalar(schema.name),
        file=scalar(public.file),
        levels=_listed("      levels:", levels),
        attributes=f"    attributes:\n{attributes}" if attributes else "    attributes: {}\n",
        publish=publish,
        importance=importance,
    )


def _categories(column: str, keys: Sequence[str], kind: ColumnType) -> str:
    if kind is ColumnType.INTEGER:
        numbers = sorted(map(int, keys))
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"      {column}: {{range: [{numbers[0]}, {numbers[-1]}]}}\n"
        return _listed(f"      {column}:", list(map(str, numbers)))
    if kind is ColumnType.DATE:
        days = sorted(map(datetime.date.fromisoformat, keys))
        return _listed(f"      {column}:", [day.isoformat() for day in days])
    return _listed(f"      {column}:", list(map(scalar, keys)))


def _margins(public: _Public) -> str:
    """The total, each attribute, and all attributes together."""
    columns = list(map(scalar, public.attributes))
    margins: list[list[str]] = [[], *([column] for column in columns)]
    # With one attribute it would stand twice, which the reader of specs refuses.
    if len(columns) > 1:
        margins.append(columns)
    return "".join(map(partial(_listed, "        -"), margins))


def _listed(begin: str, items: Sequence[str]) -> str:
    """A list in YAML, on one line where it is short."""
    line = f"{begin} [{', '.join(items)}]\n"
    if len(line) <= _WIDEST:
        return line
    indent = " " * (len(begin) - len(begin.lstrip()) + 2)
    lines = [begin, *(f"{indent}- {item}" for item in items), ""]
    return "\n".join(lines)


_TABULATION = Template("""\
tabulations:
  - name: $table
    # CHOOSE: units are what is counted, a word for readers such as persons.
    units: units
    table: $table      # one row for each unit
    hierarchy:
      file: $file
      # CHOOSE: the levels get numbers, from the highest to the lowest; safe are public areas, and
      #   cheap is to leave out a level that nobody reads.
$levels\
    # CHOOSE: the categories are those of the key files; safe are lists that were public before, and
    #   never ones that were taken from the table.
$attributes\
    # CHOOSE: the margins are what is published of each level ([] is the total); each takes its part
    #   of the budget, and plan says how much the others gain where one is left out.
    publish:
$publish\
    # CHOOSE: the importance says how much an error counts on each level and is no matter of
    #   privacy; safe is 1 for all.
    importance:
$importance\
""")
