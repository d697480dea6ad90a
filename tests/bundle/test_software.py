"""The software of a release is named by the hash of its files and of its libraries."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from release.bundle.software import PACKAGES, closure, source_text

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(PROJECT / package, tmp_path / package)
    return tmp_path


def test_one_changed_byte_changes_the_sources(copy: Path) -> None:
    assert source_text(copy) == source_text(PROJECT)
    path = copy / "release" / "version.py"
    path.write_bytes(path.read_bytes() + b"\n")
    assert source_text(copy) != source_text(PROJECT)


def test_a_file_more_changes_the_sources_and_byte_code_does_not(copy: Path) -> None:
    (copy / "release" / "__pycache__").mkdir(exist_ok=True)
    (copy / "release" / "__pycache__" / "more.pyc").write_bytes(b"")
    assert source_text(copy) == source_text(PROJECT)
    (copy / "release" / "more.py").write_bytes(b"")
    assert source_text(copy) != source_text(PROJECT)


def test_the_sources_are_listed_as_sha256sum_lists_them(copy: Path) -> None:
    text = source_text(copy)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet"],  # noqa: S607 - a tool of the system
        input=text.encode(),
        cwd=copy,
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, b"")
    names = [line[66:] for line in text.splitlines()]
    assert names == sorted(names)
    version = hashlib.sha256((copy / "release" / "version.py").read_bytes()).hexdigest()
    assert f"{version}  release/version.py\n" in text


def test_each_extra_leads_to_more_libraries_than_the_core() -> None:
    core = set(closure([]))
    assert "numpy" in core
    for extra in ("fast", "flows", "postgresql", "spark"):
        assert core <= set(closure([extra]))
