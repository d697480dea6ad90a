"""The tree of a condition or a derived column, from its text.

SQLGlot parses the text in DuckDB's dialect; each of its nodes is then either one that has a handler
here, and becomes a node of ours, or refused. It is loaded only where there is a text to parse.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from release.errors import SpecError, unknown_name
from release.records.trees import (
    BooleanNode,
    CallNode,
    CastNode,
    ColumnNode,
    DateNode,
    IntegerNode,
    Node,
    NumberNode,
    StringNode,
    TimestampNode,
    number_text,
)
from release.spec.declarations import ColumnType
from release.spec.expressions.check import (
    COMPARISONS,
    MOST_DEPTH,
    check_bounds,
    check_constants,
    check_tree,
    misfit,
    type_of,
)
from release.spec.expressions.functions import FUNCTIONS, SPELLINGS, WIDENED

if TYPE_CHECKING:
    from sqlglot import exp, parser

MOST_CHARACTERS = 4000
MOST_BRACKETS = 16
"""How deep brackets and CASE may nest: SQLGlot recurses some ten calls for each."""

_CAST_NAMES = "BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE or TIMESTAMP"
_WHOLE_FLOATS = 2**53
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?", re.ASCII
)


def parse_expression(
    field: str, text: str, columns: Mapping[str, ColumnType], cast_to: ColumnType | None = None
) -> Node:
    """The tree of an expression: a condition, or with ``cast_to`` a column cast to that type.

    ``field`` is its place in the spec, for messages; ``columns`` are those that it may use.

    Raises:
        SpecError: not one expression over ``columns`` of known functions, or too large.
    """
    try:
        return _parsed(text, tuple(columns.items()), cast_to)
    except ValueError as error:
        raise SpecError(field, _text_for_a_column(text, columns) or str(error)) from error


def _text_for_a_column(text: str, columns: Mapping[str, ColumnType]) -> str | None:
    """The refusal of text in double quotes, which in SQL is the name of a column."""
    # Texts of SQL are left out: within them a double quote is a letter.
    for name in re.findall(r'"([^"]*)"', re.sub(r"'[^']*'", "", text)):
        if name not in columns:
            return f"\"{name}\" in double quotes names a column; write text as '{name}'"
    return None


# The queries of a spec share conditions, and each is asked for by several stages.
@lru_cache(maxsize=4096)
def _parsed(
    text: str, columns: tuple[tuple[str, ColumnType], ...], cast_to: ColumnType | None
) -> Node:
    types = dict(columns)
    tree = _Reader(types).read(_syntax(text), MOST_DEPTH)
    if cast_to is None and type_of(tree, types) is not ColumnType.BOOLEAN:
        kind = type_of(tree, types).value
        raise ValueError(f"the condition is of type {kind}, not boolean; compare something")
    if cast_to is not None and type_of(tree, types) is not cast_to:
        tree = CastNode(cast=cast_to.value, of=tree)
    check_tree(tree, types, cast_to or ColumnType.BOOLEAN)
    return tree


def _syntax(text: str) -> exp.Expr:
    """SQLGlot's tree of one expression.

    Raises:
        ValueError: no expression, several, or one that is too long or nested too deeply.
    """
    from sqlglot import exp

    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{len(text)} characters; write {MOST_CHARACTERS} at most")
    if "\0" in text:
        raise ValueError("the character 0 stands in it; remove it")
    dialect, parse = _parser()
    tokens = _of_sql(lambda: dialect.tokenize(text))
    _check_tokens(tokens)
    trees: list[exp.Expr | None] = _of_sql(
        lambda: parse(dialect=dialect).parse_into(exp.Condition, tokens, text)
    )
    if len(trees) != 1 or trees[0] is None:
        raise ValueError("write one expression over the columns of a row")
    return trees[0]


def _of_sql(read: Callable[[], Any]) -> Any:
    """What SQLGlot reads; whatever it raises is a refusal of the text.

    Raises:
        ValueError: it is no SQL, or nested too deeply.
    """
    try:
        return read()
    except RecursionError as error:
        raise ValueError("nested too deeply; write a flatter expression") from error
    # On what is no SQL its code may also raise errors that it does not mean to.
    except Exception as error:
        raise ValueError(f"not an SQL expression{_place(error)}; {_FORM}") from error


_FORM = "write conditions such as age >= 18, joined by AND or OR"


def _place(error: Exception) -> str:
    """Where an expression is broken, if that is known."""
    for fault in getattr(error, "errors", []):
        if fault.get("line"):
            return f": see line {fault['line']}, character {fault['col']}"
    return ""


@lru_cache(maxsize=1)
def _parser() -> tuple[Any, type[parser.Parser]]:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.parsers.duckdb import DuckDBParser

    class Parser(DuckDBParser):
        """Leaves calls as they are written; which functions there are is our table's matter."""

        FUNCTIONS = {}  # noqa: RUF012 - SQLGlot's own form of a setting
        # These three have keywords among their arguments, which no plain call has.
        FUNCTION_PARSERS = {  # noqa: RUF012 - as above
            name: DuckDBParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
        }
        NO_PAREN_FUNCTIONS = {}  # noqa: RUF012 - as above
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012 - as above
            "CASE": DuckDBParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

    return Dialect.get_or_raise("duckdb"), Parser


def _check_tokens(tokens: list[Any]) -> None:
    """Refuse, before anything is built, what SQLGlot takes very long for or recurses too deep."""
    from sqlglot.tokenizer_core import TokenType

    depth = 0
    for token, following in pairwise([*tokens, None]):
        if token.token_type in {TokenType.L_PAREN, TokenType.CASE}:
            depth += 1
        elif token.token_type in {TokenType.R_PAREN, TokenType.END}:
            depth -= 1
        if depth > MOST_BRACKETS:
            raise ValueError(f"brackets nest more than {MOST_BRACKETS} deep; write it flatter")
        if token.token_type in {TokenType.L_BRACKET, TokenType.L_BRACE}:
            raise ValueError("lists and structs are not allowed; write x IN ('a', 'b') for several")
        if token.token_type is TokenType.SEMICOLON:
            raise ValueError("write one expression over the columns of a row, without ;")
        # As a type with arguments it is tried in two ways, and so is what stands in it.
        is_type = token.text.lower() in _typelike()
        if is_type and following is not None and following.token_type is TokenType.L_PAREN:
            raise ValueError(f"{token.text}(…) is not allowed; cast to {_CAST_NAMES}")


@lru_cache(maxsize=1)
def _typelike() -> frozenset[str]:
    """Words that SQLGlot reads as a type where a bracket follows, and that are no function."""
    dialect, parse = _parser()
    types = parse.TYPE_TOKENS
    keywords = dialect.tokenizer_class.KEYWORDS
    words = {word.lower() for word, kind in keywords.items() if kind in types}
    return frozenset(words - FUNCTIONS.keys() - SPELLINGS.keys())


class _Reader:
    """Makes our tree of SQLGlot's, node by node, each value with its type."""

    def __init__(self, columns: Mapping[str, ColumnType]) -> None:
        self._columns = columns
        self._handlers = _handlers()

    def read(self, node: exp.Expr | None, levels: int) -> Node:
        """The node of ours for one of SQLGlot's.

        Raises:
            ValueError: there is none, or more than ``levels`` are below it.
        """
        if node is None:
            raise ValueError("not an SQL expression: a value is missing; write it")
        # A closed list (docs/design/spec.md): what a new version of SQLGlot may add is
        # refused.
        handler = self._handlers.get(type(node).__name__)
        if handler is None:
            raise ValueError(_refusal(node))
        if not levels:
            raise ValueError(f"nested more than {MOST_DEPTH} deep; write a flatter expression")
        return handler(self, node, levels - 1)

    def column(self, node: exp.Expr, _: int) -> Node:
        identifier, *qualifiers = _only(node, "this", "table", "db", "catalog")
        # A qualified name could be a column of another table, or a field within a value.
        if any(qualifiers):
            raise ValueError("a name of several parts; write the column's name alone")
        if type(identifier).__name__ != "Identifier":
            raise ValueError(_refusal(identifier))
        name = str(identifier.args["this"])
        if name not in self._columns:
            if name.lower() in _CLOCKS:
                raise ValueError(unknown_function(name))
            raise ValueError(unknown_name(name, self._columns))
        return ColumnNode(column=name)

    def literal(self, node: exp.Expr, _: int) -> Node:
        text, is_string = _only(node, "this", "is_string")
        if is_string:
            return StringNode(string=text)
        # ``isdecimal`` alone takes the digits of other scripts, and ``int`` would read them.
        if text.isdecimal() and text.isascii():
            return _integer(int(text))
        return _number(float(text))

    def boolean(self, node: exp.Expr, _: int) -> Node:
        return BooleanNode(boolean=bool(node.args["this"]))

    def paren(self, node: exp.Expr, levels: int) -> Node:
        return self.read(_only(node, "this")[0], levels)

    def negative(self, node: exp.Expr, levels: int) -> Node:
        inner = _only(node, "this")[0]
        while type(inner).__name__ == "Paren":
            inner = _only(inner, "this")[0]
        # A sign before a number is part of it: -2^63 has no positive counterpart of 64 bits.
        if type(inner).__name__ == "Literal" and not inner.args["is_string"]:
            text = inner.args["this"]
            if text.isdecimal() and text.isascii():
                return _integer(-int(text))
            return _number(-float(text))
        return self._call("negate", [self.read(inner, levels)])

    def chain(self, node: exp.Expr, levels: int) -> Node:
        """``and``, ``or`` and ``||``: one call for all that are joined."""
        kind, joined, waiting = type(node), list[Node](), [node]
        while waiting:
            inner = waiting.pop()
            while type(inner).__name__ == "Paren":
                inner = _only(inner, "this")[0]
            if type(inner) is kind:
                # Reversed: the last one in is read first, and the order of a text is kept.
                waiting += reversed(_only(inner, "this", "expression", ignored=("safe",)))
            else:
                joined.append(self.read(inner, levels))
        return self._call(_CHAINS[kind.__name__], joined)

    def operator(self, node: exp.Expr, levels: int) -> Node:
        operands = _only(node, "this", "expression", ignored=("typed", "safe"))
        name = _OPERATORS[type(node).__name__]
        # SQLGlot reads a < b < c from the left, as a comparison of a Boolean, which no one means.
        if name in COMPARISONS and _OPERATORS.get(type(operands[0]).__name__) in COMPARISONS:
            raise ValueError("comparisons in a chain; join them with AND, or write brackets")
        return self._call(name, [self.read(operand, levels) for operand in operands])

    def alike(self, node: exp.Expr, levels: int) -> Node:
        operands = _only(node, "this", "expression", ignored=("negate",))
        name = type(node).__name__.lower()
        call = self._call(name, [self.read(operand, levels) for operand in operands])
        return self._call("not", [call]) if node.args.get("negate") else call

    def negation(self, node: exp.Expr, levels: int) -> Node:
        return self._call("not", [self.read(_only(node, "this")[0], levels)])

    def is_missing(self, node: exp.Expr, levels: int) -> Node:
        value, constant = _only(node, "this", "expression")
        if type(constant).__name__ != "Null":
            raise ValueError("IS takes NULL only; write coalesce(x, false), or compare")
        return self._call("is_null", [self.read(value, levels)])

    def member(self, node: exp.Expr, levels: int) -> Node:
        # IN (SELECT …): what it compares with would come from other rows.
        if node.args.get("query") is not None:
            raise ValueError(_refusal(node.args["query"]))
        value, constants = _only(node, "this", "expressions")
        return self._call("in", [self.read(part, levels) for part in (value, *(constants or []))])

    def range(self, node: exp.Expr, levels: int) -> Node:
        values = _only(node, "this", "low", "high")
        return self._call("between", [self.read(value, levels) for value in values])

    def case(self, node: exp.Expr, levels: int) -> Node:
        subject, branches, default = _only(node, "this", "ifs", "default")
        # Read once: every level of nested subjects would double the work.
        value = None if subject is None else self.read(subject, levels)
        arguments: list[Node] = []
        for branch in branches:
            condition, result = _only(branch, "this", "true")
            read = self.read(condition, levels)
            if value is not None:
                read = self._call("=", [value, read])
            arguments += [read, self.read(result, levels)]
        # Without an ELSE it is missing too.
        if default is not None and type(default).__name__ != "Null":
            arguments.append(self.read(default, levels))
        return self._call("case", arguments)

    def cast(self, node: exp.Expr, levels: int) -> Node:
        inner, to = _only(node, "this", "to", ignored=("safe",))
        name = getattr(to.args.get("this"), "name", "")
        if name not in _TYPES or to.args.get("expressions") or to.args.get("nested"):
            problem = f"the type {to.sql('duckdb')} is not allowed in a cast"
            raise ValueError(f"{problem}; write {_CAST_NAMES}")
        kind, value = _TYPES[name], self.read(inner, levels)
        # DATE '2013-01-05' is a cast to SQLGlot, and a constant in our trees.
        if isinstance(value, StringNode) and (constant := _moment(value.string, kind)):
            return constant
        if type_of(value, self._columns) is kind:
            return value
        cast = CastNode(cast=kind.value, of=value)
        type_of(cast, self._columns)
        return cast

    def part(self, node: exp.Expr, levels: int) -> Node:
        part, value = _only(node, "this", "expression")
        return self._part(part.name, value, levels)

    def call(self, node: exp.Expr, levels: int) -> Node:
        name = str(node.args["this"]).lower()
        arguments = _only(node, "this", "expressions")[1] or []
        if name == "try" and len(arguments) == 1:
            # What cannot fail needs none; our own SQL has it.
            return self.read(arguments[0], levels)
        if name in {"date_part", "datepart"} and len(arguments) == 2:
            return self._part(arguments[0].name, arguments[1], levels)
        name = SPELLINGS.get(name, name)
        if name not in FUNCTIONS or not name.isidentifier() or name in _WORDS:
            raise ValueError(f"the function {unknown_function(name)}")
        return self._call(name, [self.read(argument, levels) for argument in arguments])

    def _part(self, name: str, value: exp.Expr, levels: int) -> Node:
        part = SPELLINGS.get(name.lower(), name.lower())
        if part not in _DATE_PARTS:
            raise ValueError(f"{name!r} is no part of a date; write {', '.join(_DATE_PARTS)}")
        return self._call(part, [self.read(value, levels)])

    def _call(self, name: str, arguments: list[Node]) -> Node:
        """A call whose arguments are widened to the types that it takes."""
        types = [type_of(argument, self._columns) for argument in arguments]
        bound = FUNCTIONS[name].bound(types)
        if bound is None:
            raise ValueError(misfit(name, types))
        widened = []
        for argument, of, to in zip(arguments, types, bound[0], strict=True):
            widened.append(argument if of is to else _widened(argument, of))
        call = CallNode(call=name, of=widened)
        check_constants(call)
        # Here, and not at the end alone: nothing large is built first.
        check_bounds(call)
        return call


_CHAINS = {"And": "and", "Or": "or", "DPipe": "||"}
_OPERATORS = {
    **{"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="},
    **{"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "//", "Mod": "%"},
}
_TYPES = {
    "BOOLEAN": ColumnType.BOOLEAN,
    "INT": ColumnType.INTEGER,
    "BIGINT": ColumnType.INTEGER,
    "DOUBLE": ColumnType.NUMBER,
    "TEXT": ColumnType.STRING,
    "VARCHAR": ColumnType.STRING,
    "DATE": ColumnType.DATE,
    "TIMESTAMP": ColumnType.TIMESTAMP,
    "TIMESTAMPNTZ": ColumnType.TIMESTAMP,
}
_DATE_PARTS = (
    *("year", "quarter", "month", "week", "day", "isodow", "dayofweek", "dayofyear"),
    *("hour", "minute", "second"),
)
_WORDS = frozenset({"and", "or", "not", "in", "like", "ilike", "between", "case", "is_null"})
"""Names of operators, which no call has."""
_AGGREGATES = frozenset(
    ("count", "sum", "avg", "mean", "min", "max", "median", "mode", "any_value", "first", "last")
)
_REFUSED = {
    **dict.fromkeys(("Select", "Subquery", "Exists", "Union", "Any", "All"), "a subquery"),
    **dict.fromkeys(("Window", "Filter", "WithinGroup"), "a window function"),
    **dict.fromkeys(("Star", "Columns"), "a star"),
    **dict.fromkeys(("Placeholder", "Parameter", "SessionParameter"), "a parameter"),
    **dict.fromkeys(("Lambda", "Kwarg", "PropertyEQ"), "a lambda"),
    "Null": "NULL by itself (write x IS NULL, x IS NOT NULL or ELSE NULL)",
    "Escape": "ESCAPE",
    "Interval": "an interval",
    "Pow": "a power as a sign; write power(x, y); it",
    **dict.fromkeys(
        ("RegexpLike", "RegexpFullMatch"),
        "a pattern as a sign; write regexp_matches(x, 'pattern'); it",
    ),
    "Tuple": "a list in brackets",
    "Dot": "a name of several parts",
    "NullSafeEQ": "IS [NOT] DISTINCT FROM",
    "NullSafeNEQ": "IS [NOT] DISTINCT FROM",
    "SimilarTo": "SIMILAR TO",
    "AtTimeZone": "AT TIME ZONE",
    "BitwiseLeftShift": "the operator <<",
    "BitwiseRightShift": "the operator >>",
    "BitwiseAnd": "the operator &",
    "BitwiseOr": "the operator |",
    "BitwiseNot": "the operator ~",
    "JSONExtract": "the operator ->",
    "JSONExtractScalar": "the operator ->>",
    "JSONBContainsTopKey": "the operator ?",
    "ArrayContainsAll": "the operator @>",
    "ArrayContainedBy": "the operator <@",
    "ArrayOverlaps": "the operator &&",
    "StartsWith": "the operator ^@",
}
"""What SQLGlot's classes are called by those who write them."""


@lru_cache(maxsize=1)
def _handlers() -> dict[str, Callable[[_Reader, exp.Expr, int], Node]]:
    """The allow-list: SQLGlot's classes that a condition may hold."""
    return {
        "Column": _Reader.column,
        "Literal": _Reader.literal,
        "Boolean": _Reader.boolean,
        "Paren": _Reader.paren,
        "Neg": _Reader.negative,
        "Not": _Reader.negation,
        "Is": _Reader.is_missing,
        "In": _Reader.member,
        "Between": _Reader.range,
        "Case": _Reader.case,
        "Cast": _Reader.cast,
        "TryCast": _Reader.cast,
        "Extract": _Reader.part,
        "Anonymous": _Reader.call,
        "Like": _Reader.alike,
        "ILike": _Reader.alike,
        **dict.fromkeys(_CHAINS, _Reader.chain),
        **dict.fromkeys(_OPERATORS, _Reader.operator),
    }


def _only(node: exp.Expr, *names: str, ignored: tuple[str, ...] = ()) -> list[Any]:
    """The arguments ``names`` of a node of SQLGlot.

    Raises:
        ValueError: it has others, beside those that are ignored: they would change its meaning.
    """
    for name, value in node.args.items():
        if name not in names and name not in ignored and value not in (None, False, []):
            raise ValueError(f"{type(node).__name__.upper()} with {name} is not allowed; leave it")
    return [node.args.get(name) for name in names]


def _refusal(node: exp.Expr) -> str:
    kind = type(node).__name__
    called = _REFUSED.get(kind, kind.upper())
    return f"{called} is not allowed; use the columns of one row, constants and known functions"


_CLOCKS = frozenset(
    ("now", "today", "current_date", "current_time", "current_timestamp", "localtimestamp")
)
_LOTS = frozenset(("random", "rand", "uuid", "gen_random_uuid", "newid"))
"""What differs from run to run, so that nobody could say later which rows were read."""

_CALLED = {
    "char_length": "length",
    "ceiling": "ceil",
    "datediff": "date_diff",
    "datetrunc": "date_trunc",
    "dayofmonth": "day",
    "len": "length",
    "log": "ln or log10",
    "pow": "power",
    "substr": "substring",
    "weekday": "dayofweek",
    "weekofyear": "week",
}
"""What DuckDB also calls the functions that are allowed."""


_DATES = frozenset({"to_date", "str_to_date", "parse_date", "strptime", "to_timestamp", "date"})
"""Functions that make a date of a text."""


def unknown_function(name: str) -> str:
    """The message for a function that is not in the table."""
    if name.lower() in _CLOCKS:
        return f"{name} is not allowed: it differs from day to day; write the day, as '2024-12-31'"
    if name.lower() in _LOTS:
        return f"{name} is not allowed: it differs from run to run; use a column of the table"
    if name in _AGGREGATES:
        return f"{name} is not allowed: a function of several rows; use those of one row"
    if name.lower() in _DATES:
        return f"{name} is not allowed; write a date as DATE '2024-01-31'"
    if name in _CALLED:
        return f"{name} is not allowed; it is called {_CALLED[name]}"
    callable_names = [own for own in FUNCTIONS if own.isidentifier() and own not in _WORDS]
    hint = unknown_name(name, callable_names).partition("is not there; ")[2]
    return f"{name} is not allowed; {hint}"


def _integer(value: int) -> Node:
    if not -(2**63) <= value < 2**63:
        raise ValueError("an integer of more than 64 bits; write it as 1e30")
    return IntegerNode(integer=str(value))


def _number(value: float) -> Node:
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number beyond 1.8e308; write a smaller one")
    return NumberNode(number=number_text(value))


def _moment(text: str, kind: ColumnType) -> Node | None:
    """The constant date or timestamp that a text is; None where it is none."""
    # Python reads further forms, which the engine reads otherwise.
    match = _MOMENT.fullmatch(text)
    try:
        if match and kind is ColumnType.DATE and match[1] is None:
            return DateNode(date=datetime.date.fromisoformat(text).isoformat())
        if match and kind is ColumnType.TIMESTAMP:
            moment = datetime.datetime.fromisoformat(text)
            return TimestampNode(timestamp=moment.isoformat(" "))
    except ValueError:
        pass
    return None


def _widened(node: Node, of: ColumnType) -> Node:
    """An integer as a number, or a date as a timestamp; a constant stays a constant."""
    # Beyond 2^53 a float may be another integer: then the engine casts, by its own rule.
    if isinstance(node, IntegerNode) and abs(int(node.integer)) <= _WHOLE_FLOATS:
        return NumberNode(number=number_text(float(node.integer)))
    if isinstance(node, DateNode):
        return TimestampNode(timestamp=f"{node.date} 00:00:00")
    return CastNode(cast=WIDENED[of].value, of=node)
