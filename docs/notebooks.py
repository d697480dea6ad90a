"""Makes and runs the notebooks of ``docs/notebooks/``: ``python docs/notebooks.py``.

The sources are the cells below: text is Markdown, ``Code`` is a program. A test runs them again and
compares what they show. Noise differs from run to run, so no cell shows an answer with noise.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode, v4

FOLDER = Path(__file__).parent / "notebooks"
PROJECT = Path(__file__).parent.parent


class Code(str):
    """The program of a cell."""

    __slots__ = ()


STEWARD = [
    """# The steward: from a table to a release

You hold a confidential table and publish counts from it. Run this in a folder that has `data/` and `schemas/`,
such as the one that `dp-release demo` makes.""",
    """A spec says what is published and at which cost. `plan` reads the spec alone: nothing confidential is read,
and nothing is spent.""",
    Code("""import release

plan = release.plan("data/persons.yaml")
print("ε of the release:", plan.epsilon)
print("queries:", *(one.query.name for one in plan.queries + plan.on_statistic))"""),
    """A mechanism can be looked at by itself: what is the least error that any mechanism with this guarantee has?""",
    Code("""release.design(24, "cyclic", sensitivity=[1], epsilon=1, loss="squared")"""),
    """`run` reads the table, draws the noise, and publishes a folder of plain files. They are verified at once.""",
    Code("""published = release.run("data/persons.yaml", "out-steward")
release.open(published.public)"""),
    """What leaves is the public bundle, `out-steward/public/census-2024`:""",
    Code("""sorted(path.name for path in published.public.iterdir())"""),
    """A wrong call is refused in one line that says what to write.""",
    Code("""try:
    release.design(24, "cyclic", sensitivity=[1], epsilon=0.5)
except release.SpecError as error:
    print(error)"""),
]

ANALYST = [
    """# The analyst: working with noisy answers

You have a public bundle, and the noise of its worst-case queries is public. Nothing here costs privacy.""",
    Code("""import release

public = release.run("data/persons.yaml", "out-analyst").public  # or a folder that you were sent
opened = release.open(public)
opened"""),
    """A table is a data frame: keys, the answer, and an interval that tells how far the truth may be.""",
    Code("""frame = opened["persons_by_tract_and_sex"].to_pandas()
print(list(frame.columns), len(frame))
print(frame.attrs["title"], "|", frame.attrs["interval"])"""),
    """Other programs see the title and the unit of each column in the file itself.""",
    Code("""import duckdb
import pandas as pd

file = str(public / "data" / "persons_by_tract_and_sex.parquet")
print(pd.read_parquet(file).attrs)
duckdb.sql(f"SELECT decode(key) AS entry FROM parquet_kv_metadata('{file}') ORDER BY 1").fetchall()"""),
    """Sums, differences, ratios and ranks have intervals of their own. `method` says what they rest on.""",
    Code("""persons = release.estimate(public, "persons_by_tract_and_sex")
first, second = persons.keys[:2]
for found in (
    persons.sum(),
    persons.difference(first, second),
    persons.ratio(first, second),
    persons.ranks()[0],
):
    print(found.method, found.level, found.low <= found.value <= found.high)"""),
    """Two answers that differ by less than their intervals allow are no news: ask for the difference.""",
    Code("""gap = persons.difference(first, second)
print("the interval is", round(gap.high - gap.low), "persons wide")"""),
]

AUDITOR = [
    """# The auditor: proving a release again

You check a release from its files. You need neither the confidential table nor trust in whoever published it.
The next cell makes a signed release as a curator would; its public key is what you were given.""",
    Code("""import subprocess
import sys

command = [sys.executable, "-m", "release", "demo", "--out", "out-auditor"]
subprocess.run(command, check=True, capture_output=True).returncode"""),
    """With the public bundle alone not all can be checked: mechanisms that depend on the table are commitments.""",
    Code("""import release

out = "out-auditor/out"
public = f"{out}/public/ami-2013-01-05"
verdict = release.verify(public, trust=["out-auditor/demo.pub"])
print(verdict.status)
for finding in verdict.missing:
    print(finding.about, "|", finding.sentence)"""),
    """The auditor's folder opens them, and the ledger shows that the release was paid for.""",
    Code("""auditor = f"{out}/auditor/ami-2013-01-05"
verdict = release.verify(public, auditor, ledger=f"{out}/ledger", trust=["out-auditor/demo.pub"])
print(verdict.status)
print(len(verdict.proved), "proved,", len(verdict.tested), "tested,", len(verdict.on_trust), "on trust")"""),
    """What is proved is proved in exact arithmetic. A changed file does not get through.""",
    Code("""import shutil
from pathlib import Path

shutil.copytree(public, "out-changed")
report = Path("out-changed/report.html")
report.write_text(report.read_text("utf-8").replace("12", "13", 1), "utf-8")
try:
    release.verify("out-changed", trust=["out-auditor/demo.pub"])
except release.VerificationError as error:
    print(error.file, "|", error.check)"""),
]

NOTEBOOKS: dict[str, list[str]] = {"steward": STEWARD, "analyst": ANALYST, "auditor": AUDITOR}


def made(name: str) -> NotebookNode:
    """A notebook that was not run yet."""
    cells = []
    for place, text in enumerate(NOTEBOOKS[name]):
        cell = v4.new_code_cell(str(text)) if isinstance(text, Code) else v4.new_markdown_cell(text)
        # By place, so that the same sources give the same file.
        cell["id"] = f"{name}-{place}"
        cells.append(cell)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return v4.new_notebook(cells=cells, metadata=kernel)


def executed(name: str, folder: Path) -> NotebookNode:
    """The notebook after a run in ``folder``, into which the samples are copied."""
    for sample in ("data", "schemas"):
        shutil.copytree(PROJECT / sample, folder / sample)
    notebook = made(name)
    resources: dict[str, Any] = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        # Progress is told on standard error, with times.
        if "outputs" in cell:
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)
    return notebook


def main() -> None:
    """Run all notebooks and write them."""
    os.environ.setdefault("PYTHONPATH", str(PROJECT))
    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            text = nbformat.writes(executed(name, Path(folder)))
        (FOLDER / f"{name}.ipynb").write_text(text + "\n", "utf-8")
        sys.stdout.write(f"docs/notebooks/{name}.ipynb\n")


if __name__ == "__main__":
    main()
