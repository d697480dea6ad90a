"""The command ``python -m tests.planted``: the table of planted errors, as Markdown."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import tests.planted
from tests.planted.errors import ERRORS, Planted, SeenBy
from tests.planted.runner import Outcome, run

COLUMNS = (
    "planted",
    "run",
    "own verifier",
    "clean verifier",
    "from the files alone",
    "audit",
    "nobody",
)


def stopped(error: Planted, outcomes: list[Outcome]) -> list[bool]:
    """By whom an error is refused: the run, its own verifier, the clean one, the files alone."""
    published = [outcome for outcome in outcomes if not outcome.run]
    return [
        not published,
        any(outcome.own for outcome in published),
        any(outcome.clean for outcome in published),
        any(outcome.alone for outcome in published),
        error.seen_by is SeenBy.AUDIT,
        error.seen_by is SeenBy.NOBODY,
    ]


def table(found: dict[str, list[Outcome]], errors: list[Planted]) -> str:
    """How many errors of each group are refused by whom; one error can be refused by several."""
    groups: dict[str, list[list[bool]]] = defaultdict(list)
    for error in errors:
        groups[error.group].append(stopped(error, found[error.name]))
    lines = [f"| about | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    groups["all"] = [row for rows in list(groups.values()) for row in rows]
    for group, rows in groups.items():
        counts = [len(rows), *(sum(column) for column in zip(*rows, strict=True))]
        lines.append(f"| {group} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.planted", description=tests.planted.__doc__
    )
    parser.add_argument("names", nargs="*", help="parts of names of errors; all without any")
    parser.add_argument("--each", action="store_true", help="what stopped each error, too")
    given = parser.parse_args()
    names = given.names or [""]
    errors = [error for error in ERRORS if any(name in error.name for name in names)]
    found: dict[str, list[Outcome]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for outcome in run(errors, Path(folder), with_clean=False):
            found[outcome.error].append(outcome)
            if given.each:
                said = (outcome.run, outcome.own, outcome.clean, outcome.alone)
                sys.stdout.write(f"{outcome.error} ({outcome.spec}):\n")
                for who, text in zip(("run", "own", "clean", "alone"), said, strict=True):
                    sys.stdout.write(f"    {who}: {text}\n" if text else "")
                sys.stdout.flush()
    sys.stdout.write(f"{table(found, errors)}\n")


if __name__ == "__main__":
    main()
