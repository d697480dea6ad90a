"""The figures of the sources as a Prefect flow: ``python -m flows.reproduce [FIGURE …] --out DIR``.

One task a figure. Parameters are names and paths; results travel sealed and are not persisted, as
in :mod:`flows.release`, because Figure 14 is drawn from what is seen in a table.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prefect import flow

from flows.release import Sealed, run_sealed
from release.cli import guarded
from release.reproduce import chosen, reproduce, write_gallery


@flow(name="dp-release-reproduce", persist_result=False, retries=0, log_prints=False)
def reproduce_flow(figures: list[str], spec: str, out: str) -> Sealed:
    """Draw ``figures`` (all where none is named) into the folder ``out``; ``spec`` is a path."""
    sheets = []
    for name in chosen(figures):
        print(f"  {name}", flush=True)  # noqa: T201 - the flow is run by people too
        sheets.append(run_sealed(name, reproduce, name, Path(spec), Path(out)))
    return Sealed(write_gallery(sheets, Path(out)))


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as those of ``dp-release reproduce``."""
    parser = argparse.ArgumentParser(prog="python -m flows.reproduce", description=__doc__)
    parser.add_argument("figure", nargs="*", help="figures by name; all where none is named")
    parser.add_argument("--out", default="figures", help="the folder for pictures and numbers")
    parser.add_argument(
        "--spec", default="data/ami_levels.yaml", help="whose table kadam-14 is for"
    )
    given = parser.parse_args(arguments)

    def action() -> int:
        # What is not there is refused before Prefect starts.
        chosen(given.figure)
        print("Drawing the figures as a Prefect flow, one task a figure:")  # noqa: T201 - for people
        page = reproduce_flow(given.figure, given.spec, given.out)
        print(f"figures: {page.content}")  # noqa: T201 - for people
        return 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
