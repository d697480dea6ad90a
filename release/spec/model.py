"""The release spec: what a curator writes, as frozen models that refuse what cannot be meant.

One YAML file (docs/design/format.md). Unknown fields, wrong types, unknown columns, duplicate names
and numbers out of range are refused in one line with the field's path and the remedy. Exact numbers
are strings: a YAML float has already lost the digits that were written. The descriptions of the
fields go into ``schemas/spec.schema.json`` and from there into docs/reference/spec.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import LossName
from release.spec.declarations import (
    Budget,
    ColumnType,
    Count,
    KeySet,
    Name,
    Pair,
    Privacy,
    ReleaseInfo,
    Table,
    Text,
)
from release.spec.domains import (
    GRID_LIMIT,
    INTEGER_LIMIT,
    BinRange,
    Bins,
    Domain,
    Grid,
    GridRange,
    Model,
    Nominal,
    Ordered,
    plain_answers,
)
from release.spec.guarantees import (
    DeclaredSensitivity,
    GuaranteeSpec,
    LossSpec,
    SensitivitySpec,
    Source,
)
from release.spec.mechanisms import BEST, MechanismName


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
    mechanism: MechanismName = Field(
        default=BEST,
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

    kind: Literal["sum", "mean", "min", "max", "median"] = Field(description="the statistic")
    of: str = Field(description="the column of the numbers")
    noise: Noise = Field(default=Noise.ON_ANSWER, strict=False, description="where noise is added")

    @property
    def statistic(self) -> Statistic:
        """The statistic that ``kind`` names."""
        return Statistic(self.kind)


class BinnedQuery(StatisticQuery):
    """A statistic of an integer column, published as the bin in which it lies."""

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
