"""Chooses how each tabulation is measured, before any table is opened.

Everything here follows from the spec and its public files. The chosen tables stand in the spec from
then on like queries, each with the guarantee of one cell and its mechanism.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from release.budget.cost import release_step
from release.errors import SpecError
from release.exact.integer_noise import IntegerNoise
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.noise.shares import on_integers
from release.noise.tables.estimable import Estimability
from release.noise.tables.publication import Publication
from release.noise.tables.publication import Table as Place
from release.noise.tables.strategy import Choice, choose_strategy
from release.queries.tabulations.table_count import TableCount, table_count
from release.spec.declarations import Budget, Relation
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.query import Query
from release.spec.tabulations.model import PinnedTable
from release.spec.tabulations.opened import NamedMargin, OpenTabulation


@dataclass(frozen=True)
class Chosen:
    """A spec with the tables that its tabulations measure.

    Attributes:
        spec_file: the spec; every measured table has a guarantee.
        designs: the mechanism of each measured table, by its name.
        choices: the strategies of each tabulation, by its name.
    """

    spec_file: SpecFile
    designs: Mapping[str, AnyDesign | StatisticDesign]
    choices: Mapping[str, Choice]


def choose_tables(spec_file: SpecFile) -> Chosen:
    """Choose the strategy of every tabulation.

    Raises:
        SpecError: a tabulation cannot be measured as it is declared.
        DesignError: a mechanism cannot be proved.
    """
    choices = {}
    # The noise decides the guarantee of one cell. Until that is proved, a table has that of all.
    drafts: list[tuple[TableCount, IntegerNoise, Fraction]] = []
    for number, opened in enumerate(spec_file.tabulations):
        choice = strategies_of(spec_file, number)
        choices[opened.name] = choice
        asked = guarantee_of(opened, spec_file.spec.budget)
        for place, noise in sorted(choice.best.noises.items()):
            query = table_count(opened, named(opened, place), asked)
            drafts.append((query, noise, asked.delta))
    with_drafts = _with_measured(spec_file, [query for query, *_ in drafts])
    designs: dict[str, AnyDesign | StatisticDesign] = {}
    measured: list[TableCount] = []
    step = release_step(with_drafts)
    for query, noise, delta in drafts:
        design = on_integers(with_drafts, query, noise, step, delta)
        proved = design.guarantee
        guarantee = GuaranteeSpec(
            definition=proved.definition, epsilon=proved.epsilon, delta=proved.delta
        )
        designs[query.name] = design
        measured.append(query.model_copy(update={"guarantee": guarantee}))
    return Chosen(_with_measured(spec_file, measured), designs, choices)


def _with_measured(spec_file: SpecFile, measured: Sequence[Query]) -> SpecFile:
    spec = spec_file.spec
    return replace(spec_file, spec=spec.model_copy(update={"queries": [*spec.queries, *measured]}))


def guarantee_of(opened: OpenTabulation, budget: Budget) -> GuaranteeSpec:
    """The guarantee of all tables of a tabulation together: its own, or the whole budget."""
    return opened.declared.guarantee_of_all(budget)


def publication_of(opened: OpenTabulation, neighbors: Relation) -> Publication:
    """What the strategy of a tabulation is chosen for."""
    margins = tuple(one.margin for one in opened.margins)
    importance: dict[Place, float] = defaultdict(float)
    for one in opened.published:
        weight = opened.declared.importance.get(opened.levels[one.level], Fraction(1))
        # A margin that a level publishes by two names counts twice, as in the objective.
        importance[one.level, margins.index(one.margin)] += float(weight)
    moves = {}
    for (level, margin), most in opened.moves(neighbors is Relation.REPLACE_ONE):
        moves[level, margins.index(margin)] = most
    return Publication(opened.named.areas, margins, importance, moves)


def named(opened: OpenTabulation, place: Place) -> NamedMargin:
    """The table at a place of the publication."""
    level, margin = place
    return replace(opened.margins[margin], level=level)


def strategies_of(spec_file: SpecFile, number: int) -> Choice:
    """The strategies of one tabulation: those that are found, or the pinned one.

    Raises:
        SpecError: it cannot be measured as it is declared.
    """
    opened, at = spec_file.tabulations[number], f"tabulations[{number}]"
    spec, pinned = spec_file.spec, opened.declared.strategy
    publication = publication_of(opened, spec.privacy.neighbors)
    asked = guarantee_of(opened, spec.budget)
    family = None if pinned is None else pinned.noise
    if not asked.delta and family == "gaussian":
        raise SpecError(f"{at}.strategy.noise", "gaussian needs a delta above 0; write geometric")
    shares = None
    if pinned is not None and pinned.tables is not None:
        shares = _shares(f"{at}.strategy.tables", opened, pinned.tables)
        missing = Estimability(publication).missing(shares)
        if missing:
            raise SpecError(
                f"{at}.strategy.tables",
                f"{_text(opened, missing[0])} does not follow from the measured tables; measure "
                "it, or a table that it is a sum of",
            )
    try:
        return choose_strategy(
            publication, asked.epsilon, asked.delta, family, shares, release_step(spec_file)
        )
    except SpecError as error:
        if error.field == "budget.epsilon":
            has_own = opened.declared.guarantee is not None
            field = f"{at}.guarantee.epsilon" if has_own else error.field
            raise SpecError(field, error.problem) from error
        raise SpecError(f"{at}.{error.field}", error.problem) from error


def _shares(
    field: str, opened: OpenTabulation, tables: Sequence[PinnedTable]
) -> dict[Place, float]:
    """How a pinned strategy splits the budget."""
    margins = [one.margin for one in opened.margins]
    shares: dict[Place, float] = {}
    for number, table in enumerate(tables):
        level, margin = opened.levels.index(table.level), opened.margin(table.margin)
        if margin not in margins:
            raise SpecError(
                f"{field}[{number}].margin", "is published nowhere; name a published margin"
            )
        if (level, margin) in opened.facts:
            raise SpecError(f"{field}[{number}]", "its numbers are declared; leave it out")
        place = level, margins.index(margin)
        if place in shares:
            # Two names of one table, such as a grouping of one class and the total.
            raise SpecError(f"{field}[{number}]", "has the cells of an earlier table; keep one")
        shares[place] = float(table.share)
    return shares


def _text(opened: OpenTabulation, place: Place) -> str:
    table = named(opened, place)
    return f"{table.text} of {opened.levels[table.level]}"
