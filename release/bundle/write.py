"""What stands in a release folder: the files of both bundles, from results that may be public.

The public bundle holds what everyone may see. Where differences were seen in the data, the law, the
differences and the accuracy depend on the data too, so they go to the auditor bundle (mode 0700)
and the public bundle holds a salted commitment. How the folder becomes public is for
:mod:`release.bundle.publish`.
"""

from __future__ import annotations

import datetime
import platform
import secrets
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from release.budget.cost import Charge, Charges
from release.budget.ledger import Spending
from release.bundle.answers import released_bytes
from release.bundle.metadata import DATAPACKAGE, REGISTRY, datapackage, registry
from release.bundle.report.page import PublicQuery, report_html
from release.bundle.statements import (
    ENFORCED_BY,
    accuracy_of,
    adjacency_text,
    epsilon_everywhere,
    guarantee_kind,
    limits,
    rests_on,
    withheld,
)
from release.exact.domain import Codes
from release.exact.numbers import format_down, format_exact, format_up
from release.exact.privacy import Deltas, Guarantee
from release.noise.families import AnyDesign
from release.records.files import write
from release.records.hashes import commit, sha256
from release.records.mechanisms import MechanismRecord
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
from release.spec.load import SpecFile
from release.spec.mechanisms import record_model
from release.spec.query import Query
from release.version import VERSION


@dataclass(frozen=True, repr=False)
class Result:
    """One query ready to be published: its law and its noisy answers, in the order of ``keys``."""

    query: Query
    keys: tuple[tuple[str, ...], ...]
    design: AnyDesign
    charge: Charge
    noisy: Codes


@dataclass(frozen=True)
class About:
    """As what, under which day, and as which entry of which ledger a release is published."""

    kind: Literal["RELEASE", "TEST"]
    day: datetime.date
    sequence: int | None = None
    spending: Spending | None = None


_NEVER = "some published values never occur: ε over all differences is infinite"


def mechanism_record(query: Query, design: AnyDesign) -> MechanismRecord:
    """The file of a query's mechanism; every figure in it is recomputed from the integers."""
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
            "recomputed": _recomputed(
                mechanism.deltas(sensitivity, design.guarantee.epsilon), everywhere
            ),
            "design": _design_record(design, everywhere),
            "accuracy": accuracy_of(mechanism, domain),
            **model.own_fields(mechanism, sensitivity),
        }
    )


def _guarantee_record(guarantee: Guarantee) -> GuaranteeRecord:
    return GuaranteeRecord(
        definition=definition_name(guarantee.definition),
        epsilon=format_exact(guarantee.epsilon),
        delta=format_exact(guarantee.delta),
    )


def _recomputed(found: Deltas, everywhere: str) -> Recomputed:
    return Recomputed(
        delta_probabilistic=format_exact(found.probabilistic),
        delta_approximate=format_up(found.approximate, 60),
        epsilon_all_differences=everywhere,
    )


def _design_record(design: AnyDesign, everywhere: str) -> DesignRecord:
    return DesignRecord(
        method=design.method,
        loss=design.loss.name,
        objective=format_up(design.objective, 18),
        lower_bound=format_down(design.lower_bound, 18),
        bound="proved" if design.bound_proved else "solver",
        gap=format_up(design.gap, 18),
        solver=design.solver,
        notes=[*design.notes, *([_NEVER] if everywhere == "inf" else [])],
    )


def write_release(
    spec_file: SpecFile,
    results: tuple[Result, ...],
    charged: Charges,
    folder: Path,
    of: About,
) -> None:
    """Write both bundles of a release below ``folder``: all files but those that sign for it.

    Raises:
        OSError: the disk is full or read-only.
    """
    writer = _Writer(spec_file, folder / "public", folder / "auditor")
    for result in results:
        writer.add(result)
    writer.finish(release_record(spec_file, results, charged, writer.records, of), of.spending)


class _Writer:
    """Writes the files of both bundles into the staging folder and remembers their records."""

    def __init__(self, spec_file: SpecFile, public: Path, auditor: Path) -> None:
        self._spec_file = spec_file
        self._public = public
        self._auditor = auditor
        self._openings: dict[str, Opening] = {}
        self._queries: list[PublicQuery] = []

    def add(self, result: Result) -> None:
        query, spec = result.query, self._spec_file.spec
        mechanism = mechanism_record(query, result.design)
        file: MechanismFile | MechanismCommitment = (
            self._commit(query, mechanism)
            if query.is_empirical
            else self._publish(query, mechanism)
        )
        path = f"data/{query.name}.parquet"
        data = released_bytes(spec.release.id, query, result.keys, result.noisy)
        write(self._public / path, data)
        output = OutputFile(path=path, sha256=sha256(data), rows=len(result.keys))
        self._queries.append(
            PublicQuery(
                query,
                query_record(result, file, output),
                result.keys,
                tuple(result.noisy.tolist()),
                None if query.is_empirical else mechanism,
                () if query.is_empirical else result.design.compared,
                rests_on(spec, query),
            )
        )

    def _publish(self, query: Query, mechanism: MechanismRecord) -> MechanismFile:
        path, data = f"mechanisms/{query.name}.json", canonical(mechanism)
        write(self._public / path, data)
        return MechanismFile(path=path, sha256=sha256(data))

    def _commit(self, query: Query, mechanism: MechanismRecord) -> MechanismCommitment:
        """A mechanism that shows what was seen in the table stays in the auditor bundle."""
        path, data = f"mechanisms/{query.name}.json", canonical(mechanism)
        key = secrets.token_bytes(32)
        commitment = commit(key, data)
        self._openings[path] = Opening(key=key.hex(), commitment=commitment)
        write(self._auditor / path, data, 0o600)
        proved = mechanism.to_sensitivity()
        sensitivity = SensitivityRecord(
            schema="dp-release/sensitivity/v1",
            query=query.name,
            source=query.source,
            neighbors=self._spec_file.spec.privacy.neighbors.value,
            group=mechanism.group,
            sensitivity=[list(shift) for shift in proved.shifts],
            apart=None if proved.apart is None else list(proved.apart),
        )
        write(self._auditor / "sensitivity" / f"{query.name}.json", canonical(sensitivity), 0o600)
        return MechanismCommitment(commitment=commitment)

    @property
    def records(self) -> list[QueryRecord]:
        return [public.record for public in self._queries]

    def finish(self, record: ReleaseRecord, spent: Spending | None) -> None:
        write(self._public / "spec.yaml", self._spec_file.text)
        write(self._public / "release.json", canonical(record))
        sizes = {
            one.output.path: (self._public / one.output.path).stat().st_size
            for one in record.queries
        }
        spec = self._spec_file.spec
        write(self._public / DATAPACKAGE, datapackage(spec, record, sizes))
        write(self._public / REGISTRY, registry(spec, record))
        write(
            self._public / "report.html", report_html(record, tuple(self._queries), spent).encode()
        )
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
    """What ``release.json`` says of one query."""
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
    whole = guarantee_kind(tuple(result.query for result in results))
    instance = whole == "instance-specific"
    epsilon, delta = format_exact(charged.epsilon), format_exact(charged.delta)
    privacy = spec.privacy
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
        privacy=PrivacyRecord(
            unit=privacy.unit,
            neighbors=privacy.neighbors.value,
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
        sampling=Sampling(source="os", method="inverse-cdf-integer", seeded=of.kind == "TEST"),
        invariants=[],
        post_processing=[],
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
