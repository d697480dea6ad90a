"""Real tables, whole: noise on the statistic errs no more than its plan says.

Each release is published, verified and opened once with the system's randomness. Its errors are
measured on further runs from fixed bytes, which no verifier accepts. True answers are counted from
the files, without the package's queries.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import release
from release.exact.statistics.gap_table import GapTable
from release.exact.statistics.nearness import LEVEL, lead_for
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import NoisySums
from release.job import Published
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import parse_spec
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Small, mechanism_of

Integers = NDArray[np.int64]
Plain = dict[str, Any]

MIDDLE = Fraction(1, 2)
QUARTILES = (Fraction(1, 4), MIDDLE, Fraction(3, 4))


def query(name: str, kind: str, by: list[str], **more: Any) -> Plain:
    guarantee = {"definition": "pure", "epsilon": "1"}
    shared = {"table": "rows", "by": by, "sensitivity": "global", "guarantee": guarantee}
    return {"name": name, "kind": kind, **shared, **more}


def write_spec(folder: Path, tables: Plain, keys: Plain, queries: list[Plain], **own: Any) -> Path:
    plain = Small([], queries).plain()
    plain |= {"tables": tables, "keys": keys}
    plain["privacy"] = {"neighbors": "replace_one", "max_rows_per_unit": 1, **own}
    path = folder / "spec.yaml"
    # JSON is YAML, and has no aliases for the parts that queries share.
    path.write_text(json.dumps(plain), "utf-8")
    return path


def run_verified(spec: Path, out: Path) -> Published:
    """A release as it is meant: published, verified by both bundles and by the public one."""
    published = run_release(spec, out)
    assert published.verdict is not None
    assert published.verdict.status == 0
    assert verify(published.public, None, UNSIGNED).status == 0
    assert published.auditor is None
    return published


def seeded(spec: Path, folder: Path, runs: int) -> Iterator[Path]:
    """The public bundles of so many test runs, each from bytes of its own."""
    for seed in range(runs):
        source = np.random.default_rng(seed).bytes
        yield run_release(spec, folder / f"seed{seed}", test_source=source).public


def table_of(public: Path, name: str) -> pd.DataFrame:
    """A published table, with the codes and sums that the opened one leaves out."""
    return release.open(public)[name].to_arrow().to_pandas()


def query_of(public: Path, name: str) -> OnStatisticQuery:
    spec = parse_spec((public / "spec.yaml").read_bytes())
    (found,) = (one for one in spec.released if one.name == name)
    assert isinstance(found, OnStatisticQuery)
    return found


def rank_distance(bins: Integers, code: int, share: Fraction) -> Fraction:
    """How many rows lie between a bin and the wanted rank."""
    wanted = share * bins.size
    below, upto = int((bins < code).sum()), int((bins <= code).sum())
    return max(Fraction(0), below - wanted, wanted - upto)


def bins_of(values: Integers, width: int, count: int) -> Integers:
    return np.clip(values // width, 0, count - 1)


def means_of(frame: pd.DataFrame, low: int, high: int) -> NDArray[np.float64]:
    """The means that the published sums make: (low + high)/2 + (high - low)·(A - B)/2(A + B)."""
    above, below = frame["noisy_above"].to_numpy(float), frame["noisy_below"].to_numpy(float)
    return np.asarray(
        (low + high) / 2 + (high - low) * (above - below) / (2 * (above + below)), dtype=np.float64
    )


@pytest.fixture
def circuits(lcl_daily: Path, tmp_path: Path) -> Path:
    """Median and mean load of one Saturday, from all 3.5 million home-days."""
    tables = {
        "rows": {
            "path": str(lcl_daily / "lcl_daily.parquet"),
            "columns": {
                "household_id": "string",
                "day": "date",
                "energy_wh": "integer",
                "n_readings": "integer",
            },
            "join": {"table": "homes"},
        },
        "homes": {
            "path": str(lcl_daily / "circuits_1416.parquet"),
            "columns": {"household_id": "string", "circuit": "integer"},
        },
    }
    shared: Plain = {
        "of": "energy_wh",
        "where": "day = DATE '2013-01-05' AND n_readings = 48",
        "bins": {"low": 0, "high": 40_000, "count": 80},
    }
    queries = [
        query("median_load", "median", ["circuit"], **shared),
        query("mean_load", "mean", ["circuit"], **shared),
    ]
    own = {"unit": "household_id", "fixed": ["circuit"]}
    return write_spec(tmp_path, tables, {"circuit": {"range": [0, 11]}}, queries, **own)


def load_of_circuits(folder: Path) -> dict[int, Integers]:
    rows = duckdb.execute(
        f"SELECT circuit, energy_wh FROM '{folder}/lcl_daily.parquet' "
        f"JOIN '{folder}/circuits_1416.parquet' USING (household_id) "
        "WHERE day = DATE '2013-01-05' AND n_readings = 48"
    ).fetchall()
    loads: dict[int, list[int]] = {circuit: [] for circuit in range(12)}
    for circuit, wh in rows:
        loads[circuit].append(wh)
    return {circuit: np.array(own) for circuit, own in loads.items()}


def test_loads_of_twelve_circuits_of_118_homes(
    circuits: Path, lcl_daily: Path, tmp_path: Path
) -> None:
    public = run_verified(circuits, tmp_path / "out").public
    loads = load_of_circuits(lcl_daily)
    assert {own.size for own in loads.values()} == {118}
    median = mechanism_of(public, "median_load")
    assert isinstance(median, PermuteAndFlip)
    rows = math.ceil(lead_for(median.chance_of_leader) / 2)
    told = median.nearness(query_of(public, "median_load").wording).sentence
    assert f"less than {rows} rows" in told
    sums = mechanism_of(public, "mean_load")
    assert isinstance(sums, NoisySums)
    within = sums.noise.radius(LEVEL) / 118

    near, close, covered = [], [], []
    for run in seeded(circuits, tmp_path, 4):
        frame = table_of(run, "median_load")
        for circuit, code in zip(frame["circuit"], frame["answer_code"], strict=True):
            near.append(rank_distance(bins_of(loads[circuit], 500, 80), code, MIDDLE) < rows)
        frame = table_of(run, "mean_load")
        true = np.array([np.clip(loads[circuit], 0, 40_000).mean() for circuit in frame["circuit"]])
        close += (np.abs(means_of(frame, 0, 40_000) - true) <= within).tolist()
        opened = release.open(run)["mean_load"].to_pandas()
        covered += ((opened["low"] <= true) & (true <= opened["high"])).tolist()
    assert len(near) == len(close) == len(covered) == 48
    assert np.mean(near) >= LEVEL
    assert np.mean(close) >= LEVEL
    # The interval is exact at 95 in 100: of 48 cells 40 or fewer are covered once in 1,000 tries.
    assert sum(covered) > 40


PEAKS = """
    SELECT household_id, day, hour FROM (
        SELECT household_id, dayofyear(ts) AS day, hour(ts) AS hour, sum(wh) AS wh, count(*) AS n
        FROM '{file}' GROUP BY ALL
    ) QUALIFY sum(n) OVER (PARTITION BY household_id, day) = 48
        AND row_number() OVER (PARTITION BY household_id, day ORDER BY wh DESC, hour) = 1
"""


def test_peak_hours_of_325_homes_on_every_day(lcl_halfhourly: Path, tmp_path: Path) -> None:
    """5.4 million half hours; a home's own peak is its first hour of most energy."""
    file, peaks = lcl_halfhourly / "lcl_halfhourly_2013.parquet", tmp_path / "peaks.parquet"
    found = PEAKS.format(file=file)
    duckdb.execute(
        f"COPY (SELECT household_id, day::BIGINT AS day, hour::BIGINT AS hour, "
        f"(hour // 6)::BIGINT AS quarter FROM ({found})) TO '{peaks}' (FORMAT parquet)"
    )
    columns = {"household_id": "string", "day": "integer", "hour": "integer", "quarter": "integer"}
    tables = {"rows": {"path": str(peaks), "columns": columns}}
    queries = [
        query("peak_hour", "mode", ["day"], of="hour", domain={"cyclic": 24}),
        query("peak_quarter", "mode", ["day"], of="quarter", domain={"cyclic": 4}),
    ]
    own = {"unit": "household_id", "max_rows_per_unit": 365}
    spec = write_spec(tmp_path, tables, {"day": {"range": [1, 365]}}, queries, **own)
    counts = np.zeros((365, 24), dtype=np.int64)
    for day, hour in duckdb.execute(f"SELECT day, hour FROM '{peaks}'").fetchall():
        counts[day - 1, hour] += 1
    assert counts.sum() > 100_000
    by_quarter = counts.reshape(365, 4, 6).sum(axis=2)

    public = run_verified(spec, tmp_path / "out").public
    runs = list(seeded(spec, tmp_path, 3))
    for name, here in (("peak_hour", counts), ("peak_quarter", by_quarter)):
        mechanism = mechanism_of(public, name)
        assert isinstance(mechanism, PermuteAndFlip | GapTable)
        enough = lead_for(mechanism.chance_of_leader)
        ranked = np.sort(here, axis=1)
        leads = ranked[:, -1] - ranked[:, -2]
        right, near = [], []
        for run in runs:
            frame = table_of(run, name)
            days, codes = frame["day"].astype(int).to_numpy() - 1, frame["answer_code"].to_numpy()
            behind = here.max(axis=1)[days] - here[days, codes]
            near += (behind < enough).tolist()
            right += (behind[leads[days] >= enough] == 0).tolist()
        assert len(near) == 365 * 3
        assert np.mean(near) >= LEVEL
        # So many days have a peak that the plan says is published.
        assert len(right) >= 100
        assert np.mean(right) >= LEVEL


def test_incomes_of_twenty_areas(acs: Path, tmp_path: Path) -> None:
    """Quartiles, median and mean of personal incomes, 23,006 of 27,253 persons."""
    source, persons = acs / "national2019.parquet", tmp_path / "persons.parquet"
    duckdb.execute(
        "COPY (SELECT 'p' || row_number() OVER () AS person, PUMA, PINCP::BIGINT AS income "
        f"FROM '{source}') TO '{persons}' (FORMAT parquet)"
    )
    incomes: dict[str, list[int]] = {}
    for area, income in duckdb.execute(f"SELECT PUMA, PINCP FROM '{source}'").fetchall():
        if income is not None:
            incomes.setdefault(area, []).append(income)
    values = {area: np.array(own) for area, own in incomes.items()}
    assert sum(own.size for own in values.values()) == 23_006
    columns = {"person": "string", "PUMA": "string", "income": "integer"}
    tables = {"rows": {"path": str(persons), "columns": columns}}
    shared: Plain = {"of": "income", "bins": {"low": 0, "high": 200_000, "count": 200}}
    queries = [
        query("median_income", "quantiles", ["PUMA"], at=["1/2"], **shared),
        query("quartiles", "quantiles", ["PUMA"], at=["1/4", "1/2", "3/4"], **shared),
        query("mean_income", "mean", ["PUMA"], **shared),
    ]
    own = {"unit": "person", "fixed": ["PUMA"]}
    spec = write_spec(tmp_path, tables, {"PUMA": sorted(values)}, queries, **own)
    public = run_verified(spec, tmp_path / "out").public
    rows = math.ceil(lead_for(mechanism_of(public, "median_income").chance_of_leader) / 2)
    told = (
        mechanism_of(public, "quartiles").nearness(query_of(public, "quartiles").wording).sentence
    )
    of_all = int(told.split("within about ")[1].split(" rows")[0])
    within = mechanism_of(public, "mean_income").noise.radius(LEVEL)

    near, each, close = [], [], []
    for run in seeded(spec, tmp_path, 5):
        frame = table_of(run, "median_income")
        for area, code in zip(frame["PUMA"], frame["answer_code"], strict=True):
            near.append(rank_distance(bins_of(values[area], 1_000, 200), code, MIDDLE) < rows)
        frame = table_of(run, "quartiles")
        names = [name for name in frame.columns if name.startswith("answer_code")]
        for area, *codes in frame[["PUMA", *names]].itertuples(index=False):
            assert codes == sorted(codes)
            bins = bins_of(values[area], 1_000, 200)
            for share, code in zip(QUARTILES, codes, strict=True):
                each.append(rank_distance(bins, code, share) <= of_all)
        frame = table_of(run, "mean_income")
        for area, mean in zip(frame["PUMA"], means_of(frame, 0, 200_000), strict=True):
            true = np.clip(values[area], 0, 200_000)
            close.append(abs(mean - true.mean()) <= within / true.size)
    assert len(near) == len(close) == 100
    assert np.mean(near) >= LEVEL
    assert np.mean(each) >= LEVEL
    assert np.mean(close) >= LEVEL
