"""Draws the picture of the README: ``python docs/pictures.py``.

Runs the sample release and shows its published answers beside the true ones, which may be shown
because the sample homes are invented, and the public noise law beside its copy shifted by one.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from release.pipeline import answer, load, run_release
from release.reading import read_spec

PROJECT = Path(__file__).parent.parent
BLUE, GREY, RED = "#2b5d8a", "#9aa5b1", "#b5452c"


def main() -> None:
    """Run the sample release and draw ``docs/release.png``."""
    spec = PROJECT / "data" / "ami.yaml"
    spec_file = read_spec(spec)
    with load(spec_file) as tables:
        truth = answer(tables, spec_file)[2].codes
    with tempfile.TemporaryDirectory() as folder:
        public = run_release(spec, Path(folder)).public
        table = pq.read_table(public / "data" / "heavy_evenings.parquet")
        law = json.loads((public / "laws" / "heavy_evenings.json").read_bytes())
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    places = np.arange(len(truth))
    left.bar(places, table.column("answer").to_pylist(), color=BLUE, label="published")
    left.plot(places, truth, "_", color=RED, markersize=16, mew=2, label="true (sample data)")
    left.set_xticks(places, table.column("circuit").to_pylist())
    left.set_ylabel("homes above 1.5 kWh from 19 to 20")
    left.set_title("Heavy evenings by circuit, 5 January 2013, ε = 2", loc="left")
    left.legend(frameon=False)
    total = int(law["total"])
    masses = np.array([int(w) / total for w in law["weights"]])
    noise = np.arange(-12, 13)
    shown = masses[noise % masses.size]
    right.semilogy(noise, shown, "o-", ms=3, color=BLUE, label="noise law f")
    right.semilogy(
        noise,
        masses[(noise - 1) % masses.size],
        "o-",
        ms=3,
        color=GREY,
        label="shifted by one home",
    )
    right.semilogy(noise, np.exp(2) * shown, ":", color=RED, label="e^ε · f: never crossed")
    right.set_ylim(1e-11, 20)
    right.set_xlabel("noise")
    right.set_title("Its noise law, public and re-proved", loc="left")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PROJECT / "docs" / "release.png", dpi=110)


if __name__ == "__main__":
    main()
