"""The draw of a run that has not published it yet, so that a later run publishes the same.

Two things are durable in the private working folder. ``prepared/`` is written before the draw: the
mechanism files of both bundles, the text of the spec, and ``prepared.json``, which says what the
queries charge. The file ``drawn`` follows the draw at once: the noisy codes, which are public by
definition. No true answer is in either. Every later version reads both: a field that is added has
a default, and none changes its meaning.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dp_release_verify import forms
from dp_release_verify.digests import sha256
from release.budget.caps import Rule
from release.budget.cost import Charge, Charges
from release.budget.ledger import Spending
from release.bundle.figures import Figures
from release.bundle.files.laws import AnyMechanism, mechanism_of
from release.bundle.prepared import PUBLIC, About, Prepared, PreparedQuery
from release.bundle.write import write_release
from release.errors import SpecError
from release.exact.domain import Codes
from release.exact.privacy import Definition
from release.queries.read import parse_spec
from release.records.files import write
from release.records.models import DefinitionName, Record, Sha256, canonical, parse, parse_plain
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile, open_named
from release.spec.named import by_name
from release.spec.query import Query
from release.tabulations.measure.table_count import TableCount, table_count
from release.version import VERSION

RECORD, SPEC = "prepared.json", "spec.yaml"
_CODES = np.dtype("<i8")

Rational = Annotated[str, Field(pattern=r"^[0-9]+(/[1-9][0-9]*)?$")]


class ComparedRecord(Record):
    """The expected loss of a mechanism that was compared."""

    name: str
    loss: Rational


class TableRecord(Record):
    """A table that a tabulation measures."""

    tabulation: str
    level: str
    margin: list[str]


class FoundRecord(Record):
    """A guarantee that is not in the spec: it was found with the mechanism."""

    definition: DefinitionName
    epsilon: Rational
    delta: Rational


class QueryOfDraw(Record):
    """A query: what it charges, and its mechanism."""

    name: str
    cells: int
    epsilon: Rational
    delta: Rational
    family: str
    law: str | None
    commitment: str | None
    figures: Figures | None
    compared: list[ComparedRecord]
    found: FoundRecord | None
    table: TableRecord | None


class SpendingRecord(Record):
    """What the scope of the release has spent, for its report."""

    scope: str
    rule: Rule
    days: list[str]
    levels: list[Rational]
    cap: Rational


class SoftwareRecord(Record):
    """The software that prepared the release."""

    dp_release: str
    source: Sha256


class PreparedRecord(Record):
    """``prepared.json``: all that rendering needs beside the files next to it, and the noise."""

    version: str
    release_id: str
    kind: Literal["RELEASE", "TEST", "REHEARSAL"]
    day: str
    sequence: int | None
    spending: SpendingRecord | None
    folder: str = Field(description="of the spec")
    inputs: Sha256 = Field(description="of the public files that the spec names, as opened")
    epsilon: Rational
    delta: Rational
    definition: DefinitionName
    step: Rational | None
    scope_step: Rational | None = Field(description="the grid of a scope that does not add up")
    software: SoftwareRecord
    queries: list[QueryOfDraw]
    files: dict[str, Sha256]


def size_of_draw(cells: Iterable[tuple[int, int]]) -> int:
    """An upper bound of the bytes of :func:`encoded`, from (cells, outputs) of each query."""
    shapes = list(cells)
    numbers = sum(count * outputs for count, outputs in shapes)
    return numbers * _CODES.itemsize + 64 * (len(shapes) + 2)


def save(spec_file: SpecFile, prepared: Prepared) -> None:
    """Write into the folder of ``prepared`` what a later run needs to render the release.

    Raises:
        OSError: the disk is full or read-only.
    """
    folder, charged, of = prepared.folder, prepared.charged, prepared.of
    # A retry writes both anew.
    for name in (SPEC, RECORD):
        (folder / name).unlink(missing_ok=True)
    # Private: the mechanisms of the auditor's folder beside it are not public.
    write(folder / SPEC, spec_file.text, 0o600)
    record = PreparedRecord(
        version=VERSION,
        release_id=spec_file.spec.release.id,
        kind=of.kind,
        day=of.day.isoformat(),
        sequence=of.sequence,
        spending=None if of.spending is None else _spending_record(of.spending),
        folder=str(spec_file.folder.absolute()),
        inputs=_inputs(spec_file),
        epsilon=str(charged.epsilon),
        delta=str(charged.delta),
        definition=charged.definition.value,
        step=None if charged.step is None else str(charged.step),
        scope_step=None if of.step is None else str(of.step),
        software=SoftwareRecord(
            dp_release=prepared.software.dp_release, source=prepared.software.source
        ),
        queries=list(map(_query_record, prepared.queries)),
        files=_digests(folder),
    )
    write(folder / RECORD, canonical(record), 0o600)


def _digests(folder: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(folder.rglob("*")):
        # The record holds these digests, so it can hold none of itself.
        if path.is_file() and path != folder / RECORD:
            digests[str(path.relative_to(folder))] = sha256(path.read_bytes())
    return digests


def _query_record(prepared: PreparedQuery) -> QueryOfDraw:
    query, charge = prepared.query, prepared.charge
    guarantee = table = None
    # Guarantees that the text of the spec does not hold: a later run would have to search again,
    # and might find another one than the noise was drawn for.
    if query.is_measured or query.is_shared or query.seeks_least:
        claimed = query.claimed
        guarantee = FoundRecord(
            definition=claimed.definition.value,
            epsilon=str(claimed.epsilon),
            delta=str(claimed.delta),
        )
    if isinstance(query, TableCount):
        table = TableRecord(tabulation=query.tabulation, level=query.level, margin=query.margin)
    compared = []
    for name, loss in prepared.compared:
        compared.append(ComparedRecord(name=name, loss=str(loss)))
    return QueryOfDraw(
        name=query.name,
        cells=charge.cells,
        epsilon=str(charge.epsilon),
        delta=str(charge.delta),
        family=prepared.family,
        law=prepared.law,
        commitment=prepared.commitment,
        figures=prepared.figures,
        compared=compared,
        found=guarantee,
        table=table,
    )


def _spending_record(spending: Spending) -> SpendingRecord:
    return SpendingRecord(
        scope=spending.scope,
        rule=spending.rule,
        days=list(spending.days),
        levels=list(map(str, spending.levels)),
        cap=str(spending.cap),
    )


def _inputs(spec_file: SpecFile) -> str:
    """The SHA-256 of what the public files hold that a spec names: keys, areas and numbers."""
    # repr() quotes and escapes, so that no two lists of keys have one text.
    digest = hashlib.sha256(repr(sorted(spec_file.keys.items())).encode())
    for opened in spec_file.tabulations:
        digest.update(repr((opened.named.names, sorted(opened.categories.items()))).encode())
        for parents in opened.named.areas.parents:
            digest.update(parents.astype(_CODES).tobytes())
        for table, numbers in opened.facts.items():
            digest.update(repr((table, numbers.shape)).encode())
            digest.update(numbers.astype(_CODES).tobytes())
    return digest.hexdigest()


def encoded(noisy: Sequence[Codes]) -> bytes:
    """The file ``drawn``: its SHA-256, the shapes of what was drawn, and the codes.

    Codes stand as 64-bit integers with the least byte first, query after query.
    """
    shapes = repr([list(codes.shape) for codes in noisy]).replace(" ", "")
    # "safe" raises where a wider type would lose digits without a word.
    parts = [codes.astype(_CODES, casting="safe").tobytes() for codes in noisy]
    body = b"\n".join((shapes.encode(), b"".join(parts)))
    return sha256(body).encode() + b"\n" + body


def decoded(data: bytes) -> tuple[Codes, ...]:
    """What :func:`encoded` wrote.

    Raises:
        ValueError: the bytes are damaged.
    """
    digest, _, body = data.partition(b"\n")
    if sha256(body).encode() != digest:
        raise ValueError("the draw is damaged")
    shapes, _, rest = body.partition(b"\n")
    noisy, begin = [], 0
    for shape in parse_plain(shapes):
        count = prod(shape)
        codes = np.frombuffer(rest, _CODES, count, begin * _CODES.itemsize)
        noisy.append(codes.astype(np.int64).reshape(shape))
        begin += count
    return tuple(noisy)


@dataclass(frozen=True, repr=False)
class Draw:
    """What an earlier run prepared in ``folder`` and drew; its files are as it wrote them."""

    folder: Path
    record: PreparedRecord
    noisy: tuple[Codes, ...]

    @classmethod
    def read(cls, folder: Path, drawn: Path) -> Draw:
        """Read both.

        Raises:
            OSError: a file cannot be read.
            ValueError: they are damaged.
        """
        record = parse(PreparedRecord, (folder / RECORD).read_bytes())
        if _digests(folder) != record.files:
            raise ValueError("what was prepared is damaged")
        return cls(folder, record, decoded(drawn.read_bytes()))

    @cached_property
    def text(self) -> bytes:
        """The text of the spec."""
        return (self.folder / SPEC).read_bytes()

    def write(self, folder: Path, spec_file: SpecFile | None = None) -> None:
        """Write both bundles below ``folder``, as :func:`release.bundle.write.write_release`.

        ``spec_file`` is the spec, where the caller has it; else the files that it names are opened.

        Raises:
            OSError: the disk is full or read-only.
            SpecError: a public file that the spec names cannot be read,
                or has changed.
        """
        opened = spec_file or open_named(parse_spec(self.text), self.text, Path(self.record.folder))
        # Another text or other public inputs would render the same noise as another release.
        if opened.text != self.text or _inputs(opened) != self.record.inputs:
            raise SpecError(
                "keys",
                f"a file of keys or areas has changed since {self.record.release_id!r} was drawn; "
                "put it back as it was, so that the release can be finished",
            )
        with_found = self._with_found(opened)
        write_release(with_found, self._prepared(with_found), self.noisy, folder)

    def _with_found(self, spec_file: SpecFile) -> SpecFile:
        """The spec with the guarantees and the tables that were found before the draw."""
        records = by_name(self.record.queries)
        queries: list[Query] = []
        for query in spec_file.spec.queries:
            entry = records.get(query.name)
            if entry is not None and entry.found is not None:
                guarantee = _guarantee(entry.found)
                if query.guarantee is not None:
                    guarantee = guarantee.model_copy(update={"least": query.guarantee.least})
                queries.append(query.model_copy(update={"guarantee": guarantee}))
            else:
                queries.append(query)
        for entry in self.record.queries:
            if entry.table is not None and entry.found is not None:
                queries.append(_table(spec_file, entry.table, entry.found))
        spec = spec_file.spec.model_copy(update={"queries": queries})
        return replace(spec_file, spec=spec)

    def _prepared(self, spec_file: SpecFile) -> Prepared:
        record = self.record
        queries = []
        # Strict: draws follow each other in this order, and one too few would shift all others.
        for query, entry in zip(spec_file.spec.charged, record.queries, strict=True):
            queries.append(
                PreparedQuery(
                    query,
                    Charge(entry.cells, Fraction(entry.epsilon), Fraction(entry.delta)),
                    entry.family,
                    entry.law,
                    entry.commitment,
                    None if entry.law is None else self._mechanism(spec_file, query, entry.law),
                    entry.figures,
                    tuple((rival.name, Fraction(rival.loss)) for rival in entry.compared),
                )
            )
        charged = Charges(
            tuple(query.charge for query in queries),
            Fraction(record.epsilon),
            Fraction(record.delta),
            Definition(record.definition),
            None if record.step is None else Fraction(record.step),
        )
        spending = None if record.spending is None else _spending(record.spending)
        day = datetime.date.fromisoformat(record.day)
        step = None if record.scope_step is None else Fraction(record.scope_step)
        of = About(record.kind, day, record.sequence, spending, step)
        software = forms.Software(record.software.dp_release, record.software.source)
        return Prepared(self.folder, tuple(queries), charged, of, software)

    def _mechanism(self, spec_file: SpecFile, query: Query, name: str) -> AnyMechanism:
        file = f"mechanisms/{name}.json"
        law = forms.loads(forms.Law, file, (self.folder / PUBLIC / file).read_bytes())
        return mechanism_of(spec_file.spec, query, law)


def _guarantee(record: FoundRecord) -> GuaranteeSpec:
    return GuaranteeSpec(
        definition=Definition(record.definition),
        epsilon=Fraction(record.epsilon),
        delta=Fraction(record.delta),
    )


def _table(spec_file: SpecFile, table: TableRecord, guarantee: FoundRecord) -> TableCount:
    opened = spec_file.tabulation(table.tabulation)
    return table_count(opened, opened.table(table.level, table.margin), _guarantee(guarantee))


def _spending(record: SpendingRecord) -> Spending:
    return Spending(
        record.scope,
        record.rule,
        tuple(record.days),
        tuple(map(Fraction, record.levels)),
        Fraction(record.cap),
    )
