"""Plans with noise on the statistic, and the other noise of a query beside its own, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from release.budget.cost import Charge, charge_of, proportional_part, satisfied
from release.bundle.answer_units import answer_unit
from release.bundle.statements import accuracy_of
from release.errors import DesignError, SpecError
from release.exact.domain import Topology
from release.exact.statistics.nearness import Nearness
from release.exact.statistics.statistic import Statistic
from release.noise.families import Solvers
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.noise.select import choose
from release.noise.stage import asked_of
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import check_mechanism
from release.queries.registry import global_sensitivity, statistic_of
from release.spec.guarantees import Source
from release.spec.load import SpecFile
from release.spec.mechanisms import BEST
from release.spec.query import Noise, Query

_MOST_COMPARED = 10_000
"""Noise on the answer is designed beside it for up to so many answers."""


@dataclass(frozen=True)
class StatisticPlan:
    """A query with noise on its statistic: how near its answers are, and what it costs."""

    query: OnStatisticQuery
    statistic: Statistic
    design: StatisticDesign
    nearness: Nearness
    cells: int
    charge: Charge
    beside: str | None = None
    """What noise on the answer would give, in a sentence; None where that is not tried."""


@dataclass(frozen=True)
class OnStatisticInstead:
    """What a query with noise on the answer would be with noise on its statistic.

    ``changes`` are those to make in the spec: the path of a field and its value, None to take it
    out. ``planned`` is None where a bound is ``missing`` that nothing public suggests.
    """

    changes: tuple[tuple[str, Any], ...]
    planned: StatisticPlan | None
    missing: str = ""

    @property
    def sentence(self) -> str:
        """What to write, and how near the answers are then."""
        if self.planned is None:
            return f"noise: on_statistic is not compared: {self.missing}"
        written = []
        for path, value in self.changes:
            if value is not None:
                written.append(f"{path.rpartition('.')[2]}: {value}")
        return f"with {' and '.join(written)}, {self.planned.nearness.sentence}"


def plan_on_statistic(
    spec_file: SpecFile, query: OnStatisticQuery, design: StatisticDesign | None = None
) -> StatisticPlan:
    """The plan of one query; nothing but the spec and its key sets is read.

    ``design`` is its mechanism, where that is known already.

    Raises:
        DesignError: no mechanism satisfies the claimed guarantee.
    """
    statistic = statistic_of(spec_file.spec, query)
    claimed = query.claimed.to_guarantee()
    part = proportional_part(spec_file, query)
    design = design or design_on_statistic(statistic, query.mechanism, claimed, part)
    kept = satisfied(spec_file, query, design, design.guarantee)
    return StatisticPlan(
        query,
        statistic,
        design,
        design.mechanism.nearness(query.wording),
        spec_file.cells(query.by),
        # The δ of a statistic is 0, which may be less than the spec allows.
        charge_of(spec_file, query, query.claimed, kept),
    )


def nearness_by_epsilon(
    spec_file: SpecFile, query: OnStatisticQuery, epsilons: Sequence[Fraction]
) -> dict[str, list[Nearness | None]]:
    """For each mechanism that can answer, how near it is at each ε; None where there is none."""
    statistic, claimed = statistic_of(spec_file.spec, query), query.claimed.to_guarantee()
    nearness: dict[str, list[Nearness | None]] = {}
    for name in statistic.families:
        nearness[name] = []
        for epsilon in epsilons:
            try:
                design = design_on_statistic(statistic, name, replace(claimed, epsilon=epsilon))
                nearness[name].append(design.mechanism.nearness(query.wording))
            except DesignError:
                nearness[name].append(None)
    return nearness


def noise_on_answer(spec_file: SpecFile, query: OnStatisticQuery, solvers: Solvers) -> str | None:
    """What noise on the answer would give in place of that on the statistic; None if not tried."""
    # The time of a design grows with the number of answers, and this one is for a sentence.
    if not query.has_answer_noise or query.answers.size > _MOST_COMPARED:
        return None
    update = {"noise": Noise.ON_ANSWER, "mechanism": BEST}
    instead = query.model_copy(update=update)
    rows = spec_file.spec.rows_per_unit(query)
    sensitivity = global_sensitivity(spec_file.spec, instead, rows)
    # What the sentence names has to be a spec that would be read: model_copy validates nothing.
    try:
        check_mechanism("queries", instead)
        design = choose(asked_of(instead, sensitivity), BEST, solvers)
    except (DesignError, SpecError):
        return None
    accuracy = accuracy_of(design.mechanism, query.answers)
    sentence = (
        "noise: on_answer would publish the true answer in "
        f"{100 * float(accuracy.p_exact):.3g} of 100 cases"
    )
    # Categories have no distances, so that "off" would mean nothing.
    if query.answers.topology is not Topology.NOMINAL:
        unit = answer_unit(query)
        sentence += f", and be {float(accuracy.mean_absolute) * unit.scale:.3g} {unit.word} off"
    return f"{sentence} on average, whatever the table is"


def noise_on_statistic(spec_file: SpecFile, query: Query) -> OnStatisticInstead | None:
    """What noise on the statistic would give in place of that on the answer.

    None where the query has no statistic, or no such noise satisfies its guarantee. Such noise is
    proved for every table, so that an empirical sensitivity is changed with it.
    """
    if not isinstance(query, OnStatisticQuery) or query.is_on_statistic:
        return None
    at = spec_file.spec.place_of(query)
    update: dict[str, Any] = {"noise": Noise.ON_STATISTIC, "mechanism": BEST}
    changes: list[tuple[str, Any]] = [(f"{at}.noise", Noise.ON_STATISTIC.value)]
    if query.sensitivity is not Source.GLOBAL:
        update["sensitivity"] = Source.GLOBAL
        changes.append((f"{at}.sensitivity", Source.GLOBAL.value))
    # A spec that names a loss beside noise on the statistic is refused.
    if "loss" in query.model_fields_set:
        changes.append((f"{at}.loss", None))
    if query.mechanism != BEST:
        changes.append((f"{at}.mechanism", BEST))
    try:
        needed = query.fields_on_statistic(spec_file.spec.rows_per_unit(query))
    except ValueError as error:
        return OnStatisticInstead((), None, str(error))
    changes += [(f"{at}.{name}", value) for name, value in needed.items()]
    try:
        planned = plan_on_statistic(spec_file, query.model_copy(update=update | needed))
    except DesignError:
        return None
    return OnStatisticInstead(tuple(changes), planned)
