"""The locks hold what pyproject.toml declares, and nothing of a machine or an index."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply.locks import (
    FOLDER,
    PYTHONS,
    LockError,
    Pin,
    entries,
    environment,
    read,
    render,
    running,
    select,
)

PROJECT = FOLDER.parent
PIN = Pin("numpy", "2.4.6", ("0" * 64, "1" * 64), ("core",), "BSD-3-Clause AND 0BSD")


def declared() -> dict[str, list[str]]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_has_a_fitting_pin_of_every_declared_library(python: str) -> None:
    pins = {pin.name: pin for pin in read(python)}
    for extra, lines in declared().items():
        for requirement in map(Requirement, lines):
            pin = pins[canonicalize_name(requirement.name)]
            assert pin.version in requirement.specifier, pin
            assert pin.is_needed_by({extra}), (pin, extra)


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_is_in_order_and_names_no_place(python: str) -> None:
    pins = read(python)
    names = [pin.name for pin in pins]
    assert names == sorted(set(names))
    text = (FOLDER / f"python{python}.txt").read_text("utf-8")
    assert "//" not in text
    assert set(re.findall(r"--[a-z-]+", text)) == {"--hash"}
    extras = set(declared())
    for pin in pins:
        assert set(pin.extras) <= extras, pin
        assert list(pin.extras) == sorted(set(pin.extras)), pin
        assert pin.extras == ("core",) or "core" not in pin.extras, pin


def test_a_lock_reads_back(tmp_path: Path) -> None:
    pins = (PIN, replace(PIN, name="zlib-ng", extras=("dev", "flows"), version="1.0.post1"))
    (tmp_path / "python3.11.txt").write_text(render("3.11", pins), "utf-8")
    assert read("3.11", tmp_path) == pins


@pytest.mark.parametrize(
    "line", ["--index-url x\n", "other==1.0\n", "# dev; MIT\nother==1.0 \\\n    --hash=md5:00\n"]
)
def test_a_line_that_is_no_hashed_pin_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "python3.11.txt").write_text(render("3.11", [PIN]) + line, "utf-8")
    with pytest.raises(LockError, match="make it anew"):
        read("3.11", tmp_path)


def test_a_python_without_a_lock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LockError, match=r"no lock for Python 3\.9; use one of 3\.11"):
        read("3.9", tmp_path)


def test_an_extra_is_selected_with_the_core() -> None:
    flows, dev = replace(PIN, name="a", extras=("flows",)), replace(PIN, name="b", extras=("dev",))
    assert select([PIN, flows, dev], ["flows"]) == [PIN, flows]
    with pytest.raises(LockError, match="no extra 'flow'; there are core, dev, flows"):
        select([PIN, flows, dev], ["flow"])


def test_the_lines_of_an_environment_are_sorted_by_bytes() -> None:
    # "-" is below "=", so a longer name comes first.
    pins = [replace(PIN, name="a"), replace(PIN, name="a-b")]
    assert environment(pins) == "a-b==2.4.6\na==2.4.6\n"


def test_the_command_prints_what_pip_reads() -> None:
    command = [sys.executable, "-S", "-m", "supply"]
    # Without site packages: make runs it before anything is installed.
    ran = subprocess.run(
        [*command, "pins", "--python", "3.12", "flows"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == entries(select(read("3.12"), ["flows"]))
    wrong = subprocess.run(
        [*command, "pins", "nothing"], cwd=PROJECT, capture_output=True, check=False
    )
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert wrong.stderr.startswith(b"error: no extra 'nothing'")


def test_the_lock_of_the_running_python_leads_where_installed_libraries_lead() -> None:
    from release.bundle.software import closure

    for extra in ("fast", "flows", "postgresql", "spark"):
        pins = {pin.name for pin in select(read(running()), [extra])}
        assert set(closure([extra])) <= pins, extra


def test_every_library_of_a_lock_has_files() -> None:
    for pin in chain.from_iterable(map(read, PYTHONS)):
        assert pin.hashes, pin
        assert len(set(pin.hashes)) == len(pin.hashes), pin
        assert "0" * 64 not in pin.hashes, pin
