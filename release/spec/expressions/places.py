"""All conditions and derived columns of a spec, each with its place and its tree."""

from __future__ import annotations

from release.records.trees import ExpressionRecord, Node
from release.spec.declarations import ColumnType
from release.spec.expressions.parse import parse_expression
from release.spec.model import Spec
from release.spec.query import Query
from release.spec.tabulations.model import Tabulation


def derived_tree(spec: Spec, table: str, column: str) -> Node:
    """The tree of a derived column, cast to its declared type.

    Raises:
        SpecError: it is not an expression over the columns of one row.
    """
    derived = spec.tables[table].derive[column]
    field = f"tables.{table}.derive.{column}.sql"
    return parse_expression(field, derived.sql, usable_columns(spec, table), derived.type)


def usable_columns(spec: Spec, table: str) -> dict[str, ColumnType]:
    """The columns that a derived column may use: not another one, as their order would matter."""
    columns = spec.table_columns(table)
    return {name: columns[name] for name in columns if name not in spec.tables[table].derive}


def expressions(spec: Spec) -> list[ExpressionRecord]:
    """The trees of a spec: derived columns by table, then conditions.

    Raises:
        SpecError: one of them is not an expression over the columns of one row.
    """
    records = []
    for name, table in spec.tables.items():
        for column in table.derive:
            tree = derived_tree(spec, name, column)
            records.append(ExpressionRecord(place=place_of_derived(name, column), tree=tree))
    for index, query in enumerate(spec.queries):
        if query.where is not None:
            columns = spec.table_columns(query.table)
            tree = parse_expression(f"queries[{index}].where", query.where, columns)
            records.append(ExpressionRecord(place=place_of_condition(query), tree=tree))
    for index, tabulation in enumerate(spec.tabulations):
        if tabulation.where is not None:
            columns = spec.table_columns(tabulation.table)
            field = f"tabulations[{index}].where"
            tree = parse_expression(field, tabulation.where, columns)
            records.append(ExpressionRecord(place=place_of_filter(tabulation), tree=tree))
    return records


def place_of_derived(table: str, column: str) -> str:
    """The place of a derived column in ``release.json``."""
    return f"tables.{table}.derive.{column}"


def place_of_filter(tabulation: Tabulation) -> str:
    """The place of a tabulation's condition in ``release.json``."""
    return f"tabulations.{tabulation.name}.where"


def place_of_condition(query: Query) -> str:
    """The place of a condition in ``release.json``."""
    return f"queries.{query.name}.where"
