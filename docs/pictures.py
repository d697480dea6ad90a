"""Draws the pictures of the documents: ``python docs/pictures.py``.

``docs/release.png``: runs the sample release and shows its published answers beside the true ones,
which may be shown because the sample homes are invented, and the public law of one answer beside
that of its neighbor.

``docs/laws.png`` and ``docs/scale.png``: the figures of ``benchmarks/bench_laws.py --full`` and
``bench_scale.py --full``, kept in ``docs/*.csv``.

``docs/rounding.png``: the figures of ``benchmarks/bench_rounding.py``, kept in the same way.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from release.analysis.estimation import likelihood
from release.bundle.opened import open_public
from release.queries.read import read_spec
from release.street import answered, run_release

PROJECT = Path(__file__).parent.parent
BLUE, GREY, RED = "#2b5d8a", "#9aa5b1", "#b5452c"


def main() -> None:
    """Run the sample release and draw ``docs/release.png``."""
    spec = PROJECT / "data" / "ami.yaml"
    spec_file = read_spec(spec)
    truth = answered(spec_file)[2].codes
    with tempfile.TemporaryDirectory() as folder:
        public = run_release(spec, Path(folder)).public
        table = pq.read_table(public / "data" / "heavy_evenings.parquet")
        opened = open_public(public)
        (made,) = [made for made in opened.made.queries if made.name == "heavy_evenings"]
        chances = likelihood(opened.mechanism(made))
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    places = np.arange(len(truth))
    published, low, high = (table.column(name).to_numpy() for name in ("answer", "low", "high"))
    left.bar(places, published, color=BLUE, alpha=0.35, label="published")
    left.errorbar(
        places,
        published,
        yerr=[published - low, high - published],
        fmt="none",
        ecolor=BLUE,
        elinewidth=2,
        capsize=5,
        label="95 % interval",
    )
    left.plot(places, truth, "_", color=RED, markersize=16, mew=2, label="true (sample data)")
    left.set_xticks(places, table.column("circuit").to_pylist())
    left.set_ylabel("homes above 1.5 kWh from 19 to 20")
    left.set_title("Heavy evenings by circuit, 5 January 2013, ε = 2", loc="left")
    left.set_ylim(0, 15)
    left.legend(frameon=False, ncols=3, loc="upper left", columnspacing=1, handletextpad=0.5)
    few, more = np.exp(chances[5:7])
    shown = np.arange(18)
    right.semilogy(shown, few[:18], "o-", ms=3, color=BLUE, label="if 5 homes are heavy")
    right.semilogy(shown, more[:18], "o-", ms=3, color=GREY, label="if it is one more")
    ceiling = np.exp(2) * few[:18]
    right.semilogy(shown, ceiling, ":", color=RED, label="e^ε × the first: never crossed")
    right.set_ylim(1e-11, 20)
    right.set_xlabel("published")
    right.set_title("What is published for an answer, re-proved", loc="left")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PROJECT / "docs" / "release.png", dpi=110)


def draw_laws() -> None:
    """Seconds to a proved optimum by the number of answers: ours, CBC, HiGHS."""
    with (PROJECT / "docs" / "laws.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    titles = {"error_rate": "Error rate", "squared": "Circular squared loss"}
    for axes, (loss, title) in zip(figure.subplots(1, 2, sharey=True), titles.items(), strict=True):
        for program, colour, shift in (
            ("CBC", GREY, 0.94),
            ("HiGHS", RED, 1.06),
            ("ours", BLUE, 1),
        ):
            here = [r for r in rows if (r["loss"], r["program"]) == (loss, program)]
            for proved, fill in (("True", colour), ("False", "white")):
                points = [r for r in here if r["proved"] == proved]
                axes.plot(
                    [int(r["size"]) * shift for r in points],
                    [max(0.01, float(r["seconds"])) for r in points],
                    "o",
                    ms=5,
                    color=colour,
                    markerfacecolor=fill,
                    label={"ours": "dp-release", "CBC": "program (13), CBC"}.get(
                        program, "program (13), HiGHS"
                    )
                    if proved == "True"
                    else None,
                )
        axes.axhline(60, color="black", lw=0.6, ls=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("answers, N")
        axes.set_title(title, loc="left")
    figure.axes[0].set_ylabel("seconds to proof (0.01 or less at the foot)")
    figure.axes[1].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(PROJECT / "docs" / "laws.png", dpi=110)


def draw_scale() -> None:
    """Seconds for the answers and differences of two queries by the number of rows."""
    with (PROJECT / "docs" / "scale.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for table, colour, label in (
        ("persons", BLUE, "persons: count and mode by 14,000 areas"),
        ("meters", RED, "meters: count and mean by 1,000 circuits, 2 GB"),
    ):
        here = [r for r in rows if r["table"] == table]
        axes.loglog(
            [int(r["rows"]) for r in here],
            [float(r["seconds"]) for r in here],
            "o-",
            color=colour,
            label=label,
        )
    axes.set_xlabel("rows")
    axes.set_ylabel("seconds, differences included")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(PROJECT / "docs" / "scale.png", dpi=110)


def draw_rounding() -> None:
    """The mean error of three numbers by the true count of the cell."""
    with (PROJECT / "docs" / "rounding.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    true = [float(row["mean_true"]) for row in rows]
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="black", lw=0.6)
    for way, colour, label in (
        ("clamped", RED, "answer, clamped at 0"),
        ("rounded", BLUE, "rounded"),
        ("answer", GREY, "answer"),
    ):
        axes.plot(true, [float(row[way]) for row in rows], "o-", ms=4, color=colour, label=label)
    axes.set_xscale("symlog", linthresh=5, linscale=1.5)
    shown = (0, 1, 2, 3, 4, 5, 10, 20, 50)
    axes.set_xticks(shown, [str(count) for count in shown])
    axes.set_xlabel("true count of the cell")
    axes.set_ylabel("mean error, persons")
    axes.set_title("Race and age by tract, Hawaii 2020, ε = 1", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(PROJECT / "docs" / "rounding.png", dpi=90)


if __name__ == "__main__":
    main()
    draw_laws()
    draw_scale()
    draw_rounding()
