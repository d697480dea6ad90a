"""The small specs that show planted errors, by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.small import Row, Small, joint, part, query
from tests.tabulated import Tabulated, plain_spec

Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A spec with its tables, to be released once or more.

    Attributes:
        write: writes spec and tables into a folder; the path of the spec.
        runs: how many releases of it are made, one after the other.
        caps: ε and δ of its scope in a ledger; without them there is no ledger.
        month: the δ of a month in that scope.
    """

    write: Callable[[Path], Path]
    runs: int = 1
    caps: tuple[str, str] | None = None
    month: str | None = None


ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i // 8, "kind": i % 4, "wh": i}
    for i in range(14)
]
DAYS = 40
MANY: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % DAYS, "kind": i % 6, "wh": i % 17}
    for i in range(12 * DAYS)
]
CROWDED: list[Row] = [
    {"unit": f"u{i % 3}", "place": "ab"[i % 2], "day": 1 + i % 3 % 2, "kind": i // 9, "wh": i}
    for i in range(30)
]
THREES: list[Row] = [
    {"unit": f"u{i // 3}", "place": "ab"[i // 3 % 2], "day": 1, "kind": 1, "wh": 1}
    for i in range(18)
]
WILD: list[Row] = [row | {"wh": [None, -900, 4, 900][i % 4]} for i, row in enumerate(ROWS)]

WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
CELLS = {"by": ["place", "day"], "sensitivity": "global"}
GLOBAL = {"sensitivity": "global"}
ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}
WIDE = {"bins": {"low": 0, "high": 200, "count": 60}, "clamp": [-5, 16]}
LARGE = {"domain": {"ordered": {"min": 0, "max": 40}}}


def count(name: str, **fields: Any) -> Plain:
    """A count of rows with noise on the integers."""
    return query("count", name=name, **{"mechanism": "integer", "loss": "absolute"} | fields)


def plain(
    queries: list[Plain],
    rows: list[Row] = ROWS,
    change: Callable[[Plain], None] | None = None,
    **fields: Any,
) -> Callable[[Path], Path]:
    """What writes a spec of one table; ``change`` edits it, ``fields`` are those of ``Small``."""

    def write(folder: Path) -> Path:
        path = Small(rows, queries, **fields).write(folder)
        spec = yaml.safe_load(path.read_text("utf-8"))
        if change is not None:
            change(spec)
        # By JSON, because YAML would write a value that stands twice as an alias.
        text = yaml.safe_dump(json.loads(json.dumps(spec)), sort_keys=False)
        path.write_text(text, "utf-8")
        return path

    return write


def exactly(spec: Plain) -> None:
    """Let the charges compose exactly."""
    spec["budget"]["composition"] = "pld"


def by_attribute(spec: Plain) -> None:
    """Protect the column ``kind`` alone."""
    spec["privacy"] |= {"neighbors": "attribute", "attribute": "kind"}


def banded(spec: Plain) -> None:
    """Protect ``kind`` alone, and declare a column fixed that changes with it."""
    by_attribute(spec)
    spec["tables"]["rows"]["derive"] = {"band": {"type": "integer", "sql": "kind // 2"}}
    spec["privacy"]["fixed"] = ["band"]
    spec["keys"]["band"] = [0, 1]


def many_days(spec: Plain) -> None:
    """Give each of :data:`MANY` its day."""
    spec["keys"]["day"] = {"range": [1, DAYS]}


def three_days(spec: Plain) -> None:
    """Give three keys to the days."""
    spec["keys"]["day"] = {"range": [1, 3]}


def unsorted(spec: Plain) -> None:
    """List the keys in another order than they are published in."""
    spec["keys"]["place"] = ["b", "a"]


def by_number(spec: Plain) -> None:
    """Number the units: by ``wh``, which some rows lack."""
    spec["privacy"]["unit"] = "wh"


def counted_rows(name: str, **fields: Any) -> Plain:
    """A mode with noise on its statistic, which counts rows."""
    return query("mode", name=name, **ON_STATISTIC, **fields)


AREAS = [[f"county{i // 2}", f"tract{i}"] for i in range(36)]


def tabulated(margins: list[list[str]], rows: int) -> Callable[[Path], Path]:
    """What writes a tabulation of two levels, which measures its tables; persons have two rows."""
    tables = [{"level": "county", "margin": margins[0], "share": "1"}]
    tables.append({"level": "tract", "margin": margins[1], "share": "1"})
    tabulation: Plain = {
        "name": "tab",
        "table": "persons",
        "hierarchy": {"file": "tab.csv", "levels": ["county", "tract"]},
        "attributes": {"race": ["b", "a", "c"]},
        "groupings": {},
        "publish": {"county": [margins[0]], "tract": [margins[1]]},
        "constraints": [],
        "strategy": {"tables": tables, "noise": "geometric"},
    }
    persons = []
    for i in range(rows):
        person = {"person": f"p{i // 2}", "tract": AREAS[i % 36][1], "race": "abc"[i % 3]}
        persons.append(person | {"size": 1, "tenure": "own", "wh": i})
    spec = plain_spec([tabulation], neighbors="replace_one", budget=("2", "0"))
    return Tabulated(spec, persons, {"tab.csv": [["county", "tract"], *AREAS]}).write


TOP = query("count", name="tops", of="kind", domain={"cyclic": 6}, **GLOBAL)
TOP |= {"kind": "top", "k": 2}
QUARTERS = query("count", name="quarters", of="wh", **GLOBAL)
QUARTERS |= {"kind": "quantiles", "at": ["1/4", "3/4"]}
QUARTERS |= {"domain": {"ordered": {"min": 0, "max": 8}}, "mechanism": "joint_quantiles"}
IN_BLOCKS = QUARTERS | {"name": "in_blocks", "mechanism": "quantile_tree"}
IN_BLOCKS |= {"domain": {"ordered": {"min": 0, "max": 99}}}
OWN = query("count", name="own") | {"kind": "sql"}
OWN["sql"] = "SELECT place, count(*) AS answer FROM rows GROUP BY place"
PARTS = [part("first", "count"), part("second", "count"), joint("first", "second", **GLOBAL)]
PARTS[0]["domain"] = PARTS[1]["domain"] = {"ordered": {"min": 0, "max": 3}}
TENTH = {"definition": "pure", "epsilon": "0.1"}
TENTHS = [count(f"count_{i}", by=["place"], guarantee=TENTH, **GLOBAL) for i in range(5)]
SUMS = [
    query("binned", name="coded", mechanism="integer", loss="absolute", **GLOBAL, **WIDE),
    query("binned", name="summed", **ON_STATISTIC, **WIDE),
    query("binned", name="meant", statistic="mean", **ON_STATISTIC),
    query("binned", name="middle", statistic="median", **ON_STATISTIC),
    query("binned", name="most", statistic="max", rank=3, **ON_STATISTIC),
]
MODEST = {"definition": "approximate", "epsilon": "1", "delta": "0.00001"}
LEDGER = plain([count("counted", guarantee=WEAK, **GLOBAL)], max_rows_per_unit=1)

SPECS: dict[str, Case] = {
    "simple": Case(plain([count("counted", **GLOBAL)], max_rows_per_unit=1)),
    "replaced": Case(
        plain(
            [
                count("total", **CELLS),
                count("line", loss="squared", guarantee=WEAK, **GLOBAL),
                count("mixed", loss="error_rate", guarantee=WEAK, **GLOBAL),
                count("rows", mechanism="channel", guarantee=WEAK, **GLOBAL),
            ]
        )
    ),
    "added": Case(plain([count("total", **CELLS)], neighbors="add_remove", max_rows_per_unit=2)),
    "stepped": Case(
        plain(
            [
                count(
                    "rows", mechanism="channel", **CELLS, domain={"ordered": {"min": 0, "max": 9}}
                ),
                counted_rows("rowwise", count="rows", by=["place", "day"]),
            ],
            max_rows_per_unit=2,
        )
    ),
    "fixed": Case(plain([count("total", **CELLS)], change=three_days, fixed=["place"])),
    "attribute": Case(
        plain(
            [count("total", where="kind >= 1", **CELLS)], change=by_attribute, max_rows_per_unit=2
        )
    ),
    "banded": Case(plain([count("total", by=["band"], **GLOBAL)], change=banded)),
    "chosen": Case(plain([query("mode", by=["day"], where="place = 'a'")], fixed=["place"])),
    "statement": Case(plain([OWN])),
    "over": Case(plain([count("total", **CELLS)], budget=("1", "0"))),
    "rings": Case(
        plain([count("ring", mechanism="modular", guarantee=WEAK, **GLOBAL)], max_rows_per_unit=2)
    ),
    "sums": Case(plain(SUMS, max_rows_per_unit=2)),
    "choices": Case(
        plain(
            [
                counted_rows("counted", count="rows"),
                counted_rows("weighed", weight="wh", clamp=[-5, 3]),
                counted_rows("few", domain={"cyclic": 3}),
                TOP,
                QUARTERS,
                IN_BLOCKS,
            ]
        )
    ),
    "swaps": Case(
        plain(
            [counted_rows("two", domain={"cyclic": 2}, mechanism="two_categories")],
            max_rows_per_unit=1,
        )
    ),
    "joint": Case(plain(PARTS, neighbors="add_remove", max_rows_per_unit=1)),
    "declared": Case(
        plain(
            [
                count("ring", mechanism="modular", by=["place", "day"])
                | {"sensitivity": {"declared": [1]}}
            ]
        )
    ),
    "far": Case(plain([count("seen", **LARGE)], THREES)),
    "long": Case(
        plain([count("counted", guarantee=TENTH | {"epsilon": "0.1234567890123456"}, **GLOBAL)])
    ),
    "exactly": Case(
        plain(
            [*TENTHS, query("mode", name="held")],
            change=exactly,
            budget=("6", "0.000001"),
            max_rows_per_unit=2,
        )
    ),
    "together": Case(
        plain(
            [count(f"each_{i}", guarantee=TENTH, by=["place", "day"], **GLOBAL) for i in range(9)],
            change=exactly,
            budget=("6", "0.000001"),
            max_rows_per_unit=2,
        )
    ),
    "weak": Case(
        plain(
            [count(f"weak_{i}", guarantee=MODEST, by=[], **GLOBAL) for i in range(3)],
            change=exactly,
            budget=("6", "0.001"),
            max_rows_per_unit=1,
        )
    ),
    "mixed": Case(plain([count("counted", **GLOBAL), query("mode", name="held")])),
    "unsorted": Case(plain([count("counted", **GLOBAL)], change=unsorted)),
    "tabulated": Case(tabulated([[], ["race"]], 60)),
    "areas": Case(tabulated([["race"], ["race"]], 0)),
    "wide": Case(
        plain([query("binned", **ON_STATISTIC, by=["place", "day"])], max_rows_per_unit=1)
    ),
    "committed": Case(plain([query("mode")]), caps=("10", "0.5")),
    "years": Case(LEDGER, 3, ("100", "0.5")),
    "ledger": Case(LEDGER, caps=("10", "0.5")),
    "twice": Case(LEDGER, 2, ("10", "0.003")),
    "thrice": Case(LEDGER, 3, ("5", "0.5")),
    "monthly": Case(LEDGER, 2, ("10", "0.5"), month="0.003"),
    "crowded": Case(
        plain(
            [
                count("rows", **GLOBAL),
                count("units", of="unit", **CELLS),
                counted_rows("mode"),
            ],
            CROWDED,
            max_rows_per_unit=2,
            max_cells_per_unit=1,
        )
    ),
    "bounded": Case(plain([count("rows", **CELLS)], CROWDED, max_rows_per_unit=1)),
    "moved": Case(plain([count("rows", **CELLS)], CROWDED, fixed=["place"])),
    "wild": Case(plain(SUMS[1:4], WILD, max_rows_per_unit=1)),
    "numbered": Case(plain([count("rows", **GLOBAL)], WILD, change=by_number, max_rows_per_unit=1)),
    "many": Case(
        plain(
            [
                count("channel", mechanism="channel", **CELLS),
                count("line", **CELLS),
                count("ring", mechanism="modular", **CELLS),
                counted_rows("flipped", by=["day"], domain={"cyclic": 6}),
                query("binned", name="meant", statistic="mean", by=["day"], **ON_STATISTIC),
            ],
            MANY,
            many_days,
            max_rows_per_unit=1,
        )
    ),
    "nested": Case(
        plain(
            [
                count(f"{kind}_{'_'.join(by)}", mechanism=kind, by=by, **GLOBAL, **LARGE)
                for kind in ("modular", "integer", "channel")
                for by in (["day"], ["place", "day"])
            ],
            MANY,
            many_days,
            max_rows_per_unit=1,
        )
    ),
}
