"""Time to a proved optimum: our design beside the paper's program (13) on CBC and HiGHS.

Differences ±{1, 2, 3}, probabilistic guarantees, error rate and circular squared loss. ``--full``
runs the whole grid with a limit of 60 seconds a solve; without it a part of the grid with 10. Ours
has a work limit of about as much. A solve that a limit stopped is shown as "> seconds" and its
ratio as a lower bound. ``--csv FILE`` keeps the figures, from which docs/pictures.py draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.problem import Problem
from research.verbatim import Indicators, solve_verbatim

VERBATIM_UP_TO = 101


def timed(action: Callable[[], bool]) -> tuple[float, bool]:
    """Seconds, and whether the action ended with a proof."""
    start = time.perf_counter()
    proved = action()
    return time.perf_counter() - start, proved


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    full = given.full
    limit = 60.0 if full else 10.0
    sizes = (25, 49, 101, 1001, 100_001) if full else (25, 49, 100_001)
    epsilons = ("0.5", "1", "2") if full else ("1",)
    deltas = ("0.000001", "0.01", "0.1") if full else ("0.01", "0.1")
    print(f"seconds to proof, limit {limit:.0f} s; ±{{1,2,3}}; one run each")
    print(f"{'loss':11} {'ε':>4} {'δ':>9} {'N':>7} {'ours':>8} {'CBC':>9} {'HiGHS':>9}  ratios")
    rows = [("loss", "epsilon", "delta", "size", "program", "seconds", "proved")]
    for loss in (LossName.ERROR_RATE, LossName.SQUARED):
        for epsilon in epsilons:
            for delta in deltas:
                for size in sizes:
                    case = (loss.value, epsilon, delta, str(size))
                    rows += [(*case, *cells) for cells in row(loss, epsilon, delta, size, limit)]
                    if given.csv:
                        text = "".join(",".join(line) + "\n" for line in rows)
                        given.csv.write_text(text, encoding="utf-8")


def row(
    loss: LossName, epsilon: str, delta: str, size: int, limit: float
) -> list[tuple[str, str, str]]:
    """Statistic and print one line; program, seconds and whether it was proved."""
    sensitivity = Sensitivity.of(Group((size,)), [(1,), (2,), (3,)])
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    costs = named_loss(loss, Topology.CYCLIC, size)

    def ours() -> bool:
        made = design(sensitivity, guarantee, costs, work=limit / 60)
        return made.is_within()

    seconds, proved = timed(ours)
    cells = [f"{'' if proved else '>'}{seconds:.2f}"]
    ratios = []
    measured = [("ours", f"{seconds:.3f}", str(proved))]
    for solver in ("CBC", "HiGHS"):
        if size > VERBATIM_UP_TO:
            cells.append("-")
            continue
        problem = Problem.of(sensitivity, guarantee, costs)

        def rival(solver: str = solver, problem: Problem = problem) -> bool:
            found = solve_verbatim(problem, Indicators.PER_DIFFERENCE, limit, solver)
            return found is not None and found.finished

        taken, done = timed(rival)
        measured.append((solver, f"{taken:.3f}", str(done)))
        cells.append(f"{'' if done else '>'}{taken:.2f}")
        ratios.append(f"{'' if done else '>'}{taken / seconds:.1f}x")
    print(
        f"{loss.value:11} {epsilon:>4} {delta:>9} {size:>7} {cells[0]:>8} {cells[1]:>9} "
        f"{cells[2]:>9}  {' '.join(ratios)}",
        flush=True,
    )
    return measured


if __name__ == "__main__":
    main()
