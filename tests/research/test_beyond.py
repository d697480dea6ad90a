"""The sheets beyond the sources, by independent programs and dense linear algebra."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from release.exact.losses import LossName
from release.exact.privacy import Definition
from release.noise.composed.share import noise_for
from research.beyond.many import (
    AGES,
    COUNTIES,
    RACES,
    TRACTS,
    geometric_variance,
    publication,
    strategy,
)
from research.beyond.rings import even_optimum, optimum
from research.programs import ours, released


def test_wide_optima_are_those_of_the_closed_forms() -> None:
    """Pure 1/S and approximate δ + (1-δ)/S, S = Σ e^{-⌈|η|/3⌉}; the probabilistic one between."""
    size, delta = 100_000, 0.1
    distances = np.minimum(np.arange(size), size - np.arange(size))
    total = np.exp(-np.ceil(distances / 3)).sum()
    losses = {}
    for definition in Definition:
        best = optimum(size, definition, Fraction(1, 10), LossName.ERROR_RATE)
        # Of the probabilistic optimum too: a search in integers (mathematics 2.35).
        assert best.bound_proved
        assert best.is_within()
        losses[definition] = float(best.objective)
    assert losses[Definition.PURE] == pytest.approx(1 - 1 / total, abs=1e-9)
    least = 1 - delta - (1 - delta) / total
    assert losses[Definition.APPROXIMATE] == pytest.approx(least, abs=1e-9)
    assert least < losses[Definition.PROBABILISTIC] < losses[Definition.PURE]


def best_mode(size: int, steps: list[int], delta: float, *, even: bool) -> float:
    """The largest f(0) for ε = 1 by SciPy's mixed-integer program, an indicator a difference."""
    moves = [move % size for step in steps for move in (step, -step)]
    count = size * (1 + 2 * len(moves))
    ratio, rows, upper = math.e, [], []
    for number, move in enumerate(moves):
        u = size * (1 + 2 * number)
        y = u + size
        budget = np.zeros(count)
        budget[y : y + size] = 1
        rows.append(budget)
        upper.append(delta)
        for e in range(size):
            violated, counted = np.zeros(count), np.zeros(count)
            violated[e], violated[(e + move) % size], violated[u + e] = 1, -ratio, -1
            # y ≥ f - (1 - u): a violated mass counts.
            counted[e], counted[u + e], counted[y + e] = 1, 1, -1
            rows += [violated, counted]
            upper += [0.0, 1.0]
    equal = [np.concatenate([np.ones(size), np.zeros(count - size)])]
    right = [1.0]
    for e in range(1, (size + 1) // 2 if even else 1):
        row = np.zeros(count)
        row[e], row[size - e] = 1, -1
        equal.append(row)
        right.append(0.0)
    whole = np.zeros(count)
    for number in range(len(moves)):
        begin = size * (1 + 2 * number)
        whole[begin : begin + size] = 1
    costs = np.zeros(count)
    costs[0] = -1
    constraints = [
        LinearConstraint(np.array(rows), -np.inf, np.array(upper)),
        LinearConstraint(np.array(equal), np.array(right), np.array(right)),
    ]
    found = milp(costs, constraints=constraints, integrality=whole, bounds=Bounds(0, 1))
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize("delta", [0.15, 0.25])
def test_even_noise_loses_under_a_probabilistic_guarantee(delta: float) -> None:
    any_mode = 1 - float(ours(6, (1, 2), 1.0, delta).objective)
    even = float(even_optimum(6, (1, 2), delta, LossName.ERROR_RATE)[0])
    assert any_mode == pytest.approx(best_mode(7, [1, 2], delta, even=False), abs=1e-6)
    assert even == pytest.approx(best_mode(7, [1, 2], delta, even=True), abs=1e-6)
    assert any_mode > even + 0.01


def test_a_release_is_the_best_channel_and_modular_noise_wraps() -> None:
    """N = 4, ε = 1, squared error: both programs by SciPy."""
    size, ratio = 5, math.e
    answers = np.arange(size)
    costs = (answers[:, None] - answers[None, :]) ** 2 / size
    rows = []
    for q, other in itertools.permutations(range(size), 2):
        if abs(q - other) == 1:
            for o in range(size):
                row = np.zeros((size, size))
                row[q, o], row[other, o] = 1, -ratio
                rows.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones(size))
    channel = linprog(costs.ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(size))
    loss = float(released(4, [1], 1.0, 0.0, LossName.SQUARED).objective)
    # `best` takes a simpler mechanism for a thousandth more.
    assert channel.fun - 1e-9 <= loss <= channel.fun * 1.001 + 1e-9
    moved = [np.eye(size) - ratio * np.roll(np.eye(size), step, axis=1) for step in (1, -1)]
    modular = linprog(
        answers * (size - answers), np.vstack(moved), np.zeros(10), np.ones((1, size)), [1.0]
    )
    wrapped = float(ours(4, [1], 1.0, 0.0, LossName.SQUARED).objective)
    assert wrapped == pytest.approx(modular.fun, abs=1e-9)
    assert wrapped > loss * 1.5


@pytest.mark.parametrize("count", [5, 10])
def test_the_noise_of_one_budget_stays_within_it(count: int) -> None:
    """δ of K counts at ε = 1 by convolution of the pmf's privacy losses, in floats."""
    noise = noise_for(count, Fraction(1), Fraction(1, 10**6), 2)
    spread = np.arange(-1200, 1201)
    masses = np.array([float(noise.mass(int(k))) for k in spread])
    shifted = np.array([float(noise.mass(int(k) + 1)) for k in spread])
    kept = (masses > 0) & (shifted > 0)
    losses = np.log(masses[kept] / shifted[kept])
    # On a grid, to the nearest point: the errors nearly cancel.
    step = 2e-5
    places = np.round(losses / step).astype(int)
    low = places.min()
    grid = np.bincount(places - low, weights=masses[kept])
    length = 1 << math.ceil(math.log2(grid.size * count))
    composed = np.fft.irfft(np.fft.rfft(grid, length) ** count, length)
    values = (np.arange(length) + low * count) * step
    delta = float((composed * np.maximum(0, -np.expm1(1 - values)))[values > 1].sum())
    delta += count * float(masses[~kept].sum())
    assert 0.9e-6 < delta < 1.02e-6
    basic, deviation = geometric_variance(1 / count), float(noise.moment(2))
    assert deviation <= basic


def incidence() -> tuple[np.ndarray, list[tuple[int, int]], list[int]]:
    """A row for each cell of each table, as a sum of the cells of the tracts."""
    tracts = np.eye(TRACTS)
    county = np.kron(np.eye(COUNTIES), np.ones((1, TRACTS // COUNTIES)))
    levels = [np.ones((1, TRACTS)), county, tracts]
    race, age = np.eye(RACES), np.eye(AGES)
    all_races, all_ages = np.ones((1, RACES)), np.ones((1, AGES))
    margins = [
        np.kron(all_races, all_ages),
        np.kron(all_races, age),
        np.kron(race, all_ages),
        np.kron(race, age),
    ]
    blocks, tables, sizes = [], [], []
    for level, margin in itertools.product(range(3), range(4)):
        block = np.kron(levels[level], margins[margin])
        blocks.append(block)
        tables.append((level, margin))
        sizes.append(len(block))
    return np.vstack(blocks), tables, sizes


def test_the_errors_of_tables_that_add_up_are_those_of_dense_least_squares() -> None:
    rows, tables, sizes = incidence()
    for chosen in (strategy(dict.fromkeys(publication().tables, 1.0)), strategy(None)):
        weights = []
        for table, size in zip(tables, sizes, strict=True):
            noise = chosen.noises.get(table)
            weights += [0.0 if noise is None else 1 / float(noise.moment(2))] * size
        information = rows.T @ (np.array(weights)[:, None] * rows)
        covariance = np.linalg.inv(information)
        deviations = np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
        begins = np.concatenate([[0], np.cumsum(sizes)])
        for place, table in enumerate(tables):
            mean = deviations[begins[place] : begins[place + 1]].mean()
            assert chosen.errors[table] == pytest.approx(mean, rel=1e-6)
        # One row moves one cell of each table: the ε of the tables add up to 1.
        total = sum(
            math.log(float(noise.mass(0) / noise.mass(1))) for noise in chosen.noises.values()
        )
        assert total <= 1 + 1e-9
