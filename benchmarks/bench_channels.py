"""Channels and plans: seconds to a proved channel beside the plain program, and seconds of a plan.

The rival is the linear program of docs/design/mathematics.md as it stands, in floats, by SciPy's
HiGHS: what it returns is not repaired and not proved. Where it has not ended after ``PATIENCE``
seconds, that is printed. Plans are whole processes, without the cache of laws.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from release.exact.channel import answer_costs
from release.exact.privacy import Definition, Guarantee
from release.noise.solvers.answers.laws import design_channel
from release.noise.solvers.answers.problem import ChannelProblem

PROJECT = Path(__file__).parent.parent
PATIENCE = 60.0
REPETITIONS = 3

SETTINGS: tuple[tuple[str, int, tuple[int, ...], str, bool], ...] = (
    ("pure, ±1, uniform prior", 101, (1,), "0", True),
    ("pure, ±1, worst case", 101, (1,), "0", False),
    ("pure, everything", 101, tuple(range(1, 101)), "0", True),
    ("δ = 10⁻⁶, ±1", 101, (1,), "0.000001", True),
    ("pure, ±1..±3", 51, (1, 2, 3), "0", True),
    ("pure, ±1, uniform prior", 401, (1,), "0", True),
)


def problem(size: int, steps: tuple[int, ...], delta: str, *, prior: bool) -> ChannelProblem:
    """Squared loss, ε = 1."""
    definition = Definition.APPROXIMATE if Fraction(delta) else Definition.PURE
    promise = Guarantee(definition, Fraction(1), Fraction(delta))
    share = (Fraction(1, size),) * size if prior else None
    return ChannelProblem(steps, promise, answer_costs(2, size), share)


def plain(asked: ChannelProblem) -> tuple[float, float] | None:
    """Seconds and loss of the plain program; None where patience ended."""
    size, pairs = asked.answers, np.array(asked.pairs)
    soft = asked.guarantee.delta > 0
    cells, slacks = size * size, len(pairs) * size if soft else 0
    width = cells + slacks + (asked.prior is None)
    start = time.perf_counter()
    outcome = np.arange(size)
    first = (pairs[:, :1] * size + outcome).reshape(-1)
    second = (pairs[:, 1:] * size + outcome).reshape(-1)
    number = np.arange(first.size)
    entries = [(number, first, np.ones(first.size))]
    entries.append((number, second, np.full(first.size, -math.e)))
    limits = [np.zeros(first.size)]
    height = first.size
    if soft:
        entries.append((number, cells + number, -np.ones(number.size)))
        entries.append((height + number // size, cells + number, np.ones(number.size)))
        limits.append(np.full(len(pairs), float(asked.guarantee.delta)))
        height += len(pairs)
    if asked.prior is None:
        row = np.repeat(np.arange(size), size)
        entries.append((height + row, np.arange(cells), asked.costs.reshape(-1).astype(float)))
        entries.append((height + np.arange(size), np.full(size, width - 1), -np.ones(size)))
        limits.append(np.zeros(size))
        height += size
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    upper = coo_matrix((values, (rows, columns)), (height, width)).tocsr()
    sums = coo_matrix(
        (np.ones(cells), (np.repeat(np.arange(size), size), np.arange(cells))), (size, width)
    ).tocsr()
    costs = np.zeros(width)
    if asked.prior is None:
        costs[-1] = 1
    else:
        costs[:cells] = asked.costs.reshape(-1) / size
    found = linprog(
        costs,
        upper,
        np.concatenate(limits),
        sums,
        np.ones(size),
        options={"time_limit": PATIENCE},
    )
    return (time.perf_counter() - start, float(found.fun)) if found.status == 0 else None


def main() -> None:
    """Print both tables."""
    print(f"channels, ε = 1, squared loss; ours proved; median of {REPETITIONS}, the rival once")
    for name, size, steps, delta, prior in SETTINGS:
        asked = problem(size, steps, delta, prior=prior)
        times = []
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            made = design_channel(asked)
            times.append(time.perf_counter() - start)
        ours = statistics.median(times)
        other = plain(asked) if size <= 101 else None
        told = (
            f"plain program {other[0]:6.2f} s, ratio {other[0] / ours:6.1f}"
            if other
            else "plain program not tried" * (size > 101)
            or f"plain program not ended in {PATIENCE:.0f} s"
        )
        print(
            f"  {size:4} answers, {name:24} {ours:6.2f} s, loss {float(made.objective):9.4f}, "
            f"gap {float(made.objective - made.lower_bound):.1e}, {told}"
        )
    print(f"plans of the sample specs, whole process without cache, median of {REPETITIONS}")
    for spec in ("ami", "persons"):
        times = []
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "release", "plan", str(PROJECT / "data" / f"{spec}.yaml")],
                check=True,
                capture_output=True,
                env={**os.environ, "DP_RELEASE_CACHE": ""},
            )
            times.append(time.perf_counter() - start)
        print(f"  {spec:8} {statistics.median(times):5.2f} s")


if __name__ == "__main__":
    main()
