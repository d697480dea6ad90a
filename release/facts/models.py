"""What a rehearsal finds. All of it is confidential, so that no representation shows a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class Confidential:
    """A record that shows its name only."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(confidential)"


@dataclass(frozen=True, repr=False)
class ColumnFacts(Confidential):
    """A column as queries see it: how many rows have no value, and its ends.

    ``least`` and ``greatest`` are None of texts and Booleans, and of a column without values.
    ``zone`` is the zone in whose time instants are read; None of other values.
    """

    column: str
    missing: int
    least: str | None
    greatest: str | None
    zone: str | None = None


@dataclass(frozen=True, repr=False)
class JoinFacts(Confidential):
    """The rows of a table that a join loses, and those that have several partners.

    These count once for each where ``many`` is true, and else take one of them.
    """

    table: str
    unmatched: int
    doubled: int
    many: bool


@dataclass(frozen=True, repr=False)
class TableFacts(Confidential):
    """A table: its rows with a unit, its units, and what breaks its declaration or contract.

    ``seen`` are the rows that queries see, after the contract and the join. ``faults`` maps a
    rule and a column to a number of rows.
    """

    table: str
    rows: int
    units: int
    seen: int
    repeated: int
    faults: Mapping[tuple[str, str], int]
    columns: tuple[ColumnFacts, ...]
    join: JoinFacts | None = None


@dataclass(frozen=True, repr=False)
class ValueCount(Confidential):
    """A value of a column, with its rows and their units."""

    value: str
    rows: int
    units: int


@dataclass(frozen=True, repr=False)
class KeyFacts(Confidential):
    """The keys of one column, among the rows that meet a condition.

    Attributes:
        column: the key column, or an attribute or the lowest level of a tabulation.
        keys: the keys with rows, in their order.
        without_rows: the keys without rows.
        missing: the rows without a value.
        unnamed: the values that no key names, those of most rows first, a thousand at most.
        unnamed_values: how many of these there are, and ``unnamed_rows`` their rows.
        near: for a key without rows a value like it that no key names.
    """

    column: str
    keys: tuple[ValueCount, ...]
    without_rows: tuple[str, ...]
    missing: int
    unnamed: tuple[ValueCount, ...]
    unnamed_values: int
    unnamed_rows: int
    near: Mapping[str, str]


@dataclass(frozen=True, repr=False)
class Told(Confidential):
    """What a table tells beside its noise, cell by cell.

    Attributes:
        sentence: the error of 95 in 100, beside the true answers.
        cells: the number of cells that are judged.
        noisy: how many of them are hardly more than noise: the error of 95 in 100 is as large as
            what the cell tells.
    """

    sentence: str
    cells: int
    noisy: int

    @property
    def is_hardly_more_than_noise(self) -> bool:
        """Whether that is so of half of the cells or more."""
        return 0 < self.cells <= 2 * self.noisy


@dataclass(frozen=True, repr=False)
class Cut(Confidential):
    """How many rows, values or cells a bound changes or leaves out.

    ``words`` say what happens to them, and ``example`` where most of it does. Where ``is_change``
    is false nothing need be another for it: an answer may well be that at the end of its domain.
    """

    words: str
    count: int
    noun: str = "rows"
    example: str = ""
    is_change: bool = True

    @property
    def bound(self) -> str:
        """The noun and the words, as the end of a sentence."""
        return f"{self.noun} {self.words}"


@dataclass(frozen=True, repr=False)
class QueryFacts(Confidential):
    """A query, or a tabulation, on the tables.

    Attributes:
        name: its name.
        rows: the rows that meet its condition.
        outside: those of them that are in no cell.
        keys: its key columns.
        cuts: what each of its bounds changes or leaves out; no bound that cuts nothing.
        cells: the number of its cells; None where they are those of several tables.
        empty: how many of them have no row.
        sensitivity: how far one unit of this table moves an answer; None of a worst case.
        told: what its answers tell beside their noise; for a tabulation of each table.
    """

    name: str
    rows: int | None = None
    outside: int = 0
    keys: tuple[KeyFacts, ...] = ()
    cuts: tuple[Cut, ...] = ()
    cells: int | None = None
    empty: int = 0
    sensitivity: str | None = None
    told: tuple[Told, ...] = ()
