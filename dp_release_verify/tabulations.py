"""Tables that add up: checked without solving anything.

Least squares leaves a fingerprint: at every combination of area and categories the residuals of all
measured tables, each divided by the variance of its noise, add up to zero, or with declared numbers
to a number that depends on the declared cell alone. Numbers with this fingerprint that add up are
the estimates, and no others are (docs/design/mathematics.md, T11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TypeAlias

from dp_release_verify import forms
from dp_release_verify.canonical import about
from dp_release_verify.digests import Folder
from dp_release_verify.errors import Refused, refuse_unless
from dp_release_verify.mechanisms.integers import Integers
from dp_release_verify.parquet import ColumnKind, Table, read_table
from dp_release_verify.tables import KEYS, Expected, check_columns, check_entries

FORMAT = "dp-release/tabulation/v1"
MOST_ROWS = 2**25
MOST_WORK = 2 * 10**7
MOST_COMBINATIONS = 4 * 10**6

MILLION = 10**6
_WEIGHT = 2**200
"""Weights are whole numbers, so many of which stand for one."""

Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Breakdown:
    """What a name of a margin breaks a table down by: an attribute, or classes of one.

    Attributes:
        attribute: the place of the attribute.
        labels: what stands in a table, in order.
        of: for each category of the attribute the place of its label.
    """

    attribute: int
    labels: Labels
    of: tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """The areas and categories of a tabulation.

    Attributes:
        levels: from the highest to the lowest.
        areas: of each level, each with its names from the highest level on, sorted.
        attributes: the names of the attributes, in order.
        breakdowns: of each attribute and grouping, in the order of their columns.
    """

    name: str
    levels: Labels
    areas: tuple[tuple[Labels, ...], ...]
    attributes: Labels
    breakdowns: dict[str, Breakdown]

    def size(self, margin: Sequence[str]) -> int:
        """The number of cells of a margin, of one area."""
        return prod(len(self.breakdowns[name].labels) for name in margin)

    def cells(self, level: int, margin: Sequence[str]) -> int:
        """The number of cells of a table."""
        return len(self.areas[level]) * self.size(margin)

    def ordered(self, margin: Sequence[str]) -> Labels:
        """The names of a margin in the order of the columns."""
        return tuple(name for name in self.breakdowns if name in margin)

    def sizes(self) -> list[int]:
        """The number of categories of each attribute."""
        return [len(self.breakdowns[name].labels) for name in self.attributes]

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each level but the first, the place of the area above of each area."""
        found: list[tuple[int, ...]] = [()]
        for level in range(1, len(self.levels)):
            above = {names: place for place, names in enumerate(self.areas[level - 1])}
            found.append(tuple(above[names[:-1]] for names in self.areas[level]))
        return tuple(found)


def shape_of(asked: forms.Tabulation, keys: forms.Keys) -> Shape:
    """The areas and categories of a tabulation.

    Raises:
        Refused: the areas are not of its levels, or not in order.
    """
    at = f"areas.{asked.name}"
    areas = (keys.areas or {}).get(asked.name)
    if areas is None:
        raise Refused(KEYS, at, "nothing", "the areas")
    levels = asked.hierarchy.levels
    refuse_unless(areas.levels == levels, KEYS, at, areas.levels, levels)
    rows = [tuple(row) for row in areas.rows]
    right = all(len(row) == len(levels) for row in rows)
    refuse_unless(right, KEYS, at, "a row of another length", f"{len(levels)} names")
    in_order = rows == sorted(set(rows))
    refuse_unless(in_order, KEYS, at, "another order", "ascending, each area once")
    of_levels = []
    for level in range(len(levels)):
        of_levels.append(tuple(sorted({row[: level + 1] for row in rows})))
    lowest = {row[-1] for row in rows}
    refuse_unless(len(lowest) == len(rows), KEYS, at, "an area twice", "one place for each area")
    return Shape(
        asked.name,
        tuple(levels),
        tuple(of_levels),
        tuple(each.name for each in asked.attributes or ()),
        _breakdowns(asked),
    )


def _breakdowns(asked: forms.Tabulation) -> dict[str, Breakdown]:
    found = {}
    for place, attribute in enumerate(asked.attributes or ()):
        texts = tuple(str(each) for each in attribute.categories)
        found[attribute.name] = Breakdown(place, texts, tuple(range(len(texts))))
        for grouping in asked.groupings or ():
            if grouping.of == attribute.name:
                found[grouping.name] = _classes(place, texts, grouping)
    return found


def _classes(place: int, categories: Labels, about: forms.Grouping) -> Breakdown:
    """Classes stand in the order of their first categories."""
    label_of = {}
    for group in about.classes:
        for each in group.categories:
            label_of[str(each)] = group.label
    labels: list[str] = []
    for category in categories:
        if label_of[category] not in labels:
            labels.append(label_of[category])
    return Breakdown(
        place, tuple(labels), tuple(labels.index(label_of[each]) for each in categories)
    )


# ---- The files -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """The numbers of a table, in millionths: of each area one a cell, in row-major order."""

    level: int
    margin: Labels
    values: list[list[int]]


def _key_columns(shape: Shape, level: int, names: Sequence[str]) -> list[Expected]:
    columns = [Expected(each, "string") for each in shape.levels[: level + 1]]
    return columns + [Expected(each, "string") for each in names]


def _rows_of_area(
    shape: Shape, margins: Sequence[Labels], names: Sequence[str]
) -> list[tuple[str | None, ...]]:
    """The labels of the rows that each area has, for the tables of a file."""
    rows = []
    for margin in margins:
        for labels in product(*(shape.breakdowns[name].labels for name in margin)):
            own = dict(zip(margin, labels, strict=True))
            rows.append(tuple(own.get(name) for name in names))
    return rows


@dataclass(frozen=True)
class Files:
    """The files of one tabulation."""

    folder: Folder
    release_id: str
    shape: Shape


def _read(
    files: Files,
    name: str,
    level: int,
    margins: Sequence[Labels],
    numbers: Sequence[tuple[str, ColumnKind]],
) -> Table:
    """A file with the tables of some margins of a level."""
    shape = files.shape
    file = f"data/{name}.parquet"
    used = {each for margin in margins for each in margin}
    names = [each for each in shape.breakdowns if each in used]
    of_area = _rows_of_area(shape, margins, names)
    rows = len(shape.areas[level]) * len(of_area)
    refuse_unless(rows <= MOST_ROWS, file, "rows", rows, f"at most {MOST_ROWS}")
    table = read_table(file, files.folder.read(file), rows)
    check_entries(file, table, files.release_id, name, FORMAT)
    expected = _key_columns(shape, level, names)
    expected += [Expected(column, kind) for column, kind in numbers]
    partial = {each for each in names if any(each not in margin for margin in margins)}
    check_columns(file, table, expected, partial)
    for place, column in enumerate(shape.levels[: level + 1]):
        repeated = [names[place] for names in shape.areas[level] for _ in of_area]
        right = table.columns[column].values == repeated
        refuse_unless(right, file, column, "other areas", "those of keys.json, in order")
    for place, column in enumerate(names):
        labels = [row[place] for row in of_area] * len(shape.areas[level])
        right = table.columns[column].values == labels
        refuse_unless(right, file, column, "other categories", "every combination, in order")
    return table


def _split(
    shape: Shape, level: int, margins: Sequence[Labels], values: Sequence[object]
) -> Iterator[Numbers]:
    """The numbers of each table of a file."""
    sizes = [shape.size(margin) for margin in margins]
    of_area = sum(sizes)
    start = 0
    for margin, size in zip(margins, sizes, strict=True):
        own = []
        for area in range(len(shape.areas[level])):
            first = area * of_area + start
            own.append([_millionths(value) for value in values[first : first + size]])
        yield Numbers(level, margin, own)
        start += size


def _millionths(value: object) -> int:
    """An integer, or the millionth that a double is the nearest to."""
    if isinstance(value, int):
        return value * MILLION
    if isinstance(value, float) and abs(value) < 2**62:
        found = round(Fraction(value) * MILLION)
        # Python rounds the quotient of two integers correctly.
        if found / MILLION == value:
            return found
    raise Refused("data", "a number", value, "the double nearest to a millionth")


@dataclass(frozen=True)
class Tabulated:
    """A tabulation as it was published.

    Attributes:
        measured: the noisy counts, each with the variance of its noise.
        estimates: the published answers, of all published and measured tables.
        whole: the published whole numbers.
        declared: the declared numbers, if there are any.
    """

    shape: Shape
    measured: list[tuple[Numbers, Fraction]]
    estimates: list[Numbers]
    whole: list[Numbers]
    declared: Numbers | None


@dataclass(frozen=True)
class Measured:
    """A measured table: its noisy counts, and where no level publishes it, its estimates."""

    counts: Numbers
    estimates: Numbers | None


def read_measured(files: Files, asked: forms.Tabulation, made: forms.MadeTable) -> Measured:
    """The noisy counts of a measured table, and the estimates that stand nowhere else.

    Raises:
        Refused: its file is another.
    """
    shape = files.shape
    level = shape.levels.index(made.level)
    margin = shape.ordered(made.margin)
    published = [shape.ordered(each) for each in asked.publish[made.level]]
    numbers: list[tuple[str, ColumnKind]] = [("measured", "int64")]
    if margin not in published:
        numbers.append(("estimate", "double"))
    table = _read(files, made.name, level, [margin], numbers)
    (counts,) = _split(shape, level, [margin], table.columns["measured"].values)
    if margin in published:
        return Measured(counts, None)
    (estimates,) = _split(shape, level, [margin], table.columns["estimate"].values)
    return Measured(counts, estimates)


_OF_LEVEL: list[tuple[str, ColumnKind]] = [
    ("answer", "double"),
    ("rounded", "int64"),
    ("low", "int64"),
    ("high", "int64"),
    ("standard_error", "double"),
]


def read_levels(
    files: Files, asked: forms.Tabulation, made: forms.MadeTabulation
) -> tuple[list[Numbers], list[Numbers]]:
    """The answers and the whole numbers of all published tables.

    Raises:
        Refused: a file is another.
    """
    shape = files.shape
    stated = [each.level for each in made.levels]
    refuse_unless(stated == list(shape.levels), "release.json", "levels", stated, shape.levels)
    answers: list[Numbers] = []
    whole: list[Numbers] = []
    for level, each in enumerate(made.levels):
        margins = [shape.ordered(margin) for margin in asked.publish[each.level]]
        table = _read(files, each.file, level, margins, _OF_LEVEL)
        answers += _split(shape, level, margins, table.columns["answer"].values)
        whole += _split(shape, level, margins, table.columns["rounded"].values)
    return answers, whole


def read_declared(
    files: Files, asked: forms.Tabulation, made: forms.MadeTabulation
) -> Numbers | None:
    """The declared numbers, if there are any.

    Raises:
        Refused: their file is another, or is there without being asked for.
    """
    shape = files.shape
    stated = [each for each in asked.constraints or () if each.level is not None]
    right = (made.declared is not None) == bool(stated) and len(stated) <= 1
    refuse_unless(right, "release.json", "declared", made.declared, "what was asked")
    if made.declared is None:
        return None
    (about,) = stated
    level = shape.levels.index(about.level or shape.levels[0])
    margin = shape.ordered(about.margin or [])
    numbers: list[tuple[str, ColumnKind]] = [("count", "int64")]
    table = _read(files, made.declared, level, [margin], numbers)
    (found,) = _split(shape, level, [margin], table.columns["count"].values)
    is_count = all(value >= 0 for values in found.values for value in values)
    refuse_unless(is_count, made.declared, "count", "below 0", "whole numbers from 0")
    return found


def variance_of(mechanism: Integers) -> Fraction:
    """The variance of the noise of a measured table.

    Raises:
        Refused: it is none, or not its own mirror image, so that estimates would be biased.
    """
    noise = mechanism.noise
    right = noise.is_symmetric and noise.moment(2) > 0
    refuse_unless(right, mechanism.file, "noise", "a side", "noise that is its own mirror image")
    return noise.moment(2)


# ---- Estimates -----------------------------------------------------------------------------------


def check_measured(shape: Shape, asked: forms.Tabulation, made: forms.MadeTabulation) -> None:
    """The measured tables are published margins, each once, with all their cells.

    Raises:
        Refused: they are not.
    """
    published = {frozenset(each) for margins in asked.publish.values() for each in margins}
    seen = set()
    for table in made.measured:
        at = f"made.{table.name}"
        known = table.level in shape.levels and frozenset(table.margin) in published
        refuse_unless(known, "release.json", at, table.margin, "a published margin")
        own = (table.level, frozenset(table.margin))
        refuse_unless(own not in seen, "release.json", at, "a table twice", "each once")
        seen.add(own)
        cells = shape.cells(shape.levels.index(table.level), table.margin)
        refuse_unless(table.cells == cells, "release.json", f"{at}.cells", table.cells, cells)


def _projection(shape: Shape, margin: Labels, categories: Sequence[int]) -> int:
    """The cell of a margin to which a combination of categories belongs."""
    cell = 0
    for name in margin:
        breakdown = shape.breakdowns[name]
        place = breakdown.of[categories[breakdown.attribute]]
        cell = cell * len(breakdown.labels) + place
    return cell


def _attributes(shape: Shape, margin: Labels) -> frozenset[int]:
    return frozenset(shape.breakdowns[name].attribute for name in margin)


def check_follows(found: Tabulated) -> None:
    """Every published table follows from the measured ones: one of them is as fine.

    Raises:
        Refused: one does not, so that its numbers could be anything.
    """
    shape = found.shape
    sources = [numbers for numbers, _ in found.measured]
    if found.declared is not None:
        sources.append(found.declared)
    for table in found.estimates:
        right = False
        for source in sources:
            # As many areas above as below: each has one of them, and they are the same.
            is_same = len(shape.areas[source.level]) == len(shape.areas[table.level])
            is_finer = source.level >= table.level or is_same
            right = right or (is_finer and _is_coarser(shape, table.margin, source.margin))
        at = f"{shape.levels[table.level]} {list(table.margin)}"
        refuse_unless(right, f"data ({shape.name})", at, "no measured table", "one that is as fine")


def check_least(found: Tabulated) -> None:
    """The answers are the least-squares estimates from the measured tables.

    Raises:
        Refused: they are not.
    """
    shape = found.shape
    estimates = {(each.level, each.margin): each.values for each in found.estimates}
    # The residuals of each margin, summed over the levels on the way down to each lowest area.
    residuals: dict[Labels, list[list[int]]] = {}
    allowed = 0
    tables: dict[tuple[int, Labels], list[list[int]]] = {}
    for numbers, variance in found.measured:
        answers = estimates.get((numbers.level, numbers.margin))
        if answers is None:
            raise Refused("data", str(numbers.margin), "nothing", "its estimates")
        weight = int(_WEIGHT / variance)
        rows, largest = [], 0
        for counts, own in zip(numbers.values, answers, strict=True):
            gaps = [count - answer for count, answer in zip(counts, own, strict=True)]
            largest = max(largest, *(abs(gap) for gap in gaps))
            rows.append([weight * gap for gap in gaps])
        tables[numbers.level, numbers.margin] = rows
        # An answer is rounded to half a millionth, a weight to a whole number.
        allowed += weight + 2 * largest
    for margin in {margin for _, margin in tables}:
        residuals[margin] = _passed_down(shape, margin, tables)
    _check_zero(found, residuals, allowed, len(shape.levels) - 1)


def _passed_down(
    shape: Shape, margin: Labels, tables: dict[tuple[int, Labels], list[list[int]]]
) -> list[list[int]]:
    """For each area of the lowest level the residuals of a margin, of it and all areas above."""
    size = shape.size(margin)
    sums: list[list[int]] = [[0] * size]
    for level in range(len(shape.levels)):
        own = tables.get((level, margin))
        before = sums
        sums = []
        for area in range(len(shape.areas[level])):
            above = before[shape.parents[level][area]] if level else before[0]
            if own is not None:
                above = [a + b for a, b in zip(above, own[area], strict=True)]
            sums.append(above)
    return sums


def _check_zero(
    found: Tabulated, residuals: dict[Labels, list[list[int]]], allowed: int, lowest: int
) -> None:
    """The residuals add up to 0 at every combination, but for what declared numbers allow."""
    shape, declared = found.shape, found.declared
    margins = list(residuals)
    wanted = [_attributes(shape, margin) for margin in margins]
    if declared is not None:
        wanted.append(_attributes(shape, declared.margin))
    multipliers: dict[tuple[int, int], int] = {}
    closed = _closed(wanted)
    work = len(shape.areas[lowest]) * len(margins)
    work *= sum(prod(shape.sizes()[place] for place in each) for each in closed)
    refuse_unless(work <= MOST_WORK, "data", shape.name, work, f"at most {MOST_WORK} residuals")
    for area in range(len(shape.areas[lowest])):
        top = area
        for level in range(lowest, 0, -1):
            top = shape.parents[level][top]
        for chosen in closed:
            for categories in _combinations(shape, chosen):
                total = 0
                for margin in margins:
                    total += residuals[margin][area][_projection(shape, margin, categories)]
                if declared is not None:
                    cell = (top, _projection(shape, declared.margin, categories))
                    total -= multipliers.setdefault(cell, total)
                right = abs(total) <= allowed
                at = f"{shape.areas[lowest][area]}, {categories}"
                stated = about(Fraction(total, _WEIGHT * MILLION))
                refuse_unless(
                    right,
                    f"data ({shape.name})",
                    at,
                    f"residuals that add up to {stated}",
                    "0, as those of least squares",
                )


def _closed(wanted: list[frozenset[int]]) -> list[tuple[int, ...]]:
    """The largest sets of attributes, in which a sum of functions of them can differ from 0.

    A sum of functions of few categories each is 0 everywhere if it is 0 wherever all categories
    outside one of the sets are the first ones.
    """
    found = {each for each in wanted if not any(each < other for other in wanted)}
    # Interactions of sets below are covered by those of the set itself.
    return sorted(tuple(sorted(each)) for each in found)


def _combinations(shape: Shape, chosen: tuple[int, ...]) -> Iterator[list[int]]:
    """All categories of the chosen attributes, with the first of all others."""
    sizes = shape.sizes()
    for own in product(*(range(sizes[place]) for place in chosen)):
        categories = [0] * len(sizes)
        for place, category in zip(chosen, own, strict=True):
            categories[place] = category
        yield categories


# ---- Adding up -----------------------------------------------------------------------------------


def _is_coarser(shape: Shape, margin: Labels, finer: Labels) -> bool:
    """Whether every cell of ``finer`` lies in one cell of ``margin``."""
    for name in margin:
        attribute = shape.breakdowns[name].attribute
        if len(shape.breakdowns[name].labels) == 1:
            continue
        own = [each for each in finer if shape.breakdowns[each].attribute == attribute]
        if not own:
            return False
        (other,) = own
        of_finer: dict[int, int] = {}
        for fine, coarse in zip(shape.breakdowns[other].of, shape.breakdowns[name].of, strict=True):
            if of_finer.setdefault(fine, coarse) != coarse:
                return False
    return True


def _common(shape: Shape, first: Labels, second: Labels) -> Labels:
    """The finest margin that is coarser than both."""
    chosen = []
    for place in range(len(shape.attributes)):
        names = []
        for name, breakdown in shape.breakdowns.items():
            is_of_both = _is_coarser(shape, (name,), first) and _is_coarser(shape, (name,), second)
            if breakdown.attribute == place and len(breakdown.labels) > 1 and is_of_both:
                names.append(name)
        if names:
            chosen.append(max(names, key=lambda name: len(shape.breakdowns[name].labels)))
    return tuple(chosen)


@dataclass(frozen=True)
class _Sums:
    """The sums of a table over the areas of a level and the cells of a margin.

    ``parts`` is how many numbers are added up in each area, by cell of the margin.
    """

    values: list[list[int]]
    parts: list[list[int]]


def _sums(shape: Shape, level: int, margin: Labels, finer: Numbers) -> _Sums:
    places = []
    for labels in product(*(range(len(shape.breakdowns[name].labels)) for name in finer.margin)):
        cell = 0
        for name in margin:
            breakdown = shape.breakdowns[name]
            for other, label in zip(finer.margin, labels, strict=True):
                own = shape.breakdowns[other]
                if own.attribute == breakdown.attribute:
                    cell = cell * len(breakdown.labels) + breakdown.of[own.of.index(label)]
        places.append(cell)
    size = shape.size(margin)
    sums = [[0] * size for _ in shape.areas[level]]
    parts = [[0] * size for _ in shape.areas[level]]
    for area, values in enumerate(finer.values):
        above = area
        for each in range(finer.level, level, -1):
            above = shape.parents[each][above]
        for cell, value in zip(places, values, strict=True):
            sums[above][cell] += value
            parts[above][cell] += 1
    return _Sums(sums, parts)


class _Adding:
    """The sums of all tables, each worked out once.

    Args:
        shape: the areas and categories.
        slack: by how many halves of a millionth each number may be rounded.
    """

    def __init__(self, shape: Shape, slack: int) -> None:
        self._shape = shape
        self._slack = slack
        self._known: dict[tuple[int, int, Labels], _Sums] = {}
        self._left = MOST_WORK

    def sums(self, table: Numbers, level: int, margin: Labels) -> _Sums:
        """The sums of a table."""
        key = (id(table), level, margin)
        if key not in self._known:
            self._left -= sum(len(values) for values in table.values)
            refuse_unless(
                self._left >= 0, "data", self._shape.name, "more", f"{MOST_WORK} numbers to add up"
            )
            self._known[key] = _sums(self._shape, level, margin, table)
        return self._known[key]

    def check_pair(self, first: Numbers, second: Numbers) -> None:
        """Two tables have the same sums, wherever both say something of them."""
        shape = self._shape
        level, margin = min(first.level, second.level), _common(shape, first.margin, second.margin)
        one, other = self.sums(first, level, margin), self.sums(second, level, margin)
        for area in range(len(shape.areas[level])):
            for cell in range(shape.size(margin)):
                gap = abs(one.values[area][cell] - other.values[area][cell])
                parts = one.parts[area][cell] + other.parts[area][cell]
                right = 2 * gap <= self._slack * parts
                if not right:
                    values = (one.values[area][cell], other.values[area][cell])
                    stated = [about(Fraction(value, MILLION)) for value in values]
                    at = f"{shape.levels[level]} {list(margin)}"
                    raise Refused(
                        f"data ({shape.name})", at, stated[0], f"{stated[1]}, the same sum"
                    )


def check_adds_up(found: Tabulated, tables: list[Numbers], slack: int) -> None:
    """Every two tables have the same sums; with the declared numbers too.

    Args:
        found: the tabulation.
        tables: all its answers, or all its whole numbers.
        slack: by how many halves of a millionth each number may be rounded.

    Raises:
        Refused: two sums differ.
    """
    adding = _Adding(found.shape, slack)
    every = [*tables, found.declared] if found.declared is not None else tables
    for first, second in combinations(every, 2):
        adding.check_pair(first, second)


def check_whole(found: Tabulated, asked: forms.Tabulation) -> None:
    """Whole numbers add up, are not negative, and are 0 where nobody can be.

    Raises:
        Refused: they are not.
    """
    shape = found.shape
    check_adds_up(found, found.whole, 0)
    impossible = [each.impossible for each in asked.constraints or () if each.impossible]
    named = {shape.attributes.index(name) for each in impossible for name in each}
    work = 0
    for table in found.whole if impossible else ():
        work += prod(shape.sizes()[place] for place in named | _attributes(shape, table.margin))
    refuse_unless(work <= MOST_COMBINATIONS, "asked", shape.name, work, "fewer combinations")
    for table in found.whole:
        is_natural = all(value >= 0 for values in table.values for value in values)
        refuse_unless(is_natural, f"data ({shape.name})", "rounded", "below 0", "0 or more")
        for cell in _impossible_cells(shape, table.margin, impossible):
            is_empty = all(values[cell] == 0 for values in table.values)
            refuse_unless(is_empty, f"data ({shape.name})", "rounded", "somebody", "0: impossible")


def _impossible_cells(
    shape: Shape, margin: Labels, impossible: Sequence[dict[str, list[forms.Label]]]
) -> Iterator[int]:
    """The cells of a margin in which every combination is impossible."""
    used = sorted(_attributes(shape, margin))
    named = {shape.attributes.index(name) for each in impossible for name in each}
    every = sorted({*used, *named})
    possible = set()
    if not impossible:
        return
    for categories in _combinations(shape, tuple(every)):
        hits = False
        for each in impossible:
            inside = True
            for name, members in each.items():
                place = shape.attributes.index(name)
                label = shape.breakdowns[name].labels[categories[place]]
                inside = inside and label in {str(member) for member in members}
            hits = hits or inside
        if not hits:
            possible.add(_projection(shape, margin, categories))
    yield from (cell for cell in range(shape.size(margin)) if cell not in possible)
