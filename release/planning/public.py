"""The public queries of a plan, and their privacy profiles on one grid.

Public are the queries whose mechanism follows from the spec. One whose mechanism depends on the
table has no profile (docs/design/mathematics.md, 2.19).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from release.budget.composed import Together
from release.budget.cost import Charge
from release.budget.patterns import patterns_of
from release.budget.profiles import query_profile
from release.exact.composition.profile import Profile
from release.exact.mechanism import Mechanism
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import StatisticMechanism
from release.spec.load import SpecFile
from release.spec.query import Query


@dataclass(frozen=True)
class Public:
    """A public query with its mechanism; ``sensitivity`` is None where noise is on a statistic."""

    query: Query
    mechanism: Mechanism | StatisticMechanism
    sensitivity: Sensitivity | None
    charge: Charge


def profiles_of(
    spec_file: SpecFile, public: Sequence[Public], step: Fraction
) -> tuple[Profile, ...]:
    """Return the profile of each query on the grid of ``step``; equal ones are computed once."""
    known: dict[object, Profile] = {}
    profiles = []
    for one in public:
        patterns = patterns_of(spec_file, one.query)
        key = (one.mechanism, one.sensitivity, patterns, one.query.promised.epsilon)
        if key not in known:
            made = query_profile(spec_file, one.query, one.mechanism, one.sensitivity, step)
            known[key] = made
        profiles.append(known[key])
    return tuple(profiles)


def together_of(spec_file: SpecFile, public: Sequence[Public], step: Fraction) -> Together | None:
    """Return all public queries together on the grid of ``step``; None where there are none."""
    return Together(step, profiles_of(spec_file, public, step)) if public else None
