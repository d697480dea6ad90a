"""How far one unit can move the answers: seen in the table, or told by the declaration.

The neighbours of a table are never made. A neighbour changes the sums of a cell by what one unit
had there (-a) and what one unit has there in its stead (+b), and the answer is a function of the
sums. So per cell all that matters is the distinct a of its units and the distinct b that a unit
could bring.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from release.answers import AnswerDomain, Topology
from release.guarantee import Differences
from release.queries import kind_of
from release.queries.contributions import Contributions
from release.queries.kind import Prepared, Profiles
from release.reading import SpecFile
from release.spec import Relation, answer_domain


def empirical_differences(
    contributed: Contributions, spec_file: SpecFile, index: int
) -> Differences:
    """All differences that a neighbour of this very table makes, over all cells. Confidential.

    - ``replace_one``: any unit of a cell is replaced by a copy of any unit of the table, which
      takes over the fixed keys: sums - a + b. A unit without rows is among both: it may stand in
      another table, or nowhere.
    - ``add_remove``: any unit is removed, or a copy of any unit is added to any cell.

    Cost: for each cell what its kind says, over the distinct profiles of its units and of all
    units; equal profiles of one free part are compared once.
    """
    spec, query = spec_file.spec, spec_file.spec.queries[index]
    cells, kind = contributed.cells, kind_of(query)
    domain = answer_domain(query.domain)
    add_remove = spec.privacy.neighbours is Relation.ADD_REMOVE
    nobody = np.zeros((1, kind.width), dtype=np.int64)
    nothing = kind.prepared(nobody)
    found: set[int] = set()
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
            answer = int(kind.decide(sums[None, :])[0])
            pairs: list[tuple[Profiles, Prepared]] = (
                [(members, nothing), (nobody, everyone)] if add_remove else [(members, everyone)]
            )
            for leaving, entering in pairs:
                reached = kind.reached(sums, leaving, entering)
                found.update(((answer - reached) % domain.size).tolist())
    return seen_differences(found, domain)


def seen_differences(found: AbstractSet[int], domain: AnswerDomain) -> Differences:
    """The differences of codes that were seen, or what stands in where none was.

    ±1 (nominal: everything) stands in for the unseen, because an answer without noise is a promise
    kept by luck.
    """
    if found - {0}:
        return Differences.of(domain.group, ((shift,) for shift in found))
    if domain.topology is Topology.NOMINAL:
        return Differences.everything(domain.group)
    return Differences.of(domain.group, [(1,)])
