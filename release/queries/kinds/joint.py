"""tuple: several queries over the same keys, answered jointly.

The group of a joint answer is the product of the parts' groups, and a difference is a vector. A
unit's profile holds those of the parts, one after another. A row is read if any part reads it, so
the bounds on a unit's rows and cells hold for the parts together, and a unit is charged once.

Global sensitivity: every vector of the parts' steps. A unit that comes in moves each part in that
part's direction only (a count up, never down). So under ``add_remove`` the vectors are those of the
steps and their negatives, and not all combinations of signs: ±(1, 1) but not ±(1, -1) for two
counts. The conditions of the parts are the curator's, so no contribution to one part is taken to
exclude a contribution to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from release.exact.domain import Codes, Group, JointDomain
from release.queries.base import Prepared, Profiles, RowKind, SummedQuery, row_sums
from release.queries.reached import reached_by_pairs
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
        return tuple(map("answer_{}".format, self.of))

    def domain_record(self) -> dict[str, Any]:
        """Those of the parts."""
        return {"tuple": [part.domain_record() for part in self.parts]}

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {"of": list(self.of)}

    def sums(self) -> Joint:
        """The sums of the parts, side by side."""
        return Joint(tuple(map(row_sums, self.parts)), self.answers.group)

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
        # A private attribute: the parts are no field, and stay out of the published spec.
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
        """The aggregate of the part that the item belongs to."""
        # ``min``, because an aggregate may name no plain column; the item of a group is one.
        cases = ""
        for kind, stop in zip(self.kinds, self.first_items[1:], strict=True):
            cases += f'WHEN min("#item") < {stop} THEN {kind.unit_sql} '
        return f"CASE {cases}END"

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
        for kind, (start, stop) in zip(self.kinds, pairwise(self._places), strict=True):
            yield kind, profiles[..., start:stop]

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """Each part fills its own columns."""
        items = pairwise(self.first_items)
        for (kind, own), (start, stop) in zip(self._split(profiles), items, strict=True):
            here = (item >= start) & (item < stop)
            kind.fill(own, unit[here], item[here] - start, total[here], rows[here])

    def decide(self, sums: Profiles) -> Codes:
        """The number of the joint answer."""
        return self.group.elements([kind.decide(own) for kind, own in self._split(sums)])

    def prepared(self, entering: Profiles) -> Prepared:
        """The profiles, and what each part prepares from its own."""
        return entering, [kind.prepared(own) for kind, own in self._split(entering)]

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By pairs, over the parts that some pair moves at all.

        Cost: the parts' own; then |leaving|·|entering| of the profiles that still differ in the
        parts that move, nothing where one part moves.
        """
        profiles, prepared = entering
        codes = []
        split = zip(self._split(sums), self._split(leaving), prepared, strict=True)
        for (kind, own_sums), (_, own_leaving), own_entering in split:
            codes.append(kind.reached(own_sums, own_leaving, own_entering))
        # The parts' own algorithms avoid pairs, but do not say which codes occur together.
        moves = np.array(list(map(len, codes))) > 1
        if moves.sum() > 1:
            together = self._reached_together(moves, sums, leaving, profiles)
            for place, moved in zip(np.flatnonzero(moves), together, strict=True):
                codes[place] = moved
        # A part that does not move has one code, which stands beside every code of the others.
        return self.group.elements(np.broadcast_arrays(*codes))

    def _reached_together(
        self, moves: NDArray[np.bool_], sums: Codes, leaving: Profiles, entering: Profiles
    ) -> list[Codes]:
        """The joint codes of the parts that ``moves`` marks, with an array for each part."""
        kinds = tuple(compress(self.kinds, moves))
        moving = Joint(kinds, Group(tuple(compress(self.group.moduli, moves))))
        columns = np.repeat(moves, np.diff(self._places))
        # Profiles that differ only in the other parts have become equal, and are tried once.
        out, into = np.unique(leaving[:, columns], axis=0), np.unique(entering[:, columns], axis=0)
        return moving.group.coordinates(reached_by_pairs(moving, sums[columns], out, into))

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """For each profile that leaves, every vector of what its parts reach."""
        # What comes in is taken to move the parts independently. That may be more than rows can do:
        # the sensitivity may be too large, never too small.
        is_reached = np.zeros(self.group.size, dtype=bool)
        for profile in np.unique(leaving, axis=0):
            codes = []
            split = zip(self._split(sums), self._split(profile), strict=True)
            for (kind, own_sums), (_, own_leaving) in split:
                codes.append(kind.reached_in_domain(own_sums, own_leaving[None, :], rows))
            is_reached[self._vectors(codes)] = True
            if is_reached.all():
                break
        return np.flatnonzero(is_reached)

    def steps(self, rows: int, relation: Relation) -> Codes:
        """Every vector of the parts' steps."""
        steps = []
        for kind, modulus in zip(self.kinds, self.group.moduli, strict=True):
            steps.append(np.unique(kind.steps(rows, relation) % modulus))
        return self._vectors(steps)

    def _vectors(self, codes: list[Codes]) -> Codes:
        return self.group.elements(np.meshgrid(*codes, indexing="ij")).reshape(-1)
