"""Checks of the published conditions and derived columns of a spec.

What must hold: every tree is of the closed union; it uses columns of its own table, each under its
declared type, and known functions of them; it gives the type that its place asks for; it is within
the bounds of its size. Then a row's value depends on that row alone, and no row can make it fail.
This needs no engine and no parser of SQL. That a tree is what the text of the spec says is another
check: it parses the text.
"""

from __future__ import annotations

from release.errors import VerificationError
from release.records.models import ReleaseRecord
from release.records.trees import ExpressionRecord
from release.spec.declarations import ColumnType
from release.spec.expressions.check import check_tree
from release.spec.expressions.places import (
    expressions,
    place_of_condition,
    place_of_derived,
    place_of_filter,
    usable_columns,
)
from release.spec.model import Spec
from release.verification.findings import Finding, checking, made
from release.verification.mechanisms import expect

_Columns = dict[str, ColumnType]


def check_expressions(release: ReleaseRecord, spec: Spec) -> list[Finding]:
    """Check the published conditions and derived columns; what is proved and tested of them.

    Raises:
        VerificationError: a tree is missing or superfluous, is not within the closed union or the
            declared columns, or is not what the text of the spec says.
    """
    records = release.expressions or []
    with checking("conditions.row_local"):
        proved = _prove(records, spec)
    with checking("conditions.text"):
        return [*proved, *_compare(records, spec)]


def _prove(records: list[ExpressionRecord], spec: Spec) -> list[Finding]:
    """Check that each tree looks at one row, and has a value for every row, or none."""
    # A part of step 13 of docs/design/format.md, 8.4.
    places = _places(spec)
    expect("release.json", "places of expressions", [r.place for r in records], list(places))
    for record in records:
        columns, kind = places[record.place]
        try:
            check_tree(record.tree, columns, kind)
        except ValueError as error:
            raise VerificationError(
                "release.json", f"expression {record.place}", str(error), "a tree of one row"
            ) from error
    text = "{}: it looks at one row at a time, and no row makes it fail"
    return [made("conditions.row_local", text.format(record.place)) for record in records]


def _places(spec: Spec) -> dict[str, tuple[_Columns, ColumnType]]:
    """The places that need a tree, each with the columns that it may use and the type it gives."""
    places = {}
    for name, table in spec.tables.items():
        for column, derived in table.derive.items():
            place = place_of_derived(name, column)
            places[place] = usable_columns(spec, name), derived.type
    for query in spec.queries:
        if query.where is not None:
            columns = spec.table_columns(query.table)
            places[place_of_condition(query)] = columns, ColumnType.BOOLEAN
    for tabulation in spec.tabulations:
        if tabulation.where is not None:
            columns = spec.table_columns(tabulation.table)
            places[place_of_filter(tabulation)] = columns, ColumnType.BOOLEAN
    return places


def _compare(records: list[ExpressionRecord], spec: Spec) -> list[Finding]:
    """Compare each tree with that of the text."""
    # Without a condition there is no finding: the verdict has the line of a check left out.
    if not records:
        return []
    for record, expected in zip(records, expressions(spec), strict=True):
        if record != expected:
            raise VerificationError(
                "release.json",
                f"expression {record.place}",
                record.tree.model_dump_json()[:200],
                f"{expected.tree.model_dump_json()[:200]}, as in spec.yaml",
            )
    text = "the trees of conditions and derived columns are those of the text in spec.yaml"
    return [made("conditions.text", text, str(len(records)), str(len(records)))]
