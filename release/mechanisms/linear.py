"""Laws as linear programs: pure and approximate guarantees, any loss.

Variables are masses relative to a scale s(η): f(η) = s(η)·x(η) with s(η) = max(E^{-d(η)}, δ/10⁴),
so that a tail of 10⁻¹² is as visible to the solver as the mode. Slack is counted in units of δ.

The masses add up to 10⁴ in the program, so that the solver's absolute tolerance of 10⁻¹⁰ is one of
10⁻¹⁴. For each difference μ and element η one row, divided by its largest coefficient:

- hard:        f(η) - E·f(η+μ) ≤ 0                              pure (Kadam et al. 2024, (14c))
- soft:        f(η) - E·f(η+μ) ≤ δ·t_μ(η),  Σ_η t_μ(η) ≤ 1      approximate (hockey-stick)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.answers import Codes, Group
from release.exact import exp_bounds
from release.guarantee import Definition, Differences, Guarantee
from release.losses import Loss
from release.mechanisms.program import Floats, Program, Solution, solve

Pattern = NDArray[np.bool_]
"""Shape (|M|, size): which constraints f(η) ≤ E·f(η+μ) are given up."""


@dataclass(frozen=True)
class Problem:
    """What is asked: a law for these differences, this guarantee and this loss."""

    differences: Differences
    guarantee: Guarantee
    loss: Loss
    steps: Codes
    """Distances of the elements from the centre in the differences; -1 where unreachable.

    The centre is zero, unless another translate of the closed form loses less: every translate of
    a feasible law is feasible, and a table of costs need not be least at zero.
    """
    scaled: bool = True
    """Whether masses are solved for relative to the closed form, or as they are."""

    @classmethod
    def of(cls, differences: Differences, guarantee: Guarantee, loss: Loss) -> Problem:
        """The problem with its distances."""
        group = differences.group
        steps = group.steps_from_zero(differences.shifts)
        if not loss.is_error_rate:
            decay = np.where(steps < 0, 0.0, np.exp(-float(guarantee.epsilon) * steps))
            centre = best_translate(group, decay, loss.numerators.astype(np.float64))
            steps = steps[group.moved(group.negative(group.shift(centre)))]
        return cls(differences, guarantee, loss, steps)

    @property
    def size(self) -> int:
        """The number of elements of the group."""
        return self.differences.group.size

    @property
    def ratio(self) -> float:
        """e^ε, for the solver only."""
        return float(exp_bounds(self.guarantee.epsilon)[0])

    @property
    def delta(self) -> float:
        """δ, for the solver only."""
        return float(self.guarantee.delta)

    @property
    def costs(self) -> Floats:
        """ρ, for the solver only."""
        return self.loss.numerators / float(self.loss.denominator)

    def scale(self) -> Floats:
        """s(η): about how large the mass of each element is; 1 where not ``scaled``."""
        if not self.scaled:
            return np.ones(self.size)
        epsilon = float(self.guarantee.epsilon)
        decay = np.exp(-epsilon * np.where(self.steps < 0, 0, self.steps))
        # Below this a float solver sees nothing anyway; the exact repair takes care of the rest.
        return np.maximum(decay, max(self.delta * 1e-4, 1e-200))


@dataclass(frozen=True)
class Suggestion:
    """Masses from a solver (sum about 1), multipliers of the rows (|M|, size), and its bound."""

    masses: Floats
    multipliers: Floats
    objective: float
    bound: float
    finished: bool
    solver: str


def best_translate(group: Group, masses: Floats, costs: Floats) -> int:
    """The element c for which Σ_η costs(η)·masses(η-c) is least; the first of several."""
    shape = group.moduli
    spectrum = np.conj(np.fft.rfftn(masses.reshape(shape))) * np.fft.rfftn(costs.reshape(shape))
    losses = np.fft.irfftn(spectrum, shape, axes=tuple(range(len(shape)))).reshape(-1)
    near = losses.min() + 1e-9 * max(1e-300, float(np.abs(losses).max()))
    return int(np.flatnonzero(losses <= near)[0])


_TOTAL = 1e4


def solve_linear(problem: Problem, tighten: float = 0.0) -> Suggestion | None:
    """The pure or approximate program; δ is reduced by the factor 1 - ``tighten``."""
    program, masses, scale = start_program(problem, _TOTAL)
    soft = problem.guarantee.definition is Definition.APPROXIMATE and problem.delta > 0
    rows = []
    for shift in problem.differences.shifts:
        slack = program.add_columns(np.zeros(problem.size), _TOTAL) if soft else None
        rows.append(_ratio_rows(program, problem, masses, scale, shift, slack))
        if slack is not None:
            program.add_row(slack, np.ones(problem.size), _TOTAL * (1.0 - tighten))
    return _suggestion(problem, solve(program), masses, rows)


def start_program(problem: Problem, total: float) -> tuple[Program, NDArray[np.int64], Floats]:
    """A program with one column for each element and the row Σ f = total; columns and scale."""
    program, scale = Program(), problem.scale()
    masses = program.add_columns(problem.costs * scale)
    program.add_row(masses, scale, total, equal=True)
    return program, masses, scale


def _ratio_rows(
    program: Program,
    problem: Problem,
    masses: NDArray[np.int64],
    scale: Floats,
    shift: tuple[int, ...],
    slack: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """Rows f(η) - E·f(η+μ) ≤ slack for one μ; their numbers."""
    moved, factor = head_factors(problem, scale, shift)
    numbers = np.zeros(problem.size, dtype=np.int64)
    for element in range(problem.size):
        columns = [masses[element], masses[moved[element]]]
        largest = max(1.0, factor[element])
        values = [1.0 / largest, -factor[element] / largest]
        if slack is not None:
            columns.append(slack[element])
            values.append(-problem.delta / scale[element] / largest)
        numbers[element] = program.add_row(np.array(columns), np.array(values), 0.0)
    return numbers


def head_factors(problem: Problem, scale: Floats, shift: tuple[int, ...]) -> tuple[Codes, Floats]:
    """The heads η+μ of the constraints of one μ, and E·s(η+μ)/s(η)."""
    moved = problem.differences.group.moved(shift)
    return moved, problem.ratio * scale[moved] / scale


def _suggestion(
    problem: Problem, solution: Solution | None, masses: NDArray[np.int64], rows: list[Codes]
) -> Suggestion | None:
    if solution is None:
        return None
    scale = problem.scale()
    numbers = np.array(rows, dtype=np.int64).reshape(len(rows), masses.size)
    multipliers = solution.multipliers[numbers] / scale
    for index, shift in enumerate(problem.differences.shifts):
        multipliers[index] /= np.maximum(1.0, head_factors(problem, scale, shift)[1])
    return Suggestion(
        masses=np.maximum(0.0, solution.values[masses] * scale),
        multipliers=multipliers,
        objective=solution.objective / _TOTAL,
        bound=solution.bound / _TOTAL,
        finished=solution.finished,
        solver=solution.solver,
    )


def proved_bound(problem: Problem, multipliers: Floats) -> Fraction:
    """An exact lower bound of the loss of any pure or approximate law, from multipliers a ≥ 0.

    For every feasible f, Σ_μ Σ_η a_μ(η)·(f(η) - E·f(η+μ)) ≤ δ·Σ_μ max a_μ. Adding ρ·f and
    collecting the factor of each f(η) gives (weak duality, MATH.md "Floats are not private")

        loss ≥ min over η of [ρ(η) + Σ_μ a_μ(η) - E·Σ_μ a_μ(η-μ)] - δ·Σ_μ max a_μ.

    Any non-negative numbers will do for a, so the solver's are rounded to a grid; E is replaced by
    a rational above it, which can only lower the bound.
    """
    grid = 2**60
    _, high = exp_bounds(problem.guarantee.epsilon)
    sums_here: Codes = np.zeros(problem.size, dtype=object)
    sums_behind: Codes = np.zeros(problem.size, dtype=object)
    largest = 0
    for shift, row in zip(problem.differences.shifts, multipliers, strict=True):
        exact = np.array([int(a * grid) for a in row.tolist()], dtype=object)
        group = problem.differences.group
        sums_here = sums_here + exact
        sums_behind = sums_behind + exact[group.moved(group.negative(shift))]
        largest += max(exact.tolist())
    denominator = problem.loss.denominator
    reduced = (
        (Fraction(int(cost), denominator) * grid + here - high * behind)
        for cost, here, behind in zip(
            problem.loss.numerators.tolist(), sums_here, sums_behind, strict=True
        )
    )
    bound: Fraction = (min(reduced) - problem.guarantee.delta * largest) / grid
    return max(Fraction(0), bound)
