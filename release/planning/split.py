"""The split of a budget between queries that minimises the weighted sum of their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from release.budget.cost import charge_of, moved_together, touched_cells
from release.errors import DesignError, SpecError
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.planning.plan import charge_with, possible, without_baselines
from release.spec.named import names_of
from release.spec.query import Query
from release.spec.shares import shared

if TYPE_CHECKING:
    from release.spec.load import SpecFile

_UNIT = Fraction(1, 10**6)
"""Shares of a budget are multiples of this ε."""

_GRID = 24
"""Values of ε at which a split of the budget evaluates a query."""


@dataclass(frozen=True)
class Share:
    """A query's share of the budget, its expected loss with it, and ``now`` that of the spec."""

    query: Query
    weight: Fraction
    epsilon: Fraction
    charge: Fraction
    objective: Fraction
    now: Fraction


def split_budget(
    spec_file: SpecFile, weights: dict[str, Fraction], solvers: Solvers | None = None
) -> tuple[Share, ...]:
    """The ε of each query that minimises the weighted sum of expected losses within the cap.

    Each δ stays as it is, and so do queries with noise on their statistic and tabulations, whose ε
    is taken off the cap. The loss of a query
    falls ever more slowly as its ε grows, so budget goes to the steepest fall first, along the
    convex hull of losses at ``_GRID`` values of ε. Empirical sensitivity is taken to be the most
    that the declaration allows.

    Raises:
        SpecError: a weight of a query that does not exist, or a weight not above 0; or the spec
            shares the budget out itself.
    """
    if shared(spec_file.spec):
        raise SpecError(
            "--split", "the spec shares its budget out by itself; plan without --split shows how"
        )
    solvers = solvers or Solvers()
    queries = [query for query in spec_file.spec.released if not query.is_on_statistic]
    unknown = set(weights) - set(names_of(queries))
    if unknown or any(weight <= 0 for weight in weights.values()):
        raise SpecError(
            "--weight", "write NAME=NUMBER above 0, of a query with noise on its answer"
        )
    if not spec_file.spec.released:
        raise SpecError("--split", "is for queries; plan shows how a tabulation splits its budget")
    # What is not split is paid first, at its full charge.
    cap = spec_file.spec.budget.epsilon
    for tabulation in spec_file.tabulations:
        cap -= tabulation.declared.guarantee_of_all(spec_file.spec.budget).epsilon
    for query in spec_file.spec.released:
        if query.is_on_statistic:
            cap -= charge_of(spec_file, query, query.claimed).epsilon
    curves = []
    for query in queries:
        # The last of the cases is the most that the declaration allows.
        *_, (_, request) = possible(spec_file, query)
        weight = weights.get(query.name, Fraction(1))
        about = _Asked(spec_file, query, request, weight, solvers)
        curves.append(_Curve.of(about, cap, len(queries)))
    spent = _steepest_first(curves, cap)
    return tuple(curve.share(spend) for curve, spend in zip(curves, spent, strict=True))


@dataclass(frozen=True)
class _Asked:
    """A query whose ε is sought, with its weight."""

    spec_file: SpecFile
    query: Query
    request: Asked
    weight: Fraction
    solvers: Solvers

    def at(self, epsilon: Fraction | None = None) -> tuple[Fraction, AnyDesign]:
        """The charge and the mechanism at ``epsilon``, or at that of the spec."""
        claimed = self.request.guarantee
        if epsilon is not None:
            claimed = replace(claimed, epsilon=epsilon)
        request = replace(self.request, guarantee=claimed)
        design = without_baselines(self.query, request, self.solvers)
        return charge_with(self.spec_file, self.query, design).epsilon, design


@dataclass(frozen=True)
class _Curve:
    """The weighted loss of a query by what is spent on it: the corners of a convex hull."""

    asked: _Asked
    corners: tuple[tuple[Fraction, float], ...]

    @classmethod
    def of(cls, asked: _Asked, cap: Fraction, queries: int) -> _Curve:
        points = []
        least = moved_together(asked.spec_file, asked.query)
        for place in range(_GRID):
            # Equal ratios, from 1/200 of an equal share to the whole cap: losses bend at small ε.
            share = float(cap / least) * (200.0 * queries) ** (place / (_GRID - 1) - 1)
            # Rounded down, so that no point of a curve costs more than its share.
            epsilon = max(_UNIT, Fraction(int(share / _UNIT)) * _UNIT)
            charge, design = asked.at(min(epsilon, Fraction(100)))
            points.append((charge, float(asked.weight * design.objective)))
        # Each once: at a small cap several of them round to the same ε.
        return cls(asked, _hull(sorted(set(points))))

    def share(self, spend: Fraction) -> Share:
        query, weight = self.asked.query, self.asked.weight
        times = moved_together(self.asked.spec_file, query)
        # Where the mechanism that is best for so much is charged for every cell, ε is less.
        for factor in (times, Fraction(touched_cells(self.asked.spec_file, query))):
            # Rounded down, so that all shares stay within the cap; few digits where ε is large.
            unit = Fraction(1, 1000) if spend / factor >= Fraction(1, 100) else _UNIT
            epsilon = int(spend / factor / unit) * unit
            charge, design = self.asked.at(epsilon)
            if charge <= spend:
                break
        _, now = self.asked.at()
        return Share(query, weight, epsilon, charge, design.objective, now.objective)


def _hull(points: Sequence[tuple[Fraction, float]]) -> tuple[tuple[Fraction, float], ...]:
    """The lower convex hull of points in order."""
    hull: list[tuple[Fraction, float]] = []
    for x, y in points:
        # A corner above the line between its neighbors: mixing these two is as good or better.
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return tuple(hull)


def _slope(start: tuple[Fraction, float], end: tuple[Fraction, float]) -> float:
    return (end[1] - start[1]) / float(end[0] - start[0])


def _steepest_first(curves: Sequence[_Curve], cap: Fraction) -> list[Fraction]:
    """The budget of each curve: a piece of a hull costs its width and saves its fall."""
    spent = [curve.corners[0][0] for curve in curves]
    remaining = cap - sum(spent, Fraction(0))
    if remaining < 0:
        raise DesignError("the budget is too small to give every query a share; raise epsilon")
    pieces = []
    for which, curve in enumerate(curves):
        for start, end in pairwise(curve.corners):
            pieces.append((_slope(start, end), which, end[0] - start[0]))
    # A hull is convex, so sorting by slope keeps the pieces of each curve in their order.
    for slope, which, width in sorted(pieces):
        if slope >= 0 or remaining <= 0:
            break
        spend = min(width, remaining)
        spent[which] += spend
        remaining -= spend
    return spent
