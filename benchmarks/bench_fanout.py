"""Two thousand independent designs: in this process, in two threads, in two processes.

Every design is a problem of its own: counts of 8 to 40 answers at 250 values of ε, of two losses,
modular noise and channels among them, or linear programs. Time starts with the problems made, and
ends with the last law in this process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial

from release.exact.domain import AnswerDomain, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import GAP, Asked
from release.noise.families import AnyDesign
from release.noise.processes import FanOut, InTurn, Refused, processes, threads
from release.noise.stage import Problem, solution_of


def problems(count: int, delta: Fraction) -> list[Problem]:
    """So many problems, no two of them equal; with a δ modular noise needs a program."""
    definition = Definition.APPROXIMATE if delta else Definition.PURE
    found = []
    for number in range(count):
        size, epsilon = 8 + 4 * (number % 9), Fraction(1 + number // 8, 50)
        loss = (LossName.ERROR_RATE, LossName.SQUARED)[number % 2]
        domain = AnswerDomain(Topology.ORDERED, tuple(range(size)))
        asked = Asked(
            domain,
            Sensitivity.on_line(size, [1, -1]),
            Guarantee(definition, epsilon, delta),
            named_loss(loss, domain.topology, size),
            loss,
        )
        mechanism = "channel" if number % 4 > 1 and not delta else "modular"
        found.append(Problem(asked, mechanism, is_empirical=False))
    return found


def losses(found: Iterator[AnyDesign | Refused]) -> list[Fraction]:
    """What each law loses; none may be refused."""
    return [Fraction(-1) if isinstance(one, Refused) else one.objective for one in found]


def main() -> None:
    """Print a table for each number of designs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, nargs="+", default=[20, 200, 2000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--delta", default="0", help="above 0 every design is a linear program")
    given = parser.parse_args()
    ways: dict[str, Callable[[], AbstractContextManager[FanOut]]] = {
        "threads": lambda: threads(given.workers),
        "processes": lambda: processes(given.workers),
    }
    solve = partial(solution_of, cache=None, gap=GAP)
    for count in given.designs:
        asked = problems(count, Fraction(given.delta))
        start = time.perf_counter()
        expected = losses(InTurn().map(solve, asked))
        alone = time.perf_counter() - start
        told = f"{1000 * alone / count:.1f} ms each, δ {given.delta}"
        print(f"{count} designs, {told}, {given.workers} workers, 1 repetition")
        print(f"  {'in turn':10} {alone:7.2f} s   1.00 x")
        for name, way in ways.items():
            start = time.perf_counter()
            with way() as out:
                begun = time.perf_counter() - start
                found = losses(out.map(solve, asked))
                seconds = time.perf_counter() - start - begun
            if found != expected:
                raise SystemExit(f"{name}: other laws")
            print(
                f"  {name:10} {seconds:7.2f} s   {seconds / alone:.2f} x"
                f"   (start {begun:.2f} s: {(seconds + begun) / alone:.2f} x)"
            )


if __name__ == "__main__":
    main()
