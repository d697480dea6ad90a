"""Writes the files of both halves of a release, from what was prepared and what was drawn.

The public half is for everyone. Empirical sensitivity depends on the table, and so does the
mechanism that follows from it: it goes to the auditor's half (mode 0700), and the public one holds
a salted commitment. :mod:`release.bundle.publish` makes the folder public.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dp_release_verify import forms
from dp_release_verify.digests import SUMS, read_folder, sums_text
from release.budget.ledger import Spending
from release.bundle.bounded import bounded_words, shared_words
from release.bundle.files.asked import asked_of
from release.bundle.files.keys import keys_of
from release.bundle.metadata import DATAPACKAGE, datapackage, described
from release.bundle.opened import KEYS, RECORD, SPEC
from release.bundle.prepared import PUBLIC, Prepared, PreparedQuery, copy_laws
from release.bundle.report.page import report_html
from release.bundle.report.plain import plain_html
from release.bundle.report.published import PublicQuery
from release.bundle.statements import rests_on, tabulation_rests_on
from release.bundle.tables.answers import released_bytes
from release.bundle.tables.intervals import around
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.queries.read import parse_spec
from release.records.files import write
from release.spec.load import SpecFile
from release.tabulations.files.entries import MeasuredTable
from release.tabulations.files.writing import PublicTabulation, write_tabulation
from release.tabulations.measure.table_count import CENTER, TableCount


def write_release(
    spec_file: SpecFile,
    prepared: Prepared,
    noisy: Sequence[Codes],
    folder: Path,
    *,
    has_pictures: bool = True,
) -> None:
    """Write both halves of a release below ``folder``: all files but its signatures.

    ``noisy`` is what was drawn for each query of ``prepared``. Without ``has_pictures`` the report
    is a page of plain tables, which it also is where the page cannot be drawn.

    Raises:
        OSError: the disk is full or read-only.
    """
    copy_laws(prepared, folder)
    writer = _Writer(spec_file, folder / PUBLIC)
    for own, codes in zip(prepared.queries, noisy, strict=True):
        if own.query.is_measured:
            writer.measure(own, codes)
        else:
            writer.add(own, codes)
    writer.tabulate()
    writer.finish(prepared, has_pictures=has_pictures)


class _Writer:
    """Writes the files with noise in them, and remembers what was made."""

    def __init__(self, spec_file: SpecFile, public: Path) -> None:
        self._spec_file = spec_file
        self._public = public
        self._queries: list[PublicQuery] = []
        self._measured: dict[str, list[MeasuredTable]] = defaultdict(list)
        self._tabulations: list[PublicTabulation] = []

    def measure(self, prepared: PreparedQuery, noisy: Codes) -> None:
        query, mechanism = prepared.query, prepared.mechanism
        if not isinstance(query, TableCount) or not isinstance(mechanism, IntegerMechanism):
            raise TypeError(f"{query.name} is no table of a tabulation")
        if prepared.law is None:
            raise TypeError(f"the mechanism of {query.name} is not public")
        opened = self._spec_file.tabulation(query.tabulation)
        cells = opened.table(query.level, query.margin).margin.cells
        counts = (noisy + CENTER).reshape(-1, cells)
        own = MeasuredTable(query, prepared.charge, mechanism.noise, prepared.law, counts)
        self._measured[query.tabulation].append(own)

    def tabulate(self) -> None:
        release_id = self._spec_file.spec.release.id
        for opened in self._spec_file.tabulations:
            own = self._measured[opened.name]
            public = write_tabulation(release_id, opened, own, self._public)
            rests = tabulation_rests_on(self._spec_file.spec, opened.declared)
            self._tabulations.append(replace(public, rests_on=rests))

    def add(self, prepared: PreparedQuery, noisy: Codes) -> None:
        # Imported here: it loads an engine, and importing the package loads none.
        from release.queries.profiles import cells_of

        query, spec = prepared.query, self._spec_file.spec
        keys = cells_of(self._spec_file, query).keys
        outcomes = noisy.reshape(len(keys), -1)
        bounded = bounded_words(spec, query)
        near = None
        # Of a mechanism that depends on the table nothing is said.
        if prepared.mechanism is not None:
            near = around(query, prepared.mechanism, outcomes, bounded)
        kinds = spec.table_columns(query.table)
        data = released_bytes(spec.release.id, query, kinds, keys, outcomes, near)
        write(self._public / f"data/{query.name}.parquet", data)
        self._queries.append(
            PublicQuery(
                query,
                made_query(prepared, len(keys)),
                prepared.family,
                keys,
                outcomes,
                prepared.mechanism,
                prepared.figures,
                prepared.compared,
                rests_on(spec, query),
                bounded,
                shared_words(spec, query),
            )
        )

    def finish(self, prepared: Prepared, *, has_pictures: bool) -> None:
        # Without the guarantees that were found: the question is what was asked.
        spec = parse_spec(self._spec_file.text)
        made = self._made(prepared)
        day = prepared.of.day.isoformat()
        record = forms.Release(
            schema="dp-release/release/v1",
            kind=prepared.of.kind,
            published=day,
            asked=asked_of(spec),
            made=made,
            software=prepared.software,
        )
        write(self._public / SPEC, self._spec_file.text)
        write(self._public / RECORD, forms.dumps(record))
        write(self._public / KEYS, forms.dumps(keys_of(self._spec_file)))
        write(
            self._public / DATAPACKAGE,
            datapackage(spec, made, day, described(self._public)),
        )
        html = self._report(record, prepared.of.spending, has_pictures=has_pictures)
        write(self._public / "report.html", html.encode())
        write(self._public / SUMS, sums_text(read_folder(self._public).sums))

    def _made(self, prepared: Prepared) -> forms.Made:
        charged, of = prepared.charged, prepared.of
        total = forms.Claim(charged.definition.value, charged.epsilon, charged.delta)
        return forms.Made(
            queries=[public.made for public in self._queries],
            total=total,
            tabulations=[public.made for public in self._tabulations] or None,
            step=charged.step or of.step,
            ledger=None if of.sequence is None else forms.Paid(of.sequence),
        )

    def _report(self, record: forms.Release, spent: Spending | None, *, has_pictures: bool) -> str:
        spec = self._spec_file.spec
        queries, tabulations = tuple(self._queries), tuple(self._tabulations)
        if has_pictures:
            # A fault of a picture is no reason to lose what is paid for and drawn.
            with suppress(Exception):
                return report_html(record, spec, queries, tabulations, spent)
        return plain_html(record, queries)


def made_query(prepared: PreparedQuery, cells: int) -> forms.MadeQuery:
    """The entry of one query in ``release.json``."""
    claimed, charge = prepared.query.claimed, prepared.charge
    return forms.MadeQuery(
        name=prepared.query.name,
        definition=claimed.definition.value,
        epsilon=claimed.epsilon,
        delta=claimed.delta,
        cells=cells,
        charge=forms.Figures(charge.epsilon, charge.delta),
        mechanism=prepared.law,
        commitment=prepared.commitment,
    )
