"""The release spec: what a curator writes, as frozen models that refuse what cannot be meant.

One YAML file (docs/design/format.md). Unknown fields, wrong types, unknown columns, duplicate names
and numbers out of range are refused in one line with the field's path and the remedy. Exact numbers
are strings: a YAML float has already lost the digits that were written.

Some optional fields are added to docs/design/format.md, because real releases need them. A table's
``join`` brings in the columns of another table of the same units, and its ``derive`` adds columns
computed from the same row, so every row still belongs to one privacy unit. A query's
``max_rows_per_unit`` lowers the bound of the release for that query; ``max_cells_per_unit`` bounds
in how many cells of a query a unit counts. A count with ``of`` the privacy unit counts units.
``attribute`` names the sensitive column of attribute neighbors, ``replacement`` says what a unit
that comes in may hold, ``relation`` the table of a database file, and ``contract`` the rules of a
table's values. A query without ``guarantee`` is published as a part of the tuples that name it, and
not by itself; the ``declared`` differences of a tuple are lists with a coordinate for each part.
``title`` and ``units`` of a query go into the descriptions of its answers. ``engine`` names what
reads the tables and says of a cluster that it is inside the boundary.
"""

from __future__ import annotations

import datetime
import re
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from release.exact.domain import AnswerDomain, JointDomain, Shift
from release.exact.losses import LossName
from release.exact.privacy import Definition, Guarantee
from release.spec.domains import (
    GRID_LIMIT,
    INTEGER_LIMIT,
    MAX_ANSWERS,
    BinRange,
    Bins,
    Domain,
    Exact,
    Grid,
    GridRange,
    Label,
    Model,
    Nominal,
    Ordered,
    one_of,
    plain_answers,
)
from release.spec.mechanisms import BEST, MechanismName

SPEC_SCHEMA: Literal["dp-release/spec/v1"] = "dp-release/spec/v1"


def _text(value: object) -> object:
    # YAML reads an unquoted 2013-01-05 as a date; a period is meant as text.
    if isinstance(value, datetime.date):
        return value.isoformat()
    # And 2024 as a number.
    return str(value) if type(value) is int else value


Text: TypeAlias = Annotated[str, BeforeValidator(_text), StringConstraints(min_length=1)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
Column: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^#\x00-\x1f][^\x00-\x1f]*$")]


class ReleaseInfo(Model):
    """Who publishes what, why, and about when."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
    title: Text
    curator: Text
    contact: Text
    purpose: Text
    period: Text
    license: Text


class ColumnType(StrEnum):
    """Types a column may be declared as."""

    STRING = "string"
    INTEGER = "integer"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"
    BOOLEAN = "boolean"


class Join(Model):
    """Bring in the columns of ``table``, matched on the privacy unit."""

    table: str


class DerivedColumn(Model):
    """A column computed from the other columns of the same row by an SQL expression."""

    type: Annotated[ColumnType, Field(strict=False)]
    sql: str


class Table(Model):
    """A confidential table: where it lies (relative to the spec, or a URI) and its columns.

    Of a database file ``relation`` names the table or view. ``contract`` names a file of rules for
    its values (:mod:`release.spec.contract`).
    """

    path: Annotated[str, StringConstraints(min_length=1)]
    columns: Annotated[
        dict[Column, Annotated[ColumnType, Field(strict=False)]], Field(min_length=1)
    ]
    relation: Label | None = None
    contract: Annotated[str, StringConstraints(min_length=1)] | None = None
    join: Join | None = None
    derive: dict[Column, DerivedColumn] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Table:
        # The spec is published.
        if re.search(r"://[^/]*@", self.path):
            raise ValueError("a path with credentials; they belong into the environment")
        return self


class Relation(StrEnum):
    """What two neighboring tables differ in."""

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"
    ATTRIBUTE = "attribute"


class Replacement(StrEnum):
    """What a unit that comes into a table may hold; empirical differences are found under it."""

    OBSERVED = "observed"  # what some unit of this table holds
    DOMAIN = "domain"  # anything within the declared bounds


class Privacy(Model):
    """The privacy unit and what is known and enforced about it."""

    unit: str
    neighbors: Annotated[Relation, Field(strict=False)]
    max_rows_per_unit: Annotated[int, Field(ge=1, le=10**6)]
    max_cells_per_unit: Annotated[int, Field(ge=1, le=10**6)] | None = None
    fixed: list[str] = Field(default_factory=list)
    attribute: str | None = None
    replacement: Annotated[Replacement | None, Field(strict=False)] = None

    @model_validator(mode="after")
    def _check(self) -> Privacy:
        if self.attribute is not None and self.replacement is not None:
            raise ValueError("an attribute takes any value of its domain; leave replacement out")
        if (self.attribute is not None) != (self.neighbors is Relation.ATTRIBUTE):
            raise ValueError(
                "attribute neighbors, and only they, need attribute: the sensitive column"
            )
        return self

    @property
    def any_of_domain(self) -> bool:
        """Whether what comes in may hold anything that the declaration allows."""
        return self.attribute is not None or self.replacement is Replacement.DOMAIN


class Budget(Model):
    """The cap of this release, and the ledger scope that pays."""

    scope: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
    epsilon: Exact
    delta: Exact


class KeyRange(Model):
    """The integers from the first to the last, both included."""

    range: Annotated[list[int], Field(min_length=2, max_length=2)]


class KeyFile(Model):
    """One key a line, under the column's name (relative to the spec)."""

    file: str


KeyValue: TypeAlias = str | int | datetime.date
KeySet: TypeAlias = Annotated[
    Annotated[list[KeyValue], Field(min_length=1), Tag("list")]
    | Annotated[KeyRange, Tag("range")]
    | Annotated[KeyFile, Tag("file")],
    one_of(list="[k1, k2]", range="{range: [first, last]}", file="{file: keys.csv}"),
]


class GuaranteeSpec(Model):
    """The promise for one cell of a query."""

    definition: Annotated[Definition, Field(strict=False)]
    epsilon: Exact
    delta: Exact = Fraction(0)

    @model_validator(mode="after")
    def _check(self) -> GuaranteeSpec:
        self.to_guarantee()
        return self

    def to_guarantee(self) -> Guarantee:
        """The guarantee as the lower floors know it."""
        return Guarantee(self.definition, self.epsilon, self.delta)


class TableLoss(Model):
    """The cost of each noise value 0..n, as exact numbers."""

    table: list[Exact]


LossSpec: TypeAlias = Annotated[
    Annotated[LossName, Field(strict=False), Tag("name")] | Annotated[TableLoss, Tag("table")],
    one_of(name="a loss by name", table="{table: [costs]}"),
]


class Source(StrEnum):
    """Where the sensitivity of a query comes from: how far one unit can move an answer."""

    EMPIRICAL = "empirical"  # seen in this table: the guarantee is instance-specific
    GLOBAL = "global"  # the worst case of the declared domain and bounds


def _vectors_or_codes(value: object) -> str:
    """Which alternative of a list is meant."""
    first = value[0] if isinstance(value, list) and value else None
    return "vectors" if isinstance(first, list) else "codes"


class DeclaredSensitivity(Model):
    """Differences told by the spec: codes, closed under negation by the tool.

    Those of a tuple have a coordinate for each part.
    """

    declared: Annotated[
        Annotated[list[int], Tag("codes")] | Annotated[list[list[int]], Tag("vectors")],
        Discriminator(_vectors_or_codes),
        Field(min_length=1, max_length=MAX_ANSWERS),
    ]

    @property
    def shifts(self) -> list[Shift]:
        """One tuple of coordinates for each difference."""
        return [(one,) if isinstance(one, int) else tuple(one) for one in self.declared]


SensitivitySpec: TypeAlias = Annotated[
    Annotated[Source, Field(strict=False), Tag("name")]
    | Annotated[DeclaredSensitivity, Tag("declared")],
    one_of(name="empirical, global", declared="{declared: [1, 2]}"),
]


class QueryBase(Model):
    """What all kinds of query have in common."""

    name: Name
    title: Text | None = None
    units: Text | None = None
    table: str
    by: list[str]
    where: str | None = None
    max_rows_per_unit: Annotated[int, Field(ge=1, le=10**6)] | None = None
    sensitivity: SensitivitySpec | None = None
    guarantee: GuaranteeSpec | None = None
    loss: LossSpec = LossName.ERROR_RATE
    mechanism: MechanismName = BEST

    @property
    def promised(self) -> GuaranteeSpec:
        """The guarantee of a query that is published by itself.

        Raises:
            TypeError: it is a part of a tuple only.
        """
        if self.guarantee is None:
            raise TypeError(f"{self.name} is a part of a tuple and promises nothing by itself")
        return self.guarantee

    @property
    def source(self) -> Literal["empirical", "global", "declared"]:
        """Where the differences come from: seen, the worst case, or told by the spec."""
        if isinstance(self.sensitivity, DeclaredSensitivity):
            return "declared"
        if self.sensitivity is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no differences of its own")
        return self.sensitivity.value

    @property
    def is_empirical(self) -> bool:
        """Whether the differences, and so the law, depend on the confidential table."""
        return self.sensitivity is Source.EMPIRICAL


class PlainQuery(QueryBase):
    """A query with one answer a cell."""

    domain: Domain


class CountQuery(PlainQuery):
    """Rows that meet ``where``, clamped to the domain; units, if ``of`` names the privacy unit."""

    kind: Literal["count"]
    of: str | None = None

    @model_validator(mode="after")
    def _check(self) -> CountQuery:
        if not isinstance(self.domain, Ordered) or self.domain.ordered.min < 0:
            raise ValueError(
                "a count needs domain: {ordered: {min: a, max: b}} with min at least 0"
            )
        return self


class ModeQuery(PlainQuery):
    """The category with most rows, or with most ``weight``; ties go to the smallest code."""

    kind: Literal["mode"]
    of: str
    weight: str | None = None

    @model_validator(mode="after")
    def _check(self) -> ModeQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a mode needs a domain that is cyclic, nominal or ordered")
        return self


class PerUnitQuery(PlainQuery):
    """Each unit's own category; the keys are the public list of units."""

    kind: Literal["per_unit"]
    of: str

    @property
    def weight(self) -> str | None:
        """Each row counts one."""
        return None

    @model_validator(mode="after")
    def _check(self) -> PerUnitQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a per_unit answer needs a domain that is cyclic, nominal or ordered")
        if self.max_rows_per_unit not in (None, 1):
            raise ValueError(
                "a per_unit answer reads one row of a unit; leave max_rows_per_unit out"
            )
        return self


class Statistic(StrEnum):
    """What is made of the rows of a column."""

    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"


class Noise(StrEnum):
    """Where the noise is put."""

    ON_ANSWER = "on_answer"  # on the code of the quantised answer


class StatisticQuery(QueryBase):
    """A statistic of a column, clamped row by row, quantised before noise is added."""

    of: str
    noise: Annotated[Noise, Field(strict=False)] = Noise.ON_ANSWER


class BinnedQuery(StatisticQuery):
    """A statistic of an integer column, published as the bin in which it lies."""

    kind: Literal["sum", "mean", "min", "max", "median"]
    bins: BinRange
    clamp: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _check(self) -> BinnedQuery:
        Bins(bins=self.bins)
        if self.clamp is None:
            if self.statistic is Statistic.SUM:
                raise ValueError("a sum needs clamp: [lo, hi], the bounds of one row")
        elif not -INTEGER_LIMIT <= self.clamp[0] < self.clamp[1] <= INTEGER_LIMIT:
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±(2^31 - 1)")
        return self

    @property
    def statistic(self) -> Statistic:
        """What is made of the rows."""
        return Statistic(self.kind)

    @property
    def domain(self) -> Bins:
        """The bins as the possible answers."""
        return Bins(bins=self.bins)

    @property
    def row_bounds(self) -> tuple[int, int]:
        """What each row is clamped to: ``clamp``, else the range of the bins."""
        if self.clamp is None:
            return self.bins.low, self.bins.high
        return self.clamp[0], self.clamp[1]


class GridQuery(StatisticQuery):
    """A sum or mean of a column of real numbers, rounded to a declared grid.

    Rows are rounded to whole units of the grid's ``scale`` before anything is added up, and
    ``clamp`` bounds them in these units: no float is summed or published.
    """

    kind: Literal["sum", "mean"]
    grid: GridRange
    clamp: Annotated[list[int], Field(min_length=2, max_length=2)]

    @model_validator(mode="after")
    def _check(self) -> GridQuery:
        Grid(grid=self.grid)
        if not -GRID_LIMIT <= self.clamp[0] < self.clamp[1] <= GRID_LIMIT:
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±2^29")
        return self

    @property
    def statistic(self) -> Statistic:
        """What is made of the rows."""
        return Statistic(self.kind)

    @property
    def domain(self) -> Grid:
        """The grid as the possible answers."""
        return Grid(grid=self.grid)


class SqlQuery(PlainQuery):
    """A SELECT giving the key columns and an integer ``answer``, run anew for every neighbor."""

    kind: Literal["sql"]
    sql: Annotated[str, StringConstraints(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> SqlQuery:
        if isinstance(self.domain, Nominal):
            raise ValueError("a statement answers with integers; write ordered, cyclic or bins")
        if not self.is_empirical:
            raise ValueError("nothing is known of a statement; write sensitivity: empirical")
        return self


Part: TypeAlias = CountQuery | ModeQuery | PerUnitQuery | BinnedQuery | GridQuery
"""A query that a tuple can answer jointly with others."""


class TupleQuery(QueryBase):
    """Queries over the same keys, named by ``of``, answered jointly."""

    kind: Literal["tuple"]
    of: Annotated[list[Name], Field(min_length=2, max_length=8)]
    _parts: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The queries that ``of`` names; the spec that holds this query has looked them up."""
        return self._parts

    def with_parts(self, parts: tuple[Part, ...]) -> TupleQuery:
        """The query with its parts looked up."""
        found = self.model_copy()
        found._parts = parts
        return found


STATISTICS = tuple(Statistic)
KINDS = ("count", "mode", *STATISTICS, "per_unit", "tuple", "sql")
"""The kinds of query, as a spec writes them."""


def _which(value: object) -> str | None:
    """Which model a query is of: a sum or mean on a grid is another than one in bins."""
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    if kind not in STATISTICS:
        return kind if isinstance(kind, str) else None
    on_grid = "grid" in value if isinstance(value, dict) else isinstance(value, GridQuery)
    return "grid" if on_grid else "binned"


Query: TypeAlias = Annotated[
    Annotated[CountQuery, Tag("count")]
    | Annotated[ModeQuery, Tag("mode")]
    | Annotated[BinnedQuery, Tag("binned")]
    | Annotated[GridQuery, Tag("grid")]
    | Annotated[PerUnitQuery, Tag("per_unit")]
    | Annotated[TupleQuery, Tag("tuple")]
    | Annotated[SqlQuery, Tag("sql")],
    Discriminator(_which),
]


def answer_domain(query: Query) -> AnswerDomain | JointDomain:
    """The possible answers of a query, in code order."""
    if isinstance(query, TupleQuery):
        return JointDomain(tuple(plain_answers(part.domain) for part in query.parts))
    return plain_answers(query.domain)


def answers_for_units(query: Query) -> bool:
    """Whether a query answers for each unit by itself."""
    return all(isinstance(part, PerUnitQuery) for part in plain_parts(query))


def plain_parts(query: Query) -> tuple[Part | SqlQuery, ...]:
    """The queries that a query answers: the parts of a tuple, or itself."""
    return query.parts if isinstance(query, TupleQuery) else (query,)


def answer_columns(query: Query) -> tuple[str, ...]:
    """The columns of a released table that hold labels (docs/design/format.md)."""
    if isinstance(query, TupleQuery):
        return tuple(f"answer_{name}" for name in query.of)
    return ("answer",)


class EngineSpec(Model):
    """What reads the tables. Of a cluster it has to be said that it may hold confidential rows."""

    backend: Literal["duckdb", "spark"] = "duckdb"
    cluster: Literal["inside"] | None = None


class Spec(Model):
    """A whole spec; what depends on several fields is checked in :mod:`release.queries.read`."""

    spec: Literal["dp-release/spec/v1"]
    release: ReleaseInfo
    tables: Annotated[dict[Name, Table], Field(min_length=1)]
    privacy: Privacy
    budget: Budget
    keys: dict[str, KeySet] = Field(default_factory=dict)
    queries: Annotated[list[Query], Field(min_length=1, max_length=10_000)]
    engine: EngineSpec | None = None

    @property
    def released(self) -> tuple[Query, ...]:
        """The queries that are published by themselves: those that promise a guarantee."""
        return tuple(query for query in self.queries if query.guarantee is not None)

    def place_of(self, query: Query) -> str:
        """The path of a query's field, for messages."""
        return f"queries[{[other.name for other in self.queries].index(query.name)}]"

    def rows_per_unit(self, query: Query) -> int:
        """How many rows of a unit ``query`` reads at most."""
        if answers_for_units(query):
            return 1
        return query.max_rows_per_unit or self.privacy.max_rows_per_unit

    def table_columns(self, name: str) -> dict[str, ColumnType]:
        """All columns a query on ``name`` may use: declared, joined and derived."""
        table = self.tables[name]
        columns = dict(table.columns)
        if table.join is not None:
            joined = self.tables[table.join.table].columns
            columns = {**joined, **columns}
        return {**columns, **{c: derived.type for c, derived in table.derive.items()}}


def plain_domain(query: Query) -> dict[str, Any]:
    """The domain as it stands in the spec and in ``release.json``; a tuple lists its parts'."""
    if isinstance(query, TupleQuery):
        return {"tuple": [plain_domain(part) for part in query.parts]}
    return query.domain.model_dump(mode="json")
