"""Checks the tabulations of a release: from measured tables to published ones, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from release.errors import SpecError, VerificationError
from release.exact.privacy import Definition
from release.queries.tabulations.table_count import TableCount, table_count
from release.records.models import ReleaseRecord
from release.records.tabulations import MeasuredRecord, TabulationRecord
from release.spec.guarantees import GuaranteeSpec
from release.spec.model import Spec
from release.spec.tabulations.opened import NamedMargin, OpenTabulation
from release.verification.mechanisms import expect

FILE = "release.json"


def with_measured(spec: Spec, release: ReleaseRecord, opened: Sequence[OpenTabulation]) -> Spec:
    """The spec with the tables that release.json says were measured, and their guarantees.

    Raises:
        VerificationError: a table that a strategy cannot measure, or no guarantee.
    """
    measured: list[TableCount] = []
    for tabulation, record in zip(opened, release.tabulations or [], strict=True):
        tables = [_measured(tabulation, entry) for entry in record.measured]
        _check_strategy(tabulation, record, [table for table, _ in tables])
        measured += [query for _, query in tables]
    return spec.model_copy(update={"queries": [*spec.queries, *measured]})


def _measured(
    opened: OpenTabulation, entry: MeasuredRecord
) -> tuple[NamedMargin, TableCount]:
    """The table of an entry, as the tabulation has it."""
    at = f"tabulations.{opened.name}.{entry.name}"
    if entry.level not in opened.levels:
        raise VerificationError(FILE, f"{at}.level", entry.level, f"one of {opened.levels}")
    known = {one.names: one for one in opened.margins}
    found = known.get(tuple(entry.margin))
    if found is None:
        raise VerificationError(FILE, f"{at}.margin", str(entry.margin), "a published margin")
    table = NamedMargin(opened.levels.index(entry.level), found.names, found.margin)
    try:
        guarantee = GuaranteeSpec(
            definition=Definition(entry.definition),
            epsilon=Fraction(entry.epsilon),
            delta=Fraction(entry.delta),
        )
    except ValueError as error:
        raise VerificationError(FILE, f"{at}.epsilon", entry.epsilon, "a guarantee") from error
    query = table_count(opened, table, guarantee)
    expect(FILE, f"{at}.name", entry.name, query.name)
    expect(FILE, f"{at}.cells", entry.cells, query.cells)
    return table, query


def _check_strategy(
    opened: OpenTabulation, record: TabulationRecord, tables: Sequence[NamedMargin]
) -> None:
    """Tables are measured once each, in order; a pinned strategy's are those of the spec."""
    at = f"tabulations.{opened.name}.measured"
    margins = [one.margin for one in opened.margins]
    places = [(table.level, margins.index(table.margin)) for table in tables]
    expect(FILE, f"{at} (order)", places, sorted(set(places)))
    if any(table.table in opened.facts for table in tables):
        raise VerificationError(FILE, at, "a declared table", "no noise where numbers are declared")
    pinned = opened.declared.strategy
    if pinned is None:
        return
    if pinned.noise is not None:
        expect(FILE, f"tabulations.{opened.name}.noise", record.noise, pinned.noise)
    if pinned.tables is not None:
        asked = []
        for one in pinned.tables:
            margin = opened.margin(opened.in_order(one.margin))
            asked.append((opened.levels.index(one.level), margins.index(margin)))
        expect(FILE, f"{at} (pinned)", places, sorted(asked))


__all__ = ["Path", "SpecError"]
