"""The one-way street: spec → load → answer → sensitivity → design → charge → draw → publish.

Each stage is a plain function; :func:`run_release` strings them together through ``step``, which
calls a stage by default and is a Prefect task in :mod:`flows`. Confidential values exist between
*load* and *draw*, in the objects of this process only; their representations show nothing.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from release.budget.cost import Charges, charges
from release.budget.ledger import Spent, today
from release.bundle.publish import LEDGER, Publication, open_ledger
from release.bundle.write import About, Result, write_release
from release.errors import ReleaseError, SpecError
from release.exact.sampling import RandomBytes
from release.exact.sensitivity import Sensitivity
from release.noise.cache import DesignCache
from release.noise.design import GAP
from release.noise.families import AnyDesign
from release.noise.processes import FanOut
from release.noise.stage import design_all
from release.queries.read import read_spec
from release.queries.registry import sensitivity_without_data
from release.records.signing import read_key
from release.spec.load import SpecFile
from release.spec.model import Query, SqlQuery, answer_domain
from release.spec.periods import Period
from release.spec.unfinished import check_finished
from release.tables.frames import with_frames
from release.verification.provenance import Trust
from release.verification.verifier import Verdict, verify

if TYPE_CHECKING:
    import pandas as pd

    from release.exact.domain import Codes
    from release.queries.contributions import Contributions
    from release.queries.engines.base import Loaded
    from release.queries.statement import Rerun
    from release.tables.duckdb import Engine

T = TypeVar("T")


class Step(Protocol):
    """Runs one stage: ``step(name, function, *arguments)`` returns ``function(*arguments)``."""

    def __call__(self, name: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run the stage."""
        ...


def call(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """The plain step: a call."""
    return function(*arguments)


@dataclass(frozen=True, repr=False)
class Answered:
    """Confidential: what the units contribute to one query, and its true answer codes."""

    contributed: Contributions | Rerun
    codes: Codes

    def __repr__(self) -> str:
        return "Answered(confidential)"


@dataclass(frozen=True, repr=False)
class Noisy:
    """The noisy codes of every query: the first values that may leave."""

    codes: tuple[Codes, ...]


Watch: TypeAlias = Callable[[int, int, str], None]
"""Told of each query before a stage turns to it: how many are done, of how many, and its name."""


def unwatched(done: int, total: int, query: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Options:
    """How a release is run; nothing here changes what it promises.

    A law that some other could beat by more than the share ``accept_gap`` is refused. Laws that
    follow from the spec alone are kept in the ``cache``. ``engine`` bounds what DuckDB may use.
    ``watch`` is told of the queries within each stage. ``key`` signs, where there is a ledger.
    ``period`` is what a spec template is filled in with. ``fan_out`` is who designs.
    ``frames`` are read in place of the files that the spec names for these tables.
    """

    accept_gap: Fraction = GAP
    cache: DesignCache | None = None
    engine: Engine | None = None
    watch: Watch = unwatched
    key: Path | None = None
    period: Period | None = None
    fan_out: FanOut | None = None
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def _watched(spec_file: SpecFile, watch: Watch) -> Iterator[Query]:
    """The released queries, each after ``watch`` was told of it."""
    released = spec_file.spec.released
    for done, query in enumerate(released):
        watch(done, len(released), query.name)
        yield query


def run_release(
    spec_path: Path,
    out: Path,
    step: Step = call,
    *,
    published: datetime.date | None = None,
    test_source: RandomBytes | None = None,
    options: Options | None = None,
) -> Published:
    """Run a release from its spec; where it lies, and what the verifier says of it.

    ``published`` is today unless given. With ``test_source`` the noise comes from it instead of
    the operating system; such a run is marked TEST and :func:`release.verification.verifier.verify`
    refuses it.

    Raises:
        ReleaseError: refused; nothing was published and nothing is left behind.
    """
    chosen = options or Options()
    spec_file = step("spec", read_spec, spec_path, chosen.period)
    check_finished(spec_file.spec)
    kind: Literal["RELEASE", "TEST"] = "RELEASE" if test_source is None else "TEST"
    about = About(kind, published or today())
    with step("check", open_publication, out, spec_file, kind, chosen.key) as publication:
        public = publication.recovered
        if public is None:
            # Refused before any confidential value is read, and charged before any is drawn upon.
            charges(spec_file)
            frames_folder = partial(publication.scratch, "frames")
            with (
                with_frames(spec_file, chosen.frames, frames_folder) as declared,
                step("load", load, declared, chosen.engine, publication) as tables,
            ):
                answered = step("answer", answer, tables, spec_file, chosen.watch)
            sensitivity = step("sensitivity", find_sensitivity, answered, spec_file, chosen.watch)
            designs = step("design", design, sensitivity, spec_file, chosen)
            charged = step("charge", charge, publication, spec_file)
            source = test_source or os.urandom
            noisy = step("draw", draw, publication, answered, designs, source)
            del answered
            public = step(
                "publish", publish, publication, spec_file, designs, charged, noisy, about
            )
    auditor = auditor_bundle(public)
    verdict = step("verify", check_published, public, auditor, out) if kind == "RELEASE" else None
    return Published(public, auditor, verdict)


def open_publication(
    out: Path, spec_file: SpecFile, kind: Literal["RELEASE", "TEST"], key: Path | None
) -> Publication:
    """Begin a publication, or go on with one that was cut off; a TEST run leaves ledgers alone.

    Raises:
        ReleaseError: as :class:`release.bundle.publish.Publication`.
    """
    release_id = spec_file.spec.release.id
    if kind == "TEST":
        return Publication(out, release_id, None, "test")
    publication = Publication(
        out, release_id, open_ledger(out, None if key is None else read_key(key))
    )
    finished = publication.recovered
    if finished is not None and (finished / "spec.yaml").read_bytes() != spec_file.text:
        with publication:
            raise SpecError(
                "release.id",
                f"an earlier run of another spec was cut off, and its {release_id!r} has now been "
                "published; take a new id",
            )
    return publication


def check_published(public: Path, auditor: Path | None, out: Path) -> Verdict:
    """Verify what was just published; whatever goes wrong, it says that it is public.

    Raises:
        ReleaseError: it does not verify, or could not be verified.
    """
    try:
        ledger = out / LEDGER
        return verify(public, auditor, Trust(ledger if ledger.is_dir() else None))
    except Exception as error:
        told = str(error) if isinstance(error, ReleaseError) else type(error).__name__
        raise ReleaseError(f"{public} is published but does not verify: {told}") from error


@dataclass(frozen=True)
class Published:
    """A published release: its public folder, its auditor bundle if it has one, the verdict."""

    public: Path
    auditor: Path | None
    verdict: Verdict | None


def auditor_bundle(public: Path) -> Path | None:
    """The auditor bundle that lies beside a public folder, where there is one."""
    folder = public.parent.parent / "auditor" / public.name
    return folder if folder.is_dir() else None


def load(
    spec_file: SpecFile, engine: Engine | None = None, publication: Publication | None = None
) -> Loaded:
    """Open the confidential tables; to be closed by the caller."""
    from release.queries.engines.base import HereTables

    scratch = None if publication is None else publication.scratch("engine")
    declared = spec_file.spec.engine
    master = None if engine is None else engine.spark
    if master is not None or (declared is not None and declared.backend == "spark"):
        from release.queries.engines.spark import SparkTables

        return SparkTables(spec_file, master or "local[*]", engine, scratch)
    return HereTables(spec_file, engine, scratch)


def answer(tables: Loaded, spec_file: SpecFile, watch: Watch = unwatched) -> tuple[Answered, ...]:
    """The true answers of all queries, with what their differences are found from."""
    from release.queries.contributions import contributions, true_answers

    found = []
    for query in _watched(spec_file, watch):
        if isinstance(query, SqlQuery):
            run_again = tables.rerun(query)
            found.append(Answered(run_again, run_again.codes))
            continue
        contributed = contributions(tables.profiles(query), spec_file, query)
        found.append(Answered(contributed, true_answers(contributed, query)))
    tables.check_unchanged()
    return tuple(found)


def find_sensitivity(
    answered: tuple[Answered, ...], spec_file: SpecFile, watch: Watch = unwatched
) -> tuple[Sensitivity, ...]:
    """The differences of each query: seen in the tables, or from the declaration alone."""
    from release.queries.sensitivity import empirical_sensitivity, seen_sensitivity
    from release.queries.statement import Rerun

    found = []
    for query, one in zip(_watched(spec_file, watch), answered, strict=True):
        if isinstance(one.contributed, Rerun):
            steps, domain = one.contributed.steps, answer_domain(query)
            numbers = steps if domain.is_line else np.unique(steps % domain.size)
            found.append(seen_sensitivity(numbers, domain))
        elif query.is_empirical:
            found.append(empirical_sensitivity(one.contributed, spec_file, query))
        else:
            found.append(sensitivity_without_data(spec_file.spec, query))
    return tuple(found)


def design(
    sensitivity: tuple[Sensitivity, ...], spec_file: SpecFile, options: Options
) -> tuple[AnyDesign, ...]:
    """A proved law for each query.

    Raises:
        DesignError: a law could not be proved, or not to be within the gap that is accepted.
    """
    return design_all(
        sensitivity,
        spec_file,
        lambda: _watched(spec_file, options.watch),
        options.cache,
        options.accept_gap,
        options.fan_out,
    )


def charge(publication: Publication, spec_file: SpecFile) -> Charges:
    """The charges of a release, reserved in the ledger where there is one.

    Raises:
        BudgetError: they exceed the cap of the spec, or of the ledger.
        LedgerError, StorageError: the ledger cannot be written.
    """
    found = charges(spec_file)
    publication.reserve(spec_file.spec.budget.scope, Spent(found.epsilon, found.delta))
    return found


def draw(
    publication: Publication,
    answered: tuple[Answered, ...],
    designs: tuple[AnyDesign, ...],
    source: RandomBytes,
) -> Noisy:
    """One noisy code for each cell of each query; the only place where noise is drawn."""

    def once() -> Noisy:
        pairs = zip(answered, designs, strict=True)
        return Noisy(tuple(design.mechanism.draw(one.codes, source) for one, design in pairs))

    return publication.draw(once)


def publish(
    publication: Publication,
    spec_file: SpecFile,
    designs: tuple[AnyDesign, ...],
    charged: Charges,
    noisy: Noisy,
    about: About,
) -> Path:
    """Put the results together, write them, and make them public."""
    from release.queries.profiles import cells_of

    results = tuple(
        Result(query, cells_of(spec_file, query).keys, made, charge, codes)
        for query, made, charge, codes in zip(
            spec_file.spec.released, designs, charged.queries, noisy.codes, strict=True
        )
    )
    spent = publication.spending(spec_file.spec.budget.scope)
    of = replace(about, sequence=publication.sequence, spending=spent)
    publication.stage(lambda folder: write_release(spec_file, results, charged, folder, of))
    return publication.finish()
