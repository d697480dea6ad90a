"""How the benchmarks take time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def median_seconds(action: Callable[[], object], repetitions: int) -> float:
    """Median seconds of so many runs of ``action``."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def timed(action: Callable[[], float]) -> tuple[float, float]:
    """A figure, and the CPU seconds of finding it: the median of three, or of one that is long."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        figure = action()
        seconds.append(time.process_time() - start)
        if seconds[0] > 1:
            break
    return figure, statistics.median(seconds)


def wall_and_cpu(action: Callable[[], Result]) -> tuple[Result, float, float]:
    """A result, and the seconds it took: on the clock, and of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - wall, time.process_time() - cpu
