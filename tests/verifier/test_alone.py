"""The verifier stands alone: it imports nothing but the standard library, and says so when run."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dp_release_verify
from dp_release_verify import checks
from dp_release_verify.checks import CHECKS
from supply.one_file import verifier_file
from tests.conftest import PROJECT
from tests.verifier import made

PACKAGE = Path(dp_release_verify.__file__).parent
BYTES = {"canonical", "forms", "digests", "parquet", "merkle", "signatures"}
"""What the writer may share: where privacy is decided, the two stay apart."""


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_it_imports_the_standard_library_alone(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)} - {"dp_release_verify"}
    assert tops <= sys.stdlib_module_names


def test_the_writer_imports_bytes_and_no_proof() -> None:
    shared = set()
    for package in ("release", "flows"):
        for path in (PROJECT / package).rglob("*.py"):
            # It is the command that verifies, and calls all of it.
            if path.parent == PROJECT / "release" / "verification":
                continue
            for name in imported(path):
                if name.startswith("dp_release_verify"):
                    shared.add(name.split(".")[1])
    assert shared <= {*BYTES, "errors", "verdict"}


def test_the_list_at_the_top_is_the_list_that_is_walked() -> None:
    listed = []
    for line in (checks.__doc__ or "").splitlines():
        words = line.split()
        if len(words) > 3 and words[0].isdigit():
            listed.append((int(words[0]), words[1], words[2]))
    walked = []
    for number, check in enumerate(CHECKS, 1):
        walked.append((number, check.name, check.level[0]))
    assert listed == walked


def test_it_runs_from_one_file_in_an_empty_place(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    release, auditor = made.small(tmp_path / "made")
    file = tmp_path / "verify.pyz"
    file.write_bytes(verifier_file(PROJECT))

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", str(file), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    found = run(release, "--auditor", str(auditor), "--require", "none")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines()[0].split() == ["small", "VERIFIED", "exit", "0"]
    found = run(release, "--auditor", str(auditor), "--json")
    assert found.returncode == 3
    plain = json.loads(found.stdout)
    assert (plain["status"], plain["release_id"]) == (3, "small")
    found = run(release)
    assert found.returncode == 5
    assert "NOT PROVED: committed" in found.stdout
    assert run(tmp_path / "nowhere").returncode == 2
    assert run(release, "--trust", "PRIVATE+KEY").returncode == 2
    (release / "report.html").write_text("another")
    found = run(release, "--require", "none")
    assert found.returncode == 1
    assert "files.sums" in found.stdout
