"""tuple: several queries over the same keys, answered jointly.

The group of a joint answer is the product of the parts' groups, and a difference is a vector. A
unit's profile is that of each part, one after another. A row is read if any part reads it, so the
bounds on a unit's rows and cells hold for the parts together, and a unit is charged once for all.

Global sensitivity: every vector of the parts' steps. Of a unit that comes in, each part moves
its own way only (a count up, never down), so under ``add_remove`` the vectors are those of the
steps and their negatives, fewer than all combinations of signs: ±(1, 1) but not ±(1, -1) for two
counts. What a unit brings to one part is not held against what it brings to another, for their
conditions are the curator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from pydantic import Field

from release.exact.domain import Codes, Group, JointDomain
from release.queries.base import (
    Prepared,
    Profiles,
    RowKind,
    SummedQuery,
    reached_by_pairs,
    row_sums,
)
from release.spec.declarations import Name, Relation
from release.spec.query import PlainQuery


class TupleQuery(SummedQuery):
    """Queries of the same table and keys, answered jointly with one mechanism."""

    can_be_part = False

    kind: Literal["tuple"] = Field(description="the kind of query")
    of: list[Name] = Field(min_length=2, max_length=8, description="the queries to answer jointly")
    _parts: tuple[PlainQuery, ...] = ()

    @property
    def for_units(self) -> bool:
        """Whether its parts answer for each unit by itself."""
        return all(part.for_units for part in self.parts)

    @property
    def answers(self) -> JointDomain:
        """The joint answers, numbered row-major over the codes of the parts."""
        return JointDomain(tuple(part.answers for part in self.parts))

    @property
    def columns(self) -> tuple[str, ...]:
        """One for each part."""
        return tuple(f"answer_{name}" for name in self.of)

    def domain_record(self) -> dict[str, Any]:
        """Those of the parts."""
        return {"tuple": [part.domain_record() for part in self.parts]}

    def sums(self) -> Joint:
        """The ways of the parts, side by side."""
        return Joint(tuple(row_sums(part) for part in self.parts), self.answers.group)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Those of ``of``."""
        return tuple(self.of)

    @property
    def parts(self) -> tuple[PlainQuery, ...]:
        """The queries that ``of`` names, once :func:`release.spec.tuples.with_parts` has run."""
        return self._parts

    def with_parts(self, parts: tuple[PlainQuery, ...]) -> TupleQuery:
        """A copy of the query that holds its parts."""
        query = self.model_copy()
        query._parts = parts
        return query


@dataclass(frozen=True)
class Joint:
    """The joint answer of several kinds in the product ``group``."""

    kinds: tuple[RowKind, ...]
    group: Group

    @property
    def unit_sql(self) -> str:
        """As the part says that the item belongs to."""
        whens = [
            f'WHEN min("#item") < {stop} THEN {kind.unit_sql}'
            for kind, stop in zip(self.kinds, self.first_items[1:], strict=True)
        ]
        return f"CASE {' '.join(whens)} END"

    @cached_property
    def first_items(self) -> tuple[int, ...]:
        """The number of each part's first item, and of all items."""
        return tuple(accumulate((kind.items for kind in self.kinds), initial=0))

    @property
    def items(self) -> int:
        """Those of the parts."""
        return self.first_items[-1]

    @property
    def width(self) -> int:
        """That of the parts together."""
        return self._places[-1]

    @cached_property
    def _places(self) -> tuple[int, ...]:
        return tuple(accumulate((kind.width for kind in self.kinds), initial=0))

    def _split(self, profiles: Profiles) -> Iterator[tuple[RowKind, Profiles]]:
        """Each part with its columns."""
        for kind, start, stop in zip(self.kinds, self._places, self._places[1:], strict=False):
            yield kind, profiles[..., start:stop]

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """Each part fills its own columns."""
        starts = zip(self.first_items, self.first_items[1:], strict=False)
        for (kind, own), (start, stop) in zip(self._split(profiles), starts, strict=True):
            here = (item >= start) & (item < stop)
            kind.fill(own, unit[here], item[here] - start, total[here], rows[here])

    def decide(self, sums: Profiles) -> Codes:
        """The number of the joint answer."""
        return self.group.elements([kind.decide(own) for kind, own in self._split(sums)])

    def prepared(self, entering: Profiles) -> Prepared:
        """The profiles, and what each part makes of its own."""
        return entering, [kind.prepared(own) for kind, own in self._split(entering)]

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By pairs, over the parts that some pair moves at all.

        Each part tells by its own algorithm whether it can move; one that cannot is left out, and
        what is alike without it is tried once. Cost: the parts' own; then |leaving|·|entering| of
        the distinct profiles that are left, nothing where one part moves.
        """
        profiles, prepared = entering
        own = [
            kind.reached(part, out, into)
            for (kind, part), (_, out), into in zip(
                self._split(sums), self._split(leaving), prepared, strict=True
            )
        ]
        moving = [place for place, codes in enumerate(own) if codes.size > 1]
        if len(moving) > 1:
            rest = Joint(
                tuple(self.kinds[place] for place in moving),
                Group(tuple(self.group.moduli[place] for place in moving)),
            )
            columns = np.concatenate(
                [np.arange(self._places[place], self._places[place + 1]) for place in moving]
            )
            out, into = (np.unique(p[:, columns], axis=0) for p in (leaving, profiles))
            found = rest.group.coordinates(reached_by_pairs(rest, sums[columns], out, into))
            still = found[0].size
        else:
            found = [own[place] for place in moving]
            still = found[0].size if found else 1
        by_place = dict(zip(moving, found, strict=True))
        return self.group.elements(
            [by_place.get(place, np.repeat(codes, still)) for place, codes in enumerate(own)]
        )

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """For each profile that leaves, every vector of what its parts reach.

        What comes in is held to move the parts independently, which may be more than rows can do.
        """
        found = np.zeros(self.group.size, dtype=bool)
        for one in np.unique(leaving, axis=0):
            codes = [
                kind.reached_in_domain(part, out[None, :], rows)
                for (kind, part), (_, out) in zip(self._split(sums), self._split(one), strict=True)
            ]
            found[self._vectors(codes)] = True
            if found.all():
                break
        return np.flatnonzero(found)

    def steps(self, rows: int, relation: Relation) -> Codes:
        """Every vector of the parts' steps."""
        steps = [kind.steps(rows, relation) for kind in self.kinds]
        sizes = self.group.moduli
        return self._vectors([np.unique(s % m) for s, m in zip(steps, sizes, strict=True)])

    def _vectors(self, codes: list[Codes]) -> Codes:
        grid = np.meshgrid(*codes, indexing="ij")
        return self.group.elements([axis.reshape(-1) for axis in grid])
