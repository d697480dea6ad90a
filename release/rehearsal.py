"""The whole way to a release with answers that stand in, before a table is opened or charged.

What can fail in the writing of a release, and in its verification, fails here: nothing is lost by
it. Instance-specific queries have the mechanism of any table in place of their own. A large spec is
rehearsed with fewer keys and areas; what only the whole has, its size, is computed from the spec
elsewhere. The bundles call themselves REHEARSAL, which no verifier accepts, are readable by their
owner alone, and are removed.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from release.budget.ledger import today
from release.bundle.prepared import AUDITOR, PUBLIC, About, prepare
from release.bundle.write import write_release
from release.errors import ReleaseError, SpecError, VerificationError
from release.exact.domain import Codes
from release.job import Job
from release.noise.on_statistic import StatisticDesign
from release.noise.refusal import Made
from release.queries.read import parse_spec
from release.records.files import storage_errors, without_sync
from release.spec.declarations import ColumnType
from release.spec.load import SpecFile, open_named
from release.spec.query import Query
from release.tabulations.measure.table_count import CENTER, TableCount
from release.tabulations.spec.opened import OpenTabulation
from release.verification.verifier import check_content

MOST_CELLS = 10_000
"""A spec of no more cells is rehearsed whole."""

_MANY = 10**6
"""A count that stands for a large one."""


def rehearse_release(job: Job, decide: Callable[[SpecFile], Job], folder: Path) -> None:
    """Write and verify releases of a spec with answers that stand in, and remove ``folder``.

    ``job`` has come to its price. ``decide`` brings another one there, where the spec has to be cut
    to a smaller one.

    Raises:
        ReleaseError: a release of this spec could not be written, or would not verify.
        StorageError: the disk is full or read-only.
    """
    try:
        with storage_errors(folder, "a rehearsal of the release"), without_sync():
            # A retry finds it removed.
            folder.mkdir(mode=0o700, exist_ok=True)
            _rehearse(job, decide, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rehearse(job: Job, decide: Callable[[SpecFile], Job], folder: Path) -> None:
    smaller = None if _cells(job.spec_file) <= MOST_CELLS else _cut(job.spec_file, folder)
    if smaller is not None:
        job = decide(smaller)
    spec_file, charged = job.spec_file, job.price
    designs = [(run.query, run.made) for run in job.runs]
    own = folder / "prepared"
    own.mkdir(mode=0o700)
    prepared = prepare(spec_file, designs, charged, About("REHEARSAL", today()), own)
    # Tables that add up take long to estimate, and all counts of them are drawn alike.
    stand_ins = _STAND_INS[:1] if spec_file.tabulations else _STAND_INS
    for number, stand_in in enumerate(stand_ins):
        noisy = [_drawn(spec_file, query, design, stand_in) for query, design in designs]
        bundle = folder / str(number)
        bundle.mkdir(mode=0o700)
        write_release(spec_file, prepared, noisy, bundle, has_pictures=False)
        auditor = bundle / AUDITOR
        try:
            opened = auditor if auditor.is_dir() else None
            check_content(bundle / PUBLIC, opened, "REHEARSAL")
        except VerificationError as error:
            raise ReleaseError(
                f"a release of this spec would not verify, and nothing was read or charged: {error}"
            ) from error


@dataclass(frozen=True)
class _StandIn:
    """True answers in place of those of a table.

    Attributes:
        code: the answer code, of so many answers.
        statistics: the integers of each cell, of so many.
        is_drawn: whether there is noise on an answer; on statistics there always is.
    """

    code: Callable[[int], int]
    statistics: Callable[[int], list[int]]
    is_drawn: bool


_STAND_INS = (
    _StandIn(lambda answers: 0, lambda inputs: [0] * inputs, is_drawn=True),
    _StandIn(lambda answers: 0, lambda inputs: [_MANY] + [0] * (inputs - 1), is_drawn=False),
    _StandIn(lambda answers: answers - 1, lambda inputs: [_MANY] * inputs, is_drawn=False),
)
"""A draw on zeros, the lowest answers, and the highest."""


def _drawn(spec_file: SpecFile, query: Query, design: Made, stand_in: _StandIn) -> Codes:
    cells = cells_of(spec_file, query)
    if isinstance(design, StatisticDesign):
        row = np.array(stand_in.statistics(design.mechanism.inputs), dtype=np.int64)
        return design.mechanism.draw(np.tile(row, (cells, 1)))
    if isinstance(query, TableCount):
        # Counts far below 0 would be no table of anybody.
        code = stand_in.statistics(1)[0] - CENTER
    else:
        code = stand_in.code(query.answers.size)
    codes = np.full(cells, code, dtype=np.int64)
    drawn: Codes = design.mechanism.draw(codes) if stand_in.is_drawn else codes
    return drawn


def _cells(spec_file: SpecFile) -> int:
    """How many cells all queries and tables have together."""
    return sum(cells_of(spec_file, query) for query in spec_file.spec.charged)


def cells_of(spec_file: SpecFile, query: Query) -> int:
    """How many cells a query or a measured table has."""
    return query.cells if isinstance(query, TableCount) else spec_file.cells(query.by)


def _cut(spec_file: SpecFile, folder: Path) -> SpecFile | None:
    """The spec with fewer keys and areas; None where no smaller one can be made of its text."""
    plain: Any = yaml.safe_load(spec_file.text)
    released = spec_file.spec.released
    columns = max((len(query.by) for query in released), default=1) or 1
    each = max(2, int((MOST_CELLS / max(1, len(released))) ** (1 / columns)))
    for column in plain.get("keys", {}):
        plain["keys"][column] = _first_keys(spec_file, column, each)
    for place, opened in enumerate(spec_file.tabulations):
        # Declared numbers are of all areas: they would not fit fewer.
        if opened.facts:
            return None
        areas = folder / f"areas-{place}.csv"
        _write_first_areas(opened, areas)
        plain["tabulations"][place]["hierarchy"]["file"] = str(areas.absolute())
    text = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False).encode()
    try:
        return open_named(parse_spec(text), text, spec_file.folder)
    except SpecError:
        return None


def _first_keys(spec_file: SpecFile, column: str, most: int) -> list[str | int]:
    keys = spec_file.keys[column][:most]
    for table in spec_file.spec.tables:
        if spec_file.spec.table_columns(table).get(column) is ColumnType.INTEGER:
            return [int(key) for key in keys]
    return list(keys)


def _write_first_areas(opened: OpenTabulation, path: Path) -> None:
    """Write the file of some of the lowest areas, with the areas that they lie in."""
    named, lowest = opened.named, len(opened.levels) - 1
    margins = sum(table.margin.cells for table in opened.published)
    most = max(2, MOST_CELLS // max(1, margins))
    above = [named.places(lowest, level) for level in range(lowest + 1)]
    with path.open("x", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(opened.levels)
        for area in range(min(most, len(named.names[lowest]))):
            lines.writerow([named.names[level][above[level][area]] for level in range(lowest + 1)])
