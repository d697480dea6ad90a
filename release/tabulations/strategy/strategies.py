"""The strategies of a tabulation: those that are found, or the one that the spec pins."""

from __future__ import annotations

from collections.abc import Sequence

from release.budget.cost import release_step
from release.errors import SpecError
from release.spec.load import SpecFile
from release.tabulations.spec.model import PinnedTable
from release.tabulations.spec.opened import OpenTabulation
from release.tabulations.strategy.estimable import Estimability
from release.tabulations.strategy.opened import named, publication_of
from release.tabulations.strategy.publication import Table as Place
from release.tabulations.strategy.strategy import Choice, choose_strategy


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
    margins = opened.distinct
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
