"""The privacy profile of one unit's whole effect on a query: on all cells that it touches.

The cells of a query are answered independently. So a pattern of changes has the composition of its
cells' profiles, and the query has the largest of its patterns, loss by loss
(docs/design/mathematics.md, 2.30).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import isqrt
from typing import TypeAlias

from release.budget.composed import Together
from release.budget.cost import release_step
from release.budget.patterns import Pattern, patterns_of
from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import (
    MOST_LOSSES,
    Profile,
    largest,
    profile_of_distribution,
    profile_of_points,
)
from release.exact.composition.together import together
from release.exact.mechanism import Mechanism
from release.exact.numbers import MAX_EPSILON
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import StatisticMechanism
from release.spec.load import SpecFile
from release.spec.query import Query

PARTS = 64
"""Into how many steps a profile divides the ε of one cell, where no other grid is asked for."""

_LONGEST = 2**16
"""The losses of one cell times the root of the cells: beyond it the grid becomes coarser."""


def query_profile(
    spec_file: SpecFile,
    query: Query,
    mechanism: Mechanism | StatisticMechanism,
    sensitivity: Sensitivity | None,
    step: Fraction,
) -> Profile:
    """Return the profile of one unit's whole effect on ``query``, which has a public mechanism.

    Args:
        spec_file: the spec, with its key sets.
        query: a query whose sensitivity follows from the spec.
        mechanism: the mechanism of each cell.
        sensitivity: the differences of one cell; None for a mechanism on a statistic.
        step: distance of two losses, above 0 and at most 100.
    """
    return profile_over(patterns_of(spec_file, query), query, mechanism, sensitivity, step)


def profile_over(
    patterns: Sequence[Pattern],
    query: Query,
    mechanism: Mechanism | StatisticMechanism,
    sensitivity: Sensitivity | None,
    step: Fraction,
) -> Profile:
    """As :func:`query_profile`, over ``patterns``, those of the query."""
    cells = {}
    for difference in sorted(set(chain.from_iterable(patterns))):
        if isinstance(mechanism, StatisticMechanism):
            cell = mechanism.profile(query.claimed.epsilon, step)
        elif sensitivity is None:
            raise TypeError(f"{query.name} has noise on its answer and needs a sensitivity")
        else:
            cell = mechanism.profile(_within(mechanism, sensitivity, difference), step)
        cells[difference] = cell.shortened()
    return profile_of_patterns(cells, patterns)


def profile_of_patterns(cells: Mapping[int, Profile], patterns: Sequence[Pattern]) -> Profile:
    """Return the largest profile of the patterns, each the composition of its cells.

    Args:
        cells: the profile of one cell for each difference, all on one grid.
        patterns: one or more, none empty.
    """
    coarseness = _coarseness(cells, patterns)
    distributions = {}
    for difference, profile in cells.items():
        grid = profile.step * coarseness
        distributions[difference] = profile.distribution().regridded(grid)
    profiles = []
    for pattern in patterns:
        if len(pattern) == 1:
            profiles.append(cells[pattern[0]])
            continue
        # Cells are drawn independently, so their profiles compose (mathematics, 2.30).
        times = sorted(Counter(pattern).items())
        whole = together((distributions[number], count) for number, count in times)
        composed = profile_of_distribution(whole, whole.step).shortened()
        profiles.append(_refined(composed, coarseness))
    # No one pattern is always the worst: which it is depends on the noise.
    return largest(profiles).shortened()


def _coarseness(cells: Mapping[int, Profile], patterns: Sequence[Pattern]) -> int:
    """How many steps one step of the composition takes, a power of two: 1 but for very many cells.

    The losses of k cells spread over about √k times those of one.
    """
    most = max(map(len, patterns))
    losses = max(len(profile.values) for profile in cells.values()) * (isqrt(most) + 1)
    coarseness = 1
    while most > 1 and losses > _LONGEST * coarseness:
        coarseness *= 2
    return coarseness


def _refined(profile: Profile, parts: int) -> Profile:
    """The profile with every step divided into so many ``parts``, by chords."""
    if parts == 1:
        return profile
    points = []
    for place, value in enumerate(profile.values[: 1 + (MOST_LOSSES - 1) // parts]):
        # Beyond e^100 no chord is computed; what is known before it holds from there on.
        if place * profile.step <= MAX_EPSILON:
            points.append((place * parts, Fraction(value, UNIT)))
    return profile_of_points(points, profile.step / parts)


def _within(mechanism: Mechanism, sensitivity: Sensitivity, difference: int) -> Sensitivity:
    """The differences up to ``difference`` codes; all for 0, where answers have no order.

    Where noise has several peaks, a smaller difference can reveal more than a larger one.
    """
    if difference == 0:
        return sensitivity
    distances = sensitivity.distances or ()
    if mechanism.modular_noise is not None:
        # The file of modular noise has its differences modulo the answers, and no distances.
        distances = tuple(shift[0] for shift in sensitivity.shifts)
    nearer = [distance for distance in distances if distance <= difference]
    return Sensitivity.on_line(sensitivity.group.moduli[0], nearer)


Made: TypeAlias = tuple[Query, Mechanism | StatisticMechanism, Sensitivity | None]
"""A query, its mechanism, and the sensitivity; None where the noise is on the statistic."""


def published_profiles(
    spec_file: SpecFile,
    queries: Iterable[Made],
) -> Together:
    """The profiles of queries with public mechanisms, on the grid that the release states.

    Args:
        spec_file: the spec, with its key sets; every query has a guarantee.
        queries: each query with its mechanism, and the sensitivity that it is proved for.
    """
    return profiles_on(spec_file, queries, release_step(spec_file))


def profiles_on(spec_file: SpecFile, queries: Iterable[Made], step: Fraction) -> Together:
    """As :func:`published_profiles`, on the grid of ``step``."""
    # Queries often share a mechanism; its profile is found once for each set of patterns.
    profile_of: dict[object, Profile] = {}
    profiles = []
    for query, mechanism, sensitivity in queries:
        patterns = patterns_of(spec_file, query)
        key = (mechanism, query.claimed.epsilon, patterns, sensitivity)
        if key not in profile_of:
            profile_of[key] = profile_over(patterns, query, mechanism, sensitivity, step)
        profiles.append(profile_of[key])
    return Together(step, tuple(profiles))
