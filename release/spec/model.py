"""The release spec: what a curator writes, as frozen models that refuse what cannot be meant.

One YAML file (docs/design/format.md). Unknown fields, wrong types, unknown columns, duplicate names
and numbers out of range are refused in one line with the field's path and the remedy. Exact numbers
are strings: a YAML float has already lost the digits that were written. The descriptions of the
fields go into ``schemas/spec.schema.json`` and from there into docs/reference/spec.md.
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

SPEC_SCHEMA: Literal["dp-release/spec/v1"] = "dp-release/spec/v1"


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
Column: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^#\x00-\x1f][^\x00-\x1f]*$")]


class ReleaseInfo(Model):
    """Who publishes what, why, and for which period."""

    id: ReleaseName = Field(description="the name of the release and of its folder")
    title: Text = Field(description="the title of the report")
    curator: Text = Field(description="who publishes the release")
    contact: Text = Field(description="where readers send questions")
    purpose: Text = Field(description="what the release is for")
    period: Text = Field(description="the period that the data are about")
    license: Text = Field(description="the license of the released tables")


class ColumnType(StrEnum):
    """The type of a column; a ``number`` is read in whole steps of a grid's scale."""

    STRING = "string"
    INTEGER = "integer"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NUMBER = "number"
    BOOLEAN = "boolean"


ColumnKind: TypeAlias = Annotated[ColumnType, Field(strict=False)]


class Join(Model):
    """Adds the columns of another table, matched on the privacy unit."""

    table: str = Field(description="the name of the other table, which has the same privacy unit")


class DerivedColumn(Model):
    """A column computed by SQL from one row, so that every row still belongs to one unit."""

    type: ColumnType = Field(strict=False, description="the type of the new column")
    sql: str = Field(description="an SQL expression over the other columns of the same row")


class Table(Model):
    """A confidential table: where it lies, and its columns."""

    path: FilePath = Field(description="the file, relative to the spec, or a URI; may have `*`")
    columns: dict[Column, ColumnKind] = Field(min_length=1, description="the columns, with types")
    relation: Label | None = Field(default=None, description="the table or view of a database file")
    contract: FilePath | None = Field(default=None, description="a file of rules for the values")
    join: Join | None = Field(default=None, description="the table whose columns are added")
    derive: dict[Column, DerivedColumn] = Field(default={}, description="columns made from one row")

    @model_validator(mode="after")
    def _check(self) -> Table:
        # The spec is published.
        if re.search(r"://[^/]*@", self.path):
            raise ValueError("a path with credentials; they belong into the environment")
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
    delta: Exact = Field(description="the largest δ that all charges together may reach")


class KeyRange(Model):
    """A key set of integers."""

    range: Pair = Field(description="the first and the last integer, both included")


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


class GuaranteeSpec(Model):
    """The guarantee that a query claims for one cell."""

    definition: Definition = Field(strict=False, description="the definition that δ refers to")
    epsilon: Exact = Field(description="ε of one cell")
    delta: Exact = Field(default=Fraction(0), description="δ of one cell; 0 for a pure guarantee")

    @model_validator(mode="after")
    def _check(self) -> GuaranteeSpec:
        self.to_guarantee()
        return self

    def to_guarantee(self) -> Guarantee:
        """The guarantee as the lower floors know it."""
        return Guarantee(self.definition, self.epsilon, self.delta)


class TableLoss(Model):
    """A loss function of one's own, as a table of costs."""

    table: list[Exact] = Field(description="the cost of each noise value 0..n, as exact numbers")


LossSpec: TypeAlias = Annotated[
    Annotated[LossName, Field(strict=False), Tag("name")] | Annotated[TableLoss, Tag("table")],
    one_of(name="a loss by name", table="{table: [costs]}"),
]


class Source(StrEnum):
    """Where the sensitivity of a query comes from.

    ``empirical``: from this table, so that the guarantee is instance-specific. ``global``: from the
    declared domain and bounds, for every table.
    """

    EMPIRICAL = "empirical"
    GLOBAL = "global"


def _vectors_or_codes(value: object) -> str:
    """Which alternative of a list is meant."""
    first = value[0] if isinstance(value, list) and value else None
    return "vectors" if isinstance(first, list) else "codes"


class DeclaredSensitivity(Model):
    """Sensitivity declared by the spec, and enforced by reading fewer rows.

    The differences of a tuple are lists with a coordinate for each part.
    """

    declared: Annotated[
        Annotated[list[int], Tag("codes")] | Annotated[list[list[int]], Tag("vectors")],
        Discriminator(_vectors_or_codes),
        Field(min_length=1, max_length=MAX_ANSWERS),
    ] = Field(description="the differences in codes; the negative of each is added")

    @property
    def shifts(self) -> list[Shift]:
        """One tuple of coordinates for each difference."""
        return [(shift,) if isinstance(shift, int) else tuple(shift) for shift in self.declared]


SensitivitySpec: TypeAlias = Annotated[
    Annotated[Source, Field(strict=False), Tag("name")]
    | Annotated[DeclaredSensitivity, Tag("declared")],
    one_of(name="empirical, global", declared="{declared: [1, 2]}"),
]


class Mechanism(StrEnum):
    """How the noisy answer is drawn.

    ``best`` takes the mechanism with the least expected loss. ``modular`` and ``channel`` are the
    optimal ones of their type. All others are baselines, fitted to the guarantee.
    """

    BEST = "best"
    MODULAR = "modular"
    CHANNEL = "channel"
    GEOMETRIC_CLAMPED = "geometric_clamped"
    GEOMETRIC_TRUNCATED = "geometric_truncated"
    GEOMETRIC_MODULAR = "geometric_modular"
    GAUSSIAN_CLAMPED = "gaussian_clamped"
    GAUSSIAN_MODULAR = "gaussian_modular"
    GUMBEL_CLAMPED = "gumbel_clamped"
    EXPONENTIAL = "exponential"
    RANDOMISED_RESPONSE = "randomised_response"
    DATA_INDEPENDENT = "data_independent"


ON_LINE = ("geometric_clamped", "geometric_truncated", "exponential")
"""Baselines of answers in order, for every guarantee."""

ON_LINE_WITH_DELTA = ("gaussian_clamped", "gumbel_clamped")
"""Baselines of answers in order that need δ > 0."""

MODULAR = ("randomised_response", "data_independent", "geometric_modular")
"""Baselines of modular noise, for every guarantee."""

MODULAR_WITH_DELTA = ("gaussian_modular",)


class QueryBase(Model):
    """What all kinds of query have in common."""

    name: Name = Field(description="the name of the query and of its files")
    title: Text | None = Field(default=None, description="a title for people; without it the name")
    units: Text | None = Field(default=None, description="the unit of measure of the answers")
    table: str = Field(description="the table that the query reads")
    by: list[str] = Field(description="the key columns of the cells; `[]` for one answer")
    where: str | None = Field(default=None, description="an SQL condition on one row")
    max_rows_per_unit: Count | None = Field(
        default=None,
        description="the most rows of a unit that this query reads; else the bound of `privacy`",
    )
    sensitivity: SensitivitySpec | None = Field(
        default=None,
        description="where the sensitivity comes from; a query with a guarantee needs it",
    )
    guarantee: GuaranteeSpec | None = Field(
        default=None,
        description="the claimed guarantee of one cell; without it, a query serves tuples only",
    )
    loss: LossSpec = Field(default=LossName.ERROR_RATE, description="the loss function to minimise")
    mechanism: Mechanism = Field(
        default=Mechanism.BEST,
        strict=False,
        description="how the noisy answer is drawn: `best`, a type, or a baseline",
    )

    @property
    def promised(self) -> GuaranteeSpec:
        """The guarantee of a query that is published by itself.

        Raises:
            TypeError: it is a part of a tuple only.
        """
        if self.guarantee is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no guarantee of its own")
        return self.guarantee

    @property
    def source(self) -> Literal["empirical", "global", "declared"]:
        """Where the sensitivity comes from: this table, every table, or the spec."""
        if isinstance(self.sensitivity, DeclaredSensitivity):
            return "declared"
        if self.sensitivity is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no sensitivity of its own")
        return self.sensitivity.value

    @property
    def is_empirical(self) -> bool:
        """Whether the sensitivity, and so the mechanism, depend on the confidential table."""
        return self.sensitivity is Source.EMPIRICAL


class PlainQuery(QueryBase):
    """A query with one answer a cell."""

    domain: Domain = Field(description="the possible answers")


class CountQuery(PlainQuery):
    """The number of rows that meet ``where``, clamped to an ordered domain from 0 or more."""

    kind: Literal["count"] = Field(description="the kind of query")
    of: str | None = Field(default=None, description="the privacy unit, to count units, not rows")

    @model_validator(mode="after")
    def _check(self) -> CountQuery:
        if not isinstance(self.domain, Ordered) or self.domain.ordered.min < 0:
            raise ValueError(
                "a count needs domain: {ordered: {min: a, max: b}} with min at least 0"
            )
        return self


class ModeQuery(PlainQuery):
    """The category with most rows, or most ``weight``; ties go to the smallest code.

    Its domain is cyclic, nominal or ordered.
    """

    kind: Literal["mode"] = Field(description="the kind of query")
    of: str = Field(description="the column of the category")
    weight: str | None = Field(default=None, description="an integer column to sum, not rows")

    @model_validator(mode="after")
    def _check(self) -> ModeQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a mode needs a domain that is cyclic, nominal or ordered")
        return self


class PerUnitQuery(PlainQuery):
    """Each unit's own category, for attribute neighbors; the keys are the public list of units.

    Its domain is cyclic, nominal or ordered. It reads one row of a unit.
    """

    kind: Literal["per_unit"] = Field(description="the kind of query")
    of: str = Field(description="the column of the unit's category")

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
    """The statistics of a column."""

    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"


class Noise(StrEnum):
    """Where noise is added: to the code of the quantised answer."""

    ON_ANSWER = "on_answer"


class StatisticQuery(QueryBase):
    """A statistic of a column, clamped row by row, quantised before noise is added."""

    of: str = Field(description="the column of the numbers")
    noise: Noise = Field(default=Noise.ON_ANSWER, strict=False, description="where noise is added")


class BinnedQuery(StatisticQuery):
    """A statistic of an integer column, published as the bin in which it lies."""

    kind: Literal["sum", "mean", "min", "max", "median"] = Field(description="the statistic")
    bins: BinRange = Field(description="the bins of the answers")
    clamp: Pair | None = Field(
        default=None,
        description="the lowest and highest value a row counts as; else the range of the bins",
    )

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
        """The lowest and highest value a row counts as: ``clamp``, else the range of the bins."""
        if self.clamp is None:
            return self.bins.low, self.bins.high
        return self.clamp[0], self.clamp[1]


class GridQuery(StatisticQuery):
    """A sum or mean of a column of real numbers, rounded to a declared grid.

    Rows are rounded to whole units of the grid's ``scale`` before anything is added up, and
    ``clamp`` bounds them in these units: no float is summed or published.
    """

    kind: Literal["sum", "mean"] = Field(description="the statistic")
    grid: GridRange = Field(description="the points of the answers")
    clamp: Pair = Field(description="the lowest and highest value a row counts as, in whole scales")

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
    """The answers of a statement, which is run anew for every neighbor.

    Its domain is cyclic, ordered or bins; its sensitivity is empirical.
    """

    kind: Literal["sql"] = Field(description="the kind of query")
    sql: str = Field(min_length=1, description="a SELECT of key columns and an integer `answer`")

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
    """Queries of the same table and keys, answered jointly with one mechanism."""

    kind: Literal["tuple"] = Field(description="the kind of query")
    of: list[Name] = Field(min_length=2, max_length=8, description="the queries to answer jointly")
    _parts: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The queries that ``of`` names, once :func:`release.spec.tuples.with_parts` has run."""
        return self._parts

    def with_parts(self, parts: tuple[Part, ...]) -> TupleQuery:
        """A copy of the query that holds its parts."""
        query = self.model_copy()
        query._parts = parts
        return query


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
    """What reads the tables. A cluster has to be declared as inside the boundary."""

    backend: Literal["duckdb", "spark"] = Field(
        default="duckdb",
        description="what reads the tables; `--spark` gives the address of a cluster",
    )
    cluster: Literal["inside"] | None = Field(
        default=None, description="`inside`: the cluster may hold confidential rows and mechanisms"
    )


class Spec(Model):
    """A whole spec, before the checks that span several fields (:mod:`release.queries.read`)."""

    spec: Literal["dp-release/spec/v1"] = Field(description="the version of this format")
    release: ReleaseInfo = Field(description="what is published, and by whom")
    tables: dict[Name, Table] = Field(min_length=1, description="the confidential tables, by name")
    privacy: Privacy = Field(description="whom the guarantee protects")
    budget: Budget = Field(description="what the release may cost")
    keys: dict[str, KeySet] = Field(default={}, description="the public key set of each key column")
    queries: list[Query] = Field(min_length=1, max_length=10_000, description="the queries")
    engine: EngineSpec | None = Field(default=None, description="what reads tables; else DuckDB")

    @property
    def released(self) -> tuple[Query, ...]:
        """The queries that are published by themselves: those with a guarantee."""
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
