"""Large laws: seconds, peak memory and the exact gap, each in a process of its own.

The linear programs of the whole ring, unfolded, as another HiGHS interface (scipy) solves them in
floats, stand beside: same loss, no proof.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design

CASES = [
    # name, N, differences, definition, ε, δ, loss, whether the rival can hold it
    ("closed form, error rate", 10**6, range(1, 5), "pure", "1", "0", "error_rate", False),
    ("mixture, error rate", 10**6, range(1, 5), "approximate", "1", "0.01", "error_rate", False),
    ("staircase, squared", 10**5, range(1, 4), "pure", "1", "0", "squared", False),
    ("program, squared", 1_000, (1, 3, 5), "pure", "1", "0", "squared", True),
    ("program, squared", 1_000, (1, 2, 3), "approximate", "1", "0.01", "squared", True),
    ("program, squared", 1_000, (1, 2, 3), "approximate", "0.01", "0.01", "squared", True),
    ("program, squared", 100_000, (1, 2, 3), "approximate", "1", "0.01", "squared", False),
]


def rival(sensitivity: Sensitivity, epsilon: Fraction, delta: Fraction, costs: np.ndarray) -> float:
    """The same program, unscaled and whole, through scipy; the loss."""
    size, moves = sensitivity.group.size, len(sensitivity.shifts)
    slack = moves * size if delta else 0
    tails = np.arange(moves * size)
    heads = np.concatenate([sensitivity.group.moved(s) for s in sensitivity.shifts])
    ratio = float(exp_bounds(epsilon)[0])
    parts = [(tails, tails % size, 1.0), (tails, heads, -ratio)]
    rows, limits = moves * size, [np.zeros(moves * size)]
    if delta:
        parts += [(tails, size + tails, -1.0), (rows + tails // size, size + tails, 1.0)]
        rows += moves
        limits.append(np.full(moves, float(delta)))
    matrix = coo_matrix(
        (
            np.concatenate([np.full(r.size, v) for r, _, v in parts]),
            (np.concatenate([r for r, _, _ in parts]), np.concatenate([c for _, c, _ in parts])),
        ),
        shape=(rows, size + slack),
    )
    total = coo_matrix(np.r_[np.ones(size), np.zeros(slack)][None, :])
    goal = np.r_[costs, np.zeros(slack)]
    found = linprog(goal, matrix, np.concatenate(limits), total, [1.0], method="highs")
    return float(found.fun)


def measure(number: int, ours: bool) -> tuple[float, float, float, float]:
    """Seconds, MiB, loss and relative gap of one case."""
    _, size, shifts, definition, epsilon, delta, loss_name, _ = CASES[number]
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts))
    guarantee = Guarantee(Definition(definition), Fraction(epsilon), Fraction(delta))
    loss = named_loss(LossName(loss_name), Topology.CYCLIC, size)
    start = time.perf_counter()
    if ours:
        made = design(sensitivity, guarantee, loss)
        objective, gap = float(made.objective), float(made.gap / made.objective)
    else:
        objective = rival(sensitivity, guarantee.epsilon, guarantee.delta, loss.typical())
        gap = float("nan")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, peak, objective, gap


def main() -> None:
    """Print the table."""
    context = multiprocessing.get_context("spawn")
    print("one run each; the peak includes Python and its libraries")
    for number, (name, size, shifts, _, epsilon, delta, _, held) in enumerate(CASES):
        with context.Pool(1, maxtasksperchild=1) as pool:
            seconds, peak, objective, gap = pool.apply(measure, (number, True))
            line = f"{name:24} N = {size:7} ±{list(shifts)} ε = {epsilon} δ = {delta}: "
            line += f"{seconds:.2f} s, {peak:.0f} MiB, loss {objective:.9g}, gap {gap:.0e}"
        if held:
            with context.Pool(1, maxtasksperchild=1) as pool:
                taken, other_peak, other, _ = pool.apply(measure, (number, False))
            line += (
                f" | scipy's HiGHS {taken:.2f} s ({taken / seconds:.1f}x), {other_peak:.0f} MiB, "
                f"loss {other:.9g}"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
