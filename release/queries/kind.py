"""What a kind of query has to say about itself.

Every kind here is decided by sums: each unit contributes a small vector of integers to a cell (its
*profile*), profiles add up, and the answer is a function of the sum alone. That is why one
algorithm finds the differences of all of them exactly: taking a unit out subtracts its profile,
putting one in adds its profile.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from release.answers import Codes
from release.guarantee import Differences

Profiles = NDArray[np.int64]
"""Shape (units, width): what each unit adds to the sums of a cell."""


class Kind(Protocol):
    """One query's way from rows to an answer code."""

    @property
    def eligible_sql(self) -> str:
        """The condition under which a row counts at all."""
        ...

    @property
    def item_sql(self) -> str:
        """An integer: which part of the profile the row belongs to."""
        ...

    @property
    def value_sql(self) -> str:
        """An integer: what the row adds there, already clamped."""
        ...

    @property
    def width(self) -> int:
        """The number of integers in a profile."""
        ...

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """Write one cell's contributions into zeroed ``profiles``.

        ``total`` is the sum of the values and ``rows`` the number of rows, by unit and item.
        """
        ...

    def decide(self, sums: Profiles) -> Codes:
        """The answer code for each row of sums; shape (n, width) to (n,)."""
        ...

    def structural(self, rows_per_unit: int) -> Differences:
        """All differences that the declared domain and bounds allow, whatever the table."""
        ...
