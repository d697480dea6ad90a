"""The plan of a tabulation: what is measured with how much noise, and how accurate each table is.

Everything follows from the spec and its public files. Standard errors are those of the unrounded
estimates; their mean is over the cells of a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from release.budget.cost import Charge, charge_of, satisfied
from release.budget.profiles import Made
from release.noise.processes import FanOut, InTurn
from release.noise.unseen import Unseen
from release.queries.registry import sensitivity_without_data
from release.spec.load import SpecFile
from release.spec.query import Query
from release.tabulations.planning.gains import MOST_TABLES, MOST_WITH_DELTA, Search, gains
from release.tabulations.spec.model import margin_text
from release.tabulations.spec.opened import OpenTabulation
from release.tabulations.strategy.measured import Strategy
from release.tabulations.strategy.opened import margins_of_error, named, publication_of
from release.tabulations.strategy.publication import Publication
from release.tabulations.strategy.publication import Table as Place
from release.tabulations.strategy.strategy import Choice


@dataclass(frozen=True)
class TablePlan:
    """A table that is published or measured.

    Attributes:
        level: the level of the areas.
        margin: the attributes and groupings; none for the total.
        cells: in all areas.
        is_published: whether it is; else it is measured for the sake of others.
        cost: the pure ε of its noise; None where it is not measured, or with Gaussian noise.
        variance: of the noise on a cell, 0 where none is needed; None where it is not measured.
        error: the mean standard error of its cells, in units.
        margin_of_error: the mean half width of their 95 % intervals, in units; None where it is
            not published.
        gain: by how much the mean standard error of the other published tables falls without it;
            None where that was not searched for.
    """

    level: str
    margin: tuple[str, ...]
    cells: int
    is_published: bool
    cost: Fraction | None
    variance: Fraction | None
    error: float
    margin_of_error: float | None
    gain: float | None

    @property
    def text(self) -> str:
        """The margin as readers see it."""
        return margin_text(self.margin)


@dataclass(frozen=True, eq=False)
class MeasuredPlan:
    """A table that is measured with noise, as the budget pays for it."""

    made: Made
    charge: Charge

    @property
    def query(self) -> Query:
        """The table as a query."""
        return self.made[0]


@dataclass(frozen=True, eq=False)
class TabulationPlan:
    """A tabulation before it is run.

    Attributes:
        opened: the tabulation.
        choice: the strategies of both noises.
        tables: level by level, the published ones as in the spec, then what else is measured.
        measured: the tables with noise, in the order of the spec that was planned.
        has_gains: whether the gains were searched for.
    """

    opened: OpenTabulation
    choice: Choice
    tables: tuple[TablePlan, ...]
    measured: tuple[MeasuredPlan, ...]
    has_gains: bool

    @property
    def name(self) -> str:
        """The name of the tabulation."""
        return self.opened.name

    @property
    def units(self) -> str:
        """What is counted."""
        return self.opened.declared.units or "units"

    @property
    def strategy(self) -> Strategy:
        """The strategy of the release."""
        return self.choice.best

    @property
    def is_pinned(self) -> bool:
        """Whether the spec names the tables to measure, so that none are searched for."""
        pinned = self.opened.declared.strategy
        return pinned is not None and pinned.tables is not None

    def rows(self) -> list[dict[str, Any]]:
        """A row of the plan's frame for each table; ε and variances as floats, for reading."""
        rows = []
        for table in self.tables:
            rows.append(
                {
                    "query": self.name,
                    "level": table.level,
                    "margin": table.text,
                    "mechanism": self.strategy.family,
                    "taken": True,
                    "cells": table.cells,
                    "published": table.is_published,
                    "noise_variance": None if table.variance is None else float(table.variance),
                    "mean_standard_error": table.error,
                    "margin_of_error": table.margin_of_error,
                    "gain_if_left_out": table.gain,
                    "charge_epsilon": None if table.cost is None else float(table.cost),
                }
            )
        return rows


def plan_tabulations(chosen: Unseen, drop_one: FanOut | None = None) -> tuple[TabulationPlan, ...]:
    """The plans of all tabulations.

    Args:
        chosen: the spec with the tables that are measured.
        drop_one: searches for the gain of leaving out each table, in every tabulation. Without it
            that is done for small tabulations only.
    """
    tabulations = chosen.spec_file.tabulations
    return tuple(_plan_tabulation(chosen, opened, drop_one) for opened in tabulations)


def _plan_tabulation(
    chosen: Unseen, opened: OpenTabulation, drop_one: FanOut | None
) -> TabulationPlan:
    choice, spec = chosen.choices[opened.name], chosen.spec_file.spec
    publication = publication_of(opened, spec.privacy.neighbors)
    gain: dict[Place, float] = {}
    pinned = opened.declared.strategy
    # Pinned tables stay when a published one is left out, so a search would answer what was not
    # asked.
    is_searched = pinned is None or pinned.tables is None
    guarantee = opened.declared.guarantee_of_all(spec.budget)
    most = MOST_WITH_DELTA if guarantee.delta else MOST_TABLES
    has_gains = is_searched and (drop_one is not None or len(publication.tables) <= most)
    if has_gains:
        family = None if pinned is None else pinned.noise
        search = Search(publication, guarantee.epsilon, guarantee.delta, family)
        gain = gains(search, choice.best, drop_one or InTurn())
    return TabulationPlan(
        opened,
        choice,
        _tables(opened, publication, choice.best, gain),
        _measured(chosen, opened),
        has_gains,
    )


def _tables(
    opened: OpenTabulation, publication: Publication, strategy: Strategy, gain: dict[Place, float]
) -> tuple[TablePlan, ...]:
    tables = []
    reach = margins_of_error(opened, publication, strategy)
    for level in range(len(opened.levels)):
        margins, published = [], set()
        for own in opened.published_at(level):
            margin = publication.margins.index(own.margin)
            margins.append((margin, own))
            published.add(margin)
        for place in sorted(strategy.variances):
            # Tables that are the same for all neighbors are known, so they are not measured.
            if place[0] == level and place[1] not in published and place not in strategy.exact:
                margins.append((place[1], named(opened, place)))
        for margin, own in margins:
            place = (level, margin)
            tables.append(
                TablePlan(
                    level=opened.levels[level],
                    margin=own.names,
                    cells=opened.cells(own.table),
                    is_published=margin in published,
                    cost=strategy.costs.get(place),
                    variance=strategy.variances.get(place),
                    error=float(strategy.errors[place]),
                    margin_of_error=reach.get(own.table),
                    gain=gain.get(place),
                )
            )
    return tuple(tables)


def _measured(chosen: Unseen, opened: OpenTabulation) -> tuple[MeasuredPlan, ...]:
    measured = []
    for query in chosen.spec_file.spec.measured:
        if getattr(query, "tabulation", None) == opened.name:
            measured.append(_measured_plan(chosen.spec_file, query, chosen))
    return tuple(measured)


def _measured_plan(spec_file: SpecFile, query: Query, chosen: Unseen) -> MeasuredPlan:
    design = chosen.designs[query.name]
    # What the noise needs may be less than what the spec claims, and the charge follows it.
    sensitivity = sensitivity_without_data(spec_file.spec, query)
    kept = satisfied(spec_file, query, design, design.guarantee)
    return MeasuredPlan(
        (query, design.mechanism, sensitivity),
        charge_of(spec_file, query, query.claimed, kept),
    )
