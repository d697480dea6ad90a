"""What a condition may call: one table of functions, and the types that they take and give.

Every entry depends on its arguments alone, has a value for every row or none, and costs at most
what the length of its arguments costs. An entry that the engine may refuse on some row is
*partial*: its value is missing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from release.spec.declarations import ColumnType as Type
from release.spec.named import by_name

# Letters stand for one type of several, the same for all arguments that have the letter.
LETTERS: dict[str, tuple[Type, ...]] = {
    "T": (Type.BOOLEAN, Type.INTEGER, Type.NUMBER, Type.STRING, Type.DATE, Type.TIMESTAMP),
    "N": (Type.INTEGER, Type.NUMBER),
    "D": (Type.DATE, Type.TIMESTAMP),
}
WIDENED = {Type.INTEGER: Type.NUMBER, Type.DATE: Type.TIMESTAMP}
"""A type is taken for the other one where an argument of that is expected."""

CASTS = frozenset(
    {
        # From text and to text any type is cast.
        *product((Type.STRING,), set(Type) - {Type.STRING}),
        *product(set(Type) - {Type.STRING}, (Type.STRING,)),
        (Type.INTEGER, Type.NUMBER),
        (Type.NUMBER, Type.INTEGER),
        (Type.BOOLEAN, Type.INTEGER),
        (Type.INTEGER, Type.BOOLEAN),
        (Type.DATE, Type.TIMESTAMP),
        (Type.TIMESTAMP, Type.DATE),
    }
)
"""The types between which a value is cast."""

PARTS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


@dataclass(frozen=True)
class Function:
    """A function: the types of its arguments in order, and what the engine calls it.

    ``takes`` are types, or letters of :data:`LETTERS`; `` constant`` after one asks for a constant.
    After ``takes``, ``more`` may stand any number of times, and ``last`` once. ``sql`` has ``{0}``
    for the first argument, or ``{}`` for all of them, with ``between`` between them. ``total`` is
    the same for integers in a form that raises no error. ``repeats`` is how often the engine writes
    the first argument out, ``repeats_last`` the last one.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    meaning: str = ""
    more: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    between: str = ", "
    partial: bool = False
    repeats: int = 1
    total: str = ""
    repeats_last: int = 1

    def expects(self, count: int) -> tuple[str, ...] | None:
        """The types of ``count`` arguments; None where it takes another number of them."""
        expected = self.takes
        while self.more and len(expected) + len(self.more) <= count:
            expected += self.more
        if len(expected) + len(self.last) == count:
            expected += self.last
        return expected if len(expected) == count else None

    def bound(self, types: Sequence[Type]) -> tuple[tuple[Type, ...], Type] | None:
        """The types that the arguments are widened to, and that of the value.

        None where arguments of these ``types`` do not fit.
        """
        expected = self.expects(len(types))
        if expected is None:
            return None
        letter = _letter_of(expected) or ""
        # The first choice widens least, because the wider type stands last.
        for choice in LETTERS.get(letter, (Type.BOOLEAN,)):
            targets = tuple(_type(name, choice) for name in expected)
            if all(map(_fits, types, targets)):
                return targets, _type(self.gives, choice)
        return None

    def in_words(self) -> str:
        """The arguments that it takes, as in ``(string, integer, perhaps integer)``."""
        words = [*self.takes]
        words += [f"more of {', '.join(self.more)}"] if self.more else []
        words += [f"perhaps {', '.join(self.last)}"] if self.last else []
        text = ", ".join(words)
        letter = _letter_of(self.takes + self.more)
        if letter is not None:
            text += f"; {letter} is one of {', '.join(LETTERS[letter])}"
        return f"({text})"

    def is_constant(self, count: int, place: int) -> bool:
        """Whether the argument at ``place`` of ``count`` has to be a constant."""
        expected = self.expects(count)
        return expected is not None and expected[place].endswith(" constant")


def _fits(of: Type, to: Type) -> bool:
    """Whether a value of one type is taken where the other is expected."""
    return of is to or WIDENED.get(of) is to


def _letter_of(expected: Sequence[str]) -> str | None:
    """The first letter among some types; None without one."""
    for name in expected:
        if name[0] in LETTERS:
            return name[0]
    return None


def _type(expected: str, choice: Type) -> Type:
    name = expected.removesuffix(" constant")
    return choice if name in LETTERS else Type(name)


def _infix(sign: str, meaning: str = "", *, takes: str = "T", gives: str = "boolean") -> Function:
    return Function(sign, (takes, takes), gives, f"({{0}} {sign} {{1}})", meaning)


# An error costs the engine a second pass over two thousand rows, one by one, and under another
# error twice that: one row would change the time of a run. So integers are computed in 128 bits.
_WIDE = "CAST({0} AS HUGEINT)", "CAST({1} AS HUGEINT)"


def _arithmetic(sign: str, meaning: str) -> Function:
    total = f"TRY_CAST({_WIDE[0]} {sign} {_WIDE[1]} AS BIGINT)"
    sql = f"({{0}} {sign} {{1}})"
    return Function(sign, ("N", "N"), "N", sql, meaning, partial=True, total=total)


def _division(sign: str, meaning: str) -> Function:
    total = f"TRY_CAST({_WIDE[0]} {sign} nullif({_WIDE[1]}, 0) AS BIGINT)"
    sql, takes = f"({{0}} {sign} {{1}})", ("integer", "integer")
    return Function(sign, takes, "integer", sql, meaning, partial=True, total=total, repeats_last=2)


def _number(name: str, meaning: str) -> Function:
    return Function(name, ("number",), "number", f"{name}({{0}})", meaning)


def _text(name: str, meaning: str) -> Function:
    return Function(name, ("string",), "string", f"{name}({{0}})", meaning)


def _two_texts(name: str, meaning: str, second: str = "string", gives: str = "boolean") -> Function:
    return Function(name, ("string", second), gives, f"{name}({{0}}, {{1}})", meaning)


def _part(name: str, takes: str, meaning: str) -> Function:
    return Function(name, (takes,), "integer", f"{name}({{0}})", meaning)


_ALL = (
    Function(
        "and", ("boolean",) * 2, "boolean", "({})", "both", more=("boolean",), between=" AND "
    ),
    Function(
        "or", ("boolean",) * 2, "boolean", "({})", "one of them", more=("boolean",), between=" OR "
    ),
    Function("not", ("boolean",), "boolean", "(NOT {0})", "the opposite"),
    Function("is_null", ("T",), "boolean", "({0} IS NULL)", "whether it is missing"),
    _infix("=", "equal; of numbers `nan` equals itself"),
    _infix("<>", "not equal"),
    _infix("<", "before; `false` is before `true`, text goes by code points, `nan` comes last"),
    _infix("<=", "before or equal"),
    _infix(">", "after"),
    _infix(">=", "after or equal"),
    Function(
        "between",
        ("T", "T", "T"),
        "boolean",
        "({0} BETWEEN {1} AND {2})",
        "at least the second, and at most the third",
        repeats=2,
    ),
    Function(
        "in",
        ("T", "T constant"),
        "boolean",
        "({0} IN ({1}))",
        "equal to one of the constants",
        more=("T constant",),
        repeats=2,
    ),
    # No row makes any of its values fail, so it does not matter which of them the engine computes.
    Function(
        "case",
        ("boolean", "T"),
        "T",
        "CASE {} END",
        "the value after the first condition that is true, else the last, else missing",
        more=("boolean", "T"),
        last=("T",),
    ),
    Function("coalesce", ("T",), "T", "coalesce({})", "the first that is there", more=("T",)),
    Function("nullif", ("T", "T"), "T", "nullif({0}, {1})", "missing if both are equal", repeats=2),
    Function("greatest", ("T",), "T", "greatest({})", "the largest that is there", more=("T",)),
    Function("least", ("T",), "T", "least({})", "the smallest that is there", more=("T",)),
    _arithmetic("+", "the sum"),
    _arithmetic("-", "the difference"),
    _arithmetic("*", "the product"),
    _infix("/", "the quotient, by 0 an infinity or `nan`", takes="number", gives="number"),
    _division("//", "the quotient, cut towards 0; missing for 0"),
    _division("%", "what `//` leaves, with the sign of the first; missing for 0"),
    Function(
        "negate",
        ("N",),
        "N",
        "(- {0})",
        "`-x`",
        partial=True,
        total=f"TRY_CAST(- {_WIDE[0]} AS BIGINT)",
    ),
    Function(
        "abs",
        ("N",),
        "N",
        "abs({0})",
        "without its sign",
        partial=True,
        total=f"TRY_CAST(abs({_WIDE[0]}) AS BIGINT)",
    ),
    Function("sign", ("N",), "integer", "CAST(sign({0}) AS BIGINT)", "-1, 0 or 1"),
    _number("ceil", "the next whole number above"),
    _number("floor", "the next whole number below"),
    Function(
        "round",
        ("number",),
        "number",
        "round({})",
        "to whole numbers, or to so many decimals, missing beyond 32 bits; halves away from 0",
        last=("integer constant",),
    ),
    _number("sqrt", "the root; `nan` below 0"),
    _number("ln", "the natural logarithm; `nan` below 0, an infinity for 0"),
    _number("log10", "the logarithm to base 10, as `ln`"),
    _number("exp", "e to this power"),
    Function("power", ("number",) * 2, "number", "power({0}, {1})", "the first to the second"),
    _text("lower", "in small letters"),
    _text("upper", "in capitals"),
    _text("trim", "without spaces at its ends"),
    _text("ltrim", "without spaces at its start"),
    _text("rtrim", "without spaces at its end"),
    _part("length", "string", "how many characters"),
    Function(
        "substring",
        ("string", "integer"),
        "string",
        "substring({})",
        "from this character on, the first is 1; of this length; missing beyond 32 bits",
        last=("integer",),
    ),
    _two_texts("left", "so many first; missing beyond 32 bits", "integer", "string"),
    _two_texts("right", "so many last; missing beyond 32 bits", "integer", "string"),
    Function(
        "||",
        ("string",) * 2,
        "string",
        "({})",
        "joined; missing if one is",
        more=("string",),
        between=" || ",
    ),
    Function(
        "concat",
        ("string",),
        "string",
        "concat({})",
        "joined; missing ones are left out",
        more=("string",),
    ),
    _two_texts("starts_with", "whether it starts with the second"),
    _two_texts("ends_with", "whether it ends with the second"),
    _two_texts("contains", "whether the second stands in it"),
    _two_texts("strpos", "where the second stands in it, from 1; else 0", gives="integer"),
    Function(
        "like",
        ("string", "string constant"),
        "boolean",
        "({0} LIKE {1})",
        "whether it has this form; `_` is any character, `%` any text",
    ),
    Function(
        "ilike",
        ("string", "string constant"),
        "boolean",
        "({0} ILIKE {1})",
        "as `like`, small letters and capitals alike",
    ),
    _two_texts("regexp_matches", "whether the pattern stands in it", "string constant"),
    _two_texts("regexp_full_match", "whether it is of the pattern", "string constant"),
    _two_texts("regexp_extract", "what the pattern finds, else empty", "string constant", "string"),
    _part("year", "D", "the year"),
    _part("quarter", "D", "1 to 4"),
    _part("month", "D", "1 to 12"),
    # The engine raises an error for the first year of its calendar.
    Function("week", ("D",), "integer", "week({0})", "the week of ISO 8601", partial=True),
    _part("day", "D", "the day of the month"),
    _part("isodow", "D", "1 (Monday) to 7"),
    _part("dayofweek", "D", "0 (Sunday) to 6"),
    _part("dayofyear", "D", "1 to 366"),
    _part("hour", "timestamp", "0 to 23"),
    _part("minute", "timestamp", "0 to 59"),
    _part("second", "timestamp", "0 to 59"),
    Function(
        "date_trunc",
        ("string constant", "timestamp"),
        "timestamp",
        "date_trunc({0}, {1})",
        "the start of its year, quarter, month, week, day, hour, minute or second",
        partial=True,
    ),
    Function(
        "date_diff",
        ("string constant", "D", "D"),
        "integer",
        "date_diff({0}, {1}, {2})",
        "how many starts of such a part lie between them",
        partial=True,
    ),
    Function(
        "make_date",
        ("integer",) * 3,
        "date",
        "make_date({0}, {1}, {2})",
        "of year, month and day; missing where there is no such day",
        partial=True,
        total="TRY_CAST({0} || '-' || {1} || '-' || {2} AS DATE)",
    ),
)

FUNCTIONS = by_name(_ALL)
PATTERNS = frozenset({"regexp_matches", "regexp_full_match", "regexp_extract"})
OF_PARTS = frozenset({"date_trunc", "date_diff"})

SPELLINGS = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "len": "length",
    "datetrunc": "date_trunc",
    "datediff": "date_diff",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "instr": "strpos",
}
"""Other names of functions, in the text of a spec."""


def table() -> str:
    """The functions as a table of Markdown, for the documentation."""
    lines = ["| function | takes | gives | meaning |", "|---|---|---|---|"]
    for function in _ALL:
        takes = ", ".join(function.takes)
        takes += f"; more of {', '.join(function.more)}" if function.more else ""
        takes += f"; perhaps {', '.join(function.last)}" if function.last else ""
        name = function.name.replace("|", "\\|")
        partial = " *" if function.partial else ""
        lines.append(f"| `{name}`{partial} | {takes} | {function.gives} | {function.meaning} |")
    return "\n".join(lines)
