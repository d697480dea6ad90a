"""Plans the cost and the accuracy of a release before anything confidential is read.

A plan uses the spec alone. Under global or declared sensitivity it is exact: the sensitivity, the
choice of mechanism and its pmf are those of the release. Empirical sensitivity is unknown before
the table is read, so the plan shows two cases: answers move by one step (or to any category), which
is common but not the least possible, and by the most that the declaration allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from release.budget.composed import Together
from release.budget.cost import Charge, charge_of, proportional_part, satisfied, total_of
from release.budget.profiles import Made, published_profiles
from release.bundle.acceptance import Judged, judged
from release.bundle.answer_units import AnswerUnit, answer_unit
from release.bundle.cautions import cautions
from release.bundle.statements import Accuracy, accuracy_of
from release.errors import SpecError
from release.exact.accuracy import error_at_ends, far_error, loss_of_guess, losses_where, radius_of
from release.exact.composition.dominance import profile_of_losses
from release.exact.composition.profile import Profile
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName, WorstCaseLoss
from release.exact.numbers import format_exact
from release.noise.cache import DesignCache
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.on_statistic import StatisticDesign
from release.noise.processes import FanOut
from release.noise.refusal import refusal
from release.noise.select import best_of, candidates, choose, compare, family_of, fitting
from release.noise.shown import table_html
from release.noise.stage import Problem, asked_of
from release.noise.unseen import Unseen, find_unseen
from release.planning.on_statistic import (
    OnStatisticInstead,
    StatisticPlan,
    noise_on_answer,
    noise_on_statistic,
    plan_on_statistic,
)
from release.planning.totals import TogetherPlan
from release.queries.on_statistic import OnStatisticQuery
from release.queries.registry import global_sensitivity, sensitivity_without_data
from release.queries.sensitivity import seen_sensitivity
from release.spec.mechanisms import BEST, MECHANISMS
from release.spec.query import Query
from release.spec.refusals.unfinished import TODO, unfinished
from release.tabulations.planning.plan import TabulationPlan, plan_tabulations

if TYPE_CHECKING:
    import pandas as pd

    from release.spec.load import SpecFile

ONE_STEP, MOST_ALLOWED = "one step", "most allowed"


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a query, and the accuracy of an answer under a uniform prior.

    ``within`` is the least w for which an answer is at most w codes off in 95 of 100 cases; None
    where the answers have no distances. ``ends`` is the mean absolute error, in codes, where the
    true answer is the lowest and where it is the highest, which no mean over all answers shows;
    None where the answers have no order. ``objective`` is the expected value of the spec's loss.
    """

    mechanism: str
    design: AnyDesign
    accuracy: Accuracy
    within: int | None
    ends: tuple[Fraction, Fraction] | None
    losses: tuple[Fraction, Fraction, Fraction] | None = None
    """The expected loss at the lowest, the highest and the worst true answer."""
    far: tuple[int, Fraction] | None = None
    """A large error in codes, and the chance of a larger one (module accuracy)."""
    guess: float | None = None
    """The expected loss of a guess without the table."""

    @property
    def is_hardly_more_than_noise(self) -> bool:
        """Whether the answer saves less than a fifth of what a guess loses."""
        return self.guess is not None and float(self.objective) > 0.8 * self.guess

    @property
    def hidden_by_means(self) -> dict[str, Any]:
        """What a mean over all true answers hides, as floats in codes; None where nothing is."""
        lowest = highest = worst = None
        if self.losses is not None:
            lowest, highest, worst = map(float, self.losses)
        large, chance = self.far or (None, None)
        return {
            "loss_at_lowest": lowest,
            "loss_at_highest": highest,
            "loss_at_worst": worst,
            "large_error": large,
            "chance_of_larger": None if chance is None else float(chance),
            "hardly_more_than_noise": self.is_hardly_more_than_noise,
        }

    @property
    def objective(self) -> Fraction:
        """The expected loss."""
        objective: Fraction = self.design.objective
        return objective

    def errors_in(self, unit: AnswerUnit) -> tuple[str, str, str, str]:
        """Mean error, error at the lowest and the highest true answer, and ``within``, as text."""
        mean = at_lowest = at_highest = within = "-"
        # Categories are right or wrong: they have no distances, and the share of exact answers
        # says it all.
        if self.within is not None:
            mean = unit.amount(Fraction(self.accuracy.mean_absolute))
            within = f"±{unit.amount(self.within)}"
        if self.ends is not None:
            at_lowest, at_highest = map(unit.amount, self.ends)
        return mean, at_lowest, at_highest, within


@dataclass(frozen=True)
class Compared:
    """The mechanism of a problem, the others beside it, and why some could not be made."""

    chosen: Candidate
    others: tuple[Candidate, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class QueryPlan:
    """A query under one sensitivity; ``assumed`` names the case where that is empirical."""

    query: Query
    asked: Asked
    assumed: str | None
    cells: int
    charge: Charge
    chosen: Candidate
    others: tuple[Candidate, ...]
    failed: tuple[tuple[str, str], ...]
    instead: OnStatisticInstead | None = None
    """What it would be with noise on its statistic, in the first of its cases."""


def _charged(charge: Charge) -> str:
    delta = f", δ {format_exact(charge.delta)}" if charge.delta else ""
    return f"ε {format_exact(charge.epsilon)}{delta}"


SHORT = ("query", "cells", "noise", "95 in 100 within", "charge")
"""The columns of the short table of a plan."""


@dataclass(frozen=True, repr=False)
class Plan:
    """All queries of a spec, and what they charge together by the rule of the spec.

    ``queries`` have their noise on the answer; the others are ``on_statistic``.
    """

    spec_file: SpecFile
    """The spec, in which a query with a share or a target has the guarantee that was found."""
    queries: tuple[QueryPlan, ...]
    on_statistic: tuple[StatisticPlan, ...]
    epsilon: Fraction
    delta: Fraction
    unfinished: tuple[str, ...] = ()
    composed: Together | None = None
    """The profiles of the public queries, where the spec composes exactly."""
    recommendations: tuple[str, ...] = ()
    """Changes that would save more than half of a loss (:mod:`release.planning.recommend`)."""
    use_of_budget: str | None = None
    """What part of the budget shares and targets use, and why not more."""
    together: TogetherPlan | None = None
    """What the public queries amount to together (:mod:`release.planning.together`)."""
    tabulations: tuple[TabulationPlan, ...] = ()
    """The tables of counts that add up, and what is measured for them."""

    acceptance: tuple[Judged, ...] = ()
    """The entries of ``acceptance`` with their figures."""

    unseen: Unseen | None = None
    """What a run decides of the spec before it opens a table."""

    def __repr__(self) -> str:
        """The release, and what it costs of its caps."""
        return f"<plan of {self.spec_file.spec.release.id}: {self._costs}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each question, and why a run would be refused."""
        title = f"{self.spec_file.spec.release.id}: {self._costs}"
        notes = [
            f"{planned.query.name}: {planned.nearness.sentence}" for planned in self.on_statistic
        ]
        notes += [f"caution: {text}" for text in self.cautions]
        if self.is_over:
            notes.append("a run would be refused: the charges exceed the budget")
        notes += [f"a run would be refused: {text}" for text in self.refusals]
        return table_html(title, SHORT, self.short_rows(), notes)

    def short_rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """A row for each question, under :data:`SHORT`."""
        for planned in self.queries:
            name = planned.query.name
            if planned.assumed:
                name += f" ({planned.assumed})"
            near = planned.chosen.errors_in(answer_unit(planned.query))[-1]
            if planned.chosen.within is None:
                near = f"right in {100 * float(planned.chosen.accuracy.p_exact):.3g} of 100"
            charge = _charged(planned.charge)
            yield name, f"{planned.cells:,}", planned.chosen.mechanism, near, charge
        for own in self.on_statistic:
            near, charge = own.nearness.short, _charged(own.charge)
            yield own.query.name, f"{own.cells:,}", own.design.name, near, charge

    @property
    def _costs(self) -> str:
        caps = f"of ε = {format_exact(self.cap_epsilon)}, δ = {format_exact(self.cap_delta)}"
        return f"ε = {format_exact(self.epsilon)}, δ = {format_exact(self.delta)} {caps}"

    @property
    def cap_epsilon(self) -> Fraction:
        """The cap of the spec on ε."""
        return self.spec_file.spec.budget.epsilon

    @property
    def cap_delta(self) -> Fraction:
        """The cap of the spec on δ."""
        return self.spec_file.spec.budget.delta

    @property
    def public(self) -> tuple[Made, ...]:
        """The queries whose mechanism follows from the spec, with that and their sensitivity."""
        return _public(self.queries, self.on_statistic, self.tabulations)

    def profile(self) -> Profile:
        """The privacy profile of the whole release, for a slot of a ledger's plan.

        Raises:
            SpecError: a query is instance-specific, and has none.
        """
        for planned in self.queries:
            if planned.query.is_empirical:
                place = self.spec_file.spec.place_of(planned.query)
                raise SpecError(f"{place}.sensitivity", "a profile needs sensitivity: global")
        return profile_of_losses(published_profiles(self.spec_file, self.public).losses)

    @property
    def is_over(self) -> bool:
        """Whether a run would be refused for its budget."""
        return self.epsilon > self.cap_epsilon or self.delta > self.cap_delta

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why a run would be refused, apart from its budget.

        Unfinished fields, poor mechanisms, and entries of ``acceptance`` that are missed.
        """
        reasons = [f"{field}: says {TODO}; write what is meant" for field in self.unfinished]
        for planned in self.queries:
            # An assumed sensitivity is not the table's, so a run may decide otherwise.
            if planned.assumed is None:
                reason = refusal(planned.query, planned.chosen.design)
                if reason is not None:
                    reasons.append(reason)
        reasons += [entry.refusal for entry in self.acceptance if not entry.is_met]
        return tuple(reasons)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a curator should know before a release: :mod:`release.bundle.cautions`."""
        return cautions(self.spec_file.spec, self.epsilon, self.delta)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each candidate mechanism of each query, the chosen one first.

        Then a row for each table of each tabulation (:class:`TabulationPlan`).

        Errors are in codes of the answers, ε and δ as floats for reading, never for proofs.
        """
        import pandas as pd

        rows = []
        for planned in self.queries:
            for candidate in (planned.chosen, *planned.others):
                lowest, highest = candidate.ends or (None, None)
                rows.append(
                    {
                        "query": planned.query.name,
                        "assumed": planned.assumed,
                        "mechanism": candidate.mechanism,
                        "taken": candidate is planned.chosen,
                        "cells": planned.cells,
                        "answers": planned.asked.domain.size,
                        "p_exact": float(candidate.accuracy.p_exact),
                        "mean_error": float(candidate.accuracy.mean_absolute),
                        "at_lowest": None if lowest is None else float(lowest),
                        "at_highest": None if highest is None else float(highest),
                        "within_95": candidate.within,
                        "loss": float(candidate.objective),
                        **candidate.hidden_by_means,
                        "charge_epsilon": float(planned.charge.epsilon),
                        "charge_delta": float(planned.charge.delta),
                    }
                )
        for statistic in self.on_statistic:
            rows.append(
                {
                    "query": statistic.query.name,
                    "mechanism": statistic.design.name,
                    "taken": True,
                    "cells": statistic.cells,
                    "answers": statistic.query.answers.size,
                    "nearness": statistic.nearness.sentence,
                    "charge_epsilon": float(statistic.charge.epsilon),
                    "charge_delta": float(statistic.charge.delta),
                }
            )
        for tabulation in self.tabulations:
            rows += tabulation.rows()
        return pd.DataFrame(rows)


def make_plan(
    spec_file: SpecFile,
    solvers: Solvers | None = None,
    cache: DesignCache | None = None,
    drop_one: FanOut | None = None,
    *,
    is_compared: bool = True,
) -> Plan:
    """The plan of a spec. Nothing but the spec and its public files is read.

    The tables that tabulations measure are chosen first. A budget that is shared out is shared
    next; ``cache`` serves the mechanisms it needs for that. ``drop_one`` is as in
    :func:`release.tabulations.planning.plan.plan_tabulations`. Where ``is_compared`` is false, no
    mechanism is designed that a run would not publish.

    Raises:
        SpecError: a tabulation cannot be measured as it is declared.
        BudgetError: the budget cannot meet a target, or leaves nothing for the shares.
        DesignError: a query for which no mechanism satisfies the claimed guarantee.
    """
    solvers = solvers or Solvers()
    # Marks are looked for in what was written: a measured table has no text of the curator's.
    marked = unfinished(spec_file.spec)
    unseen = find_unseen(spec_file, cache, solvers.gap)
    tabulations = plan_tabulations(unseen, drop_one)
    shares, spec_file = unseen.shared, unseen.spec_file
    plans: list[QueryPlan] = []
    on_statistic: list[StatisticPlan] = []
    charges: list[Charge] = []
    # Queries that ask alike are compared once.
    compared: dict[object, Compared] = {}
    for query in spec_file.spec.released:
        design = shares.designs.get(query.name)
        if isinstance(query, OnStatisticQuery) and query.is_on_statistic:
            shared = design if isinstance(design, StatisticDesign) else None
            planned = plan_on_statistic(spec_file, query, shared)
            beside = noise_on_answer(spec_file, query, solvers) if is_compared else None
            on_statistic.append(replace(planned, beside=beside))
            charges.append(on_statistic[-1].charge)
            continue
        plans += _cases(spec_file, query, design, solvers, compared, is_compared=is_compared)
        # Once a query: both cases of an empirical sensitivity are charged alike.
        charges.append(plans[-1].charge)
    # As in the spec: what tabulations measure comes after all written queries.
    for tabulation in tabulations:
        charges += [measured.charge for measured in tabulation.measured]
    spec, together = spec_file.spec, None
    public = _public(plans, on_statistic, tabulations)
    if spec.composes_exactly and public:
        together = published_profiles(spec_file, public)
    total = total_of(spec, charges, together)
    mechanisms = {query.name: mechanism for query, mechanism, _ in public}
    return Plan(
        spec_file,
        tuple(plans),
        tuple(on_statistic),
        total.epsilon,
        total.delta,
        marked,
        together,
        tabulations=tabulations,
        acceptance=judged(spec_file, mechanisms),
        unseen=unseen,
    )


def _cases(
    spec_file: SpecFile,
    query: Query,
    design: AnyDesign | StatisticDesign | None,
    solvers: Solvers,
    compared: dict[object, Compared],
    *,
    is_compared: bool,
) -> Iterator[QueryPlan]:
    """Each case of a query; ``compared`` has what queries before it asked, and is added to."""
    for assumed, request in possible(spec_file, query):
        if design is None or isinstance(design, StatisticDesign):
            problem = Problem(request, query.mechanism, query.is_empirical)
            key = problem.key
            if key not in compared:
                compared[key] = _compared(problem, solvers, is_compared=is_compared)
            found = compared[key]
        else:
            found = Compared(candidate(design, request.domain))
        yield _planned(spec_file, query, assumed, request, found)


def _public(
    plans: Sequence[QueryPlan],
    on_statistic: Sequence[StatisticPlan],
    tabulations: Sequence[TabulationPlan],
) -> tuple[Made, ...]:
    public: list[Made] = []
    # Instance-specific mechanisms follow from the table: nothing of a plan may rest on them.
    for planned in plans:
        if not planned.query.is_empirical:
            mechanism = planned.chosen.design.mechanism
            public.append((planned.query, mechanism, planned.asked.sensitivity))
    for statistic in on_statistic:
        public.append((statistic.query, statistic.design.mechanism, None))
    for tabulation in tabulations:
        public += [measured.made for measured in tabulation.measured]
    return tuple(public)


def possible(spec_file: SpecFile, query: Query) -> Iterator[tuple[str | None, Asked]]:
    """The design requests of a query: one, or under empirical sensitivity that of each case.

    Raises:
        SpecError: its noise is on the statistic, so that no mechanism on answers is asked for; or
            it has no guarantee yet.
    """
    check_not_shared(spec_file, query)
    if query.is_on_statistic:
        raise SpecError(
            f"{spec_file.spec.place_of(query)}.noise",
            "is on the statistic; plan says how near its answers are; here write noise: on_answer",
        )
    if not query.is_empirical:
        sensitivity = sensitivity_without_data(spec_file.spec, query)
        yield None, asked_of(query, sensitivity, proportional_part(spec_file, query))
        return
    # Shifts of 0 alone, in place of those of a table: the function adds the least steps to them.
    least = seen_sensitivity(np.zeros(1, dtype=np.int64), query.answers)
    rows = spec_file.spec.rows_per_unit(query)
    most = global_sensitivity(spec_file.spec, query, rows)
    yield ONE_STEP, asked_of(query, least)
    if most.shifts != least.shifts or most.distances != least.distances:
        yield MOST_ALLOWED, asked_of(query, most)


def check_not_shared(spec_file: SpecFile, query: Query) -> None:
    """Refuse a query whose guarantee is still to be found, where one query alone is in question.

    Raises:
        SpecError: it has a share or a target, and no guarantee yet.
    """
    if query.guarantee is None and query.is_shared:
        field = "share" if query.share is not None else "target"
        raise SpecError(
            f"{spec_file.spec.place_of(query)}.{field}",
            "is met by noise made for the whole budget, which plan shows; here write a guarantee",
        )


def _compared(problem: Problem, solvers: Solvers, *, is_compared: bool) -> Compared:
    request = problem.asked
    if not is_compared:
        return Compared(candidate(mechanism_of(problem, solvers), request.domain))
    # A paper's noise is shown where the spec names it, or by ``compare``.
    names = [name for name in fitting(request) if MECHANISMS[name].law is None]
    designs, failed = compare(request, solvers, names)
    chosen = mechanism_of(problem, solvers, designs)
    others = []
    for design in sorted(designs.values(), key=lambda design: design.objective):
        if design.name != chosen.name:
            others.append(candidate(design, request.domain))
    return Compared(candidate(chosen, request.domain), tuple(others), tuple(failed))


def _planned(
    spec_file: SpecFile, query: Query, assumed: str | None, request: Asked, found: Compared
) -> QueryPlan:
    # Once a query, and only where it has a guarantee of its own.
    is_compared = assumed != MOST_ALLOWED and not query.is_shared
    return QueryPlan(
        query,
        request,
        assumed,
        spec_file.cells(query.by),
        charge_with(spec_file, query, found.chosen.design),
        found.chosen,
        found.others,
        found.failed,
        noise_on_statistic(spec_file, query) if is_compared else None,
    )


def charge_with(spec_file: SpecFile, query: Query, chosen: AnyDesign) -> Charge:
    """What a query is charged with this mechanism, at the guarantee that it was made for."""
    # Another charge than the declared one would tell of the table (docs/design/format.md, 3.5).
    kept = None
    if not query.is_empirical:
        kept = satisfied(spec_file, query, chosen, chosen.guarantee)
    return charge_of(spec_file, query, chosen.guarantee, kept)


def mechanism_of(
    problem: Problem, solvers: Solvers, designs: dict[str, AnyDesign] | None = None
) -> AnyDesign:
    """The mechanism that the release will use; ``designs`` are those solved already."""
    designs, request = designs or {}, problem.asked
    # A choice among designs for an empirical sensitivity would publish, by the mechanism's name,
    # something of the table: there the name follows from public parameters.
    name = family_of(request, problem.mechanism, is_empirical=problem.is_empirical)
    if designs and name == BEST:
        return best_of(request, designs)
    return designs.get(name) or choose(request, name, solvers)


def candidate(design: AnyDesign, domain: AnswerDomain | JointDomain) -> Candidate:
    """A mechanism with its accuracy."""
    mechanism, loss = design.mechanism, design.loss
    name = LossName(loss.name) if isinstance(loss, Loss) and loss.is_named else None
    return Candidate(
        design.name,
        design,
        accuracy_of(mechanism, domain),
        radius_of(mechanism, domain),
        error_at_ends(mechanism, domain),
        None if isinstance(loss, WorstCaseLoss) else losses_where(mechanism, domain, loss),
        far_error(mechanism, domain) if isinstance(domain, AnswerDomain) else None,
        loss_of_guess(name, domain) if name and isinstance(domain, AnswerDomain) else None,
    )


def without_baselines(query: Query, request: Asked, solvers: Solvers) -> AnyDesign:
    """The mechanism that the release would use; no baseline is solved, for none is better."""
    if query.mechanism != BEST or query.is_empirical:
        return mechanism_of(Problem(request, query.mechanism, query.is_empirical), solvers)
    # A split asks for a design at every ε of its grid: those that cannot win are left out.
    names = [name for name in candidates(request) if not MECHANISMS[name].is_baseline]
    designs, failures = compare(request, solvers, names)
    return best_of(request, designs, failures)
