"""The release spec: what a curator writes, as frozen models that refuse what cannot be meant.

One YAML file (docs/design/format.md). Unknown fields, wrong types, unknown columns, duplicate names
and numbers out of range are refused in one line with the field's path and the remedy. Exact numbers
are strings: a YAML float has already lost the digits that were written. The descriptions of the
fields go into ``schemas/spec.schema.json`` and from there into docs/reference/spec.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from release.spec.declarations import Budget, ColumnType, KeySet, Name, Privacy, ReleaseInfo, Table
from release.spec.domains import Model
from release.spec.kinds import AnyQuery
from release.spec.query import Query
from release.tabulations.spec.model import Tabulation


class EngineSpec(Model):
    """What reads the tables. A cluster has to be declared as inside the boundary."""

    backend: Literal["duckdb", "spark"] = Field(
        default="duckdb",
        description="what reads the tables; `--spark` gives the address of a cluster",
    )
    cluster: Literal["inside"] | None = Field(
        default=None, description="`inside`: the cluster may hold confidential rows and mechanisms"
    )


def _in_quotes(entry: object) -> object:
    # YAML takes a colon and a blank for a mapping.
    if isinstance(entry, dict):
        raise ValueError('put the entry in quotes, such as "homes: mean_error <= 3"')
    return entry


def _with_table(entry: object, only: str) -> object:
    if isinstance(entry, dict) and "table" not in entry:
        return {**entry, "table": only}
    return entry


class Spec(Model):
    """A whole spec, before the checks that span several fields (:mod:`release.queries.read`)."""

    # Built when a spec is first read: the kinds of query are loaded from above this room.
    model_config = ConfigDict(defer_build=True)

    spec: Literal["dp-release/spec/v1"] = Field(description="the version of this format")
    release: ReleaseInfo = Field(description="what is published, and by whom")
    tables: dict[Name, Table] = Field(min_length=1, description="the confidential tables, by name")
    privacy: Privacy = Field(description="whom the guarantee protects")
    budget: Budget = Field(description="what the release may cost")
    keys: dict[str, KeySet] = Field(default={}, description="the public key set of each key column")
    queries: list[AnyQuery] = Field(default=[], max_length=10_000, description="the queries")
    tabulations: list[Tabulation] = Field(
        default=[], max_length=100, description="tables of counts that add up, from one budget"
    )
    acceptance: list[Annotated[str, BeforeValidator(_in_quotes)]] = Field(
        default=[],
        max_length=10_000,
        description="caps on errors without which nothing is run, such as `homes: mean_error <= 3`",
    )
    engine: EngineSpec | None = Field(default=None, description="what reads tables; else DuckDB")

    @model_validator(mode="before")
    @classmethod
    def _of_the_only_table(cls, data: Any) -> Any:
        """Where the spec has one table, a query or tabulation that names none is of that one."""
        if not isinstance(data, dict) or not isinstance(data.get("tables"), dict):
            return data
        if len(data["tables"]) != 1:
            return data
        (only,) = data["tables"]
        filled = dict(data)
        for field in ("queries", "tabulations"):
            if isinstance(data.get(field), list):
                filled[field] = [_with_table(entry, only) for entry in data[field]]
        return filled

    @property
    def released(self) -> tuple[Query, ...]:
        """The queries published by themselves: those with a guarantee, a share or a target."""
        # Any other query serves as a part of tuples only, and leaves in them.
        return tuple(query for query in self.charged if not query.is_measured)

    @property
    def charged(self) -> tuple[Query, ...]:
        """All that the budget pays for: the released queries, then what tabulations measure."""
        return tuple(query for query in self.queries if query.is_released)

    @property
    def measured(self) -> tuple[Query, ...]:
        """The tables that tabulations measure; none before their strategies are chosen."""
        return tuple(query for query in self.charged if query.is_measured)

    @property
    def composes_exactly(self) -> bool:
        """Whether the charges compose by privacy-loss distributions, and do not just add up."""
        return self.budget.composition == "pld" or self.is_shared or bool(self.tabulations)

    @property
    def is_shared(self) -> bool:
        """Whether some guarantees are found for the whole budget, from shares and targets."""
        return any(query.is_shared for query in self.queries)

    def place_of(self, query: Query) -> str:
        """The path of a query's field, for messages."""
        # By name and not by identity: a tuple is copied when its parts are set.
        names = [query.name for query in self.queries]
        return f"queries[{names.index(query.name)}]"

    def rows_per_unit(self, query: Query) -> int:
        """The bound on the rows of a unit that ``query`` reads."""
        # One answer for each unit: its other rows could only say the same or contradict it.
        if query.for_units:
            return 1
        return query.max_rows_per_unit or self.privacy.max_rows_per_unit

    def table_columns(self, name: str) -> dict[str, ColumnType]:
        """All columns a query on ``name`` may use: declared, joined and derived."""
        table = self.tables[name]
        columns = dict(table.columns)
        if table.join is not None:
            joined = self.tables[table.join.table].columns
            # A column of both is that of the table itself.
            columns = {**joined, **columns}
        for column, derived in table.derive.items():
            columns[column] = derived.type
        return columns
