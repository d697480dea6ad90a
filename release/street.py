"""The street: every release goes one way, and :data:`STREET` is that way, in order.

``run`` walks to the end. ``plan`` takes the stages that need the spec alone. ``check`` walks to the
charge, over tables that it reads itself, and collects refusals. The audit and Prefect perform the
stages in their own manner. What these say of one spec comes from the same functions.

Confidential values exist between *load* and *draw*, in the objects of this process only; their
representations show nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dp_release_verify import forms
from dp_release_verify.digests import AUDIT
from release.at_work import Answered, AtWork, NotReachedError, reached
from release.budget.composed import Together, release_charge
from release.budget.cost import (
    Charges,
    Satisfied,
    charges,
    least_charges,
    release_step,
    satisfied,
)
from release.budget.ledger import ReleaseCharge
from release.budget.profiles import published_profiles
from release.bundle.evidence.inputs import audit_bytes, note
from release.bundle.prepared import About, Prepared
from release.bundle.publish import LEDGER, Forecast, Publication, open_ledger
from release.errors import DesignError, LedgerError, ReleaseError, SpecError
from release.exact.sampling import RandomBytes
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.statistic import Statistic
from release.job import (
    Access,
    Job,
    Options,
    Perform,
    Published,
    Stage,
    auditor_bundle,
    call,
    walk,
)
from release.noise.refusal import Made
from release.noise.stage import Moved, design_all
from release.noise.stage import design_unseen as design_one
from release.noise.unseen import Unseen, design_every, measure_tables, share_out
from release.queries.base import Rerun, RerunQuery
from release.queries.read import read_spec
from release.queries.registry import sensitivity_without_data, statistic_of
from release.records.files import write
from release.records.keys.outside import read_key
from release.rehearsal import cells_of, rehearse_release
from release.spec.load import SpecFile
from release.spec.losses import acceptance_of
from release.spec.named import names_of
from release.spec.query import Query
from release.spec.refusals.unfinished import check_finished
from release.tables.frames import with_frames
from release.tabulations.measure.table_count import TableCount
from release.verification.verifier import check_content, own_trust, verify

if TYPE_CHECKING:
    from release.queries.engines.base import Loaded
    from release.tables.duckdb import Engine


def run_release(
    spec_path: Path,
    out: Path,
    perform: Perform = call,
    *,
    published: datetime.date | None = None,
    test_source: RandomBytes | None = None,
    options: Options | None = None,
) -> Published:
    """Run a release from its spec; returns its folders and the verifier's verdict.

    ``published`` is today unless given. With ``test_source`` the noise comes from it instead of
    the operating system; such a run is marked TEST and :func:`release.verification.verifier.verify`
    refuses it.

    Raises:
        ReleaseError: refused; nothing was published and nothing is left behind. Only a draw stays
            where the disk failed after it: the next run publishes it.
    """
    job = Job(options or Options(), spec_path, out)
    job.published = published or job.published
    if test_source is not None:
        job.kind, job.source = "TEST", test_source
    return run_job(job, perform)


def run_job(job: Job, perform: Perform = call) -> Published:
    """Walk a job to the end of the street.

    Raises:
        ReleaseError: as :func:`run_release`.
    """
    with job:
        walk(between("read", "open"), job, perform)
        # What an earlier run had drawn is published by now, and not drawn anew.
        if not job.has("public"):
            walk(between("share", "publish"), job, perform)
    walk(between("confirm", "confirm"), job, perform)
    verdict = job.verdict if job.has("verdict") else None
    return Published(job.public, auditor_bundle(job.public), verdict, job.publication.lost)


def between(first: str, last: str) -> tuple[Stage, ...]:
    """The stages from one to another, both included, by their names."""
    names = [stage.name for stage in STREET]
    return STREET[names.index(first) : names.index(last) + 1]


def decide(spec_file: SpecFile, options: Options) -> Job:
    """All mechanisms of a spec and what they charge, before any table is opened.

    The mechanism of an instance-specific query is that of any table; its charge is the declared.

    Raises:
        SpecError: the budget cannot be shared, or a tabulation not be measured, as declared.
        BudgetError: the charges exceed the cap of the spec.
        DesignError: a mechanism cannot be proved, or misses what the spec accepts.
    """
    job = Job(options)
    job.take(Unseen.of(spec_file))
    return walk(between("share", "price"), job)


def answered(spec_file: SpecFile, options: Options | None = None) -> tuple[AtWork, ...]:
    """The queries of a spec, answered, with how far neighbors move each answer. Confidential.

    Raises:
        ReleaseError: a table cannot be read, or a query not be answered from it.
    """
    with Job(options or Options()) as job:
        job.take(Unseen.of(spec_file))
        walk(between("load", "move"), job)
        return job.runs


def read(job: Job) -> None:
    """Read the spec with its public files, unless the job has it; all that was to be written is."""
    if not job.has("spec_file"):
        path, options = reached(job.spec_path), job.options
        job.take(Unseen.of(read_spec(path, options.period, options.release_id)))
    check_finished(job.spec_file.spec)


def open_publication(job: Job) -> None:
    """Begin a publication, or finish one that was cut off; a TEST run touches no ledger.

    Raises:
        ReleaseError: as :class:`release.bundle.publish.Publication`.
    """
    out, spec_file, key = reached(job.out), job.spec_file, job.options.key
    release_id = spec_file.spec.release.id
    if job.kind == "TEST":
        job.hold(Publication(out, release_id, None, check_test, "test", spec_file))
    else:
        ledger = open_ledger(out, None if key is None else read_key(key))
        job.hold(Publication(out, release_id, ledger, check_content, spec_file=spec_file))
    # What was cut off is published already. It may stand for this run only if the spec is the same.
    finished = job.publication.recovered
    if finished is not None:
        if (finished / "spec.yaml").read_bytes() != spec_file.text:
            raise SpecError(
                "release.id",
                f"an earlier run of another spec was cut off, and its {release_id!r} has now been "
                "published; take a new id",
            )
        job.public = finished


def check_test(public: Path, auditor: Path | None) -> None:
    """Check a release with chosen randomness, which no verifier accepts as a release."""
    check_content(public, auditor, "TEST")


def share(job: Job) -> None:
    """Share the budget out.

    Raises:
        SpecError: it cannot be shared as declared.
        BudgetError: the declared guarantees leave nothing to share.
        DesignError: a mechanism cannot be proved.
    """
    job.take(share_out(job.unseen, job.options.cache, job.options.accept_gap))


def measure(job: Job) -> None:
    """Choose what tabulations measure, and how.

    Raises:
        SpecError: a tabulation cannot be measured as it is declared.
        DesignError: a mechanism cannot be proved.
    """
    job.take(measure_tables(job.unseen))


def accept(job: Job) -> None:
    """Judge the entries of ``acceptance``; the mechanisms they rest on are those of the run.

    Nothing of a table is known yet: an entry is about a mechanism that follows from the spec alone.

    Raises:
        BudgetError: the least that could be charged exceeds the cap of the spec.
        DesignError: an entry is missed, or a mechanism cannot be proved.
    """
    from release.bundle.acceptance import judged

    spec_file, designs = job.spec_file, dict(job.unseen.designs)
    if any(query.guarantee is None for query in spec_file.spec.charged):
        raise NotReachedError("the budget is not shared out")
    with job.refusing():
        # Here, because it is quick.
        least_charges(spec_file)
    if not spec_file.spec.acceptance:
        return
    named = set(names_of(acceptance_of(spec_file.spec)))
    for query in spec_file.spec.released:
        if query.name in named and query.name not in designs:
            options = job.options
            designs[query.name] = design_one(spec_file, query, options.cache, options.accept_gap)
    job.unseen = replace(job.unseen, designs=designs)
    mechanisms = {name: design.mechanism for name, design in designs.items()}
    for verdict in judged(spec_file, mechanisms):
        if not verdict.is_met:
            with job.refusing():
                raise DesignError(verdict.refusal)


def design(job: Job) -> None:
    """The mechanisms of all queries: of one that depends on the table, that of any table.

    Raises:
        DesignError: a guarantee or the accepted gap could not be proved.
    """
    charged, options = job.spec_file.spec.charged, job.options
    watch = job.watching(sum(not query.is_empirical for query in charged))
    job.unseen = design_every(
        job.unseen, options.cache, options.accept_gap, watch, options.fan_out, job.refusing
    )
    job.runs = tuple(AtWork(query, job.unseen.found(query)) for query in charged)


def price(job: Job) -> None:
    """What the release charges.

    Raises:
        BudgetError: the charges exceed the cap of the spec.
    """
    job.price, _ = charges_of(job.spec_file, job.runs)


def find_files(job: Job) -> None:
    """Check that each table that is no frame has a file; none is opened.

    A night whose table has not come yet is refused before it is rehearsed.

    Raises:
        SpecError: there is none, or its place cannot be one of a table.
    """
    from release.tables.sources import find_source

    for name in job.spec_file.spec.tables:
        if name not in job.options.frames:
            find_source(job.spec_file, name)


def rehearse(job: Job) -> None:
    """Write and verify the release with answers that stand in.

    Raises:
        ReleaseError: as :func:`release.rehearsal.rehearse_release`.
    """
    again = partial(decide, options=job.options)
    rehearse_release(job, again, job.scratch("rehearsal"))


def open_tables(
    spec_file: SpecFile, engine: Engine | None = None, scratch: Path | None = None
) -> Loaded:
    """The confidential tables of a spec, in DuckDB or in Spark; to be closed by the caller."""
    from release.queries.engines.base import HereTables

    declared = spec_file.spec.engine
    master = None if engine is None else engine.spark
    if master is not None or (declared is not None and declared.backend == "spark"):
        from release.queries.engines.spark import SparkTables

        return SparkTables(spec_file, master or "local[*]", engine, scratch)
    return HereTables(spec_file, engine, scratch)


def load(
    job: Job,
    opening: Callable[[SpecFile, Engine | None, Path | None], Loaded] = open_tables,
) -> None:
    """Open the confidential tables; by ``opening``, where a caller reads them in its own way.

    Raises:
        ReleaseError: a table cannot be read as it is declared.
    """
    frames = with_frames(job.spec_file, job.options.frames, partial(job.scratch, "frames"))
    with job.opening() as opened:
        job.declared = opened.enter_context(frames)
        tables = opening(job.declared, job.options.engine, job.scratch("engine"))
        job.tables = opened.enter_context(tables)


def answer(job: Job) -> None:
    """Answer every query, with what its sensitivity is computed from.

    Raises:
        ReleaseError: a query cannot be answered from these tables.
    """
    watch, runs = job.watching(len(job.runs)), []
    counted = _counted(job)
    for run in job.runs:
        query, found = run.query, None
        watch(query)
        with job.refusing():
            if isinstance(query, TableCount):
                found = counted.get(query.name)
            else:
                found = answer_query(job.tables, job.spec_file, query)
        runs.append(replace(run, answered=found))
    # A file that changed meanwhile would have given the queries different tables.
    job.tables.check_unchanged()
    job.runs = tuple(runs)


def answer_query(tables: Loaded, spec_file: SpecFile, query: Query) -> Answered:
    """The answer of one query of the spec."""
    # Imported here, as in the stages below: importing the package loads no engine.
    from release.queries.contributions import contributions, true_answers

    if isinstance(query, RerunQuery):
        reruns = tables.rerun(query)
        return Answered(reruns, reruns.codes)
    contributed = contributions(tables.profiles(query), spec_file, query)
    codes = None if query.is_on_statistic else true_answers(contributed, query)
    return Answered(contributed, codes)


def _counted(job: Job) -> dict[str, Answered]:
    """The true counts of all tables that tabulations measure, by name. Confidential."""
    from release.tabulations.measure.answers import true_codes

    counted: dict[str, Answered] = {}
    for opened in job.spec_file.tabulations:
        own = [query for query in job.spec_file.spec.measured if isinstance(query, TableCount)]
        of_this = [query for query in own if query.tabulation == opened.name]
        with job.refusing():
            for name, codes in true_codes(job.tables, opened, of_this).items():
                counted[name] = Answered(None, codes)
    return counted


def note_inputs(job: Job) -> None:
    """Note for the auditor what the answers were computed from; reads the inputs once more."""
    from release.facts.noted import reasons_of_run
    from release.queries.engines.base import HereTables

    set_aside, left_out = None, None
    if isinstance(job.tables, HereTables):
        set_aside = job.tables.set_aside
        # What cannot be counted here refuses no run: its answers are there.
        with suppress(ReleaseError):
            reasons = reasons_of_run(job.tables, job.spec_file, job.runs)
            left_out = [forms.LeftOut(**asdict(reason)) for reason in reasons]
    job.noted = note(job.declared, job.began, set_aside, left_out)
    # What was noted has to be what was answered.
    job.tables.check_unchanged()


def move(job: Job) -> None:
    """Find how far neighbors move each answer, or its statistic: by this table, or as declared."""
    watch, runs = job.watching(len(job.runs)), []
    for run in job.runs:
        watch(run.query)
        moves = None
        with job.refusing():
            moves = _moves_of(run, job.spec_file)
        runs.append(replace(run, moves=moves))
    job.runs = tuple(runs)


def _moves_of(run: AtWork, spec_file: SpecFile) -> Sensitivity | Statistic:
    from release.queries.sensitivity import empirical_sensitivity, seen_sensitivity

    query, contributed, domain = run.query, run.contributed, run.query.answers
    if query.is_on_statistic:
        return statistic_of(spec_file.spec, query)
    if isinstance(contributed, Rerun):
        # On the line steps have a sign; elsewhere they are differences modulo the size.
        steps = contributed.steps
        return seen_sensitivity(steps if domain.is_line else np.unique(steps % domain.size), domain)
    if contributed is not None and query.is_empirical:
        return empirical_sensitivity(contributed, spec_file, query)
    return sensitivity_without_data(spec_file.spec, query)


def fit(job: Job) -> None:
    """The mechanism of each instance-specific query, for how far this table moves its answer."""
    asked: list[tuple[Query, Moved]] = []
    instead: dict[str, Made] = {}
    for run in job.runs:
        if run.query.is_empirical and run.moves is not None and run.query.guarantee is not None:
            asked.append((run.query, run.moves))
            # A refusal would depend on the table. Both mechanisms have one family, and neither is
            # public: what is published of them is a commitment.
            for_any_table = job.unseen.found(run.query)
            if for_any_table is not None:
                instead[run.query.name] = for_any_table
    options = job.options
    designs = design_all(
        asked,
        job.spec_file,
        options.cache,
        options.accept_gap,
        job.watching(len(asked)),
        options.fan_out,
        is_judged=False,
        instead=instead,
        refusing=job.refusing,
    )
    job.runs = tuple(
        replace(run, design=designs.get(run.query.name, run.design)) for run in job.runs
    )


def prepare(job: Job) -> None:
    """Write what needs neither noise nor a charge, and take up the room of the draw.

    Raises:
        StorageError: the disk is full or read-only.
    """
    from release.bundle import drawn, prepared

    # All that is drawn from has been computed.
    job.close_tables()
    spec_file, charged = job.spec_file, job.price
    designs = [(run.query, run.made) for run in job.runs]
    sizes = []
    for query, made in designs:
        sizes.append((cells_of(spec_file, query), made.mechanism.outputs))
    about = About(job.kind, job.published)
    job.prepared = job.publication.prepare(
        lambda folder: prepared.prepare(spec_file, designs, charged, about, folder),
        drawn.size_of_draw(sizes),
    )


def charge(job: Job) -> None:
    """Reserve the charge of the release with what pays for it: durably, in the ledger of a run.

    Raises:
        BudgetError: it exceeds the cap of the spec, or of the ledger.
        LedgerError, StorageError: the ledger cannot be written.
    """
    budget = job.spec_file.spec.budget
    is_needed = job.account.needs_profile(budget.scope)
    _, reserved = charges_of(job.spec_file, job.runs, needs_profile=is_needed)
    job.account.reserve(budget.scope, reserved, budget.slot)


def charges_of(
    spec_file: SpecFile, runs: Sequence[AtWork], *, needs_profile: bool = False
) -> tuple[Charges, ReleaseCharge]:
    """The charges of a release, and what it hands to the ledger, with profiles if that needs them.

    Raises:
        BudgetError: the charges exceed the cap of the spec.
        NotReachedError: a query has no mechanism.
    """
    kept: dict[str, Satisfied] = {}
    for run in runs:
        made = run.made
        if not run.query.is_empirical:
            kept[run.query.name] = satisfied(spec_file, run.query, made, made.guarantee)
    is_exact = spec_file.spec.composes_exactly
    together = _together(spec_file, runs) if is_exact or needs_profile else None
    charged = charges(spec_file, kept, together if is_exact else None)
    has_profile = not any(run.query.is_empirical for run in runs)
    return charged, release_charge(
        charged.epsilon, charged.delta, together, has_profile=has_profile
    )


def _together(spec_file: SpecFile, runs: Sequence[AtWork]) -> Together:
    """The profiles of all public queries, as they will be published."""
    mechanisms = []
    for run in runs:
        if not run.query.is_empirical:
            mechanisms.append((run.query, run.made.mechanism, run.made.sensitivity))
    return published_profiles(spec_file, mechanisms)


def keep(job: Job) -> None:
    """Write what a later run needs to publish the draw, with the entry that pays for it.

    What was noted goes into the auditor's folder alone.

    Raises:
        StorageError: the disk is full or read-only.
    """
    from release.bundle import drawn, prepared

    publication, spec_file = job.publication, job.spec_file
    scope = spec_file.spec.budget.scope
    spent = publication.spending(scope)
    step = release_step(spec_file) if publication.needs_profile(scope) else None
    of = replace(job.prepared.of, sequence=publication.sequence, spending=spent, step=step)
    paid = replace(job.prepared, of=of)

    def writing(folder: Path) -> Prepared:
        if job.has("noted"):
            signer = None if publication.ledger is None else publication.ledger.signer
            data = audit_bytes(publication.release_id, job.noted, publication.reserved, signer)
            path = folder / prepared.AUDITOR / AUDIT
            path.unlink(missing_ok=True)
            write(path, data, 0o600)
        drawn.save(spec_file, paid)
        return paid

    job.prepared = publication.complete(writing)


def draw(job: Job) -> None:
    """Draw one noisy answer for each cell of each query; the only place where noise is drawn."""
    from release.bundle.drawn import encoded

    job.noisy = job.publication.draw(
        lambda: tuple(run.draw(job.source) for run in job.runs), encoded
    )
    # The true answers go in the same stage, so that no later one can publish them.
    job.runs = ()


def bundle(job: Job) -> None:
    """Write the release with the noise that was drawn.

    Raises:
        StorageError: the disk is full or read-only.
    """
    from release.bundle.write import write_release

    noisy = list(job.noisy)
    job.publication.stage(lambda folder: write_release(job.spec_file, job.prepared, noisy, folder))


def verify_bundle(job: Job) -> None:
    """Verify the files as they will be published.

    Raises:
        ReleaseError: they do not verify. The draw stays, and nothing is committed.
    """
    job.publication.verify()


def commit(job: Job) -> None:
    """Sign the release and commit its hash, where there is a ledger.

    Raises:
        LedgerError, StorageError: the ledger cannot commit it.
    """
    job.publication.commit()


def publish(job: Job) -> None:
    """Make the release public.

    Raises:
        StorageError: the disk is full or read-only. What was staged stays for a later run.
    """
    job.public = job.publication.publish()


def confirm(job: Job) -> None:
    """Verify what is public now, with its ledger; every error says that it is public.

    Raises:
        ReleaseError: it does not verify, or could not be verified.
    """
    trust = own_trust(reached(job.out) / LEDGER)
    try:
        job.verdict = verify(job.public, auditor_bundle(job.public), trust)
    except Exception as error:
        reason = str(error) if isinstance(error, ReleaseError) else type(error).__name__
        raise ReleaseError(f"{job.public} is published but does not verify: {reason}") from error


STREET: tuple[Stage, ...] = (
    Stage("read", "reading the spec", Access.SPEC, read),
    Stage("open", "checking the output folder", Access.LEDGER, open_publication),
    Stage(
        "share",
        "sharing the budget out",
        Access.SPEC,
        share,
        lambda job: job.unseen.has_shares,
    ),
    Stage(
        "measure",
        "choosing what tabulations measure",
        Access.SPEC,
        measure,
        lambda job: bool(job.spec_file.tabulations),
    ),
    Stage("accept", "adding up the least charges, and judging the acceptance", Access.SPEC, accept),
    Stage(
        "design",
        "solving for the mechanisms and proving their guarantees",
        Access.SPEC,
        design,
    ),
    Stage("price", "adding up the charges", Access.SPEC, price),
    Stage("find", "looking for the tables", Access.TABLES, find_files),
    Stage(
        "rehearse",
        "rehearsing the release with answers that stand in",
        Access.SPEC,
        rehearse,
        lambda job: job.options.is_rehearsed,
    ),
    Stage("load", "loading the confidential tables", Access.TABLES, load),
    Stage("answer", "answering the queries", Access.TABLES, answer),
    Stage(
        "note",
        "noting the inputs for the auditor",
        Access.TABLES,
        note_inputs,
        lambda job: job.options.is_audited,
    ),
    Stage("move", "computing the sensitivity of the queries", Access.TABLES, move),
    Stage("fit", "fitting the mechanisms that depend on the tables", Access.TABLES, fit),
    Stage("prepare", "writing the mechanisms", Access.RELEASE, prepare),
    Stage("charge", "charging the budget", Access.LEDGER, charge),
    Stage("keep", "noting what a later run would need", Access.RELEASE, keep),
    Stage("draw", "drawing the noise", Access.TABLES, draw),
    Stage("bundle", "writing the release", Access.RELEASE, bundle),
    Stage("verify", "verifying what will be published", Access.RELEASE, verify_bundle),
    Stage("commit", "committing the release", Access.LEDGER, commit),
    Stage("publish", "publishing", Access.RELEASE, publish),
    Stage(
        "confirm",
        "verifying the published files",
        Access.RELEASE,
        confirm,
        lambda job: job.kind == "RELEASE",
    ),
)
"""All stages of a release, in order."""

BEFORE_TABLES = tuple(stage for stage in STREET if stage.needs is Access.SPEC)
"""The stages that need the spec alone."""

TO_THE_CHARGE = tuple(
    stage for stage in between("read", "charge") if stage.needs is not Access.RELEASE
)
"""What comes before a charge, and the charge itself, and writes nothing of a release."""


def refusal_of(unseen: Unseen, options: Options, ledger: Path | None = None) -> ReleaseError | None:
    """Why a run would be refused before it opens a table; None where it would not.

    ``unseen`` is what *share* and *measure* have decided. Of the folder ``ledger``, where one is
    given, only the caps are looked at: whether the id is taken is a matter of the run.
    """
    shared_out = ("share", "measure")
    with Job(options) as job:
        job.take(unseen)
        try:
            walk([stage for stage in BEFORE_TABLES if stage.name not in shared_out], job)
            if ledger is not None:
                job.account = Forecast(ledger, job.spec_file.spec.release.id)
                with suppress(LedgerError):
                    charge(job)
        except ReleaseError as error:
            return error
    return None
