"""Which values of each column can matter to the answers of a spec: a few of each."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

from release.records.trees import CallNode, CastNode, ColumnNode, Node
from release.spec.contracts.model import ColumnContract
from release.spec.declarations import ColumnType
from release.spec.domains import INTEGER_LIMIT
from release.spec.expressions.parse import parse_expression
from release.spec.expressions.places import derived_tree
from release.spec.load import SpecFile
from release.spec.query import PlainQuery, Query

Value: TypeAlias = Any
Columns: TypeAlias = dict[str, list[Value]]

MOST_VALUES = 6
"""Of a column, with the missing one."""

_UNKNOWN = "undeclared"


def values_of(spec_file: SpecFile) -> dict[str, Columns]:
    """A few values for each column that some answer reads, by table; the first are the likeliest.

    Columns of joined tables are listed with their own table.
    """
    wishes: dict[str, dict[str, list[list[Value]]]] = {}
    for name in spec_file.spec.tables:
        wishes[name] = defaultdict(list)
    reader = _Reader(spec_file)
    for table, column, values in reader.wishes():
        owner = _owner(spec_file, table, column)
        if owner is not None and column != spec_file.spec.privacy.unit:
            wishes[owner][column].append(values)
    chosen: dict[str, Columns] = {}
    for table, columns in wishes.items():
        chosen[table] = {}
        for column, lists in columns.items():
            kind = spec_file.spec.tables[table].columns[column]
            chosen[table][column] = _chosen(kind, lists)
    return chosen


def _owner(spec_file: SpecFile, table: str, column: str) -> str | None:
    """The table that has a column: this one or the joined one; None of a derived column."""
    declared = spec_file.spec.tables[table]
    if column in declared.columns:
        return table
    if declared.join is not None and column in spec_file.spec.tables[declared.join.table].columns:
        return declared.join.table
    return None


def _chosen(kind: ColumnType, lists: list[list[Value]]) -> list[Value]:
    """The values of several wishes in turn, each once, within the bounds of the type."""
    chosen: list[Value] = []
    # Each list gets its first value in before any gets its second: the bound cuts all of them
    # alike.
    for row in zip_longest(*lists):
        for wish in row:
            value = None if wish is None else _as(kind, wish)
            if value is not None and value not in chosen:
                chosen.append(value)
    if not chosen:
        chosen = [_ANY[kind]]
    return [*chosen[: MOST_VALUES - 1], None]


_ANY: dict[ColumnType, Value] = {
    ColumnType.STRING: "a",
    ColumnType.INTEGER: 1,
    ColumnType.DATE: datetime.date(2024, 1, 1),
    ColumnType.TIMESTAMP: datetime.datetime(2024, 1, 1, 12),
    ColumnType.NUMBER: 1.0,
    ColumnType.BOOLEAN: True,
}


def any_value(kind: ColumnType, rules: ColumnContract | None) -> Value:
    """The value of a column that nothing reads, one that its contract allows."""
    if rules is None:
        return _ANY[kind]
    bounds = [bound for bound in (rules.minimum, rules.maximum) if bound is not None]
    wishes = rules.allowed or bounds or [_ANY[kind]]
    return _as(kind, wishes[0])


def _as(kind: ColumnType, wish: Value) -> Value:  # noqa: PLR0911 - one return for each type
    """A wish as a value of a type; None where it is none."""
    try:
        if kind is ColumnType.STRING:
            return str(wish)
        if kind is ColumnType.INTEGER:
            number = int(wish)
            return number if abs(number) <= INTEGER_LIMIT else None
        if kind is ColumnType.NUMBER:
            return float(wish)
        if kind is ColumnType.BOOLEAN:
            return wish if isinstance(wish, bool) else None
        if kind is ColumnType.DATE:
            return wish if type(wish) is datetime.date else _date(str(wish))
        return wish if isinstance(wish, datetime.datetime) else _moment(str(wish))
    except (TypeError, ValueError):
        return None


def _date(text: str) -> datetime.date:
    # A number that may be a year stands for a day of it.
    return datetime.date.fromisoformat(f"{text}-06-15" if len(text) == len("2024") else text[:10])


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(f"{text}-06-15" if len(text) == len("2024") else text)


class _Reader:
    """Collects wishes: what the keys, the queries and the conditions look at."""

    def __init__(self, spec_file: SpecFile) -> None:
        self._spec_file = spec_file
        self._spec = spec_file.spec

    def wishes(self) -> Iterator[tuple[str, str, list[Value]]]:
        """Table, column and wishes; a column may come several times."""
        for query in self._spec.queries:
            for column in query.by:
                keys = self._spec_file.keys[column]
                yield from self._through(query.table, column, [*keys[:2], _UNKNOWN, *keys[2:]])
            for part in query.parts:
                yield from self._of_part(query, part)
            if query.where is not None:
                columns = self._spec.table_columns(query.table)
                yield from self._of_tree(
                    query.table, parse_expression("where", query.where, columns)
                )
        attribute = self._spec.privacy.attribute
        for name in self._spec.tables:
            for column in self._spec.privacy.fixed:
                if column in self._spec.tables[name].columns:
                    yield name, column, []
            if attribute in self._spec.tables[name].columns:
                yield name, str(attribute), []
            for column in self._spec.tables[name].derive:
                yield from self._of_tree(name, derived_tree(self._spec, name, column))
        yield from self._of_tabulations()

    def _of_part(self, query: Query, part: PlainQuery) -> Iterator[tuple[str, str, list[Value]]]:
        """Wishes for the columns whose values a query looks at."""
        values = getattr(part, "values", None) or []
        clamp = getattr(part, "clamp", None) or values[:1] + values[-1:]
        domain = [] if query.runs_again else _answers(part)
        for field in ("of", "weight"):
            column = getattr(part, field, None)
            if not isinstance(column, str) or column == self._spec.privacy.unit:
                continue
            is_number = field == "weight" or hasattr(part, "bins") or hasattr(part, "grid")
            bounds = [int(bound) for bound in clamp or ()]
            if is_number or part.kind == "quantiles":
                low, high = bounds or _ends(domain)
                width = high - low + 1
                scale = getattr(getattr(part, "grid", None), "scale", 1)
                wishes: list[Value] = [low, high, high + 9 * width, low - 9 * width]
                wishes += [(low + high) // 2, *values]
                yield from self._through(
                    query.table, column, [float(w * scale) if scale != 1 else w for w in wishes]
                )
            else:
                yield from self._through(query.table, column, domain)

    def _through(
        self, table: str, column: str, wishes: list[Value]
    ) -> Iterator[tuple[str, str, list[Value]]]:
        """Wishes for a column; those for a derived one are for the columns that make it."""
        derived = self._spec.tables[table].derive
        if column not in derived:
            yield table, column, wishes
            return
        for used in _columns(derived_tree(self._spec, table, column)):
            yield table, used, wishes

    def _of_tree(self, table: str, tree: Node) -> Iterator[tuple[str, str, list[Value]]]:
        """The constants of an expression and what lies next to them, for all its columns.

        A column gets those first that it is compared with.
        """
        constants = list(_constants(tree))
        for column in _columns(tree):
            own: list[Value] = []
            for part in _comparisons(tree):
                own += _constants(part) if column in _columns(part) else ()
            yield from self._through(table, column, own + constants)
        if not constants:
            both = [True, False]
            for column in _columns(tree):
                yield from self._through(table, column, both)

    def _of_tabulations(self) -> Iterator[tuple[str, str, list[Value]]]:
        for opened in self._spec_file.tabulations:
            tabulation = opened.declared
            lowest = tabulation.hierarchy.levels[-1]
            areas = list(opened.named.names[-1])
            yield tabulation.table, lowest, [*areas[:2], _UNKNOWN, areas[-1]]
            for attribute, categories in opened.categories.items():
                values = list(categories)
                yield tabulation.table, attribute, [values[0], values[-1], -1, _UNKNOWN]
            if tabulation.where is not None:
                columns = self._spec.table_columns(tabulation.table)
                tree = parse_expression("where", tabulation.where, columns)
                yield from self._of_tree(tabulation.table, tree)


def _answers(part: PlainQuery) -> list[Value]:
    """The first and the last answer, one between them, and one beyond."""
    labels = part.answers.labels
    last = labels[len(labels) - 1]
    beyond = last + 1 if isinstance(last, int) else _UNKNOWN
    return [labels[0], labels[1], last, beyond]


def _ends(domain: list[Value]) -> list[int]:
    return [int(domain[0]), int(domain[2])] if domain else [0, 1]


def _columns(tree: Node) -> list[str]:
    if isinstance(tree, ColumnNode):
        return [tree.column]
    if isinstance(tree, CastNode):
        return _columns(tree.of)
    if isinstance(tree, CallNode):
        names: dict[str, None] = {}
        for part in tree.of:
            names |= dict.fromkeys(_columns(part))
        return list(names)
    return []


def _comparisons(tree: Node) -> Iterator[Node]:
    """The parts of a condition that its ``and``, ``or`` and ``not`` join."""
    if isinstance(tree, CallNode) and tree.call in {"and", "or", "not"}:
        for part in tree.of:
            yield from _comparisons(part)
    else:
        yield tree


def _constants(tree: Node) -> Iterator[Value]:
    """Constants, and of numbers and dates their neighbors."""
    if isinstance(tree, CastNode):
        yield from _constants(tree.of)
    elif isinstance(tree, CallNode):
        for part in tree.of:
            yield from _constants(part)
    elif not isinstance(tree, ColumnNode):
        ((form, text),) = tree.model_dump().items()
        yield from _beside(form, text)


def _beside(form: str, text: Any) -> Iterator[Value]:
    if form == "boolean":
        yield from (True, False)
    elif form == "integer":
        yield from (int(text), int(text) + 1, int(text) - 1)
    elif form == "number":
        yield from (float(text), float(text) + 1, float(text) - 1)
    elif form == "date":
        day = datetime.date.fromisoformat(text)
        yield from (day, day + datetime.timedelta(days=1), day - datetime.timedelta(days=1))
    elif form == "timestamp":
        moment = datetime.datetime.fromisoformat(text)
        yield from (moment, moment + datetime.timedelta(hours=1))
    else:
        yield text
