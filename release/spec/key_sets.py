"""Public key sets: the groups to publish, declared by the spec and never taken from the data."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from release.errors import SpecError, did_you_mean, no_file
from release.spec.declarations import (
    ColumnType,
    KeyFile,
    KeyRange,
    KeyValue,
    other_separator,
)
from release.spec.domains import KEY_LIMIT, MAX_ANSWERS
from release.spec.model import Spec

MOST_KEYS = 2**21
"""The keys of all lists and ranges of a spec, at most."""

_MOST_BYTES = 64 * 2**20
"""The largest key file: a million keys of 64 letters."""


def declared_keys(spec: Spec, column: str, folder: Path) -> tuple[str, ...]:
    """The public keys of a column as strings, each once, ascending: integers as numbers.

    Raises:
        SpecError: an unreadable key file, a key of the wrong type, a repeated or an empty key.
    """
    declared = spec.keys[column]
    at = f"keys.{column}"
    # One set of keys serves all tables, so the column must mean the same in each.
    kinds = set()
    for columns in map(spec.table_columns, spec.tables):
        if column in columns:
            kinds.add(columns[column])
    if len(kinds) != 1:
        raise SpecError(at, "the tables declare this column with different types; rename one")
    kind = kinds.pop()
    values: list[str] = []
    if isinstance(declared, KeyFile):
        # A line counts from 1, and the first is the header.
        for line, key in enumerate(_keys_of_file(at, column, folder / declared.file), start=2):
            values.append(key_text(f"{at} (line {line})", key, kind))
    else:
        values = listed_keys(at, declared, kind)
    return check_keys(at, values, is_number=kind is ColumnType.INTEGER)


def size_of(declared: Sequence[KeyValue] | KeyRange | KeyFile) -> int:
    """How many keys a list or a range names, none of them built; 0 for a file.

    A range that is too long by itself, which :func:`listed_keys` refuses, counts as the longest.
    """
    if isinstance(declared, KeyFile):
        return 0
    return min(declared.size, MAX_ANSWERS) if isinstance(declared, KeyRange) else len(declared)


def listed_keys(at: str, declared: Sequence[KeyValue] | KeyRange, kind: ColumnType) -> list[str]:
    """The keys of a list or a range as the column's values are written, in their order.

    Raises:
        SpecError: a key of the wrong type, or a range that is empty, too long or out of bounds.
    """
    if not isinstance(declared, KeyRange):
        return [key_text(f"{at}[{place}]", key, kind) for place, key in enumerate(declared)]
    at, (first, last) = f"{at}.range", declared.range
    if kind is not ColumnType.INTEGER:
        raise SpecError(at, f"a range is for integers; the column is declared {kind.value}")
    if not -KEY_LIMIT <= first <= last <= KEY_LIMIT:
        problem = "write [first, last] with first at most last, both within ±(2^53 - 1)"
        raise SpecError(at, problem)
    if declared.size > MAX_ANSWERS:
        raise SpecError(at, f"{declared.size} keys; at most {MAX_ANSWERS}")
    return list(map(str, range(first, last + 1)))


def check_keys(
    at: str, values: list[str], noun: str = "key", *, is_number: bool = False
) -> tuple[str, ...]:
    """The keys, ascending; ``noun`` is what messages call one.

    Numbers ascend as numbers, everything else by code points.

    Raises:
        SpecError: no keys, too many, one that is empty or not printable, or one that stands twice.
    """
    if not values:
        raise SpecError(at, "the key set is empty; name the groups to publish")
    if len(values) > MAX_ANSWERS:
        raise SpecError(at, f"{len(values)} keys; at most {MAX_ANSWERS}")
    # Keys are printed in reports and messages, which control characters could rewrite.
    for position, key in enumerate(values):
        if not key or not key.isprintable():
            raise SpecError(f"{at}[{position}]", f"a {noun} is empty or has control characters")
    if len(set(values)) != len(values):
        raise SpecError(at, f"a {noun} stands twice; keep each once")
    # The order of the published rows: a shuffled list of keys makes the same files.
    return tuple(sorted(values, key=int) if is_number else sorted(values))


def key_text(at: str, key: str | int | datetime.date, kind: ColumnType) -> str:
    """The key as the column's values are written: integers without zeros in front, ISO dates.

    Raises:
        SpecError: the key is of another type, or is not written as its value is printed.
    """
    if kind is ColumnType.STRING:
        if isinstance(key, str):
            return key
        raise SpecError(at, f"{key!s} is not text but the column is a string; put it in quotes")
    limits = "integer keys lie within ±(2^53 - 1), as columns do"
    # Python does not print integers of more than 4,300 digits.
    if isinstance(key, int) and abs(key) > KEY_LIMIT:
        raise SpecError(at, limits)
    # One spelling of each key: docs/design/spec.md.
    text, printed = str(key), None
    # Both parsers take more spellings than the one that they print, such as "1_0" and "20240101".
    with suppress(ValueError):
        if kind is ColumnType.DATE:
            printed = datetime.date.fromisoformat(text).isoformat()
        elif not isinstance(key, datetime.date):
            printed = str(int(text))
    if printed != text:
        form = "2024-01-31" if kind is ColumnType.DATE else "7 or -7"
        raise SpecError(at, f"{text!r} is not a {kind.value} as columns hold it; write {form}")
    if kind is not ColumnType.DATE and abs(int(text)) > KEY_LIMIT:
        raise SpecError(at, limits)
    return text


def _keys_of_file(at: str, column: str, path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            problem = (
                f"{path.name} has more than {_MOST_BYTES} bytes; keep the column of keys alone"
            )
            raise SpecError(f"{at}.file", problem)
        if data.startswith(b"PK") or path.suffix.lower() in (".xls", ".ods"):
            raise SpecError(
                f"{at}.file", f"{path.name} is no CSV file; save the sheet as CSV UTF-8"
            )
        if data.startswith(b"PAR1"):
            raise SpecError(f"{at}.file", f"{path.name} is a Parquet file; write the keys as CSV")
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        if column not in (rows.fieldnames or []):
            names = list(filter(None, rows.fieldnames or []))
            mark = other_separator(names, ",")
            if mark is not None:
                told = "a tab" if mark == "\t" else f"'{mark}'"
                problem = f"{path.name} is separated by {told}; write commas, or the keys alone"
                raise SpecError(f"{at}.file", problem)
            raise SpecError(
                f"{at}.file",
                f"{path.name} has no column {column!r} in its header; "
                f"{did_you_mean(column, names)}name the column as the keys are",
            )
        # A short line has None in place of its key, and is refused as an empty one.
        return [row[column] or "" for row in rows]
    except FileNotFoundError as error:
        raise SpecError(f"{at}.file", no_file(path)) from error
    except (OSError, ValueError, csv.Error) as error:
        raise SpecError(f"{at}.file", f"{path.name} cannot be read as UTF-8 CSV") from error
