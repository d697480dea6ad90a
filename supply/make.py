"""Makes the locks anew: ``python -m supply lock``, which needs the extra ``lock`` and an index.

uv resolves, for it reads the markers of the Python it resolves for, where pip reads those of the
running one, and it tells the hashes of all files of a version, where pip tells one. It takes "3.11"
for 3.11.0, so that a lock fits every patch version: Debian 12 has 3.11.2. Each present pin is kept
unless ``pyproject.toml`` excludes it, or ``--upgrade`` is given.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from supply.licenses import license_of
from supply.locks import CORE, FOLDER, PYTHONS, LockError, Pin, read, render

PROJECT = FOLDER.parent
_RESOLVED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)", re.M)


def requirements() -> dict[str, list[str]]:
    """What ``pyproject.toml`` declares: of the core, and of each extra beside the core."""
    with (PROJECT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return {CORE: project["dependencies"], **project["optional-dependencies"]}


def make_locks(*, upgrade: bool = False) -> None:
    """Resolve and write the lock of every version of Python.

    Raises:
        LockError: uv is missing, reaches no index, or finds no versions that fit together; a
            license is not known.
    """
    for python in PYTHONS:
        pins = _pins(python, upgrade=upgrade)
        (FOLDER / f"python{python}.txt").write_text(render(python, pins), "utf-8")


def _pins(python: str, *, upgrade: bool) -> list[Pin]:
    declared = requirements()
    try:
        kept = [] if upgrade else [str(pin) for pin in read(python)]
    except LockError:
        kept = []
    everything = [line for lines in declared.values() for line in lines]
    resolved = _resolve(python, everything, kept)
    exact = [f"{name}=={version}" for name, (version, _) in resolved.items()]
    # One resolution for all extras, so that they can be installed together; then one for each
    # extra within it, which tells whose each library is.
    core = set(_resolve(python, declared[CORE], exact))
    needed: dict[str, set[str]] = {}
    for extra in sorted(set(declared) - {CORE}):
        for name in _resolve(python, [*declared[CORE], *declared[extra]], exact):
            needed.setdefault(name, set()).add(extra)
    licenses = _licenses(python, resolved)
    pins = []
    for name, (version, hashes) in resolved.items():
        extras = (CORE,) if name in core else tuple(sorted(needed[name]))
        pins.append(Pin(name, version, hashes, extras, licenses[name]))
    return pins


def _resolve(
    python: str, wanted: Iterable[str], constraints: Iterable[str]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Version and hashes of each library, by its normalized name."""
    with tempfile.TemporaryDirectory() as folder:
        wish, bounds = Path(folder) / "wish.in", Path(folder) / "bounds.txt"
        wish.write_text("\n".join(wanted), "utf-8")
        bounds.write_text("\n".join(constraints), "utf-8")
        command = ["pip", "compile", "--quiet", "--generate-hashes", "--no-header"]
        target = ["--python-version", python, *_PLATFORM]
        text = _uv(*command, "--no-annotate", *target, "--constraint", str(bounds), str(wish))
    return {
        canonicalize_name(name): (version, tuple(re.findall(r"[0-9a-f]{64}", hashes)))
        for name, version, hashes in _RESOLVED.findall(text)
    }


_PLATFORM = ("--python-platform", "x86_64-unknown-linux-gnu")


def _licenses(python: str, resolved: dict[str, tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """The license of each library, from its own metadata: installed here, or installed aside."""
    here = _by_name(distributions())
    absent = []
    for name, (version, _) in resolved.items():
        if name not in here or here[name].version != version:
            absent.append(f"{name}=={version}")
    with tempfile.TemporaryDirectory() as folder:
        if absent:
            target = ["--python-version", python, *_PLATFORM]
            _uv("pip", "install", "--quiet", "--no-deps", *target, "--target", folder, *absent)
        here |= _by_name(distributions(path=[folder]))
        return {name: license_of(here[name].metadata) for name in resolved}


def _by_name(found: Iterable[Distribution]) -> dict[str, Distribution]:
    return {canonicalize_name(entry.metadata["Name"]): entry for entry in found}


def _uv(*arguments: str) -> str:
    program = shutil.which("uv")
    if program is None:
        raise LockError("uv is missing; install it: pip install 'dp-release[lock]'")
    # No configuration of this machine: what it names, an index or a mirror, must not matter.
    settings = {name: text for name, text in os.environ.items() if not name.startswith("UV_")}
    done = subprocess.run(  # noqa: S603 - uv by its full path, with names from pyproject.toml
        [program, "--no-config", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=settings,
        cwd=PROJECT,
    )
    if done.returncode:
        raise LockError(f"uv failed:\n{done.stderr.strip()}")
    return done.stdout
