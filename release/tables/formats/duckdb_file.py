"""A table of a DuckDB database file, which the engine attaches, read-only, and reads in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from release.errors import SpecError, unknown_name
from release.spec.declarations import Table
from release.spec.expressions import identifier
from release.tables.formats.base import Format, Incoming, Source
from release.tables.schemas import computed_column, computed_relation


@dataclass(frozen=True)
class DuckDbFile(Format):
    """A DuckDB database file."""

    endings = frozenset({".duckdb", ".db", ".ddb"})
    is_database = True

    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[Incoming]:
        """Nothing comes in: the engine reads the file in place."""
        raise TypeError("a database file of the engine is attached, and not read")


def database(name: str) -> str:
    """The SQL name under which the database file of a table is attached."""
    return identifier(f"file {name}")


def relation_of(name: str, table: Table) -> str:
    """The SQL name of a table's relation in its attached file: a table, or one of a schema."""
    schema, relation = _parts(table.relation or "")
    return f"{database(name)}.{identifier(schema)}.{identifier(relation)}"


def _parts(relation: str) -> tuple[str, str]:
    schema, dot, table = relation.partition(".")
    return (schema, table) if dot else ("main", relation)


def check_stored(name: str, table: Table, connection: duckdb.DuckDBPyConnection) -> None:
    """Check that the relation of an attached database file is stored, and not computed.

    Raises:
        SpecError: there is none, or it is a view, or a declared column is generated.
    """
    schema, relation = _parts(table.relation or "")
    named = "database_name = ? AND lower(schema_name) = lower(?) AND lower({}) = lower(?)"

    def described(catalog: str, kind: str, what: str) -> list[tuple[str]]:
        query = f"SELECT {what} FROM {catalog}() WHERE {named.format(kind)}"
        return connection.execute(query, [f"file {name}", schema, relation]).fetchall()

    if described("duckdb_views", "view_name", "view_name"):
        raise computed_relation(name, relation)
    if not described("duckdb_tables", "table_name", "table_name"):
        has = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?"
        found = connection.execute(f"{has} ORDER BY 1, 2", [f"file {name}"]).fetchall()
        names = [table if schema == "main" else f"{schema}.{table}" for schema, table in found]
        problem = f"{unknown_name(relation, names)}" if names else "the file has no table"
        raise SpecError(f"tables.{name}.relation", problem)
    generated = "CASE WHEN is_generated THEN column_name END"
    for (column,) in described("duckdb_columns", "table_name", generated):
        if column in table.columns:
            raise computed_column(name, column)
