"""A tabulation on the tables of a rehearsal. Confidential throughout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from release.exact.domain import Codes
from release.facts.cells import told_of_table
from release.facts.models import Cut, KeyFacts, QueryFacts, Told
from release.facts.values import key_facts
from release.noise.unseen import Unseen
from release.queries.engines.base import HereTables
from release.spec.load import SpecFile
from release.tables.duckdb import wide_table
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.structure import Margin
from release.tabulations.measure.measuring import condition_of
from release.tabulations.spec.opened import OpenTabulation
from release.tabulations.strategy.opened import margins_of_error, publication_of


def tabulation_facts(
    tables: HereTables, spec_file: SpecFile, opened: OpenTabulation, chosen: Unseen | None
) -> QueryFacts:
    """What a tabulation finds; ``chosen`` is None where nothing could be measured.

    Cost: a grouping for each attribute and the lowest level, and one pass for the counts.
    """
    declared = opened.declared
    condition = condition_of(tables, spec_file, opened)
    lowest = {opened.levels[-1]: opened.named.names[-1]}
    keys = []
    for column, own in (lowest | dict(opened.categories)).items():
        keys.append(_keys(tables, spec_file, opened, column, own, condition))
    total = f"SELECT count(*) AS n FROM {wide_table(declared.table)} AS rows WHERE {condition}"
    rows = int(tables.rows(total, declared.table).column("n")[0].as_py())
    cells = opened.refining([*opened.tables, *opened.facts])
    counts = tables.counts(opened, dict(enumerate(cells)))
    counted = int(counts[0].sum())
    told: tuple[Told, ...] = ()
    if chosen is not None:
        told = tuple(_told(spec_file, opened, chosen, counts, cells))
    uncounted = "are in no cell, or of a unit that counts already, and are left out"
    cuts = [Cut(uncounted, rows - counted), *_facts(opened, counts, cells)]
    return QueryFacts(
        opened.name,
        rows,
        keys=tuple(keys),
        cuts=tuple(cut for cut in cuts if cut.count),
        told=told,
    )


def _keys(
    tables: HereTables,
    spec_file: SpecFile,
    opened: OpenTabulation,
    column: str,
    own: Sequence[str],
    condition: str,
) -> KeyFacts:
    # As the counts name them: another tabulation may have other categories of the column.
    known = tables.put_keys(f"#{opened.name} {column}", own)
    return key_facts(tables, spec_file, opened.declared.table, column, own, known, condition)


def _told(
    spec_file: SpecFile,
    opened: OpenTabulation,
    chosen: Unseen,
    counts: dict[int, Codes],
    cells: Sequence[Margin],
) -> Iterator[Told]:
    publication = publication_of(opened, spec_file.spec.privacy.neighbors)
    margins = margins_of_error(opened, publication, chosen.choices[opened.name].best)
    units = opened.declared.units or "units"
    for table in opened.published:
        true = coarsened(counts[table.level], cells[table.level], table.margin)
        name = f"{opened.levels[table.level]} [{', '.join(table.names)}]"
        yield told_of_table(name, true, margins[table.table], units)


def _facts(
    opened: OpenTabulation, counts: dict[int, Codes], cells: Sequence[Margin]
) -> Iterator[Cut]:
    """How many declared numbers are not those of the table."""
    for (level, margin), declared in opened.facts.items():
        true = coarsened(counts[level], cells[level], margin)
        table = next(own for own in opened.declared_tables if own.table == (level, margin))
        wrong = int(np.count_nonzero(true != declared))
        of_table = f"{opened.levels[level]} [{', '.join(table.names)}]"
        yield Cut(f"of {of_table} are not those of the table", wrong, "declared numbers")
