"""Things with a name, such as queries, tabulations and their records: by name, and the names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

from release.errors import SpecError, listed, unknown_name


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """The name, by which others refer to it."""


N = TypeVar("N", bound=Named)


def by_name(items: Iterable[N]) -> dict[str, N]:
    """The items by their names, in their order; of two with one name, the last."""
    return {item.name: item for item in items}


def names_of(items: Iterable[Named]) -> list[str]:
    """The name of each item, in their order."""
    return [item.name for item in items]


def check_table(at: str, name: str, tables: Collection[str]) -> None:
    """Refuse a table that is not there, or not named where there are several.

    Raises:
        SpecError: it names ``at``.
    """
    if not name:
        raise SpecError(at, f"there are several tables; write one of {listed(tables)}")
    if name not in tables:
        raise SpecError(at, unknown_name(name, tables))
