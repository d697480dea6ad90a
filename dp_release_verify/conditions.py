"""The trees of conditions and derived columns: each looks at one row of declared columns.

A tree is what is evaluated; the SQL beside it is for people. A node is a column, a constant, a call
of a function of the table below, or a cast.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dp_release_verify import forms
from dp_release_verify.asked import FILE, Spec, rule
from dp_release_verify.errors import Refused, refuse_unless

MOST_DEPTH = 64
MOST_NODES = 1000
MOST_JOINED = 16

# What each function takes, and gives. T is any type, N an integer or a number, D a date or a
# timestamp, the same wherever it stands; a type in quotes is a constant of that type.
_TABLE = """
and or: boolean boolean boolean* -> boolean
not: boolean -> boolean
is_null: T -> boolean
= <> < <= > >=: T T -> boolean
between: T T T -> boolean
in: T 'T' 'T'* -> boolean
case: (boolean T)+ T? -> T
nullif: T T -> T
coalesce greatest least: T T* -> T
+ - *: N N -> N
/ power: number number -> number
// %: integer integer -> integer
negate abs: N -> N
sign: N -> integer
ceil floor sqrt ln log10 exp: number -> number
round: number 'integer'? -> number
lower upper trim ltrim rtrim: string -> string
length: string -> integer
substring: string integer integer? -> string
left right: string integer -> string
||: string string string* -> string
concat: string string* -> string
starts_with ends_with contains: string string -> boolean
strpos: string string -> integer
regexp_extract: string 'string' -> string
like ilike regexp_matches regexp_full_match: string 'string' -> boolean
hour minute second: timestamp -> integer
date_trunc: 'string' timestamp -> timestamp
year quarter month week day isodow dayofweek dayofyear: D -> integer
date_diff: 'string' D D -> integer
make_date: integer integer integer -> date
"""

_CASTS = {
    ("boolean", "string"),
    ("integer", "string"),
    ("number", "string"),
    ("date", "string"),
    ("timestamp", "string"),
    ("string", "boolean"),
    ("string", "integer"),
    ("string", "number"),
    ("string", "date"),
    ("string", "timestamp"),
    ("integer", "number"),
    ("number", "integer"),
    ("boolean", "integer"),
    ("integer", "boolean"),
    ("date", "timestamp"),
    ("timestamp", "date"),
}
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_WITH_UNIT = ("date_trunc", "date_diff")
_COUNTED_TWICE = {"between": 0, "in": 0, "nullif": 0, "//": -1, "%": -1}
"""Of these the engine evaluates one argument twice: the first or the last."""

_LETTERS = {
    "boolean": "b",
    "integer": "i",
    "number": "n",
    "string": "s",
    "date": "d",
    "timestamp": "t",
}
_TYPES = {letter: name for name, letter in _LETTERS.items()}
_VARIABLES = {"T": "binsdt", "N": "in", "D": "dt"}


@dataclass(frozen=True)
class _Signature:
    """What a function takes as a pattern of letters, and what it gives; a capital is a constant."""

    takes: str
    gives: str
    variable: str

    def result(self, letters: str) -> str | None:
        """The letter of what it gives for these arguments; none if it does not take them."""
        for letter in _VARIABLES.get(self.variable, "-"):
            pattern = self.takes.replace("<K>", letter.upper())
            pattern = pattern.replace("<V>", f"[{letter}{letter.upper()}]")
            if re.fullmatch(pattern, letters):
                return letter if self.gives == "V" else self.gives
        return None


def _signatures() -> dict[str, _Signature]:
    found = {}
    for line in _TABLE.strip().splitlines():
        names, _, form = line.partition(": ")
        takes, _, gives = form.partition(" -> ")
        variables = re.findall(r"\b[TND]\b", takes)
        variable = variables[0] if variables else ""
        pattern = ""
        for word in re.findall(r"'\w+'|\w+|[()*+?]", takes):
            if word in "()*+?":
                pattern += word
            elif word.startswith("'"):
                kind = word.strip("'")
                pattern += "<K>" if kind in _VARIABLES else _LETTERS[kind].upper()
            elif word in _VARIABLES:
                pattern += "<V>"
            else:
                pattern += f"[{_LETTERS[word]}{_LETTERS[word].upper()}]"
        result = "V" if gives in _VARIABLES else _LETTERS[gives]
        for name in names.split(" "):
            found[name] = _Signature(pattern, result, variable)
    return found


_FUNCTIONS = _signatures()


@dataclass(frozen=True)
class Read:
    """What a tree is: its letter, how large it is, how many texts it joins, what it reads."""

    letter: str
    nodes: int
    joined: int
    columns: frozenset[str]

    @property
    def type(self) -> str:
        """The type of its value."""
        return _TYPES[self.letter.lower()]


def _is_constant(kind: str, value: Any) -> bool:  # noqa: PLR0911 - one return a type
    """Whether a constant stands in its one form."""
    if kind == "boolean":
        return type(value) is bool
    if type(value) is not str or len(value) > 10_000:
        return False
    try:
        if kind == "integer":
            return len(value) <= 20 and str(int(value)) == value and -(2**63) <= int(value) < 2**63
        if kind == "number":
            number = float(value)
            return repr(number) == value and number - number == 0
        if kind == "date":
            return forms.is_day(value)
        if kind == "timestamp":
            moment = datetime.datetime.fromisoformat(value)
            return str(moment.replace(tzinfo=None)) == value
    except ValueError:
        return False
    return kind == "string" and "\0" not in value


def read_tree(place: str, node: Any, columns: dict[str, str], depth: int = 1) -> Read:
    """Read a tree over the columns of one row.

    Raises:
        Refused: a node is none of the page, or reads another column.
    """

    def need(holds: bool, found: object, needed: str) -> None:
        refuse_unless(holds, FILE, place, found, needed)

    need(type(node) is dict and depth <= MOST_DEPTH, depth, f"nodes, at most {MOST_DEPTH} deep")
    if node.keys() == {"cast", "of"}:
        return _read_cast(place, node, columns, depth)
    if node.keys() == {"call", "of"}:
        return _read_call(place, node, columns, depth)
    need(len(node) == 1, sorted(node), "a column, a constant, a call or a cast")
    ((kind, value),) = node.items()
    if kind == "column":
        need(type(value) is str and value in columns, value, "a column of the table")
        return Read(_LETTERS[columns[value]], 1, 0, frozenset([value]))
    need(kind in _LETTERS and _is_constant(kind, value), node, "a constant in its one form")
    return Read(_LETTERS[kind].upper(), 1, 0, frozenset())


def _read_cast(place: str, node: Any, columns: dict[str, str], depth: int) -> Read:
    of = read_tree(place, node["of"], columns, depth + 1)
    to = node["cast"]
    # A day of a text is read from a constant alone: other texts may be days in many ways.
    is_day = of.letter == "S" and to in ("date", "timestamp")
    is_cast = type(to) is str and (of.type, to) in _CASTS and not is_day
    refuse_unless(is_cast, FILE, place, (of.type, to), "a cast of the page")
    return Read(_LETTERS[to], of.nodes + 1, of.joined, of.columns)


def _read_call(place: str, node: Any, columns: dict[str, str], depth: int) -> Read:
    name, of = node["call"], node["of"]
    is_known = type(name) is str and name in _FUNCTIONS and type(of) is list and len(of) <= 10_000
    refuse_unless(is_known, FILE, place, name, "a function of the page")
    parts = [read_tree(place, each, columns, depth + 1) for each in of]
    letters = "".join(part.letter for part in parts)
    letter = _FUNCTIONS[name].result(letters)
    if letter is None:
        raise Refused(FILE, f"{place}: {name}", letters, "arguments of its types")
    if name in _WITH_UNIT:
        unit = of[0].get("string")
        refuse_unless(unit in _UNITS, FILE, f"{place}: {name}", unit, "a unit of time")
    nodes = 1 + sum(part.nodes for part in parts)
    if name in _COUNTED_TWICE:
        nodes += parts[_COUNTED_TWICE[name]].nodes
    joined = sum(part.joined for part in parts)
    if name in ("||", "concat"):
        joined += len(parts)
    read = frozenset(column for part in parts for column in part.columns)
    return Read(letter, nodes, joined, read)


@dataclass(frozen=True)
class _Place:
    """Where a tree stands: the columns it may read, the type it has to have, what it may not."""

    name: str
    tree: Any
    columns: dict[str, str]
    type: str
    hidden: frozenset[str]
    reason: str


def _places(spec: Spec) -> Iterator[_Place]:
    fixed, attribute = spec.neighbors.fixed, spec.neighbors.attribute
    seen = [question for question in spec.published if question.is_empirical]
    nothing: frozenset[str] = frozenset()
    for name, table in spec.asked.tables.items():
        is_seen = any(question.query.table == name for question in seen)
        for column, derived in (table.derive or {}).items():
            hidden, reason = (fixed, "no fixed column") if is_seen else (nothing, "")
            if column in fixed and attribute is not None:
                # A fixed column that is computed from the attribute would change with it.
                hidden, reason = hidden | {attribute}, f"neither {attribute} nor what is hidden"
            place = f"tables.{name}.derive.{column}"
            columns = spec.plain_columns[name]
            yield _Place(place, derived.tree, columns, derived.type, hidden, reason)
    of_seen = {part.name for question in seen for part in (question.query, *question.parts)}
    for query in spec.asked.queries or ():
        if query.where is not None:
            hidden = fixed if query.name in of_seen else nothing
            place, columns = f"queries.{query.name}.where", spec.columns.get(query.table, {})
            yield _Place(place, query.where.tree, columns, "boolean", hidden, "no fixed column")
    for tabulation in spec.asked.tabulations or ():
        if tabulation.where is not None:
            place = f"tabulations.{tabulation.name}.where"
            columns = spec.columns.get(tabulation.table, {})
            yield _Place(place, tabulation.where.tree, columns, "boolean", nothing, "")


def check_conditions(spec: Spec) -> int:
    """Check every tree of a spec; gives their number.

    Raises:
        Refused: one looks at more than a row of declared columns, or at a fixed one where it is
            hidden.
    """
    number = 0
    for place in _places(spec):
        read = read_tree(place.name, place.tree, place.columns)
        rule(read.type == place.type, place.name, read.type, place.type)
        rule(read.nodes <= MOST_NODES, place.name, read.nodes, f"at most {MOST_NODES} nodes")
        rule(read.joined <= MOST_JOINED, place.name, read.joined, f"{MOST_JOINED} joined texts")
        rule(not read.columns & place.hidden, place.name, sorted(read.columns), place.reason)
        number += 1
    return number
