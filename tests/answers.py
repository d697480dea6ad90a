"""The stages that read tables, by themselves."""

from __future__ import annotations

from release.at_work import AtWork
from release.job import Job, Options, walk
from release.noise.unseen import Unseen
from release.queries.engines.base import Loaded
from release.spec.load import SpecFile
from release.street import between, open_tables
from release.tables.duckdb import Engine


def load(spec_file: SpecFile, engine: Engine | None = None) -> Loaded:
    """The tables of a spec; to be closed by the caller."""
    return open_tables(spec_file, engine)


def answer(tables: Loaded, spec_file: SpecFile) -> tuple[AtWork, ...]:
    """The queries with their true answers."""
    with Job(Options()) as job:
        job.take(Unseen.of(spec_file))
        job.tables = tables
        walk(between("answer", "answer"), job)
        return job.runs


def moved(runs: tuple[AtWork, ...], spec_file: SpecFile) -> tuple[AtWork, ...]:
    """The queries with how far neighbors move their answers."""
    with Job(Options()) as job:
        job.take(Unseen.of(spec_file))
        job.runs = runs
        walk(between("move", "move"), job)
        return job.runs
