"""Real tables, whole: releases that verify, and differences equal to a loop over neighbors.

The loop takes each home's own numbers from the file by itself, replaces each home of a group (and
a home without readings) by each home of the table (and by none), one at a time, and answers again;
nothing of the package's queries is in it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

from release.exact.domain import Codes
from release.job import Published
from release.queries.read import read_spec
from release.street import run_release
from tests.answers import answer, load
from tests.conftest import PROJECT

SPECS = PROJECT / "tests" / "specs"


def sensitivity_of(published: Published, query: str, size: int) -> set[int]:
    """What the auditor's folder says, of answers of this size."""
    assert published.auditor is not None
    opened = json.loads((published.auditor / f"{query}.json").read_bytes())["sensitivity"]
    if "distances" in opened:
        return both_ways(set(opened["distances"]), size)
    return {shift for (shift,) in opened["differences"]}


def both_ways(found: set[int], size: int) -> set[int]:
    return {d % size for d in found} | {-d % size for d in found}


def test_daily_energy_of_1416_homes(lcl_daily: Path, tmp_path: Path) -> None:
    published = run_release(SPECS / "lcl_daily.yaml", tmp_path)
    assert published.verdict is not None
    assert published.verdict.status == 0
    rows = duckdb.execute(
        f"SELECT circuit, energy_wh, tariff FROM '{lcl_daily}/lcl_daily.parquet' "
        f"JOIN '{lcl_daily}/circuits_1416.parquet' USING (household_id) "
        "WHERE day = DATE '2013-01-05' AND n_readings = 48"
    ).fetchall()
    assert len(rows) == 1416

    # On whole columns of integers, so that the millions of neighbors take seconds.
    def level(total: Codes, count: int, high: int, levels: int) -> Codes:
        return np.minimum(total * levels // (count * high), levels - 1)

    energy = [wh for _, wh, _ in rows]
    share = [100 * (tariff == "ToU") for _, _, tariff in rows]
    kinds: dict[str, tuple[int, list[int], Callable[[Codes, int], Codes]]] = {
        "mean_energy_11": (11, energy, lambda total, homes: level(total, homes, 40000, 11)),
        "mean_energy_17": (17, energy, lambda total, homes: level(total, homes, 40000, 17)),
        "above_15_kwh": (119, [int(wh > 15000) for wh in energy], lambda total, _: total),
        "time_of_use_share": (20, share, lambda total, homes: level(total, homes, 100, 20)),
    }
    for name, (size, values, measured) in kinds.items():
        homes = defaultdict(list)
        for (circuit, _, _), value in zip(rows, values, strict=True):
            homes[circuit].append(value)
        found: set[int] = set()
        enters = np.array(values, dtype=np.int64)
        for own in homes.values():
            leaves, count = np.array(own, dtype=np.int64), len(own)
            total = leaves.sum()
            here = measured(total, count)
            found |= set((here - measured(total - leaves, count - 1)).tolist())
            for out in leaves:
                found |= set((here - measured(total - out + enters, count)).tolist())
            found |= set((here - measured(total + enters, count + 1)).tolist())
        found.discard(0)
        assert sensitivity_of(published, name, size) == both_ways(found, size), name
        released = pq.read_table(published.public / "data" / f"{name}.parquet")
        assert released.column("circuit").to_pylist() == list(range(12))


def test_peak_hours_of_twelve_neighbourhoods_on_ten_days(
    lcl_halfhourly: Path, tmp_path: Path
) -> None:
    published = run_release(SPECS / "lcl_halfhourly.yaml", tmp_path)
    assert published.verdict is not None
    assert published.verdict.status == 0
    assert (published.public / "data" / "peak_hour.parquet").exists()
    assert pq.read_table(published.public / "data" / "peak_hour.parquet").num_rows == 120
    rows = duckdb.execute(
        f"SELECT household_id, neighbourhood, day(ts) - 7, hour(ts), sum(wh)::BIGINT "
        f"FROM '{lcl_halfhourly}/lcl_halfhourly_2013.parquet' "
        f"JOIN '{lcl_halfhourly}/households_325.parquet' USING (household_id) "
        "WHERE ts >= '2013-01-07' AND ts < '2013-01-17' GROUP BY ALL"
    ).fetchall()
    place = dict(
        duckdb.execute(
            f"SELECT household_id, neighbourhood FROM '{lcl_halfhourly}/households_325.parquet'"
        ).fetchall()
    )
    used = {home: np.zeros((10, 24), dtype=np.int64) for home in place}
    for home, _, day, hour, wh in rows:
        used[home][day, hour] += wh
    found = set()
    for where in range(12):
        own = [home for home in place if place[home] == where]
        totals = sum((used[home] for home in own), np.zeros((10, 24), dtype=np.int64))
        here = totals.argmax(axis=1)
        nothing = np.zeros((10, 24), dtype=np.int64)
        for out in [nothing, *(used[home] for home in own)]:
            for into in [nothing, *used.values()]:
                found.update((here - (totals - out + into).argmax(axis=1)).tolist())
    found.discard(0)
    assert sensitivity_of(published, "peak_hour", 24) == both_ways(found, 24)


def mean_differences(
    homes: dict[str, dict[str, tuple[int, int]]], classes: dict[str, str], levels: int, high: int
) -> set[int]:
    """All differences of the means by class and period when one home replaces another, or none.

    ``homes[period][home]`` is the home's sum and its number of rows there.
    """
    found = np.zeros(2 * levels + 1, dtype=bool)

    def codes(totals: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.where(
            rows > 0, np.minimum(totals * levels // np.maximum(rows * high, 1), levels - 1), 0
        )

    for own in homes.values():
        everyone = np.array([*own.values(), (0, 0)])
        members: dict[str, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)])
        for home, numbers in own.items():
            members[classes[home]].append(numbers)
        for place in set(classes.values()):
            leaving = np.array(members[place])
            total, rows = leaving.sum(axis=0)
            here = codes(np.array(total), np.array(rows))
            there = codes(
                total - leaving[:, None, 0] + everyone[None, :, 0],
                rows - leaving[:, None, 1] + everyone[None, :, 1],
            )
            found[here - there + levels] = True
    return set((np.flatnonzero(found) - levels).tolist()) - {0}


def test_monthly_load_of_twelve_neighbourhoods(lcl_halfhourly: Path, tmp_path: Path) -> None:
    """5.4 million half hours; each home of a neighbourhood is replaced by each home and by none."""
    published = run_release(SPECS / "lcl_monthly.yaml", tmp_path)
    assert published.verdict is not None
    assert published.verdict.status == 0
    rows = duckdb.execute(
        f"SELECT month(ts), household_id, sum(least(wh, 5000))::BIGINT, count(*) "
        f"FROM '{lcl_halfhourly}/lcl_halfhourly_2013.parquet' GROUP BY ALL"
    ).fetchall()
    places = dict(
        duckdb.execute(
            f"SELECT household_id, neighbourhood FROM '{lcl_halfhourly}/households_325.parquet'"
        ).fetchall()
    )
    homes: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for month, home, total, count in rows:
        homes[month][home] = (total, count)
    found = mean_differences(homes, places, 40, 400)
    assert sensitivity_of(published, "monthly_load", 40) == both_ways(found, 40)


def test_homes_and_energy_by_class_and_month(lcl_daily: Path, tmp_path: Path) -> None:
    """3.5 million days; counts of homes against the engine, means against all replacements."""
    published = run_release(SPECS / "lcl_acorn.yaml", tmp_path)
    assert published.verdict is not None
    assert published.verdict.status == 0
    spec_file = read_spec(SPECS / "lcl_acorn.yaml")
    rows = duckdb.execute(
        f"SELECT strftime(day, '%Y-%m'), household_id, sum(least(energy_wh, 50000))::BIGINT, "
        f"count(energy_wh) FROM '{lcl_daily}/lcl_daily.parquet' GROUP BY ALL"
    ).fetchall()
    classes = dict(
        duckdb.execute(
            f"SELECT household_id, acorn FROM '{lcl_daily}/households.parquet'"
        ).fetchall()
    )
    homes: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for month, home, total, count in rows:
        if month in spec_file.keys["month"]:
            seen[classes[home], month].add(home)
            if count:
                homes[month][home] = (total, count)
    with load(spec_file) as tables:
        counted = answer(tables, spec_file)[1].codes.tolist()
    keys = sorted((one, month) for one in set(classes.values()) for month in homes)
    assert counted == [len(seen[key]) for key in keys]
    found = mean_differences(homes, classes, 50, 50_000)
    assert sensitivity_of(published, "mean_day", 50) == both_ways(found, 50)
