"""Opening a tabulation: its files are read, and what cannot be meant is refused in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from release.errors import SpecError, unknown_name
from release.exact.domain import Codes
from release.exact.tables.structure import Margin
from release.spec.declarations import ColumnType, KeyRange, KeyValue, Relation
from release.spec.domains import INTEGER_LIMIT, MAX_ANSWERS
from release.spec.key_sets import check_keys, key_text
from release.spec.model import Spec
from release.spec.tabulations.areas import NamedAreas, nested, read_areas, read_lines
from release.spec.tabulations.model import Categories, DeclaredNumbers, Grouping, Tabulation
from release.spec.tabulations.opened import (
    Attribute,
    NamedMargin,
    OpenTabulation,
    Table,
    whole_attribute,
)

MOST_CELLS = 2**25
"""Cells of one level: 256 MB of integers."""

MOST_CATEGORIES = 2**20
"""Combinations of all categories."""

MOST = 2**32
"""Declared numbers are below this: whole numbers are computed in millionths of 52 bits."""

OWN_COLUMNS = ("answer", "rounded", "low", "high", "standard_error", "measured", "count")
"""The columns of the published tables that no level or attribute may be called."""


def open_tabulation(spec: Spec, place: int, folder: Path) -> OpenTabulation:
    """The tabulation ``tabulations[place]`` with the files that it names, below ``folder``.

    Raises:
        SpecError: a file cannot be read or does not fit; the message names the field.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    hierarchy = declared.hierarchy
    kinds = spec.table_columns(declared.table)
    named = read_areas(f"{at}.hierarchy", folder / hierarchy.file, hierarchy.levels, kinds)
    opened = with_areas(spec, place, named)
    facts = {}
    for number, constraint in enumerate(declared.constraints):
        if isinstance(constraint, DeclaredNumbers):
            field = f"{at}.constraints[{number}]"
            facts[_fact_table(field, opened, constraint)] = _numbers(
                f"{field}.file", folder / constraint.file, opened, constraint
            )
    return with_facts(opened, facts)


def with_areas(spec: Spec, place: int, named: NamedAreas) -> OpenTabulation:
    """The tabulation with its areas, as a verifier has it from the published tables.

    Raises:
        SpecError: there are too many cells.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    categories = categories_of(spec, place)
    by_name = _by_name(at, declared, categories, spec)
    draft = OpenTabulation(declared, named, categories, by_name, (), {}, ())
    published = []
    for level, name in enumerate(declared.hierarchy.levels):
        for names in declared.publish[name]:
            ordered = draft.in_order(names)
            published.append(NamedMargin(level, ordered, draft.margin(ordered)))
    zeros = []
    for zero in declared.zeros:
        places = {}
        for name, values in zero.impossible.items():
            known = categories[name]
            texts = _texts(at, _listed(at, values), _kind(spec, declared, name))
            places[name] = tuple(known.index(text) for text in texts)
        zeros.append(places)
    opened = OpenTabulation(
        declared, named, categories, by_name, tuple(published), {}, tuple(zeros)
    )
    for level, name in enumerate(opened.levels):
        cells = named.areas.size(level) * opened.finest[level].cells
        if max(cells, opened.rows(level)) > MOST_CELLS:
            raise SpecError(f"{at}.publish.{name}", f"{cells} cells; at most {MOST_CELLS}")
    return opened


def with_facts(opened: OpenTabulation, facts: dict[Table, Codes]) -> OpenTabulation:
    """The tabulation with its declared numbers."""
    return OpenTabulation(
        opened.declared,
        opened.named,
        opened.categories,
        opened.by_name,
        opened.published,
        facts,
        opened.zeros,
    )


def check_tabulation(spec: Spec, place: int) -> None:
    """Refuse what a tabulation cannot mean, before any file is read.

    Raises:
        SpecError: the message names the field and the remedy.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    if declared.table not in spec.tables:
        raise SpecError(f"{at}.table", unknown_name(declared.table, spec.tables))
    _check_privacy(spec, at, declared)
    columns, levels = spec.table_columns(declared.table), declared.hierarchy.levels
    if levels[-1] not in columns:
        raise SpecError(
            f"{at}.hierarchy.levels[{len(levels) - 1}]", unknown_name(levels[-1], columns)
        )
    _check_column(f"{at}.hierarchy.levels[{len(levels) - 1}]", columns[levels[-1]])
    for number, name in enumerate(levels):
        _check_own_name(f"{at}.hierarchy.levels[{number}]", name, levels[:number])
    for name in declared.attributes:
        field = f"{at}.attributes.{name}"
        if name not in columns:
            raise SpecError(field, unknown_name(name, columns))
        _check_column(field, columns[name])
        _check_own_name(field, name, levels)
    for name, grouping in declared.groupings.items():
        field = f"{at}.groupings.{name}"
        _check_own_name(field, name, [*levels, *declared.attributes])
        if grouping.of not in declared.attributes:
            raise SpecError(f"{field}.of", unknown_name(grouping.of, declared.attributes))
    categories = categories_of(spec, place)
    by_name = _by_name(at, declared, categories, spec)
    _check_publish(at, declared, by_name)
    for name in declared.importance:
        if name not in levels:
            raise SpecError(f"{at}.importance.{name}", unknown_name(name, levels))
        if not declared.importance[name] > 0:
            raise SpecError(f"{at}.importance.{name}", "must be above 0")
    _check_constraints(spec, at, declared, categories, by_name)
    _check_strategy(at, declared, by_name)


def _check_privacy(spec: Spec, at: str, declared: Tabulation) -> None:
    privacy = spec.privacy
    if privacy.neighbors is Relation.ATTRIBUTE:
        raise SpecError(f"{at}.table", "tabulations need neighbors: add_remove or replace_one")
    if privacy.max_rows_per_unit != 1:
        raise SpecError(
            "privacy.max_rows_per_unit",
            f"the tabulation {declared.name!r} counts units with one row each; write 1",
        )
    used = {declared.hierarchy.levels[-1], *declared.attributes}
    shared = sorted(used & set(privacy.fixed))
    if shared:
        raise SpecError(
            "privacy.fixed",
            f"{shared[0]!r} breaks down the tabulation {declared.name!r}; leave it out",
        )
    if privacy.unit in used:
        raise SpecError(f"{at}.attributes", "the privacy unit is confidential; leave it out")


def _check_column(field: str, kind: ColumnType) -> None:
    if kind not in {ColumnType.STRING, ColumnType.INTEGER, ColumnType.DATE}:
        raise SpecError(field, "areas and categories are strings, integers or dates; derive one")


def _check_own_name(field: str, name: str, others: Sequence[str]) -> None:
    if name in others:
        raise SpecError(field, f"{name!r} stands twice; rename one")
    if name in OWN_COLUMNS:
        raise SpecError(field, f"{name!r} is a column of the published tables; rename it")


def categories_of(spec: Spec, place: int) -> dict[str, tuple[str, ...]]:
    """The categories of each attribute as text, in the order of the spec.

    Raises:
        SpecError: a category of another type, an empty or a repeated one, or too many.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    found, together = {}, 1
    for name, given in declared.attributes.items():
        field = f"{at}.attributes.{name}"
        values = _texts(field, _listed(field, given), _kind(spec, declared, name))
        check_keys(field, list(values))
        found[name] = values
        together *= len(values)
        if together > MOST_CATEGORIES:
            raise SpecError(field, f"more than {MOST_CATEGORIES} combinations; use fewer")
    return found


def _listed(field: str, given: Categories) -> Sequence[KeyValue]:
    if not isinstance(given, KeyRange):
        return given
    first, last = given.range
    if not -INTEGER_LIMIT < first <= last < INTEGER_LIMIT or last - first >= MAX_ANSWERS:
        raise SpecError(f"{field}.range", f"write [first, last], at most {MAX_ANSWERS} of them")
    return range(first, last + 1)


def _kind(spec: Spec, declared: Tabulation, name: str) -> ColumnType:
    return spec.table_columns(declared.table)[name]


def _texts(field: str, values: Sequence[KeyValue], kind: ColumnType) -> tuple[str, ...]:
    return tuple(key_text(f"{field}[{number}]", value, kind) for number, value in enumerate(values))


def _by_name(
    at: str, declared: Tabulation, categories: dict[str, tuple[str, ...]], spec: Spec
) -> dict[str, Attribute]:
    """Every attribute, each followed by its groupings."""
    found = {}
    for name, own in categories.items():
        found[name] = whole_attribute(name, own)
        for grouped, grouping in declared.groupings.items():
            if grouping.of == name:
                field, kind = f"{at}.groupings.{grouped}", _kind(spec, declared, name)
                found[grouped] = _grouped(field, grouped, grouping, own, kind)
    return found


def _grouped(
    field: str, name: str, grouping: Grouping, own: tuple[str, ...], kind: ColumnType
) -> Attribute:
    class_of: dict[str, str] = {}
    for label, values in grouping.classes.items():
        if not label.isprintable():
            raise SpecError(f"{field}.classes", "a label has control characters")
        place = f"{field}.classes.{label}"
        for text in _texts(place, _listed(place, values), kind):
            if text not in own:
                raise SpecError(place, unknown_name(text, own))
            if text in class_of:
                raise SpecError(place, f"{text!r} is in another class too")
            class_of[text] = label
    missing = [text for text in own if text not in class_of]
    if missing:
        raise SpecError(f"{field}.classes", f"{missing[0]!r} is in no class; add it to one")
    labels = tuple(dict.fromkeys(class_of[text] for text in own))
    if len(labels) != len(grouping.classes):
        raise SpecError(f"{field}.classes", "a class has no category; leave it out")
    return Attribute(name, grouping.of, labels, tuple(labels.index(class_of[text]) for text in own))


def _check_publish(at: str, declared: Tabulation, by_name: dict[str, Attribute]) -> None:
    levels = declared.hierarchy.levels
    for name in declared.publish:
        if name not in levels:
            raise SpecError(f"{at}.publish.{name}", unknown_name(name, levels))
    for name in levels:
        margins = declared.publish.get(name, [])
        if not margins:
            raise SpecError(
                f"{at}.publish.{name}",
                "publishes nothing; name a margin ([] is the total), or leave the level out of "
                "the hierarchy",
            )
        seen: set[frozenset[str]] = set()
        for number, names in enumerate(margins):
            field = f"{at}.publish.{name}[{number}]"
            check_margin(field, names, by_name)
            if frozenset(names) in seen:
                raise SpecError(field, "this margin stands twice; keep one")
            seen.add(frozenset(names))


def check_margin(field: str, names: Sequence[str], by_name: dict[str, Attribute]) -> None:
    """Refuse a margin of unknown attributes, or of one attribute twice.

    Raises:
        SpecError: it is one.
    """
    attributes: dict[str, str] = {}
    for name in names:
        if name not in by_name:
            raise SpecError(field, unknown_name(name, by_name))
        other = attributes.setdefault(by_name[name].of, name)
        if other != name or names.count(name) > 1:
            raise SpecError(field, f"{other!r} and {name!r} are of one attribute; keep one")


def _check_constraints(
    spec: Spec,
    at: str,
    declared: Tabulation,
    categories: dict[str, tuple[str, ...]],
    by_name: dict[str, Attribute],
) -> None:
    highest = declared.hierarchy.levels[0]
    for number, constraint in enumerate(declared.constraints):
        field = f"{at}.constraints[{number}]"
        if isinstance(constraint, DeclaredNumbers):
            if constraint.level != highest:
                raise SpecError(
                    f"{field}.level", f"numbers are declared for the highest level; write {highest}"
                )
            check_margin(f"{field}.margin", constraint.margin, by_name)
            continue
        for name, values in constraint.impossible.items():
            place = f"{field}.impossible.{name}"
            if name not in categories:
                raise SpecError(place, unknown_name(name, categories))
            kind = _kind(spec, declared, name)
            for text in _texts(place, _listed(place, values), kind):
                if text not in categories[name]:
                    raise SpecError(place, unknown_name(text, categories[name]))
    if len(declared.facts) > 1:
        raise SpecError(
            f"{at}.constraints", "numbers are declared for one margin; keep the finest alone"
        )


def _check_strategy(at: str, declared: Tabulation, by_name: dict[str, Attribute]) -> None:
    strategy = declared.strategy
    if strategy is None:
        return
    if strategy.noise is None and strategy.tables is None:
        raise SpecError(f"{at}.strategy", "says nothing; give noise or tables, or leave it out")
    seen: set[tuple[str, frozenset[str]]] = set()
    for number, pinned in enumerate(strategy.tables or ()):
        field = f"{at}.strategy.tables[{number}]"
        if pinned.level not in declared.hierarchy.levels:
            raise SpecError(f"{field}.level", unknown_name(pinned.level, declared.hierarchy.levels))
        check_margin(f"{field}.margin", pinned.margin, by_name)
        if not pinned.share > 0:
            raise SpecError(f"{field}.share", "must be above 0")
        if (pinned.level, frozenset(pinned.margin)) in seen:
            raise SpecError(field, "this table stands twice; keep one")
        seen.add((pinned.level, frozenset(pinned.margin)))


def _fact_table(field: str, opened: OpenTabulation, constraint: DeclaredNumbers) -> Table:
    margin = opened.margin(opened.in_order(constraint.margin))
    if not opened.finest[0].refines(margin):
        raise SpecError(
            f"{field}.margin",
            f"no published margin of {constraint.level} is as fine; publish this one too",
        )
    return 0, margin


def _numbers(field: str, path: Path, opened: OpenTabulation, constraint: DeclaredNumbers) -> Codes:
    """The declared numbers in a file; shape (areas, cells)."""
    names = opened.in_order(constraint.margin)
    margin = opened.margin(names)
    areas = {name: place for place, name in enumerate(opened.named.names[0])}
    found: dict[tuple[int, int], int] = {}
    for number, line in enumerate(read_lines(field, path, [opened.levels[0], *names, "count"]), 2):
        at = f"{field} (line {number})"
        area, *labels, count = line
        if area not in areas:
            raise SpecError(at, f"{area!r} is no area of the hierarchy")
        cell = 0
        for name, label in zip(names, labels, strict=True):
            known = opened.by_name[name].labels
            if label not in known:
                raise SpecError(at, unknown_name(label, known))
            cell = cell * len(known) + known.index(label)
        if not (count.isascii() and count.isdigit() and len(count) <= 10 and int(count) < MOST):
            raise SpecError(
                at, f"count is {count!r}; write a whole number of at least 0 and below {MOST}"
            )
        if (areas[area], cell) in found:
            raise SpecError(at, "a number stands twice; keep one")
        found[areas[area], cell] = int(count)
    table = np.zeros((len(areas), margin.cells), dtype=np.int64)
    if len(found) != table.size:
        raise SpecError(field, f"{len(found)} numbers for {table.size} cells; give one for each")
    for place, count_ in found.items():
        table[place] = count_
    _check_possible(field, opened, margin, table)
    return table


def _check_possible(field: str, opened: OpenTabulation, margin: Margin, table: Codes) -> None:
    possible = opened.possible(margin)
    if possible is not None and (table[:, ~possible] > 0).any():
        raise SpecError(field, "a number above 0 is of categories that are declared impossible")


__all__ = ["check_tabulation", "nested", "open_tabulation", "with_areas", "with_facts"]
