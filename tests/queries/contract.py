"""What every kind of query relies on, tried on random tables; a new kind is tried by it too.

The engine adds up what the units contribute, and fills the sums of a cell from the totals of all
its units: that is right where ``fill`` is linear. The guarantee rests on ``steps``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from release.at_work import AtWork
from release.queries.base import Profiles, SummedQuery
from release.queries.contributions import Contributions
from release.queries.read import read_spec
from release.queries.registry import kind_of, sensitivity_without_data
from release.spec.declarations import Relation
from release.spec.model import Spec
from release.street import answered

COLUMNS = {"home": "string", "circuit": "string", "hour": "integer", "wh": "integer"}
DERIVED = {"kwh": {"type": "number", "sql": "wh / 1000.0"}}
MOST_ROWS = 3
Row = dict[str, Any]


def wish(kind: str, **fields: Any) -> Row:
    """A query over the tables of this module."""
    shared = {"table": "readings", "by": ["circuit"], "sensitivity": "global"}
    guarantee = {"definition": "pure", "epsilon": "1"}
    return {"name": f"the_{kind}", "kind": kind, "guarantee": guarantee, **shared, **fields}


def spec_text(relation: str, queries: Sequence[Row]) -> str:
    """A spec with these queries under a relation of neighbors."""
    privacy: Row = {"unit": "home", "neighbors": relation, "max_rows_per_unit": MOST_ROWS}
    keys: Row = {"circuit": ["north", "south"]}
    if relation == "attribute":
        privacy |= {"attribute": "wh"}
        keys["home"] = [f"h{number}" for number in range(6)]
    named = {"id": "contract", "title": "t", "curator": "c", "contact": "a@example.org"}
    # JSON is YAML too, and has no aliases for what stands in it twice.
    return json.dumps(
        {
            "spec": "dp-release/spec/v1",
            "release": named | {"purpose": "p", "period": "2024", "license": "CC0-1.0"},
            "tables": {"readings": {"path": "readings.csv", "columns": COLUMNS, "derive": DERIVED}},
            "privacy": privacy,
            "budget": {"scope": "s", "epsilon": "1000", "delta": "0"},
            "keys": keys,
            "queries": list(queries),
        }
    )


def random_rows(random: Random, home: str) -> list[Row]:
    """Rows of one home: inside and outside of keys, clamps and domains, and missing values."""
    rows = []
    for _ in range(random.randint(1, MOST_ROWS)):
        wh = random.choice([-500, 0, 1, 249, 250, 251, 999, 1000, 1500, 2000, 9000, None])
        hour = random.choice([-1, 0, 1, 5, 22, 23, 24, None])
        circuit = random.choice(["north", "north", "south", "west", None])
        rows.append({"home": home, "circuit": circuit, "hour": hour, "wh": wh})
    return rows


def table_of(folder: Path, text: str, homes: Sequence[list[Row]]) -> Iterator[AtWork]:
    """The queries of a spec whose sums decide, answered from the rows of these homes."""
    folder.mkdir()
    rows = [row for home in homes for row in home]
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).convert_dtypes()
    frame.to_csv(folder / "readings.csv", index=False)
    (folder / "spec.yaml").write_text(text, "utf-8")
    for run in answered(read_spec(folder / "spec.yaml")):
        if isinstance(run.query, SummedQuery):
            yield run


def sums_of(run: AtWork) -> Profiles:
    """The sums of every cell."""
    contributed = run.contributed
    assert isinstance(contributed, Contributions)
    return contributed.sums.dense(kind_of(run.query), 0, len(contributed.cells.keys))


def check_sums_add_up(folder: Path, text: str, seed: int) -> None:
    """The sums of a table are those of its units, each in a table of its own, added up."""
    random = Random(seed)  # noqa: S311 - tables, not noise
    homes = [random_rows(random, f"h{number}") for number in range(5)]
    whole = {run.query.name: sums_of(run) for run in table_of(folder / "whole", text, homes)}
    added = {name: np.zeros_like(sums) for name, sums in whole.items()}
    for number, home in enumerate(homes):
        for run in table_of(folder / f"home-{number}", text, [home]):
            added[run.query.name] += sums_of(run)
    for name, sums in whole.items():
        assert np.array_equal(sums, added[name]), name


def check_steps_hold(folder: Path, text: str, seed: int) -> None:
    """No two neighboring tables have answers that ``steps`` does not allow."""
    random = Random(seed)  # noqa: S311 - tables, not noise
    homes = [random_rows(random, f"h{number}") for number in range(4)]
    spec = spec_of(folder, text)
    *kept, last = homes
    match spec.privacy.neighbors:
        case Relation.ADD_REMOVE:
            others = [kept]
        case Relation.REPLACE_ONE:
            others = [[*kept, random_rows(random, "h9")] for _ in range(3)]
        case _:
            others = [[*kept, [row | {"wh": random.randint(-1, 10)} for row in last]]]
    here = {run.query.name: run for run in table_of(folder / "here", text, homes)}
    for number, other in enumerate(others):
        for run in table_of(folder / f"there-{number}", text, other):
            query = run.query
            allowed = set(sensitivity_without_data(spec, query).pairs(query.answers.size))
            codes = here[query.name].codes.tolist(), run.codes.tolist()
            for one, two in zip(*codes, strict=True):
                assert one == two or (one, two) in allowed, (query.name, one, two)


def spec_of(folder: Path, text: str) -> Spec:
    """The spec, in a folder of its own."""
    (folder / "spec").mkdir()
    (folder / "spec" / "spec.yaml").write_text(text, "utf-8")
    return read_spec(folder / "spec" / "spec.yaml").spec
