"""Answers that a large ε publishes as they are: noise on the answer has next to none left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import release
from tests.street.found import Failure
from tests.street.specs import Case, Plain, Wish
from tests.street.truth import Cell, clamp_of, full_rows, has_all, meant, scaled, scores
from tests.street.walk import Walk

IN_BINS = ("mean", "min", "max", "median")


def is_wrong(published: Any, possible: set[Any]) -> bool:
    """Whether an answer is none of the possible ones, of which ties have several."""
    return str(published) not in {str(answer) for answer in possible}


def commonest(case: Case, wish: Wish, rows: pd.DataFrame) -> set[Any]:
    """The categories that no other leads."""
    found = scores(case, wish, rows, is_read=True)
    most = max(found.values())
    return {label for label, score in found.items() if score == most}


def bin_of(query: Plain, rows: pd.DataFrame) -> set[Any]:
    """The least integer of the bin in which a statistic lies; the first bin without rows."""
    low, high, count = (query["bins"][name] for name in ("low", "high", "count"))
    values = np.sort(np.clip(scaled({}, rows[query["of"]]), *clamp_of(query)))
    if not len(values):
        return {low}
    found = {
        "mean": values.mean(),
        "min": values[0],
        "max": values[-1],
        "median": values[(len(values) - 1) // 2],
    }[query["kind"]]
    # A mean on an edge is an exact rational in the product, and a float here.
    codes = {(found + nudge - low) * count // (high - low) for nudge in (-1e-9, 0, 1e-9)}
    within = {min(max(int(code), 0), count - 1) for code in codes}
    return {low - (-code * (high - low) // count) for code in within}


def largest(case: Case, wish: Wish) -> dict[Cell, set[Any]]:
    """What the statement of the curator's own gives, by place; 0 without rows."""
    step = int(wish.query["sql"].split("// ")[1].split(" ")[0])
    rows, _ = full_rows(case)
    rows = rows[has_all(rows, [case.street.unit, "place", "amount"])]
    found: dict[Cell, set[Any]] = {}
    for place, amounts in rows.groupby("place")["amount"]:
        # Division cuts towards 0; what is below the domain counts as its least answer.
        quotient = int(max(amounts) / step)
        found[(str(place),)] = {min(max(quotient, 0), 9)}
    return found


def expected(walk: Walk, wish: Wish) -> dict[str, dict[Cell, set[Any]]]:
    """The possible answers of each cell, by the column of the answer; {} where nobody can say."""
    case = walk.case
    rows = meant(case, wish)
    if rows.is_bounded:
        return {}
    if wish.kind == "sql":
        return {"answer": largest(case, wish)}
    if wish.kind == "tuple":
        parts = [part for part in case.wishes if part.name in wish.query["of"]]
        return {
            f"answer_{part.name}": {
                cell: commonest(case, part, each) for cell, each in meant(case, part).read.items()
            }
            for part in parts
        }
    if wish.kind == "mode":
        return {"answer": {cell: commonest(case, wish, each) for cell, each in rows.read.items()}}
    if wish.kind in IN_BINS:
        return {"answer": {cell: bin_of(wish.query, each) for cell, each in rows.read.items()}}
    return {}


def exact_answers(walk: Walk) -> Iterator[Failure]:
    """Answers that are wrong in more cells than δ and what is left of the noise allow."""
    if not walk.is_published or not walk.case.is_large:
        return
    opened = release.open(walk.public)
    for wish in walk.case.wishes:
        if not wish.is_published or wish.is_on_statistic:
            continue
        frame = opened[wish.name].to_pandas()
        for column, possible in expected(walk, wish).items():
            wrong = []
            for row in frame.to_dict("records"):
                cell = tuple(str(row[name]) for name in wish.by)
                if cell in possible and is_wrong(row[column], possible[cell]):
                    wrong.append(f"{cell}: {row[column]}, not {possible[cell]}")
            if len(wrong) > 2 + len(frame) / 20 or len(wrong) == len(frame) > 1:
                yield Failure(f"answer: {wish.kind}: noise on answer", f"{wish.name} {wrong[0]}")
