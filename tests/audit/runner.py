"""Audits copies of the package, each with one change, and says what was found.

Every copy is imported in a process of its own; the libraries that all of them use are loaded once,
before the processes part.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from tests.conftest import PROJECT

_LIBRARIES = (
    *("duckdb", "highspy", "jinja2", "pandas", "pyarrow.dataset", "pyarrow.parquet", "pydantic"),
    *("rfc8785", "scipy.fft", "sqlglot"),
)
TABLES, RUNS = 32, 6


@dataclass(frozen=True)
class Job:
    """A change of a module, none if ``module`` is empty, and the spec to audit with it."""

    name: str
    module: str
    old: str
    new: str
    write: Callable[[Path], Path]


@dataclass(frozen=True)
class Found:
    """What the audit said of a copy: its status, and the check of each finding.

    ``seconds`` of a processor are those of the audit and of the processes that it started.
    """

    name: str
    status: int
    lines: tuple[str, ...]
    seconds: float

    @property
    def is_found(self) -> bool:
        """Whether the audit ended by itself and found something."""
        return self.status == 1


def audited(
    jobs: Sequence[Job], tables: int = TABLES, runs: int = RUNS, limit: int | None = None
) -> Iterator[Found]:
    """Audit each copy in turn, to its first finding.

    One that takes more than ``limit`` seconds of a processor is ended.

    An audit that was ended has status 3, as one that failed.
    """
    for name in _LIBRARIES:
        __import__(name)
    # What is compiled is linked with its source: a copy then compiles one module.
    compileall.compile_dir(str(PROJECT / "release"), quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        for number, job in enumerate(jobs):
            place = Path(folder) / f"job-{number}"
            place.mkdir()
            spec = job.write(place)
            _copy(job, place)
            told = place / "told.json"
            child = os.fork()
            if not child:
                if limit is not None:
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                os._exit(_child(place, spec, told, (tables, runs)))
            _, _, used = os.wait4(child, 0)
            plain: dict[str, Any] = {"status": 3, "lines": ["the audit was ended"]}
            if told.exists():
                plain = json.loads(told.read_text("utf-8"))
            seconds = used.ru_utime + used.ru_stime
            yield Found(job.name, plain["status"], tuple(plain["lines"]), seconds)
            shutil.rmtree(place)


_VERIFIER = "verification/verifier.py"
_CHECKS = "    verdict = verify_files(public, auditor, kind=kind, checks=CONTENT)\n"


def _copy(job: Job, place: Path) -> None:
    """The package with the change of a job, which verifies nothing before it publishes.

    Otherwise most changes would be refused in every run, and the audit would not be tried.

    Raises:
        ValueError: the text to replace does not stand in the module exactly once.
    """
    shutil.copytree(PROJECT / "release", place / "release", copy_function=os.link)
    if not job.module:
        return
    _change(job.name, place / "release" / _VERIFIER, _CHECKS, f"    return\n{_CHECKS}")
    _change(job.name, place / "release" / job.module, job.old, job.new)


def _change(name: str, path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{name}: its text stands {text.count(old)} times")
    # A new file: the other copies are linked to the old one.
    path.unlink()
    Path(cache_from_source(str(path))).unlink(missing_ok=True)
    path.write_text(text.replace(old, new), "utf-8")


def _child(place: Path, spec: Path, told: Path, most: tuple[int, int]) -> int:
    # Whatever of the package the tests have imported is not the copy.
    ours = ("release", "dp_release_audit")
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    sys.path.insert(0, str(place))
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = str(place)
    status, lines = 3, []
    try:
        from dp_release_audit.audit import AuditOptions, audit

        options = AuditOptions(tables=most[0], runs=most[1], processes=0, is_brief=True)
        verdict = audit(spec, options, lambda finished, total, what: None)
        status = verdict.exit_status
        for finding in verdict.findings:
            lines.append(f"{finding.check} of {finding.query}: {finding.text}"[:300])
    except Exception as error:
        status = getattr(error, "exit_status", 3)
        lines = [*traceback.format_exc().splitlines()[-4:]] if status == 3 else [str(error)]
    told.write_text(json.dumps({"status": status, "lines": lines}), "utf-8")
    return 0
