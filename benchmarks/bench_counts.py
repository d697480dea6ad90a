"""One count beside OpenDP's discrete Laplace noise: expected errors, and the time of a draw.

Counts of 0..n, pure ε, one unit moves a count by 1. Expected squared and absolute errors are
*computed* from both distributions, at the lowest answers (near-empty cells), in the middle and in
the mean over all answers; draws only check them. Two rivals: the discrete Laplace noise as it comes
out of ``make_laplace``, and the same clamped to 0..n by its user. The last column is ours over the
better of both; a published mean is held to 1.001. CPU seconds are of 100,000 cells, interleaved.

Then counts of units with several rows, which may lie in any of 1,000 cells, at one charge: the mean
absolute error of ``plan`` beside discrete Laplace noise for all cells as one vector.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import release
from release.exact.integers.mechanism import IntegerMechanism
from release.noise.published.baselines import geometric

SIZES, EPSILONS, CELLS, REPETITIONS = (25, 1_001, 20_001, 3_000_001), ("1/4", "1"), 100_000, 5
LOSSES = {"squared": 2, "absolute": 1}


def _errors(mechanism: IntegerMechanism, power: int) -> list[float]:
    """The expected |error|^power where 0, 1, 2 and the middle are true, and the uniform mean."""
    at = [float(mechanism.loss_at(power, code)) for code in (0, 1, 2, mechanism.size // 2)]
    return [*at, float(mechanism.mean(mechanism.outcomes.losses(power, mechanism.listed)))]


def compare_errors(size: int, epsilon: str, loss: str) -> list[str]:
    """Ours beside both rivals, line by line."""
    made = release.design(
        answers=size, topology="ordered", sensitivity=[1], epsilon=epsilon, loss=loss
    )
    noise = geometric(Fraction(epsilon))
    power = LOSSES[loss]
    ours = _errors(made.mechanism, power)
    plain = [float(noise.moment(power))] * len(ours)
    clamped = _errors(IntegerMechanism(noise, size), power)
    places = ("true 0", "true 1", "true 2", "middle", "mean")
    lines = []
    for place, own, unbounded, bounded in zip(places, ours, plain, clamped, strict=True):
        ratio = own / min(unbounded, bounded)
        lines.append(
            f"{size - 1:>9,}  {epsilon:>4}  {loss:<8}  {place:<7}{own:12.5g}{unbounded:12.5g}"
            f"{bounded:12.5g}{own / unbounded:9.4f}{ratio:9.4f}"
        )
    return lines


def opendp_draw(epsilon: Fraction, cells: int) -> Callable[[list[int]], Any]:
    """OpenDP's vector mechanism for so many counts."""
    dp: Any = import_module("opendp.prelude")
    features: Any = dp.enable_features
    features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int), size=cells)
    made = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(1 / epsilon))
    if not abs(made.map(1) - float(epsilon)) < 1e-9:
        raise ValueError("the rival keeps another guarantee")
    return made  # type: ignore[no-any-return]


def compare_draws(epsilon: str) -> list[str]:
    """Errors of 100,000 draws and CPU seconds of both, one after the other in turn."""
    try:
        rival = opendp_draw(Fraction(epsilon), CELLS)
    except ImportError:
        return ["opendp is not installed: no draws are compared"]
    mechanism = release.design(
        answers=3_000_001, topology="ordered", sensitivity=[1], epsilon=epsilon, loss="squared"
    ).mechanism
    true = np.full(CELLS, 1_000_000, dtype=np.int64)
    given = true.tolist()
    times: dict[str, list[float]] = {"ours": [], "opendp": []}
    errors: dict[str, np.ndarray[Any, Any]] = {}
    for _ in range(REPETITIONS):
        for name, values in times.items():
            start = time.process_time()
            drawn = mechanism.draw(true) if name == "ours" else rival(given)
            values.append(time.process_time() - start)
            errors[name] = np.asarray(drawn, dtype=np.int64) - true
    ours, theirs = (statistics.median(times[name]) for name in ("ours", "opendp"))
    lines = []
    for name, error in errors.items():
        lines.append(
            f"ε {epsilon}: {name:<6} mean squared error of {CELLS:,} draws "
            f"{float((error.astype(float) ** 2).mean()):.4g}, largest error {np.abs(error).max()}, "
            f"{statistics.median(times[name]):.3f} CPU s"
        )
    lines.append(f"ε {epsilon}: ours takes {ours / theirs:.2f} of the CPU seconds of opendp")
    return lines


SPEC = """
spec: dp-release/spec/v1
release: {{id: visits, title: Visits, curator: Office, contact: office@example.org,
          purpose: benchmark, period: "2024", license: CC0-1.0}}
tables: {{visits: {{path: visits.parquet, columns: {{person: string, tract: integer}}}}}}
privacy: {{unit: person, neighbors: {neighbors}, max_rows_per_unit: {rows}}}
budget: {{scope: visits, epsilon: "{epsilon}", delta: "0"}}
keys: {{tract: {{range: [1, 1000]}}}}
queries:
  - {{name: visits, kind: count, table: visits, by: [tract], domain: {{integers: {{}}}},
     sensitivity: global, loss: absolute, share: "1"}}
"""


def compare_rows(rows: int, neighbors: str, epsilon: str) -> str:
    """Ours beside noise on one vector of counts, of which a unit has so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(SPEC.format(rows=rows, neighbors=neighbors, epsilon=epsilon), "utf-8")
        plan = release.plan(path)
    mechanism = plan.queries[0].chosen.design.mechanism
    if not isinstance(mechanism, IntegerMechanism) or plan.epsilon > Fraction(epsilon):
        raise ValueError("a count without noise on the integers, or over its budget")
    # A replaced unit takes its rows away and puts others in.
    moved = rows if neighbors == "add_remove" else 2 * rows
    rival = geometric(Fraction(epsilon) / moved).moment(1)
    ours = mechanism.noise.moment(1)
    return (
        f"{rows:>5}  {neighbors:<12}{epsilon:>5}{float(plan.epsilon):12.6f}{float(ours):12.5g}"
        f"{float(rival):12.5g}{float(ours / rival):9.4f}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    rows = "answers up to, ε, loss, place, ours, Laplace, Laplace clamped, ours/Laplace, ours/best"
    print(rows)
    for size in SIZES:
        for epsilon in EPSILONS:
            for loss in LOSSES:
                print("\n".join(compare_errors(size, epsilon, loss)))
    for epsilon in EPSILONS:
        print("\n".join(compare_draws(epsilon)))
    print("rows a unit, neighbors, ε, charged, ours, Laplace on the vector, ours/Laplace")
    for most in (1, 3, 10, 100):
        for neighbors in ("add_remove", "replace_one"):
            print(compare_rows(most, neighbors, "1"))


if __name__ == "__main__":
    main()
