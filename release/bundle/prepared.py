"""What a release holds beside its noise: written before the draw, so that a crash finds it again.

The mechanism files need no noise, and take long. They are written into a private folder as both
bundles will have them, with the keys of the commitments. What is drawn is then the only thing that
a release still lacks (:mod:`release.bundle.drawn`).
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias

from dp_release_verify.digests import commit, sha256
from release.budget.cost import Charge, Charges
from release.budget.ledger import Spending
from release.budget.patterns import Pattern, patterns_of
from release.budget.profiles import own_step, profile_over
from release.bundle.mechanisms import mechanism_record, statistic_record
from release.bundle.software import software
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.records.files import write
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import (
    MechanismCommitment,
    MechanismFile,
    Opening,
    OpeningsRecord,
    SensitivityRecord,
    Software,
    canonical,
)
from release.records.profiles import ProfileRecord
from release.spec.load import SpecFile
from release.spec.query import Query

PUBLIC, AUDITOR = "public", "auditor"
"""The folders of both bundles."""


@dataclass(frozen=True)
class About:
    """The kind and day of a release, and the ledger entry that pays for it."""

    kind: Literal["RELEASE", "TEST", "REHEARSAL"]
    day: datetime.date
    sequence: int | None = None
    spending: Spending | None = None


@dataclass(frozen=True, repr=False)
class PreparedQuery:
    """A query to publish: its charge, its mechanism as a reader gets it, and not its noise.

    ``family`` is that of the mechanism. ``mechanism`` is None where it depends on the table.
    ``compared`` is the expected loss of each mechanism, where several were compared in public.
    """

    query: Query
    charge: Charge
    family: str
    file: MechanismFile | MechanismCommitment
    mechanism: AnyMechanismRecord | None = None
    compared: tuple[tuple[str, Fraction], ...] = ()


@dataclass(frozen=True, repr=False)
class Prepared:
    """A release without its noise; the files of its mechanisms are below ``folder``."""

    folder: Path
    queries: tuple[PreparedQuery, ...]
    charged: Charges
    of: About
    software: Software


def prepare(
    spec_file: SpecFile,
    designs: Iterable[tuple[Query, AnyDesign | StatisticDesign]],
    charged: Charges,
    of: About,
    folder: Path,
) -> Prepared:
    """Write the mechanism files of both bundles below ``folder``.

    ``designs`` are in the order of the charges.

    Raises:
        OSError: the disk is full or read-only.
    """
    writer = _Writer(spec_file, folder, charged.step)
    queries = []
    for (query, design), charge in zip(designs, charged.queries, strict=True):
        queries.append(writer.add(query, design, charge))
    writer.finish()
    return Prepared(folder, tuple(queries), charged, of, software())


def copy_mechanisms(prepared: Prepared, folder: Path) -> None:
    """Copy the mechanism files to ``folder``, where the other files of both bundles are written.

    Raises:
        OSError: the disk is full or read-only.
    """
    # What a committed mechanism tells of the table is for its owner and the auditor alone.
    for half, mode in ((PUBLIC, 0o644), (AUDITOR, 0o600)):
        for path in sorted((prepared.folder / half).rglob("*")):
            if path.is_file():
                target = folder / path.relative_to(prepared.folder)
                write(target, path.read_bytes(), mode)


_Shared: TypeAlias = tuple[int, tuple[Pattern, ...], Fraction]
"""What queries with one mechanism file have in common: design, patterns of a unit, and grid."""


class _Writer:
    """Writes the mechanism files into a folder, and remembers which of them are shared."""

    def __init__(self, spec_file: SpecFile, folder: Path, step: Fraction | None) -> None:
        self._spec_file = spec_file
        self._step = step
        self._public = folder / PUBLIC
        self._auditor = folder / AUDITOR
        self._openings: dict[str, Opening] = {}
        self._published: dict[_Shared, tuple[AnyMechanismRecord, MechanismFile]] = {}

    def add(
        self, query: Query, design: AnyDesign | StatisticDesign, charge: Charge
    ) -> PreparedQuery:
        family = design.mechanism.family
        # The report is public, so of an empirical query it gets neither mechanism nor comparison.
        if query.is_empirical and not isinstance(design, StatisticDesign):
            return PreparedQuery(query, charge, family, self._commit(query, design))
        mechanism, file = self._publish(query, design)
        compared = () if isinstance(design, StatisticDesign) else design.compared
        return PreparedQuery(query, charge, family, file, mechanism, compared)

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

    def _commit(self, query: Query, design: AnyDesign) -> MechanismCommitment:
        """Write a mechanism that depends on the table into the auditor bundle alone."""
        # Without a profile: that of another table would be another one (docs/design/format.md,
        # 6.1).
        mechanism = mechanism_record(query, design)
        path, data = f"mechanisms/{query.name}.json", canonical(mechanism)
        # Without a random key, the few mechanisms that are likely could be tried one by one.
        key = secrets.token_bytes(32)
        commitment = commit(key, data)
        self._openings[path] = Opening(key=key.hex(), commitment=commitment)
        write(self._auditor / path, data, 0o600)
        record = canonical(self._sensitivity(query, mechanism))
        write(self._auditor / "sensitivity" / f"{query.name}.json", record, 0o600)
        return MechanismCommitment(commitment=commitment)

    def _sensitivity(self, query: Query, mechanism: MechanismRecord) -> SensitivityRecord:
        stated = mechanism.to_sensitivity()
        return SensitivityRecord(
            schema="dp-release/sensitivity/v1",
            query=query.name,
            source=query.source,
            neighbors=self._spec_file.spec.privacy.neighbors.value,
            group=mechanism.group,
            sensitivity=list(map(list, stated.shifts)),
            distances=None if stated.distances is None else list(stated.distances),
        )

    def finish(self) -> None:
        if self._openings:
            openings = OpeningsRecord(
                schema="dp-release/openings/v1",
                release_id=self._spec_file.spec.release.id,
                openings=self._openings,
            )
            write(self._auditor / "openings.json", canonical(openings), 0o600)
