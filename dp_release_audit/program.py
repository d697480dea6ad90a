"""The program, run on one tiny table: its true answers, or every byte that it writes and prints.

A whole run publishes the same noisy answers whatever the true ones are, so that whatever differs
between two tables got out another way. What the program draws at random beside its noise (the name
of a run, the keys of commitments) is fixed for the same reason.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dp_release_audit.elsewhere import noting
from dp_release_audit.storing import emptied, rewritten, write_spec, write_tables
from dp_release_audit.tables import Case
from dp_release_audit.words import Stream
from release.at_work import AtWork
from release.budget.cost import Charges
from release.budget.ledger import ScopeCap, create_ledger
from release.errors import BudgetError, ReleaseError
from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.job import Job, Options, Perform, Stage, walk
from release.noise.cache import DesignCache
from release.noise.unseen import Unseen
from release.queries.read import read_spec
from release.records.keys.files import FileSigner
from release.spec.load import SpecFile
from release.street import between, decide, run_release
from release.tables.duckdb import Engine

T = TypeVar("T")

_DECIDING = frozenset({"share", "measure", "design", "rehearse"})
_DAY = datetime.date(2024, 1, 1)
_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
_DIGEST = re.compile(rb"[0-9a-f]{64}|[A-Za-z0-9+/]{43,}={0,2}")


@dataclass(frozen=True)
class Answers:
    """What noise is put on in one table: for each query its run and the integers of each cell."""

    runs: tuple[AtWork, ...]
    truths: tuple[Codes, ...]


@dataclass
class Seen:
    """What a whole run gave away: files and streams by name. ``runs`` is None if it was refused.

    ``elsewhere`` are the calls that reached beyond the folders that are compared.
    """

    files: dict[str, bytes]
    runs: tuple[AtWork, ...] | None = None
    charged: Charges | None = None
    is_system: bool = True
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class _Frozen(AtWork):
    """A query that publishes the ``fixed`` codes, whatever it would draw."""

    fixed: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def draw(self, source: RandomBytes) -> Codes:
        super().draw(source)
        return self.fixed


class Program:
    """Runs the program on tables of one spec, in a private folder."""

    def __init__(self, spec_file: SpecFile, folder: Path, spark: str | None = None) -> None:
        self._folder = folder
        self.plain, self.cut = rewritten(spec_file, folder)
        self._engine = Engine(threads=1, spark=spark)
        self._is_spark = spark is not None
        self._cache = DesignCache(folder / "cache")
        self._inputs = emptied(folder / "in")
        self._given: tuple[Codes, ...] | None = None
        self._form = "parquet"
        self._without_data: dict[tuple[str, str], tuple[Unseen, tuple[AtWork, ...]]] = {}
        self._designs: list[tuple[list[Any], tuple[AtWork, ...]]] = []
        self._answering = Options(cache=self._cache, engine=self._engine, is_audited=False)
        self.spec_file = read_spec(write_spec(self.plain, "parquet", self._inputs))
        self._decided = decide(self.spec_file, self._answering)

    def answers(self, case: Case) -> Answers:
        """The true answers and the mechanisms of a table; nothing is published.

        Raises:
            ReleaseError: the table is refused.
        """
        write_tables(self.spec_file, case, "parquet", self._inputs)
        decided = self._decided
        with Job(self._answering) as job:
            job.take(decided.unseen)
            job.runs = decided.runs
            walk(between("load", "move"), job)
            self._fit(job)
            return Answers(job.runs, tuple(truth_of(run) for run in job.runs))

    def _fit(self, job: Job) -> None:
        """Fit the mechanisms; equal questions are asked once."""
        questions = [run.moves for run in job.runs]
        for earlier, fitted in self._designs:
            if earlier == questions:
                both = zip(job.runs, fitted, strict=True)
                job.runs = tuple(replace(run, design=own.design) for run, own in both)
                return
        walk(between("fit", "fit"), job)
        self._designs.append((questions, job.runs))

    def process_folder(self) -> Path:
        """An empty folder for a release by a process of its own."""
        return emptied(self._folder / "process")

    def whole(self, case: Case, form: str = "parquet", *, backwards: bool = False) -> Seen:
        """Everything that a run on a table writes or prints, with noisy answers that are fixed."""
        out, scratch = emptied(self._folder / "out"), emptied(self._folder / "scratch")
        self._form = form
        path = write_spec(self.plain, form, emptied(self._inputs))
        write_tables(self.spec_file, case, form, self._inputs, backwards=backwards)
        key = self._write_key()
        # Ample, so that nothing is refused for its budget here.
        cap = ScopeCap(scope=self.spec_file.spec.budget.scope, epsilon="100000", delta="0.99")
        create_ledger(
            out / "ledger", FileSigner(_KEY), "audit.example/dp", (cap,), _DAY.isoformat()
        )
        before = _bytes_below(self._inputs)
        output = Seen({})
        options = Options(cache=self._cache, engine=self._engine, key=key)
        printed, complained = io.StringIO(), io.StringIO()
        status = 0
        with (
            _fixed(scratch),
            noting(self._folder) as elsewhere,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(complained),
        ):
            try:
                run_release(path, out, self._performing(output), published=_DAY, options=options)
            except Exception as error:
                # What a foreign message says never reaches a person either.
                text = str(error) if isinstance(error, ReleaseError) else type(error).__name__
                sys.stderr.write(f"error: {text}")
                status = getattr(error, "exit_status", 1)
        # Spark's driver talks to its JVM, and starts it.
        output.elsewhere = () if self._is_spark else tuple(dict.fromkeys(elsewhere.calls))
        output.files = {"standard output": printed.getvalue().encode()}
        output.files["standard error"] = complained.getvalue().encode()
        output.files["exit status"] = str(status).encode()
        if _bytes_below(self._inputs) != before:
            output.files["inputs"] = b"changed"
        for place in (out, scratch):
            for name, data in _bytes_below(place).items():
                output.files[f"{place.name}/{name}"] = data
        if any(query.is_empirical for query in self.spec_file.spec.released):
            output.files = {name: _masked(name, data) for name, data in output.files.items()}
        return output

    def spend(self, case: Case, cap: ScopeCap, most: int) -> int:
        """How many releases of a table a new ledger lets through, of ``most`` that are tried."""
        out, released = emptied(self._folder / "out"), 0
        write_spec(self.plain, "parquet", emptied(self._inputs))
        write_tables(self.spec_file, case, "parquet", self._inputs)
        key = self._write_key()
        create_ledger(
            out / "ledger", FileSigner(_KEY), "audit.example/dp", (cap,), _DAY.isoformat()
        )
        options = Options(cache=self._cache, engine=self._engine, key=key, is_rehearsed=False)
        for number in range(most):
            named = self.plain | {"release": self.plain["release"] | {"id": f"spent-{number}"}}
            path = write_spec(named, "parquet", self._inputs)
            try:
                run_release(path, out, published=_DAY, options=options)
            except BudgetError:
                break
            released += 1
        return released

    def _write_key(self) -> Path:
        key = self._inputs / "key"
        key.write_bytes(_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key.chmod(0o600)
        return key

    def _performing(self, output: Seen) -> Perform:
        def perform(stage: Stage, job: Job) -> None:
            if stage.name in _DECIDING:
                # No table has been opened yet: once for all of them is enough.
                self._decide_once(stage, job)
            elif stage.name == "draw":
                self._draw(output, stage, job)
            else:
                stage.does(job)
            if stage.name == "charge":
                output.charged = job.price

        return perform

    def _decide_once(self, stage: Stage, job: Job) -> None:
        key = stage.name, self._form
        if key not in self._without_data:
            stage.does(job)
            self._without_data[key] = job.unseen, job.runs
        decided, runs = self._without_data[key]
        job.take(decided)
        job.runs = runs

    def _draw(self, output: Seen, stage: Stage, job: Job) -> None:
        output.runs = job.runs
        output.is_system = job.source is SYSTEM
        job.source = Stream("given")
        if self._given is None:
            stage.does(job)
            self._given = job.noisy
            return
        frozen = []
        for run, codes in zip(job.runs, self._given, strict=True):
            values = {name: getattr(run, name) for name in AtWork.__dataclass_fields__}
            frozen.append(_Frozen(**values, fixed=codes))
        job.runs = tuple(frozen)
        stage.does(job)


def truth_of(run: AtWork) -> Codes:
    """The integers that a query's noise is put on, one row a cell."""
    return np.concatenate(list(run.truths()))


@contextlib.contextmanager
def _fixed(scratch: Path) -> Iterator[None]:
    """Fix what is drawn at random beside noise, and where temporary files are made."""
    token_bytes, tempdir = secrets.token_bytes, tempfile.tempdir
    writes_no_bytecode = sys.dont_write_bytecode

    def fixed_bytes(nbytes: int | None = None) -> bytes:
        return bytes(nbytes or 32)

    try:
        secrets.token_bytes = fixed_bytes
        tempfile.tempdir = str(scratch)
        # A module that is loaded for the first time is not written beside its source.
        sys.dont_write_bytecode = True
        yield
    finally:
        secrets.token_bytes, tempfile.tempdir = token_bytes, tempdir
        sys.dont_write_bytecode = writes_no_bytecode


def _bytes_below(folder: Path) -> dict[str, bytes]:
    contents = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        contents[name] = path.read_bytes() if path.is_file() else b"a folder"
    return contents


def _masked(name: str, data: bytes) -> bytes:
    """A file without digests, commitments and signatures; the auditor's files are confidential."""
    if "/auditor/" in f"/{name}":
        return b"confidential"
    return _DIGEST.sub(b"#", data)
