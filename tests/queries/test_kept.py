"""Which rows of a unit a bound keeps: a sample by hash, and not the first by any column."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import release
from release.queries.read import read_spec
from tests.answers import answer, load

MONTHS = 12


def visits(units: int, rows: int, seed: int = 1) -> pd.DataFrame:
    """Rows of units, evenly spread over months; some units have many."""
    generator = np.random.default_rng(seed)
    drawn = generator.zipf(1.6, units).clip(max=rows)
    return pd.DataFrame(
        {
            "unit": np.repeat([f"u{i}" for i in range(units)], drawn),
            "month": generator.integers(1, MONTHS + 1, int(drawn.sum())),
        }
    )


def spec(folder: Path, frame: pd.DataFrame, **changes: Any) -> Path:
    frame.to_csv(folder / "t.csv", index=False)
    privacy = {"unit": "unit", "neighbors": "add_remove", "max_rows_per_unit": 4}
    query = {
        "name": "by_month",
        "kind": "count",
        "table": "t",
        "by": ["month"],
        "domain": {"ordered": {"min": 0, "max": 100_000}},
        "sensitivity": "global",
        "guarantee": {"definition": "pure", "epsilon": "1"},
    }
    plain = {
        "spec": "dp-release/spec/v1",
        "release": {"id": changes.pop("id", "visits"), "title": "t", "curator": "c"}
        | {"contact": "a@example.org", "purpose": "p", "period": "2024", "license": "CC0-1.0"},
        "tables": {"t": {"path": "t.csv", "columns": {"unit": "string", "month": "integer"}}},
        "privacy": privacy | changes.pop("privacy", {}),
        "budget": {"scope": "s", "epsilon": "100", "delta": "0"},
        "keys": {"month": list(range(1, MONTHS + 1))},
        "queries": [query | changes],
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain, sort_keys=False))
    return path


def counted(path: Path) -> dict[int, int]:
    """The true counts of the rows that are read, by month. Confidential, as everything here."""
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        (run,) = answer(tables, spec_file)
    return dict(zip(range(1, MONTHS + 1), run.codes.tolist(), strict=True))


def kept_by_hand(frame: pd.DataFrame, release_id: str, most: int) -> dict[int, int]:
    """The rule of docs/design/spec.md, written again."""
    counts = dict.fromkeys(range(1, MONTHS + 1), 0)
    for unit, rows in frame.groupby("unit"):
        ranked = []
        seen: dict[str, int] = {}
        for month in rows["month"].tolist():
            values = [str(unit), str(month), str(unit)]  # the unit, then month and unit by name
            text = f"{release_id}|" + "".join(f"{len(value)}:{value}" for value in values)
            seen[text] = seen.get(text, 0) + 1
            digest = hashlib.sha256(f"{text}#{seen[text]}".encode()).hexdigest()
            ranked.append((digest, month))
        for _, month in sorted(ranked)[:most]:
            counts[month] += 1
    return counts


def test_the_kept_rows_are_those_of_the_least_hash(tmp_path: Path) -> None:
    frame = visits(200, 60)
    assert counted(spec(tmp_path, frame)) == kept_by_hand(frame, "visits", 4)


@pytest.mark.parametrize("order", ["as is", "reversed", "by month"])
def test_no_order_of_rows_or_columns_decides(order: str, tmp_path: Path) -> None:
    frame = visits(150, 60)
    expected = kept_by_hand(frame, "visits", 4)
    if order == "reversed":
        frame = frame.iloc[::-1, ::-1]
    elif order == "by month":
        frame = frame.sort_values("month")
    assert counted(spec(tmp_path, frame)) == expected


def test_a_bound_makes_no_trend(tmp_path: Path) -> None:
    """Rows are even over the year, and so are those that are kept, to the spread of a sample."""
    counts = np.array(list(counted(spec(tmp_path, visits(3000, 100))).values()))
    mean = counts.mean()
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)
    # The first six months by the first rows would have nearly all.
    assert 0.9 < counts[:6].sum() / counts[6:].sum() < 1.1


def test_every_release_draws_anew(tmp_path: Path) -> None:
    frame = visits(300, 60)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert counted(spec(first, frame, id="a")) != counted(spec(second, frame, id="b"))


def test_equal_rows_do_not_stand_or_fall_together(tmp_path: Path) -> None:
    """10 equal rows and 10 others, 5 kept: 2.5 of the equal ones on average."""
    units = 400
    rows = [(f"u{i}", 1) for i in range(units) for _ in range(10)]
    rows += [(f"u{i}", 2 + k) for i in range(units) for k in range(10)]
    frame = pd.DataFrame(rows, columns=["unit", "month"])
    counts = counted(spec(tmp_path, frame, privacy={"max_rows_per_unit": 5}))
    assert 2.3 < counts[1] / units < 2.7


def test_a_bound_on_cells_keeps_a_sample_of_them(tmp_path: Path) -> None:
    units = 600
    rows = [(f"u{i}", month) for i in range(units) for month in range(1, MONTHS + 1)]
    frame = pd.DataFrame(rows, columns=["unit", "month"])
    bounds = {"max_rows_per_unit": 12, "max_cells_per_unit": 3}
    counts = np.array(list(counted(spec(tmp_path, frame, privacy=bounds)).values()))
    assert counts.sum() == 3 * units
    assert np.abs(counts - units / 4).max() < 5 * np.sqrt(units * 3 / 16)


def test_frames_are_read_as_files_are(tmp_path: Path) -> None:
    frame = visits(100, 40)
    path = spec(tmp_path, frame, domain={"ordered": {"min": 0, "max": 400}})
    text = path.read_text().replace("epsilon: '1'", "epsilon: '60'")
    path.write_text(text)
    published = []
    for number, tables in enumerate((None, {"t": frame.sample(frac=1, random_state=3)})):
        out = tmp_path / str(number)
        public = release.run(path, out, tables=tables).public
        published.append(release.open(public)["by_month"].to_pandas()["answer"].tolist())
    assert published[0] == published[1]
