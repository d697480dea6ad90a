"""dp-release: differentially private tables with provably least noise, and files to check them.

The verbs are functions of this module; a path may be text::

    import release

    release.run("data/persons.yaml", "out")                       # load, answer, draw, publish
    release.verify("out/public/census-2024", require="none")      # proved, tested, on trust
    release.open("out/public/census-2024")["minors_by_tract"].to_pandas()
    release.design(24, "cyclic", sensitivity=[1], epsilon=1, loss="squared").gap

Importing the package loads no solver and no engine; each is loaded where it is used.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from release.errors import (
    BudgetError,
    DataError,
    DesignError,
    LedgerError,
    ReleaseError,
    SpecError,
    StorageError,
    VerificationError,
)
from release.exact.numbers import exact, member, safe_text
from release.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

    from dp_release_verify.verdict import Verdict
    from release.analysis.estimation import Estimates
    from release.analysis.opened import Opened
    from release.drafts import Dataset
    from release.job import Published
    from release.noise.families import AnyDesign
    from release.operate.rehearsal.text import Rehearsal
    from release.planning.plan import Plan
    from release.spec.load import SpecFile
    from release.spec.periods import Period

__version__ = VERSION

__all__ = [
    "BudgetError",
    "DataError",
    "DesignError",
    "LedgerError",
    "ReleaseError",
    "SpecError",
    "StorageError",
    "VerificationError",
    "__version__",
    "check",
    "dataset",
    "design",
    "estimate",
    "open",
    "plan",
    "read_spec",
    "run",
    "verify",
]

PathLike: TypeAlias = str | Path
Number: TypeAlias = int | str | Fraction
"""An exact number: an integer, a fraction, or text such as ``"0.1"``. A float is refused."""


def run(
    spec: PathLike,
    out: PathLike = "out",
    *,
    tables: Mapping[str, pd.DataFrame] | None = None,
    key: PathLike | None = None,
    period: str | None = None,
    accept_gap: Number = "0.000001",
) -> Published:
    """Run a release: load, answer, solve for the noise, charge, draw, publish, verify.

    ``tables`` maps names of tables to frames, which replace the files in the spec. A column of a
    frame must have the declared type; only whole floats are converted, to integers. ``key`` is the
    file of the signing key for the ledger in ``out``. ``period`` fills in a spec template.
    ``accept_gap`` is the largest share of its loss that a better mechanism may save.

    Raises:
        ReleaseError: the run was refused; nothing was published and nothing is left behind.
    """
    from release.bundle.publish import check_output_folder
    from release.job import Options, call
    from release.noise.cache import default_cache
    from release.operate.journal import default_journal
    from release.street import run_release

    # Only the type is named: the repr of a frame shows confidential rows.
    if not isinstance(tables, Mapping | None):
        raise SpecError("tables", f"found {type(tables).__name__}; give a dict of frames by name")
    options = Options(
        accept_gap=exact("accept_gap", accept_gap),
        cache=default_cache(),
        key=None if key is None else _path("key", key),
        period=_period(period),
        frames=dict(tables or {}),
    )
    folder = _path("out", out)
    check_output_folder(folder)
    journal, path = default_journal(options.key), _path("spec", spec)
    name = None if options.period is None else str(options.period)
    with journal.told(spec=path.name, period=name) as done:
        published = run_release(path, folder, journal.watching(call), options=options)
        done(published.public)
    return published


def verify(  # noqa: PLR0913 - the evidence that the command takes
    public: PathLike,
    auditor: PathLike | None = None,
    *,
    ledger: PathLike | None = None,
    trust: Sequence[PathLike] = (),
    since: PathLike | None = None,
    witness: Sequence[PathLike] = (),
    require: Literal["none", "signed", "paid", "witnessed"] = "signed",
) -> Verdict:
    """Check a release without the confidential data: list what is proved, tested, and on trust.

    ``auditor`` is the auditor's folder of this release. ``trust`` lists public keys of the
    curator, or files with them, ``witness`` those of witnesses. ``since`` is an older checkpoint
    of the ledger. ``require`` is the least evidence that is not missing; ``status`` of the verdict
    is 0 where nothing is.

    Raises:
        SpecError: an argument is wrong.
        VerificationError: a check failed; the message names the file and both values.
    """
    from release.bundle.opened import release_in
    from release.bundle.publish import ledger_folder
    from release.verification.evidence import Required, Trust
    from release.verification.keys import read_trusted, read_witnesses
    from release.verification.verifier import verify as check

    if since is not None and ledger is None:
        raise SpecError("since", "an older checkpoint is compared with a ledger; give ledger too")
    evidence = Trust(
        None if ledger is None else ledger_folder(_path("ledger", ledger)),
        read_trusted(str(key) for key in _listed("trust", trust)),
        None if since is None else _path("since", since),
        member("require", Required, require),
        read_witnesses(str(key) for key in _listed("witness", witness)),
    )
    bundle = None if auditor is None else _path("auditor", auditor)
    if bundle is not None and not bundle.is_dir():
        raise SpecError("auditor", f"no folder {bundle}; name OUT/auditor/RELEASE")
    return check(release_in(_path("public", public), "public"), bundle, evidence)


def _listed(name: str, keys: object) -> Iterable[object]:
    # A single key is text too, and its letters would be read as keys.
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise SpecError(
            name, f"found {safe_text(keys)}; write a list of keys, or of files with them"
        )
    return keys


def check(
    spec: PathLike,
    *,
    tables: Mapping[str, pd.DataFrame] | None = None,
    period: str | None = None,
) -> Rehearsal:
    """Rehearse a run against its tables. Confidential: for the curator only; ``.show()`` prints it.

    ``tables`` and ``period`` are as for :func:`run`. Nothing is charged, drawn or published. What a
    run would be refused for stands in ``refusals``, and what the answers leave out, in shares, in
    ``left_out``.

    Raises:
        SpecError: the spec is wrong.
    """
    from release.noise.cache import default_cache
    from release.operate.rehearsal.rehearse import check_run

    if not isinstance(tables, Mapping | None):
        raise SpecError("tables", f"found {type(tables).__name__}; give a dict of frames by name")
    spec_file = _spec_file(spec, period)
    return check_run(spec_file, default_cache(), frames=dict(tables or {}))


def dataset(  # noqa: PLR0913 - what a spec says of a table
    frame: Any,
    *,
    unit: str,
    rows: int,
    keys: Mapping[str, Any] | None = None,
    neighbors: Literal["add_remove", "replace_one"] = "add_remove",
    columns: Mapping[str, str] | None = None,
    name: str = "rows",
    **privacy: Any,
) -> Dataset:
    """A confidential frame from which releases are written in Python; see :mod:`release.drafts`.

    ``unit`` is the column that names whom the guarantee protects, and ``rows`` the most rows of a
    unit that a question reads: known without the frame. ``keys`` are the public keys of each key
    column. ``columns`` gives types where the dtype does not say them, such as ``{"day": "date"}``.
    ``privacy`` are further fields of ``privacy`` in a spec, such as ``fixed``. ::

        flights = release.dataset(frame, unit="tailnum", rows=10, keys={"origin": ["EWR", "JFK"]})
        draft = flights.release("flights-2013", epsilon=2)
        draft.count("planes", of="tailnum", by=["origin"])
        draft.plan()
        draft.run("out")

    Raises:
        SpecError: ``frame`` is none, or ``columns`` names one that is not there.
    """
    from release.drafts import Dataset, Verbs, plain, types_of

    types = types_of(frame, columns or {})
    if "max_rows_per_unit" in privacy:
        raise SpecError("max_rows_per_unit", "it is called rows here; give one of them")
    protected = {"unit": unit, "neighbors": neighbors, "max_rows_per_unit": plain("rows", rows)}
    for field, value in privacy.items():
        protected[field] = plain(field, value)
    if not isinstance(keys, Mapping | None):
        raise SpecError("keys", 'write the keys of each column, such as {"origin": ["EWR", "JFK"]}')
    public = {column: plain(f"keys.{column}", values) for column, values in (keys or {}).items()}
    return Dataset(frame, types, protected, public, name, Verbs(run, plan, check))


def plan(spec: PathLike, period: str | None = None, season: int | None = None) -> Plan:
    """The accuracy and the charge of a spec, before any table is read.

    ``season`` asks what so many releases like this one amount to together.

    Raises:
        SpecError: the spec is wrong, or ``season`` is no number of releases.
        BudgetError: a budget that is shared out cannot meet a target.
        DesignError: no mechanism satisfies a guarantee of the spec.
    """
    from release.noise.cache import default_cache
    from release.noise.design import GAP
    from release.noise.stage import solvers_of
    from release.planning.recommend import make_advised_plan

    # A plan depends on no table, so every mechanism of it may go into the cache.
    cache = default_cache()
    spec_file = _spec_file(spec, period)
    return make_advised_plan(spec_file, solvers_of(cache, GAP), cache, season)


def read_spec(path: PathLike, period: str | None = None) -> SpecFile:
    """Read and check a spec and the public files that it names.

    Raises:
        SpecError: the spec is wrong; the message names the field and the remedy.
    """
    return _spec_file(path, period, "path")


def design(  # noqa: PLR0913 - the parameters of a mechanism
    answers: int,
    topology: Literal["nominal", "ordered", "cyclic"] = "nominal",
    *,
    sensitivity: Sequence[int],
    epsilon: Number,
    delta: Number = 0,
    definition: Literal["pure", "probabilistic", "approximate"] | None = None,
    loss: str = "error_rate",
    mechanism: str = "best",
) -> AnyDesign:
    """The mechanism of least loss for ``answers`` possible answers, proved.

    ``sensitivity`` lists the differences that one unit can make in an answer's code; each counts
    with both signs. The default ``definition`` is pure if ``delta`` is 0, else approximate.

    Raises:
        SpecError: an argument is wrong, such as a difference that no two answers have.
        DesignError: no mechanism of the family satisfies the guarantee.
    """
    from release.exact.domain import AnswerDomain, Topology
    from release.exact.losses import LossName
    from release.exact.privacy import Definition, Guarantee
    from release.exact.sensitivity import Sensitivity, check_shifts
    from release.noise.design import Asked
    from release.noise.select import choose
    from release.spec.domains import MAX_ANSWERS, MOST_IN_ORDER
    from release.spec.losses import loss_on
    from release.spec.mechanisms import check_name

    size, steps = _integer(answers), _integers("sensitivity", sensitivity)
    shape = member("topology", Topology, topology)
    largest = MOST_IN_ORDER if shape is Topology.ORDERED else MAX_ANSWERS
    if size is None or not 2 <= size <= largest:
        allowed = f"an integer from 2 to {largest}"
        raise SpecError("answers", f"found {safe_text(answers)}; write {allowed}")
    name = member("loss", LossName, loss)
    try:
        family = check_name(mechanism)
    except ValueError as error:
        raise SpecError("mechanism", str(error)) from None
    most = exact("delta", delta)
    kind = member("definition", Definition, definition or ("approximate" if most else "pure"))
    domain, shifts = AnswerDomain(shape, range(size)), [(step,) for step in steps]
    try:
        check_shifts(domain.parts, shifts)
    except ValueError as error:
        raise SpecError("sensitivity", str(error)) from None
    try:
        guarantee = Guarantee(kind, exact("epsilon", epsilon), most)
    except ValueError as error:
        raise SpecError("design", str(error)) from None
    # On a line no answer has neighbors beyond its ends; everywhere else shifts wrap round.
    is_line = shape is Topology.ORDERED
    moves = Sensitivity.on_line(size, steps) if is_line else Sensitivity.of(domain.group, shifts)
    return choose(Asked(domain, moves, guarantee, loss_on(name, domain), name), family)


def estimate(public: PathLike, query: str, *, level: float = 0.95) -> Estimates:
    """Estimates of the true answers of a query, cell by cell, from its published answers.

    ``level`` is the mass of the credible intervals, above 0 and below 1.

    ``public`` is the folder of a release, or that of the outputs where it holds one alone.

    Raises:
        SpecError: there is no such release or query, its mechanism is not public, or the level is
            wrong.
        DesignError: the domain is too large for estimates.
    """
    from release.analysis.estimation import check_level, estimates_of
    from release.bundle.opened import open_public, release_in

    check_level(level)
    folder = release_in(_path("public", public), "public")
    return estimates_of(open_public(folder), query, level)


def open(folder: PathLike) -> Opened:  # noqa: A001 - the verb; nothing here opens a file
    """The published tables of a release by the names of their queries.

    Those of tabulations are opened by its method ``table``, and listed by ``tables``.
    ``folder`` is the public folder of a release, or that of the outputs where it holds one alone.

    Raises:
        SpecError: the folder holds no release, or several.
        VerificationError: its record is not what it was when it was written.
    """
    from release.analysis.opened import open_release
    from release.bundle.opened import release_in

    return open_release(release_in(_path("folder", folder), "folder"))


def _spec_file(spec: PathLike, period: str | None, name: str = "spec") -> SpecFile:
    from release.queries.read import read_spec as read

    return read(_path(name, spec), _period(period))


def _path(name: str, value: PathLike) -> Path:
    try:
        return Path(value)
    except TypeError:
        found = type(value).__name__
        if found == "Draft":
            raise SpecError(name, "found a draft; call its own plan, check or run") from None
        raise SpecError(name, f"found {found}; write a path") from None


def _period(period: str | None) -> Period | None:
    from release.spec.periods import parse_period

    if period is None:
        return None
    if not isinstance(period, str):
        raise SpecError("period", f"found {safe_text(period)}; write text such as '2024-01'")
    return parse_period(period, "period")


def _integer(value: Any) -> int | None:
    """The integer, of Python or NumPy; None for any other value, and for True and False."""
    # operator.index refuses floats, also whole ones: int() would round them.
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _integers(name: str, values: Any) -> list[int]:
    integers = []
    # A value that cannot be iterated is refused as one that holds no integer.
    for value in values if isinstance(values, Iterable) else [None]:
        number = _integer(value)
        if number is None:
            raise SpecError(name, f"found {safe_text(values)}; write a list of integers")
        integers.append(number)
    return integers
