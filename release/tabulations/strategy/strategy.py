"""The strategy of a publication: geometric or Gaussian noise, whichever leaves less error.

Everything here follows from public structure. Both families are computed, so that both objectives
can be shown beside each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from release.errors import SpecError
from release.exact.numbers import MAX_EPSILON
from release.tabulations.strategy.estimable import Estimability
from release.tabulations.strategy.gaussian import gaussian_strategy
from release.tabulations.strategy.geometric import geometric_strategy
from release.tabulations.strategy.measured import Family, Strategy
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Publication, Table

_TOO_WIDE = "{} noise is left out: some table would need it wider than a file holds"


@dataclass(frozen=True)
class Choice:
    """The strategies of one publication and budget.

    Attributes:
        geometric: with pure noise; None where only Gaussian noise is asked for.
        gaussian: with Gaussian noise; None without δ, where only geometric noise is asked for, or
            where the noise would be too wide.
        left_out: why a kind of noise that was asked for is not there; None where none is missing.
    """

    geometric: Strategy | None
    gaussian: Strategy | None
    left_out: str | None = None

    @property
    def best(self) -> Strategy:
        """The strategy with the lower objective; geometric noise where both are equal."""
        strategies = [s for s in (self.geometric, self.gaussian) if s is not None]
        return min(strategies, key=lambda strategy: strategy.objective)


def choose_strategy(
    publication: Publication,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    family: Family | None = None,
    shares: Mapping[Table, float] | None = None,
    step: Fraction | None = None,
) -> Choice:
    """Return the best strategies that are found, or those with given shares.

    Args:
        publication: what is published.
        epsilon: of all tables together, above 0 and at most 100.
        delta: 0 for pure noise only.
        family: the only noise to consider; None for both.
        shares: a pinned strategy: the tables to measure, and how the budget is split over them, in
            any unit: the pure ε of geometric noise, the precision of Gaussian noise.
        step: the grid on which Gaussian noise is accounted for; by default that of ``epsilon``.

    Raises:
        SpecError: no table can be measured in such a way, or the pinned tables do not suffice.
    """
    if not 0 < epsilon <= MAX_EPSILON or not 0 <= delta < 1:
        raise SpecError("budget", f"found ε {epsilon}, δ {delta}; write 0 < ε ≤ 100 and 0 ≤ δ < 1")
    if family == "gaussian" and not delta:
        raise SpecError("strategy.family", "Gaussian noise needs a delta above 0, or use geometric")
    if all(publication.moves[table] == 0 for table in publication.importance):
        raise SpecError("publish", "every table is the same for all neighbors: nothing to protect")
    if shares is not None:
        _check(publication, shares)
    objective = Objective(publication)
    geometric = gaussian = left_out = None
    if family != "gaussian":
        geometric = _geometric(objective, epsilon, shares)
        if geometric is None:
            left_out = _TOO_WIDE.format("geometric")
    if delta and family != "geometric":
        gaussian = gaussian_strategy(objective, epsilon, delta, shares, step)
        if gaussian is None:
            left_out = _TOO_WIDE.format("Gaussian")
    if geometric is None and gaussian is None:
        raise SpecError("budget.epsilon", f"{epsilon} is too small for noise in 62 bits; raise it")
    return Choice(geometric, gaussian, left_out)


def _geometric(
    objective: Objective, epsilon: Fraction, shares: Mapping[Table, float] | None
) -> Strategy | None:
    try:
        return geometric_strategy(objective, epsilon, shares)
    except ValueError:
        return None


def _check(publication: Publication, shares: Mapping[Table, float]) -> None:
    """Refuse pinned shares from which not every published table can be estimated."""
    for table, share in sorted(shares.items()):
        if table not in publication.moves:
            raise SpecError("strategy", f"{table} is no table of this publication")
        if not share > 0:
            raise SpecError("strategy", f"{_name(publication, table)} needs a share above 0")
        if not publication.moves[table]:
            raise SpecError(
                "strategy", f"{_name(publication, table)} is free without noise; leave it out"
            )
    missing = Estimability(publication).missing(shares)
    if missing:
        raise SpecError(
            "strategy",
            f"{_name(publication, missing[0])} does not follow from the measured tables; "
            "measure it, or a table that it is a sum of",
        )


def _name(publication: Publication, table: Table) -> str:
    level, margin = table
    return f"margin {margin + 1} of level {publication.areas.levels[level]}"
