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
    channel_accuracy,
    channel_epsilon,
    epsilon_everywhere,
    guarantee_kind,
    limits,
    rests_on,
    withheld,
)
from release.exact.channel import channel_deltas
from release.exact.domain import Codes
from release.exact.numbers import exp_bounds, format_down, format_exact, format_up
from release.exact.privacy import Deltas, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.select import Chosen, ChosenChannel
from release.records.files import write
from release.records.hashes import commit, sha256
from release.records.models import (
    ChannelRecord,
    ChargeRecord,
    Composition,
    DesignRecord,
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
    SensitivityRecord,
    Software,
    canonical,
    definition_name,
)
from release.spec.load import SpecFile
from release.spec.model import Query, answer_domain, plain_domain
from release.version import VERSION


@dataclass(frozen=True, repr=False)
class Result:
    """One query ready to be published: its law and its noisy answers, in the order of ``keys``."""

    query: Query
    keys: tuple[tuple[str, ...], ...]
    design: Chosen
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


def law_record(query: Query, design: Chosen) -> LawRecord | ChannelRecord:
    """The law file of one query; every figure in it is recomputed from the integers."""
    if isinstance(design, ChosenChannel):
        return _channel_record(query, design)
    law = design.law
    found = deltas(law, design.sensitivity, design.guarantee.epsilon)
    everywhere = epsilon_everywhere(law)
    return LawRecord(
        schema="dp-release/mechanism/v1",
        query=query.name,
        mechanism="modular",
        group=list(law.group.moduli),
        weights=[str(weight) for weight in law.weights.tolist()],
        total=str(law.total),
        sensitivity=[list(shift) for shift in design.sensitivity.shifts],
        directed=design.sensitivity.directed,
        guarantee=_guarantee_record(design.guarantee),
        recomputed=_recomputed(found, everywhere),
        design=_design_record(design, everywhere),
        accuracy=accuracy_of(law, answer_domain(query).parts),
    )


def _channel_record(query: Query, design: ChosenChannel) -> ChannelRecord:
    channel, pairs = design.channel, design.pairs
    found = channel_deltas(channel, pairs, exp_bounds(design.guarantee.epsilon)[0])
    everywhere = channel_epsilon(channel)
    return ChannelRecord(
        schema="dp-release/mechanism/v1",
        query=query.name,
        mechanism="channel",
        group=[channel.answers],
        rows=[[str(weight) for weight in row] for row in channel.rows.tolist()],
        total=str(channel.total),
        pairs=[list(pair) for pair in pairs],
        directed=False,
        guarantee=_guarantee_record(design.guarantee),
        recomputed=_recomputed(found, everywhere),
        design=_design_record(design, everywhere),
        accuracy=channel_accuracy(channel),
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


def _design_record(design: Chosen, everywhere: str) -> DesignRecord:
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
        self._seen: list[PublicQuery] = []

    def add(self, result: Result) -> None:
        query, spec = result.query, self._spec_file.spec
        law_json = law_record(query, result.design)
        law_bytes = canonical(law_json)
        law_path, data_path = f"mechanisms/{query.name}.json", f"data/{query.name}.parquet"
        instance = query.is_empirical
        law: LawFile | LawCommitment
        if instance:
            key = secrets.token_bytes(32)
            commitment = commit(key, law_bytes)
            law = LawCommitment(commitment=commitment)
            self._openings[law_path] = Opening(key=key.hex(), commitment=commitment)
            write(self._auditor / law_path, law_bytes, 0o600)
            shifts = [list(shift) for shift in _sensitivity(result.design).shifts]
            sensitivity = SensitivityRecord(
                schema="dp-release/sensitivity/v1",
                query=query.name,
                source=query.source,
                neighbors=spec.privacy.neighbors.value,
                group=list(result.design.sensitivity.group.moduli),
                sensitivity=shifts,
                apart=_apart(result.design),
            )
            path = self._auditor / "sensitivity" / f"{query.name}.json"
            write(path, canonical(sensitivity), 0o600)
        else:
            law = LawFile(path=law_path, sha256=sha256(law_bytes))
            write(self._public / law_path, law_bytes)
        data = released_bytes(spec.release.id, query, result.keys, result.noisy)
        write(self._public / data_path, data)
        output = OutputFile(path=data_path, sha256=sha256(data), rows=len(result.keys))
        record = query_record(result, law, output)
        codes = tuple(result.noisy.tolist())
        self._seen.append(
            PublicQuery(
                query,
                record,
                result.keys,
                codes,
                None if instance else law_json,
                () if instance else result.design.compared,
                rests_on(spec, query),
            )
        )

    @property
    def records(self) -> list[QueryRecord]:
        return [public.record for public in self._seen]

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
        write(self._public / "report.html", report_html(record, tuple(self._seen), spent).encode())
        if self._openings:
            openings = OpeningsRecord(
                schema="dp-release/openings/v1",
                release_id=record.release_id,
                openings=self._openings,
            )
            write(self._auditor / "openings.json", canonical(openings), 0o600)


def _sensitivity(design: Chosen) -> Sensitivity:
    """Those of the law; of a channel those of its pairs."""
    found = design.sensitivity
    if isinstance(design, ChosenChannel):
        return Sensitivity.on_line(design.channel.answers, found.apart or ())
    return found


def _apart(design: Chosen) -> list[int] | None:
    return list(design.sensitivity.apart or ()) if isinstance(design, ChosenChannel) else None


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
        sensitivity_source=query.source,
        mechanism="channel" if isinstance(result.design, ChosenChannel) else "modular",
        law=law,
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
