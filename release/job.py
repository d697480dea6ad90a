"""A walk down the street: its stages, what it was asked, and what each stage has added."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Never, Protocol, Self, TypeAlias

from release.at_work import AtWork, NotReachedError
from release.budget.cost import Charges
from release.budget.ledger import ReleaseCharge, today
from release.bundle.evidence.inputs import Noted, is_asked
from release.bundle.evidence.people import now
from release.bundle.prepared import Prepared
from release.bundle.publish import Publication
from release.errors import ReleaseError
from release.exact.sampling import SYSTEM, RandomBytes
from release.noise.cache import DesignCache
from release.noise.design import GAP
from release.noise.processes import FanOut
from release.noise.shown import facts_html
from release.noise.unseen import Unseen
from release.spec.load import SpecFile
from release.spec.periods import Period
from release.spec.query import Query

if TYPE_CHECKING:
    import pandas as pd

    from dp_release_verify.verdict import Verdict
    from release.exact.domain import Codes
    from release.queries.engines.base import Loaded
    from release.tables.duckdb import Engine

Kind: TypeAlias = Literal["RELEASE", "TEST"]


class Access(Enum):
    """What a stage may look at, or change."""

    SPEC = "the spec and the public files that it names"
    LEDGER = "the output folder and its ledger"
    TABLES = "the confidential tables, and what was read from them"
    RELEASE = "the files of the release"


@dataclass(frozen=True)
class Stage:
    """One stage of the street.

    Attributes:
        name: its name in progress, errors, logs and Prefect.
        sentence: what is shown while it works.
        needs: what it may look at, or change, beside what the stages before it have added.
        does: the stage; it adds its result to the job.
        applies: whether there is anything for it to do.
    """

    name: str
    sentence: str
    needs: Access
    does: Callable[[Job], None]
    applies: Callable[[Job], bool] = lambda job: True


class Perform(Protocol):
    """Performs one stage: :func:`call` plainly, others show it, log it, or give it a task."""

    def __call__(self, stage: Stage, job: Job, /) -> None:
        """Perform the stage on the job."""


def call(stage: Stage, job: Job) -> None:
    """Perform a stage plainly."""
    stage.does(job)


def walk(stages: Iterable[Stage], job: Job, perform: Perform = call) -> Job:
    """Perform those of the stages that apply, in order; the job.

    Raises:
        ReleaseError: a stage refused, where the job does not collect refusals.
    """
    for stage in stages:
        if stage.applies(job):
            with job.refusing():
                perform(stage, job)
    return job


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


class Account(Protocol):
    """What pays for a release: the ledger of its output folder, where there is one."""

    def needs_profile(self, scope: str) -> bool:
        """Whether the rule of a scope reads more of a release than its ε and δ."""

    def reserve(self, scope: str, charge: ReleaseCharge, slot: str | None = None) -> int | None:
        """Reserve a charge; the number of its entry, if there is one.

        Raises:
            BudgetError, LedgerError, StorageError: it cannot be reserved.
        """


class Unpaid:
    """The account of a walk that pays nothing."""

    def needs_profile(self, scope: str) -> bool:
        """No rule reads it."""
        return False

    def reserve(self, scope: str, charge: ReleaseCharge, slot: str | None = None) -> int | None:
        """Nothing is reserved."""
        return None


class Job:
    """What a walk was asked, and what its stages have added; each says in the street what it adds.

    A result that is not there yet raises :class:`release.at_work.NotReachedError`. A job that
    ``collects`` refusals goes on after them: a stage or a query whose input is lacking is passed
    over. It is a context manager, which closes what is open. Confidential from *load* to *draw*:
    its representation shows nothing.
    """

    spec_file: SpecFile
    unseen: Unseen
    price: Charges
    declared: SpecFile
    """The spec whose tables are read: frames have files of their own."""
    tables: Loaded
    noted: Noted
    prepared: Prepared
    publication: Publication
    noisy: tuple[Codes, ...]
    public: Path
    verdict: Verdict
    delivered: tuple[str, ...]

    def __init__(
        self,
        options: Options,
        spec_path: Path | None = None,
        out: Path | None = None,
        *,
        collects: bool = False,
    ) -> None:
        self.options, self.spec_path, self.out = options, spec_path, out
        self.collects = collects
        self.kind: Kind = "RELEASE"
        self.source: RandomBytes = SYSTEM
        self.published: datetime.date = today()
        self.began = now()
        self.account: Account = Unpaid()
        self.runs: tuple[AtWork, ...] = ()
        self.refusals: list[ReleaseError] = []
        self._held, self._tables_open = ExitStack(), ExitStack()

    if not TYPE_CHECKING:
        # mypy knows the results by their annotations above, and so finds a name that is none.
        def __getattr__(self, name: str) -> Never:
            raise NotReachedError(f"{name}: a stage of the street was left out")

    def __repr__(self) -> str:
        return "Job(confidential)"

    def take(self, unseen: Unseen) -> None:
        """Take what is decided of the spec by now; nothing of it is answered yet."""
        self.unseen, self.spec_file = unseen, unseen.spec_file
        self.runs = tuple(AtWork(query) for query in unseen.spec_file.spec.charged)

    def has(self, result: str) -> bool:
        """Whether a stage has added this result."""
        return result in vars(self)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """A block whose refusal is noted, once, and ends nothing, where refusals are collected."""
        try:
            yield
        except NotReachedError:
            if not self.collects:
                raise
        except ReleaseError as error:
            if not self.collects:
                raise
            if str(error) not in map(str, self.refusals):
                self.refusals.append(error)

    def watching(self, queries: int) -> Callable[[Query], None]:
        """Watches one of so many queries after another, in whatever order they come."""
        finished = count()

        def watching(query: Query) -> None:
            self.options.watch(next(finished), queries, query.name)

        return watching

    def scratch(self, name: Literal["engine", "frames", "rehearsal"]) -> Path:
        """A private folder of this name, empty now; removed at the latest with the job."""
        if self.has("publication"):
            return self.publication.scratch(name)
        folder = Path(self._held.enter_context(TemporaryDirectory())) / name
        folder.mkdir(mode=0o700)
        return folder

    def hold(self, publication: Publication) -> None:
        """Take a publication, to be left with the job."""
        self.publication = self._held.enter_context(publication)
        self.account = publication

    @contextmanager
    def opening(self) -> Iterator[ExitStack]:
        """What is opened in this block stays open until :meth:`close_tables`, if it ends well."""
        # A stage that is tried again finds nothing open.
        self.close_tables()
        with ExitStack() as opened:
            yield opened
            self._tables_open = opened.pop_all()
        # Closed before what was held earlier: the publication's scratch folder among it.
        self._held.callback(self.close_tables)

    def close_tables(self) -> None:
        """Close the tables; what was read from them stays."""
        self._tables_open.close()
        vars(self).pop("tables", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._held.__exit__(*raised)


@dataclass(frozen=True)
class Published:
    """A published release: its public folder, its auditor's folder if it has one, the verdict."""

    public: Path
    auditor: Path | None
    verdict: Verdict | None
    lost: bool = False
    """Whether an earlier run of it was charged, and cut off before its draw was whole."""

    def _repr_html_(self) -> str:
        """What a notebook shows: the folders, and the verdict."""
        facts = {"public": str(self.public), "report": str(self.public / "report.html")}
        if self.auditor is not None:
            facts["auditor's folder, not public"] = str(self.auditor)
        verdict = "" if self.verdict is None else self.verdict._repr_html_()
        return facts_html(f"{self.public.name}: published", facts) + verdict


def auditor_bundle(public: Path) -> Path | None:
    """The auditor's folder of a public bundle, where there is one."""
    folder = public.parent.parent / "auditor" / public.name
    return folder if folder.is_dir() else None
