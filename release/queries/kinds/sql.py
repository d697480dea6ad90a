"""sql: a SELECT of the curator's own that gives the key columns and an integer ``answer``.

Its sensitivity cannot be derived, so the statement runs again for every neighbor of this very
table: every unit is taken out or put in, or replaced by a copy of every other. The guarantee is
instance-specific, and a unit is charged for every cell. Cost: one run for each pair of units, so a
table may have ``MOST_UNITS`` units at most.

The statement reads one table, under its name in the spec: the rows that meet ``where``, of each
unit ``max_rows_per_unit``, those of the least hash (:mod:`release.tables.kept`). It may use
whatever the engine computes consistently. A cell that it gives no row, or NULL, has the smallest
code; an answer outside the domain is clamped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from release.errors import DataError, SpecError
from release.exact.domain import Codes
from release.queries.base import MOST_UNITS, Rerun, RerunQuery
from release.spec.declarations import Privacy, Relation
from release.spec.domains import Bins, Nominal, Ordered, plain_answers
from release.spec.expressions import identifier, literal
from release.spec.load import SpecFile

if TYPE_CHECKING:
    import pyarrow as pa

    from release.tables.duckdb import Tables


class SqlQuery(RerunQuery):
    """The answers of a statement, which is run anew for every neighbor.

    Its domain is cyclic, ordered or bins; its sensitivity is empirical.
    """

    kind: Literal["sql"] = Field(description="the kind of query")
    sql: str = Field(min_length=1, description="a SELECT of key columns and an integer `answer`")

    def question(self, units: str) -> str:
        """The statement, which is public."""
        return f"what this SQL statement gives: {self.sql}"

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {"sql": self.sql}

    def rerun(self, tables: Tables, spec_file: SpecFile) -> Rerun:
        """The answers on the table and on every neighbor."""
        return _Statement(tables, spec_file, self).rerun()

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """A statement runs on whole neighbors only, which hold what was observed."""
        if privacy.fixed:
            problem = "a statement cannot be told what neighbors share; leave fixed out"
            raise SpecError(f"{at}.kind", problem)
        if privacy.any_of_domain:
            raise SpecError(
                f"{at}.kind",
                "a statement runs anew for what is observed only; leave attribute and replacement "
                "out",
            )

    @model_validator(mode="after")
    def _check(self) -> SqlQuery:
        if isinstance(self.domain, Nominal):
            raise ValueError("a statement answers with integers; write ordered, cyclic or bins")
        if not self.is_empirical:
            raise ValueError("nothing is known of a statement; write sensitivity: empirical")
        return self


class _Statement:
    def __init__(self, tables: Tables, spec_file: SpecFile, query: SqlQuery) -> None:
        # Loaded here, because a verifier reads this model and loads no engine.
        from release.queries.profiles import cells_of
        from release.tables.duckdb import wide_table
        from release.tables.kept import row_text, sample_of

        spec = spec_file.spec
        at = spec.place_of(query)
        self.tables, self.query, self.field = tables, query, f"{at}.sql"
        self.size = plain_answers(query.domain).size
        self.unit = identifier(spec.privacy.unit)
        self.relation = spec.privacy.neighbors
        self.keys = cells_of(spec_file, query).keys
        self.place = dict(zip(self.keys, range(len(self.keys)), strict=True))
        self._check()
        condition = tables.condition(f"{at}.where", query.table, query.where)
        rows = (
            f'(SELECT rows.*, rows.{self.unit} AS "#unit", '
            f'{row_text(spec_file, query.table, is_empirical=True)} AS "#text" '
            f"FROM {wide_table(query.table)} AS rows WHERE {condition})"
        )
        tables.run(
            'CREATE OR REPLACE TABLE "#base" AS SELECT * EXCLUDE ("#unit", "#text", "#rank") '
            f"FROM {sample_of(rows, spec.rows_per_unit(query))}"
        )

    def rerun(self) -> Rerun:
        distinct = f'SELECT DISTINCT {self.unit} AS u FROM "#base" ORDER BY 1'
        units = self.tables.rows(distinct, self.query.table).column("u").to_pylist()
        if len(units) > MOST_UNITS:
            raise DataError(
                f"{self.field}: the table has more than {MOST_UNITS} units, and the statement runs "
                "once for each pair of them; use another kind of query"
            )
        self._check_columns()
        codes = self._codes('SELECT * FROM "#base"')
        steps = {0}
        for neighbor in self._neighbors(units):
            steps.update((codes - self._codes(neighbor)).tolist())
        return Rerun(codes, np.array(sorted(steps), dtype=np.int64))

    def _neighbors(self, units: list[str | int]) -> Iterator[str]:
        # A copy under a name that no unit has: above the largest, in the order of the engine.
        largest = "NULL" if not units else f"max({self.unit})"
        beyond = " || '~'" if units and isinstance(units[0], str) else " + 1"
        unused = f'(SELECT {largest} FROM "#base"){beyond}'
        for unit in units:
            # Under ``replace_one`` too: a unit without rows may replace, or be replaced.
            yield self._rows(out=unit)
            yield self._rows(into=unit, name=unused)
            if self.relation is Relation.REPLACE_ONE:
                for replacement in units:
                    if replacement != unit:
                        yield self._rows(out=unit, into=replacement, name=_value(unit))

    def _rows(
        self, out: str | int | None = None, into: str | int | None = None, name: str = ""
    ) -> str:
        """The rows without unit ``out``, and with a copy of unit ``into`` under ``name``."""
        rows = 'SELECT * FROM "#base"'
        if out is not None:
            rows += f" WHERE {self.unit} <> {_value(out)}"
        if into is None:
            return rows
        copy = f'SELECT * REPLACE ({name} AS {self.unit}) FROM "#base"'
        return f"{rows} UNION ALL {copy} WHERE {self.unit} = {_value(into)}"

    def _codes(self, rows: str) -> Codes:
        import duckdb

        selected = ""
        for place, column in enumerate(self.query.by):
            selected += f'CAST({identifier(column)} AS VARCHAR) AS "#key {place}", '
        try:
            # The statement sees its table's name as the neighbor's rows. A line end closes a
            # comment that it may end in.
            answers: pa.Table = self.tables.connection.sql(
                f"WITH {identifier(self.query.table)} AS ({rows}) "
                f'SELECT {selected}CAST(answer AS BIGINT) AS "#answer" FROM ({self.query.sql}\n)'
            ).to_arrow_table()
        except duckdb.Error as error:
            # DuckDB's message may quote a value, so it does not enter ours.
            raise DataError(
                f"{self.field}: the statement fails on the table or on a neighbor of it"
            ) from error
        # Cells come from the public key sets: one without a row has code 0, and rows of other
        # groups are left out.
        codes = np.zeros(len(self.keys), dtype=np.int64)
        answered: set[int] = set()
        for row in zip(*(column.to_pylist() for column in answers.columns), strict=True):
            *key, answer = row
            cell = self.place.get(tuple(key))
            if cell is None:
                continue
            if cell in answered:
                raise DataError(f"{self.field}: a cell has two answers; group by the keys")
            answered.add(cell)
            if answer is not None:
                codes[cell] = self._code(answer)
        return codes

    def _code(self, answer: int) -> int:
        domain, low = self.query.domain, 0
        if isinstance(domain, Bins):
            r = domain.bins
            answer = (answer - r.low) * r.count // (r.high - r.low)
        elif isinstance(domain, Ordered):
            low = domain.ordered.min
        return min(max(answer - low, 0), self.size - 1)

    def _check(self) -> None:
        """One SELECT, over its own table, of functions that are consistent."""
        connection = self.tables.connection
        text = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [self.query.sql])
        tree: dict[str, Any] = json.loads(text.fetchall()[0][0])
        if tree.get("error") or len(tree["statements"]) != 1:
            problem = tree.get("error_message", "more than one statement")
            raise SpecError(self.field, f"write one SELECT: {problem}")
        parts = list(_parts_of(tree))
        own = {name["key"] for part in parts if "map" in part for name in part["map"]}
        # Another table would not change with the neighbor, and its rows would be unbounded.
        for part in parts:
            kind = part.get("type")
            if kind == "TABLE_FUNCTION":
                raise SpecError(self.field, "table functions are not allowed; read the table")
            if kind == "BASE_TABLE" and part["table_name"] not in {self.query.table, *own}:
                raise SpecError(
                    self.field, f"{part['table_name']!r} is not there; read {self.query.table!r}"
                )
        # An answer that changes without the table would count as a difference of neighbors.
        used = {part["function_name"].lower() for part in parts if "function_name" in part}
        inconsistent = connection.execute(
            "SELECT min(function_name) FROM duckdb_functions() WHERE stability <> 'CONSISTENT' "
            "AND list_contains(?::VARCHAR[], function_name)",
            [sorted(used)],
        ).fetchall()[0][0]
        if inconsistent is not None:
            raise SpecError(
                self.field, f"the function {inconsistent} gives no two runs the same answer"
            )

    def _check_columns(self) -> None:
        import duckdb

        try:
            shape = self.tables.connection.sql(
                f'WITH {identifier(self.query.table)} AS (SELECT * FROM "#base" LIMIT 0) '
                f"SELECT * FROM ({self.query.sql}\n)"
            )
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise SpecError(self.field, f"does not fit the columns: {first}") from error
        types = dict(zip(shape.columns, map(str, shape.types), strict=True))
        for column in [*self.query.by, "answer"]:
            if column not in types:
                raise SpecError(self.field, f"gives no column {column!r}; select it")
        if "INT" not in types["answer"]:
            raise SpecError(
                self.field, f"answer is {types['answer']}, not an integer; cast it with floor"
            )


def _value(unit: str | int) -> str:
    return str(unit) if isinstance(unit, int) else literal(unit)


def _parts_of(tree: Any) -> Iterator[dict[str, Any]]:
    """All mappings of a parsed statement, at any depth."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _parts_of(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts_of(value)
