"""What other tools are told of a tabulation: its files, columns, mechanisms and public facts.

All of it follows from the declaration and the entry in ``release.json``.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dp_release_verify import forms
from release.bundle.tables.intervals import END_TITLES, INTERVAL, LEVEL_TEXT
from release.spec.query import spoken
from release.tabulations.spec.model import Tabulation, margin_text

MEASURED, ESTIMATE, COUNT = "measured", "estimate", "count"
"""The columns of noisy counts, of estimates from them, and of declared numbers."""

TITLES = {
    "answer": "least-squares estimate, unbiased, to the nearest millionth",
    "rounded": "whole number; all tables add up",
    **END_TITLES,
    "standard_error": "standard error of the answer, rounded up",
    MEASURED: "noisy count",
    ESTIMATE: "least-squares estimate, unbiased, to the nearest millionth",
    COUNT: "declared number",
}
"""What people read of each column of numbers."""

_PUBLISHED = ("answer", "rounded", "low", "high", "standard_error")
_DOUBLES = ("answer", "standard_error", ESTIMATE)
_ANY_SIGN = ("answer", MEASURED, ESTIMATE)

_REQUIRED: dict[str, Any] = {"required": True}
_AT_LEAST_0: dict[str, Any] = {"required": True, "minimum": 0}


@dataclass(frozen=True)
class TableFile:
    """A published file of a tabulation, ``data/<name>.parquet``.

    ``fields`` are its columns as a Data Package describes them; ``keys`` name the rows. Where
    ``has_missing``, a key is missing in the rows of some margins.
    """

    name: str
    title: str
    fields: tuple[dict[str, Any], ...]
    keys: tuple[str, ...]
    has_missing: bool = False

    def schema(self, profile: str) -> dict[str, Any]:
        """The table schema of a Data Package."""
        schema: dict[str, Any] = {"$schema": profile, "fields": list(self.fields)}
        # No value of a primary key may be missing; of a unique key one may.
        if self.has_missing:
            schema["uniqueKeys"] = [list(self.keys)]
        else:
            schema["primaryKey"] = list(self.keys)
        return schema


def title_of(declared: Tabulation) -> str:
    """The title for people."""
    return declared.title or spoken(declared.name)


def table_files(declared: Tabulation, made: forms.MadeTabulation) -> tuple[TableFile, ...]:
    """The files of a tabulation."""
    title = title_of(declared)
    files = []
    for level in made.levels:
        margins = [declared.in_order(margin) for margin in declared.publish[level.level]]
        columns = _margin_columns(declared, margins)
        # What every margin of the level is broken down by; other columns have missing values.
        common = set(columns).intersection(*margins)
        fields = _key_fields(declared, level.level, columns, common)
        has_missing = len(common) < len(columns)
        keys = _keys(declared, level.level, columns)
        fields += map(partial(_number, declared), _PUBLISHED)
        named = f"{title}: {level.level}"
        files.append(TableFile(level.file, named, tuple(fields), keys, has_missing))
    for table in made.measured:
        # A table that its level publishes has its estimates there.
        is_published = declared.publishes(table.level, table.margin)
        columns = [MEASURED] if is_published else [MEASURED, ESTIMATE]
        files.append(_one_margin(declared, table.name, (table.level, table.margin), columns))
    for fact in declared.facts:
        if made.declared is not None:
            margin = declared.in_order(fact.margin)
            files.append(_one_margin(declared, made.declared, (fact.level, margin), [COUNT]))
    return tuple(files)


def _one_margin(
    declared: Tabulation, name: str, table: tuple[str, Sequence[str]], columns: Sequence[str]
) -> TableFile:
    """The file of one table, whose numbers are in ``columns``."""
    level, margin = table
    title = f"{title_of(declared)}: {level}, {margin_text(margin)}, {TITLES[columns[0]]}s"
    fields = _key_fields(declared, level, margin, margin)
    fields += map(partial(_number, declared), columns)
    return TableFile(name, title, tuple(fields), _keys(declared, level, margin))


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
    return [name for name in ordered if name in used]


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
    interval = {"interval": LEVEL_TEXT} if name in INTERVAL else {}
    facts = {"title": TITLES[name], **unit, **interval}
    return {"name": name, "type": kind, **facts, "constraints": constraints}


def domain_text(declared: Tabulation) -> str:
    """What is counted, by what, for the registry."""
    by = " and ".join((*declared.attributes, *declared.groupings)) or "no attribute"
    levels = ", ".join(declared.hierarchy.levels)
    return f"{declared.name}: counts of {declared.units or 'rows'} by {by}, on the levels {levels}"


def mechanism_text(name: str, family: str, measured: int) -> str:
    """What protects a tabulation, for the registry."""
    tables = f"{measured} {'table' if measured == 1 else 'tables'}"
    return f"{name}: {family} noise on {tables}, estimated by least squares"


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
