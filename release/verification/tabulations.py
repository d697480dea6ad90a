"""Checks the tabulations of a release: from measured tables to published ones, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from pathlib import Path

from release.bundle.statements import tabulation_rests_on
from release.bundle.tabulations.entries import family_of, level_record, objective_of
from release.bundle.tabulations.files import declared_name, level_name
from release.bundle.tabulations.numbers import LevelNumbers, tabulated
from release.bundle.tabulations.reading import areas_of, check_declared, check_level, check_measured
from release.errors import SpecError, VerificationError
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.numbers import format_exact
from release.exact.privacy import Definition
from release.exact.tables.cone import coarsened
from release.queries.tabulations.table_count import TableCount, table_count
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import ReleaseRecord
from release.records.tabulations import MeasuredRecord, TabulationRecord
from release.spec.guarantees import GuaranteeSpec
from release.spec.model import Spec
from release.spec.named import names_of
from release.spec.tabulations.open import MOST_UNITS, with_areas, with_facts
from release.spec.tabulations.opened import NamedMargin, OpenTabulation, Table
from release.verification.findings import Finding, made
from release.verification.mechanisms import expect
from release.verification.residuals import CHANCE, no_residuals

FILE = "release.json"


@dataclass(frozen=True)
class PublishedTabulations:
    """The tabulations of a release, with the areas and the declared numbers of its files.

    Attributes:
        opened: in the order of the spec.
        by_contents: the files of which only the contents could be compared.
    """

    opened: tuple[OpenTabulation, ...]
    by_contents: tuple[str, ...]


def open_published(public: Path, release: ReleaseRecord, spec: Spec) -> PublishedTabulations:
    """Read the areas and the declared numbers, and hold the record against the spec.

    Raises:
        VerificationError: the record or a file does not fit.
    """
    # Step 43 of docs/design/format.md, 8.13.
    records = release.tabulations or []
    expect(FILE, "tabulations is absent", release.tabulations is None, not spec.tabulations)
    # By names and in order: everything below takes the entry of a tabulation by its place.
    expect(FILE, "tabulations", names_of(records), names_of(spec.tabulations))
    opened, by_contents = [], list[str]()
    for place, record in enumerate(records):
        own, contents = _open(public, release.release_id, spec, place, record)
        opened.append(own)
        by_contents += contents
    return PublishedTabulations(tuple(opened), tuple(by_contents))


def _open(
    public: Path, release_id: str, spec: Spec, place: int, record: TabulationRecord
) -> tuple[OpenTabulation, list[str]]:
    declared = spec.tabulations[place]
    at = f"tabulations.{declared.name}"
    expect(FILE, f"{at}.table", record.table, declared.table)
    levels = declared.hierarchy.levels
    expect(FILE, f"{at}.levels", record.level_names, levels)
    # The spec's file of areas is not in a release: its areas are those of the lowest level's file.
    lowest = record.levels[-1].output
    kinds = spec.table_columns(declared.table)
    named = areas_of(lowest.path, public / lowest.path, lowest.rows, levels, kinds)
    try:
        opened = with_areas(spec, place, named)
    except SpecError as error:
        raise VerificationError(lowest.path, "areas", str(error), "fewer cells") from error
    for level, entry in enumerate(record.levels):
        path = f"data/{level_name(opened, level)}.parquet"
        expect(FILE, f"{at}.{entry.level} (path)", entry.output.path, path)
        expect(FILE, f"{at}.{entry.level} (rows)", entry.output.rows, opened.rows(level))
        expected = level_record(opened, level, entry.output)
        expect(FILE, f"{at}.{entry.level}", entry, expected)
    return _with_declared(public, release_id, opened, record)


def _with_declared(
    public: Path, release_id: str, opened: OpenTabulation, record: TabulationRecord
) -> tuple[OpenTabulation, list[str]]:
    """The tabulation with the numbers that its spec declares."""
    at = f"tabulations.{opened.name}.declared"
    expect(FILE, f"{at} (number)", len(record.declared), len(opened.declared.facts))
    facts: dict[Table, Codes] = {}
    by_contents = []
    for entry, table in zip(record.declared, opened.declared_tables, strict=True):
        if not opened.finest[0].refines(table.margin):
            raise VerificationError(
                "spec.yaml",
                f"{at} (margin)",
                str(list(table.names)),
                "what a published margin refines",
            )
        expect(FILE, f"{at} (level)", entry.level, opened.levels[0])
        expect(FILE, f"{at} (margin)", entry.margin, list(table.names))
        path = f"measurements/{declared_name(opened)}.parquet"
        expect(FILE, f"{at} (path)", entry.output.path, path)
        expect(FILE, f"{at} (rows)", entry.output.rows, opened.cells(table.table))
        checked = check_declared(path, public / path, release_id, opened, table)
        if not checked.by_bytes:
            by_contents.append(path)
        facts[table.table] = checked.values
        # No value is above the bound, so that no sum of 2^25 of them overflows.
        if checked.values.max() > MOST_UNITS or int(checked.values.sum()) > MOST_UNITS:
            raise VerificationError(path, "count", "a larger sum", f"at most {MOST_UNITS} in all")
        # A number there would contradict the zeros that the spec declares, and no tables add up.
        possible = opened.possible(table.margin)
        if possible is not None and (checked.values[:, ~possible] > 0).any():
            raise VerificationError(path, "count", "above 0", "0 in impossible combinations")
    return with_facts(opened, facts), by_contents


def with_measured(spec: Spec, release: ReleaseRecord, opened: Sequence[OpenTabulation]) -> Spec:
    """The spec with the tables that release.json says were measured, and their guarantees.

    Raises:
        VerificationError: a table that a strategy cannot measure, or no guarantee.
    """
    measured: list[TableCount] = []
    for tabulation, record in zip(opened, release.tabulations or [], strict=True):
        tables = []
        for entry in record.measured:
            table, query = _measured(tabulation, entry)
            tables.append(table)
            measured.append(query)
        _check_strategy(tabulation, record, tables)
    # As queries of the spec, the tables pass every check of a query: mechanism, charge and budget.
    return spec.model_copy(update={"queries": [*spec.queries, *measured]})


def _measured(opened: OpenTabulation, entry: MeasuredRecord) -> tuple[NamedMargin, TableCount]:
    """The table of an entry, as the tabulation has it."""
    at = f"tabulations.{opened.name}.{entry.name}"
    if entry.level not in opened.levels:
        raise VerificationError(FILE, f"{at}.level", entry.level, f"one of {opened.levels}")
    # None but published margins: a strategy cannot measure what no level publishes.
    names = [margin.names for margin in opened.margins]
    if tuple(entry.margin) not in names:
        raise VerificationError(FILE, f"{at}.margin", str(entry.margin), "a published margin")
    own = opened.margins[names.index(tuple(entry.margin))]
    table = NamedMargin(opened.levels.index(entry.level), own.names, own.margin)
    try:
        guarantee = GuaranteeSpec(
            definition=Definition(entry.definition),
            epsilon=Fraction(entry.epsilon),
            delta=Fraction(entry.delta),
        )
    except ValueError as error:
        raise VerificationError(FILE, f"{at}.epsilon", entry.epsilon, "a guarantee") from error
    # Equal numbers have equal texts, as everywhere in a record.
    expect(FILE, f"{at}.epsilon", entry.epsilon, format_exact(guarantee.epsilon))
    expect(FILE, f"{at}.delta", entry.delta, format_exact(guarantee.delta))
    query = table_count(opened, table, guarantee)
    expect(FILE, f"{at}.name", entry.name, query.name)
    expect(FILE, f"{at}.cells", entry.cells, query.cells)
    return table, query


def _check_strategy(
    opened: OpenTabulation, record: TabulationRecord, tables: Sequence[NamedMargin]
) -> None:
    """Tables are measured once each, in order; a pinned strategy's are those of the spec."""
    at = f"tabulations.{opened.name}.measured"
    places = [(table.level, opened.distinct.index(table.margin)) for table in tables]
    # The set refuses a table that is measured twice: one charge would stand for two draws.
    expect(FILE, f"{at} (order)", places, sorted(set(places)))
    for table in tables:
        if table.table in opened.facts:
            raise VerificationError(
                FILE, at, "a declared table", "no noise where numbers are declared"
            )
    # Step 44 of docs/design/format.md, 8.13.
    pinned = opened.declared.strategy
    if pinned is None:
        return
    if pinned.noise is not None:
        expect(FILE, f"tabulations.{opened.name}.noise", record.noise, pinned.noise)
    if pinned.tables is not None:
        pinned_places = []
        for listed in pinned.tables:
            margin = opened.margin(listed.margin)
            if margin not in opened.distinct:
                raise VerificationError(
                    "spec.yaml", f"{at} (pinned)", str(listed.margin), "a published margin"
                )
            place = opened.distinct.index(margin)
            pinned_places.append((opened.levels.index(listed.level), place))
        expect(FILE, f"{at} (pinned)", places, sorted(pinned_places))


@dataclass(frozen=True, eq=False)
class MeasuredCounts:
    """The noisy counts of a table, whose file passed every check.

    Attributes:
        name: of the table's files.
        path: of the file, in the release.
        table: the level and the margin.
        mechanism: that of every cell.
        counts: shape (areas, cells).
        by_bytes: whether every byte was compared.
    """

    name: str
    path: str
    table: Table
    mechanism: IntegerMechanism
    counts: Codes
    by_bytes: bool


def check_tables(
    public: Path,
    release: ReleaseRecord,
    opened: Sequence[OpenTabulation],
    spec: Spec,
    mechanisms: Mapping[str, AnyMechanismRecord],
) -> tuple[list[Finding], list[str]]:
    """Compute the published tables from the measured ones, and compare them byte for byte.

    Returns the findings, and the files of which only the contents could be compared.

    Raises:
        VerificationError: a table holds another number than follows, or anything else.
    """
    findings: list[Finding] = []
    by_contents: list[str] = []
    for tabulation, record in zip(opened, release.tabulations or [], strict=True):
        queries = _queries_of(spec, tabulation)
        own, counts, noises = [], {}, {}
        for query, entry in zip(queries, record.measured, strict=True):
            mechanism = _mechanism_of(query.name, mechanisms[query.name])
            measured = _read(public, release.release_id, tabulation, query, entry, mechanism)
            own.append(measured)
            counts[measured.table] = measured.counts
            noises[measured.table] = mechanism.noise
            if not measured.by_bytes:
                by_contents.append(measured.path)
        findings += check_residuals(tabulation, own)
        at = f"tabulations.{tabulation.name}"
        expect(FILE, f"{at}.noise", record.noise, family_of(list(noises.values())))
        # Step 47 of docs/design/format.md, 8.13: all that is published follows from the counts
        # above.
        levels = _computed(at, tabulation, counts, noises)
        expect(FILE, f"{at}.objective", record.objective, objective_of(tabulation, levels))
        for numbers, level in zip(levels, record.levels, strict=True):
            path = level.output.path
            if not check_level(path, public / path, release.release_id, tabulation, numbers):
                by_contents.append(path)
        findings.append(_tables_follow(record))
    return findings, by_contents


def _computed(
    at: str,
    opened: OpenTabulation,
    counts: Mapping[Table, Codes],
    noises: Mapping[Table, IntegerNoise],
) -> tuple[LevelNumbers, ...]:
    try:
        return tabulated(opened, counts, noises, opened.half_widths(noises))
    except ValueError as error:
        raise VerificationError(
            FILE, f"{at}.measured", str(error), "tables from which all that is published follows"
        ) from error


def _mechanism_of(name: str, record: AnyMechanismRecord) -> IntegerMechanism:
    mechanism = record.to_mechanism() if isinstance(record, MechanismRecord) else None
    if not isinstance(mechanism, IntegerMechanism):
        raise VerificationError(FILE, name, record.mechanism, "noise on the integers")
    return mechanism


def _queries_of(spec: Spec, opened: OpenTabulation) -> list[TableCount]:
    queries = []
    for query in spec.measured:
        if isinstance(query, TableCount) and query.tabulation == opened.name:
            queries.append(query)
    return queries


def _read(
    public: Path,
    release_id: str,
    opened: OpenTabulation,
    query: TableCount,
    entry: MeasuredRecord,
    mechanism: IntegerMechanism,
) -> MeasuredCounts:
    """The counts of a measured table, and a check that its file and its entry say nothing else."""
    path = f"measurements/{query.name}.parquet"
    at = f"tabulations.{opened.name}.{query.name}"
    expect(FILE, f"{at} (path)", entry.output.path, path)
    expect(FILE, f"{at} (rows)", entry.output.rows, query.cells)
    table = opened.table(query.level, query.margin)
    # Step 46 of docs/design/format.md, 8.13.
    checked = check_measured(path, public / path, release_id, opened, table)
    values, by_bytes = checked.values, checked.by_bytes
    return MeasuredCounts(query.name, path, table.table, mechanism, values, by_bytes)


def _tables_follow(record: TabulationRecord) -> Finding:
    cells = str(record.cells)
    count = len(record.measured)
    tables = "1 measured table" if count == 1 else f"{count} measured tables"
    text = (
        f"{record.name}: the numbers of all {cells} published cells follow from {tables}; the "
        "whole numbers add up over areas and margins and are not negative"
    )
    return made("tabulations.tables", text, cells, cells)


def check_residuals(
    opened: OpenTabulation, measured: Sequence[MeasuredCounts]
) -> Iterator[Finding]:
    """Check that measured totals differ from the sums of measured parts, as noise makes them.

    Raises:
        VerificationError: too many do not.
    """
    # In both orders: either of two tables may be the total of the other.
    for total, parts in permutations(measured, 2):
        (upper, margin), (lower, detail) = total.table, parts.table
        if upper > lower or not detail.refines(margin):
            continue
        sums = coarsened(parts.counts, detail, margin)
        for level in range(lower, upper, -1):
            sums = opened.named.areas.summed_up(level, sums)
        likely = total.mechanism.concentration() * parts.mechanism.concentration()
        residuals = (total.counts - sums).reshape(-1)
        finding = no_residuals((total.name, parts.name), residuals, likely)
        if finding.chance < CHANCE:
            raise VerificationError(
                "measurements", "residuals", str(finding), "as much noise as the mechanisms say"
            )
        chance, least = f"a chance of {finding.chance:.2g}", f"at least {CHANCE:.2g}"
        yield made("residuals", str(finding), chance, least)


def asserted_of(spec: Spec) -> Iterator[Finding]:
    """What no file can show of tabulations."""
    for tabulation in spec.tabulations:
        yield made(
            "tabulations.areas",
            f"{tabulation.name}: that its areas, which the spec takes from a file, are public",
        )
        if tabulation.facts:
            yield made(
                "tabulations.declared",
                f"{tabulation.name}: that its declared numbers are public and true",
            )
        if tabulation.zeros:
            yield made(
                "tabulations.declared",
                f"{tabulation.name}: that its impossible combinations are impossible",
            )
        unread = tabulation_rests_on(spec, tabulation)
        if unread is not None:
            yield made("conditions.engine", unread)
