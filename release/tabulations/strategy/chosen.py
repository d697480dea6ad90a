"""Chooses how each tabulation is measured, before any table is opened.

Everything here follows from the spec and its public files. The chosen tables stand in the spec from
then on like queries, each with the guarantee of one cell and its mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from release.budget.cost import release_step
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.noise.shares import on_integers
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.tabulations.measure.table_count import TableCount, table_count
from release.tabulations.strategy.opened import named
from release.tabulations.strategy.strategies import strategies_of
from release.tabulations.strategy.strategy import Choice


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
