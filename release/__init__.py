"""dp-release: differentially private tables with provably least noise and a log that re-proves it.

The verbs are plain functions of this module; a path may be text::

    import release

    release.run("data/persons.yaml", "out")                       # load, answer, draw, publish
    release.verify("out/public/census-2024", require="none")      # proved, tested, asserted
    release.open("out/public/census-2024")["minors_by_tract"].to_pandas()
    release.design(24, "cyclic", sensitivity=[1], epsilon=1, loss="squared").gap

Importing the package loads none of the libraries beneath; each loads where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

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
from release.exact.numbers import exact
from release.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

    from release.analysis.estimation import Estimates
    from release.analysis.opened import Opened
    from release.noise.families import AnyDesign
    from release.pipeline import Published
    from release.planning.plan import Plan
    from release.spec.load import SpecFile
    from release.verification.verifier import Verdict

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
    """Run a release: load, answer, design the noise, charge, draw, publish, verify.

    ``tables`` gives frames for tables of the spec, by name, in place of the files that it names.
    ``key`` is the file of the key that signs for the ledger in ``out``; ``period`` fills in a spec
    template; ``accept_gap`` is the share of its loss that a better mechanism might save.

    Raises:
        ReleaseError: refused; nothing was published and nothing is left behind.
    """
    from release.noise.cache import default_cache
    from release.pipeline import Options, run_release
    from release.spec.periods import parse_period

    options = Options(
        accept_gap=exact("accept_gap", accept_gap),
        cache=default_cache(),
        key=None if key is None else Path(key),
        period=None if period is None else parse_period(period),
        frames=dict(tables or {}),
    )
    return run_release(Path(spec), Path(out), options=options)


def verify(
    public: PathLike,
    auditor: PathLike | None = None,
    *,
    ledger: PathLike | None = None,
    trust: Sequence[str] = (),
    since: PathLike | None = None,
    require: Literal["signature", "none"] = "signature",
) -> Verdict:
    """Check a release without the confidential data; what is proved, tested and only asserted.

    ``auditor`` is the folder of this release in the auditor bundle; ``trust`` holds public keys of
    the curator, or the paths of files with them; ``since`` is an older checkpoint of the ledger.

    Raises:
        SpecError: an argument that cannot be meant.
        VerificationError: a check failed; which file, what was found and what was expected.
    """
    from release.records.signing import read_public_key
    from release.verification.provenance import Trust
    from release.verification.required import Required
    from release.verification.verifier import verify as check

    if since is not None and ledger is None:
        raise SpecError("since", "an older checkpoint is held against a ledger; give ledger too")
    if require not in list(Required):
        raise SpecError("require", f"found {require!r}; write 'signature' or 'none'")
    brought = Trust(
        None if ledger is None else Path(ledger),
        tuple(read_public_key(text) for text in trust),
        None if since is None else Path(since),
        Required(require),
    )
    return check(Path(public), None if auditor is None else Path(auditor), brought)


def plan(spec: PathLike, period: str | None = None) -> Plan:
    """The accuracy and the charge of a spec, before any table is read.

    Raises:
        SpecError, DesignError: the spec cannot be meant, or nothing satisfies its guarantees.
    """
    from release.noise.cache import default_cache
    from release.noise.design import GAP
    from release.noise.stage import solvers_of
    from release.planning.plan import make_plan

    return make_plan(read_spec(spec, period), solvers_of(default_cache(), GAP))


def read_spec(path: PathLike, period: str | None = None) -> SpecFile:
    """Read and check a spec, and the public files that it names.

    Raises:
        SpecError: anything that cannot be meant; the message names the field and the remedy.
    """
    from release.queries.read import read_spec as read
    from release.spec.periods import parse_period

    return read(Path(path), None if period is None else parse_period(period))


def design(  # noqa: PLR0913 - what a mechanism is chosen for
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

    ``sensitivity`` lists by how much one unit can move an answer; it is closed under negation. The
    definition is pure where ``delta`` is 0, else approximate, unless it is named.

    Raises:
        SpecError: an argument that cannot be meant.
        DesignError: no mechanism of the family satisfies the guarantee.
    """
    from release.exact.domain import AnswerDomain, Topology
    from release.exact.losses import LossName, named_loss
    from release.exact.privacy import Definition, Guarantee
    from release.exact.sensitivity import Sensitivity
    from release.noise.design import Asked
    from release.noise.select import choose

    try:
        domain = AnswerDomain(Topology(topology), tuple(range(answers)))
        name, shape = LossName(loss), Topology(topology)
        found = (
            Sensitivity.on_line(answers, sensitivity)
            if shape is Topology.ORDERED
            else Sensitivity.of(domain.group, [(step,) for step in sensitivity])
        )
        allowed = exact("delta", delta)
        kind = Definition(definition or ("approximate" if allowed else "pure"))
        guarantee = Guarantee(kind, exact("epsilon", epsilon), allowed)
        asked = Asked(domain, found, guarantee, named_loss(name, shape, answers), name)
    except ValueError as error:
        raise SpecError("design", str(error)) from error
    return choose(asked, mechanism)


def estimate(public: PathLike, query: str, *, level: float = 0.95) -> Estimates:
    """What the published answers of a query say of the true ones, cell by cell.

    Raises:
        SpecError: no such query, or its noise is not public.
        DesignError: the domain has more answers than an estimate is made for.
    """
    from release.analysis.estimation import estimate_release

    return estimate_release(Path(public), query, level=level)


def open(folder: PathLike) -> Opened:  # noqa: A001 - the verb; nothing here opens a file
    """The published tables of a release, by the names of their queries.

    Raises:
        VerificationError: the folder is no release.
    """
    from release.analysis.opened import open_release

    return open_release(Path(folder))
