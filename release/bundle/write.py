"""Writes the files of both bundles of a release, from results that may be public.

The public bundle is for everyone. Empirical sensitivity depends on the table, and so do the
mechanism and the accuracy that follow from it: they go to the auditor bundle (mode 0700), and the
public bundle holds a salted commitment. :mod:`release.bundle.publish` makes the folder public.
"""

from __future__ import annotations

import datetime
import platform
import secrets
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

from release.budget.cost import Charge, Charges
from release.budget.ledger import Spending
from release.budget.patterns import Pattern, patterns_of
from release.budget.profiles import own_step, profile_over
from release.bundle.answers import released_bytes
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry, table_sizes
from release.bundle.report.page import PublicQuery, report_html
from release.bundle.statements import (
    ENFORCED_BY,
    accuracy_of,
    adjacency_text,
    epsilon_everywhere,
    guarantee_kind,
    invariants,
    limits,
    post_processing,
    rests_on,
    tabulation_rests_on,
    withheld,
)
from release.bundle.tabulations.writing import MeasuredTable, PublicTabulation, write_tabulation
from release.exact.bounds import Multipliers
from release.exact.domain import Codes
from release.exact.integer import IntegerMechanism
from release.exact.numbers import format_down, format_exact, format_up
from release.exact.privacy import Deltas, Guarantee
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.queries.tabulations.table_count import CENTER, TableCount
from release.records.files import write
from release.records.hashes import commit, sha256
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import (
    ChargeRecord,
    Composition,
    DesignRecord,
    GuaranteeRecord,
    LedgerRecord,
    MechanismCommitment,
    MechanismFile,
    Opening,
    OpeningsRecord,
    OutputFile,
    Prices,
    PrivacyRecord,
    QueryRecord,
    Recomputed,
    ReleaseGuarantee,
    ReleaseRecord,
    Sampling,
    SensitivityRecord,
    Software,
    canonical,
    definition_name,
)
from release.records.notes import NEVER_OCCURS
from release.records.profiles import ProfileRecord
from release.records.statistics import StatisticRecord
from release.spec.declarations import Privacy
from release.spec.expressions.places import expressions
from release.spec.load import SPEC_JSON, SpecFile, spec_json
from release.spec.mechanisms import record_model, statistic_record_model
from release.spec.query import Query
from release.version import VERSION


@dataclass(frozen=True, repr=False)
class Result:
    """One query to publish: its mechanism and what it drew, in the order of ``keys``."""

    query: Query
    keys: tuple[tuple[str, ...], ...]
    design: AnyDesign | StatisticDesign
    charge: Charge
    noisy: Codes

    @property
    def outcomes(self) -> Codes:
        """What was drawn, shape (cells, columns)."""
        return self.noisy.reshape(len(self.keys), -1)


@dataclass(frozen=True)
class About:
    """The kind and day of a release, and the ledger entry that pays for it."""

    kind: Literal["RELEASE", "TEST"]
    day: datetime.date
    sequence: int | None = None
    spending: Spending | None = None


def statistic_record(
    query: Query, design: StatisticDesign, profile: ProfileRecord | None = None
) -> StatisticRecord:
    """The file of a mechanism on a statistic."""
    model = statistic_record_model(design.mechanism.family)
    return model.model_validate(
        {
            "schema": "dp-release/mechanism/v1",
            "query": query.name,
            "mechanism": design.mechanism.family,
            "guarantee": _guarantee_record(design.guarantee),
            **({} if profile is None else {"profile": profile}),
            **model.own_fields(design.mechanism),
        }
    )


def mechanism_record(
    query: Query, design: AnyDesign, profile: ProfileRecord | None = None
) -> MechanismRecord:
    """The file of a query's mechanism; every figure in it is recomputed from the integers.

    A public file has a ``profile``, a committed one has none.
    """
    # Never the solver's own figures: a verifier compares each with one that it computes itself.
    mechanism, sensitivity = design.mechanism, design.sensitivity
    domain = query.answers
    everywhere = epsilon_everywhere(mechanism)
    model = record_model(mechanism.family)
    return model.model_validate(
        {
            "schema": "dp-release/mechanism/v1",
            "query": query.name,
            "mechanism": mechanism.family,
            "group": list(domain.group.moduli),
            "total": str(mechanism.total),
            "directed": False,
            "guarantee": _guarantee_record(design.guarantee),
            "recomputed": _recomputed(design.deltas, everywhere),
            "design": _design_record(design, everywhere),
            "accuracy": accuracy_of(mechanism, domain),
            **({} if profile is None else {"profile": profile}),
            **model.own_fields(mechanism, sensitivity),
        }
    )


def _guarantee_record(guarantee: Guarantee) -> GuaranteeRecord:
    return GuaranteeRecord(
        definition=definition_name(guarantee.definition),
        epsilon=format_exact(guarantee.epsilon),
        delta=format_exact(guarantee.delta),
    )


def _recomputed(deltas: Deltas, everywhere: str) -> Recomputed:
    return Recomputed(
        delta_probabilistic=format_exact(deltas.probabilistic),
        # Sums of powers of e may need any number of digits; up never understates a δ.
        delta_approximate=format_up(deltas.approximate, 60),
        epsilon_all_differences=everywhere,
    )


def _design_record(design: AnyDesign, everywhere: str) -> DesignRecord:
    bounded, bound = format_up(design.bounded_loss, 18), format_down(design.lower_bound, 18)
    return DesignRecord(
        method=design.method,
        loss=design.loss.name,
        objective=format_up(design.objective, 18),
        bound_of=design.bound_of.value,
        bounded_loss=bounded,
        lower_bound=bound,
        bound="proved" if design.bound_proved else "solver",
        # Of the two figures as they are written, so that nobody has to allow for rounding.
        gap=format_exact(Fraction(bounded) - Fraction(bound)),
        multipliers=_prices(design.multipliers),
        solver=design.solver,
        notes=[*design.notes, *([NEVER_OCCURS] if everywhere == "inf" else [])],
    )


def _prices(multipliers: Multipliers | None) -> list[Prices]:
    tables = {} if multipliers is None else multipliers.of
    return [Prices(distance=step, prices=list(map(str, prices))) for step, prices in tables.items()]


def write_release(
    spec_file: SpecFile,
    results: tuple[Result, ...],
    charged: Charges,
    folder: Path,
    of: About,
) -> None:
    """Write both bundles of a release below ``folder``: all files but its signatures and sums.

    Raises:
        OSError: the disk is full or read-only.
    """
    writer = _Writer(spec_file, folder / "public", folder / "auditor", charged.step)
    written = tuple(result for result in results if not result.query.is_measured)
    for result in results:
        if result.query.is_measured:
            writer.measure(result)
        else:
            writer.add(result)
    writer.tabulate()
    record = release_record(spec_file, written, charged, writer.records, of)
    if writer.tabulations:
        entries = [public.record for public in writer.tabulations]
        record = record.model_copy(update={"tabulations": entries})
    writer.finish(record, of.spending)


_Shared: TypeAlias = tuple[int, tuple[Pattern, ...], Fraction]
"""What queries with one mechanism file have in common: design, patterns of a unit, and grid."""


class _Writer:
    """Writes the files of both bundles into the staging folder and remembers their records."""

    def __init__(
        self, spec_file: SpecFile, public: Path, auditor: Path, step: Fraction | None
    ) -> None:
        self._spec_file = spec_file
        self._step = step
        self._public = public
        self._auditor = auditor
        self._openings: dict[str, Opening] = {}
        self._queries: list[PublicQuery] = []
        self._published: dict[_Shared, tuple[AnyMechanismRecord, MechanismFile]] = {}
        self._measured: dict[str, list[MeasuredTable]] = defaultdict(list)
        self.tabulations: list[PublicTabulation] = []

    def measure(self, result: Result) -> None:
        query, design = result.query, result.design
        mechanism = design.mechanism
        if not isinstance(query, TableCount) or not isinstance(mechanism, IntegerMechanism):
            raise TypeError(f"{query.name} is no table of a tabulation")
        areas = query.cells // query.cells_of_an_area
        counts = (result.noisy + CENTER).reshape(areas, -1)
        _, file = self._publish(query, design)
        own = MeasuredTable(query, result.charge, mechanism.noise, file, counts)
        self._measured[query.tabulation].append(own)

    def tabulate(self) -> None:
        release_id = self._spec_file.spec.release.id
        for opened in self._spec_file.tabulations:
            own = self._measured[opened.name]
            written = write_tabulation(release_id, opened, own, self._public)
            rests = tabulation_rests_on(self._spec_file.spec, opened.declared)
            self.tabulations.append(replace(written, rests_on=rests))

    def add(self, result: Result) -> None:
        query, design, spec = result.query, result.design, self._spec_file.spec
        file: MechanismFile | MechanismCommitment
        mechanism: AnyMechanismRecord | None = None
        compared: tuple[tuple[str, Fraction], ...] = ()
        # The report is public, so of an empirical query it gets neither mechanism nor comparison.
        if isinstance(design, StatisticDesign):
            mechanism, file = self._publish(query, design)
        elif query.is_empirical:
            file = self._commit(query, mechanism_record(query, design))
        else:
            mechanism, file = self._publish(query, design)
            compared = design.compared
        path = f"data/{query.name}.parquet"
        data = released_bytes(spec.release.id, query, result.keys, result.outcomes)
        write(self._public / path, data)
        output = OutputFile(path=path, sha256=sha256(data), rows=len(result.keys))
        self._queries.append(
            PublicQuery(
                query,
                query_record(result, file, output),
                result.keys,
                result.outcomes,
                mechanism,
                compared,
                rests_on(spec, query),
            )
        )

    def _publish(
        self, query: Query, design: AnyDesign | StatisticDesign
    ) -> tuple[AnyMechanismRecord, MechanismFile]:
        """Write a public mechanism, once for all queries that have the same, profile included."""
        patterns, step = patterns_of(self._spec_file, query), self._step or own_step(query)
        # Queries that ask the same question share one design.
        shared = (id(design), patterns, step)
        if shared not in self._published:
            mechanism: AnyMechanismRecord
            if isinstance(design, StatisticDesign):
                profile = profile_over(patterns, query, design.mechanism, None, step)
                record = ProfileRecord.of(profile, patterns)
                mechanism = statistic_record(query, design, record)
            else:
                profile = profile_over(patterns, query, design.mechanism, design.sensitivity, step)
                record = ProfileRecord.of(profile, patterns)
                mechanism = mechanism_record(query, design, record)
            path, data = f"mechanisms/{query.name}.json", canonical(mechanism)
            write(self._public / path, data)
            self._published[shared] = mechanism, MechanismFile(path=path, sha256=sha256(data))
        return self._published[shared]

    def _commit(self, query: Query, mechanism: MechanismRecord) -> MechanismCommitment:
        """Write a mechanism that depends on the table into the auditor bundle alone."""
        path, data = f"mechanisms/{query.name}.json", canonical(mechanism)
        # Without a random key, the few mechanisms that are likely could be tried one by one.
        key = secrets.token_bytes(32)
        commitment = commit(key, data)
        self._openings[path] = Opening(key=key.hex(), commitment=commitment)
        write(self._auditor / path, data, 0o600)
        stated = mechanism.to_sensitivity()
        sensitivity = SensitivityRecord(
            schema="dp-release/sensitivity/v1",
            query=query.name,
            source=query.source,
            neighbors=self._spec_file.spec.privacy.neighbors.value,
            group=mechanism.group,
            sensitivity=list(map(list, stated.shifts)),
            apart=None if stated.apart is None else list(stated.apart),
        )
        write(self._auditor / "sensitivity" / f"{query.name}.json", canonical(sensitivity), 0o600)
        return MechanismCommitment(commitment=commitment)

    @property
    def records(self) -> list[QueryRecord]:
        return [public.record for public in self._queries]

    def finish(self, record: ReleaseRecord, spent: Spending | None) -> None:
        write(self._public / "spec.yaml", self._spec_file.text)
        write(self._public / SPEC_JSON, spec_json(self._spec_file.text))
        write(self._public / "release.json", canonical(record))
        sizes = table_sizes(self._public, record)
        spec = self._spec_file.spec
        write(self._public / DATAPACKAGE, datapackage(spec, record, sizes))
        write(self._public / REGISTRY, registry(spec, record))
        html = report_html(record, tuple(self._queries), tuple(self.tabulations), spent)
        write(self._public / "report.html", html.encode())
        if self._openings:
            openings = OpeningsRecord(
                schema="dp-release/openings/v1",
                release_id=record.release_id,
                openings=self._openings,
            )
            write(self._auditor / "openings.json", canonical(openings), 0o600)


def query_record(
    result: Result, file: MechanismFile | MechanismCommitment, output: OutputFile
) -> QueryRecord:
    """The entry of one query in ``release.json``."""
    query = result.query
    return QueryRecord(
        name=query.name,
        kind=query.kind,
        by=query.by,
        cells=len(result.keys),
        domain=query.domain_record(),
        definition=definition_name(query.promised.definition),
        epsilon=format_exact(query.promised.epsilon),
        delta=format_exact(query.promised.delta),
        parallel=result.charge.parallel,
        charge=ChargeRecord(
            epsilon=format_exact(result.charge.epsilon), delta=format_exact(result.charge.delta)
        ),
        guarantee_kind=guarantee_kind((query,)),
        sensitivity_source=query.source,
        mechanism=result.design.mechanism.family,
        mechanism_file=file,
        output=output,
    )


def release_record(
    spec_file: SpecFile,
    results: tuple[Result, ...],
    charged: Charges,
    queries: list[QueryRecord],
    of: About,
) -> ReleaseRecord:
    """``release.json``, from the spec and the public sides of the results."""
    spec, info = spec_file.spec, spec_file.spec.release
    kind = guarantee_kind([result.query for result in results])
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
        software=Software(
            dp_release=VERSION,
            python=platform.python_version(),
            duckdb=version("duckdb"),
            highs=version("highspy"),
        ),
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
