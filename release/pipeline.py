"""The street: spec → load → answer → sensitivity → design → charge → prepare → draw → publish.

Each stage is a plain function; :func:`run_release` strings them together through ``step``, which
calls a stage by default and is a Prefect task in :mod:`flows`. Confidential values exist between
*load* and *draw*, in the objects of this process only; their representations show nothing.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from dp_release_verify import forms
from dp_release_verify.digests import AUDIT
from dp_release_verify.verdict import Verdict
from release.at_work import Answered, QueryRun, reached
from release.budget.composed import Together, release_charge
from release.budget.cost import (
    Charges,
    Satisfied,
    charges,
    least_charges,
    release_step,
    satisfied,
)
from release.budget.ledger import ReleaseCharge, today
from release.budget.profiles import published_profiles
from release.bundle.evidence.inputs import Noted, audit_bytes, is_asked, note
from release.bundle.evidence.people import now
from release.bundle.prepared import About, Prepared
from release.bundle.publish import LEDGER, Publication, check_reserved, needs_profile, open_ledger
from release.errors import DesignError, LedgerError, ReleaseError, SpecError
from release.exact.sampling import RandomBytes
from release.exact.sensitivity import Sensitivity
from release.noise.cache import DesignCache
from release.noise.design import GAP, Design
from release.noise.on_statistic import StatisticDesign
from release.noise.processes import FanOut
from release.noise.refusal import Made
from release.noise.stage import design_all
from release.noise.stage import design_unseen as design_one
from release.noise.unseen import Unseen, design_every, find_unseen
from release.queries.base import Rerun, RerunQuery
from release.queries.read import read_spec
from release.queries.registry import sensitivity_without_data, statistic_of
from release.queries.tabulations.table_count import TableCount
from release.records.files import write
from release.records.keys.outside import read_key
from release.rehearsal import cells_of, rehearse
from release.spec.load import SpecFile
from release.spec.losses import acceptance_of
from release.spec.named import names_of
from release.spec.periods import Period
from release.spec.query import Query
from release.spec.refusals.unfinished import check_finished
from release.tables.frames import with_frames
from release.verification.verifier import check_content, own_trust, verify

if TYPE_CHECKING:
    import pandas as pd

    from release.exact.domain import Codes
    from release.queries.engines.base import Loaded
    from release.tables.duckdb import Engine

T = TypeVar("T")


class Step(Protocol):
    """Runs one stage: ``step(name, function, *arguments)`` returns ``function(*arguments)``."""

    def __call__(self, name: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run the stage."""


def call(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """The plain step: a call."""
    return function(*arguments)


Watch: TypeAlias = Callable[[int, int, str], None]
"""Called before a stage begins a query: the number finished, the number of all, and its name."""


def unwatched(finished: int, total: int, query: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Options:
    """How a release is run; nothing here changes its guarantee.

    A mechanism is refused if its gap is above ``accept_gap``. The ``cache`` holds mechanisms that
    follow from the spec alone. ``engine`` bounds what DuckDB may use. ``watch`` is called for each
    query within each stage. ``key`` signs, where there is a ledger. ``period`` fills in a spec
    template; ``release_id`` takes the place of the spec's own. ``fan_out`` designs in several
    processes. ``frames`` are read in place of the files that the spec names for these tables.
    ``is_audited`` is whether the auditor's folder gets ``audit.json``, by default what the
    environment says (:mod:`release.bundle.evidence.inputs`). Without ``is_rehearsed`` the release
    is not written and verified with stand-ins before a table is opened: for tests and audits that
    run one spec many times.
    """

    accept_gap: Fraction = GAP
    cache: DesignCache | None = None
    engine: Engine | None = None
    watch: Watch = unwatched
    key: Path | None = None
    period: Period | None = None
    release_id: str | None = None
    fan_out: FanOut | None = None
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    is_audited: bool = field(default_factory=is_asked)
    is_rehearsed: bool = True


def _watched(spec_file: SpecFile, watch: Watch) -> Iterator[Query]:
    """All queries that are charged, each after a call of ``watch``."""
    charged = spec_file.spec.charged
    for finished, query in enumerate(charged):
        watch(finished, len(charged), query.name)
        yield query


def _watching(queries: int, watch: Watch) -> Callable[[Query], None]:
    """Calls ``watch`` for one of so many queries after another, in whatever order they come."""
    finished = count()

    def watching(query: Query) -> None:
        watch(next(finished), queries, query.name)

    return watching


def run_release(
    spec_path: Path,
    out: Path,
    step: Step = call,
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
    chosen, began, noted = options or Options(), now(), None
    spec_file = step("spec", read_spec, spec_path, chosen.period, chosen.release_id)
    check_finished(spec_file.spec)
    kind: Literal["RELEASE", "TEST"] = "RELEASE" if test_source is None else "TEST"
    about = About(kind, published or today())
    with step("check", open_publication, out, spec_file, kind, chosen.key) as publication:
        public = publication.recovered
        if public is None:
            # All that a spec alone can be refused for, and the whole way to a release with answers
            # that stand in: before any confidential value is read, and before anything is charged.
            unseen, price = decide(spec_file, chosen, step)
            spec_file = unseen.spec_file
            look_for_files(spec_file, chosen.frames)
            if chosen.is_rehearsed:
                again, folder = partial(decide, options=chosen), publication.scratch("rehearsal")
                step("rehearse", rehearse, unseen, price, again, folder)
            frames_folder = partial(publication.scratch, "frames")
            with (
                with_frames(spec_file, chosen.frames, frames_folder) as declared,
                step("load", load, declared, chosen.engine, publication) as tables,
            ):
                runs = step("answer", answer, tables, spec_file, chosen.watch)
                if chosen.is_audited:
                    noted = step("note", note_inputs, tables, declared, began, runs)
            runs = step("sensitivity", find_sensitivity, runs, spec_file, chosen.watch)
            runs = step("seen", design_seen, runs, unseen, chosen)
            prepared = step("prepare", prepare, publication, spec_file, runs, price, about)
            step("charge", charge, publication, spec_file, runs)
            prepared = step("keep", keep, publication, spec_file, prepared, noted)
            runs = step("draw", draw, publication, runs, test_source or os.urandom)
            public = step("publish", publish, publication, spec_file, prepared, runs)
    auditor = auditor_bundle(public)
    verdict = step("verify", check_published, public, auditor, out) if kind == "RELEASE" else None
    return Published(public, auditor, verdict, publication.lost)


def decide(spec_file: SpecFile, options: Options, step: Step = call) -> tuple[Unseen, Charges]:
    """All mechanisms of a spec and what they charge, before any table is opened.

    The mechanism of an instance-specific query is that of any table; its charge is the declared.

    Raises:
        SpecError: the budget cannot be shared, or a tabulation not be measured, as declared.
        BudgetError: the charges exceed the cap of the spec.
        DesignError: a mechanism cannot be proved, or misses what the spec accepts.
    """
    unseen = find_unseen(spec_file, options.cache, options.accept_gap, step)
    return decide_found(unseen, options, step)


def decide_found(unseen: Unseen, options: Options, step: Step = call) -> tuple[Unseen, Charges]:
    """As :func:`decide`, of a spec whose budget is shared out already."""
    unseen = _decided(unseen, options, step)
    charged, _ = charges_of(unseen.spec_file, _unanswered(unseen))
    return unseen, charged


def _decided(unseen: Unseen, options: Options, step: Step) -> Unseen:
    # First, because it is quick: the least that could be charged.
    least_charges(unseen.spec_file)
    if unseen.spec_file.spec.acceptance:
        unseen = step("accept", accept, unseen, options.cache, options.accept_gap)
    return step("design", design_unseen, unseen, options)


def _unanswered(unseen: Unseen) -> tuple[QueryRun, ...]:
    """What is charged, in the order of the spec, with its mechanisms and without answers."""
    charged = unseen.spec_file.spec.charged
    return tuple(QueryRun(query, None, design=unseen.design_of(query)) for query in charged)


def refusal_of(unseen: Unseen, options: Options, ledger: Path | None = None) -> ReleaseError | None:
    """Why a run would be refused before it opens a table; None where it would not.

    Of the folder ``ledger``, where one is given, only the caps are looked at: whether the id is
    taken is a matter of the run.
    """
    try:
        check_finished(unseen.spec_file.spec)
        unseen, _ = decide_found(unseen, options)
        if ledger is not None:
            _check_caps(unseen, ledger)
    except ReleaseError as error:
        return error
    return None


def _check_caps(unseen: Unseen, ledger: Path) -> None:
    """Raises ``BudgetError`` where the scope has too little left."""
    spec_file, runs = unseen.spec_file, _unanswered(unseen)
    is_needed = needs_profile(ledger, spec_file.spec.budget.scope)
    _, reserved = charges_of(spec_file, runs, needs_profile=is_needed)
    with suppress(LedgerError):
        check_reserved(ledger, spec_file, reserved)


def design_unseen(unseen: Unseen, options: Options) -> Unseen:
    """The mechanisms of all queries: of one that depends on the table, that of any table.

    Raises:
        DesignError: a guarantee or the accepted gap could not be proved.
    """
    every = unseen.spec_file.spec.charged
    watch = _watching(sum(not query.is_empirical for query in every), options.watch)
    return design_every(unseen, options.cache, options.accept_gap, watch, options.fan_out)


def open_publication(
    out: Path, spec_file: SpecFile, kind: Literal["RELEASE", "TEST"], key: Path | None
) -> Publication:
    """Begin a publication, or resume one that was cut off; a TEST run touches no ledger.

    Raises:
        ReleaseError: as :class:`release.bundle.publish.Publication`.
    """
    release_id = spec_file.spec.release.id
    if kind == "TEST":
        return Publication(out, release_id, None, check_test, "test", spec_file)
    ledger = open_ledger(out, None if key is None else read_key(key))
    publication = Publication(out, release_id, ledger, check_content, spec_file=spec_file)
    # What was cut off is published already. It may stand for this run only if the spec is the same.
    finished = publication.recovered
    if finished is not None and (finished / "spec.yaml").read_bytes() != spec_file.text:
        with publication:
            raise SpecError(
                "release.id",
                f"an earlier run of another spec was cut off, and its {release_id!r} has now been "
                "published; take a new id",
            )
    return publication


def check_test(public: Path, auditor: Path | None) -> None:
    """Check a release with chosen randomness, which no verifier accepts as a release."""
    check_content(public, auditor, "TEST")


def check_published(public: Path, auditor: Path | None, out: Path) -> Verdict:
    """Verify a release that was just published; every error says that it is public.

    Raises:
        ReleaseError: it does not verify, or could not be verified.
    """
    try:
        return verify(public, auditor, own_trust(out / LEDGER))
    except Exception as error:
        reason = str(error) if isinstance(error, ReleaseError) else type(error).__name__
        raise ReleaseError(f"{public} is published but does not verify: {reason}") from error


@dataclass(frozen=True)
class Published:
    """A published release: its public folder, its auditor's folder if it has one, the verdict."""

    public: Path
    auditor: Path | None
    verdict: Verdict | None
    lost: bool = False
    """Whether an earlier run of it was charged, and cut off before its draw was whole."""


def auditor_bundle(public: Path) -> Path | None:
    """The auditor's folder of a public bundle, where there is one."""
    folder = public.parent.parent / "auditor" / public.name
    return folder if folder.is_dir() else None


def look_for_files(spec_file: SpecFile, frames: Mapping[str, object]) -> None:
    """Check that each table that is no frame has a file; none is opened.

    A night whose table has not come yet is refused before it is rehearsed.

    Raises:
        SpecError: there is none, or its place cannot be one of a table.
    """
    from release.tables.sources import find_source

    for name in spec_file.spec.tables:
        if name not in frames:
            find_source(spec_file, name)


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


def answer(tables: Loaded, spec_file: SpecFile, watch: Watch = unwatched) -> tuple[QueryRun, ...]:
    """Answer every query; each run holds what its sensitivity is computed from."""
    runs = []
    counted = _counted(tables, spec_file)
    for query in _watched(spec_file, watch):
        if query.name in counted:
            runs.append(QueryRun(query, Answered(None, counted.pop(query.name))))
        else:
            runs.append(answer_query(tables, spec_file, query))
    # A file that changed meanwhile would have given the queries different tables.
    tables.check_unchanged()
    return tuple(runs)


def answer_query(tables: Loaded, spec_file: SpecFile, query: Query) -> QueryRun:
    """Answer one query of the spec."""
    # Imported here, as in the stages below: importing the package loads no engine.
    from release.queries.contributions import contributions, true_answers

    if isinstance(query, RerunQuery):
        reruns = tables.rerun(query)
        return QueryRun(query, Answered(reruns, reruns.codes))
    contributed = contributions(tables.profiles(query), spec_file, query)
    codes = None if query.is_on_statistic else true_answers(contributed, query)
    return QueryRun(query, Answered(contributed, codes))


def note_inputs(
    tables: Loaded, spec_file: SpecFile, began: str, runs: tuple[QueryRun, ...]
) -> Noted:
    """Note for the auditor what the answers were computed from; reads the inputs once more."""
    from release.facts.noted import reasons_of_run
    from release.queries.engines.base import HereTables

    set_aside, left_out = None, None
    if isinstance(tables, HereTables):
        set_aside = tables.set_aside
        # What cannot be counted here refuses no run: its answers are there.
        with suppress(ReleaseError):
            reasons = reasons_of_run(tables, spec_file, runs)
            left_out = [forms.LeftOut(**asdict(reason)) for reason in reasons]
    noted = note(spec_file, began, set_aside, left_out)
    # What was noted has to be what was answered.
    tables.check_unchanged()
    return noted


def accept(unseen: Unseen, cache: DesignCache | None, gap: Fraction) -> Unseen:
    """Judge the entries of ``acceptance``; the mechanisms they rest on are those of the run.

    Nothing of a table is known yet: an entry is about a mechanism that follows from the spec alone.

    Raises:
        DesignError: an entry is missed, or a mechanism cannot be proved.
    """
    from release.bundle.acceptance import judged

    spec_file, designs = unseen.spec_file, dict(unseen.designs)
    named = set(names_of(acceptance_of(spec_file.spec)))
    for query in spec_file.spec.released:
        if query.name in named and query.name not in designs:
            designs[query.name] = design_one(spec_file, query, cache, gap)
    mechanisms = {name: design.mechanism for name, design in designs.items()}
    for verdict in judged(spec_file, mechanisms):
        if not verdict.is_met:
            raise DesignError(verdict.refusal)
    return replace(unseen, designs=designs)


def _counted(tables: Loaded, spec_file: SpecFile) -> dict[str, Codes]:
    """The true codes of all tables that tabulations measure, by name. Confidential."""
    from release.queries.tabulations.answers import true_codes

    counted: dict[str, Codes] = {}
    for opened in spec_file.tabulations:
        own = [query for query in spec_file.spec.measured if isinstance(query, TableCount)]
        of_this = [query for query in own if query.tabulation == opened.name]
        counted |= true_codes(tables, opened, of_this)
    return counted


def find_sensitivity(
    runs: tuple[QueryRun, ...], spec_file: SpecFile, watch: Watch = unwatched
) -> tuple[QueryRun, ...]:
    """Add to each run the sensitivity of its query: of this table, or of the declaration.

    With noise on the statistic it is how far neighbors move that.
    """
    results = []
    for _, run in zip(_watched(spec_file, watch), runs, strict=True):
        results.append(moved(run, spec_file))
    return tuple(results)


def moved(run: QueryRun, spec_file: SpecFile) -> QueryRun:
    """The run with how far neighbors move its answer, or its statistic."""
    if run.query.is_on_statistic:
        return replace(run, statistic=statistic_of(spec_file.spec, run.query))
    return replace(run, sensitivity=_sensitivity_of(run, spec_file))


def _sensitivity_of(run: QueryRun, spec_file: SpecFile) -> Sensitivity:
    from release.queries.sensitivity import empirical_sensitivity, seen_sensitivity

    domain = run.query.answers
    contributed = reached(run.answered).contributed
    if contributed is None:
        return sensitivity_without_data(spec_file.spec, run.query)
    if isinstance(contributed, Rerun):
        # On the line steps have a sign; elsewhere they are differences modulo the size.
        steps = contributed.steps
        return seen_sensitivity(steps if domain.is_line else np.unique(steps % domain.size), domain)
    if run.query.is_empirical:
        return empirical_sensitivity(contributed, spec_file, run.query)
    return sensitivity_without_data(spec_file.spec, run.query)


def design_seen(
    runs: tuple[QueryRun, ...], unseen: Unseen, options: Options
) -> tuple[QueryRun, ...]:
    """Add to each run its mechanism; that of an instance-specific query is designed now.

    Raises:
        DesignError: none can be proved for what was seen, and none for every table was found.
    """
    asked: list[tuple[Query, Sensitivity]] = []
    instead: dict[str, Made] = {}
    for run in runs:
        if run.query.is_empirical:
            seen, fallback = reached(run.sensitivity), unseen.standing_in[run.query.name]
            asked.append((run.query, seen))
            # A refusal would depend on the table. Both mechanisms have one family, and neither is
            # public: what is published of them is a commitment.
            if isinstance(fallback, Design) and set(seen.shifts) <= set(
                fallback.sensitivity.shifts
            ):
                instead[run.query.name] = fallback
    designs = design_all(
        asked,
        unseen.spec_file,
        options.cache,
        options.accept_gap,
        _watching(len(asked), options.watch),
        options.fan_out,
        is_judged=False,
        instead=instead,
    )
    made = {**unseen.designs, **designs}
    return tuple(replace(run, design=made[run.query.name]) for run in runs)


def charge(publication: Publication, spec_file: SpecFile, runs: tuple[QueryRun, ...]) -> Charges:
    """The charges of a release, reserved in the ledger where there is one.

    Raises:
        BudgetError: they exceed the cap of the spec, or of the ledger.
        LedgerError, StorageError: the ledger cannot be written.
    """
    spec = spec_file.spec
    is_needed = publication.needs_profile(spec.budget.scope)
    charged, reserved = charges_of(spec_file, runs, needs_profile=is_needed)
    publication.reserve(spec.budget.scope, reserved, spec.budget.slot)
    return charged


def charges_of(
    spec_file: SpecFile, runs: tuple[QueryRun, ...], *, needs_profile: bool = False
) -> tuple[Charges, ReleaseCharge]:
    """The charges of a release, and what it hands to the ledger, with profiles if that needs them.

    Raises:
        BudgetError: the charges exceed the cap of the spec.
    """
    kept: dict[str, Satisfied] = {}
    for run in runs:
        if not run.query.is_empirical:
            made = run.made
            kept[run.query.name] = satisfied(spec_file, run.query, made, made.guarantee)
    is_exact = spec_file.spec.composes_exactly
    together = _together(spec_file, runs) if is_exact or needs_profile else None
    charged = charges(spec_file, kept, together if is_exact else None)
    has_profile = not any(run.query.is_empirical for run in runs)
    return charged, release_charge(
        charged.epsilon, charged.delta, together, has_profile=has_profile
    )


def _together(spec_file: SpecFile, runs: tuple[QueryRun, ...]) -> Together:
    """The profiles of all public queries, as they will be published."""
    mechanisms = []
    for run in runs:
        if not run.query.is_empirical:
            made = run.made
            sensitivity = made.sensitivity if isinstance(made, Design) else None
            mechanisms.append((run.query, made.mechanism, sensitivity))
    return published_profiles(spec_file, mechanisms)


def prepare(
    publication: Publication,
    spec_file: SpecFile,
    runs: tuple[QueryRun, ...],
    charged: Charges,
    about: About,
) -> Prepared:
    """Write what needs neither noise nor a charge, and take up the room of the draw.

    Raises:
        StorageError: the disk is full or read-only.
    """
    from release.bundle import drawn, prepared

    designs = [(run.query, run.made) for run in runs]
    sizes = []
    for query, design in designs:
        outputs = design.mechanism.outputs if isinstance(design, StatisticDesign) else 1
        sizes.append((cells_of(spec_file, query), outputs))
    return publication.prepare(
        lambda folder: prepared.prepare(spec_file, designs, charged, about, folder),
        drawn.size_of_draw(sizes),
    )


def keep(
    publication: Publication, spec_file: SpecFile, content: Prepared, noted: Noted | None = None
) -> Prepared:
    """Write what a later run needs to publish the draw, with the entry that pays for it.

    ``noted`` goes into the auditor's folder alone.

    Raises:
        StorageError: the disk is full or read-only.
    """
    from release.bundle import drawn, prepared

    spent = publication.spending(spec_file.spec.budget.scope)
    is_needed = publication.needs_profile(spec_file.spec.budget.scope)
    step = release_step(spec_file) if is_needed else None
    of = replace(content.of, sequence=publication.sequence, spending=spent, step=step)
    paid = replace(content, of=of)

    def writing(folder: Path) -> Prepared:
        if noted is not None:
            signer = None if publication.ledger is None else publication.ledger.signer
            data = audit_bytes(publication.release_id, noted, publication.reserved, signer)
            path = folder / prepared.AUDITOR / AUDIT
            path.unlink(missing_ok=True)
            write(path, data, 0o600)
        drawn.save(spec_file, paid)
        return paid

    return publication.complete(writing)


def draw(
    publication: Publication, runs: tuple[QueryRun, ...], source: RandomBytes
) -> tuple[QueryRun, ...]:
    """Draw one noisy answer for each cell of each query; the only place where noise is drawn."""
    from release.bundle.drawn import encoded

    return publication.draw(
        lambda: tuple(run.drawn(source) for run in runs),
        lambda drawn: encoded([reached(run.noisy) for run in drawn]),
    )


def publish(
    publication: Publication,
    spec_file: SpecFile,
    prepared: Prepared,
    runs: tuple[QueryRun, ...],
) -> Path:
    """Write the release with the noise that was drawn, and make it public."""
    from release.bundle.write import write_release

    noisy = [reached(run.noisy) for run in runs]
    publication.stage(lambda folder: write_release(spec_file, prepared, noisy, folder))
    return publication.finish()
