"""How the benchmarks take time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_seconds(action: Callable[[], object], repetitions: int) -> float:
    """Median seconds of so many runs of ``action``."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
