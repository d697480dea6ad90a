"""The roundings of what measurements say of a component."""

from __future__ import annotations

import numpy as np

from release.exact.tables.covariances import rounded, shifted


def test_quotients_are_rounded_to_the_nearest_and_a_half_upward() -> None:
    numerators = np.array([-7, -6, -5, -2, -1, 0, 1, 2, 3, 5, 6, 7], dtype=object)
    nearest = [-2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert shifted(numerators, 2).tolist() == nearest
    assert rounded(numerators, 4).tolist() == nearest
