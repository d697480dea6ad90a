"""The numbered results of the sources as data: what holds, the test that shows it, its sheet.

The data are the files of ``research/sources``, one a source. A sentence names its numbers in braces
and never writes them out, so that each has a key, by which a test computes it again.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

SOURCES = ("kadam", "qin", "sadeghi", "geng")
"""The files of the data, in the order of the gallery."""

FOLDER = Path(__file__).parent / "sources"


class Verdict(Enum):
    """What a second computation says of a printed result."""

    HOLDS = "holds"
    CORRECTED = "holds after correction"
    FAILS = "fails"
    DEFINITION = "definition"


@dataclass(frozen=True)
class Result:
    """One numbered result.

    ``other`` is its name in an earlier text of the same source, ``test`` is ``file::function`` from
    the root of the repository, ``sheet`` a name that ``python -m research`` takes. ``template`` is
    the sentence with the keys of ``numbers`` in braces.
    """

    name: str
    verdict: Verdict
    template: str
    test: str
    sheet: str
    other: str = ""
    numbers: dict[str, str] = field(default_factory=dict)

    @property
    def says(self) -> str:
        """What holds, with its numbers."""
        sentence = self.template
        # Other braces are those of sets and exponents.
        for key, number in self.numbers.items():
            sentence = sentence.replace(f"{{{key}}}", number)
        return sentence


@dataclass(frozen=True)
class Source:
    """One source; ``other`` names its earlier text, where it has one."""

    key: str
    title: str
    other: str
    results: tuple[Result, ...]

    @cached_property
    def counts(self) -> Counter[Verdict]:
        """How many results have each verdict."""
        return Counter(result.verdict for result in self.results)

    def markdown(self) -> str:
        """The table of its results."""
        numbering = f" {self.other} |" if self.other else ""
        header = f"| result |{numbering} verdict | what holds | test | command |\n"
        rule = "|---" * (6 if self.other else 5) + "|\n"
        rows = [self._row(result) for result in self.results]
        return f"### {self.title}\n\n{header}{rule}{''.join(rows)}\n"

    def _row(self, result: Result) -> str:
        numbering = f" {result.other or '–'} |" if self.other else ""
        file, _, function = result.test.partition("::")
        test = f"`{file.removeprefix('tests/')}` `{function}`"
        command = f"[`{result.sheet}`](#{result.sheet})"
        # A bar of E|θ| would end the cell.
        says = result.says.replace("|", "\\|")
        return (
            f"| {result.name} |{numbering} *{result.verdict.value}* | {says} | {test} "
            f"| {command} |\n"
        )


def read_source(key: str) -> Source:
    """The results of one file of the data."""
    data = tomllib.loads((FOLDER / f"{key}.toml").read_text("utf-8"))
    results = []
    for row in data["result"]:
        results.append(
            Result(
                name=row["name"],
                verdict=Verdict(row["verdict"]),
                template=row["says"],
                test=row["test"],
                sheet=row["sheet"],
                other=row.get("other", ""),
                numbers=row.get("numbers", {}),
            )
        )
    return Source(key, data["source"], data.get("other", ""), tuple(results))


def read_sources() -> tuple[Source, ...]:
    """All sources."""
    return tuple(map(read_source, SOURCES))


def results_markdown(sources: tuple[Source, ...]) -> str:
    """The section of the gallery that lists all results."""
    total = sum((source.counts for source in sources), Counter())
    verdicts = ", ".join(f"{total[verdict]} *{verdict.value}*" for verdict in Verdict)
    tables = "".join(source.markdown() for source in sources)
    return (
        "## What holds\n\n"
        f"All numbered results of the sources: {verdicts}. Each has the test that shows it, below "
        "`tests/`, and the sheet that draws it: `python -m research SHEET`.\n\n" + tables
    )
