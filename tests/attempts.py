"""What was tried against this software, by class, with counts and what stopped it: a table.

``python -m tests.attempts`` runs the tests that count their attempts, a part of each where all of
them would take longer than ten minutes of CPU, and prints the table of docs/verify.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

Tried: TypeAlias = Callable[[str, object], None]
"""pytest's ``record_property``: a test notes here what it tried, and how it ended."""


@dataclass(frozen=True)
class Row:
    """A class of attempts.

    Attributes:
        text: what was tried.
        tests: the tests that count it.
        ending: what stopped it; in braces the counts that the tests note.
    """

    text: str
    tests: tuple[str, ...]
    ending: str


ROWS = (
    Row(
        "a mistake planted in the writer",
        ("tests/process/test_planted.py::test_planted_errors_are_stopped_by_whom_they_should_be",),
        "the run {run}, its own verifier {own}, that of the sound package {clean}, from the "
        "files alone {alone}; none got past all. Of {unseen} more in what reads the table or "
        "draws files show nothing; missing noise the run refuses by residuals: {residuals}",
    ),
    Row(
        "one of these mistakes and leaks, a sample, before the audit",
        (
            "tests/audit/test_planted.py::test_a_planted_error_is_found",
            "tests/audit/test_leaks.py::test_a_leak_is_found",
        ),
        "the audit finds all {tried}",
    ),
    Row(
        "a wrong draw planted in a family of mechanisms, before the audit",
        ("tests/audit/test_leaks.py::test_a_wrong_draw_of_every_family_is_found",),
        "the audit finds all {tried}",
    ),
    Row(
        "a field of the spec given another valid value, all else made to fit; nobody has signed",
        (
            "tests/verification/test_other_questions.py::"
            "test_what_else_may_have_been_asked_is_listed",
        ),
        "the verifier refuses {stopped}; {passed} pass in what is on trust",
    ),
    Row(
        "the rows of one unit replaced by rows with a fault, all output of both runs compared",
        (
            "tests/process/test_twin_pairs.py::test_nothing_tells_of_a_fault_in_one_units_rows",
            "tests/process/test_twin_tabulations.py::"
            "test_nothing_tells_of_a_fault_in_one_units_rows",
        ),
        "no byte differs in all {tried}",
    ),
    Row(
        "a leak planted in the program",
        ("tests/process/test_twin_run.py::test_twin_runs_catch_planted_leaks",),
        "two runs on neighbors differ: all {tried}",
    ),
    Row(
        "a call that changes files fails: EIO, ENOSPC, a short write",
        ("tests/process/test_faults.py::test_one_fault_loses_nothing",),
        "the next run: of all {tried} nothing lost, nothing paid twice, one draw",
    ),
    Row(
        "the process killed before each lasting step",
        ("tests/process/test_publish.py::test_a_kill_before_every_lasting_step",),
        "the next run, which publishes the same draw; {lost} of {tried}, around the draw itself, "
        "cost a charge",
    ),
    Row(
        "the process killed at random moments",
        ("tests/process/test_publish.py::test_a_storm_of_kills_at_random_moments",),
        "the next run, which publishes the same draw; {lost} of {tried} cost a charge",
    ),
)


def noted(tests: Iterable[str]) -> dict[str, Counter[str]]:
    """Run tests; what each of them noted, added up over its cases.

    Raises:
        SystemExit: a test failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-x", f"--junitxml={report}", "-o", "junit_family=xunit1"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return read_noted(report)


def read_noted(report: Path) -> dict[str, Counter[str]]:
    """What the tests of a report of pytest noted."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    # Our own test runner wrote it a moment ago.
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314
        name = f"{case.attrib['file']}::{case.attrib['name'].partition('[')[0]}"
        own = {one.attrib["name"]: int(one.attrib["value"]) for one in case.iter("property")}
        # A case that notes no number tries one thing.
        counts[name].update({"tried": 1} | own)
    return counts


def lines(by_test: Mapping[str, Counter[str]]) -> Iterator[str]:
    """The table, in Markdown, row by row."""
    yield "| tried | how often | what stopped it |"
    yield "|---|---:|---|"
    for row in ROWS:
        counts: Counter[str] = sum((by_test[test] for test in row.tests), Counter())
        counts["stopped"] = counts["tried"] - counts["passed"]
        shown = defaultdict(lambda: "none", {name: f"{n:,}" for name, n in counts.items() if n})
        yield f"| {row.text} | {shown['tried']} | {row.ending.format_map(shown)} |"


if __name__ == "__main__":
    begun = os.times()
    for line in lines(noted(test for row in ROWS for test in row.tests)):
        print(line)  # noqa: T201 - this is the command's output
    ended = os.times()
    seconds = sum(ended[:4]) - sum(begun[:4])
    print(f"{seconds / 60:.1f} minutes of CPU", file=sys.stderr)  # noqa: T201 - as above
