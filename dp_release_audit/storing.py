"""The inputs of a run: the spec with the places of tiny tables in it, and these as files."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dp_release_audit.tables import Case, Held
from release.spec.contracts.model import Contract
from release.spec.declarations import ColumnType
from release.spec.load import SpecFile
from release.tables.schemas import ARROW_TYPES

MOST_KEYS = 8
"""A longer key set is cut to its first three keys."""

_KEPT_KEYS = 3
FORMS = ("parquet", "csv")

_MISSPELT = "none"
"""In a CSV file a missing number stands as this, which is no number."""


def rewritten(
    spec_file: SpecFile, place: Path
) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """The plain spec over tiny tables; and of each key set that was cut, its length before and now.

    Contracts are written to ``place``; other files that the spec names keep their places.
    """
    plain: dict[str, Any] = yaml.safe_load(spec_file.text)
    folder, cut = spec_file.folder.absolute(), {}
    for name, table in plain["tables"].items():
        table.pop("relation", None)
        if name in spec_file.contracts:
            table["contract"] = str(_without_patterns(spec_file.contracts[name], name, place))
    for column, keys in spec_file.keys.items():
        beginning = keys if len(keys) <= MOST_KEYS else keys[:_KEPT_KEYS]
        if len(beginning) < len(keys):
            cut[column] = len(keys), len(beginning)
        plain["keys"][column] = list(beginning)
    for tabulation in plain.get("tabulations", []):
        hierarchy = tabulation["hierarchy"]
        hierarchy["file"] = str(folder / hierarchy["file"])
        for constraint in tabulation.get("constraints", []):
            if "file" in constraint:
                constraint["file"] = str(folder / constraint["file"])
    plain["budget"].pop("slot", None)
    return plain, cut


def _without_patterns(contract: Contract, name: str, place: Path) -> Path:
    """A contract as a file, without the patterns: the names of made-up units fit none of them."""
    rules = contract.model_dump(mode="json", exclude_none=True)
    for own in rules["columns"].values():
        own.pop("pattern", None)
    path = place / f"{name}.contract.yaml"
    path.write_text(yaml.dump(rules, Dumper=_Dumper, sort_keys=False, allow_unicode=True), "utf-8")
    return path


def write_spec(plain: dict[str, Any], form: str, folder: Path) -> Path:
    """Write the spec with its tables in a form; the path of the spec."""
    for name, table in plain["tables"].items():
        table["path"] = f"{name}.{form}"
    path = folder / "spec.yaml"
    path.write_text(yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True), "utf-8")
    return path


class _Dumper(yaml.SafeDumper):
    """YAML without aliases, which a spec may not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_tables(
    spec_file: SpecFile, case: Case, form: str, folder: Path, *, backwards: bool = False
) -> None:
    """Write all tables of a case; ``backwards`` puts their rows in the other order."""
    unit = spec_file.spec.privacy.unit
    names = units_of(spec_file, len(case.held))
    for name, table in spec_file.spec.tables.items():
        rows: list[dict[str, Any]] = []
        for own, held in [*zip(names, case.held, strict=True), (None, case.nobody)]:
            for row in dict(held).get(name, ()):
                rows.append({unit: own, **dict(row)})
        ordered = rows[::-1] if backwards else rows
        path = folder / f"{name}.{form}"
        if form == "csv":
            _write_csv(path, table.columns, ordered)
        else:
            _write_parquet(path, table.columns, ordered)


def units_of(spec_file: SpecFile, count: int) -> list[Any]:
    """The names of units: keys where the units have some, in their order."""
    spec = spec_file.spec
    kind = next(iter(spec.tables.values())).columns[spec.privacy.unit]
    names: list[Any] = list(spec_file.keys.get(spec.privacy.unit, ()))
    if kind is ColumnType.INTEGER:
        names = [int(name) for name in names] or list(range(101, 101 + count))
    if not names:
        names = [f"unit {number}" for number in range(count)]
    # The second name is that of the unit that changes: others come before and after it.
    names = [names[1], names[0], *names[2:]] if len(names) > 1 else names
    return [*names, *(f"{names[-1]} {number}" for number in range(count))][:count]


def _write_parquet(path: Path, columns: dict[str, ColumnType], rows: list[dict[str, Any]]) -> None:
    arrays = {}
    for name, kind in columns.items():
        arrays[name] = pa.array([row[name] for row in rows], ARROW_TYPES[kind])
    pq.write_table(pa.table(arrays), path)


def _write_csv(path: Path, columns: dict[str, ColumnType], rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_text(row[name], kind) for name, kind in columns.items()])


def _text(value: Any, kind: ColumnType) -> str:
    if value is None:
        return "" if kind is ColumnType.STRING else _MISSPELT
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def case_lines(spec_file: SpecFile, case: Case) -> list[str]:
    """The rows of a case as lines, with what nothing reads."""
    lines = []
    names = units_of(spec_file, len(case.held))
    for own, held in [*zip(names, case.held, strict=True), ("(nobody)", case.nobody)]:
        for table, rows in held:
            for row in dict.fromkeys(rows):
                times = f" × {rows.count(row)}" if rows.count(row) > 1 else ""
                values = ", ".join(f"{column}={value}" for column, value in row)
                lines.append(f"{table}: {own}: {values}{times}")
    return lines


def emptied(folder: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def is_empty(held: Held) -> bool:
    """Whether a unit has no row at all."""
    return not any(rows for _, rows in held)
