"""The charges of a release: how many cells one unit can touch, and the sum of all charges.

Where the spec composes exactly, the total of the public queries is that of their privacy profiles
(:mod:`release.budget.composed`). Otherwise, and for queries whose mechanism depends on the table,
charges add up.

Basic composition (rule "basic-v1"), in exact rationals: ε and δ of everything that can depend on
one unit add up. It holds for pure and approximate guarantees, and for probabilistic ones too: the
sum of two privacy losses exceeds ε₁+ε₂ only if one of them exceeds its own ε.

A unit lies in the cells that its rows name. Its fixed keys never vary, so it touches at most as
many cells as there are combinations of the free keys, as it has rows, and as
``max_cells_per_unit`` says. A replaced unit can leave that many cells and enter as many others, but
never more than the free combinations: its fixed keys stay (docs/privacy.md, rule 3). A changed
attribute can select other rows, so it counts as a replacement. A per-unit answer is one cell. A
curator's own SQL statement may let a unit touch every cell.

The noise of some mechanisms loses in proportion to the change that it hides: a part of the change a
part of ε. What one unit moves in all cells together then decides the charge, which is less than
that of all cells where the rows of a unit are shared out among them.

A public mechanism is charged the δ that it satisfies, which may be less than the claimed one; one
that depends on the table is charged as declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Protocol, TypeAlias

from release.budget.composed import Together, step_for, step_of_budget
from release.budget.entries import Spent
from release.errors import BudgetError
from release.exact.numbers import format_exact, format_up
from release.exact.privacy import Definition, Deltas, Guarantee
from release.queries.registry import rows_read, spreads_of
from release.spec.declarations import Relation
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.model import Spec
from release.spec.query import Query


@dataclass(frozen=True)
class Charge:
    """The charge of one query, of which a unit touches ``cells``."""

    cells: int
    epsilon: Fraction
    delta: Fraction

    @property
    def parallel(self) -> bool:
        """Whether one unit touches one cell only, so that the cells compose in parallel."""
        return self.cells == 1

    def why(self, claimed: Fraction, unit: str) -> str | None:
        """Why it is not the ``claimed`` ε of one cell; None where it is. ``unit`` is the word."""
        if self.epsilon == claimed:
            if self.parallel:
                return None
            return (
                f"charged once, not for {self.cells} cells: in all of them together one {unit} "
                "moves the sums as far as in one"
            )
        if self.epsilon == self.cells * claimed:
            return f"charged {self.cells} times: one {unit} may count in {self.cells} cells"
        return (
            f"charged {format_exact(self.epsilon / claimed)} times, not for {self.cells} cells: "
            f"in all of them together one {unit} moves the sums so many times as far as in one"
        )


@dataclass(frozen=True)
class Charges:
    """The charges of a release, query by query, and their sum."""

    queries: tuple[Charge, ...]
    epsilon: Fraction
    delta: Fraction
    definition: Definition
    step: Fraction | None = None
    """The grid of the profiles, where they compose exactly."""


def touched_cells(spec_file: SpecFile, query: Query) -> int:
    """An upper bound on the cells of ``query`` that can differ between neighboring tables."""
    # Mathematics, 2.18: one answer for each unit is one cell, and a statement of the
    # curator's own may touch every cell.
    if query.for_units:
        return 1
    if query.runs_again:
        return spec_file.cells(query.by)
    free, at_once = free_cells(spec_file, query), cells_at_once(spec_file, query)
    if spec_file.spec.privacy.neighbors is Relation.ADD_REMOVE:
        return at_once
    # Both the cells that the unit leaves and those that it enters can differ.
    return min(free, 2 * at_once)


def moved_together(spec_file: SpecFile, query: Query) -> Fraction:
    """What one unit moves in all cells together, at most, in units of the most in one cell.

    At most :func:`touched_cells`, and 1 or more.
    """
    # Mathematics, 2.18. The rows of a unit move no more together than each of them alone, and no
    # cell more than all of them would.
    touched = Fraction(touched_cells(spec_file, query))
    spreads = spreads_of(spec_file.spec, query)
    if spreads is None:
        return touched
    rows = rows_read(spec_file.spec, query)
    together = min(cells_at_once(spec_file, query) * spreads.alone, rows * spreads.row)
    if spec_file.spec.privacy.neighbors is not Relation.ADD_REMOVE:
        # One unit leaves its cells, and another one enters as many.
        together *= 2
    return min(touched, Fraction(together, spreads.neighbors))


def proportional_part(spec_file: SpecFile, query: Query) -> Fraction:
    """What noise that loses in proportion is charged, as a part of what other noise is."""
    return moved_together(spec_file, query) / touched_cells(spec_file, query)


def free_cells(spec_file: SpecFile, query: Query) -> int:
    """In how many cells any rows of one unit can lie: the combinations of its free keys."""
    if query.own_cells is not None:
        return query.own_cells
    fixed = spec_file.spec.privacy.fixed
    return spec_file.cells(column for column in query.by if column not in fixed)


def cells_at_once(spec_file: SpecFile, query: Query) -> int:
    """In how many of them one unit can lie at the same time."""
    free, most = free_cells(spec_file, query), spec_file.spec.privacy.max_cells_per_unit
    return min(free, rows_read(spec_file.spec, query), most or free)


@dataclass(frozen=True)
class Satisfied:
    """What the mechanism of a public query satisfies: its δ, and whether it loses in proportion.

    For public mechanisms only, which follow from the spec: another charge would tell of the table.
    """

    delta: Fraction
    in_proportion: bool = False


class Proved(Protocol):
    """A mechanism with its proofs: a design, or the file of one."""

    @property
    def deltas(self) -> Deltas:
        """Its exact δ at the claimed ε."""
        ...

    @property
    def loses_in_proportion(self) -> bool:
        """Whether a part of the change of one cell loses no more than that part of ε."""
        ...


Kept: TypeAlias = Mapping[str, Satisfied]
"""What the mechanisms of public queries satisfy, by the name of the query."""

_PLACES = 12


def satisfied(
    spec_file: SpecFile, query: Query, proved: Proved, claimed: Guarantee | GuaranteeSpec
) -> Satisfied:
    """What a proved mechanism satisfies of the ``claimed`` guarantee; its δ is rounded up."""
    delta = proved.deltas.under(claimed.definition)
    kept = min(claimed.delta, Fraction(format_up(delta, _PLACES)))
    # A comparison of masses: left out where it changes no charge.
    decides = proportional_part(spec_file, query) < 1
    return Satisfied(kept, decides and proved.loses_in_proportion)


def charge_of(
    spec_file: SpecFile,
    query: Query,
    claimed: Guarantee | GuaranteeSpec,
    kept: Satisfied | None = None,
) -> Charge:
    """The charge of one query, whatever the cap is; ``kept`` is what its mechanism satisfies.

    Without it, as for instance-specific queries, every cell is charged the claimed guarantee.
    """
    cells = touched_cells(spec_file, query)
    if kept is None:
        return Charge(cells, cells * claimed.epsilon, cells * claimed.delta)
    times = moved_together(spec_file, query) if kept.in_proportion else cells
    return Charge(cells, times * claimed.epsilon, cells * kept.delta)


def least_charges(spec_file: SpecFile) -> Charges:
    """The least that the release can charge, before its mechanisms are known.

    Raises:
        BudgetError: even that exceeds the budget of the spec.
    """
    public = [query.name for query in spec_file.spec.charged if not query.is_empirical]
    return charges(spec_file, dict.fromkeys(public, Satisfied(Fraction(0), in_proportion=True)))


def charges(
    spec_file: SpecFile, kept: Kept | None = None, together: Together | None = None
) -> Charges:
    """The charges of the release, refused where their sum exceeds the budget of the spec.

    A query that is not in ``kept`` is charged what it claims. Where the spec composes
    exactly, ``together`` holds the profiles of all public queries; without it these count for
    nothing.

    Raises:
        BudgetError: the sum exceeds the budget of the spec.
    """
    spec = spec_file.spec
    queries = tuple(
        charge_of(spec_file, query, query.claimed, (kept or {}).get(query.name))
        for query in spec.charged
    )
    exactly, total = spec.composes_exactly, total_of(spec, queries, together)
    _check_cap("epsilon", total.epsilon, spec.budget.epsilon)
    _check_cap("delta", total.delta, spec.budget.delta)
    if together is not None:
        _check_tabulations(spec, queries, together)
    definition = _definition(spec_file, queries)
    if total.delta and exactly:
        definition = Definition.APPROXIMATE
    step = release_step(spec_file) if exactly else None
    return Charges(queries, total.epsilon, total.delta, definition, step)


def _check_tabulations(spec: Spec, queries: Sequence[Charge], together: Together) -> None:
    """Hold what each tabulation measures against the guarantee that it declares for all of it."""
    names, charges_of_public = [], []
    for query, charge in zip(spec.charged, queries, strict=True):
        if not query.is_empirical:
            names.append(query.tabulation)
            charges_of_public.append(charge)
    # The profiles are those of the public queries, in their order.
    public = list(zip(names, charges_of_public, together.profiles, strict=True))
    for place, tabulation in enumerate(spec.tabulations):
        guarantee = tabulation.guarantee
        if guarantee is None:
            continue
        profiles, own_charges = [], []
        for name, charge, profile in public:
            if name == tabulation.name:
                profiles.append(profile)
                own_charges.append(charge)
        composed = Together(together.step, tuple(profiles))
        spent = composed.total(guarantee.delta, _sum(own_charges))
        if spent.epsilon > guarantee.epsilon or spent.delta > guarantee.delta:
            raise BudgetError(
                f"tabulations[{place}].guarantee: its tables charge {format_exact(spent.epsilon)}, "
                f"δ {format_exact(spent.delta)}; raise it"
            )


def total_of(spec: Spec, queries: Sequence[Charge], together: Together | None = None) -> Spent:
    """The total of the charges of all released queries by the rule of the spec, whatever the cap.

    ``together`` is as in :func:`charges`.
    """
    return _composed(spec, queries, together) if spec.composes_exactly else _sum(queries)


def release_step(spec_file: SpecFile) -> Fraction:
    """The grid on which a release composes exactly; it follows from the spec."""
    spec = spec_file.spec
    public = [query for query in spec.released if not query.is_empirical]
    cells = sum(map(partial(touched_cells, spec_file), public))
    # Everything that decides the grid is public, so that a verifier finds the same one
    # (docs/design/format.md, 4.1).
    is_replaced = spec.privacy.neighbors is Relation.REPLACE_ONE
    # Of all tables that could be measured, so that the grid is known before any is chosen.
    for opened in spec_file.tabulations:
        for _, most in opened.moves(is_replaced):
            cells += most
    if spec_file.tabulations or any(query.is_shared for query in public):
        return step_of_budget(spec.budget.epsilon, cells)
    charged = _sum([charge_of(spec_file, query, query.claimed) for query in public])
    cap = min(spec.budget.epsilon, charged.epsilon or spec.budget.epsilon)
    return step_for((query.claimed.epsilon for query in public), cap, cells)


def _composed(spec: Spec, queries: Sequence[Charge], together: Together | None) -> Spent:
    """The public queries composed exactly, and the charges of the others added to that."""
    declared: list[Charge] = []
    public: list[Charge] = []
    for query, charge in zip(spec.charged, queries, strict=True):
        (declared if query.is_empirical else public).append(charge)
    added = _sum(declared)
    if together is None:
        return added
    # The profiles are read at what the declared charges leave of δ (mathematics, 2.31).
    delta = max(Fraction(0), spec.budget.delta - added.delta)
    return together.total(delta, _sum(public)) + added


def _sum(queries: Sequence[Charge]) -> Spent:
    epsilon = sum((charge.epsilon for charge in queries), Fraction(0))
    delta = sum((charge.delta for charge in queries), Fraction(0))
    return Spent(epsilon, delta)


def _check_cap(name: str, total: Fraction, cap: Fraction) -> None:
    if total > cap:
        raise BudgetError(
            f"budget.{name}: the queries charge {format_exact(total)}, the cap is "
            f"{format_exact(cap)}; lower guarantees, or declare fixed keys, or raise the cap"
        )


def _definition(spec_file: SpecFile, charged: Sequence[Charge]) -> Definition:
    """The strongest definition that all queries satisfy."""
    # The rule of docs/design/format.md, 4.1: the weakest definition that is used.
    used = set()
    for query, charge in zip(spec_file.spec.charged, charged, strict=True):
        # With δ = 0 all three definitions are pure differential privacy.
        used.add(query.claimed.definition if charge.delta else Definition.PURE)
    for definition in (Definition.APPROXIMATE, Definition.PROBABILISTIC):
        if definition in used:
            return definition
    return Definition.PURE
