"""What the answers leave out of the tables, in shares. Confidential throughout.

One list of reasons, for a table, its join and each query: lines that were not read, values not of
their type, rows without a unit, rows that a join or a bound loses, values that are clamped, rows
that no key names. ``check`` begins with it, and ``check --strict`` is judged by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from release.facts.models import Confidential, QueryFacts, TableFacts
from release.tables.lines import FEW, LONG, MANY, QUOTES

UNREAD = {
    FEW: "have fewer fields than the header",
    MANY: "have more fields than the header",
    QUOTES: "have a quote that is not closed, or within a field",
    LONG: "are longer than 16 MiB",
}
"""Why a line of a CSV file cannot be read."""

DECLARE = "declare them: missing: [NA]"
LOOKS = {
    "a word": ("words such as NA", DECLARE),
    "a decimal comma": ("numbers with a comma", 'write csv: {decimal: ","} if it is a decimal one'),
}
"""What texts look like that are no values, and what to write for them."""

LOUD = Fraction(1, 100)
"""A larger share stands in capitals."""


@dataclass(frozen=True, repr=False)
class Reason(Confidential):
    """Why something is left out or changed: how many of how many.

    Attributes:
        of: the table or query.
        words: what happens to them, as the end of a sentence.
        count: how many.
        whole: of how many.
        noun: what they are: rows, lines, values.
        example: the cell that it changes most, or what to do, in words; empty where there is none.
    """

    of: str
    words: str
    count: int
    whole: int
    noun: str = "rows"
    example: str = ""

    @property
    def share(self) -> Fraction:
        """The count as a part of the whole."""
        return Fraction(self.count, max(1, self.whole))

    @property
    def sentence(self) -> str:
        """In one line; in capitals above a share of :data:`LOUD`."""
        percent = float(100 * self.share)
        share = f"{percent:.1f} %" if percent >= 0.1 else "below 0.1 %"
        told = f"{self.count:,} of {self.whole:,} {self.noun} ({share}) {self.words}"
        if self.share > LOUD:
            told = told.upper()
        return f"{self.of}: {told}{f'; {self.example}' if self.example else ''}"


def reasons_of_table(table: TableFacts) -> Iterator[Reason]:
    """What of a table no query sees, or sees as missing."""
    faults = dict(table.faults)
    unread = {cause: n for (rule, cause), n in faults.items() if rule == "unreadable line"}
    without_unit = sum(count for (rule, _), count in faults.items() if rule == "no unit")
    lines = table.rows + without_unit + sum(unread.values())
    for cause, count in unread.items():
        yield Reason(table.table, f"{UNREAD[cause]}, and are left out", count, lines, "lines")
    yield Reason(table.table, "have no unit, and are left out", without_unit, lines)
    misfits: Counter[str] = Counter()
    for (rule, column), count in faults.items():
        if rule.startswith("not a ") or rule in LOOKS:
            misfits[column] += count
    for (rule, column), count in faults.items():
        if rule.startswith("not a "):
            kind = rule.replace("not a i", "not an i")
            words = f"of {column} are {kind}, and count as missing"
            yield Reason(table.table, words, count, table.rows, "values")
        elif rule == "missing":
            own = count - misfits[column]
            yield Reason(table.table, f"of {column} are missing", own, table.rows, "values")
        elif rule in LOOKS:
            words, remedy = LOOKS[rule]
            words = f"of {column} are {words}, and count as missing"
            yield Reason(table.table, words, count, table.rows, "values", remedy)
        elif rule == "a unit of a word":
            words = f"of {column} are words such as NA, and name a unit"
            yield Reason(table.table, words, count, table.rows, "values", DECLARE)
        elif rule not in ("no unit", "nullable", "unreadable line"):
            yield Reason(table.table, f"break {rule} of {column}", count, table.rows)
    if table.join is not None:
        yield Reason(
            table.table,
            f"have no partner in {table.join.table}, and are left out",
            table.join.unmatched,
            table.rows,
        )
        several = "count once for each" if table.join.many else "take one of them"
        yield Reason(
            table.table,
            f"have several partners in {table.join.table}, and {several}",
            table.join.doubled,
            table.rows,
        )


def reasons_of_query(query: QueryFacts) -> Iterator[Reason]:
    """What a query leaves out of the rows that meet its condition, or changes."""
    if query.rows is None:
        return
    yield Reason(query.name, "lie in no cell: no key names them", query.outside, query.rows)
    for cut in query.cuts:
        if cut.is_change:
            whole = (query.cells or 0) if cut.noun == "cells" else query.rows
            yield Reason(query.name, cut.words, cut.count, whole, cut.noun, cut.example)


def left_out(tables: tuple[TableFacts, ...], queries: tuple[QueryFacts, ...]) -> list[Reason]:
    """All reasons that apply, the largest shares first."""
    found: list[Reason] = []
    for table in tables:
        found += reasons_of_table(table)
    for query in queries:
        found += reasons_of_query(query)
    found = [reason for reason in found if reason.count]
    # Stable: of equal shares those of tables come first, in the order of the spec.
    return sorted(found, key=lambda reason: -reason.share)
