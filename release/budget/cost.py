"""What a release costs: how many cells one unit can touch, and the sum of all charges.

Basic composition (rule "basic-v1"), in exact rationals: ε and δ of everything that can depend on
one unit add up. It holds for pure and approximate guarantees, and for probabilistic ones too: the
sum of two privacy losses exceeds ε₁+ε₂ only if one of them exceeds its own ε.

A unit lies in the cells that its rows name. It has one fixed part, so it can touch at most as many
cells as there are free parts, as it has rows, and as ``max_cells_per_unit`` says. A replaced unit
can leave that many cells and enter as many others, though never more than there are free parts: its
fixed part stays (docs/privacy.md, rule 3). A changed attribute can lead to other rows being read,
so it counts as a replacement. A unit's own value is one cell, whatever the others are; a statement
of the curator's own may let a unit touch every cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from release.errors import BudgetError
from release.exact.numbers import format_exact
from release.exact.privacy import Definition, Guarantee
from release.queries.registry import rows_read
from release.spec.declarations import Relation
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.model import Query, SqlQuery, answers_for_units


@dataclass(frozen=True)
class Charge:
    """The charge of one query: ``cells`` times the guarantee of one cell."""

    cells: int
    epsilon: Fraction
    delta: Fraction

    @property
    def parallel(self) -> bool:
        """Whether one unit touches one cell only, so that the cells compose in parallel."""
        return self.cells == 1


@dataclass(frozen=True)
class Charges:
    """The charges of a release, query by query, and their sum."""

    queries: tuple[Charge, ...]
    epsilon: Fraction
    delta: Fraction
    definition: Definition


def touched_cells(spec_file: SpecFile, query: Query) -> int:
    """How many cells of ``query`` can differ between neighbors, at most."""
    privacy = spec_file.spec.privacy
    if answers_for_units(query):
        return 1
    if isinstance(query, SqlQuery):
        return prod(len(spec_file.keys[column]) for column in query.by)
    free = prod(len(spec_file.keys[c]) for c in query.by if c not in privacy.fixed)
    at_once = min(free, rows_read(spec_file.spec, query), privacy.max_cells_per_unit or free)
    if privacy.neighbors is Relation.ADD_REMOVE:
        return at_once
    return min(free, 2 * at_once)


def charge_of(spec_file: SpecFile, query: Query, promised: Guarantee | GuaranteeSpec) -> Charge:
    """What one query charges for a promise, whatever the cap is."""
    cells = touched_cells(spec_file, query)
    return Charge(cells, cells * promised.epsilon, cells * promised.delta)


def charges(spec_file: SpecFile) -> Charges:
    """The charges of the release; a release over its budget does not get further.

    Raises:
        BudgetError: the sum exceeds the budget of the spec.
    """
    spec = spec_file.spec
    found = [charge_of(spec_file, query, query.promised) for query in spec.released]
    epsilon = sum((charge.epsilon for charge in found), Fraction(0))
    delta = sum((charge.delta for charge in found), Fraction(0))
    for name, asked, cap in (
        ("epsilon", epsilon, spec.budget.epsilon),
        ("delta", delta, spec.budget.delta),
    ):
        if asked > cap:
            raise BudgetError(
                f"budget.{name}: the queries charge {format_exact(asked)}, the cap is "
                f"{format_exact(cap)}; lower guarantees, or declare fixed keys, or raise the cap"
            )
    if delta >= 1:
        raise BudgetError("budget.delta: the queries charge 1 or more, which promises nothing")
    return Charges(tuple(found), epsilon, delta, _definition(spec_file))


def _definition(spec_file: SpecFile) -> Definition:
    """The strongest definition that all queries keep."""
    used = {
        query.promised.definition if query.promised.delta else Definition.PURE
        for query in spec_file.spec.released
    }
    for definition in (Definition.APPROXIMATE, Definition.PROBABILISTIC):
        if definition in used:
            return definition
    return Definition.PURE
