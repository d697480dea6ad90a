"""Writes the files of both bundles of a release, from what was prepared and what was drawn.

The public bundle is for everyone. Empirical sensitivity depends on the table, and so do the
mechanism and the accuracy that follow from it: they go to the auditor bundle (mode 0700), and the
public bundle holds a salted commitment. :mod:`release.bundle.publish` makes the folder public.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from dp_release_verify.digests import sha256
from release.budget.ledger import Spending
from release.bundle.bounded import bounded_words, shared_words
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry, table_sizes
from release.bundle.prepared import PUBLIC, Prepared, PreparedQuery, copy_mechanisms
from release.bundle.report.page import report_html
from release.bundle.report.plain import plain_html
from release.bundle.report.published import PublicQuery
from release.bundle.statements import (
    ENFORCED_BY,
    adjacency_text,
    guarantee_kind,
    invariants,
    limits,
    post_processing,
    rests_on,
    tabulation_rests_on,
    withheld,
)
from release.bundle.tables.answers import released_bytes
from release.bundle.tables.intervals import interval_words
from release.bundle.tabulations.entries import MeasuredTable
from release.bundle.tabulations.writing import PublicTabulation, write_tabulation
from release.exact.domain import Codes
from release.exact.numbers import format_exact
from release.queries.tabulations.table_count import CENTER, TableCount
from release.records.files import write
from release.records.mechanisms import IntegerRecord
from release.records.models import (
    ChargeRecord,
    Composition,
    LedgerRecord,
    MechanismFile,
    OutputFile,
    PrivacyRecord,
    QueryRecord,
    ReleaseGuarantee,
    ReleaseRecord,
    Sampling,
    canonical,
    definition_name,
)
from release.spec.declarations import Privacy
from release.spec.expressions.places import expressions
from release.spec.load import SPEC_JSON, SpecFile, spec_json


def write_release(
    spec_file: SpecFile,
    prepared: Prepared,
    noisy: Sequence[Codes],
    folder: Path,
    *,
    has_pictures: bool = True,
) -> None:
    """Write both bundles of a release below ``folder``: all files but its signatures and sums.

    ``noisy`` is what was drawn for each query of ``prepared``. Without ``has_pictures`` the report
    is a page of plain tables, which it also is where the page cannot be drawn.

    Raises:
        OSError: the disk is full or read-only.
    """
    copy_mechanisms(prepared, folder)
    writer = _Writer(spec_file, folder / PUBLIC)
    for own, codes in zip(prepared.queries, noisy, strict=True):
        if own.query.is_measured:
            writer.measure(own, codes)
        else:
            writer.add(own, codes)
    writer.tabulate()
    record = release_record(spec_file, prepared, writer.records)
    if writer.tabulations:
        entries = list(map(attrgetter("record"), writer.tabulations))
        record = record.model_copy(update={"tabulations": entries})
    writer.finish(record, prepared.of.spending, has_pictures=has_pictures)


class _Writer:
    """Writes the files with noise in them, and remembers their records."""

    def __init__(self, spec_file: SpecFile, public: Path) -> None:
        self._spec_file = spec_file
        self._public = public
        self._queries: list[PublicQuery] = []
        self._measured: dict[str, list[MeasuredTable]] = defaultdict(list)
        self.tabulations: list[PublicTabulation] = []

    def measure(self, prepared: PreparedQuery, noisy: Codes) -> None:
        query, file, mechanism = prepared.query, prepared.file, prepared.mechanism
        if not isinstance(query, TableCount) or not isinstance(mechanism, IntegerRecord):
            raise TypeError(f"{query.name} is no table of a tabulation")
        if not isinstance(file, MechanismFile):
            raise TypeError(f"the mechanism of {query.name} is not public")
        opened = self._spec_file.tabulation(query.tabulation)
        cells = opened.table(query.level, query.margin).margin.cells
        counts = (noisy + CENTER).reshape(-1, cells)
        own = MeasuredTable(query, prepared.charge, mechanism.noise.to_noise(), file, counts)
        self._measured[query.tabulation].append(own)

    def tabulate(self) -> None:
        release_id = self._spec_file.spec.release.id
        for opened in self._spec_file.tabulations:
            own = self._measured[opened.name]
            public = write_tabulation(release_id, opened, own, self._public)
            rests = tabulation_rests_on(self._spec_file.spec, opened.declared)
            self.tabulations.append(replace(public, rests_on=rests))

    def add(self, prepared: PreparedQuery, noisy: Codes) -> None:
        # Imported here: it loads an engine, and importing the package loads none.
        from release.queries.profiles import cells_of

        query, spec = prepared.query, self._spec_file.spec
        keys = cells_of(self._spec_file, query).keys
        outcomes = noisy.reshape(len(keys), -1)
        path = f"data/{query.name}.parquet"
        words = self._interval(prepared)
        data = released_bytes(spec.release.id, query, keys, outcomes, words)
        write(self._public / path, data)
        output = OutputFile(path=path, sha256=sha256(data), rows=len(keys))
        self._queries.append(
            PublicQuery(
                query,
                query_record(prepared, output),
                keys,
                outcomes,
                prepared.mechanism,
                prepared.compared,
                rests_on(spec, query),
                bounded_words(spec, query),
                shared_words(spec, query),
            )
        )

    def _interval(self, prepared: PreparedQuery) -> str | None:
        file, mechanism = prepared.file, prepared.mechanism
        # Of a mechanism that depends on the table nothing is said.
        if mechanism is None or not isinstance(file, MechanismFile):
            return None
        bounded = bounded_words(self._spec_file.spec, prepared.query)
        return interval_words(prepared.query, mechanism, bounded)

    @property
    def records(self) -> list[QueryRecord]:
        return list(map(attrgetter("record"), self._queries))

    def finish(self, record: ReleaseRecord, spent: Spending | None, *, has_pictures: bool) -> None:
        write(self._public / "spec.yaml", self._spec_file.text)
        write(self._public / SPEC_JSON, spec_json(self._spec_file.text))
        write(self._public / "release.json", canonical(record))
        sizes = table_sizes(self._public, record)
        spec = self._spec_file.spec
        write(self._public / DATAPACKAGE, datapackage(spec, record, sizes))
        write(self._public / REGISTRY, registry(spec, record))
        html = None
        if has_pictures:
            # A fault of a picture is no reason to lose what is paid for and drawn.
            with suppress(Exception):
                html = report_html(record, tuple(self._queries), tuple(self.tabulations), spent)
        if html is None:
            html = plain_html(record, tuple(self._queries))
        write(self._public / "report.html", html.encode())


def query_record(prepared: PreparedQuery, output: OutputFile) -> QueryRecord:
    """The entry of one query in ``release.json``."""
    query, charge = prepared.query, prepared.charge
    return QueryRecord(
        name=query.name,
        kind=query.kind,
        by=query.by,
        cells=output.rows,
        domain=query.domain_record(),
        definition=definition_name(query.claimed.definition),
        epsilon=format_exact(query.claimed.epsilon),
        delta=format_exact(query.claimed.delta),
        parallel=charge.parallel,
        charge=ChargeRecord(epsilon=format_exact(charge.epsilon), delta=format_exact(charge.delta)),
        guarantee_kind=guarantee_kind((query,)),
        sensitivity_source=query.source,
        mechanism=prepared.family,
        mechanism_file=prepared.file,
        output=output,
    )


def release_record(
    spec_file: SpecFile, prepared: Prepared, queries: list[QueryRecord]
) -> ReleaseRecord:
    """``release.json``, from the spec and the public sides of the queries."""
    spec, info = spec_file.spec, spec_file.spec.release
    charged, of = prepared.charged, prepared.of
    kind = guarantee_kind([own.query for own in prepared.queries if not own.query.is_measured])
    instance = kind == "instance-specific"
    epsilon, delta = format_exact(charged.epsilon), format_exact(charged.delta)
    return ReleaseRecord(
        schema="dp-release/release/v1",
        release_id=info.id,
        kind=of.kind,
        published=of.day.isoformat(),
        title=info.title,
        curator=info.curator,
        contact=info.contact,
        purpose=info.purpose,
        period=info.period,
        license=info.license,
        privacy=_privacy_record(spec.privacy),
        guarantee=ReleaseGuarantee(
            kind=kind,
            definition=definition_name(charged.definition),
            epsilon=epsilon,
            delta=delta,
        ),
        expressions=expressions(spec) or None,
        queries=queries,
        composition=Composition(
            rule="basic-v1" if charged.step is None else "pld-v1",
            epsilon=epsilon,
            delta=delta,
            step=None if charged.step is None else format_exact(charged.step),
        ),
        sampling=Sampling(source="os", method="inverse-cdf-integer", seeded=of.kind == "TEST"),
        invariants=invariants(spec),
        post_processing=post_processing(spec),
        ledger=LedgerRecord(scope=spec.budget.scope, sequence=of.sequence),
        software=prepared.software,
        withheld=withheld(instance=instance, ledger=of.sequence is not None),
        limits=limits(instance=instance),
    )


def _privacy_record(privacy: Privacy) -> PrivacyRecord:
    return PrivacyRecord(
        unit=privacy.unit,
        neighbors=privacy.neighbors.value,
        adjacency_text=adjacency_text(privacy),
        max_rows_per_unit=privacy.max_rows_per_unit,
        fixed=privacy.fixed,
        enforced_by=ENFORCED_BY,
    )
