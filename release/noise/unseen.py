"""What a run decides before it opens a table: guarantees and mechanisms.

Everything here follows from the spec and the public files that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from release.noise.cache import DesignCache
from release.noise.processes import FanOut
from release.noise.refusal import Made
from release.noise.shares import Designs, Shared, share_budget
from release.noise.stage import Moved, Refusing, design_all, unwatched
from release.queries.registry import global_sensitivity, sensitivity_without_data, statistic_of
from release.spec.load import SpecFile
from release.spec.query import Query
from release.spec.shares import seeking
from release.tabulations.strategy.chosen import choose_tables

if TYPE_CHECKING:
    from release.tabulations.strategy.strategy import Choice


@dataclass(frozen=True)
class Unseen:
    """What is decided of a spec before any table is opened.

    Attributes:
        spec_file: the spec, in which every query and every measured table has a guarantee.
        designs: the mechanisms that are found for a whole budget, by the name of the query.
        shared: how the budget is shared out.
        choices: the strategies of each tabulation, by its name.
        standing_in: for queries whose mechanism depends on the table, one for every table.
    """

    spec_file: SpecFile
    designs: Designs
    shared: Shared
    choices: Mapping[str, Choice]
    standing_in: Designs = field(default_factory=dict)

    @classmethod
    def of(cls, spec_file: SpecFile) -> Unseen:
        """A spec of which nothing is decided yet."""
        return cls(spec_file, {}, Shared(spec_file, {}), {})

    @property
    def has_shares(self) -> bool:
        """Whether a budget is to be shared out."""
        return self.spec_file.spec.is_shared or bool(seeking(self.spec_file.spec))

    def found(self, query: Query) -> Made | None:
        """The mechanism of a query, or the one that stands in for it; None where none is found."""
        return (self.standing_in if query.is_empirical else self.designs).get(query.name)


def share_out(unseen: Unseen, cache: DesignCache | None, gap: Fraction) -> Unseen:
    """Share the budget out among the queries.

    Raises:
        SpecError: it cannot be shared as declared.
        BudgetError: the declared guarantees leave nothing to share.
        DesignError: a mechanism cannot be proved.
    """
    shared = share_budget(unseen.spec_file, cache, gap)
    return Unseen(shared.spec_file, shared.designs, shared, {})


def measure_tables(unseen: Unseen) -> Unseen:
    """Choose what tabulations measure, and how.

    Raises:
        SpecError: a tabulation cannot be measured as it is declared.
        DesignError: a mechanism cannot be proved.
    """
    chosen = choose_tables(unseen.spec_file)
    designs = {**unseen.designs, **chosen.designs}
    return Unseen(chosen.spec_file, designs, unseen.shared, chosen.choices)


def find_unseen(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> Unseen:
    """Find how queries and tabulations share the budget.

    Raises:
        SpecError, BudgetError, DesignError: as :func:`share_out` and :func:`measure_tables`.
    """
    unseen = Unseen.of(spec_file)
    if unseen.has_shares:
        unseen = share_out(unseen, cache, gap)
    if unseen.spec_file.tabulations:
        unseen = measure_tables(unseen)
    return unseen


def design_every(
    unseen: Unseen,
    cache: DesignCache | None,
    gap: Fraction,
    watch: Callable[[Query], None] = unwatched,
    fan_out: FanOut | None = None,
    refusing: Refusing = nullcontext,
) -> Unseen:
    """Add the mechanism of every query; of one that depends on the table, that of any table.

    ``watch`` is called for the others, each before its design. Each query is designed within
    ``refusing``: where that goes on after a refusal, the query has no mechanism.

    Raises:
        DesignError: a mechanism cannot be proved, or a run does not publish it.
    """
    spec_file = unseen.spec_file
    asked: list[tuple[Query, Moved]] = []
    for query in spec_file.spec.charged:
        # Without a guarantee the budget could not be shared out, which is refused already.
        if query.is_empirical or query.guarantee is None:
            continue
        found = unseen.designs.get(query.name)
        if found is not None:
            asked.append((query, found))
        elif query.is_on_statistic:
            asked.append((query, statistic_of(spec_file.spec, query)))
        else:
            asked.append((query, sensitivity_without_data(spec_file.spec, query)))
    designs = design_all(asked, spec_file, cache, gap, watch, fan_out, refusing=refusing)
    standing_in = {}
    for query in spec_file.spec.charged:
        if query.is_empirical and query.guarantee is not None:
            with refusing():
                standing_in[query.name] = _for_any_table(spec_file, query, cache, gap)
    return replace(unseen, designs=designs, standing_in=standing_in)


def _for_any_table(
    spec_file: SpecFile, query: Query, cache: DesignCache | None, gap: Fraction
) -> Made:
    """The mechanism of an instance-specific query for all that its declaration allows.

    It takes the place of what is found for a table where that cannot be proved, so that no refusal
    depends on the table. A spec for which there is none is refused. No gap is accepted of it.

    Raises:
        DesignError: none can be proved.
    """
    # Nothing of a table is in it, so that it may be cached and compared like a worst-case one.
    rows = spec_file.spec.rows_per_unit(query)
    most = global_sensitivity(spec_file.spec, query, rows)
    return design_all([(query, most)], spec_file, cache, gap, is_judged=False)[query.name]
