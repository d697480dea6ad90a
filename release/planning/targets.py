"""The least ε or δ at which a query meets a target: a cap on an expected loss.

What is found is the least of its steps at which the mechanism of a release meets the target; steps
below it are excluded by a bound, or were tried (:mod:`release.noise.search`). Two cases are less
than that: a baseline that the spec names is fitted, and a mechanism may have a gap of more than a
hundredth. There a smaller step may do as well, but the one that is reported does meet the target.

A mechanism that publishes the same whatever the true answer is meets no target, because a run
refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from release.budget.cost import Charge, Satisfied, charge_of, satisfied
from release.errors import DesignError, SpecError
from release.exact.numbers import MAX_EPSILON, format_up
from release.exact.privacy import Definition, Guarantee
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.search import Trial, least, trial_of
from release.planning.plan import possible, without_baselines
from release.queries.read import check_mechanism
from release.spec.losses import Target
from release.spec.query import Query
from release.spec.shares import shared

if TYPE_CHECKING:
    from release.spec.load import SpecFile

EPSILON_STEPS, DELTA_STEPS = 100, 1000
"""Steps to a unit of ε and of δ."""

_NEVER = Fraction(10**40)
"""The loss of a guarantee that no mechanism satisfies or that is invalid: above every cap."""


@dataclass(frozen=True)
class Least:
    """The least ε (or δ) at which a query meets a target, with its charge and expected loss."""

    query: Query
    assumed: str | None
    guarantee: Guarantee
    objective: Fraction
    charge: Charge


def epsilon_for(
    spec_file: SpecFile, target: Target, solvers: Solvers | None = None
) -> Iterator[Least]:
    """For each query the least ε, in steps of 0.01, that meets the target at its δ.

    Raises:
        DesignError: not even ε = 100 meets it.
    """
    for search in _searches(spec_file, target, solvers):
        # Bound as a default: a closure would see the variable of the next query.
        def at(steps: int, claimed: Guarantee = search.request.guarantee) -> Guarantee:
            return replace(claimed, epsilon=Fraction(steps, EPSILON_STEPS))

        yield search.least(at, MAX_EPSILON * EPSILON_STEPS, f"epsilon up to {MAX_EPSILON}")


def delta_for(
    spec_file: SpecFile, target: Target, solvers: Solvers | None = None
) -> Iterator[Least]:
    """For each query the least δ, in steps of 0.001, that meets the target at its ε.

    Source: Kadam et al. 2024, (15). Pure guarantees are relaxed to approximate ones.

    Raises:
        DesignError: not even δ near 1 meets it.
    """
    for search in _searches(spec_file, target, solvers):
        claimed = search.request.guarantee
        is_pure = claimed.definition is Definition.PURE
        kind = Definition.APPROXIMATE if is_pure else claimed.definition

        def at(
            steps: int, epsilon: Fraction = claimed.epsilon, kind: Definition = kind
        ) -> Guarantee:
            # One step is δ = 0.
            delta = Fraction(steps - 1, DELTA_STEPS)
            return Guarantee(kind if delta else Definition.PURE, epsilon, delta)

        yield search.least(at, DELTA_STEPS, "delta below 1")


@dataclass(frozen=True)
class _Search:
    """A query with the loss of a target in place of its own."""

    spec_file: SpecFile
    query: Query
    assumed: str | None
    request: Asked
    target: Target
    solvers: Solvers

    def least(self, at: Callable[[int], Guarantee], most: int, searched: str) -> Least:
        """The least number of steps up to ``most``; ``searched`` names its guarantees.

        Raises:
            DesignError: not even ``most`` steps are enough.
        """
        cap = self.target.cap
        trial = least(lambda steps: self.trial(at, steps), most, cap)
        # The search returns its largest guarantee where none is enough.
        if trial.loss > cap or isinstance(trial.result, str):
            raise DesignError(self._refusal(trial, searched))
        design = trial.result
        charge = charge_of(self.spec_file, self.query, design.guarantee, self._kept(design))
        return Least(self.query, self.assumed, design.guarantee, design.objective, charge)

    def trial(self, at: Callable[[int], Guarantee], steps: int) -> Trial[AnyDesign | str]:
        """The mechanism of a release at these steps, or why there is none."""
        try:
            request = replace(self.request, guarantee=at(steps))
            design = without_baselines(self.query, request, self.solvers)
        except (DesignError, ValueError) as error:
            # As a loss, not as an error: the search goes on to guarantees that can be satisfied.
            return Trial(_NEVER, _NEVER, str(error))
        # Where the best is constant here, it is so for less ε and δ: it stays among the feasible.
        if not self.query.is_empirical and design.mechanism.is_constant():
            return Trial(_NEVER, _NEVER, "the best mechanism publishes the same answer always")
        trial = trial_of(design)
        return Trial(trial.loss, trial.floor, design)

    def _kept(self, design: AnyDesign) -> Satisfied | None:
        """What a public mechanism satisfies; others are charged what they claim."""
        if self.query.is_empirical:
            return None
        return satisfied(self.spec_file, self.query, design, design.guarantee)

    def _refusal(self, trial: Trial[AnyDesign | str], searched: str) -> str:
        name, loss = self.query.name, self.target.loss.value
        if isinstance(trial.result, str):
            return f"query {name}: no {searched} meets the target: {trial.result}"
        least_loss, cap = format_up(trial.loss, 6), format_up(self.target.cap, 6)
        return (
            f"query {name}: no {searched} meets {loss} <= {cap}: "
            f"at the largest it is {least_loss}; raise the cap"
        )


def _searches(spec_file: SpecFile, target: Target, solvers: Solvers | None) -> Iterator[_Search]:
    released, waiting = spec_file.spec.released, shared(spec_file.spec)
    if not released:
        raise SpecError("queries", "none; a tabulation has no target, plan shows its errors")
    if len(waiting) == len(released):
        raise SpecError(
            "queries", "get their guarantees from the whole budget; plan shows which they are"
        )
    queries = [query for query in released if not query.is_on_statistic and query not in waiting]
    if not queries:
        raise SpecError(
            "queries", "have their noise on the statistic; plan says how near their answers are"
        )
    # The target's loss is what is minimised, or a mechanism for another one would be judged by it.
    for query in queries:
        changed = query.model_copy(update={"loss": target.loss})
        check_mechanism(spec_file.spec.place_of(query), changed)
        for assumed, request in possible(spec_file, changed):
            yield _Search(spec_file, changed, assumed, request, target, solvers or Solvers())
