"""What a curator should know of a spec before a release: weak guarantees, totals that differ.

Nothing here is refused. ``plan``, ``check`` and ``run`` say the same lines, which follow from the
spec alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from release.bundle.report.questions import unit_word
from release.exact.numbers import format_exact
from release.spec.model import Spec
from release.tabulations.spec.model import Tabulation

LARGE_EPSILON = 10
"""Above it a guess held as likely as not may become more than 99.99 % sure."""

LARGE_DELTA = Fraction(1, 10_000)
"""Whoever publishes one row of 10,000 as it is keeps to this δ."""


def cautions(spec: Spec, epsilon: Fraction, delta: Fraction) -> tuple[str, ...]:
    """The cautions of a release that charges ``epsilon`` and ``delta`` together."""
    return (*_promises_little(spec, epsilon, delta), *differing_totals(spec.tabulations))


def _promises_little(spec: Spec, epsilon: Fraction, delta: Fraction) -> list[str]:
    unit, said = unit_word(spec.privacy.unit), []
    if epsilon > LARGE_EPSILON:
        said.append(
            f"ε = {format_exact(epsilon)} is above {LARGE_EPSILON}: what is published may all but "
            f"prove a guess about one {unit}; 1 is usual"
        )
    if delta >= LARGE_DELTA:
        said.append(
            f"δ = {format_exact(delta)} allows the guarantee to fail one time in "
            f"{int(1 / delta):,}, for each {unit}; choose it well below one over the number of them"
        )
    return said


def differing_totals(tabulations: Sequence[Tabulation]) -> list[str]:
    """Of tabulations that count the same rows over the same areas: that they will not agree."""
    said = []
    for one, other in combinations(tabulations, 2):
        same_rows = one.table == other.table and one.where == other.where
        if same_rows and one.hierarchy == other.hierarchy:
            said.append(
                f"{one.name} and {other.name} count the same rows, each with noise of its own: "
                "their totals of an area will differ; one tabulation with the attributes of both "
                "has one total"
            )
    return said
