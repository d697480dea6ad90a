"""The models of a spec's declarations: the release, its tables, the privacy unit, budget and keys.

They are public, and nothing in them comes from a table.
"""

from __future__ import annotations

import codecs
import datetime
import re
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, Tag, model_validator

from release.errors import did_you_mean
from release.spec.domains import Exact, Label, Model, one_of


def _text(value: object) -> object:
    # YAML reads an unquoted 2013-01-05 as a date; a period is meant as text.
    if isinstance(value, datetime.date):
        return value.isoformat()
    # And 2024 as a number.
    return str(value) if type(value) is int else value


Text: TypeAlias = Annotated[str, BeforeValidator(_text), StringConstraints(min_length=1)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
ReleaseName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)
]
FilePath: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=10**6)]
Pair: TypeAlias = Annotated[list[int], Field(min_length=2, max_length=2)]
# No # in front: such names are those of our own statements.
Column: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^#\x00-\x1f][^\x00-\x1f]*$")]


class ReleaseInfo(Model):
    """Who publishes what, why, and for which period."""

    id: ReleaseName = Field(description="the name of the release and of its folder")
    title: Text | None = Field(
        default=None, description="the title of the report; without it the id"
    )
    curator: Text | None = Field(default=None, description="who publishes the release")
    contact: Text | None = Field(default=None, description="where readers send questions")
    purpose: Text | None = Field(default=None, description="what the release is for")
    period: Text | None = Field(default=None, description="the period that the data are about")
    license: Text | None = Field(default=None, description="the license of the released tables")


class ColumnType(StrEnum):
    """The type of a column; a ``number`` is read in whole steps of a grid's scale."""

    STRING = "string"
    INTEGER = "integer"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"
    BOOLEAN = "boolean"


ColumnKind: TypeAlias = Annotated[ColumnType, Field(strict=False)]


_ENCODINGS = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "shift_jis", "euc_jp", "euc_kr"),
        *("gb18030", "big5", "koi8-r", "mac-roman", "cp437", "cp850", "cp852"),
        *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
        *(f"cp{number}" for number in range(1250, 1259)),
    }
)
"""Encodings of text by Python's names: each character of a file stands for itself."""


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if found not in _ENCODINGS:
        raise ValueError("no encoding of text that is known; write one such as cp1252 or utf-16")
    return name


def _separator(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in '"\r\n\0.+-':
        raise ValueError('write one mark, such as ";" or "\\t"')
    return text


def other_separator(header: Sequence[str], separator: str) -> str | None:
    """The mark that a header of one name seems to be separated by; None where it is fine."""
    if len(header) != 1:
        return None
    counts = {mark: header[0].count(mark) for mark in ",;\t|" if mark != separator}
    mark = max(counts, key=lambda each: counts[each])
    return mark if counts[mark] else None


class CsvFormat(Model):
    """How the CSV files of a table are written, where it is not as most are."""

    separator: Annotated[str, AfterValidator(_separator)] | None = Field(
        default=None,
        description='what stands between fields, such as `";"`; without it a comma, and a tab in '
        "`.tsv` files",
    )
    decimal: Literal[".", ","] = Field(default=".", description="the mark before decimals")
    encoding: Annotated[str, AfterValidator(_encoding)] = Field(
        default="utf-8", description="the encoding of the text, such as `cp1252` or `utf-16`"
    )
    skip: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=0, description="how many lines stand before the header"
    )
    header: Annotated[list[Column], Field(min_length=1)] | None = Field(
        default=None, description="the names of all columns, of files whose first line is a row"
    )

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are read as they are."""
        return codecs.lookup(self.encoding).name in ("utf-8", "ascii")

    def separator_of(self, file: PurePath) -> str:
        """The separator of a file."""
        return self.separator or ("\t" if ".tsv" in file.name.lower() else ",")


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    """The zones of the tz database by their places, which every engine knows."""
    return frozenset(name for name in available_timezones() if "/" in name or name == "UTC")


def _zone(name: str) -> str:
    if name not in _zones():
        raise ValueError(
            f"there is no zone {name!r}; {did_you_mean(name, _zones())}"
            "write one such as Europe/London"
        )
    return name


Zone: TypeAlias = Annotated[str, AfterValidator(_zone)]


class Join(Model):
    """Adds the columns of another table, matched on the privacy unit."""

    table: str = Field(description="the name of the other table, which has the same privacy unit")
    many: bool = Field(
        default=False,
        description="whether a row counts once for each row of its unit there; else it takes one",
    )


class DerivedColumn(Model):
    """A column computed by SQL from one row, so that every row still belongs to one unit."""

    type: ColumnType = Field(strict=False, description="the type of the new column")
    sql: str = Field(description="an SQL expression over the other columns of the same row")


class Table(Model):
    """A confidential table: where it lies, and its columns."""

    path: FilePath = Field(
        description="the file, relative to the spec and maybe with `*`, or a URI"
    )
    columns: dict[Column, ColumnKind] = Field(min_length=1, description="the columns, with types")
    relation: Label | None = Field(default=None, description="the table of a database")
    csv: CsvFormat | None = Field(default=None, description="how CSV files are written")
    zones: dict[Column, Zone] = Field(
        default={},
        description="the zone whose local time a timestamp is read in, such as `Europe/London`; "
        "without it instants are read in UTC. Written with the column too: `at: {type: timestamp, "
        "zone: Europe/London}`",
    )
    missing: list[str] = Field(
        default=[], description="words of CSV files that mean that there is no value, such as `NA`"
    )
    contract: FilePath | None = Field(default=None, description="a file of rules for the values")
    join: Join | None = Field(default=None, description="the table whose columns are added")
    derive: dict[Column, DerivedColumn] = Field(default={}, description="columns made from one row")

    @model_validator(mode="before")
    @classmethod
    def _take_zones(cls, given: Any) -> Any:
        """Move the zone of a column to the zones of the table."""
        if not isinstance(given, dict) or not isinstance(given.get("columns"), dict):
            return given
        columns, zones = dict(given["columns"]), given.get("zones", {})
        for name, column in given["columns"].items():
            if isinstance(column, dict) and column.keys() == {"type", "zone"}:
                columns[name] = column["type"]
                zones = {**zones, name: column["zone"]}
        return {**given, "columns": columns, "zones": zones}

    @model_validator(mode="after")
    def _check(self) -> Table:
        for column in self.zones:
            if self.columns.get(column) is not ColumnType.TIMESTAMP:
                raise ValueError(f"zones: {column!r} is no timestamp; a zone is for instants")
        # The spec is published, and its path with it.
        if re.search(r"://[^/]*@", self.path):
            raise ValueError("a path with credentials; they belong into the environment")
        if self.path.startswith(("http://", "https://")):
            raise ValueError(
                "no page of the web is read; download the file, or name a store: s3://…"
            )
        return self


class Relation(StrEnum):
    """How two neighboring tables differ.

    ``replace_one``: one unit's rows are replaced by another's. ``add_remove``: one unit's rows are
    added or removed. ``attribute``: the values of the sensitive column change in one unit's rows.
    """

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"
    ATTRIBUTE = "attribute"


class Replacement(StrEnum):
    """What a unit may hold that enters the table, for empirical sensitivity.

    ``observed``: what some unit of this table holds. ``domain``: anything within the declared
    bounds.
    """

    OBSERVED = "observed"
    DOMAIN = "domain"


class Privacy(Model):
    """The privacy unit, its public facts, and the bounds that are enforced on its rows."""

    unit: str = Field(description="the column that names the privacy unit")
    neighbors: Relation = Field(strict=False, description="how two neighboring tables differ")
    max_rows_per_unit: Count = Field(description="the most rows of a unit that a query reads")
    max_cells_per_unit: Count | None = Field(
        default=None, description="the most cells of a query in which a unit counts; else all"
    )
    fixed: list[str] = Field(default=[], description="columns that are public facts of a unit")
    attribute: str | None = Field(default=None, description="what attribute neighbors differ in")
    replacement: Annotated[Replacement | None, Field(strict=False)] = Field(
        default=None,
        description="what a unit may hold that enters the table; without it `observed`",
    )

    @model_validator(mode="after")
    def _check(self) -> Privacy:
        # Attribute neighbors always range over the domain; ``replacement`` would say it twice, or
        # contradict it.
        if self.attribute is not None and self.replacement is not None:
            raise ValueError("an attribute takes any value of its domain; leave replacement out")
        if (self.attribute is not None) != (self.neighbors is Relation.ATTRIBUTE):
            raise ValueError(
                "attribute neighbors, and only they, need attribute: the sensitive column"
            )
        return self

    @property
    def any_of_domain(self) -> bool:
        """Whether an entering unit may hold anything that the declaration allows."""
        return self.attribute is not None or self.replacement is Replacement.DOMAIN


class Budget(Model):
    """The cap of this release, and the ledger scope that pays."""

    scope: ReleaseName = Field(description="the account of the ledger that pays")
    epsilon: Exact = Field(description="the largest ε that all charges together may reach")
    delta: Exact = Field(
        default=Fraction(0), description="the largest δ that all charges together may reach"
    )
    composition: Literal["basic", "pld"] | None = Field(
        default=None,
        description="how the charges of the queries compose: `basic`, they add up, or `pld`, "
        "exactly by privacy-loss distributions; by default basic, and pld where a query has a "
        "share or a target",
    )
    slot: ReleaseName | None = Field(
        default=None,
        description="of a scope with a plan: the slot that the release takes; by default the "
        "first free one that it fits",
    )


class KeyRange(Model):
    """A key set of integers."""

    range: Pair = Field(description="the first and the last integer, both included")

    @property
    def size(self) -> int:
        """How many integers it has, none if they are the wrong way round."""
        return max(0, self.range[1] - self.range[0] + 1)


class KeyFile(Model):
    """The keys in a file of their own, its path relative to the spec."""

    file: str = Field(description="a CSV file: the name of the column, then one key a line")


KeyValue: TypeAlias = str | int | datetime.date
KeySet: TypeAlias = Annotated[
    Annotated[list[KeyValue], Field(min_length=1), Tag("list")]
    | Annotated[KeyRange, Tag("range")]
    | Annotated[KeyFile, Tag("file")],
    one_of(list="[k1, k2]", range="{range: [first, last]}", file="{file: keys.csv}"),
]
