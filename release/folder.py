"""Publishing: the release folder, written aside, synced and renamed, all of it or nothing.

The public half holds what everyone may see. Where differences were seen in the data, the law, the
differences and the accuracy depend on the data too, so they go to the auditor's half (mode 0700)
and the public half holds a salted commitment. The rename of the public half is the moment of
publication; an auditor's half without a public one was never published.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from release.agreement import (
    ENFORCED_BY,
    SUMS,
    accuracy_of,
    adjacency_text,
    epsilon_everywhere,
    guarantee_kind,
    limits,
    withheld,
)
from release.answers import Codes
from release.charge import Charge, Charges
from release.errors import SpecError, StorageError
from release.exact import format_down, format_exact, format_up
from release.guarantee import deltas
from release.hashes import commit, sha256
from release.ladder import Design
from release.log import (
    ChargeRecord,
    Composition,
    DesignRecord,
    DifferencesRecord,
    GuaranteeRecord,
    LawCommitment,
    LawFile,
    LawRecord,
    LedgerRecord,
    Opening,
    OpeningsRecord,
    OutputFile,
    PrivacyRecord,
    QueryRecord,
    Recomputed,
    ReleaseGuarantee,
    ReleaseRecord,
    Sampling,
    Software,
    canonical,
    definition_name,
)
from release.reading import SpecFile
from release.released import released_bytes
from release.report import PublicQuery, report_html
from release.spec import Query, answer_domain, plain_domain
from release.version import VERSION

_PUBLIC_FILE = 0o644


@dataclass(frozen=True, repr=False)
class Result:
    """One query ready to be published: its law and its noisy answers, in the order of ``keys``."""

    query: Query
    keys: tuple[tuple[str, ...], ...]
    design: Design
    charge: Charge
    noisy: Codes


def law_record(query: Query, design: Design) -> LawRecord:
    """The law file of one query; every figure in it is recomputed from the integers."""
    law, group = design.law, design.law.group
    found = deltas(law, design.differences, design.guarantee.epsilon)
    notes = list(design.notes)
    if law.has_zero_mass:
        notes.append("some noise values never occur: ε over all differences is infinite")
    return LawRecord(
        schema="dp-release/law/v1",
        query=query.name,
        mechanism="modular",
        group=list(group.moduli),
        weights=[str(weight) for weight in law.weights.tolist()],
        total=str(law.total),
        differences=[list(shift) for shift in design.differences.shifts],
        directed=design.differences.directed,
        guarantee=GuaranteeRecord(
            definition=definition_name(design.guarantee.definition),
            epsilon=format_exact(design.guarantee.epsilon),
            delta=format_exact(design.guarantee.delta),
        ),
        recomputed=Recomputed(
            delta_probabilistic=format_exact(found.probabilistic),
            delta_approximate=format_up(found.approximate, 60),
            epsilon_all_differences=epsilon_everywhere(law),
        ),
        design=DesignRecord(
            method=design.method,
            loss=design.loss.name,
            objective=format_up(design.objective, 18),
            lower_bound=format_down(design.lower_bound, 18),
            bound="proved" if design.bound_proved else "solver",
            gap=format_up(design.gap, 18),
            solver=design.solver,
            notes=notes,
        ),
        accuracy=accuracy_of(law, answer_domain(query).parts),
    )


def check_free(out: Path, release_id: str) -> None:
    """Refuse an output folder in which the release stands already.

    Raises:
        SpecError: it does.
    """
    if (out / "public" / release_id).exists():
        raise SpecError(
            "--out",
            f"{release_id!r} is published there already; take another folder or a new release id",
        )


def publish(
    spec_file: SpecFile,
    results: tuple[Result, ...],
    charged: Charges,
    out: Path,
    kind: Literal["RELEASE", "TEST"],
    published: datetime.date,
) -> Path:
    """Write the release into ``out`` and return its public folder.

    Raises:
        SpecError: the release stands there already.
        StorageError: the disk is full or read-only; nothing is left behind.
    """
    release_id = spec_file.spec.release.id
    check_free(out, release_id)
    with _staging(out) as staging:
        public, auditor = staging / "public", staging / "auditor"
        writer = _Writer(spec_file, public, auditor)
        for result in results:
            writer.add(result)
        record = release_record(spec_file, results, charged, writer.records, kind, published)
        writer.finish(record)
        _sync_tree(staging)
        final = out / "public" / release_id
        with _alone_in(out):
            # Another run may have published it since the first look.
            check_free(out, release_id)
            if auditor.exists():
                half = out / "auditor" / release_id
                _make_folder(half.parent, 0o700)
                # Without its public half it was never published: a run was cut off there.
                shutil.rmtree(half, ignore_errors=True)
                auditor.rename(half)
            _make_folder(final.parent, 0o755)
            public.rename(final)
        # Published from here on; a sync that fails now changes nothing about that.
        _quietly(lambda: _sync(final.parent))
    return final


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Hold the output folder's lock, which goes with the process and leaves no file."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(folder: Path, mode: int) -> None:
    """Make the folder and those above it with exactly this mode, whatever the umask."""
    # One by one, because mkdir gives its mode to the last folder only.
    for part in reversed((folder, *folder.parents)):
        if not part.exists():
            part.mkdir(exist_ok=True)
            part.chmod(mode)


class _Writer:
    """Writes the files of both halves into the staging folder and remembers their records."""

    def __init__(self, spec_file: SpecFile, public: Path, auditor: Path) -> None:
        self._spec_file = spec_file
        self._public = public
        self._auditor = auditor
        self._openings: dict[str, Opening] = {}
        self._seen: list[PublicQuery] = []

    def add(self, result: Result) -> None:
        query, spec = result.query, self._spec_file.spec
        law_json = law_record(query, result.design)
        law_bytes = canonical(law_json)
        law_path, data_path = f"laws/{query.name}.json", f"data/{query.name}.parquet"
        instance = query.is_empirical
        law: LawFile | LawCommitment
        if instance:
            key = secrets.token_bytes(32)
            commitment = commit(key, law_bytes)
            law = LawCommitment(commitment=commitment)
            self._openings[law_path] = Opening(key=key.hex(), commitment=commitment)
            _write(self._auditor / law_path, law_bytes, 0o600)
            shifts = [list(shift) for shift in result.design.differences.shifts]
            differences = DifferencesRecord(
                schema="dp-release/differences/v1",
                query=query.name,
                source=query.source,
                neighbours=spec.privacy.neighbours.value,
                group=list(result.design.law.group.moduli),
                differences=shifts,
            )
            path = self._auditor / "differences" / f"{query.name}.json"
            _write(path, canonical(differences), 0o600)
        else:
            law = LawFile(path=law_path, sha256=sha256(law_bytes))
            _write(self._public / law_path, law_bytes)
        data = released_bytes(spec.release.id, query, result.keys, result.noisy)
        _write(self._public / data_path, data)
        output = OutputFile(path=data_path, sha256=sha256(data), rows=len(result.keys))
        record = query_record(result, law, output)
        codes = tuple(result.noisy.tolist())
        self._seen.append(
            PublicQuery(query, record, result.keys, codes, None if instance else law_json)
        )

    @property
    def records(self) -> list[QueryRecord]:
        return [public.record for public in self._seen]

    def finish(self, record: ReleaseRecord) -> None:
        _write(self._public / "spec.yaml", self._spec_file.text)
        _write(self._public / "release.json", canonical(record))
        _write(self._public / "report.html", report_html(record, tuple(self._seen)).encode())
        if self._openings:
            openings = OpeningsRecord(
                schema="dp-release/openings/v1",
                release_id=record.release_id,
                openings=self._openings,
            )
            _write(self._auditor / "openings.json", canonical(openings), 0o600)
        files = sorted(p for p in self._public.rglob("*") if p.is_file())
        sums = [f"{sha256(p.read_bytes())}  {p.relative_to(self._public)}\n" for p in files]
        _write(self._public / SUMS, "".join(sums).encode())


def query_record(result: Result, law: LawFile | LawCommitment, output: OutputFile) -> QueryRecord:
    """What ``release.json`` says of one query."""
    query = result.query
    return QueryRecord(
        name=query.name,
        kind=query.kind,
        by=query.by,
        cells=len(result.keys),
        domain=plain_domain(query),
        definition=definition_name(query.promised.definition),
        epsilon=format_exact(query.promised.epsilon),
        delta=format_exact(query.promised.delta),
        parallel=result.charge.parallel,
        charge=ChargeRecord(
            epsilon=format_exact(result.charge.epsilon), delta=format_exact(result.charge.delta)
        ),
        guarantee_kind=guarantee_kind((query,)),
        differences_source=query.source,
        mechanism="modular",
        law=law,
        output=output,
    )


def release_record(
    spec_file: SpecFile,
    results: tuple[Result, ...],
    charged: Charges,
    queries: list[QueryRecord],
    kind: Literal["RELEASE", "TEST"],
    published: datetime.date,
) -> ReleaseRecord:
    """``release.json``, from the spec and the public sides of the results."""
    spec, info = spec_file.spec, spec_file.spec.release
    whole = guarantee_kind(tuple(result.query for result in results))
    instance = whole == "instance-specific"
    epsilon, delta = format_exact(charged.epsilon), format_exact(charged.delta)
    privacy = spec.privacy
    return ReleaseRecord(
        schema="dp-release/release/v1",
        release_id=info.id,
        kind=kind,
        published=published.isoformat(),
        title=info.title,
        curator=info.curator,
        contact=info.contact,
        purpose=info.purpose,
        period=info.period,
        licence=info.licence,
        privacy=PrivacyRecord(
            unit=privacy.unit,
            neighbours=privacy.neighbours.value,
            adjacency_text=adjacency_text(privacy),
            max_rows_per_unit=privacy.max_rows_per_unit,
            fixed=privacy.fixed,
            enforced_by=ENFORCED_BY,
        ),
        guarantee=ReleaseGuarantee(
            kind=whole,
            definition=definition_name(charged.definition),
            epsilon=epsilon,
            delta=delta,
        ),
        queries=queries,
        composition=Composition(rule="basic-v1", epsilon=epsilon, delta=delta),
        sampling=Sampling(source="os", method="inverse-cdf-integer", seeded=kind == "TEST"),
        invariants=[],
        post_processing=[],
        ledger=LedgerRecord(scope=spec.budget.scope, sequence=None),
        software=Software(
            dp_release=VERSION,
            python=platform.python_version(),
            duckdb=version("duckdb"),
            highs=version("highspy"),
        ),
        withheld=withheld(instance=instance),
        limits=limits(instance=instance),
    )


@contextmanager
def _staging(out: Path) -> Iterator[Path]:
    """A private folder beside the final one; it is gone afterwards, whatever happened."""
    created = [folder for folder in (out, *out.parents) if not folder.exists()]
    staging = out / f".staging-{secrets.token_hex(8)}"
    done = False
    try:
        staging.mkdir(mode=0o700, parents=True)
        yield staging
        done = True
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{out}: the release cannot be written ({problem})") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not done:
            for folder in (out / "auditor", out / "public", *created):
                _quietly(folder.rmdir)


def _quietly(action: Callable[[], None]) -> None:
    """Clean up as far as it goes: a folder that is not empty or not ours stays."""
    try:
        action()
    except OSError:
        return


def _write(path: Path, data: bytes, mode: int = _PUBLIC_FILE) -> None:
    _make_folder(path.parent, 0o755 if mode == _PUBLIC_FILE else 0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_tree(root: Path) -> None:
    for folder in (root, *(p for p in root.rglob("*") if p.is_dir())):
        _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
