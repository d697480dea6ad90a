"""The privacy profile of one unit's whole effect on a query: on all cells that it touches.

The cells of a query are answered independently. So a pattern of changes has the composition of its
cells' profiles, and the query has the largest of its patterns, loss by loss
(docs/design/mathematics.md, 2.30).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from release.budget.patterns import Pattern, patterns_of
from release.exact.composition.profile import Profile, largest, profile_of_distribution
from release.exact.composition.together import together
from release.exact.mechanism import Mechanism
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import StatisticMechanism
from release.spec.load import SpecFile
from release.spec.query import Query

PARTS = 64
"""Into how many steps a profile divides the ε of one cell, where no other grid is asked for."""


def own_step(query: Query) -> Fraction:
    """The step of a profile that is not composed with others: ε of one cell over :data:`PARTS`."""
    return (query.promised.epsilon or Fraction(1)) / PARTS


@dataclass(frozen=True)
class QueryProfile:
    """A profile, and the patterns of one unit that it was made of."""

    profile: Profile
    patterns: tuple[Pattern, ...]


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
    return profile_with_patterns(spec_file, query, mechanism, sensitivity, step).profile


def profile_with_patterns(
    spec_file: SpecFile,
    query: Query,
    mechanism: Mechanism | StatisticMechanism,
    sensitivity: Sensitivity | None,
    step: Fraction,
) -> QueryProfile:
    """As :func:`query_profile`, with the patterns."""
    patterns = patterns_of(spec_file, query)
    cells = {}
    for difference in sorted({difference for pattern in patterns for difference in pattern}):
        if isinstance(mechanism, StatisticMechanism):
            cells[difference] = mechanism.profile(query.promised.epsilon, step)
        elif sensitivity is None:
            raise TypeError(f"{query.name} has noise on its answer and needs a sensitivity")
        else:
            cells[difference] = mechanism.profile(_within(sensitivity, difference), step)
    return QueryProfile(profile_of_patterns(cells, patterns), patterns)


def profile_of_patterns(cells: Mapping[int, Profile], patterns: Sequence[Pattern]) -> Profile:
    """Return the largest profile of the patterns, each the composition of its cells.

    Args:
        cells: the profile of one cell for each difference, all on one grid.
        patterns: one or more, none empty.
    """
    distributions = {number: profile.distribution() for number, profile in cells.items()}
    profiles = []
    for pattern in patterns:
        if len(pattern) == 1:
            profiles.append(cells[pattern[0]])
            continue
        times = sorted(Counter(pattern).items())
        whole = together((distributions[number], count) for number, count in times)
        profiles.append(profile_of_distribution(whole, cells[pattern[0]].step))
    return largest(profiles).shortened()


def _within(sensitivity: Sensitivity, difference: int) -> Sensitivity:
    """The differences up to ``difference`` codes; all where answers have no order.

    Where noise has several peaks, a smaller difference can reveal more than a larger one.
    """
    if sensitivity.apart is None:
        return sensitivity
    nearer = [distance for distance in sensitivity.apart if distance <= difference]
    if len(nearer) == len(sensitivity.apart):
        return sensitivity
    return Sensitivity.on_line(sensitivity.group.moduli[0], nearer)


def profiles_together(
    spec_file: SpecFile,
    made: Iterable[tuple[Query, Mechanism | StatisticMechanism, Sensitivity | None]],
) -> Together:
    """The profiles of queries with public mechanisms, on the grid of the release.

    Args:
        spec_file: the spec, with its key sets; every query has a guarantee.
        made: each query with its mechanism, and the sensitivity that it is proved for.
    """
    step = release_step(spec_file)
    # Queries often share a mechanism; its profile is found once for each set of patterns.
    known: dict[object, Profile] = {}
    profiles = []
    for query, mechanism, sensitivity in made:
        patterns = patterns_of(spec_file, query)
        key = (id(mechanism), patterns, sensitivity)
        if key not in known:
            known[key] = profile_over(patterns, query, mechanism, sensitivity, step)
        profiles.append(known[key])
    return Together(step, tuple(profiles))
