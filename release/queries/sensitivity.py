"""Empirical sensitivity: every difference that a neighbor of this table makes in an answer.

No neighboring table is built. A neighbor changes the sums of a cell by what one unit had there
(-a) and what one unit has there in its stead (+b), and the answer is a function of the sums. So for
a cell all that matters is the distinct a of its units and the distinct b that a unit could bring.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from release.exact.domain import AnswerDomain, Codes, JointDomain, Topology
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
      takes over the fixed keys: sums - a + b.
    - ``add_remove``: any unit is removed, or a copy of any unit is added to any cell.
    - With ``replacement: domain`` what comes in is not a copy, but whatever the bounds allow.
    - ``attribute``: as if replaced by whatever the bounds allow.

    Cost: for each cell that of its kind, over the distinct profiles of its units and of all units;
    equal profiles of one free part are compared once.
    """
    privacy = spec_file.spec.privacy
    cells, kind, domain = contributed.cells, kind_of(query), query.answers
    group = domain.group
    rows = rows_read(spec_file.spec, query)
    add_remove = privacy.neighbors is Relation.ADD_REMOVE
    # A unit without rows both leaves and enters: it may stand in another table, or in none.
    nobody = np.zeros((1, kind.width), dtype=np.int64)
    nothing = kind.prepared(nobody)
    differences: set[int] = set()
    # What can enter is the same for all cells of a free part, and is prepared once for them.
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
            # A changed attribute can lead to other rows being read. Any replacement within the
            # bounds is the most that it can do.
            reached = [
                kind.reached_in_domain(sums, leaving, rows)
                if privacy.any_of_domain
                else kind.reached(sums, leaving, everyone)
            ]
            if add_remove:
                reached.append(kind.reached(sums, members, nothing))
            answer = kind.decide(sums[None, :])
            codes = np.concatenate(reached)
            # Where answers have an order, the step keeps its sign: modulo the size, one step down
            # would be many steps up.
            steps = answer - codes if domain.is_line else group.minus(answer, codes)
            differences.update(np.unique(steps).tolist())
    return seen_sensitivity(np.array(sorted(differences)), domain)


def seen_sensitivity(steps: Codes, domain: AnswerDomain | JointDomain) -> Sensitivity:
    """The sensitivity that ``steps`` make, with a least difference for each part that none moves.

    ``steps`` have a sign where the answers have an order, else they are numbers of elements. The
    least difference is ±1, and every difference of a nominal part.
    """
    # Without a least difference, an answer that no neighbor of this table changes would be
    # published without noise.
    if domain.is_line:
        observed = Sensitivity.on_line(domain.size, steps.tolist() if steps.any() else [1])
        # Always with 1: some answer may have no other at any of the observed distances.
        return replace(observed, distances=tuple(sorted({1, *(observed.distances or ())})))
    coordinates = np.stack(domain.group.coordinates(steps), axis=1)
    shifts = coordinates.tolist()
    for place, part in enumerate(domain.parts):
        if coordinates[:, place].any():
            continue
        last = part.size if part.topology is Topology.NOMINAL else 2
        least = np.zeros((last - 1, len(domain.parts)), dtype=np.int64)
        least[:, place] = np.arange(1, last)
        shifts += least.tolist()
    return Sensitivity.of(domain.group, map(tuple, shifts))
