"""per_unit: each unit's own category; the keys are the public list of units.

It is a mode over the one row that is read of a unit: the first, by the declared columns, whose
category is in the domain. A listed unit without such a row has the smallest code. Only attribute
neighbors make sense: who is listed is public, what each one's category is is not.

Sensitivity, global or seen: everything, for the category of a unit may be any other. The error
rate then gives k-ary randomised response.
"""

from __future__ import annotations

from dataclasses import dataclass

from release.queries.mode import Mode
from release.spec.model import PerUnitQuery


@dataclass(frozen=True)
class PerUnit(Mode):
    """The own category of each unit."""

    query: PerUnitQuery
