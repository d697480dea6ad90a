"""All conditions and derived columns of a spec, each with its place and its tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from release.errors import SpecError
from release.records.trees import ExpressionRecord, Node
from release.spec.declarations import ColumnType
from release.spec.expressions.check import columns_of
from release.spec.expressions.parse import parse_expression
from release.spec.model import Spec
from release.spec.query import Query
from release.tabulations.spec.model import Tabulation


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
    columns = dict(spec.table_columns(table))
    for name in spec.tables[table].derive:
        columns.pop(name, None)
    return columns


def expressions(spec: Spec) -> list[ExpressionRecord]:
    """The trees of a spec: derived columns by table, then conditions.

    Raises:
        SpecError: one of them is not an expression over the columns of one row.
    """
    return [check() for check in expression_checks(spec)]


def expression_checks(spec: Spec) -> list[Callable[[], ExpressionRecord]]:
    """For each expression of a spec a function that gives its tree, or raises a SpecError.

    Expressions over a table that does not exist are left out.
    """
    # Functions, so that the caller can gather the faults of all and not only the first.
    checks: list[Callable[[], ExpressionRecord]] = []
    empirical: set[str] = set()
    for query in spec.queries:
        # The parts of a tuple share its sensitivity, and have none of their own.
        if query.is_empirical:
            empirical.update((query.name, *query.part_names))
    for name, table in spec.tables.items():
        for column in table.derive:
            checks.append(partial(_derived, spec, name, column))
    for index, query in enumerate(spec.queries):
        if query.where is not None and query.table in spec.tables:
            at = f"queries[{index}].where", place_of_condition(query)
            check = _unfixed_condition if query.name in empirical else _condition
            checks.append(partial(check, spec, query.table, query.where, *at))
    for index, tabulation in enumerate(spec.tabulations):
        if tabulation.where is not None and tabulation.table in spec.tables:
            at = f"tabulations[{index}].where", place_of_filter(tabulation)
            checks.append(partial(_condition, spec, tabulation.table, tabulation.where, *at))
    return checks


def _derived(spec: Spec, table: str, column: str) -> ExpressionRecord:
    tree = derived_tree(spec, table, column)
    field = f"tables.{table}.derive.{column}.sql"
    attribute = spec.privacy.attribute
    # Neighbors differ in the attribute, and so they would in what is derived from it.
    if column in spec.privacy.fixed and attribute in columns_of(tree):
        raise SpecError(
            field,
            f"{column!r} is fixed, but changes with the attribute {attribute!r}; leave it out of "
            "privacy.fixed",
        )
    for query in spec.queries:
        if query.table == table and query.is_empirical:
            _refuse_fixed(spec, field, tree)
    return ExpressionRecord(place=place_of_derived(table, column), tree=tree)


def _unfixed_condition(
    spec: Spec, table: str, where: str, field: str, place: str
) -> ExpressionRecord:
    record = _condition(spec, table, where, field, place)
    _refuse_fixed(spec, field, record.tree)
    return record


def _refuse_fixed(spec: Spec, field: str, tree: Node) -> None:
    """Refuse an expression over fixed columns that a query with empirical sensitivity reads."""
    # A neighbor takes over fixed columns, and what is computed from them would have to follow.
    fixed = sorted(columns_of(tree) & set(spec.privacy.fixed))
    if fixed:
        raise SpecError(
            field,
            f"{fixed[0]!r} is fixed, and a query on the table has empirical sensitivity; "
            "make it a key instead",
        )


def _condition(spec: Spec, table: str, where: str, field: str, place: str) -> ExpressionRecord:
    tree = parse_expression(field, where, spec.table_columns(table))
    return ExpressionRecord(place=place, tree=tree)


def place_of_derived(table: str, column: str) -> str:
    """The place of a derived column in ``release.json``."""
    return f"tables.{table}.derive.{column}"


def place_of_filter(tabulation: Tabulation) -> str:
    """The place of a tabulation's condition in ``release.json``."""
    return f"tabulations.{tabulation.name}.where"


def place_of_condition(query: Query) -> str:
    """The place of a condition in ``release.json``."""
    return f"queries.{query.name}.where"
