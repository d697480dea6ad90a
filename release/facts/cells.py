"""The cells of a query against its noise: what its answers tell. Confidential throughout.

One public rule: a cell is hardly more than noise where its error of 95 in 100 is as large as what
it tells. That is the size of a number; half of the rows of a cell where the noise is on ranks; the
lead of the published categories where it is on counts. Hours and categories with noise on the
answer have no size: there the answer saves less than a fifth of what a guess would lose, as in a
plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from release.at_work import AtWork
from release.bundle.answer_units import answer_unit
from release.exact.domain import Codes, Topology
from release.exact.statistics.statistic import Counts, Statistic, Sums
from release.facts.models import Told
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.planning.plan import Candidate, candidate
from release.queries.on_statistic import OnStatisticQuery
from release.spec.query import PlainQuery, Query

Figures = NDArray[np.float64]

_NEAR_ROWS = 1000
"""The rows of the mean whose error a plan names."""


def told_by(run: AtWork) -> Told | None:
    """What the answers of a designed run tell; None of answers that have no one size."""
    design = run.made
    if isinstance(design, StatisticDesign):
        return _on_statistic(run, design)
    return _on_answer(run, design)


def _on_answer(run: AtWork, design: AnyDesign) -> Told | None:
    query, codes = run.query, run.codes
    if not isinstance(query, PlainQuery):
        return None
    forecast = candidate(design, query.answers)
    if forecast.within is None or query.answers.topology is not Topology.ORDERED:
        return _against_guess(query, forecast, codes.size)
    unit = answer_unit(query)
    sizes = np.abs(query.answers.numbers(codes))
    spacing = _spacing(query)
    if spacing is None:
        # Bins of unequal width have no error in the unit of their edges.
        sizes, spacing = codes.astype(float), 1.0
    error = np.full(codes.size, forecast.within * spacing)
    sentence = f"95 in 100 answers err by at most {unit.amount(forecast.within)}"
    return _told(sentence, sizes, error, "the true answers are")


def _spacing(query: PlainQuery) -> float | None:
    """The difference of neighboring labels; None where it is not the same everywhere."""
    labels = query.answers.labels
    if isinstance(labels, range):
        return float(labels.step)
    steps = np.unique(np.diff(np.array(list(map(int, labels)), dtype=np.int64)))
    return float(steps[0]) if steps.size == 1 else None


def _against_guess(query: Query, forecast: Candidate, cells: int) -> Told:
    exact = 100 * float(forecast.accuracy.p_exact)
    sentence = f"an answer is the true one in {exact:.3g} of 100 cases"
    if forecast.within is not None:
        sentence += f", and within {answer_unit(query).amount(forecast.within)} in 95"
    return Told(sentence, cells, cells if forecast.is_hardly_more_than_noise else 0)


def _on_statistic(run: AtWork, design: StatisticDesign) -> Told | None:
    query, statistic = run.query, run.statistic
    if not isinstance(query, OnStatisticQuery):
        return None
    near = design.mechanism.nearness(query.wording)
    if isinstance(statistic, Sums):
        found = _of_blocks(run, statistic, lambda block: _sums(query, block, near.near))
        return _told(near.sentence, found[:, 0], found[:, 1], "true sums or means are")
    if query.wording.scores_a_row is not None or query.shares:
        every = replace(statistic, of=_rows_of)
        # Half: a rank is at most so many rows from the middle, or from an end.
        half = _of_blocks(run, every, lambda block: block[:, 0] / 2)
        return _told(near.sentence, half, np.full(half.size, near.near), "half of a cell's rows is")
    members = statistic.members if isinstance(statistic, Counts) else 1
    leads = _of_blocks(run, statistic, lambda block: _leads(block, members))
    return _told(near.sentence, leads, np.full(leads.size, near.near), "the leads are")


def _rows_of(sums: Codes) -> Codes:
    """All rows of each cell, where rows are counted from a level on."""
    return sums[:, :1]


def _leads(scores: Codes, members: int) -> Figures:
    """By how much the published categories lead the first that is left out."""
    ordered = -np.sort(-scores, axis=1)
    return (ordered[:, members - 1] - ordered[:, members]).astype(np.float64)


def _of_blocks(run: AtWork, statistic: Statistic, reduced: Callable[[Codes], Figures]) -> Figures:
    """A few figures of each cell, block by block: cells times answers may be very many."""
    blocks = replace(run, moves=statistic).truths()
    return np.concatenate([reduced(block) for block in blocks])


def _sums(query: OnStatisticQuery, values: Codes, near: float) -> Figures:
    """The size of each cell's sum or mean, and its error; shape (cells, 2)."""
    if values.shape[1] == 1:
        return np.stack([np.abs(values[:, 0]), np.full(len(values), near)], axis=1)
    low, high = query.sum_bounds
    # Of a mean each row adds x - low to one sum and high - x to the other: high - low together.
    rows = values.sum(axis=1) / (high - low)
    # Of a cell without rows nothing is told.
    safe = np.maximum(rows, 1)
    means = np.where(rows > 0, low + values[:, 0] / safe, 0.0)
    return np.stack([np.abs(means), near * _NEAR_ROWS / safe], axis=1)


def _told(sentence: str, sizes: Figures, error: Figures, what: str) -> Told:
    noisy = int((error >= sizes).sum())
    least, middle, most = np.quantile(sizes, [0, 0.5, 1]) if sizes.size else (0, 0, 0)
    figures = f"{what} {least:,.6g} to {most:,.6g} in size, {middle:,.6g} in the median cell"
    return Told(f"{sentence}; {figures}", sizes.size, noisy)


def told_of_table(name: str, counts: Codes, margin: float, units: str) -> Told:
    """What a table of a tabulation tells, whose intervals have the mean half width ``margin``."""
    sizes = counts.reshape(-1).astype(float)
    sentence = f"{name}: 95 % intervals are ±{margin:.3g} {units}"
    return _told(sentence, sizes, np.full(sizes.size, margin), "true counts are")
