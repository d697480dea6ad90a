"""Tables as people have them: skewed units, missing values, broken texts, in three forms."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ARROW = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
FIRST_DAY = date(2024, 1, 1)
KINDS = ("bus", "car", "bike", "foot", "train", "boat", "tram", "other")
BROKEN = ("n/a", "unknown", "12 kg", "1.5", "-", "#REF!")
WAYS_TO_SAY_YES = (("true", "false"), ("yes", "no"), ("1", "0"), ("T", "F"))


@dataclass(frozen=True)
class Sample:
    """A confidential table, as its owner means it.

    Attributes:
        name: in the spec.
        form: csv, parquet or frame.
        columns: the declared types, by name.
        rows: what each row means, a value a cell; None is missing.
        broken: texts that stand in a CSV file where the meaning is missing, by column and row.
        says_yes: how the file writes true and false.
    """

    name: str
    form: str
    columns: dict[str, str]
    rows: pd.DataFrame
    broken: dict[tuple[str, int], str]
    says_yes: tuple[str, str]

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.parquet" if self.form == "parquet" else f"{self.name}.csv"

    def write(self, folder: Path) -> None:
        """Write the file; of a frame too, because only files can be rehearsed."""
        if self.form == "parquet":
            arrays = {
                name: pa.array(self.rows[name].tolist(), ARROW[kind])
                for name, kind in self.columns.items()
            }
            pq.write_table(pa.table(arrays), folder / self.file)
            return
        names = list(self.columns)
        with (folder / self.file).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            for number, row in enumerate(self.rows[names].itertuples(index=False)):
                pairs = zip(names, row, strict=True)
                writer.writerow([self._text(name, number, value) for name, value in pairs])

    def _text(self, name: str, number: int, value: Any) -> str:
        if value is None:
            return self.broken.get((name, number), "")
        if self.columns[name] == "boolean":
            return self.says_yes[0] if value else self.says_yes[1]
        if self.columns[name] == "timestamp":
            return f"{value:%Y-%m-%d %H:%M:%S}"
        return str(value)

    def frame(self) -> pd.DataFrame:
        """The table as a pandas frame of the dtypes that the Python page names."""
        made = {}
        for name, kind in self.columns.items():
            values = self.rows[name].tolist()
            if kind == "integer":
                made[name] = pd.Series(pd.array(values, dtype="Int64"))
            elif kind == "number":
                made[name] = pd.Series(np.array(values, dtype="float64"))
            elif kind == "boolean":
                made[name] = pd.Series(pd.array(values, dtype="boolean"))
            elif kind == "timestamp":
                made[name] = pd.Series(pd.to_datetime(pd.Series(values)))
            else:
                made[name] = pd.Series(values, dtype=object)
        return pd.DataFrame(made)


@dataclass(frozen=True)
class Street:
    """Who lives there: what a generated main table is like.

    Attributes:
        unit: the column of the privacy unit, and whether it is text.
        units: all units.
        places: the public list of places; some have no row.
        main: the table of events.
        facts: a table with a row for each unit, or none.
    """

    unit: str
    is_text: bool
    units: list[Any]
    places: list[str]
    main: Sample
    facts: Sample | None


def skewed(rng: Random, units: int, rows: int) -> list[int]:
    """The unit of each row: as in Zipf's law, or one row each, or some rows each."""
    way = rng.choice(("one", "even", "zipf", "zipf"))
    if way == "one":
        return list(range(rows))
    if way == "even":
        return [number % units for number in range(rows)]
    steepness = rng.uniform(0.4, 1.2)
    weights = [1 / (rank + 1) ** steepness for rank in range(units)]
    return rng.choices(range(units), weights, k=rows)


def amounts(rng: Random) -> Callable[[], int]:
    """How large an amount is: log-normal, in a few round values, or with debts below zero."""
    way = rng.choice(("lognormal", "lognormal", "round", "signed"))
    middle, spread = rng.uniform(2.5, 5.5), rng.uniform(0.3, 1.1)
    if way == "lognormal":
        return lambda: int(rng.lognormvariate(middle, spread))
    if way == "round":
        return lambda: rng.choice((5, 10, 10, 20, 20, 20, 50, 100))
    return lambda: int(rng.gauss(30, 60))


def main_rows(
    rng: Random, unit: str, units: list[Any], owner: list[int], places: list[str]
) -> dict[str, list[Any]]:
    """The columns of the main table, before anything is missing."""
    busy = [1 / (rank + 1) ** 0.7 for rank in range(len(places))]
    kinds = KINDS[: rng.randint(3, len(KINDS))]
    often = [1 / (rank + 1) for rank in range(len(kinds))]
    home = [rng.choice("nesw") for _ in units]
    amount = amounts(rng)
    days = [FIRST_DAY + timedelta(rng.randrange(366)) for _ in owner]
    return {
        unit: [units[number] for number in owner],
        "quarter": [home[number] for number in owner],
        "place": rng.choices(places, busy, k=len(owner)),
        "month": [day.month for day in days],
        "kind": rng.choices(kinds, often, k=len(owner)),
        "amount": [amount() for _ in owner],
        "rating": [min(10, max(0, round(rng.gauss(6, 2)))) for _ in owner],
        "kwh": [round(rng.expovariate(0.8), 4) for _ in owner],
        "paid": [rng.random() < 0.7 for _ in owner],
        "day": days,
        "at": [
            datetime(day.year, day.month, day.day, rng.randrange(24), rng.randrange(60))
            for day in days
        ],
    }


TYPES = {
    "quarter": "string",
    "place": "string",
    "month": "integer",
    "kind": "string",
    "amount": "integer",
    "rating": "integer",
    "kwh": "number",
    "paid": "boolean",
    "day": "date",
    "at": "timestamp",
}
# A fixed fact of a unit is known of each; the others may be missing.
MAY_BE_MISSING = ("place", "kind", "amount", "rating", "kwh", "paid", "day", "at")


def with_gaps(
    rng: Random, columns: dict[str, list[Any]], unit: str, form: str
) -> dict[tuple[str, int], str]:
    """Take values away, in half of the tables; the texts that stand in their place in CSV."""
    broken: dict[tuple[str, int], str] = {}
    if rng.random() < 0.5:
        return broken
    for name in (*MAY_BE_MISSING, unit):
        share = rng.choice((0.0, 0.0, 0.01, 0.05, 0.15)) if name != unit else rng.choice((0, 0.01))
        for number in range(len(columns[name])):
            if rng.random() >= share:
                continue
            columns[name][number] = None
            if form == "csv" and name in ("amount", "rating") and rng.random() < 0.5:
                broken[name, number] = rng.choice(BROKEN)
    return broken


def make_street(rng: Random, most_units: int = 3000, one_row: bool = False) -> Street:
    """A street of at most so many units; a unit has one row where that is asked for."""
    rows = min(most_units, int(20 * 150 ** rng.random()))
    units_wanted = rows if one_row else max(5, int(rows / rng.uniform(1, 8)))
    owner = list(range(rows)) if one_row else skewed(rng, units_wanted, rows)
    is_text = rng.random() < 0.6
    unit = rng.choice(("person", "home", "customer", "patient", "car_id"))
    units: list[Any] = [
        f"{unit[0]}{number:05d}" if is_text else 1000 + number for number in range(max(owner) + 1)
    ]
    places = [f"{rng.choice('abcd')}{number:02d}" for number in range(rng.randint(1, 38))]
    form = rng.choice(("csv", "csv", "parquet", "frame"))
    columns = main_rows(rng, unit, units, owner, places)
    broken = with_gaps(rng, columns, unit, form)
    kind = "string" if is_text else "integer"
    frame = pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in columns.items()}
    )
    yes = rng.choice(WAYS_TO_SAY_YES)
    main = Sample("visits", form, {unit: kind, **TYPES}, frame, broken, yes)
    facts = make_facts(rng, unit, kind, units, form) if rng.random() < 0.5 else None
    return Street(unit, is_text, units, sorted(set(places)), main, facts)


def make_facts(rng: Random, unit: str, kind: str, units: list[Any], form: str) -> Sample:
    """A row for each unit, of which some tables lack a few."""
    lost = rng.choice((0.0, 0.0, 0.0, 0.05))
    known = [name for name in units if rng.random() >= lost] or units[:1]
    rows = {
        unit: known,
        "age": [rng.randint(0, 99) for _ in known],
        "sex": [rng.choice("fm") for _ in known],
    }
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})
    columns = {unit: kind, "age": "integer", "sex": "string"}
    return Sample("people", form, columns, frame, {}, ("true", "false"))
