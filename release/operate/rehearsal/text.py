"""A rehearsal as lines for the curator, and as plain data. Confidential throughout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from release.errors import ReleaseError, shown
from release.facts.left_out import LOOKS, Reason, left_out
from release.facts.models import (
    ColumnFacts,
    Confidential,
    KeyFacts,
    QueryFacts,
    TableFacts,
    Told,
    ValueCount,
)

FIRST_LINE = "CONFIDENTIAL: for the curator only; it shows figures of the tables without noise"

MOST_LINES = 10
"""Keys, and values, of a column that are listed on a terminal."""

_FAULTS = {
    "nullable": "rows have no value and need one",
    "no unit": "more rows have no unit, and are left out",
}


@dataclass(frozen=True, repr=False)
class Rehearsal(Confidential):
    """What a run would find, and why it would be refused.

    ``refusals`` are the errors of a run, in its order; a run ends with the first.
    """

    tables: tuple[TableFacts, ...]
    queries: tuple[QueryFacts, ...]
    refusals: tuple[ReleaseError, ...]
    cautions: tuple[str, ...] = ()
    """What to know of the spec before a release (:mod:`release.bundle.cautions`)."""

    @property
    def left_out(self) -> list[Reason]:
        """What the answers leave out of the tables, the largest shares first."""
        return left_out(self.tables, self.queries)

    def show(self) -> None:
        """Print all of it. Confidential: what a notebook saves of it is no public file."""
        print("\n".join(map(shown, lines_of(self))))  # noqa: T201 - that is what is asked for


def lines_of(rehearsal: Rehearsal, most: int | None = MOST_LINES) -> list[str]:
    """All that was found, in lines; of each list ``most`` entries, with the number of the rest."""
    lines = [FIRST_LINE]
    reasons = rehearsal.left_out
    if reasons:
        lines += ["left out or changed:", *(f"  {reason.sentence}" for reason in reasons)]
    elif rehearsal.tables:
        lines.append("nothing is left out, bounded or clamped")
    for table in rehearsal.tables:
        lines += _table_lines(table)
    for query in rehearsal.queries:
        lines += _query_lines(query, most)
    lines += map("caution: {}".format, rehearsal.cautions)
    if rehearsal.refusals:
        lines += ["a run would be refused:", *map("  {}".format, rehearsal.refusals)]
    else:
        lines.append("a run would not be refused before its charge")
    return lines


def _table_lines(table: TableFacts) -> Iterator[str]:
    yield f"{table.table}: {_rows(table.rows)} of {_units(table.units)}"
    if table.repeated:
        yield f"  {_counted(table.repeated, 'rows repeat another')}"
    for (rule, column), count in table.faults.items():
        # What is missing stands in the line of the column, as queries see it; others stand among
        # what is left out, with the cause.
        if rule not in ("missing", "unreadable line", "a unit of a word", *LOOKS):
            text = _counted(count, _fault(rule))
            yield f"  {column}: {text}" if column else f"  {text}"
    if table.seen != table.rows:
        yield f"  queries see {_rows(table.seen)}, after the contract and the join"
    for facts in table.columns:
        text = _ends(facts)
        if text:
            yield f"  {facts.column}: {text}"


def _fault(rule: str) -> str:
    if rule.startswith("not a "):
        return f"values are {rule.replace('not a i', 'not an i')}, and are missing"
    return _FAULTS.get(rule, f"rows break {rule}")


def _ends(column: ColumnFacts) -> str:
    texts = []
    if column.least is not None:
        texts.append(f"{column.least} to {column.greatest}")
        if column.zone == "UTC":
            texts.append("instants, read in UTC; for local time declare zone: Europe/London")
        elif column.zone is not None:
            texts.append(f"instants, read as the time of {column.zone}")
    if column.missing:
        texts.append(_counted(column.missing, "rows have no value"))
    return "; ".join(texts)


def _query_lines(query: QueryFacts, most: int | None) -> Iterator[str]:
    if query.rows is None:
        yield f"{query.name}: what its statement reads is not known"
    else:
        outside = f", {query.outside:,} of them in no cell" if query.outside else ""
        meets = "meets" if query.rows == 1 else "meet"
        yield f"{query.name}: {_rows(query.rows)} {meets} its condition{outside}"
    for keys in query.keys:
        yield from _key_lines(keys, most)
    if query.empty:
        cells = f"of {query.cells:,} cells"
        yield f"  {query.empty:,} {cells} {'has' if query.empty == 1 else 'have'} no row"
    for cut in query.cuts:
        yield f"  {_counted(cut.count, cut.bound)}"
    if query.sensitivity is not None:
        yield f"  sensitivity in this table: {query.sensitivity}"
    for told in query.told:
        yield f"  {told.sentence}"
        if told.is_hardly_more_than_noise:
            yield f"  HARDLY MORE THAN NOISE in {told.noisy:,} of {told.cells:,} cells; {_REMEDY}"
        elif told.noisy:
            yield f"  hardly more than noise in {told.noisy:,} of {told.cells:,} cells"


_REMEDY = "raise epsilon, or ask for fewer cells or a coarser answer"


def _key_lines(keys: KeyFacts, most: int | None) -> Iterator[str]:
    every = len(keys.keys) + len(keys.without_rows)
    yield f"  {keys.column}: {len(keys.keys):,} of {every:,} keys have rows"
    yield from _value_lines(keys.keys, len(keys.keys), most, "keys")
    for key in keys.without_rows[:most]:
        near = keys.near.get(key)
        hint = f"; did you mean {near!r}, which no key names?" if near is not None else ""
        yield f"    no row has {key!r}{hint}"
    if most is not None and len(keys.without_rows) > most:
        yield f"    and {len(keys.without_rows) - most:,} more keys without rows"
    if keys.unnamed_values:
        values = "value" if keys.unnamed_values == 1 else "values"
        yield (
            f"    no key names {keys.unnamed_values:,} {values} of {_rows(keys.unnamed_rows)}; "
            "add to the keys what is public and belongs there"
        )
        yield from _value_lines(keys.unnamed, keys.unnamed_values, most, "values")
    if keys.missing:
        yield f"    {_counted(keys.missing, f'rows have no {keys.column}')}"


def _value_lines(
    values: tuple[ValueCount, ...], every: int, most: int | None, noun: str
) -> Iterator[str]:
    listed = values[:most]
    for value in listed:
        yield f"      {value.value}: {_rows(value.rows)} of {_units(value.units)}"
    if every > len(listed):
        yield f"      and {every - len(listed):,} more {noun}"


_NOUNS = {"rows": "row", "values": "value", "cells": "cell", "numbers": "number", "lines": "line"}
_VERBS = {
    "have": "has", "are": "is", "repeat": "repeats", "break": "breaks", "count": "counts",
    "need": "needs",
}  # fmt: skip


def _counted(count: int, sentence: str) -> str:
    """A number before a sentence about so many things, which is written about several."""
    if count != 1:
        return f"{count:,} {sentence}"
    clauses = []
    for clause in re.split(r"(,? and )", sentence):
        words = clause.split(" ")
        # The first noun and the first verb of each clause: what follows may be of other things.
        for forms in (_NOUNS, _VERBS):
            plural = next((word for word in words if word in forms), None)
            if plural is not None:
                words[words.index(plural)] = forms[plural]
        clauses.append(" ".join(words))
    return f"1 {''.join(clauses)}"


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"


def _units(count: int) -> str:
    return f"{count:,} {'unit' if count == 1 else 'units'}"


def plain_rehearsal(rehearsal: Rehearsal) -> dict[str, Any]:
    """All that was found, as plain data."""
    return {
        "confidential": True,
        "left_out": list(map(_plain_reason, rehearsal.left_out)),
        "tables": list(map(_plain_table, rehearsal.tables)),
        "queries": list(map(_plain_query, rehearsal.queries)),
        "refusals": list(map(str, rehearsal.refusals)),
        "cautions": list(rehearsal.cautions),
    }


def _plain_reason(reason: Reason) -> dict[str, Any]:
    return {
        "of": reason.of,
        "what": f"{reason.noun} {reason.words}",
        "count": reason.count,
        "whole": reason.whole,
        "share": float(reason.share),
        "example": reason.example,
    }


def _plain_table(table: TableFacts) -> dict[str, Any]:
    faults = []
    for (rule, column), count in table.faults.items():
        faults.append({"column": column, "rule": rule, "rows": count})
    columns = [vars(column) for column in table.columns]
    join = None if table.join is None else vars(table.join)
    return {**vars(table), "faults": faults, "columns": columns, "join": join}


def _plain_query(query: QueryFacts) -> dict[str, Any]:
    return {
        **vars(query),
        "keys": list(map(_plain_keys, query.keys)),
        "cuts": [{"bound": cut.bound, "count": cut.count} for cut in query.cuts],
        "told": list(map(_plain_told, query.told)),
    }


def _plain_keys(keys: KeyFacts) -> dict[str, Any]:
    return {
        **vars(keys),
        "keys": [vars(key) for key in keys.keys],
        "unnamed": [vars(value) for value in keys.unnamed],
        "without_rows": list(keys.without_rows),
        "near": dict(keys.near),
    }


def _plain_told(told: Told) -> dict[str, Any]:
    return {**vars(told), "hardly_more_than_noise": told.is_hardly_more_than_noise}
