"""Publishes with a copy for each planted error, and asks the verifiers about what came out."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dp_release_verify import provenance
from dp_release_verify.checks import verify as verify_files
from dp_release_verify.verdict import Verdict
from release.verification.evidence import Required, Trust
from release.verification.keys import read_trusted
from release.verification.verifier import judge
from tests.planted.errors import Planted
from tests.planted.specs import SPECS

PROJECT = Path(__file__).parent.parent.parent
WORKER = Path(__file__).with_name("worker.py")
CLEAN = "nothing"
PACKAGES = ("release", "dp_release_verify")
"""The writer, and what it shares with the verifier."""


@dataclass(frozen=True)
class Outcome:
    """What became of one spec under one copy; a text is empty where nothing was refused.

    Attributes:
        error: the name of the planted error.
        spec: the name of the spec.
        run: why the run refused, so that nothing was published.
        own: why the copy's own verifier refused what was published.
        clean: why the clean verifier refused it, which reproduces what it can.
        alone: why the package of the verifier refused it, which has the files alone.
    """

    error: str
    spec: str
    run: str = ""
    own: str = ""
    clean: str = ""
    alone: str = ""


def planted(error: Planted, text: str) -> str:
    """The text of a module with the one change.

    Raises:
        ValueError: the text to replace does not stand there exactly once.
    """
    if text.count(error.old) != 1:
        raise ValueError(f"{error.name}: its text stands {text.count(error.old)} times")
    return text.replace(error.old, error.new)


def copy_with(error: Planted | None, base: Path, copy: Path) -> None:
    """Make a copy of the package in ``base`` with one change, or with none."""
    for package in PACKAGES:
        shutil.copytree(base / package, copy / package, copy_function=os.link)
    if error is not None:
        path = place_of(error.module, copy)
        text = planted(error, path.read_text("utf-8"))
        # A new file: the other copies are linked to the old one.
        path.unlink()
        path.write_text(text, "utf-8")


def place_of(module: str, folder: Path) -> Path:
    """The file of a module: of the writer, unless it is named with another package."""
    package = module.partition("/")[0]
    return folder / module if package in PACKAGES else folder / "release" / module


def write_specs(names: Sequence[str], folder: Path) -> None:
    """Write the spec and the tables of each case, with a spec for each of its releases."""
    for name in names:
        (folder / name).mkdir(parents=True)
        first = SPECS[name].write(folder / name)
        plain = yaml.safe_load(first.read_text("utf-8"))
        for number in range(2, SPECS[name].runs + 1):
            plain["release"]["id"] = f"small-{number}"
            first.with_name(f"spec-{number}.yaml").write_text(yaml.safe_dump(plain), "utf-8")


def job(name: str, specs: Sequence[str], inputs: Path, copy: Path) -> dict[str, Any]:
    """What the worker is told of one copy."""
    cases = []
    for spec in specs:
        case = SPECS[spec]
        cap: dict[str, Any] | None = None
        if case.caps is not None:
            cap = {"scope": "tests", "epsilon": case.caps[0], "delta": case.caps[1]}
            if case.month is not None:
                cap |= {"period": {"every": "month", "epsilon": "100", "delta": case.month}}
        numbers = ["", *(f"-{number}" for number in range(2, case.runs + 1))]
        (copy / spec).mkdir()
        cases.append(
            {
                "name": spec,
                "specs": [str(inputs / spec / f"spec{number}.yaml") for number in numbers],
                "ids": [f"small{number}" for number in numbers],
                "out": str(copy / spec / "out"),
                "cap": cap,
            }
        )
    return {"name": name, "copy": str(copy), "cases": cases}


def run(errors: Sequence[Planted], folder: Path, *, with_clean: bool = True) -> Iterator[Outcome]:
    """Run every error's specs, and without any error all specs; ``folder`` is left full."""
    for package in PACKAGES:
        compileall.compile_dir(str(PROJECT / package), quiet=2)
        shutil.copytree(PROJECT / package, folder / "base" / package)
    given: list[tuple[str, Planted | None, Sequence[str]]] = []
    given += [(error.name, error, error.specs) for error in errors]
    if with_clean:
        given.append((CLEAN, None, list(SPECS)))
    write_specs(sorted({spec for _, _, specs in given for spec in specs}), folder / "inputs")
    jobs = []
    for number, (name, error, specs) in enumerate(given):
        copy = folder / f"copy-{number}"
        copy_with(error, folder / "base", copy)
        jobs.append(job(name, specs, folder / "inputs", copy))
    (folder / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    clean = {"PYTHONPATH": "", "DP_RELEASE_CACHE": "", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, "-P", str(WORKER), str(folder / "jobs.json")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | clean,
    ) as worker:
        by_name = {each["name"]: each for each in jobs}
        with ThreadPoolExecutor(2) as pool:
            waiting = []
            for line in worker.stdout or ():
                told = json.loads(line)
                for case in by_name[told["name"]]["cases"]:
                    found = told["cases"].get(
                        case["name"], {"stopped": "run", "message": "crashed"}
                    )
                    waiting.append(pool.submit(outcome, told["name"], case, found))
            for each in waiting:
                yield each.result()
    if worker.returncode:
        raise RuntimeError("the worker failed")


def outcome(error: str, case: dict[str, Any], told: dict[str, str]) -> Outcome:
    """Ask the clean verifiers about the last release of a case."""
    if told["stopped"] == "run":
        return Outcome(error, case["name"], run=told["message"])
    out = Path(case["out"])
    public, auditor = out / "public" / case["ids"][-1], out / "auditor" / case["ids"][-1]
    clean, alone = asked(public, auditor, out)
    return Outcome(error, case["name"], "", told["message"], clean, alone)


def asked(public: Path, auditor: Path, out: Path) -> tuple[str, str]:
    """Why the verifier of the package refuses a release, and why it does from the files alone."""
    trust = Trust()
    if (out / "ledger").is_dir():
        keys = read_trusted([str(out.parent / "key.pub")])
        trust = Trust(ledger=out / "ledger", keys=keys, require=Required.PAID)
    half = auditor if auditor.is_dir() else None
    known = provenance.Trust(trust.keys, (), trust.ledger)
    alone = verify_files(public, half, known, trust.require.value)
    return said(judge(public, half, trust)), said(alone)


def said(verdict: Verdict) -> str:
    """Why a release is refused, or not proved; empty where it is verified."""
    if verdict.refusal is not None:
        return f"{verdict.refusal.check}: {verdict.refusal.sentence}"
    return "; ".join(finding.sentence for finding in verdict.at("missing"))
