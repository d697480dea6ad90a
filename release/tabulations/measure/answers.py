"""The true answers of the tables that a tabulation measures, as codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from release.exact.domain import Codes
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.structure import Margin
from release.tabulations.estimate.whole import finest
from release.tabulations.measure.table_count import CENTER, TableCount
from release.tabulations.spec.opened import OpenTabulation

if TYPE_CHECKING:
    from release.queries.engines.base import Loaded


def true_codes(
    tables: Loaded, opened: OpenTabulation, queries: Sequence[TableCount]
) -> dict[str, Codes]:
    """The code of each cell of each measured table, by the table's name. Confidential.

    Every level is counted once, at cells that refine all that is measured there.
    """
    measured = {query.name: opened.table(query.level, query.margin) for query in queries}
    margins: dict[int, list[Margin]] = defaultdict(list)
    for table in measured.values():
        margins[table.level].append(table.margin)
    cells = {level: finest([own])[0] for level, own in margins.items()}
    counts = tables.counts(opened, cells)
    codes = {}
    for name, table in measured.items():
        own = coarsened(counts[table.level], cells[table.level], table.margin)
        codes[name] = own.reshape(-1) - CENTER
    return codes
