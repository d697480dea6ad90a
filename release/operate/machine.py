"""Examining the machine: versions of libraries, the clock, permissions and free space."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from release.budget.ledger import Replayed, today
from release.operate.findings import Finding, fault, look, or_well, well
from release.operate.operations import Place
from release.records.keys.files import forbidden_mode
from release.version import VERSION

LEAST_FREE = 2**30
"""Free bytes below which a release may not fit."""


def versions() -> Iterator[Finding]:
    """Whether each declared library is installed, in a version that was tested."""
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        declared = requires("dp-release") or []
    except PackageNotFoundError:
        message = "dp-release is not installed as a package; its libraries were not examined"
        yield look("versions", message)
        return
    summary = f"Python {python}, dp-release {VERSION}, libraries fit"
    yield from or_well(_unfit(map(Requirement, declared)), "versions", summary)


def _unfit(declared: Iterator[Requirement]) -> Iterator[Finding]:
    for requirement in declared:
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            # The libraries of an extra may be absent.
            if "extra" not in str(requirement.marker or ""):
                message = f"{requirement.name} is missing; pip install dp-release"
                yield fault("versions", message)
            continue
        # Its own pins: a newer library may draw, write or solve otherwise than was tested.
        if installed not in requirement.specifier:
            mismatch = f"{requirement.name} {installed} (declared: {requirement.specifier})"
            message = f"{mismatch}; install a version that was tested: see supply/"
            yield fault("versions", message)


def clock(ledger: Replayed | None) -> Iterator[Finding]:
    """Whether the clock agrees with the ledger, whose dates never decrease."""
    day = today()
    # Where there is no ledger, only an absurd date tells that the clock was reset.
    if day.year < 2024:
        yield fault("clock", f"the clock says {day}; correct it")
    if ledger is not None and ledger.state.last_date > day.isoformat():
        last = ledger.state.last_date
        yield fault("clock", f"the clock says {day}, the last entry {last}; correct the clock")
    elif _unsynchronised():
        yield look("clock", "the system says that it is not synchronised; due periods depend on it")
    else:
        yield well("clock", f"{day} (UTC), not before the last entry")


def _unsynchronised() -> bool:
    """Whether the system says that its clock is not synchronised; False where it cannot say."""
    tool = shutil.which("timedatectl")
    if tool is None:
        return False
    try:
        answer = subprocess.run(  # noqa: S603 - a system tool by its full path
            [tool, "show", "--property=NTPSynchronized", "--value"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == "no"


def permissions(place: Place) -> Iterator[Finding]:
    """Who can read confidential files, and whether there is room for a release."""
    if not place.out.is_dir():
        yield fault("permissions", f"{place.out}: no folder there")
        return
    summary = "bundles, key and room are as they should be"
    yield from or_well(_exposed(place), "permissions", summary)


def _exposed(place: Place) -> Iterator[Finding]:
    out, key = place.out, place.key
    if not os.access(out, os.W_OK | os.X_OK):
        yield fault("permissions", f"{out}: cannot be written by this user")
    # Working folders hold what is confidential until the release is published.
    for folder in (out / "auditor", *out.glob(".work-*"), *out.glob("auditor/*")):
        if folder.is_dir() and _mode(folder) & 0o077:
            yield fault("permissions", f"{folder}: others may look in; chmod 700")
    if key is not None and key.is_file():
        if _mode(key) & forbidden_mode(key):
            yield fault("permissions", f"{key}: others may read the key; chmod 600")
        # The folder is copied, delivered and served: a key in it travels along.
        if key.resolve().is_relative_to(out.resolve()):
            yield fault("permissions", f"{key}: the key lies in the output folder; move it")
    if (free := shutil.disk_usage(out).free) < LEAST_FREE:
        yield look("permissions", f"{out}: {free // 2**20} MiB free; make room")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
