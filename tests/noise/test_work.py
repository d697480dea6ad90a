"""Limits of searches are counted, not timed: load changes nothing."""

from __future__ import annotations

import ast
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import release.noise
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.noise.solve import design
from release.noise.solvers.program import Builder, Floats, Work, solve

CLOCKS = {"time", "datetime", "sched", "timeit"}
TIMED = {"time_limit", "timeLimit", "max_time_in_seconds", "timeout"}


def test_no_search_reads_a_clock() -> None:
    (folder,) = release.noise.__path__
    modules = sorted(Path(folder).rglob("*.py"))
    assert len(modules) > 20
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            named: set[str | None] = set()
            if isinstance(node, ast.Import):
                assert not {alias.name.split(".")[0] for alias in node.names} & CLOCKS, module
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in CLOCKS, module
            elif isinstance(node, ast.Call):
                named = {keyword.arg for keyword in node.keywords}
            elif isinstance(node, ast.Attribute):
                named = {node.attr}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = {node.value}
            assert not named & TIMED, (module, named)


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that do nothing but keep a core busy."""
    busy = [
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def hard(name: LossName, size: int, shifts: int, epsilon: str, work: float) -> Design[Modular]:
    sensitivity = Sensitivity.of(Group((size,)), ((shift + 1,) for shift in range(shifts)))
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(1, 10))
    return design(sensitivity, guarantee, named_loss(name, Topology.CYCLIC, size), work=work)


@pytest.mark.parametrize(
    ("name", "size", "shifts", "epsilon", "work"),
    [
        (LossName.ERROR_RATE, 60, 6, "1", 0.01),
        (LossName.SQUARED, 25, 3, "0.5", 0.01),
    ],
)
def test_a_search_that_its_limit_ends_is_the_same_under_load(
    name: LossName, size: int, shifts: int, epsilon: str, work: float
) -> None:
    alone = hard(name, size, shifts, epsilon, work)
    assert any("the work limit ended the search" in note for note in alone.notes)
    assert not alone.is_within()
    with load(2):
        crowded = hard(name, size, shifts, epsilon, work)
    assert alone.mechanism.pmf.weights.tolist() == crowded.mechanism.pmf.weights.tolist()
    assert alone.lower_bound == crowded.lower_bound
    assert alone.notes == crowded.notes


def knapsack(numbers: int) -> Builder:
    """Whole numbers that no rounding solves."""
    builder = Builder()
    costs: Floats = -(37.0 + (17.0 * (1 + _count(numbers)) % 23))
    chosen = builder.add_columns(costs, 1.0, whole=True)
    for row in range(4):
        weights = 11.0 + ((row + 3.0) * _count(numbers) ** 2 % 29)
        builder.add_row(chosen, weights, float(weights.sum()) / 3)
    return builder


def _count(numbers: int) -> Floats:
    import numpy as np

    return np.arange(float(numbers))


@pytest.mark.parametrize("arrays", [False, True])
def test_a_search_ends_with_the_work_that_is_left(arrays: bool) -> None:
    whole, little = Work(), Work(1.0)
    program = knapsack(25).build()
    finished, cut = (solve(program, work, arrays=arrays) for work in (whole, little))
    assert finished is not None
    assert finished.finished
    assert whole.done > 100
    assert not whole.is_over
    assert cut is None or not cut.finished
    assert little.is_over
    assert little.left == 0


@pytest.mark.parametrize("arrays", [False, True])
def test_a_linear_program_ends_with_the_work_that_is_left(arrays: bool) -> None:
    builder = Builder()
    columns = builder.add_columns(1.0 + _count(30) % 7)
    for row in range(20):
        builder.add_row(columns, -(1.0 + (row + 1) * _count(30) % 11), -1.0 - row)
    work = Work(20.0)
    cut = solve(builder.build(), work, arrays=arrays)
    assert cut is None or not cut.finished
    assert work.is_over
    again = Work(1e6)
    solution = solve(builder.build(), again, arrays=arrays)
    assert solution is not None
    assert solution.finished
    assert 0 < again.done < 1e6
