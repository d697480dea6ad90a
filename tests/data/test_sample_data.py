"""The sample tables: they are what their generator makes, keep their contracts and look real."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
CONTRACTS = ROOT / "schemas" / "tables"
REAL = ROOT.parent / "shared" / "data"
REAL_DAYS = REAL / "lcl_daily" / "lcl_daily.parquet"
REAL_HALF_HOURS = REAL / "lcl_halfhourly" / "lcl_halfhourly_2013.parquet"
NAMES = ("ami_readings", "persons")
ARROW_TYPES = {"string": pa.string(), "integer": pa.int32(), "date": pa.date32()}
RULES = {"pattern", "allowed", "minimum", "maximum"}
COLUMN_KEYS = {"type", "meaning", "measure", "nullable"} | RULES

Floats = npt.NDArray[np.float64]
Contract = dict[str, Any]

needs_real_data = pytest.mark.skipif(
    not (REAL_DAYS.exists() and REAL_HALF_HOURS.exists()),
    reason="the real tables lie beside the project only where it is developed",
)


def contract_of(name: str) -> Contract:
    """Return the contract of the table `name` as it is written."""
    found: Contract = yaml.safe_load((CONTRACTS / f"{name}.yaml").read_text("utf-8"))
    return found


def table_of(name: str) -> Any:
    """Return the committed table `name`."""
    return pq.read_table(DATA / f"{name}.parquet")


def column_faults(rule: Contract, column: Any) -> set[str]:
    """Return the keys of a column's contract that the column breaks."""
    faults = {"type"} if column.type != ARROW_TYPES[rule["type"]] else set()
    values = column.drop_null().unique().to_pylist()
    if rule["type"] == "date":
        values = [value.isoformat() for value in values]
    if not rule["nullable"] and column.null_count:
        faults.add("nullable")
    if "pattern" in rule and not all(re.fullmatch(rule["pattern"], value) for value in values):
        faults.add("pattern")
    if "allowed" in rule and not set(values) <= set(rule["allowed"]):
        faults.add("allowed")
    if "minimum" in rule and not all(value >= rule["minimum"] for value in values):
        faults.add("minimum")
    if "maximum" in rule and not all(value <= rule["maximum"] for value in values):
        faults.add("maximum")
    return faults


def is_unique(table: Any, columns: list[str]) -> bool:
    """Return whether no two rows agree in all of `columns`."""
    return bool(table.group_by(columns).aggregate([]).num_rows == table.num_rows)


def scalar(value: Any) -> float:
    """Return an Arrow scalar as a float."""
    return float(value.as_py())


def home_days() -> tuple[Floats, Floats]:
    """Return the readings of all home-days (home-days, 24), NaN where absent, and the days' sums.

    Only complete home-days have a sum; the others are NaN.
    """
    table = table_of("ami_readings").sort_by(
        [("household_id", "ascending"), ("day", "ascending"), ("hour", "ascending")]
    )
    home = table["household_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    day = table["day"].cast(pa.int32()).to_numpy()
    grid = np.full((home.max() + 1, np.ptp(day) + 1, 24), np.nan)
    grid[home, day - day.min(), table["hour"].to_numpy()] = table["wh"].to_numpy()
    hours = grid.reshape(-1, 24)
    return hours, hours.sum(axis=1)


def peak_shares(hours: Floats) -> Floats:
    """Return the percent of complete, non-empty home-days whose first largest hour is 0..23."""
    used = hours[hours.sum(axis=1) > 0]
    return np.asarray(100.0 * np.bincount(used.argmax(axis=1), minlength=24) / len(used))


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    subprocess.run(
        [sys.executable, str(DATA / "generate.py"), "--out", str(folder)], check=True, timeout=60
    )
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_makes_the_committed_table(name: str, regenerated: Path) -> None:
    assert pq.read_table(regenerated / f"{name}.parquet").equals(table_of(name))


def test_the_files_stay_small_and_hold_plain_strings() -> None:
    assert sum((DATA / f"{name}.parquet").stat().st_size for name in NAMES) < 1_500_000
    for name in NAMES:
        assert not any(pa.types.is_dictionary(field.type) for field in table_of(name).schema)
        described = pq.ParquetFile(DATA / f"{name}.parquet").metadata
        assert described.row_group(0).column(0).compression == "ZSTD"
        assert described.num_row_groups <= 4


@pytest.mark.parametrize("name", NAMES)
def test_a_contract_says_everything_in_known_words(name: str) -> None:
    contract = contract_of(name)
    assert set(contract) == {"contract", "table", "description", "unit", "unique", "columns"}
    assert contract["contract"] == "dp-release/table/v1"
    assert contract["table"] == name
    assert contract["unit"] in contract["columns"]
    assert set(contract["unique"]) <= set(contract["columns"])
    for rule in contract["columns"].values():
        assert set(rule) - RULES == {"type", "meaning", "measure", "nullable"}
        assert set(rule) <= COLUMN_KEYS
        assert set(rule) & RULES


@pytest.mark.parametrize("name", NAMES)
def test_a_table_keeps_its_contract(name: str) -> None:
    contract, table = contract_of(name), table_of(name)
    assert table.column_names == list(contract["columns"])
    for column, rule in contract["columns"].items():
        assert column_faults(rule, table[column].combine_chunks()) == set(), column
    assert is_unique(table, contract["unique"])
    assert not is_unique(table, ["county" if name == "persons" else "household_id"])


@pytest.mark.parametrize(
    ("name", "column", "planted", "broken"),
    [
        ("ami_readings", "household_id", pa.array(["h12345"]), "pattern"),
        ("ami_readings", "circuit", pa.array(["c12"]), "allowed"),
        ("ami_readings", "day", pa.array([15_708], pa.date32()), "minimum"),
        ("ami_readings", "hour", pa.array([24], pa.int32()), "maximum"),
        ("ami_readings", "wh", pa.array([-1], pa.int32()), "minimum"),
        ("ami_readings", "wh", pa.array([None], pa.int32()), "nullable"),
        ("ami_readings", "wh", pa.array([1.0]), "type"),
        ("persons", "age", pa.array([100], pa.int32()), "maximum"),
        ("persons", "commute", pa.array(["ship"]), "allowed"),
    ],
)
def test_a_planted_fault_is_found(name: str, column: str, planted: Any, broken: str) -> None:
    assert column_faults(contract_of(name)["columns"][column], planted) == {broken}


@pytest.mark.parametrize(
    ("name", "order"),
    [("ami_readings", ["household_id", "day", "hour"]), ("persons", ["person_id"])],
)
def test_rows_are_sorted_by_unit(name: str, order: list[str]) -> None:
    table = table_of(name)
    assert table.equals(table.sort_by([(column, "ascending") for column in order]))


def test_every_circuit_has_118_homes_and_a_home_one_circuit() -> None:
    pairs = table_of("ami_readings").group_by(["household_id", "circuit"]).aggregate([])
    assert is_unique(pairs, ["household_id"])
    sizes = pairs.group_by("circuit").aggregate([("household_id", "count")])
    assert sizes["household_id_count"].to_pylist() == [118] * 12


def test_a_home_uses_about_ten_kilowatt_hours_a_day() -> None:
    day = home_days()[1]
    day = day[~np.isnan(day)]
    assert 9_500 <= day.mean() <= 10_700
    assert day.min() == 0
    assert np.quantile(day, 0.95) > 3 * np.median(day)


def test_the_commonest_peak_hour_is_19_and_midnight_is_a_second_peak() -> None:
    share = peak_shares(home_days()[0])
    assert share.argmax() == 19
    assert share[0] > 1.5 * share[23]
    assert share[0] > 2 * share[1]


def test_circuits_differ_mildly_in_level_and_in_night_peaks() -> None:
    hours, day = home_days()
    circuits = hours.reshape(12, -1, 24)
    level = np.nanmean(day.reshape(12, -1), axis=1)
    assert 1.2 < level.max() / level.min() < 2
    night = np.array([peak_shares(circuit)[0] for circuit in circuits])
    assert night.min() < 3
    assert night.max() > 7


def test_some_homes_lack_hours_but_few_do() -> None:
    missing = np.isnan(home_days()[0]).sum(axis=1)
    assert 5 <= (missing > 0).sum() <= 12
    assert missing.max() < 24


def test_a_tract_lies_in_one_county() -> None:
    pairs = table_of("persons").group_by(["tract", "county"]).aggregate([])
    assert is_unique(pairs, ["tract"])
    counties = pairs.group_by("county").aggregate([("tract", "count")]).sort_by("county")
    assert counties["tract_count"].to_pylist() == [10, 8, 6]


def test_there_are_24000_persons_of_plausible_ages_and_sexes() -> None:
    table = table_of("persons")
    assert table.num_rows == 24_000
    age = table["age"].to_numpy()
    assert 0.19 <= (age < 18).mean() <= 0.23
    assert 0.13 <= (age >= 65).mean() <= 0.18
    female = pc.equal(table["sex"], "f").to_numpy()
    assert 0.50 <= female.mean() <= 0.53
    assert female[age >= 80].mean() > female[age < 40].mean() + 0.05


def test_schooling_and_work_fit_the_age() -> None:
    table = table_of("persons")
    children = table.filter(pc.less(table["age"], 15))
    assert set(children["education"].to_pylist()) == {"none"}
    assert set(children["commute"].to_pylist()) == {"none"}
    minors = table.filter(pc.less(table["age"], 20))
    assert not pc.any(pc.equal(minors["education"], "master_plus")).as_py()


def test_exactly_those_who_travel_have_minutes() -> None:
    table = table_of("persons")
    travels = pc.is_in(table["commute"], pa.array(["car", "transit", "bike", "walk"]))
    assert travels.equals(pc.greater(table["travel_minutes"], 0))


def test_centre_tracts_rent_and_rural_tracts_drive() -> None:
    table = table_of("persons")
    owns = pc.equal(table["tenure"], "owner")
    drives = pc.equal(table["commute"], "car")
    works = pc.not_equal(table["commute"], "none")
    centre = pc.is_in(table["tract"], pa.array(["t01", "t02", "t03", "t11"]))
    rural = pc.is_in(table["tract"], pa.array(["t20", "t21", "t22", "t23", "t24"]))
    assert scalar(pc.mean(owns.filter(centre).cast(pa.int8()))) < 0.25
    assert scalar(pc.mean(owns.filter(rural).cast(pa.int8()))) > 0.6
    assert scalar(pc.mean(drives.filter(pc.and_(rural, works)).cast(pa.int8()))) > 0.8
    assert scalar(pc.mean(drives.filter(pc.and_(centre, works)).cast(pa.int8()))) < 0.3


@needs_real_data
def test_a_day_of_energy_is_spread_as_in_the_real_table() -> None:
    levels = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
    found = duckdb.connect().execute(
        "SELECT quantile_cont(energy_wh, ?) FROM read_parquet(?) "
        "WHERE n_readings = 48 AND date_part('year', day) = 2013",
        [levels, str(REAL_DAYS)],
    )
    real = np.array(found.fetchall()[0][0])
    generated = np.nanquantile(home_days()[1], levels)
    ratio = generated / real
    assert (ratio > 1 / 1.12).all(), ratio
    assert (ratio < 1.12).all(), ratio


@needs_real_data
def test_peaks_are_as_high_and_as_late_as_in_the_real_table() -> None:
    found = duckdb.connect().execute(
        "SELECT wh FROM read_parquet(?) "
        "QUALIFY count(*) OVER (PARTITION BY household_id, CAST(ts AS DATE)) = 48 "
        "ORDER BY household_id, ts",
        [str(REAL_HALF_HOURS)],
    )
    halves = np.asarray(found.fetchnumpy()["wh"], dtype=np.float64)
    real = halves.reshape(-1, 24, 2).sum(axis=2)
    generated = home_days()[0]
    generated = generated[~np.isnan(generated).any(axis=1)]

    assert np.abs(peak_shares(generated) - peak_shares(real)).max() < 1.2
    levels = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
    ratio = np.quantile(generated.max(axis=1), levels) / np.quantile(real.max(axis=1), levels)
    assert (ratio > 1 / 1.15).all(), ratio
    assert (ratio < 1.15).all(), ratio
