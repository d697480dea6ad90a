"""Forgeries of every field that the second verifier reads, of one release of each family."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from release.pipeline import run_release
from release.verification import standalone
from tests.every import every
from tests.small import Small
from tests.verification.standalone.test_verdicts import QUERIES, ROWS
from tests.verification.test_composed import promised, sharing
from tests.verification.test_composed import small as composing
from tests.verification.test_forgeries import PATH, Forger, attacked

PARTS = 40
UNREAD = ("datapackage.json", "registry.yaml", "spec.yaml")
"""Files of which it compares the hashes alone."""

MAY_PASS = (
    ("release.json", r"published|software|expressions\.\d+\.(tree|text|patterns)"),
    # It cannot tell who else reads a column, and opens no table: keys are in files.
    ("spec.json", r"keys\.|release|tables\.rows\.(path|columns)"),
    ("spec.json", r"queries\.\d+\.(where|mechanism|noise|share|target)"),
    (r"mechanisms/.*", r"recomputed\.epsilon_everywhere|design|expected_loss|accuracy"),
    # Of noise on one answer any that is private and loses as little will do.
    (r"mechanisms/.*", r"(low|high)_end|weights|noise"),
)
"""What it says that it does not read, and what may be one thing or another."""

AIMED = sharing("aimed", target="squared <= 90")
del AIMED["loss"]  # the target names it
OTHERS: dict[str, Small] = {
    "shares": composing(
        [sharing("free", share="1"), promised("mine", "1/4"), sharing("two", share="2")]
    ),
    "aimed": composing([AIMED, sharing("rest", share="1")]),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The output folder of a release, which is published where it is first asked for."""

    @cache
    def folder_of(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        own = [one for one in QUERIES if one["name"] == name]
        spec = OTHERS.get(name) or Small(ROWS, own, max_rows_per_unit=1)
        run_release(spec.write(folder), folder / "out")
        return folder / "out"

    return folder_of


def may_pass(file: str, at: PATH) -> bool:
    path = ".".join(map(str, at))
    return any(re.fullmatch(f, file) and re.match(p, path) for f, p in MAY_PASS)


@pytest.mark.parametrize("part", range(0, PARTS, every(8)))
@pytest.mark.parametrize("name", [*(one["name"] for one in QUERIES), *OTHERS])
def test_it_refuses_what_is_forged_of_what_it_reads(
    name: str,
    part: int,
    released: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forger = Forger(released(name), tmp_path / "forged")
    forger.fit(Path())
    arguments = [str(forger.public), "--require", "none"]
    if forger.half is not None:
        arguments += ["--auditor", str(forger.half.parent)]

    def is_accepted() -> bool:
        status = standalone.main(arguments)
        capsys.readouterr()
        return status != 1

    assert is_accepted()
    found = attacked(forger, is_accepted, part, PARTS, UNREAD)
    assert found.pop(("", ())) > 10
    assert [(file, at) for file, at in found if not may_pass(file, at)] == []
