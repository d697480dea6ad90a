"""What other tools are told of a tabulation: its files, columns, mechanisms and public facts.

All of it follows from the declaration and the record, so that a verifier without the file of the
areas writes it again.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from release.records.models import OutputFile
from release.records.tabulations import DeclaredRecord, MeasuredRecord, TabulationRecord
from release.spec.query import spoken
from release.spec.tabulations.model import Tabulation, margin_text

MEASURED, COUNT = "measured", "count"
"""The columns of noisy counts, and of declared numbers."""

TITLES = {
    "answer": "least-squares estimate, unbiased, to the nearest millionth",
    "rounded": "whole number; all tables add up",
    "low": "lower end of the 95 % interval",
    "high": "upper end of the 95 % interval",
    "standard_error": "standard error of the answer, rounded up",
    MEASURED: "noisy count",
    COUNT: "declared number",
}
"""What people read of each column of numbers."""

INTERVAL_ENDS, LEVEL = ("low", "high"), "0.95"
"""The columns of an interval, and in how many cases it holds the truth, for each cell by itself."""

_PUBLISHED = ("answer", "rounded", "low", "high", "standard_error")
_DOUBLES = ("answer", "standard_error")
_ANY_SIGN = ("answer", MEASURED)

_REQUIRED: dict[str, Any] = {"required": True}
_AT_LEAST_0: dict[str, Any] = {"required": True, "minimum": 0}


@dataclass(frozen=True)
class TableFile:
    """A published file of a tabulation.

    ``fields`` are its columns as a Data Package describes them; ``keys`` name the rows. Where
    ``has_missing``, a key is missing in the rows of some margins.
    """

    output: OutputFile
    title: str
    fields: tuple[dict[str, Any], ...]
    keys: tuple[str, ...]
    has_missing: bool = False

    def resource(self, size: int, profile: str) -> dict[str, Any]:
        """The resource of a Data Package; ``size`` in bytes."""
        schema: dict[str, Any] = {"$schema": profile, "fields": list(self.fields)}
        # No value of a primary key may be missing; of a unique key one may.
        if self.has_missing:
            schema["uniqueKeys"] = [list(self.keys)]
        else:
            schema["primaryKey"] = list(self.keys)
        return {
            "name": Path(self.output.path).stem,
            "path": self.output.path,
            "type": "table",
            "title": self.title,
            "format": "parquet",
            "mediatype": "application/vnd.apache.parquet",
            "bytes": size,
            "hash": f"sha256:{self.output.sha256}",
            "schema": schema,
        }


def title_of(declared: Tabulation) -> str:
    """The title for people."""
    return declared.title or spoken(declared.name)


def table_files(declared: Tabulation, record: TabulationRecord) -> tuple[TableFile, ...]:
    """The files of a tabulation, in the order of its outputs."""
    title = title_of(declared)
    files = []
    for level in record.levels:
        columns = _margin_columns(declared, level.margins)
        # What every margin of the level is broken down by; other columns have missing values.
        common = set(columns).intersection(*level.margins)
        fields = _key_fields(declared, level.level, columns, common)
        has_missing = len(common) < len(columns)
        keys = _keys(declared, level.level, columns)
        fields += map(partial(_number, declared), _PUBLISHED)
        named = f"{title}: {level.level}"
        files.append(TableFile(level.output, named, tuple(fields), keys, has_missing))
    for measured in record.measured:
        files.append(_one_margin(declared, measured, MEASURED))
    for fact in record.declared:
        files.append(_one_margin(declared, fact, COUNT))
    return tuple(files)


def _one_margin(
    declared: Tabulation, entry: MeasuredRecord | DeclaredRecord, column: str
) -> TableFile:
    """The file of one table, whose numbers are in ``column``."""
    level, margin = entry.level, entry.margin
    title = f"{title_of(declared)}: {level}, {margin_text(margin)}, {TITLES[column]}s"
    fields = (*_key_fields(declared, level, margin, margin), _number(declared, column))
    return TableFile(entry.output, title, fields, _keys(declared, level, margin))


def _margin_columns(declared: Tabulation, margins: Sequence[Sequence[str]]) -> list[str]:
    """The names of all margins: each attribute, followed by its groupings."""
    # In the order of the spec: a set has none, and a verifier writes the same bytes.
    used: set[str] = set().union(*margins)
    ordered = []
    for attribute in declared.attributes:
        ordered.append(attribute)
        for name, grouping in declared.groupings.items():
            if grouping.of == attribute:
                ordered.append(name)
    return list(filter(used.__contains__, ordered))


def _levels(declared: Tabulation, level: str) -> list[str]:
    levels = declared.hierarchy.levels
    return levels[: levels.index(level) + 1]


def _keys(declared: Tabulation, level: str, columns: Sequence[str]) -> tuple[str, ...]:
    # An area has its name once in all the hierarchy, but the columns above it say where it lies.
    return (*_levels(declared, level), *columns)


def _key_fields(
    declared: Tabulation, level: str, columns: Sequence[str], always: Container[str]
) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    for name in _levels(declared, level):
        fields.append({"name": name, "type": "string", "title": name, "constraints": _REQUIRED})
    for name in columns:
        field: dict[str, Any] = {"name": name, "type": "string", "title": name}
        if name in always:
            field["constraints"] = _REQUIRED
        else:
            field["description"] = f"missing where the count is not broken down by {name}"
        fields.append(field)
    return fields


def _number(declared: Tabulation, name: str) -> dict[str, Any]:
    """The column of a number."""
    unit = {} if declared.units is None else {"unit": declared.units}
    kind = "number" if name in _DOUBLES else "integer"
    constraints = _REQUIRED if name in _ANY_SIGN else _AT_LEAST_0
    interval = {"interval": LEVEL} if name in INTERVAL_ENDS else {}
    facts = {"title": TITLES[name], **unit, **interval}
    return {"name": name, "type": kind, **facts, "constraints": constraints}


def domain_text(declared: Tabulation) -> str:
    """What is counted, by what, for the registry."""
    by = " and ".join((*declared.attributes, *declared.groupings)) or "no attribute"
    levels = ", ".join(declared.hierarchy.levels)
    return f"{declared.name}: counts of {declared.units or 'rows'} by {by}, on the levels {levels}"


def mechanism_text(record: TabulationRecord) -> str:
    """What protects a tabulation, for the registry."""
    count = len(record.measured)
    tables = f"{count} {'table' if count == 1 else 'tables'}"
    return f"{record.name}: {record.noise} noise on {tables}, estimated by least squares"


def unprotected_text(declared: Tabulation) -> str:
    """The public facts that a tabulation takes as given."""
    facts = [f"the areas of {', '.join(declared.hierarchy.levels)}"]
    if declared.attributes:
        facts.append(f"the categories of {', '.join(declared.attributes)}")
    for fact in declared.facts:
        facts.append(f"the declared numbers of {fact.level}, {margin_text(fact.margin)}")
    for zero in declared.zeros:
        facts.append(f"the impossible combinations of {', '.join(zero.impossible)}")
    return f"{declared.name}: {', '.join(facts)}"
