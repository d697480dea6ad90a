"""Audits a copy of the package for each planted error that makes a guarantee false.

``python -m tests.planted.audited [NAME PARTS]`` takes those in whose names one of the parts stands.
Each copy is audited on a spec that shows its error in few cells: on tiny tables, wherever it can
be, and within some seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.audit.runner import Job, audited
from tests.planted.errors import ERRORS, Planted, SeenBy
from tests.planted.specs import (
    GLOBAL,
    ON_STATISTIC,
    SPECS,
    TENTH,
    WEAK,
    Plain,
    count,
    counted_rows,
    exactly,
    plain,
)
from tests.small import query

TABLES, RUNS, SECONDS = 48, 6, 120
"""What is tried of each copy, and how many seconds of a processor it may take."""

_CROWDS = {"many", "nested", "wild"}
"""Specs with more cells and sums than an audit needs to show an error."""

_FEW = plain(
    [
        count("line", **GLOBAL),
        count("channel", mechanism="channel", guarantee=WEAK, by=[], **GLOBAL),
        count("ring", mechanism="modular", guarantee=WEAK, by=[], **GLOBAL),
    ],
    max_rows_per_unit=1,
)
_MEAN = query("binned", name="meant", statistic="mean", by=[], **ON_STATISTIC)
_STATISTICS = {
    # Three categories would have a gap table.
    "permute_and_flip": plain(
        [counted_rows("flipped", by=[], domain={"cyclic": 3}, mechanism="permute_and_flip")],
        max_rows_per_unit=1,
    ),
    "sums": plain([_MEAN], max_rows_per_unit=1),
    "binned": plain([query("binned", by=[], **ON_STATISTIC)], max_rows_per_unit=1),
}

Write = Callable[[Path], Path]
_ONCE: dict[str, Any] = {"by": [], **GLOBAL}
_NARROW: dict[str, Any] = {"bins": {"low": 0, "high": 4, "count": 2}, "clamp": [0, 4]}
_HEAVY = {"definition": "approximate", "epsilon": "1", "delta": "0.05"}
_HEAVIER = ("6", "0.06")
_LIGHT = ("6", "0.000001")


def _statistic(statistic: str, rows: int = 1, **fields: Any) -> Write:
    """One narrow sum, mean or rank, with noise on it."""
    words = {"by": [], **ON_STATISTIC, **_NARROW, "statistic": statistic} | fields
    return plain([query("binned", **words)], max_rows_per_unit=rows)


def _composed(queries: list[Plain], caps: tuple[str, str] = _LIGHT, rows: int = 1) -> Write:
    """Queries whose charges compose exactly."""
    return plain(queries, change=exactly, budget=caps, max_rows_per_unit=rows)


def _tenths(number: int, by: list[str]) -> Write:
    queries = [count(f"c{i}", by=by, guarantee=TENTH, **GLOBAL) for i in range(number)]
    return _composed(queries)


def _top(rows: int) -> Write:
    top = query("count", name="tops", of="kind", domain={"cyclic": 3}, **_ONCE)
    return plain([top | {"kind": "top", "k": 2}], max_rows_per_unit=rows)


def _best(guarantee: Plain, **fields: Any) -> Write:
    return plain([count("line", guarantee=guarantee, **_ONCE | fields)], max_rows_per_unit=2)


def _one(spec: str, place: int) -> Write:
    """One query of a spec."""

    def write(folder: Path) -> Path:
        path = SPECS[spec].write(folder)
        small = yaml.safe_load(path.read_text("utf-8"))
        small["queries"] = [small["queries"][place]]
        path.write_text(yaml.safe_dump(small, sort_keys=False), "utf-8")
        return path

    return write


_SHOWN: dict[str, Write] = {
    "a change of less than a bin is no change": _one("sums", 0),
    "a replaced unit only adds to a sum": _one("sums", 0),
    "the spread of a sum is that of the larger bound": _one("sums", 1),
    "the spread of a mean is that of one row": _statistic("mean", 2),
    "a replaced unit moves as much as a new one": _statistic("mean"),
    "a place moves one way only": _statistic("max", 2, rank=1),
    "rows count as units": _one("choices", 0),
    "a weight is bounded by its upper bound": _one("choices", 1),
    "a unit of several rows is in one category": plain(
        [counted_rows("few", domain={"cyclic": 3}, by=[])], max_rows_per_unit=2
    ),
    "a unit of several rows touches one category": _top(2),
    "the norm of a replaced unit is that of a new one": _top(1),
    "the distance of the whole line is left out": _one("replaced", 3),
    "rows are suspects only above every ceiling": _one("replaced", 3),
    "e to the ε is taken from ten digits, rounded up": _one("replaced", 0),
    "the guarantee is stated without δ": _one("replaced", 1),
    "the rows of a unit are the default of the form": _one("replaced", 0),
    "ε of a cell is that of the whole query": _one("replaced", 0),
    "ε is charged for one cell": _one("replaced", 0),
    "a replaced unit leaves its cells and enters none": plain(
        [count("line", by=["place"], **GLOBAL)], max_rows_per_unit=1
    ),
    "δ is looked for at the least distance": _best(_HEAVY, mechanism="best"),
    "the ratio of two steps stands for that of one": _best(WEAK, loss="error_rate"),
    "without max_cells_per_unit a unit has one cell": plain(
        [count("units", of="unit", by=["place"], **GLOBAL)],
        neighbors="add_remove",
        max_rows_per_unit=2,
    ),
    "δ is charged for one cell": plain(
        [count("line", guarantee=_HEAVY, by=["place"], **GLOBAL)], max_rows_per_unit=1
    ),
    "of all δ the largest is charged": plain(
        [
            count("line", guarantee=_HEAVY, **_ONCE | {"loss": "squared"}),
            count("other", guarantee=_HEAVY, **_ONCE),
        ],
        max_rows_per_unit=1,
    ),
    "the δ at which ε is read is not stated": _one("exactly", 0),
    "an odd repetition is forgotten": _tenths(3, []),
    "of a pattern the first cell counts": _tenths(1, ["place"]),
    "equal cells of a pattern count once": _tenths(1, ["place"]),
    "the patterns of a replaced unit are those of a new one": _tenths(1, ["place"]),
    "the infinite loss is that of one": _composed(
        [count(f"w{i}", guarantee=_HEAVY, **_ONCE) for i in range(2)], _HEAVIER
    ),
    "of two profiles the smaller one is taken": _composed(
        [count("c", guarantee=WEAK, by=["place"], **GLOBAL)], ("6", "0.01"), 2
    ),
    "all cells but those at once are left out of a pattern": _composed(
        [query("binned", **ON_STATISTIC | _NARROW, by=["place"])]
    ),
    "one worst-case query makes a worst-case release": SPECS["mixed"].write,
    "a mechanism that depends on the table is published": _one("mixed", 1),
    "modular noise is left out": _one("nested", 0),
    "noise on the integers is left out": _one("nested", 2),
    "a true code is taken for a drawn one": _one("nested", 4),
}

_REFUSED = "the run refuses every table: a proof of its own fails"
_TOO_SMALL = "less than 10⁻¹² of a charge, far below what two tables can show"
_LOOSE = "tiny tables attain at most half of the claimed ε, and the error halves the claim"
_IN_FILES = "a published figure or a commitment is wrong, and no answer"

NOT_FOUND = {
    "the cells of one area stand for those of all": "the run ends with an error",
    "a ratio is rounded down and not looked at again": _REFUSED,
    "a swap of two categories is taken for two rows": _REFUSED,
    "a mixture of the truth is rounded to the truth": _REFUSED,
    "what is rounded up is rounded down": _TOO_SMALL,
    "an answer that no neighbor changes gets no least step": _IN_FILES,
    "the key of every commitment is zero": _IN_FILES,
    "a missing value counts as the upper bound": "no guarantee is broken: a bound is within bounds",
    "quantiles move by a row one way": _LOOSE,
    "only the weight changes and not the sum of weights": _LOOSE,
    "a row is in the count of its point and not of its block": "what a tree publishes is sampled, "
    "and the draws do not show it",
}
"""The planted errors that no audit finds, with the reason. Other checks stop them, or nothing is
to be stopped."""


def chosen(parts: Sequence[str] = ()) -> list[Planted]:
    """The errors to audit: first those that nothing but an audit sees."""
    errors = [own for own in ERRORS if own.is_private or own.seen_by is SeenBy.AUDIT]
    errors.sort(key=lambda own: own.seen_by is not SeenBy.AUDIT)
    return [own for own in errors if not parts or any(part in own.name for part in parts)]


def job(error: Planted) -> Job:
    """The audit of the spec that shows an error in the fewest cells."""
    write = SPECS[error.specs[0]].write
    if error.specs[0] in _CROWDS:
        write = _STATISTICS.get(Path(error.module).stem, _FEW)
    return Job(error.name, error.module, error.old, error.new, _SHOWN.get(error.name, write))


def main(parts: Sequence[str]) -> None:
    """Audit the errors one by one, and print a table of what was found."""
    errors = chosen(parts)
    print("| planted | seen by | found | seconds | by |\n|---|---|---|---|---|")  # noqa: T201 - a script
    for error, found in zip(
        errors, audited([job(own) for own in errors], TABLES, RUNS, SECONDS), strict=True
    ):
        answer = {0: "no", 1: "yes", 2: "refused"}.get(found.status, "failed")
        by = "; ".join(found.lines[-1:] if found.status == 3 else found.lines[:1])
        columns = (error.name, error.seen_by, answer, f"{found.seconds:.1f}", by)
        print(f"| {' | '.join(columns)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
