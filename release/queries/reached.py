"""The codes that neighbors of a cell's sums reach: the common forms of :meth:`Kind.reached`."""

from __future__ import annotations

import numpy as np

from release.errors import DataError
from release.exact.domain import Codes
from release.queries.base import Kind, Profiles

_PAIRS_AT_ONCE = 2**22

_MOST_PAIRS = 2**34
"""The most integers compared for one cell: some minutes of work."""


def reached_by_pairs(kind: Kind, sums: Codes, leaving: Profiles, entering: Profiles) -> Codes:
    """:meth:`Kind.reached` by trying all pairs, in blocks. Cost: |leaving|·|entering|·width.

    Raises:
        DataError: there are too many pairs.
    """
    # A refusal depends on the table. Only empirical sensitivity comes here, whose guarantee is
    # instance-specific already.
    if len(leaving) * entering.size > _MOST_PAIRS:
        raise DataError(
            "sensitivity: too many units that differ have to be compared with each other; write "
            "sensitivity: global, or replacement: domain in privacy"
        )
    codes: set[int] = set()
    # Blocks bound the memory: all pairs at once would be |leaving|·|entering|·width integers.
    step = max(1, _PAIRS_AT_ONCE // entering.size)
    for start in range(0, len(leaving), step):
        block = sums - leaving[start : start + step]
        changed = (block[:, None, :] + entering[None, :, :]).reshape(-1, entering.shape[1])
        codes.update(np.unique(kind.decide(changed)).tolist())
    return np.array(sorted(codes), dtype=np.int64)


def reached_by_order(edges: Codes, total: int, leaving: Codes, entering: Codes) -> Codes:
    """The codes of total - a + b, where code ≥ k exactly when the sum is at least ``edges[k-1]``.

    ``entering`` is ascending.

    For each a, some b lands in level k exactly if more b lie below the next edge than below this
    one: a search among the sorted b for each edge within reach, without forming pairs.
    Cost: |leaving|·(edges within reach)·log|entering|.
    """
    leaving = np.unique(leaving)
    # No pair lands outside the levels of the two extreme pairs, so other edges need no search.
    least = int(np.searchsorted(edges, total - leaving[-1] + entering[0], side="right"))
    most = int(np.searchsorted(edges, total - leaving[0] + entering[-1], side="right"))
    is_reached = np.zeros(most - least + 1, dtype=bool)
    step = max(1, _PAIRS_AT_ONCE // (most - least + 2))
    for start in range(0, leaving.size, step):
        rest = total - leaving[start : start + step, None]
        # No b lies below the level in front of the first edge, all lie below the end of the last.
        below = np.zeros((rest.size, is_reached.size + 1), dtype=np.int64)
        below[:, 1:-1] = np.searchsorted(entering, edges[None, least:most] - rest)
        below[:, -1] = entering.size
        is_reached |= (below[:, 1:] > below[:, :-1]).any(axis=0)
        if is_reached.all():
            break
    return np.flatnonzero(is_reached) + least


def between(lowest: Codes, highest: Codes, size: int) -> Codes:
    """The codes that lie between the two of some pair, both included. Cost: pairs + ``size``."""
    # A running sum counts the intervals that are open at each code. ``add.at``, because plain
    # indexing would count an end that repeats only once.
    ends = np.zeros(size + 1, dtype=np.int64)
    np.add.at(ends, lowest, 1)
    np.add.at(ends, highest + 1, -1)
    return np.flatnonzero(np.cumsum(ends[:-1]) > 0)


def steps_between(down: int, up: int, size: int) -> Codes:
    """The steps -``down`` .. ``up``, cut to the distances within a domain of ``size`` codes."""
    return np.arange(-min(down, size - 1), min(up, size - 1) + 1, dtype=np.int64)
