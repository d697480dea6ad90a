"""The privacy profile in a mechanism file: one unit's whole effect on a query.

It stands in the files of public mechanisms only. A mechanism that depends on the table has no
profile, because another table has another mechanism (docs/design/mathematics.md, 2.19).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from release.exact.composition.profile import Profile
from release.exact.numbers import format_exact
from release.records.models import Digits, Exact, Record

Pattern = Annotated[list[int], Field(min_length=1)]


class ProfileRecord(Record):
    """Bounds of δ at equidistant privacy losses, and the changes of one unit that they cover."""

    # A profile on any grid proves something; the total of a release composes those of one grid.
    step: Exact = Field(description="the distance of two losses, from 0 on")
    values: list[Digits] = Field(
        min_length=1,
        description="δ at each loss at most, in units of 10^-28; the last one holds beyond it",
    )
    # No pattern of a unit's rows is always the worst one (docs/design/mathematics.md, 2.30).
    patterns: list[Pattern] = Field(
        min_length=1,
        description="by how many codes one unit moves the cells that it touches, at most: one list "
        "for each way to share its rows out; 0 is any difference of answers without an order, and "
        "of a statistic the spread stands for all",
    )

    @classmethod
    def of(cls, profile: Profile, patterns: Sequence[tuple[int, ...]]) -> ProfileRecord:
        """The record of a profile and the patterns that it was composed of."""
        return cls(
            step=format_exact(profile.step),
            values=list(map(str, profile.values)),
            patterns=list(map(list, patterns)),
        )

    def to_profile(self) -> Profile:
        """The exact profile.

        Raises:
            ValueError: the numbers are no profile.
        """
        return Profile(Fraction(self.step), tuple(map(int, self.values)))
