"""The answers of a question, from the rows alone: as it was asked, and of what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tests.street.specs import Case, Plain, Wish, most_rows

Cell: TypeAlias = tuple[str, ...]
Mask: TypeAlias = npt.NDArray[np.bool_]

WITH_VALUE = ("sum", "mean", "min", "max", "median", "quantiles", "mode", "top", "per_unit")


@dataclass(frozen=True)
class Meant:
    """The rows of a question.

    Attributes:
        rows: of the main table, with the facts and the derived columns; None is missing.
        asked: the rows of each cell that the question is about.
        read: the rows of each cell that may be read: they have a unit and are within the domain.
        why: why the answers of the two may differ, in the words of a reason.
        is_bounded: whether a bound leaves out rows, so that nobody here knows which are read.
    """

    rows: pd.DataFrame
    asked: dict[Cell, pd.DataFrame]
    read: dict[Cell, pd.DataFrame]
    why: set[str] = field(default_factory=set)
    is_bounded: bool = False


def full_rows(case: Case) -> tuple[pd.DataFrame, bool]:
    """The main table with facts and derived columns, and whether some units have no facts."""
    rows = case.street.main.rows.copy()
    lost = False
    if "join" in case.spec["tables"]["visits"] and case.street.facts is not None:
        facts = case.street.facts.rows.set_index(case.street.unit)
        for name in ("age", "sex"):
            by_unit = facts[name].to_dict()
            values = [by_unit.get(unit) for unit in rows[case.street.unit]]
            rows[name] = pd.Series(values, dtype=object, index=rows.index)
        units = rows[case.street.unit].dropna()
        lost = not set(units) <= set(facts.index)
    for column in case.derived:
        column.add_to(rows)
    return rows, lost


def keys_of(case: Case, column: str) -> list[str]:
    """The public keys of a column, as text."""
    keys = case.spec["keys"][column]
    if isinstance(keys, list):
        return [str(key) for key in keys]
    if "file" in keys:
        return case.files[keys["file"]].splitlines()[1:]
    first, last = keys["range"]
    return [str(key) for key in range(first, last + 1)]


def cells_of(case: Case, by: Sequence[str]) -> list[Cell]:
    """All combinations of keys."""
    return list(product(*(keys_of(case, column) for column in by)))


def labels(query: Plain) -> list[Any]:
    """The categories of a domain, by code."""
    domain = query["domain"]
    if "nominal" in domain:
        return list(domain["nominal"])
    if "cyclic" in domain:
        return list(range(domain["cyclic"]))
    return list(range(domain["ordered"]["min"], domain["ordered"]["max"] + 1))


def value_columns(query: Plain) -> list[str]:
    """The columns whose values the query reads, beside keys and condition."""
    if query["kind"] not in WITH_VALUE:
        return []
    return [query["of"], *([query["weight"]] if "weight" in query else [])]


def has_all(rows: pd.DataFrame, columns: Sequence[str]) -> Mask:
    """Which rows have all of these values."""
    there = np.ones(len(rows), dtype=bool)
    for column in columns:
        there &= np.array([value is not None for value in rows[column]], dtype=bool)
    return there


def in_cells(case: Case, wish: Wish, rows: pd.DataFrame) -> Mask:
    """Which rows meet the condition and lie in a cell."""
    mask = has_all(rows, wish.by)
    if wish.where is not None:
        mask &= wish.where.meets(rows)
    for column in wish.by:
        keys = set(keys_of(case, column))
        mask &= np.array([str(value) in keys for value in rows[column]], dtype=bool)
    return mask


def counting(case: Case, wish: Wish, rows: pd.DataFrame) -> Mask:
    """Which rows the question is about: condition, keys and values."""
    mask = in_cells(case, wish, rows) & has_all(rows, value_columns(wish.query))
    if wish.kind in ("mode", "top", "per_unit"):
        allowed = set(labels(wish.query))
        mask &= np.array([value in allowed for value in rows[wish.query["of"]]], dtype=bool)
    return mask


def by_cell(case: Case, wish: Wish, rows: pd.DataFrame, mask: Mask) -> dict[Cell, pd.DataFrame]:
    """The rows of each cell."""
    chosen = rows[mask]
    found = dict.fromkeys(cells_of(case, wish.by), chosen.iloc[:0])
    if not wish.by:
        return {(): chosen}
    names = [[str(value) for value in chosen[column]] for column in wish.by]
    places: dict[Cell, list[int]] = {}
    for number, cell in enumerate(zip(*names, strict=True)):
        places.setdefault(cell, []).append(number)
    found |= {cell: chosen.iloc[numbers] for cell, numbers in places.items()}
    return found


def bounds_bind(case: Case, wish: Wish, rows: pd.DataFrame, mask: Mask) -> bool:
    """Whether a bound on rows or cells leaves out a row, of those that have a unit."""
    unit, privacy = case.street.unit, case.privacy
    most = most_rows(wish.query, privacy)
    if wish.kind == "per_unit":
        most = 1
    chosen = rows[mask]
    counts = Counter(chosen[unit])
    if counts and max(counts.values()) > most:
        return True
    cells = privacy.get("max_cells_per_unit")
    free = [name for name in wish.by if name not in privacy.get("fixed", ())]
    if cells is None or not free:
        return False
    seen: dict[Any, set[Any]] = {}
    for owner, *cell in zip(chosen[unit], *(chosen[name] for name in free), strict=True):
        seen.setdefault(owner, set()).add(tuple(cell))
    return any(len(found) > cells for found in seen.values())


def clamped(wish: Wish, rows: pd.DataFrame, column: str) -> bool:
    """Whether a value of these rows lies beyond what a row may count as."""
    low, high = clamp_of(wish.query)
    values = scaled(wish.query, rows[column])
    return bool(len(values)) and bool((values < low).any() or (values > high).any())


def clamp_of(query: Plain) -> tuple[int, int]:
    """The lowest and the highest value that a row counts as."""
    if "clamp" in query:
        low, high = query["clamp"]
    elif "bins" in query:
        low, high = query["bins"]["low"], query["bins"]["high"]
    else:
        low, high = query["domain"]["ordered"]["min"], query["domain"]["ordered"]["max"]
    return int(low), int(high)


def scaled(query: Plain, values: pd.Series) -> npt.NDArray[np.float64]:
    """The numbers of a column, in whole units of the scale of a grid."""
    numbers = np.array(values.tolist(), dtype=np.float64)
    if "grid" in query:
        return np.rint(numbers / float(query["grid"]["scale"]))
    return numbers


def meant(case: Case, wish: Wish) -> Meant:
    """The rows of a question, as asked and as read."""
    rows, lost = full_rows(case)
    mask = counting(case, wish, rows)
    has_unit = has_all(rows, [case.street.unit])
    if wish.kind == "count" and "of" in wish.query:
        mask &= has_unit
    why = set()
    if lost:
        why.add("join")
    if (mask & ~has_unit).any():
        why.add("unit")
    # Rows without a value may or may not use up a bound, so here they do.
    is_bounded = bounds_bind(case, wish, rows, in_cells(case, wish, rows) & has_unit)
    if is_bounded:
        why.add("bound")
    numbers = wish.query.get("weight")
    if wish.kind in ("sum", "mean", "min", "max", "median", "quantiles"):
        numbers = wish.query["of"]
    if numbers is not None and clamped(wish, rows[mask], numbers):
        why.add("clamp")
    asked = by_cell(case, wish, rows, mask)
    # Which rows a join keeps is the product's to say; here they are unknown as under a bound.
    return Meant(rows, asked, by_cell(case, wish, rows, mask & has_unit), why, is_bounded or lost)


def number_of(case: Case, wish: Wish, rows: pd.DataFrame, is_read: bool) -> float | None:
    """The count, sum or mean of a cell; None of a mean without rows."""
    query = wish.query
    if wish.kind == "count":
        found = rows[case.street.unit].nunique() if "of" in query else len(rows)
        return float(within(query, found) if is_read else found)
    values = scaled(query, rows[query["of"]])
    if is_read:
        values = np.clip(values, *clamp_of(query))
    if wish.kind == "sum":
        return float(values.sum())
    return float(values.mean()) if len(values) else None


def within(query: Plain, count: int) -> int:
    """A count within its domain."""
    if "ordered" not in query["domain"]:
        return count
    bounds = query["domain"]["ordered"]
    return int(min(max(count, bounds["min"]), bounds["max"]))


def scores(case: Case, wish: Wish, rows: pd.DataFrame, is_read: bool) -> dict[Any, float]:
    """What each category of a mode or top has: units, rows or weight."""
    query = wish.query
    found: dict[Any, float] = dict.fromkeys(labels(query), 0.0)
    units = counts_units(wish)
    if units:
        pairs = set(zip(rows[query["of"]], rows[case.street.unit], strict=True))
        # Rows without a unit are of nobody who can be counted.
        for label, unit in pairs:
            found[label] += unit is not None
        return found
    weights = np.ones(len(rows))
    if "weight" in query:
        weights = scaled({}, rows[query["weight"]])
        if is_read and "clamp" in query:
            weights = np.clip(weights, *query["clamp"])
    for label, weight in zip(rows[query["of"]], weights, strict=True):
        found[label] += float(weight)
    return found


def counts_units(wish: Wish) -> bool:
    """Whether a mode or top counts units."""
    if "weight" in wish.query:
        return False
    if "count" in wish.query:
        return bool(wish.query["count"] == "units")
    return wish.kind == "top" or wish.is_on_statistic


def tabulated(case: Case, level: str, margin: Sequence[str]) -> Counter[Cell]:
    """How many rows each cell of a table of a tabulation has; cells of 0 are left out."""
    tabulation = case.spec["tabulations"][0]
    lines = [line.split(",") for line in case.files["areas.csv"].splitlines()[1:]]
    region_of = {place: region for region, place in lines}
    groupings = tabulation.get("groupings", {})
    counts: Counter[Cell] = Counter()
    rows = case.street.main.rows
    needed = [case.street.unit, "place", *tabulation["attributes"]]
    for row in rows[has_all(rows, needed)].to_dict("records"):
        if row["place"] not in region_of:
            continue
        area = [region_of[row["place"]]] + ([row["place"]] if level == "place" else [])
        parts = []
        for name in margin:
            if name in groupings:
                classes = groupings[name]["classes"]
                label = next(
                    each for each, held in classes.items() if row[groupings[name]["of"]] in held
                )
                parts.append(str(label))
            else:
                parts.append(str(row[name]))
        counts[(*area, *parts)] += 1
    return counts
