"""Refuses what a tabulation cannot mean, in one line, before any file is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from release.errors import SpecError, unknown_name
from release.spec.declarations import ColumnType, Relation
from release.spec.model import Spec
from release.spec.named import check_table
from release.tabulations.spec.attributes import attributes_of
from release.tabulations.spec.model import DeclaredNumbers, Tabulation
from release.tabulations.spec.opened import Attribute

OWN_COLUMNS = ("answer", "rounded", "low", "high", "standard_error", "measured", "count")
"""The columns of the published tables that no level, attribute or grouping may be called."""

_TYPES = {ColumnType.STRING, ColumnType.INTEGER, ColumnType.DATE}


def check_tabulation(spec: Spec, place: int) -> None:
    """Refuse what ``tabulations[place]`` cannot mean.

    Raises:
        SpecError: the message names the field and the remedy.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    check_table(f"{at}.table", declared.table, spec.tables)
    _check_privacy(spec, declared)
    _check_columns(spec, at, declared)
    _check_names(at, declared)
    by_name = attributes_of(spec, place).by_name
    _check_publish(at, declared, by_name)
    _check_importance(at, declared)
    _check_facts(at, declared, by_name)
    _check_strategy(at, declared, by_name)


def _check_privacy(spec: Spec, declared: Tabulation) -> None:
    privacy, name = spec.privacy, declared.name
    if privacy.neighbors is Relation.ATTRIBUTE:
        raise SpecError(
            "privacy.neighbors",
            f"the tabulation {name!r} protects whole rows; write add_remove or replace_one",
        )
    # With more rows a unit would be in several cells of one table, and count several times.
    if privacy.max_rows_per_unit != 1:
        raise SpecError(
            "privacy.max_rows_per_unit",
            f"the tabulation {name!r} counts units with one row each; write 1",
        )

    for number, column in enumerate(privacy.fixed):
        if column in {declared.hierarchy.levels[-1], *declared.attributes}:
            raise SpecError(
                f"privacy.fixed[{number}]",
                f"{column!r} breaks down the tabulation {name!r}; leave it out",
            )


def _check_columns(spec: Spec, at: str, declared: Tabulation) -> None:
    """Areas and categories are looked up in columns of the table."""
    columns, levels = spec.table_columns(declared.table), declared.hierarchy.levels
    fields = {name: f"{at}.attributes.{name}" for name in declared.attributes}
    for number, level in enumerate(levels):
        # An upper level is a column of the file, and may also be one of the table.
        if level in columns or number == len(levels) - 1:
            fields[level] = f"{at}.hierarchy.levels[{number}]"
    for name, field in fields.items():
        if name not in columns:
            raise SpecError(field, unknown_name(name, columns))
        if name == spec.privacy.unit:
            raise SpecError(field, "the privacy unit is confidential; leave it out")
        if columns[name] not in _TYPES:
            raise SpecError(
                field, "areas and categories are strings, integers or dates; derive such a column"
            )


def _check_names(at: str, declared: Tabulation) -> None:
    """The columns of the published tables have different names."""
    fields = []
    for number, level in enumerate(declared.hierarchy.levels):
        fields.append((level, f"{at}.hierarchy.levels[{number}]"))
    fields += [(name, f"{at}.attributes.{name}") for name in declared.attributes]
    fields += [(name, f"{at}.groupings.{name}") for name in declared.groupings]
    # Many readers do not tell columns apart by case.
    spellings: dict[str, str] = {}
    for name, field in fields:
        if name.casefold() in OWN_COLUMNS:
            raise SpecError(field, f"{name!r} is a column of the published tables; rename it")
        first_field = spellings.setdefault(name.casefold(), field)
        if first_field != field:
            raise SpecError(field, f"has the name of {first_field}, letter case aside; rename one")
    for name, grouping in declared.groupings.items():
        field = f"{at}.groupings.{name}.of"
        if grouping.of in declared.groupings:
            raise SpecError(field, f"{grouping.of!r} is a grouping itself; name an attribute")
        if grouping.of not in declared.attributes:
            raise SpecError(field, unknown_name(grouping.of, declared.attributes))


def _check_publish(at: str, declared: Tabulation, by_name: Mapping[str, Attribute]) -> None:
    levels = declared.hierarchy.levels
    for name in declared.publish:
        _check_level(f"{at}.publish.{name}", name, levels)
    for name in levels:
        margins = declared.publish.get(name, [])
        if not margins:
            raise SpecError(
                f"{at}.publish.{name}",
                "publishes nothing; name a margin ([] is the total), or leave the level out of "
                "the hierarchy",
            )
        published: set[tuple[str, ...]] = set()
        for number, names in enumerate(margins):
            field = f"{at}.publish.{name}[{number}]"
            _check_margin(field, names, by_name)
            margin = declared.in_order(names)
            if margin in published:
                raise SpecError(field, "this margin stands twice; keep one")
            published.add(margin)


def _check_level(field: str, level: str, levels: Collection[str]) -> None:
    if level not in levels:
        raise SpecError(field, unknown_name(level, levels))


def _check_margin(field: str, names: Sequence[str], by_name: Mapping[str, Attribute]) -> None:
    """Refuse a margin of unknown attributes, or of one attribute twice."""
    of: dict[str, str] = {}
    for place, name in enumerate(names):
        if name not in by_name:
            raise SpecError(f"{field}[{place}]", unknown_name(name, by_name))
        attribute = by_name[name].of
        if attribute in of:
            raise SpecError(
                field, f"{of[attribute]!r} and {name!r} are both of {attribute!r}; keep one"
            )
        of[attribute] = name


def _check_importance(at: str, declared: Tabulation) -> None:
    for name, weight in declared.importance.items():
        field = f"{at}.importance.{name}"
        _check_level(field, name, declared.hierarchy.levels)
        if not weight > 0:
            raise SpecError(field, "must be above 0")


def _check_facts(at: str, declared: Tabulation, by_name: Mapping[str, Attribute]) -> None:
    highest = declared.hierarchy.levels[0]
    is_second = False
    for number, constraint in enumerate(declared.constraints):
        if isinstance(constraint, DeclaredNumbers):
            field = f"{at}.constraints[{number}]"
            if constraint.level != highest:
                raise SpecError(
                    f"{field}.level", f"numbers are declared for the highest level; write {highest}"
                )
            _check_margin(f"{field}.margin", constraint.margin, by_name)
            # Whole numbers are rounded so that they add up to one margin of facts.
            if is_second:
                raise SpecError(field, "numbers are declared for one margin; keep the finest alone")
            is_second = True


def _check_strategy(at: str, declared: Tabulation, by_name: Mapping[str, Attribute]) -> None:
    strategy = declared.strategy
    if strategy is None:
        return
    if strategy.noise is None and strategy.tables is None:
        raise SpecError(f"{at}.strategy", "says nothing; give noise or tables, or leave it out")
    tables: set[tuple[str, tuple[str, ...]]] = set()
    for number, pinned in enumerate(strategy.tables or ()):
        field = f"{at}.strategy.tables[{number}]"
        _check_level(f"{field}.level", pinned.level, declared.hierarchy.levels)
        _check_margin(f"{field}.margin", pinned.margin, by_name)
        if not pinned.share > 0:
            raise SpecError(f"{field}.share", "must be above 0")
        table = pinned.level, declared.in_order(pinned.margin)
        if table in tables:
            raise SpecError(field, "this table stands twice; keep one")
        tables.add(table)
