"""A whole release of the sample spec: in-process beside the Prefect flow, each its own process.

Wall time and peak memory, median of the repetitions; the ratio says what the orchestrator costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).parent.parent
REPETITIONS = 3


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and the largest resident size of the process itself (MiB) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        child = subprocess.Popen(
            [*command, "data/ami.yaml", "--out", folder],
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{command} failed with status {child.returncode}")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    ways = {
        "in-process (dp-release run)": [sys.executable, "-m", "release", "run"],
        "Prefect flow": [sys.executable, "-m", "flows.run"],
    }
    print("release of data/ami.yaml: 101,929 rows, 1,416 homes, 3 queries, 36 answers")
    medians = []
    for name, command in ways.items():
        runs = [measure(command) for _ in range(REPETITIONS)]
        seconds = statistics.median(s for s, _ in runs)
        memory = statistics.median(m for _, m in runs)
        medians.append(seconds)
        print(f"  {name:30} {seconds:7.2f} s   {memory:6.0f} MiB   (median of {REPETITIONS})")
    print(f"  ratio flow / in-process        {medians[1] / medians[0]:7.2f}")


if __name__ == "__main__":
    main()
