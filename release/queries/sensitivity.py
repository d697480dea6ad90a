"""How far one unit can move the answers: seen in the table, or told by the declaration.

The neighbors of a table are never made. A neighbor changes the sums of a cell by what one unit
had there (-a) and what one unit has there in its stead (+b), and the answer is a function of the
sums. So per cell all that matters is the distinct a of its units and the distinct b that a unit
could bring.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from release.exact.domain import AnswerDomain, Codes, JointDomain, Shift, Topology
from release.exact.sensitivity import Sensitivity
from release.queries.contributions import Contributions
from release.queries.registry import kind_of, rows_read
from release.spec.declarations import Relation
from release.spec.load import SpecFile
from release.spec.query import Query


def empirical_sensitivity(
    contributed: Contributions, spec_file: SpecFile, query: Query
) -> Sensitivity:
    """All differences that a neighbor of this very table makes, over all cells. Confidential.

    - ``replace_one``: any unit of a cell is replaced by a copy of any unit of the table, which
      takes over the fixed keys: sums - a + b. A unit without rows is among both: it may stand in
      another table, or nowhere.
    - ``add_remove``: any unit is removed, or a copy of any unit is added to any cell.
    - With ``replacement: domain`` what comes in is not a copy, but whatever the bounds allow.
    - ``attribute``: as if replaced by whatever the bounds allow; a changed value can lead to other
      rows being read, so this is what it can do at most.

    Cost: for each cell what its kind says, over the distinct profiles of its units and of all
    units; equal profiles of one free part are compared once.
    """
    privacy = spec_file.spec.privacy
    cells, kind, domain = contributed.cells, kind_of(query), query.answers
    group = domain.group
    rows = rows_read(spec_file.spec, query)
    add_remove = privacy.neighbors is Relation.ADD_REMOVE
    nobody = np.zeros((1, kind.width), dtype=np.int64)
    nothing = kind.prepared(nobody)
    seen: set[int] = set()
    places = np.argsort(cells.free, kind="stable")
    bounds = np.searchsorted(cells.free[places], np.arange(len(cells.free_parts) + 1))
    for free in range(len(cells.free_parts)):
        start, stop = np.searchsorted(contributed.free, [free, free + 1]).tolist()
        profiles = contributed.profiles.dense(kind, start, stop)
        homes = contributed.home[start:stop]
        everyone = kind.prepared(np.unique(np.concatenate([profiles, nobody]), axis=0))
        for cell in places[bounds[free] : bounds[free + 1]].tolist():
            sums = contributed.sums.dense(kind, cell, cell + 1)[0]
            first, last = np.searchsorted(homes, [cells.fixed[cell], cells.fixed[cell] + 1])
            members = np.concatenate([profiles[first:last], nobody])
            leaving = nobody if add_remove else members
            reached = [
                kind.reached_in_domain(sums, leaving, rows)
                if privacy.any_of_domain
                else kind.reached(sums, leaving, everyone)
            ]
            if add_remove:
                reached.append(kind.reached(sums, members, nothing))
            answer = kind.decide(sums[None, :])
            found = np.concatenate(reached)
            steps = answer - found if domain.is_line else group.minus(answer, found)
            seen.update(np.unique(steps).tolist())
    return seen_sensitivity(np.array(sorted(seen)), domain)


def seen_sensitivity(found: Codes, domain: AnswerDomain | JointDomain) -> Sensitivity:
    """The differences that were seen, and what stands in for each part that none moves.

    ``found`` are steps with their sign where the answers have an order, else numbers of elements.
    ±1 (nominal: everything) stands in for the unseen, because an answer without noise is a promise
    kept by luck.
    """
    if domain.is_line:
        seen = Sensitivity.on_line(domain.size, found.tolist() if found.any() else [1])
        # On the line an answer without a neighbor would be published without noise.
        return replace(seen, apart=tuple(sorted({1, *(seen.apart or ())})))
    coordinates = [c.tolist() for c in domain.group.coordinates(found)]
    shifts: list[Shift] = list(zip(*coordinates, strict=True))
    for place, part in enumerate(domain.parts):
        if not any(coordinates[place]):
            last = part.size if part.topology is Topology.NOMINAL else 2
            shifts += [
                tuple(step if other == place else 0 for other in range(len(domain.parts)))
                for step in range(1, last)
            ]
    return Sensitivity.of(domain.group, shifts)
