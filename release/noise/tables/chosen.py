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
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.noise.shares import on_integers
from release.noise.tables.estimable import Estimability
from release.noise.tables.measured import Strategy
from release.noise.tables.publication import Publication
from release.noise.tables.publication import Table as Place
from release.noise.tables.strategy import Choice, choose_strategy
from release.queries.tabulations.table_count import TableCount, table_count
from release.spec.declarations import Relation
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.tabulations.model import PinnedTable
from release.spec.tabulations.opened import NamedMargin, OpenTabulation, Table


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
    spec, step = spec_file.spec, release_step(spec_file)
    choices: dict[str, Choice] = {}
    designs: dict[str, AnyDesign | StatisticDesign] = {}
    measured: list[TableCount] = []
    for number, opened in enumerate(spec_file.tabulations):
        choice = choices[opened.name] = strategies_of(spec_file, number)
        delta = opened.declared.guarantee_of_all(spec.budget).delta
        for place, noise in sorted(choice.best.noises.items()):
            query = table_count(opened, named(opened, place), None)
            design = designs[query.name] = on_integers(spec_file, query, noise, step, delta)
            # The noise decides the guarantee of one cell.
            proved = design.guarantee
            guarantee = GuaranteeSpec(
                definition=proved.definition, epsilon=proved.epsilon, delta=proved.delta
            )
            measured.append(query.model_copy(update={"guarantee": guarantee}))
    with_measured = spec.model_copy(update={"queries": [*spec.queries, *measured]})
    return Chosen(replace(spec_file, spec=with_measured), designs, choices)


def publication_of(opened: OpenTabulation, neighbors: Relation) -> Publication:
    """What the strategy of a tabulation is chosen for."""
    margins = tuple(opened_margin.margin for opened_margin in opened.margins)
    importance: dict[Place, float] = defaultdict(float)
    for opened_margin in opened.published:
        weight = opened.declared.importance.get(opened.levels[opened_margin.level], Fraction(1))
        # A margin that a level publishes by two names counts twice, as in the objective.
        importance[opened_margin.level, margins.index(opened_margin.margin)] += float(weight)
    moves = {}
    for (level, margin), most in opened.moves(neighbors is Relation.REPLACE_ONE):
        moves[level, margins.index(margin)] = most
    return Publication(opened.named.areas, margins, importance, moves)


def margins_of_error(
    opened: OpenTabulation, publication: Publication, strategy: Strategy
) -> dict[Table, float]:
    """The mean half width of the 95 % intervals of each published table, in units."""
    noises = {}
    for (level, margin), noise in strategy.noises.items():
        noises[level, publication.margins[margin]] = noise
    return {table: own.mean() for table, own in opened.half_widths(noises).items()}


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
    guarantee = opened.declared.guarantee_of_all(spec.budget)
    family = None if pinned is None else pinned.noise
    if not guarantee.delta and family == "gaussian":
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
            publication, guarantee.epsilon, guarantee.delta, family, shares, release_step(spec_file)
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
    margins = [opened_margin.margin for opened_margin in opened.margins]
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
