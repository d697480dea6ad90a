"""Conditions and derived columns: the SQL that a spec says, and what it means for one row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


@dataclass(frozen=True)
class Atom:
    """A comparison of one column; a row whose value is missing does not meet it.

    Attributes:
        column: the column that is looked at.
        sql: the words of the spec.
        holds: whether a value that is there meets it.
    """

    column: str
    sql: str
    holds: Callable[[Any], bool]

    def meets(self, rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Which rows meet it."""
        found = [value is not None and self.holds(value) for value in rows[self.column]]
        return np.array(found, dtype=bool)


@dataclass(frozen=True)
class Condition:
    """One or two atoms, of which both have to hold, or one."""

    atoms: tuple[Atom, ...]
    joined_by: str

    @property
    def sql(self) -> str:
        """The words of the spec."""
        return f" {self.joined_by} ".join(atom.sql for atom in self.atoms)

    @property
    def columns(self) -> set[str]:
        """What it looks at."""
        return {atom.column for atom in self.atoms}

    def meets(self, rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
        """Which rows meet it."""
        together = np.logical_and if self.joined_by == "AND" else np.logical_or
        found = self.atoms[0].meets(rows)
        for atom in self.atoms[1:]:
            found = together(found, atom.meets(rows))
        return found


@dataclass(frozen=True)
class Derived:
    """A column that is computed from one row.

    Attributes:
        name: of the new column.
        type: as declared.
        sql: the words of the spec.
        reads: the column that it is computed from.
        value: the new value for a value of that column, which may be missing.
    """

    name: str
    type: str
    sql: str
    reads: str
    value: Callable[[Any], Any]

    def add_to(self, rows: pd.DataFrame) -> None:
        """Compute it for all rows."""
        values = [self.value(value) for value in rows[self.reads]]
        rows[self.name] = pd.Series(values, dtype=object, index=rows.index)


def known(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, which is missing where its argument is."""
    return lambda value: None if value is None else function(value)


def band(edge: int) -> Callable[[Any], str]:
    """CASE takes a missing condition for false, so a missing amount is the last class."""
    return lambda value: "low" if value is not None and value < edge else "high"


def derived_columns(edge: int) -> dict[str, Derived]:
    """All that a case may derive, by name; ``edge`` is near the middle of the amounts."""
    case = f"CASE WHEN amount < {edge} THEN 'low' ELSE 'high' END"
    made = (
        Derived("hour", "integer", "hour(at)", "at", known(lambda at: at.hour)),
        Derived("weekday", "integer", "isodow(day)", "day", known(lambda day: day.isoweekday())),
        Derived("season", "integer", "quarter(day)", "day", known(lambda d: (d.month + 2) // 3)),
        Derived("big", "boolean", f"amount > {edge}", "amount", known(lambda x: x > edge)),
        Derived("band", "string", case, "amount", band(edge)),
        Derived("doubled", "integer", "rating * 2 + 1", "rating", known(lambda x: 2 * x + 1)),
    )
    return {column.name: column for column in made}


def comparison(rng: Random, column: str, value: Any) -> Atom:
    """A comparison of a number with one that it is likely to be near."""
    sign = rng.choice((">", "<", ">=")) if not isinstance(value, str) else rng.choice(("=", "<>"))
    compare = COMPARISONS[sign]
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return Atom(column, f"{column} {sign} {text}", lambda found: compare(found, value))


def any_atom(rng: Random, typical: Mapping[str, list[Any]], allowed: list[str]) -> Atom:
    """An atom over one of the columns; ``typical`` has values that occur in them."""
    column = rng.choice([name for name in allowed if typical.get(name)])
    value = rng.choice(typical[column])
    if isinstance(value, bool):
        wanted = rng.random() < 0.7
        return Atom(column, column if wanted else f"NOT {column}", lambda found: found == wanted)
    if isinstance(value, date):
        day = date(value.year, value.month, value.day)
        return Atom(column, f"{column} >= DATE '{day}'", lambda found: found >= day)
    if isinstance(value, str) and rng.random() < 0.4:
        others = tuple(sorted({value, *rng.sample(typical[column], min(2, len(typical[column])))}))
        listed = ", ".join(f"'{other}'" for other in others)
        return Atom(column, f"{column} IN ({listed})", lambda found: found in others)
    if isinstance(value, int) and rng.random() < 0.3:
        low, high = value - rng.randint(0, 5), value + rng.randint(0, 20)
        words = f"{column} BETWEEN {low} AND {high}"
        return Atom(column, words, lambda found: low <= found <= high)
    return comparison(rng, column, value)


def any_condition(rng: Random, typical: Mapping[str, list[Any]], allowed: list[str]) -> Condition:
    """A condition of one atom, or of two."""
    first = any_atom(rng, typical, allowed)
    if rng.random() < 0.7:
        return Condition((first,), "AND")
    return Condition((first, any_atom(rng, typical, allowed)), rng.choice(("AND", "OR")))
