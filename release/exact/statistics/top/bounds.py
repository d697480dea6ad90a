"""How far one unit can move the counts of public categories, and the scores read off them.

All three ways to publish the k commonest of K categories take their sensitivity from here, and from
declared bounds only. Proofs are in docs/design/top-k.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from release.exact.domain import Codes


@dataclass(frozen=True)
class CountBounds:
    """What a unit adds to the counts of ``categories``: at most ``weight`` to each of ``touched``.

    Under ``add_remove`` a neighbor has one unit more or less. With ``is_replaced`` it has one unit
    with other rows, so some counts may fall while others rise. Where a category counts distinct
    units, the weight is 1.

    Raises:
        ValueError: fewer than 2 categories, a unit that touches none or more than there are, or a
            weight below 1.
    """

    categories: int
    touched: int
    weight: int = 1
    is_replaced: bool = False

    def __post_init__(self) -> None:
        if not self.categories >= 2:
            raise ValueError(f"a choice needs 2 or more categories, not {self.categories}")
        if not 1 <= self.touched <= self.categories:
            raise ValueError(
                f"a unit touches 1 to {self.categories} categories, not {self.touched}"
            )
        if not self.weight >= 1:
            raise ValueError(f"a unit adds 1 or more to a category, not {self.weight}")

    @property
    def norm(self) -> int:
        """The most by which neighbors differ, summed over all counts."""
        changed = 2 * self.touched if self.is_replaced else self.touched
        return self.weight * min(changed, self.categories)

    @property
    def range_of_counts(self) -> int:
        """The most by which the changes of two counts differ between neighbors."""
        return 2 * self.weight if self.is_replaced else self.weight

    def range_of_losses(self, members: int) -> int:
        """The most by which the changes of two canonical losses of sets of ``members`` differ."""
        is_single = 1 in {self.touched, members, self.categories - members}
        return self.range_of_counts if is_single else 2 * self.range_of_counts

    @property
    def words(self) -> str:
        """Of which categories a mechanism publishes some, and for which units it is proved."""
        return (
            f"of {self.categories} categories, proved for units that move their counts by "
            f"{self.norm} together"
        )


class Published(Enum):
    """Which noisy counts stand beside the members."""

    NONE, MEMBERS, ALL = range(3)


def check_members(bounds: CountBounds, members: int) -> None:
    """Refuse to publish no category, or all of them.

    Raises:
        ValueError: ``members`` is not between 1 and the number of categories less 1.
    """
    if not 1 <= members < bounds.categories:
        raise ValueError(f"1 to {bounds.categories - 1} categories are published, not {members}")


def check_counts(bounds: CountBounds, counts: Codes) -> None:
    """Refuse counts that are not one for each category in each cell.

    Raises:
        ValueError: the shape is not (cells, categories).
    """
    if counts.ndim != 2 or counts.shape[1] != bounds.categories:
        raise ValueError(f"each cell needs {bounds.categories} counts")
