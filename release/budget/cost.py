"""The charges of a release: how many cells one unit can touch, and the sum of all charges.

Basic composition (rule "basic-v1"), in exact rationals: ε and δ of everything that can depend on
one unit add up. It holds for pure and approximate guarantees, and for probabilistic ones too: the
sum of two privacy losses exceeds ε₁+ε₂ only if one of them exceeds its own ε.

A unit lies in the cells that its rows name. Its fixed keys never vary, so it touches at most as
many cells as there are combinations of the free keys, as it has rows, and as
``max_cells_per_unit`` says. A replaced unit can leave that many cells and enter as many others, but
never more than the free combinations: its fixed keys stay (docs/privacy.md, rule 3). A changed
attribute can select other rows, so it counts as a replacement. A per-unit answer is one cell. A
curator's own SQL statement may let a unit touch every cell.
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
from release.spec.query import Query


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
    """An upper bound on the cells of ``query`` that can differ between neighboring tables."""
    privacy = spec_file.spec.privacy
    if query.for_units:
        return 1
    if query.runs_again:
        return _combinations(spec_file, query.by)
    free = _combinations(spec_file, [column for column in query.by if column not in privacy.fixed])
    at_once = min(free, rows_read(spec_file.spec, query), privacy.max_cells_per_unit or free)
    if privacy.neighbors is Relation.ADD_REMOVE:
        return at_once
    # Both the cells that the unit leaves and those that it enters can differ.
    return min(free, 2 * at_once)


def _combinations(spec_file: SpecFile, columns: list[str]) -> int:
    return prod(len(spec_file.keys[column]) for column in columns)


def charge_of(spec_file: SpecFile, query: Query, promised: Guarantee | GuaranteeSpec) -> Charge:
    """The charge of one query for a claimed guarantee, whatever the cap is."""
    cells = touched_cells(spec_file, query)
    return Charge(cells, cells * promised.epsilon, cells * promised.delta)


def charges(spec_file: SpecFile) -> Charges:
    """The charges of the release, refused where their sum exceeds the budget of the spec.

    Raises:
        BudgetError: the sum exceeds the budget of the spec.
    """
    spec = spec_file.spec
    queries = tuple(charge_of(spec_file, query, query.promised) for query in spec.released)
    epsilon = sum((charge.epsilon for charge in queries), Fraction(0))
    delta = sum((charge.delta for charge in queries), Fraction(0))
    _check_cap("epsilon", epsilon, spec.budget.epsilon)
    _check_cap("delta", delta, spec.budget.delta)
    # An (ε, δ) guarantee with δ ≥ 1 holds for every mechanism, whatever cap the spec sets.
    if delta >= 1:
        raise BudgetError("budget.delta: the queries charge 1 or more, which guarantees nothing")
    return Charges(queries, epsilon, delta, _definition(spec_file))


def _check_cap(name: str, total: Fraction, cap: Fraction) -> None:
    if total > cap:
        raise BudgetError(
            f"budget.{name}: the queries charge {format_exact(total)}, the cap is "
            f"{format_exact(cap)}; lower guarantees, or declare fixed keys, or raise the cap"
        )


def _definition(spec_file: SpecFile) -> Definition:
    """The strongest definition that all queries satisfy."""
    used = set()
    for query in spec_file.spec.released:
        # With δ = 0 all three definitions are pure differential privacy.
        used.add(query.promised.definition if query.promised.delta else Definition.PURE)
    for definition in (Definition.APPROXIMATE, Definition.PROBABILISTIC):
        if definition in used:
            return definition
    return Definition.PURE
