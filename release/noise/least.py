"""The least ε or δ of a query at a stated loss (Kadam et al. 2024, (15)), found before a run.

The spec states the largest ε and δ that the query may claim, which of the two is to be least, and a
cap on the expected loss. What is found is a multiple of a hundredth of ε or of a thousandth of δ at
which the mechanism of the run meets the cap; less is excluded by a bound, or was tried
(:mod:`release.noise.search`). Only the spec decides, so that the guarantee tells of no table.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from release.errors import DesignError
from release.exact.numbers import format_up
from release.exact.privacy import Guarantee
from release.noise.cache import DesignCache
from release.noise.families import AnyDesign
from release.noise.search import Trial, least, trial_of
from release.noise.stage import Problem, problem_of, solution_of
from release.queries.registry import sensitivity_without_data
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.query import Query
from release.spec.shares import seeking, target_of, with_found

STEPS = {"epsilon": 100, "delta": 1000}
"""Steps to a unit of ε and of δ."""

_NEVER = Fraction(10**40)


def with_least(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> SpecFile:
    """The spec in which each query that asks for the least ε or δ claims it.

    Raises:
        DesignError: even the largest that the spec allows does not meet the target.
    """
    guarantees = {}
    for query in seeking(spec_file.spec):
        guarantees[query.name] = _least_of(spec_file, query, cache, gap)
    if not guarantees:
        return spec_file
    return replace(spec_file, spec=with_found(spec_file.spec, guarantees))


def _least_of(
    spec_file: SpecFile, query: Query, cache: DesignCache | None, gap: Fraction
) -> GuaranteeSpec:
    stated = query.guarantee
    if stated is None or stated.least is None:
        raise TypeError(f"{query.name} does not seek the least")
    name: str = stated.least
    cap = target_of(f"{spec_file.spec.place_of(query)}.target", query).cap
    most = getattr(stated, name)
    sensitivity = sensitivity_without_data(spec_file.spec, query)

    def at(steps: int) -> GuaranteeSpec:
        # δ begins at 0. The largest that is allowed need not be a multiple of a step.
        value = min(most, Fraction(steps - (name == "delta"), STEPS[name]))
        return stated.model_copy(update={name: value})

    def trial(steps: int) -> Trial[AnyDesign | str]:
        problem = problem_of(
            spec_file, query.model_copy(update={"guarantee": at(steps)}), sensitivity
        )
        if not isinstance(problem, Problem):
            raise TypeError(f"{query.name} has noise on its statistic")
        try:
            design = solution_of(problem, cache, gap)
        except (DesignError, ValueError) as error:
            # As a loss, not as an error: the search goes on to guarantees that can be satisfied.
            return Trial(_NEVER, _NEVER, str(error))
        if design.mechanism.is_constant():
            return Trial(_NEVER, _NEVER, "the best mechanism publishes the same answer always")
        tried = trial_of(design)
        return Trial(tried.loss, tried.floor, design)

    steps = int(-(-most * STEPS[name] // 1)) + (name == "delta")
    best = least(trial, steps, cap)
    if best.loss > cap or isinstance(best.result, str):
        raise DesignError(_refusal(query, name, most, best))
    return stated.model_copy(update={name: _value(best.result.guarantee, name)})


def _value(guarantee: Guarantee, name: str) -> Fraction:
    return guarantee.epsilon if name == "epsilon" else guarantee.delta


def _refusal(query: Query, name: str, most: Fraction, best: Trial[AnyDesign | str]) -> str:
    why = best.result if isinstance(best.result, str) else f"the loss is {format_up(best.loss, 6)}"
    return (
        f"query {query.name}: no {name} up to {format_up(most, 6)} meets {query.target}: {why}; "
        "raise one of them"
    )
