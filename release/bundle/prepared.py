"""What a release holds beside its noise: written before the draw, so that a crash finds it again.

The laws of the mechanisms need no noise, and take long. They are written into a private folder as
both halves of the release will have them, with the keys of the commitments. What is drawn is then
the only thing that a release still lacks (:mod:`release.bundle.drawn`).
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from dp_release_verify import forms
from dp_release_verify.digests import commit
from release.budget.cost import Charge, Charges
from release.budget.ledger import Spending
from release.bundle.figures import Figures, figures_of
from release.bundle.files.laws import AnyMechanism, found_of, law_of
from release.bundle.software import software
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.records.files import write
from release.spec.load import SpecFile
from release.spec.query import Query

PUBLIC, AUDITOR = "public", "auditor"
"""The folders of both halves."""


@dataclass(frozen=True)
class About:
    """The kind and day of a release, and the ledger entry that pays for it.

    ``step`` is the grid of losses on which a scope composes that does not add up.
    """

    kind: Literal["RELEASE", "TEST", "REHEARSAL"]
    day: datetime.date
    sequence: int | None = None
    spending: Spending | None = None
    step: Fraction | None = None


@dataclass(frozen=True, repr=False)
class PreparedQuery:
    """A query to publish: its charge, its mechanism as a reader gets it, and not its noise.

    ``family`` is that of the mechanism. ``law`` is the name of its file, or ``commitment`` covers
    it where it depends on the table; then there is neither ``mechanism`` nor ``figures``.
    ``compared`` is the expected loss of each mechanism, where several were compared in public.
    """

    query: Query
    charge: Charge
    family: str
    law: str | None = None
    commitment: str | None = None
    mechanism: AnyMechanism | None = None
    figures: Figures | None = None
    compared: tuple[tuple[str, Fraction], ...] = ()


@dataclass(frozen=True, repr=False)
class Prepared:
    """A release without its noise; the files of its laws are below ``folder``."""

    folder: Path
    queries: tuple[PreparedQuery, ...]
    charged: Charges
    of: About
    software: forms.Software


def prepare(
    spec_file: SpecFile,
    designs: Iterable[tuple[Query, AnyDesign | StatisticDesign]],
    charged: Charges,
    of: About,
    folder: Path,
) -> Prepared:
    """Write the laws of both halves of a release below ``folder``.

    ``designs`` are in the order of the charges.

    Raises:
        OSError: the disk is full or read-only.
    """
    writer = _Writer(spec_file.spec.release.id, folder)
    queries = []
    for (query, design), charge in zip(designs, charged.queries, strict=True):
        queries.append(writer.add(query, design, charge))
    return Prepared(folder, tuple(queries), charged, of, software())


def copy_laws(prepared: Prepared, folder: Path) -> None:
    """Copy the laws to ``folder``, where the other files of the release are written.

    Raises:
        OSError: the disk is full or read-only.
    """
    # What a committed mechanism tells of the table is for its owner and the auditor alone.
    for half, mode in ((PUBLIC, 0o644), (AUDITOR, 0o600)):
        for path in sorted((prepared.folder / half).rglob("*")):
            if path.is_file():
                target = folder / path.relative_to(prepared.folder)
                write(target, path.read_bytes(), mode)


class _Writer:
    """Writes the laws into a folder, and remembers which of them are shared."""

    def __init__(self, release_id: str, folder: Path) -> None:
        self._release_id = release_id
        self._public = folder / PUBLIC
        self._auditor = folder / AUDITOR
        self._names: dict[int, str] = {}

    def add(
        self, query: Query, design: AnyDesign | StatisticDesign, charge: Charge
    ) -> PreparedQuery:
        family = design.mechanism.family
        if isinstance(design, StatisticDesign):
            law = self._publish(query, design)
            return PreparedQuery(query, charge, family, law, mechanism=design.mechanism)
        # The report is public, so of an empirical query it gets neither mechanism nor comparison.
        if query.is_empirical:
            return PreparedQuery(query, charge, family, commitment=self._commit(query, design))
        return PreparedQuery(
            query,
            charge,
            family,
            self._publish(query, design),
            mechanism=design.mechanism,
            figures=figures_of(design),
            compared=design.compared,
        )

    def _publish(self, query: Query, design: AnyDesign | StatisticDesign) -> str:
        """Write a public law, once for all queries that share a design; the name of its file."""
        if id(design) not in self._names:
            self._names[id(design)] = query.name
            path = self._public / f"mechanisms/{query.name}.json"
            write(path, forms.dumps(law_of(design)))
        return self._names[id(design)]

    def _commit(self, query: Query, design: AnyDesign) -> str:
        """Write a law that depends on the table for the auditor alone; the commitment to it."""
        # Without a random key, the few laws that are likely could be tried one by one.
        key = secrets.token_bytes(32)
        covered = forms.Committed(law_of(design), found_of(design.mechanism, design.sensitivity))
        opened = forms.Opened(
            "dp-release/opened/v1",
            self._release_id,
            key.hex(),
            covered.law,
            covered.sensitivity,
        )
        write(self._auditor / f"{query.name}.json", forms.dumps(opened), 0o600)
        return commit(key, forms.dumps(covered))
