"""Tiny tables: what one unit may hold, with a few others beside it, and which are neighbors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import TypeAlias

from dp_release_audit.values import Columns, Value, any_value, values_of
from release.spec.declarations import Relation
from release.spec.load import SpecFile

Row: TypeAlias = tuple[tuple[str, Value], ...]
"""The values of a row by column, without its unit."""

Held: TypeAlias = tuple[tuple[str, tuple[Row, ...]], ...]
"""The rows of one unit, by table."""

_FEW = 96

_WISHES = 12
"""So many rows are tried as the first of a table. Where no query tells them from nobody, all that
differ in one column are tried: conditions are met by the first values of most columns."""

MOST_ROWS = 60
"""Of one unit in one table."""


@dataclass(frozen=True)
class Case:
    """A tiny table: what each unit holds, the one that changes first, and rows of nobody."""

    held: tuple[Held, ...]
    nobody: Held = ()


NOTHING: Held = ()


class Cases:
    """The tables of a spec that are tried, at most about ``most``."""

    def __init__(self, spec_file: SpecFile, most: int, moved: Callable[[Case], int]) -> None:
        """``moved`` says how many queries tell a table from one of nobody."""
        self._spec_file = spec_file
        self._spec = spec_file.spec
        self._values = values_of(spec_file)
        self._contracts = spec_file.contracts
        self._bases = {table: self._first(table) for table in self._values}
        self._telling(moved)
        every = list(dict.fromkeys(self._contents()))
        if self._spec.privacy.attribute is not None:
            varied: list[Held] = []
            for held in every:
                varied += self._with_attributes(held)
            every = list(dict.fromkeys([every[0], *self._halved(), *varied]))
        # With few tables it matters more what the unit itself may hold.
        beside = self._beside(every)[: 4 if most >= _FEW else 2]
        most_contents = max(6, most // len(beside))
        self.contents = every[:most_contents]
        self.left_out = max(0, len(every) - most_contents) * len(beside)
        self.backgrounds = beside
        self.moves = self._spec.privacy.neighbors

    def cases(self) -> list[Case]:
        """All tables, those with the same others beside each other."""
        cases = []
        for background in self.backgrounds:
            if self.moves is Relation.ADD_REMOVE:
                cases.append(Case((NOTHING, *background)))
            cases += [Case((held, *background)) for held in self.contents]
        return cases

    def pairs(self) -> Iterator[tuple[Case, Case]]:
        """All neighbors among these tables, in both orders."""
        for background in self.backgrounds:
            if self.moves is Relation.ADD_REMOVE:
                empty = Case((NOTHING, *background))
                for held in self.contents:
                    yield empty, Case((held, *background))
                    yield Case((held, *background)), empty
                continue
            # In both orders, because a loss is that of one table against the other.
            for before, after in permutations(self.contents, 2):
                if self._may_change(before, after):
                    yield Case((before, *background)), Case((after, *background))

    def same(self) -> list[tuple[Case, Case]]:
        """Tables that have to be answered alike: rows of nobody count nowhere."""
        rich = self.contents[: min(4, len(self.contents))]
        background = self.backgrounds[-1]
        case = Case((rich[0], *background))
        return [(case, Case((rich[0], *background), nobody=held)) for held in rich]

    def is_observed(self, case: Case, neighbor: Case) -> bool:
        """Whether who comes in is a copy of somebody, or goes out."""
        return neighbor.held[0] == NOTHING or neighbor.held[0] in case.held

    def _may_change(self, before: Held, after: Held) -> bool:
        """Whether one unit may hold the first in one table and the second in its neighbor."""
        if self.moves is Relation.ATTRIBUTE:
            return self._without_attribute(before) == self._without_attribute(after)
        return self._home(before) == self._home(after)

    def _without_attribute(self, held: Held) -> Held:
        attribute = self._spec.privacy.attribute
        stripped = []
        for table, rows in held:
            short_rows = [tuple(cell for cell in row if cell[0] != attribute) for row in rows]
            stripped.append((table, tuple(short_rows)))
        return tuple(stripped)

    def _with_attributes(self, held: Held) -> Iterator[Held]:
        """The same rows with each value of the attribute, in all of them and in the first."""
        attribute = str(self._spec.privacy.attribute)
        yield held
        for place, (table, rows) in enumerate(held):
            for value in self._values[table].get(attribute, []):
                uniform = tuple(_with(row, {attribute: value}) for row in rows)
                yield (*held[:place], (table, uniform), *held[place + 1 :])
                if len(rows) > 1:
                    mixed = (*uniform[:1], *rows[1:])
                    yield (*held[:place], (table, mixed), *held[place + 1 :])

    def _halved(self) -> Iterator[Held]:
        """Twice as many rows as are read of a unit, of which the attribute decides which half is.

        They lie in as many cells as there are, so that one half leaves its cells to the other's.
        """
        attribute = str(self._spec.privacy.attribute)
        most = min(self._spec.privacy.max_rows_per_unit, MOST_ROWS // 2)
        for table, base in self._bases.items():
            values = [
                value for value in self._values[table].get(attribute, []) if value is not None
            ]
            keyed = self._keyed(table, base)
            rows = [keyed[place % len(keyed)] for place in range(2 * most)]
            for first, second in permutations(values[:3], 2):
                halves = [_with(row, {attribute: first}) for row in rows[:most]]
                halves += [_with(row, {attribute: second}) for row in rows[most:]]
                yield _held(
                    {name: (row,) for name, row in self._bases.items()} | {table: tuple(halves)}
                )

    def _home(self, held: Held) -> tuple[str | None, ...]:
        """The fixed part of a unit: the least that its rows name."""
        home = []
        for column in self._spec.privacy.fixed:
            home.append(min(_texts_of(held, column), default=None))
        return tuple(home)

    def _contents(self) -> Iterator[Held]:
        """What a unit may hold, the most telling first."""
        tables, base = list(self._values), self._bases
        most = min(self._spec.privacy.max_rows_per_unit, MOST_ROWS)
        plain: dict[str, tuple[Row, ...]] = {table: (row,) for table, row in base.items()}
        yield _held(plain)
        for table in tables:
            varied = list(self._varied(table, base[table]))
            keyed = self._keyed(table, base[table])
            # Past the bound on rows: equal ones, and ones that lie in several cells.
            yield _held({**plain, table: (base[table],) * (most + 1)})
            for rotated in (keyed, keyed[::-1]):
                many = tuple(rotated[i % len(rotated)] for i in range(most + 1))
                yield _held({**plain, table: many})
            for row in varied:
                yield _held({**plain, table: (row,)})
            for row in varied:
                yield _held({**plain, table: (row,) * (most + 1)})
            yield _held({**plain, table: ()})
            for first, second in combinations([base[table], *varied], 2):
                yield _held({**plain, table: (first, second)})
            for row in self._pairwise(table, base[table]):
                yield _held({**plain, table: (row,)})
            for row in self._pairwise(table, base[table]):
                yield _held({**plain, table: (row,) * most})

    def _beside(self, contents: list[Held]) -> list[tuple[Held, ...]]:
        """What the other units hold: nobody, one, and two that agree or do not."""
        first = contents[0]
        fixed = [held for held in contents[1:] if self._home(held) != self._home(first)]
        stranger = (fixed or contents[1:] or contents)[0]
        different = contents[min(4, len(contents) - 1)]
        pairs = [(first, stranger), (first, first), (different, stranger)]
        return [(), *self._unequal(), *pairs]

    def _unequal(self) -> Iterator[tuple[Held, ...]]:
        """One unit with two rows of a value and one with a row of another.

        Beside them a unit with more rows of a third value decides the answer, and who replaces it
        leaves the decision to the two: a difference that nobody who only comes in would make.
        """
        for query in self._spec.released:
            column, table = getattr(query, "of", None), query.table
            if query.is_empirical and column in self._values.get(table, {}):
                plain: dict[str, tuple[Row, ...]] = {
                    name: (row,) for name, row in self._bases.items()
                }
                # The first values, because the first category wins where several are commonest.
                present = [value for value in self._values[table][column] if value is not None]
                first, second = (
                    _with(self._bases[table], {column: value}) for value in present[:2]
                )
                yield _held({**plain, table: (second,) * 2}), _held({**plain, table: (first,)})
                return

    def _telling(self, moved: Callable[[Case], int]) -> None:
        """Choose for each table a first row that as many queries as possible read."""
        queries = len(self._spec.queries) + len(self._spec.tabulations)
        for table in self._values:
            # Of rows that are as good the earlier stays, which is the plainer one.
            best = 0
            first = self._bases[table]
            varied = list(self._varied(table, first))
            wishes = [first, *varied, *self._pairwise(table, first)]
            sample = [first, *wishes[1 :: -(-len(wishes) // _WISHES)]]
            for number, row in enumerate([*sample, *varied]):
                if best and number >= len(sample):
                    break
                rows = {name: (own,) for name, own in self._bases.items()} | {table: (row,)}
                count = moved(Case((_held(rows),)))
                if count > best:
                    best, self._bases[table] = count, row
                if best >= queries:
                    break

    def _first(self, table: str) -> Row:
        columns = self._spec.tables[table].columns
        values, contract = self._values[table], self._contracts.get(table)
        row = []
        for column, kind in columns.items():
            if column != self._spec.privacy.unit:
                rules = None if contract is None else contract.columns.get(column)
                value = values[column][0] if column in values else any_value(kind, rules)
                row.append((column, value))
        return tuple(row)

    def _varied(self, table: str, base: Row) -> Iterator[Row]:
        """The base row with one other value, columns in turn."""
        columns = self._values[table]
        for place in range(max((len(own) for own in columns.values()), default=0)):
            for column, values in columns.items():
                if place < len(values):
                    row = _with(base, {column: values[place]})
                    if row != base:
                        yield row

    def _pairwise(self, table: str, base: Row) -> Iterator[Row]:
        """The base row with two other values: every pair of values of two columns."""
        columns = self._values[table]
        for column, partner in combinations(columns, 2):
            for a, b in product(columns[column], columns[partner]):
                yield _with(base, {column: a, partner: b})

    def _keyed(self, table: str, base: Row) -> list[Row]:
        """Rows that lie in as many cells as there are: keys that are not fixed, combined."""
        spec = self._spec
        keys: set[str] = set()
        for query in spec.queries:
            keys |= set(query.by)
        keys -= set(spec.privacy.fixed)
        columns: Columns = {}
        for column, values in self._values[table].items():
            if column in keys:
                columns[column] = [value for value in values if value is not None]
        rows = [
            _with(base, dict(zip(columns, own, strict=True))) for own in product(*columns.values())
        ]
        return rows[:MOST_ROWS]


def _texts_of(held: Held, column: str) -> Iterator[str]:
    """What the rows of a unit name in a column, in all tables; a missing value names nothing."""
    for _, rows in held:
        for row in rows:
            for name, value in row:
                if name == column and value is not None:
                    yield str(value)


def _with(row: Row, values: dict[str, Value]) -> Row:
    return tuple((column, values.get(column, value)) for column, value in row)


def _held(rows: Mapping[str, tuple[Row, ...]]) -> Held:
    return tuple(rows.items())
