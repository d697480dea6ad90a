"""Draws ``docs/bounds.png``: what a bound on the rows of a unit costs, ``python docs/bounds.py``.

For bounds from 1 to 100 the mean error of a count by cell at ε = 1, in its two parts: what the
bound leaves out, and what the noise adds, which grows with it. On the sample homes, and on the
daily table of 5,566 homes of Low Carbon London (CC BY, UK Power Networks, London Datastore) where
``LCL`` names its folder; the figures of both are kept in ``docs/bounds.csv``.
"""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from matplotlib.figure import Figure

PROJECT = Path(__file__).parent.parent
FIGURES = PROJECT / "docs" / "bounds.csv"
BLUE, RED, GREY = "#2b5d8a", "#b5452c", "#9aa5b1"
BOUNDS = range(1, 101)


def figures(
    name: str, rows: pd.DataFrame, unit: str, cell: str
) -> list[tuple[str, int, float, float]]:
    """For each bound the mean of what it leaves out of a cell, and the mean noise at ε = 1.

    Kept is a fair sample of each unit's rows, so that of a unit with n rows r/n of a cell stay.
    """
    owned = rows.groupby(unit).size().rename("owned")
    counts = rows.groupby([unit, cell]).size().reset_index(name="n").join(owned, on=unit)
    cells = counts[cell].nunique()
    found = []
    for bound in BOUNDS:
        kept = counts["n"] * np.minimum(1, bound / counts["owned"])
        left_out = float((counts["n"] - kept).sum() / cells)
        # Two-sided geometric noise of ratio a = e^(-ε/r) has the mean absolute value 2a/(1 - a²).
        ratio = math.exp(-1 / bound)
        found.append((name, bound, left_out, 2 * ratio / (1 - ratio**2)))
    return found


def main() -> None:
    """Compute what can be computed here, keep it, and draw all that is kept."""
    kept: dict[str, list[tuple[str, int, float, float]]] = {}
    if FIGURES.exists():
        with FIGURES.open(newline="") as file:
            for name, bound, left_out, noise in list(csv.reader(file))[1:]:
                row = name, int(bound), float(left_out), float(noise)
                kept.setdefault(name, []).append(row)
    sample = pq.read_table(PROJECT / "data" / "ami_readings.parquet").to_pandas()
    heavy = sample[sample["wh"] > 500]
    name = "sample: readings above 500 Wh, by circuit"
    kept[name] = figures(name, heavy, "household_id", "circuit")
    folder = os.environ.get("LCL")
    if folder:
        days = pq.read_table(Path(folder) / "lcl_daily.parquet").to_pandas()
        days["month"] = pd.to_datetime(days["day"]).dt.strftime("%Y-%m")
        heavy = days[(days["month"].str[:4] == "2013") & (days["energy_wh"] > 15_000)]
        name = "London 2013: days above 15 kWh, by month"
        kept[name] = figures(name, heavy, "household_id", "month")
    with FIGURES.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["count", "bound", "left_out", "noise"])
        for own in kept.values():
            for name, bound, left_out, noise in own:
                lines.writerow([name, bound, f"{left_out:.4g}", f"{noise:.4g}"])
    drawn = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, (name, own) in zip(
        drawn.subplots(1, len(kept), squeeze=False)[0], kept.items(), strict=True
    ):
        bounds = [bound for _, bound, _, _ in own]
        axes.plot(bounds, [left_out for _, _, left_out, _ in own], color=RED, label="left out")
        axes.plot(bounds, [noise for *_, noise in own], color=BLUE, label="noise at ε = 1")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("max_rows_per_unit")
        axes.set_ylabel("rows in a cell, on average")
        axes.grid(color=GREY, alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    drawn.savefig(PROJECT / "docs" / "bounds.png", dpi=130)


if __name__ == "__main__":
    main()
