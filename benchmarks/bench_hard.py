"""Hard probabilistic mechanisms: CPU seconds to a proved optimum, or the gap that work leaves.

First the cases on rings of up to 10⁵ answers. In the error rate the gap is absolute, in squared
loss a share of it; *proved* means in exact integers or rationals, not by a solver's word. No rival
here ends: the last column is the gap that the best programs tried before had left open after 40
seconds, or the seconds that this project took before.

Then the same question at n = 48 beside the printed program (13) of Kadam et al. 2024 on CBC and
HiGHS, in the same run: CPU seconds of this process and its children. A rival is ended after
``LIMIT`` seconds of the clock, which on a busy machine are few CPU seconds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.problem import Problem
from research.verbatim import Indicators, solve_verbatim

ERROR_RATE, SQUARED = LossName.ERROR_RATE, LossName.SQUARED
LIMIT, SIZE = 40.0, 49

Case = tuple[LossName, int, list[int], str, str, str]
CASES: list[Case] = [
    (ERROR_RATE, 100_000, [1, 2, 3], "1", "0.1", "1.0 to 1.2 s"),
    (SQUARED, 100_000, [1, 2, 3], "1", "0.01", "3.0 s"),
    (ERROR_RATE, 101, [1, 2, 3, 4], "0.25", "0.01", "3e-3"),
    (ERROR_RATE, 101, [1, 2, 3, 4, 5, 6], "1", "0.1", "9e-3"),
    (ERROR_RATE, 101, [1, 2, 3, 4, 5, 6], "1", "0.01", "1.3e-3"),
    (ERROR_RATE, 101, [1, 3, 5, 6], "1", "0.1", "1.6e-2"),
    (SQUARED, 101, [1, 2, 3], "1", "0.000001", "4e-5"),
    (SQUARED, 129, [1, 2, 3], "0.1", "0.1", "4 to 31 %"),
    (SQUARED, 129, [1, 2, 3], "0.1", "0.01", "4 to 31 %"),
    (SQUARED, 257, [1, 2, 3], "0.1", "0.1", "4 to 31 %"),
    (SQUARED, 257, [1, 2, 3], "0.1", "0.01", "4 to 31 %"),
]
BESIDE: list[Case] = [
    (ERROR_RATE, SIZE, [1, 2, 3], "1", "0.1", ""),
    (SQUARED, SIZE, [1, 2, 3], "1", "0.01", ""),
    (ERROR_RATE, SIZE, [1, 2, 3, 4], "1", "0.1", ""),
]

Result = TypeVar("Result")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=len(CASES), help="only so many of the cases")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of each rival")
    given = parser.parse_args()
    # The first design would count the seconds of loading both solvers.
    for case in BESIDE[:2]:
        _ours((case[0], 13, [1], "1", "0.2", ""))
    print("probabilistic; CPU seconds of one run each")
    for case in CASES[: given.first]:
        print(f"  {_named(case)}: {_ours(case)} (before: {case[-1]})", flush=True)
    print(f"beside (13) as printed, n = {SIZE - 1}, at most {given.limit:.0f} s for each rival")
    for case in BESIDE:
        _beside(case, given.limit)


def _problem(case: Case) -> Problem:
    name, size, shifts, epsilon, delta, _ = case
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts))
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    return Problem.of(sensitivity, guarantee, named_loss(name, Topology.CYCLIC, size))


def _named(case: Case) -> str:
    name, size, shifts, epsilon, delta, _ = case
    return f"{name.value:10} N = {size} ±{shifts} ε = {epsilon}, δ = {delta}"


def _ours(case: Case) -> str:
    asked = _problem(case)
    made, seconds = _cpu(lambda: design(asked.sensitivity, asked.guarantee, asked.loss))
    gap = made.gap if case[0] is ERROR_RATE else made.gap / made.objective
    whose = "proved" if made.bound_proved else "solver's"
    return (
        f"loss {float(made.objective):.7f}, bound {float(made.lower_bound):.7f} ({whose}), "
        f"gap {float(gap):.0e} in {seconds:.2f} s"
    )


def _beside(case: Case, limit: float) -> None:
    asked = _problem(case)
    made, ours = _cpu(lambda: design(asked.sensitivity, asked.guarantee, asked.loss))
    print(f"  {_named(case)}: loss {float(made.objective):.7f} in {ours:.2f} s", flush=True)
    for solver in ("CBC", "HiGHS"):
        answer, seconds = _cpu(
            lambda solver=solver: solve_verbatim(asked, Indicators.PER_DIFFERENCE, limit, solver)  # type: ignore[misc] # a default binds the loop variable
        )
        if answer is None:
            print(f"    {solver:6} nothing in {seconds:.1f} s, over {seconds / ours:.0f}x")
            continue
        over = "" if answer.finished else "over "
        print(
            f"    {solver:6} loss {answer.objective:.7f} in {over}{seconds:.1f} s, "
            f"{over}{seconds / ours:.0f}x",
            flush=True,
        )


def _cpu(action: Callable[[], Result]) -> tuple[Result, float]:
    """A result, and the CPU seconds of this process and of solvers it started."""
    before = sum(os.times()[:4])
    return action(), sum(os.times()[:4]) - before


if __name__ == "__main__":
    main()
