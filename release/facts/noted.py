"""What ``check`` begins with, of a run that has answered its queries. Confidential throughout."""

from __future__ import annotations

from collections.abc import Sequence

from release.at_work import AtWork
from release.facts.left_out import Reason, left_out
from release.facts.queries import query_facts
from release.facts.values import table_facts
from release.queries.engines.base import HereTables
from release.spec.load import SpecFile
from release.tabulations.facts import tabulation_facts


def reasons_of_run(tables: HereTables, spec_file: SpecFile, runs: Sequence[AtWork]) -> list[Reason]:
    """What the answers of a run leave out of its tables, as ``check`` says it of the same spec.

    Raises:
        ReleaseError: it cannot be counted.
    """
    by_name = {run.query.name: run for run in runs}
    of_tables = [table_facts(tables, spec_file, name) for name in spec_file.spec.tables]
    of_queries = []
    for query in spec_file.spec.released:
        of_queries.append(query_facts(tables, spec_file, query, by_name[query.name]))
    for opened in spec_file.tabulations:
        of_queries.append(tabulation_facts(tables, spec_file, opened, None))
    return left_out(tuple(of_tables), tuple(of_queries))
