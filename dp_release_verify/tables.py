"""Released tables: every combination of keys once, in order, and answers that are possible."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import floor, prod

from dp_release_verify import canonical, forms
from dp_release_verify.asked import Answers, Question, Spec
from dp_release_verify.errors import refuse_unless
from dp_release_verify.parquet import PEOPLE, ColumnKind, Table, Value, read_table

FORMAT = "dp-release/data/v1"
KEYS = "keys.json"
MOST_CELLS = 10**6

_KEY_KINDS: dict[str, ColumnKind] = {"string": "string", "integer": "int64", "date": "date"}


@dataclass(frozen=True)
class Expected:
    """A column that a released table has to have."""

    name: str
    kind: ColumnKind


def key_values(spec: Spec, keys: forms.Keys) -> dict[str, list[Value]]:
    """The key sets of all columns, as their columns have them.

    Raises:
        Refused: a key is not of the type of its column.
    """
    found: dict[str, list[Value]] = {}
    for column, listed in keys.keys.items():
        kinds = {columns[column] for columns in spec.columns.values() if column in columns}
        known = bool(kinds) and kinds <= _KEY_KINDS.keys()
        refuse_unless(known, KEYS, column, sorted(kinds), "a column of text, integers or dates")
        values = [_key(column, each, kinds) for each in listed]
        found[column] = values
    asked = {column for question in spec.published for column in question.query.by}
    refuse_unless(set(found) == asked, KEYS, "keys", sorted(found), sorted(asked))
    return found


def check_order(values: Mapping[str, list[Value]]) -> None:
    """Keys ascend, and each stands once.

    Raises:
        Refused: they do not.
    """
    for column, keys in values.items():
        in_order = all(a < b for a, b in pairwise(keys))  # type: ignore[operator]
        refuse_unless(in_order, KEYS, column, "another order", "ascending, each key once")


def _key(column: str, value: str | int, kinds: set[str]) -> Value:
    if kinds == {"integer"}:
        refuse_unless(type(value) is int, KEYS, column, value, "an integer")
        return value
    refuse_unless(type(value) is str, KEYS, column, value, "a text")
    if kinds == {"date"}:
        refuse_unless(forms.is_day(str(value)), KEYS, column, value, "a day")
        return datetime.date.fromisoformat(str(value))
    return value


def cells_of(question: Question, keys: Mapping[str, list[Value]]) -> tuple[int, int]:
    """How many combinations of keys a unit may choose, and how many there are.

    Raises:
        Refused: a key set is missing.
    """
    for column in question.query.by:
        refuse_unless(column in keys, KEYS, column, "nothing", "a key set")
    fixed = question.neighbors.fixed
    free = prod(len(keys[column]) for column in question.query.by if column not in fixed)
    cells = prod(len(keys[column]) for column in question.query.by)
    refuse_unless(cells <= MOST_CELLS, KEYS, question.name, cells, f"at most {MOST_CELLS} cells")
    return free, cells


def columns_of(spec: Spec, question: Question, *, has_interval: bool) -> list[Expected]:
    """The columns of the released table of a question, in order."""
    types = spec.columns[question.query.table]
    columns = []
    for column in question.query.by:
        columns.append(Expected(column, _KEY_KINDS[types[column]]))
    columns += _answer_columns(question)
    if has_interval:
        # Means lie between whole numbers, and the last bin has no end.
        domain = getattr(question.query, "domain", None)
        is_real = question.query.kind == "mean" or (domain is not None and domain.bins is not None)
        number: ColumnKind = "double" if is_real else "int64"
        columns += [Expected("low", number), Expected("high", number)]
    return columns + _drawn_columns(question)


def _label_kind(answers: Answers) -> ColumnKind:
    return "string" if answers.labels else "int64"


def _answer_columns(question: Question) -> list[Expected]:
    query = question.query
    if isinstance(query, forms.TupleQuery):
        parts = zip(question.parts, question.answers, strict=True)
        return [Expected(f"answer_{part.name}", _label_kind(each)) for part, each in parts]
    kind = _label_kind(question.answers[0])
    if isinstance(query, forms.Top):
        return [Expected(f"answer_{place}", kind) for place in range(1, query.k + 1)]
    if isinstance(query, forms.Quantiles) and len(query.at) > 1:
        return [Expected(f"answer_{_of_share(share)}", kind) for share in query.at]
    return [Expected("answer", kind)]


def _of_share(share: Fraction) -> str:
    return canonical.exact(share).replace(".", "_").replace("/", "_")


def _drawn_columns(question: Question) -> list[Expected]:
    query = question.query
    if isinstance(query, forms.Top):
        columns = [Expected(f"answer_code_{place}", "int64") for place in range(1, query.k + 1)]
        if query.counts:
            for place in range(1, query.k + 1):
                columns.append(Expected(f"noisy_count_{place}", "int64"))
        if query.histogram:
            answers = question.answers[0]
            for code in range(answers.size):
                columns.append(Expected(f"noisy_count_{answers.label(code)}", "int64"))
        return columns
    if isinstance(query, forms.Quantiles) and len(query.at) > 1:
        return [Expected(f"answer_code_{_of_share(share)}", "int64") for share in query.at]
    if question.on_statistic and query.kind == "sum":
        return [Expected("noisy_sum", "int64")]
    if question.on_statistic and query.kind == "mean":
        return [Expected("noisy_above", "int64"), Expected("noisy_below", "int64")]
    return [Expected("answer_code", "int32" if question.size <= 2**31 else "int64")]


def read_released(
    file: str,
    data: bytes,
    release_id: str,
    spec: Spec,
    question: Question,
    keys: Mapping[str, list[Value]],
) -> Table:
    """Read the released table of a question, and check its keys and answers.

    Raises:
        Refused: a column, a key, an order or an answer is another.
    """
    by = question.query.by
    _, cells = cells_of(question, keys)
    table = read_table(file, data, cells)
    check_entries(file, table, release_id, question.name, FORMAT)
    # What follows from a committed law would say something of it.
    has_interval = "low" in table.columns and not question.is_empirical
    expected = columns_of(spec, question, has_interval=has_interval)
    check_columns(file, table, expected, set())
    combinations = list(product(*(keys[column] for column in by)))
    stated = list(zip(*(table.columns[column].values for column in by), strict=True)) or [()]
    refuse_unless(stated == combinations, file, "keys", "others", "every combination, in order")
    _check_answers(file, table, question)
    return table


def check_entries(file: str, table: Table, release_id: str, name: str, form: str) -> None:
    """The metadata of a file name its release; titles for people may stand beside.

    Raises:
        Refused: there are others.
    """
    expected = {"release_id": release_id, "query": name, "format": form}
    stated = {key: value for key, value in table.entries.items() if key != PEOPLE}
    refuse_unless(stated == expected, file, "metadata", stated, expected)


def check_columns(file: str, table: Table, expected: list[Expected], optional: set[str]) -> None:
    """The columns have these names and types, in this order, and no value is missing.

    Raises:
        Refused: they are others.
    """
    stated = [(column.name, column.kind) for column in table.columns.values()]
    needed = [(column.name, column.kind) for column in expected]
    refuse_unless(stated == needed, file, "columns", stated, needed)
    for column in table.columns.values():
        is_optional = column.name in optional
        refuse_unless(column.is_optional == is_optional, file, column.name, "null", "no null")


def _integers(table: Table, name: str) -> list[int]:
    return [value for value in table.columns[name].values if isinstance(value, int)]


def _check_answers(file: str, table: Table, question: Question) -> None:
    """Codes are of the domain, and labels are those of their codes."""
    query = question.query
    drawn = {each.name: _integers(table, each.name) for each in _drawn_columns(question)}
    labels = [table.columns[each.name].values for each in _answer_columns(question)]
    codes: list[list[int]]
    if isinstance(query, forms.TupleQuery):
        codes = _coordinates(file, drawn["answer_code"], question.group)
    elif question.on_statistic and query.kind in ("sum", "mean"):
        codes = [_codes_of_sums(question, drawn)]
    else:
        codes = [values for name, values in drawn.items() if name.startswith("answer_code")]
        for values in codes:
            right = all(0 <= code < question.size for code in values)
            refuse_unless(right, file, "codes", "one outside", f"0 to {question.size - 1}")
    all_answers = question.answers
    if not isinstance(query, forms.TupleQuery):
        all_answers = question.answers * len(codes)
    for answers, own, stated in zip(all_answers, codes, labels, strict=True):
        right = all(answers.label(code) == label for code, label in zip(own, stated, strict=True))
        refuse_unless(right, file, "answers", "a label", "that of its code")
    if isinstance(query, forms.Quantiles):
        for row in zip(*codes, strict=True):
            refuse_unless(
                list(row) == sorted(row), file, "answers", row, "no quantile below another"
            )
    if isinstance(query, forms.Top):
        _check_top(file, query, codes, drawn)


def _check_top(
    file: str, query: forms.Top, codes: list[list[int]], drawn: dict[str, list[int]]
) -> None:
    """The categories differ, and their counts do not rise."""
    for row in zip(*codes, strict=True):
        refuse_unless(len(set(row)) == len(row), file, "answers", row, "each category once")
    counts = [values for name, values in drawn.items() if name.startswith("noisy_count")]
    if query.counts:
        for row in zip(*counts, strict=True):
            falls = all(a >= b for a, b in pairwise(row))
            refuse_unless(falls, file, "counts", row, "counts that do not rise")
    if query.histogram:
        for chosen, row in zip(zip(*codes, strict=True), zip(*counts, strict=True), strict=True):
            order = sorted(range(len(row)), key=lambda code: (-row[code], code))
            right = list(chosen) == order[: query.k]
            refuse_unless(right, file, "answers", chosen, "the largest noisy counts")


def _coordinates(file: str, codes: list[int], group: tuple[int, ...]) -> list[list[int]]:
    """The codes of each part of joint answers, which are numbered in row-major order."""
    size = prod(group)
    right = all(0 <= code < size for code in codes)
    refuse_unless(right, file, "codes", "one outside", f"0 to {size - 1}")
    found = []
    for part in group:
        size //= part
        found.append([code // size % part for code in codes])
    return found


def _codes_of_sums(question: Question, drawn: dict[str, list[int]]) -> list[int]:
    """The codes that follow from noisy sums, in rationals."""
    answers = question.answers[0]
    low, high = question.clamp
    values: list[Fraction] = []
    if question.query.kind == "sum":
        values = [Fraction(value) for value in drawn["noisy_sum"]]
    else:
        width = high - low
        for above, below in zip(drawn["noisy_above"], drawn["noisy_below"], strict=True):
            rows = max(above + below, width)
            value = Fraction(low + high, 2) + Fraction(width * (above - below), 2 * rows)
            values.append(min(Fraction(high), max(Fraction(low), value)))
    codes = []
    domain = getattr(question.query, "domain", None)
    # A grid has points, to the nearest of which a value is rounded; a bin holds what lies in it.
    half = Fraction(1, 2) if domain is not None and domain.grid is not None else Fraction(0)
    for value in values:
        place = floor((value - answers.low) / answers.width + half)
        codes.append(min(answers.size - 1, max(0, place)))
    return codes
