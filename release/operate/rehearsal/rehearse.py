"""Does everything that a run does before its charge, and goes on where a run would end.

A run ends with its first refusal; a rehearsal collects all of them, beside what it has found in
the tables. Nothing is charged, drawn or published, and no mechanism that depends on a table enters
the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from release.at_work import Answered, QueryRun, reached
from release.budget.cost import Charges
from release.bundle.cautions import cautions
from release.errors import ReleaseError
from release.facts.models import QueryFacts, TableFacts
from release.facts.queries import query_facts
from release.facts.tabulations import tabulation_facts
from release.facts.values import table_facts
from release.noise.cache import DesignCache
from release.noise.design import GAP
from release.noise.refusal import Made
from release.noise.stage import design_all
from release.noise.unseen import Unseen, find_unseen
from release.operate.rehearsal.folder import Destination
from release.operate.rehearsal.text import Rehearsal
from release.pipeline import (
    Options,
    answer_query,
    charges_of,
    decide,
    decide_found,
    design_seen,
    moved,
)
from release.queries.engines.base import HereTables
from release.queries.tabulations.answers import true_codes
from release.queries.tabulations.table_count import TableCount
from release.rehearsal import rehearse
from release.spec.load import SpecFile
from release.spec.query import Query
from release.spec.refusals.unfinished import check_finished
from release.spec.tabulations.opened import OpenTabulation
from release.tables.frames import with_frames

if TYPE_CHECKING:
    import pandas as pd


def check_run(
    spec_file: SpecFile,
    cache: DesignCache | None = None,
    gap: Fraction = GAP,
    into: Destination | None = None,
    frames: Mapping[str, pd.DataFrame] | None = None,
) -> Rehearsal:
    """What a run of the spec would find in its tables, and why it would be refused. Confidential.

    Where the tables cannot be opened, that is a refusal, and nothing of them is found. ``into`` is
    the folder that the run would publish in; without it no ledger is looked at. ``frames`` are read
    in place of the files of their tables, as a run reads them.
    """
    rehearsing = _Rehearsing(spec_file, cache, gap, into)
    if into is not None:
        rehearsing.refusals += into.refusals(spec_file.spec.release.id)
    rehearsing.plan()
    facts: list[TableFacts] = []
    queries: list[QueryFacts] = []
    with (
        TemporaryDirectory() as folder,
        rehearsing.noted(),
        with_frames(spec_file, frames or {}, lambda: Path(folder)) as declared,
        HereTables(declared) as tables,
    ):
        facts += [table_facts(tables, spec_file, name) for name in spec_file.spec.tables]
        queries += rehearsing.queries(tables)
        queries += rehearsing.tabulations(tables)
        rehearsing.charge()
        tables.check_unchanged()
    return Rehearsal(tuple(facts), tuple(queries), tuple(rehearsing.refusals), rehearsing.cautions)


@dataclass(eq=False, repr=False)
class _Rehearsing:
    """A rehearsal at work: the stages of a run, each of which notes its refusals."""

    spec_file: SpecFile
    cache: DesignCache | None
    gap: Fraction
    into: Destination | None = None
    refusals: list[ReleaseError] = field(default_factory=list)
    unseen: Unseen | None = None
    charged: Charges | None = None
    _runs: list[QueryRun] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A refusal is noted, once, and does not end the rehearsal."""
        try:
            yield
        except ReleaseError as error:
            if str(error) not in map(str, self.refusals):
                self.refusals.append(error)

    def plan(self) -> None:
        """What a run decides before it opens a table."""
        with self.noted():
            check_finished(self.spec_file.spec)
        with self.noted():
            self.unseen = find_unseen(self.spec_file, self.cache, self.gap)
            self.spec_file = self.unseen.spec_file
        with self.noted():
            if self.unseen is not None:
                self.unseen, self.charged = decide_found(self.unseen, self._options)
                with TemporaryDirectory() as folder:
                    again = partial(decide, options=self._options)
                    rehearse(self.unseen, self.charged, again, Path(folder))

    @property
    def cautions(self) -> tuple[str, ...]:
        """As ``plan`` and ``run`` say them; of the whole budget where no charge could be found."""
        spec, charged = self.spec_file.spec, self.charged
        if charged is None:
            return cautions(spec, spec.budget.epsilon, spec.budget.delta)
        return cautions(spec, charged.epsilon, charged.delta)

    @property
    def _options(self) -> Options:
        return Options(accept_gap=self.gap, cache=self.cache)

    def queries(self, tables: HereTables) -> Iterator[QueryFacts]:
        """What each query of the spec finds, in its order."""
        for query in self.spec_file.spec.released:
            run = None
            with self.noted():
                run = self._designed(tables, query)
            facts = QueryFacts(query.name)
            with self.noted():
                facts = query_facts(tables, self.spec_file, query, run)
            yield facts

    def _designed(self, tables: HereTables, query: Query) -> QueryRun:
        """The query with its mechanism; with its answers alone where there is none."""
        run = moved(answer_query(tables, self.spec_file, query), self.spec_file)
        with self.noted():
            if query.guarantee is None:
                # Why nothing was found for the whole budget is noted already.
                return run
            run = replace(run, design=self._made(query, run))
            self._runs.append(run)
        return run

    def _made(self, query: Query, run: QueryRun) -> Made:
        unseen = self.unseen
        if unseen is not None and (
            query.name in unseen.designs or query.name in unseen.standing_in
        ):
            (designed,) = design_seen((run,), unseen, self._options)
            return designed.made
        # Why the release as a whole has none is noted already: this one query by itself may.
        moved_by = run.statistic or reached(run.sensitivity)
        return design_all([(query, moved_by)], self.spec_file, self.cache, self.gap)[query.name]

    def tabulations(self, tables: HereTables) -> Iterator[QueryFacts]:
        """What each tabulation finds, in the order of the spec."""
        for opened in self.spec_file.tabulations:
            facts = QueryFacts(opened.name)
            with self.noted():
                facts = tabulation_facts(tables, self.spec_file, opened, self.unseen)
            with self.noted():
                self._measure(tables, opened)
            yield facts

    def _measure(self, tables: HereTables, opened: OpenTabulation) -> None:
        """Add the runs of what a tabulation measures, which the budget pays for."""
        own = []
        for query in self.spec_file.spec.measured:
            if isinstance(query, TableCount) and query.tabulation == opened.name:
                own.append(query)
        codes = true_codes(tables, opened, own)
        for query in own:
            run = moved(QueryRun(query, Answered(None, codes[query.name])), self.spec_file)
            self._runs.append(replace(run, design=reached(self.unseen).designs[query.name]))

    def charge(self) -> None:
        """What a run would charge, where all of its mechanisms are known."""
        charged = self.spec_file.spec.charged
        by_name = {run.query.name: run for run in self._runs}
        if all(query.name in by_name for query in charged):
            with self.noted():
                # In the order of the spec, in which the profiles are composed.
                runs, into = tuple(by_name[query.name] for query in charged), self.into
                needs_profile = into is not None and into.needs_profile(
                    self.spec_file.spec.budget.scope
                )
                _, reserved = charges_of(self.spec_file, runs, needs_profile=needs_profile)
                if into is not None:
                    into.check_charge(self.spec_file, reserved)
