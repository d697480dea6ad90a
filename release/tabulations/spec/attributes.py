"""The public categories of a tabulation: of its attributes, its groupings, and the impossible ones.

All of it follows from the spec, before any file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from release.errors import SpecError, unknown_name
from release.spec.declarations import ColumnType
from release.spec.key_sets import check_keys, listed_keys, size_of
from release.spec.model import Spec
from release.tabulations.estimate.structure import numbered
from release.tabulations.spec.model import Grouping, Impossible, Tabulation
from release.tabulations.spec.opened import (
    Attribute,
    Places,
    possible_combinations,
    whole_attribute,
)

MOST_COMBINATIONS = 2**20
"""Combinations of all categories."""


@dataclass(frozen=True)
class Attributes:
    """What counts are broken down by.

    Attributes:
        categories: of each attribute, as text, in the order of the spec.
        by_name: every attribute, each followed by its groupings.
        zeros: the impossible combinations, in the order of the spec.
    """

    categories: Mapping[str, tuple[str, ...]]
    by_name: Mapping[str, Attribute]
    zeros: tuple[Places, ...]


def attributes_of(spec: Spec, place: int) -> Attributes:
    """The attributes of ``tabulations[place]``, which are columns of its table.

    Raises:
        SpecError: categories of another type, repeated ones or too many, classes that do not part
            the categories, or nothing that is possible.
    """
    declared, at = spec.tabulations[place], f"tabulations[{place}]"
    if _named(declared) > MOST_COMBINATIONS:
        raise SpecError(at, f"more than {MOST_COMBINATIONS:,} categories are named; name fewer")
    kinds = spec.table_columns(declared.table)
    categories = _categories(at, declared, kinds)
    by_name = {}
    for name, own in categories.items():
        by_name[name] = whole_attribute(name, own)
        for column, grouping in declared.groupings.items():
            if grouping.of == name:
                field = f"{at}.groupings.{column}.classes"
                by_name[column] = _grouped(field, column, grouping, own, kinds[name])
    zeros = []
    for number, constraint in enumerate(declared.constraints):
        if isinstance(constraint, Impossible):
            field = f"{at}.constraints[{number}].impossible"
            zeros.append(_places(field, declared, constraint, categories, kinds))
    # Then every count would be declared to be 0, and nothing would be left to estimate.
    if zeros and not possible_combinations(categories, zeros).any():
        raise SpecError(f"{at}.constraints", "every combination is impossible; leave some possible")
    return Attributes(categories, by_name, tuple(zeros))


def _named(declared: Tabulation) -> int:
    """How many categories attributes, classes and impossible combinations name, none built."""
    listings = [*declared.attributes.values()]
    for grouping in declared.groupings.values():
        listings.extend(grouping.classes.values())
    for constraint in declared.constraints:
        if isinstance(constraint, Impossible):
            listings.extend(constraint.impossible.values())
    return sum(map(size_of, listings))


def _categories(
    at: str, declared: Tabulation, kinds: Mapping[str, ColumnType]
) -> dict[str, tuple[str, ...]]:
    categories, combinations = {}, 1
    for name, listing in declared.attributes.items():
        field = f"{at}.attributes.{name}"
        values = listed_keys(field, listing, kinds[name])
        check_keys(field, values, "category")
        # In the order of the spec, not sorted as keys are: the order is that of the published rows.
        categories[name] = tuple(values)
        # Margins look their cells up in a table of all combinations, which has to fit memory.
        combinations *= len(values)
        if combinations > MOST_COMBINATIONS:
            raise SpecError(
                field, f"more than {MOST_COMBINATIONS} combinations of categories; use fewer"
            )
    return categories


def _grouped(
    at: str, name: str, grouping: Grouping, categories: tuple[str, ...], kind: ColumnType
) -> Attribute:
    """A grouping, its classes in the order of their first categories."""
    members = frozenset(categories)
    class_of: dict[str, str] = {}
    for label, listing in grouping.classes.items():
        # Labels are printed in reports and messages, which control characters could rewrite.
        if not label.isprintable():
            raise SpecError(at, f"the label {label!r} is not printable; rename the class")
        for category in listed_keys(f"{at}.{label}", listing, kind):
            if category not in members:
                raise SpecError(f"{at}.{label}", unknown_name(category, categories))
            if category in class_of:
                raise SpecError(f"{at}.{label}", f"{category!r} stands twice; keep it in one class")
            class_of[category] = label
    labels = []
    for category in categories:
        # Whoever was in no class would be missing in the sums, which then would not add up.
        if category not in class_of:
            raise SpecError(at, f"{category!r} is in no class; add it to one")
        labels.append(class_of[category])
    # As they first occur: margins number their classes so, whatever the order in the spec.
    return Attribute(name, grouping.of, tuple(dict.fromkeys(labels)), numbered(labels))


def _places(
    at: str,
    declared: Tabulation,
    zero: Impossible,
    categories: Mapping[str, tuple[str, ...]],
    kinds: Mapping[str, ColumnType],
) -> Places:
    """The places of impossible categories, by attribute."""
    places = {}
    for name, listing in zero.impossible.items():
        field = f"{at}.{name}"
        if name in declared.groupings:
            raise SpecError(field, f"is a grouping; name categories of {declared.of(name)!r}")
        if name not in categories:
            raise SpecError(field, unknown_name(name, categories))
        own = places_of(categories[name])
        texts = listed_keys(field, listing, kinds[name])
        check_keys(field, texts, "category")
        for text in texts:
            if text not in own:
                raise SpecError(field, unknown_name(text, categories[name]))
        places[name] = tuple(own[text] for text in texts)
    return places


def places_of(labels: Sequence[str]) -> dict[str, int]:
    """The place of each label in their order."""
    return {label: place for place, label in enumerate(labels)}
