"""value: each unit's own category, one answer a unit; the keys are the public list of units.

It is a mode over the one row that is read of a unit: the first, by the declared columns, whose
category is in the domain. A listed unit without such a row has the smallest code. Only attribute
neighbours make sense: who is listed is public, what each one's category is is not.

Differences, structural or seen: everything, for the category of a unit may be any other. The error
rate then gives k-ary randomised response.
"""

from __future__ import annotations

from dataclasses import dataclass

from release.queries.mode import Mode
from release.spec.model import ValueQuery


@dataclass(frozen=True)
class Value(Mode):
    """The own category of each unit."""

    query: ValueQuery
