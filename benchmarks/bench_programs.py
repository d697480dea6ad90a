"""Where PuLP's model building costs more than the solve: the same programs by PuLP and as arrays.

Approximate laws, circular squared loss, differences ±{1,2,3}, on rings of growing size. Seconds for
building and solving once, median of the repetitions; the ratio is PuLP over arrays.
"""

from __future__ import annotations

from fractions import Fraction

from timing import median_seconds

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solvers import program
from release.noise.solvers.linear import LinearProgram
from release.noise.solvers.problem import Problem
from release.noise.solvers.window import Window

REPETITIONS = 5


def main() -> None:
    """Print the table."""
    print(
        f"approximate laws, one solve, median of {REPETITIONS}; arrays from {program.ARRAYS_FROM}"
    )
    print(f"{'N':>5} {'rows':>6} {'PuLP':>9} {'arrays':>9}  ratio")
    program.solve(made(5), arrays=True)
    for size in (5, 8, 12, 25, 49, 101, 301, 1001):
        asked = made(size)
        slow = median_seconds(lambda asked=asked: program.solve(asked, arrays=False), REPETITIONS)  # type: ignore[misc] # a default binds the loop variable
        fast = median_seconds(lambda asked=asked: program.solve(asked, arrays=True), REPETITIONS)  # type: ignore[misc] # as above
        print(
            f"{size:5} {asked.limit.size:6} {1e3 * slow:6.1f} ms {1e3 * fast:6.1f} ms "
            f"{slow / fast:5.1f}x"
        )


def made(size: int) -> program.Program:
    """The program of one law."""
    sensitivity = Sensitivity.of(Group((size,)), [(1,), (2,), (3,)])
    guarantee = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 100))
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, size)
    window = Window.all_of(Problem.of(sensitivity, guarantee, loss))
    return LinearProgram(window, guarantee.delta).builder.build()


if __name__ == "__main__":
    main()
