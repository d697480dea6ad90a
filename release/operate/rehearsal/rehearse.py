"""``check``: walks the street to the charge, and goes on where a run would end.

A run ends with its first refusal; a check collects all of them, beside what it has found in the
tables. Nothing is charged, drawn or published, and no mechanism that depends on a table enters the
cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from release.bundle.cautions import cautions
from release.facts.models import QueryFacts, TableFacts
from release.facts.queries import query_facts
from release.facts.values import table_facts
from release.job import Job, Options, Stage, walk
from release.noise.cache import DesignCache
from release.noise.design import GAP
from release.noise.unseen import Unseen
from release.operate.rehearsal.folder import Destination
from release.operate.rehearsal.text import Rehearsal
from release.queries.engines.base import HereTables
from release.spec.load import SpecFile
from release.street import TO_THE_CHARGE, load
from release.tabulations.facts import tabulation_facts

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
    options = Options(accept_gap=gap, cache=cache, frames=frames or {}, is_audited=False)
    facts: list[TableFacts] = []
    queries: list[QueryFacts] = []
    with Job(options, collects=True) as job:
        job.take(Unseen.of(spec_file))
        walk(TO_THE_CHARGE, job, _performing(into))
        tables = job.tables if job.has("tables") else None
        if isinstance(tables, HereTables):
            with job.refusing():
                facts += [table_facts(tables, spec_file, name) for name in spec_file.spec.tables]
                queries += _facts(tables, job)
                tables.check_unchanged()
    return Rehearsal(tuple(facts), tuple(queries), tuple(job.refusals), _cautions(job))


def _performing(into: Destination | None) -> Callable[[Stage, Job], None]:
    """Performs a stage; of the output folder, if any, what it says beforehand is enough."""

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "load":
            # What is found in tables is counted here, whatever the engine of a run.
            load(job, HereTables)
        elif stage.name == "open":
            if into is not None:
                _look_into(into, job)
        else:
            stage.does(job)

    return perform


def _look_into(into: Destination, job: Job) -> None:
    release_id = job.spec_file.spec.release.id
    job.account = into.account(release_id)
    for refusal in into.refusals(release_id):
        with job.refusing():
            raise refusal


def _cautions(job: Job) -> tuple[str, ...]:
    """As ``plan`` and ``run`` say them; of the whole budget where no charge could be found."""
    charged = job.price if job.has("price") else job.spec_file.spec.budget
    return cautions(job.spec_file.spec, charged.epsilon, charged.delta)


def _facts(tables: HereTables, job: Job) -> Iterator[QueryFacts]:
    """What each query and each tabulation finds, in the order of the spec."""
    answered = {run.query.name: run for run in job.runs if run.answered is not None}
    for query in job.spec_file.spec.released:
        facts = QueryFacts(query.name)
        with job.refusing():
            facts = query_facts(tables, job.spec_file, query, answered.get(query.name))
        yield facts
    for opened in job.spec_file.tabulations:
        facts = QueryFacts(opened.name)
        chosen = job.unseen if opened.name in job.unseen.choices else None
        with job.refusing():
            facts = tabulation_facts(tables, job.spec_file, opened, chosen)
        yield facts
