"""Publishes specs with copies of the package, each copy in a process of its own.

    python worker.py JOBS.json

The process has loaded the libraries and nothing of the package when it forks, so that a copy is
imported anew and its libraries are not. It prints one line of JSON for each copy.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("duckdb", "numpy.random", "pyarrow.parquet", "pandas", "pydantic", "yaml", "rfc8785"),
    *("jinja2", "sqlite3", "concurrent.futures.process"),
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.serialization",
)
TOGETHER = 2
DAY = "2026-11-22"


def outcomes(copy: str, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What became of each case under a copy: the message that stopped it, and who did."""
    sys.path.insert(0, copy)
    found = {}
    for case in cases:
        stopped, message = "", ""
        try:
            publish(case)
        # A wrong copy may fail in any way; whatever it is, nothing of this case was published.
        except Exception as error:
            last = Path(case["out"]) / "public" / case["ids"][-1]
            # After the last rename only the copy's own verifier is left to fail.
            stopped = "own" if last.exists() else "run"
            message = f"{type(error).__name__}: {error}"[:400]
        found[case["name"]] = {"stopped": stopped, "message": message}
    return found


def publish(case: dict[str, Any]) -> None:
    """Publish one case, each of its releases under a spec of its own."""
    import datetime

    from release.budget.ledger import ScopeCap
    from release.budget.store import create_ledger
    from release.job import Options
    from release.records.keys.files import create_key
    from release.street import run_release

    options, out = Options(), Path(case["out"])
    if case["cap"] is not None:
        key = out.parent / "key"
        signer = create_key(key)
        caps = (ScopeCap.model_validate(case["cap"]),)
        create_ledger(out / "ledger", signer, "example.org/dp", caps, "2026-11-01")
        (out.parent / "key.pub").write_text(f"{signer.public('example.org/dp')}\n", "utf-8")
        options = Options(key=key)
    for spec in case["specs"]:
        day = datetime.date.fromisoformat(DAY)
        run_release(Path(spec), out, published=day, options=options)


def child(copy: str, cases: list[dict[str, Any]], answer: int) -> None:
    """Answer for one copy into a pipe, and end without the parent's clean-up."""
    status = 1
    try:
        data = json.dumps(outcomes(copy, cases)).encode()
        while data:
            data = data[os.write(answer, data) :]
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    """Work through all copies, a few at a time."""
    jobs = json.loads(Path(sys.argv[1]).read_bytes())
    for library in LIBRARIES:
        importlib.import_module(library)
    # A child lives for seconds: what it would collect, its end frees.
    gc.disable()
    running: dict[int, tuple[str, int]] = {}
    while jobs or running:
        while jobs and len(running) < TOGETHER:
            job = jobs.pop(0)
            read, write = os.pipe()
            pid = os.fork()
            if not pid:
                child(job["copy"], job["cases"], write)
            os.close(write)
            running[pid] = job["name"], read
        pid, _ = os.wait()
        name, read = running.pop(pid)
        with os.fdopen(read, "rb") as file:
            text = file.read() or b"{}"
        sys.stdout.write(json.dumps({"name": name, "cases": json.loads(text)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
