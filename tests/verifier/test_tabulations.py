"""What a published table may follow from: rules of the verifier on small shapes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dp_release_verify.errors import Refused
from dp_release_verify.tabulations import Breakdown, Numbers, Shape, Tabulated, check_follows

SEX = Breakdown(0, ("f", "m"), (0, 1))


def published(areas: int, measured: int) -> Tabulated:
    """Counts by sex, measured at one of two levels and published at the other.

    There is one area above, with so many ``areas`` below it.
    """
    below = tuple(("s", f"t{number}") for number in range(areas))
    shape = Shape("tab", ("state", "tract"), ((("s",),), below), ("sex",), {"sex": SEX})
    counts = [[[0, 0]], [[0, 0]] * areas]
    source = Numbers(measured, ("sex",), counts[measured])
    table = Numbers(1 - measured, ("sex",), counts[1 - measured])
    return Tabulated(shape, [(source, Fraction(1))], [source, table], [], None)


def test_tables_follow_from_lower_levels_and_from_the_same_areas() -> None:
    check_follows(published(2, measured=1))
    check_follows(published(1, measured=1))
    check_follows(published(1, measured=0))


def test_no_table_follows_from_fewer_areas() -> None:
    with pytest.raises(Refused, match="no measured table"):
        check_follows(published(2, measured=0))
