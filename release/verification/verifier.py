"""The verifier: reads the files of a release alone, and loads no engine and no solver.

It recomputes every figure that the files decide, and lists what they cannot show: each finding is
proved, tested or asserted. A check that fails raises :class:`VerificationError`; there are no
warnings.
"""

from __future__ import annotations

import datetime
import hmac
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Literal, TypeAlias

from dp_release_verify.digests import commit
from release.budget.cost import Kept, Satisfied, release_step, satisfied
from release.bundle.acceptance import judged
from release.bundle.evidence.record import AUDIT, AuditRecord
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry, table_sizes
from release.bundle.read import (
    hash_of_file,
    on_answers,
    parse_mechanism,
    read_any_mechanism,
    read_file,
    read_record,
)
from release.bundle.statements import (
    ATTESTATION,
    ENFORCED_BY,
    INSTANCE_LIMITS,
    INSTANCE_WITHHELD,
    LIMITS,
    NO_LEDGER_WITHHELD,
    PROOF,
    SUMS,
    adjacency_text,
    guarantee_kind,
    invariants,
    limits,
    post_processing,
    rests_on,
    withheld,
)
from release.bundle.tables.answers import check_released
from release.errors import ReleaseError, SpecError, VerificationError
from release.exact.domain import Codes
from release.exact.losses import LossName
from release.exact.mechanism import BoundOf
from release.exact.numbers import format_exact, format_up
from release.exact.sensitivity import Sensitivity
from release.queries.read import parse_spec
from release.queries.registry import global_sensitivity, rows_read
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import (
    MechanismCommitment,
    MechanismFile,
    OpeningsRecord,
    QueryRecord,
    ReleaseRecord,
    SensitivityRecord,
    Software,
)
from release.records.statistics import StatisticRecord
from release.spec.declarations import KeyFile
from release.spec.key_sets import check_keys, declared_keys, key_text
from release.spec.load import SPEC_JSON, SpecFile, spec_json
from release.spec.mechanisms import BEST, ON_STATISTIC, chosen_unseen, formats
from release.spec.model import Spec
from release.spec.named import names_of
from release.spec.query import PlainQuery, Query
from release.verification.audit_record import check_audit_record
from release.verification.checks import CHECKS, Level
from release.verification.composition import ProfileChecks, check_charges, with_stated
from release.verification.conditions import check_expressions
from release.verification.findings import Finding, checking, completed, made
from release.verification.mechanisms import check_mechanism, excerpt, expect
from release.verification.provenance import Trust, check_provenance
from release.verification.required import Evidence
from release.verification.residuals import CHANCE, Released, is_total_of, residuals
from release.verification.statistics import check_statistic
from release.verification.tabulations import (
    asserted_of,
    check_tables,
    open_published,
    with_measured,
)

Table: TypeAlias = tuple[tuple[tuple[str, ...], ...], Codes]
"""The keys of a released table, and the first column that was drawn: the codes of counts."""


@dataclass(frozen=True)
class Verdict:
    """The findings, at least one of each check, and how far the release is vouched for."""

    release_id: str
    findings: tuple[Finding, ...]
    evidence: Evidence

    def at(self, level: Level) -> list[str]:
        """The sentences of one level."""
        return [finding.text for finding in self.findings if finding.level is level]

    @property
    def proved(self) -> list[str]:
        """What the files prove."""
        return self.at(Level.PROVED)

    @property
    def tested(self) -> list[str]:
        """What was compared, and is equal."""
        return self.at(Level.TESTED)

    @property
    def asserted(self) -> list[str]:
        """What the curator alone says."""
        return self.at(Level.ASSERTED)

    @property
    def withheld(self) -> list[str]:
        """What the release leaves out."""
        return self.at(Level.WITHHELD)

    @property
    def unseen(self) -> list[str]:
        """What was needed and could not be looked at."""
        return self.at(Level.UNSEEN)

    @property
    def complete(self) -> bool:
        """Whether nothing that was needed could not be looked at."""
        return not self.unseen


def verify(public: Path, auditor: Path | None = None, trust: Trust | None = None) -> Verdict:
    """Check the release in ``public``; with ``auditor``, its committed mechanisms too.

    ``auditor`` is the folder of this release in the auditor bundle; ``trust`` holds the curator's
    signing keys and ledger.

    Raises:
        VerificationError: a check failed; has the identifier of the check, the file, the actual and
            the expected value.
    """
    # First of all the sums: every later check reads bytes that are those of the published files.
    with checking("files.sums"):
        sums = _check_sums(public)
    with checking("release.record"):
        release, spec = _read_both(public, sums)
    provenance = check_provenance(public, release, sums, trust or Trust())
    proofs = Proofs(public, sums, _AuditorBundle.of(release, auditor))
    findings = _proved(public, proofs, release, spec, len(sums))
    with checking("provenance.audit"):
        findings += _check_audit(release, auditor, trust or Trust())
    findings += [*provenance.findings, *_taken_on_trust(release, spec), *asserted_of(spec)]
    return Verdict(release.release_id, completed(findings), provenance.evidence)


def check_unsigned(
    public: Path, auditor: Path | None, kind: Kind = "RELEASE", earlier: Proofs | None = None
) -> Proofs:
    """Check the files of a release before they are signed, summed up and published.

    ``kind`` is what it has to call itself. Nothing says whose it is, so that a verdict is no use.
    Returned are the proofs of its mechanisms, which as ``earlier`` ones serve the next release with
    the same mechanism files.

    Raises:
        VerificationError: as :func:`verify`.
    """
    with checking("files.sums"):
        sums = {file: hash_of_file(file, public / file) for file in _files_in(public)}
    with checking("release.record"):
        release, spec = _read_both(public, sums, kind, is_signed=False)
    proofs = Proofs(public, sums, _AuditorBundle.of(release, auditor))
    if earlier is not None:
        proofs.take_over(earlier)
    _proved(public, proofs, release, spec, len(sums))
    return proofs


def _proved(
    public: Path, proofs: Proofs, release: ReleaseRecord, spec: Spec, files: int
) -> list[Finding]:
    """All that the files of both bundles prove, whoever signed for them."""
    with checking("tables.form"):
        keys, tables, by_contents = _check_tables(public, release, spec)
        tabulations = open_published(public, release, spec)
        by_contents += tabulations.by_contents
    # Not earlier: a measured table has as many cells as areas, and these are in a published file.
    with checking("release.record"):
        spec = with_measured(spec, release, tabulations.opened)
    spec_file = SpecFile(spec, b"", public, keys, tabulations=tabulations.opened)
    proofs.profiles.step = release_step(spec_file) if spec.composes_exactly else None
    findings = _of_the_form(release, files, sum(len(table) for table, _ in tables.values()))
    for query, record in zip(spec.released, release.queries, strict=True):
        findings += _check_query_mechanism(proofs, spec_file, query, record)
    for query, entry in zip(spec.measured, release.measured, strict=True):
        findings += _prove_public(entry.mechanism_file.path, proofs, spec_file, query)
    with checking("tabulations.tables"):
        own, contents = check_tables(public, release, tabulations.opened, spec, proofs.public_ones)
    findings += own
    for file in (*by_contents, *contents):
        findings.append(made("tables.bytes", _BY_CONTENTS.format(file)))
    with checking("charges.total"):
        check_charges(release, spec_file, proofs.kept(spec_file), proofs.public_ones)
    findings.append(_charged(release, spec))
    with checking("acceptance"):
        findings += _check_acceptance(spec_file, proofs.public_ones)
    findings += check_expressions(release, spec)
    with checking("descriptions"):
        _check_descriptions(public, release, spec)
    findings.append(
        made("descriptions", f"{DATAPACKAGE} and {REGISTRY} say what release.json and the spec say")
    )
    # Answers that stand in add up without noise.
    if release.kind != "REHEARSAL":
        with checking("residuals"):
            findings += _check_residuals(spec, proofs.public_ones, tables)
    return findings


_SUMS = "the set of {} files, and the SHA-256 of each, is the one that was published"
_BY_CONTENTS = (
    "{}: that it holds nothing beside its rows: another version of the Parquet library "
    "wrote it, so its contents were compared and its bytes were not"
)


Kind: TypeAlias = Literal["RELEASE", "TEST", "REHEARSAL"]


def _read_both(
    public: Path, sums: dict[str, str], kind: Kind = "RELEASE", *, is_signed: bool = True
) -> tuple[ReleaseRecord, Spec]:
    """The record and the spec, which agree with each other and with the files that are there."""
    release = read_record(ReleaseRecord, "release.json", public / "release.json")
    _check_file_set(release, sums, is_signed=is_signed)
    expect("release.json", "kind", release.kind, kind)
    # Whoever has or guesses a seed draws the same noise and takes it off the answers.
    expect("release.json", "sampling.seeded", release.sampling.seeded, kind == "TEST")
    spec = with_stated(_spec_of(public), release)
    _check_against_spec(release, spec)
    return release, spec


def _of_the_form(release: ReleaseRecord, files: int, rows: int) -> list[Finding]:
    """The findings of the sums, the record and the tables, whose checks have passed."""
    return [
        made("files.sums", _SUMS.format(files), str(files), str(files)),
        made("release.record", CHECKS["release.record"].meaning),
        made(
            "tables.form",
            "released tables: declared columns, sorted keys, possible answers",
            str(rows),
            str(sum(record.cells for record in release.queries)),
        ),
    ]


def _check_acceptance(
    spec_file: SpecFile, mechanisms: Mapping[str, AnyMechanismRecord]
) -> list[Finding]:
    """Judge the entries of ``acceptance`` from the published mechanisms."""
    if not spec_file.spec.acceptance:
        return []
    published = {}
    for name, record in mechanisms.items():
        if isinstance(record, MechanismRecord | StatisticRecord):
            published[name] = record.to_mechanism()
    judgements = judged(spec_file, published)
    for judgement in judgements:
        if not judgement.is_met:
            raise VerificationError("spec.yaml", judgement.entry.place, judgement.sentence, "met")
    return [made("acceptance", judgement.sentence) for judgement in judgements]


def _charged(release: ReleaseRecord, spec: Spec) -> Finding:
    total, cap = release.composition, spec.budget
    if total.rule == "basic-v1":
        how = "add up to", "basic composition"
    else:
        how = "compose to", "exactly, from the profiles of their mechanisms"
    measured = len(release.measured)
    charged = f"{len(release.queries)} queries"
    if measured:
        tables = f"{measured} measured table{'s' if measured > 1 else ''}"
        charged = f"{charged} and {tables}" if release.queries else tables
    return made(
        "charges.total",
        f"the charges of {charged} {how[0]} ε = {total.epsilon}, "
        f"δ = {total.delta}, within the cap of the spec ({how[1]})",
        f"ε = {total.epsilon}, δ = {total.delta}",
        f"at most ε = {format_exact(cap.epsilon)}, δ = {format_exact(cap.delta)}",
    )


def _taken_on_trust(release: ReleaseRecord, spec: Spec) -> Iterator[Finding]:
    """What no file of a release can show."""
    yield made(
        "release.origin",
        f"that it was made by dp-release {release.software.dp_release}, of the sources and with "
        f"the libraries that release.json names by hash, and published on {release.published}",
    )
    yield made("spec.unread", CHECKS["spec.unread"].meaning)
    yield made(
        "mechanism.design",
        "what mechanism files say of how a mechanism was found: method, solver, notes, and that no "
        "other modular noise or channel loses less than the lower bound",
    )
    yield made(
        "report.words",
        "that report.html says in words and pictures what the files say, and what tables say of "
        "intervals",
    )
    for column, declared in spec.keys.items():
        if isinstance(declared, KeyFile):
            yield made(
                "keys.public",
                f"that the keys of {column}, which the spec takes from a file, are public",
            )
    # Both lists were compared with what the spec makes of them.
    names = {INSTANCE_LIMITS: "limits.instance"}
    names |= dict(zip(LIMITS, ("limits.reading", "limits.noise", "limits.fixed"), strict=True))
    names |= {INSTANCE_WITHHELD: "withheld.instance", NO_LEDGER_WITHHELD: "withheld.ledger"}
    for text in (*release.limits, *release.withheld):
        yield made(names[text], text)


def _check_sums(public: Path) -> dict[str, str]:
    """The sums of SHA256SUMS, each checked against its file."""
    # Steps 1 to 4 of docs/design/format.md, 8.1.
    if not public.is_dir():
        raise VerificationError(str(public), "folder", "nothing", "the public folder of a release")
    try:
        text = read_file(SUMS, public / SUMS).decode("ascii")
    except UnicodeDecodeError as error:
        raise VerificationError(SUMS, "format", "bytes outside ASCII", "lines of ASCII") from error
    # No leading dot or slash, and no "..": a resolved name must lie within the folder.
    line = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_./-]*)\n", re.ASCII)
    sums: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = line.match(text, position)
        if match is None or match[2] in sums:
            raise VerificationError(SUMS, "format", "another line", "one line a file, as sha256sum")
        sums[match[2]] = match[1]
        position = match.end()
    expect(SUMS, "order", list(sums), sorted(sums))
    expect(SUMS, "file set", _files_in(public), sorted([*sums, SUMS]))
    for file, expected in sums.items():
        expect(file, "SHA-256", hash_of_file(file, public / file), expected)
    return sums


def _files_in(folder: Path) -> list[str]:
    """The plain files below a folder, sorted; links and empty or nested folders are refused."""
    files: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        # What a link leads to may lie outside of the folder, and be another file tomorrow.
        if path.is_symlink():
            raise VerificationError(name, "file set", "a link", "plain files and folders")
        if not path.is_dir():
            files.append(name)
        elif not any(path.iterdir()) or path.parent != folder:
            raise VerificationError(name, "file set", "a folder", "no empty or nested folders")
    return sorted(files)


def _check_file_set(release: ReleaseRecord, sums: dict[str, str], *, is_signed: bool) -> None:
    # A file that nothing names could carry anything (docs/design/format.md, 8.2).
    expected = {"release.json", "report.html", "spec.yaml", SPEC_JSON, DATAPACKAGE, REGISTRY}
    if is_signed and release.ledger.sequence is not None:
        expected |= {ATTESTATION, PROOF}
    owners: list[str] = []
    for query in release.queries:
        expect(query.name, "output path", query.output.path, f"data/{query.name}.parquet")
        mechanism = query.mechanism_file
        if isinstance(mechanism, MechanismFile):
            owners.append(query.name)
            expected.add(_own_mechanism(query.name, mechanism, owners, sums))
    for entry in release.measured:
        owners.append(entry.name)
        expected.add(_own_mechanism(entry.name, entry.mechanism_file, owners, sums))
    for output in release.outputs:
        expected.add(output.path)
        expect(output.path, "SHA-256", output.sha256, sums.get(output.path))
    expect(SUMS, "file set of release.json", sorted(sums), sorted(expected))


def _own_mechanism(
    name: str, mechanism: MechanismFile, owners: list[str], sums: dict[str, str]
) -> str:
    """The path of a mechanism file: its own, or that of an earlier owner."""
    path = mechanism.path
    # Equal mechanisms share the file of the first. Other paths could leave the folder, or name a
    # file that no query explains.
    if path not in map("mechanisms/{}.json".format, owners):
        expected = f"mechanisms/{name}.json, or earlier"
        raise VerificationError(name, "mechanism path", path, expected)
    expect(path, "SHA-256", mechanism.sha256, sums.get(path))
    return path


def _spec_of(public: Path) -> Spec:
    try:
        return parse_spec(read_file("spec.yaml", public / "spec.yaml"))
    except VerificationError:
        raise
    except ReleaseError as error:
        raise VerificationError("spec.yaml", "schema", str(error), "a valid spec") from error


def _check_against_spec(release: ReleaseRecord, spec: Spec) -> None:
    """Check that release.json agrees with the spec."""
    # Steps 10 to 13 of docs/design/format.md, 8.4.
    file, info = "release.json", spec.release
    for name in ("title", "curator", "contact", "purpose", "period", "license"):
        expect(file, name, getattr(release, name), getattr(info, name))
    expect(file, "release_id", release.release_id, info.id)
    _check_privacy(release, spec)
    expect(file, "ledger.scope", release.ledger.scope, spec.budget.scope)
    queries, records = spec.released, release.queries
    expect(file, "queries", names_of(records), names_of(queries))
    for query, record in zip(queries, records, strict=True):
        _check_query(query, record)
    # Of its own: what the writer shares with the verifier, no verifier can refuse.
    instance = any(query.is_empirical for query in queries)
    ledger = release.ledger.sequence is not None
    expect(file, "withheld", release.withheld, withheld(instance=instance, ledger=ledger))
    expect(file, "limits", release.limits, limits(instance=instance))
    expect(file, "invariants", release.invariants, invariants(spec))
    expect(file, "post_processing", release.post_processing, post_processing(spec))
    try:
        datetime.date.fromisoformat(release.published)
    except ValueError as error:
        raise VerificationError(file, "published", release.published, "a date") from error
    _check_software(release.software)
    expect(file, "guarantee.kind", release.guarantee.kind, guarantee_kind(queries))


def _check_software(software: Software) -> None:
    file = "release.json"
    for name in ("dp_release", "python", "duckdb", "highs"):
        text = getattr(software, name)
        if not re.fullmatch(r"[0-9A-Za-z.+]{1,40}", text):
            raise VerificationError(file, f"software.{name}", excerpt(text), "a version")
    extras = [] if software.environment is None else software.environment.extras
    # One list for one set, or the order could carry something.
    expect(file, "software.environment.extras", extras, sorted(set(extras)))


def _check_privacy(release: ReleaseRecord, spec: Spec) -> None:
    record, privacy = release.privacy, spec.privacy
    for name, actual, expected in (
        ("unit", record.unit, privacy.unit),
        ("neighbors", record.neighbors, privacy.neighbors.value),
        ("max_rows_per_unit", record.max_rows_per_unit, privacy.max_rows_per_unit),
        ("fixed", record.fixed, privacy.fixed),
        ("adjacency_text", record.adjacency_text, adjacency_text(privacy)),
        ("enforced_by", record.enforced_by, ENFORCED_BY),
    ):
        expect("release.json", f"privacy.{name}", actual, expected)


def _check_query(query: Query, record: QueryRecord) -> None:
    claimed, instance = query.claimed, query.is_empirical
    committed = isinstance(record.mechanism_file, MechanismCommitment)
    at = f"queries.{query.name}"
    for name, actual, expected in (
        ("kind", record.kind, query.kind),
        ("by", record.by, query.by),
        ("domain", record.domain, query.domain_record()),
        ("definition", record.definition, claimed.definition.value),
        ("epsilon", record.epsilon, format_exact(claimed.epsilon)),
        ("delta", record.delta, format_exact(claimed.delta)),
        ("sensitivity_source", record.sensitivity_source, query.source),
        ("mechanism_file is committed", committed, instance),
        ("guarantee_kind", record.guarantee_kind, guarantee_kind((query,))),
    ):
        expect("release.json", f"{at}.{name}", actual, expected)
    if query.mechanism in formats() or query.mechanism in ON_STATISTIC:
        expect("release.json", f"{at}.mechanism", record.mechanism, query.mechanism)
    if instance and query.mechanism == BEST:
        # The name is published, so a choice by what the table shows would reveal some of it.
        chosen = _chosen_unseen(query)
        expect("release.json", f"{at}.mechanism (of public inputs)", record.mechanism, chosen)


def _chosen_unseen(query: Query) -> str | None:
    name = query.loss if isinstance(query.loss, LossName) else None
    return chosen_unseen(query.answers, name, query.claimed.to_guarantee())


def _check_descriptions(public: Path, release: ReleaseRecord, spec: Spec) -> None:
    # Whole files are compared, so that no word in them is free (docs/design/format.md, 8.10).
    sizes = table_sizes(public, release)
    for file, expected in (
        (DATAPACKAGE, datapackage(spec, release, sizes)),
        (REGISTRY, registry(spec, release)),
    ):
        if read_file(file, public / file) != expected:
            raise VerificationError(file, "bytes", "others", "what release.json and the spec say")
    stated = spec_json(read_file("spec.yaml", public / "spec.yaml"))
    if read_file(SPEC_JSON, public / SPEC_JSON) != stated:
        raise VerificationError(SPEC_JSON, "bytes", "others", "spec.yaml as canonical JSON")


def _check_residuals(
    spec: Spec, mechanisms: dict[str, AnyMechanismRecord], tables: dict[str, Table]
) -> list[Finding]:
    """Check that totals differ from the sums of their parts by as much noise as is declared."""
    # The pairs of docs/design/format.md, 8.12.
    counts = []
    for query in spec.released:
        # Of an empirical query the mechanism may not be there to compare with.
        if isinstance(query, PlainQuery) and query.counts_rows and not query.is_empirical:
            counts.append(query)

    def released(query: PlainQuery) -> Released:
        mechanism = on_answers(query.name, mechanisms[query.name]).to_mechanism()
        return Released(query, mechanism, *tables[query.name])

    findings = []
    for total, parts in permutations(counts, 2):
        if not is_total_of(total, parts):
            continue
        finding = residuals(released(total), released(parts))
        if finding is None:
            continue
        if finding.chance < CHANCE:
            raise VerificationError(
                "data", "residuals", str(finding), "as much noise as the mechanisms say"
            )
        chance, least = f"a chance of {finding.chance:.2g}", f"at least {CHANCE:.2g}"
        findings.append(made("residuals", str(finding), chance, least))
    return findings


def _check_tables(
    public: Path, release: ReleaseRecord, spec: Spec
) -> tuple[dict[str, tuple[str, ...]], dict[str, Table], list[str]]:
    """Check every released table.

    Returns the key sets, which the tables show in full; the keys and codes of each table; and the
    files of which only the contents could be compared.
    """
    tables: dict[str, Table] = {}
    by_contents: list[str] = []
    keys: dict[str, tuple[str, ...]] = {}
    checked_keys: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}
    for column, declared in spec.keys.items():
        if not isinstance(declared, KeyFile):
            try:
                keys[column] = declared_keys(spec, column, public)
            except SpecError as error:
                raise VerificationError("spec.yaml", "keys", str(error), "a key set") from error
    for query, record in zip(spec.released, release.queries, strict=True):
        file = record.output.path
        expect(file, "rows", record.output.rows, record.cells)
        checked = check_released(file, public / file, release.release_id, query, record.cells)
        if not checked.by_bytes:
            by_contents.append(file)
        by = tuple(query.by)
        # Equal keys are checked and kept once: a hundred tables may have the same ten thousand.
        if checked_keys.get(by) != checked.keys:
            cells = 1
            for place, column in enumerate(by):
                published = tuple(sorted({key[place] for key in checked.keys}))
                if column not in keys:
                    keys[column] = _plausible_keys(spec, query, column, list(published), file)
                expect(file, f"keys of {column}", published, keys[column])
                cells *= len(published)
            # Sorted and each once (checked), so the right number means every combination.
            expect(file, "key combinations", len(checked.keys), cells)
            checked_keys[by] = checked.keys
        tables[query.name] = (checked_keys[by], checked.outcomes[:, 0])
    return keys, tables, by_contents


def _plausible_keys(
    spec: Spec, query: Query, column: str, published: list[str], file: str
) -> tuple[str, ...]:
    """Keys that the spec takes from a file, as published: in the canonical text of keys."""
    # The key file itself is not part of a release; only the form of its keys can be checked.
    kind = spec.table_columns(query.table)[column]
    try:
        canonical = [key_text(column, key, kind) for key in published]
        expect(file, f"keys of {column}", published, canonical)
        return check_keys(column, published)
    except SpecError as error:
        raise VerificationError(file, f"keys of {column}", str(error), "keys") from error


@dataclass(frozen=True)
class _AuditorBundle:
    """The half of a release that an auditor opens: its folder, and the keys of its commitments."""

    folder: Path
    openings: OpeningsRecord

    @classmethod
    def of(cls, release: ReleaseRecord, auditor: Path | None) -> _AuditorBundle | None:
        """The bundle; None where there is none, or nothing to open."""
        # Step 28 of docs/design/format.md, 8.11.
        committed = _committed(release)
        if auditor is None or not committed:
            return None
        with checking("mechanism.committed"):
            openings = read_record(OpeningsRecord, "openings.json", auditor / "openings.json")
            expect("openings.json", "release_id", openings.release_id, release.release_id)
            mechanisms = list(map("mechanisms/{}.json".format, committed))
            sensitivities = map("sensitivity/{}.json".format, committed)
            expected = sorted([*mechanisms, *sensitivities, "openings.json", *_audit_file(auditor)])
            expect(str(auditor), "file set", _files_in(auditor), expected)
            expect("openings.json", "openings", sorted(openings.openings), mechanisms)
        return cls(auditor, openings)

    def opened(self, file: str, commitment: str) -> MechanismRecord:
        """The mechanism in a file of the bundle, which is the committed one."""
        data = read_file(file, self.folder / file)
        opening = self.openings.openings[file]
        # The opening repeats the commitment; both that copy and the recomputed one have to match.
        for stated in (opening.commitment, commit(bytes.fromhex(opening.key), data)):
            if not hmac.compare_digest(stated, commitment):
                raise VerificationError(file, "commitment", stated, commitment)
        return parse_mechanism(file, data)


def _audit_file(auditor: Path) -> list[str]:
    """The name of the audit record, where the bundle has one."""
    return [AUDIT] if os.path.lexists(auditor / AUDIT) else []


def _check_audit(release: ReleaseRecord, auditor: Path | None, trust: Trust) -> Iterator[Finding]:
    """Check the audit record of an auditor bundle, where there is one."""
    if auditor is None or not _audit_file(auditor):
        return
    # With committed mechanisms the set was compared when they were opened.
    if not _committed(release):
        expect(str(auditor), "file set", _files_in(auditor), [AUDIT])
    record = read_record(AuditRecord, AUDIT, auditor / AUDIT)
    yield check_audit_record(record, release, trust)


def _committed(release: ReleaseRecord) -> list[str]:
    """The names of the queries whose mechanisms are committed, sorted."""
    names = []
    for query in release.queries:
        if isinstance(query.mechanism_file, MechanismCommitment):
            names.append(query.name)
    return sorted(names)


class Proofs:
    """The mechanism files; each is read once, and proved once for equal questions.

    ``public_ones`` are those of the public bundle that were proved, by query. ``sums`` has the
    SHA-256 of each published file.
    """

    def __init__(
        self, public: Path, sums: Mapping[str, str], bundle: _AuditorBundle | None
    ) -> None:
        self._public = public
        self._sums = sums
        self._mechanisms: dict[str, AnyMechanismRecord] = {}
        self._proved: dict[object, Sensitivity] = {}
        self.profiles = ProfileChecks()
        self.bundle = bundle
        self.public_ones: dict[str, AnyMechanismRecord] = {}

    def take_over(self, earlier: Proofs) -> None:
        """Take over what was proved under the same spec of the same files, and nothing else."""
        if self._questions == earlier._questions:
            self._mechanisms, self._proved = earlier._mechanisms, earlier._proved
            self.profiles.take_over(earlier.profiles)

    @property
    def _questions(self) -> dict[str, str]:
        """The sums of all that proofs are of."""
        read = ("mechanisms/", "spec.yaml")
        return {file: own for file, own in self._sums.items() if file.startswith(read)}

    def kept(self, spec_file: SpecFile) -> Kept:
        """What each public mechanism satisfies."""
        every: dict[str, Satisfied] = {}
        for query in spec_file.spec.charged:
            if query.name in self.public_ones:
                own = self.public_ones[query.name]
                every[query.name] = satisfied(spec_file, query, own, query.claimed)
        return every

    def mechanism(self, file: str) -> AnyMechanismRecord:
        """The mechanism in a file of the public bundle."""
        if file not in self._mechanisms:
            self._mechanisms[file] = read_any_mechanism(file, self._public / file)
        return self._mechanisms[file]

    def sensitivity(self, file: str, query: Query) -> Sensitivity:
        """Prove the mechanism of ``query`` for its own differences, and return these."""
        answers = query.answers
        question = (answers.group, answers.topologies, query.claimed, query.loss, query.mechanism)
        key = (file, *map(repr, question))
        if key not in self._proved:
            mechanism = on_answers(file, self.mechanism(file))
            self._proved[key] = check_mechanism(file, mechanism, query)
        return self._proved[key]


def _check_query_mechanism(
    proofs: Proofs, spec_file: SpecFile, query: Query, record: QueryRecord
) -> list[Finding]:
    """Prove the mechanism of a query, which is public, or committed and opened."""
    spec = spec_file.spec
    if isinstance(record.mechanism_file, MechanismFile):
        file = record.mechanism_file.path
        findings = _prove_public(file, proofs, spec_file, query)
        with checking(_identifier(query)):
            _check_family(proofs.mechanism(file), query, record)
        return findings
    if proofs.bundle is None:
        text = f"{query.name}: its mechanism is committed; give the auditor bundle with --auditor"
        return [Finding("mechanism.committed", Level.UNSEEN, text)]
    with checking("mechanism.committed"):
        return _prove_committed(
            proofs.bundle, record.mechanism_file.commitment, spec, query, record
        )


def _prove_public(file: str, proofs: Proofs, spec_file: SpecFile, query: Query) -> list[Finding]:
    """Prove a public mechanism, and its profile."""
    spec, sensitivity = spec_file.spec, None
    identifier = _identifier(query)
    with checking(identifier):
        stated = proofs.mechanism(file)
        if query.is_on_statistic:
            findings = [made(identifier, check_statistic(file, stated, spec, query))]
        else:
            findings = _prove_on_answers(file, proofs, spec, query)
            sensitivity = proofs.sensitivity(file, query)
    with checking("mechanism.profile"):
        text = proofs.profiles.check(file, stated, spec_file, query, sensitivity)
    findings.append(made("mechanism.profile", text))
    proofs.public_ones[query.name] = stated
    # The SQL of a tabulation is a line of its own.
    return findings if query.is_measured else [*findings, *_unread(spec, query)]


def _identifier(query: Query) -> str:
    """The check that proves the guarantee of a public mechanism."""
    return "mechanism.statistic" if query.is_on_statistic else "mechanism.guarantee"


def _prove_on_answers(file: str, proofs: Proofs, spec: Spec, query: Query) -> list[Finding]:
    """Prove a public mechanism for every difference that the declaration allows."""
    mechanism = on_answers(file, proofs.mechanism(file))
    sensitivity = proofs.sensitivity(file, query)
    # Step 40 of docs/design/format.md: the file may have more differences, but none may be missing.
    allowed = global_sensitivity(spec, query, rows_read(spec, query))
    missing = set(allowed.shifts) - set(sensitivity.shifts)
    if sensitivity.distances is not None:
        # In the group a step up and a step that wraps round are the same; on the line they differ.
        missing |= set(zip(set(allowed.distances or ()) - set(sensitivity.distances)))
    if missing:
        raise VerificationError(
            file, "sensitivity", f"{len(missing)} missing", "all that the declaration allows"
        )
    findings = [
        made(
            "mechanism.guarantee",
            f"{query.name}: {_guarantee(mechanism)} for the sensitivity that follows from "
            "the declared bounds",
            *_delta_held_against(mechanism, query),
        )
    ]
    design = mechanism.design
    is_proved = design.bound_of == BoundOf.INTEGERS.value and design.bound == "proved"
    # A bound of 0 says nothing: noise for a shared budget has no other.
    if is_proved and Fraction(design.lower_bound):
        text = (
            f"{query.name}: no noise on the integers with this guarantee has an expected "
            f"{design.loss} loss below {design.lower_bound}; that of this noise is "
            f"{design.bounded_loss}"
        )
        findings.append(
            made("mechanism.bound", text, design.bounded_loss, f"at least {design.lower_bound}")
        )
    return findings


def _unread(spec: Spec, query: Query) -> list[Finding]:
    unread = rests_on(spec, query)
    return [] if unread is None else [made("conditions.engine", unread)]


def _prove_committed(
    bundle: _AuditorBundle, commitment: str, spec: Spec, query: Query, record: QueryRecord
) -> list[Finding]:
    """Prove a mechanism of the auditor bundle for the differences committed beside it."""
    file = f"mechanisms/{query.name}.json"
    mechanism = bundle.opened(file, commitment)
    _check_family(mechanism, query, record)
    # An instance-specific mechanism has none: that of another table is another one.
    expect(file, "profile", mechanism.profile, None)
    sensitivity = check_mechanism(file, mechanism, query)
    path = f"sensitivity/{query.name}.json"
    stated = read_record(SensitivityRecord, path, bundle.folder / path)
    expect(path, "query", stated.query, query.name)
    expect(path, "source", stated.source, query.source)
    expect(path, "neighbors", stated.neighbors, spec.privacy.neighbors.value)
    expect(path, "group", stated.group, mechanism.group)
    expect(path, "sensitivity", stated.sensitivity, list(map(list, sensitivity.shifts)))
    distances = None if sensitivity.distances is None else list(sensitivity.distances)
    expect(path, "distances", stated.distances, distances)
    # Some answer may have no other at any larger distance, and would be published without noise.
    if distances is not None and 1 not in distances:
        raise VerificationError(path, "distances", str(distances), "1 among them")
    return [
        made(
            "mechanism.committed",
            f"{query.name}: {_guarantee(mechanism)} for the {len(stated.sensitivity)} "
            "differences of its committed sensitivity",
            *_delta_held_against(mechanism, query),
        ),
        made(
            "mechanism.sensitivity",
            f"{query.name}: that no other difference occurs between neighbors",
        ),
    ]


def _check_family(mechanism: AnyMechanismRecord, query: Query, record: QueryRecord) -> None:
    at = f"queries.{query.name}.mechanism"
    expect("release.json", at, record.mechanism, mechanism.mechanism)


def _delta_held_against(mechanism: MechanismRecord, query: Query) -> tuple[str, str]:
    """The δ that the integers have at the claimed ε, and the claimed one."""
    claimed = query.claimed
    delta = format_up(mechanism.deltas.under(claimed.definition), 12)
    return f"δ = {delta}", f"at most δ = {format_exact(claimed.delta)}"


def _guarantee(mechanism: MechanismRecord) -> str:
    claimed = mechanism.guarantee
    return (
        f"the mechanism satisfies {claimed.definition} ε = {claimed.epsilon}, δ = {claimed.delta}"
    )
