"""Things with a name, such as queries, tabulations and their records: by name, and the names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


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
