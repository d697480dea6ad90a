"""The design stage: a proved mechanism for each query, equal problems solved once.

Problems are independent, so that processes can solve them (:mod:`release.noise.processes`).
Empirical sensitivity is confidential, and so is a mechanism that reveals it: such problems never
enter the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from release.budget.cost import proportional_part
from release.exact.losses import LossName
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.statistic import Statistic
from release.noise.cache import DesignCache
from release.noise.design import Asked, Design
from release.noise.families import AnyDesign, Solvers
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.noise.processes import FanOut, InTurn, Refused
from release.noise.refusal import Made, accepted
from release.noise.select import choose, family_of
from release.queries.registry import sensitivity_without_data, statistic_of
from release.spec.demands import demands_of
from release.spec.load import SpecFile
from release.spec.losses import loss_of
from release.spec.query import Query


def unwatched(query: Query) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Problem:
    """The question that a mechanism answers, and whether its sensitivity is empirical."""

    asked: Asked
    mechanism: str
    is_empirical: bool

    @property
    def key(self) -> object:
        """Equal for problems with the same solution."""
        question, loss = self.asked, self.asked.loss
        # Tables of costs 1 and 1/2 have the same numerators; the file of a mechanism has its loss.
        costs = (question.loss_name, loss.name, loss.numerators.tobytes(), loss.denominator)
        demands = (loss.prior, question.parameters, question.demands)
        own = (
            question.domain.topologies,
            costs,
            demands,
            question.part,
            self.mechanism,
            self.is_empirical,
        )
        return (question.sensitivity, question.guarantee, *own)


def asked_of(query: Query, sensitivity: Sensitivity, part: Fraction = Fraction(1)) -> Asked:
    """The question that a query of the spec puts to a mechanism; ``part`` as in the question."""
    name = query.loss if isinstance(query.loss, LossName) else None
    guarantee = query.claimed.to_guarantee()
    parameters, demands = tuple(sorted(query.parameters.items())), demands_of(query)
    loss = loss_of(query)
    return Asked(query.answers, sensitivity, guarantee, loss, name, parameters, demands, part)


def solvers_of(cache: DesignCache | None, gap: Fraction) -> Solvers:
    """The solvers of programs: those of the cache, where there is one."""
    return Solvers(gap=gap) if cache is None else Solvers(cache.design, cache.channel, gap)


def solution_of(problem: Problem, cache: DesignCache | None, gap: Fraction) -> AnyDesign:
    """The mechanism of a problem.

    Raises:
        DesignError: no mechanism can be proved to satisfy the guarantee.
    """
    name = family_of(problem.asked, problem.mechanism, is_empirical=problem.is_empirical)
    # A cached mechanism outlives the run: one for confidential sensitivity must not.
    allowed = None if problem.is_empirical else cache
    return choose(problem.asked, name, solvers_of(allowed, gap))


@dataclass(frozen=True)
class StatisticProblem:
    """The question that a mechanism on a statistic answers."""

    statistic: Statistic
    mechanism: str
    guarantee: Guarantee
    part: Fraction

    @property
    def key(self) -> object:
        """Equal for problems with the same solution."""
        return (self.statistic, self.mechanism, self.guarantee, self.part)


def problem_of(
    spec_file: SpecFile, query: Query, moved: Sensitivity | Statistic
) -> Problem | StatisticProblem:
    """The problem of a query, as the spec has it."""
    part = proportional_part(spec_file, query)
    if isinstance(moved, Statistic):
        return StatisticProblem(moved, query.mechanism, query.claimed.to_guarantee(), part)
    return Problem(asked_of(query, moved, part), query.mechanism, query.is_empirical)


def solved(problem: Problem | StatisticProblem, cache: DesignCache | None, gap: Fraction) -> Made:
    """The mechanism of one problem.

    Raises:
        DesignError: no mechanism can be proved to satisfy the guarantee.
    """
    if isinstance(problem, StatisticProblem):
        asked = problem.statistic, problem.mechanism, problem.guarantee, problem.part
        return design_on_statistic(*asked)
    return solution_of(problem, cache, gap)


def design_unseen(
    spec_file: SpecFile, query: Query, cache: DesignCache | None, gap: Fraction
) -> Made:
    """The mechanism of one worst-case query, before any table is opened.

    Raises:
        DesignError: it cannot be proved, or a run does not publish it.
    """
    if query.is_on_statistic:
        statistic = statistic_of(spec_file.spec, query)
        return solved(problem_of(spec_file, query, statistic), cache, gap)
    sensitivity = sensitivity_without_data(spec_file.spec, query)
    return accepted(query, solved(problem_of(spec_file, query, sensitivity), cache, gap), gap)


Refusing: TypeAlias = Callable[[], AbstractContextManager[None]]
"""A block around the design of one query, which a refusal ends, or not."""

Moved: TypeAlias = Sensitivity | Statistic | Made
"""How far neighbors move an answer, or its statistic; or a mechanism that is found already."""


def design_all(  # noqa: PLR0913 - how each is found and judged
    asked: Iterable[tuple[Query, Moved]],
    spec_file: SpecFile,
    cache: DesignCache | None,
    gap: Fraction,
    watch: Callable[[Query], None] = unwatched,
    fan_out: FanOut | None = None,
    *,
    is_judged: bool = True,
    instead: Mapping[str, Made] | None = None,
    refusing: Refusing = nullcontext,
) -> dict[str, Made]:
    """A proved mechanism for each query, by its name; equal problems are solved once.

    ``asked`` says of each query how far neighbors move its answer, or its statistic; or it is the
    mechanism that a shared budget has given it. ``watch`` is called before each query. Where
    ``is_judged`` is false no mechanism is refused for its gap: a refusal would tell of the table.
    A query of which none can be proved takes the mechanism that ``instead`` has for it. Each query
    is designed within ``refusing``: where that goes on after a refusal, the query has none.

    Raises:
        DesignError: a mechanism could not be proved, or not to be within the accepted ``gap``.
    """
    problems: list[tuple[Query, Problem | StatisticProblem | Made]] = []
    for query, how in asked:
        if isinstance(how, Design | StatisticDesign):
            problems.append((query, how))
        else:
            problems.append((query, problem_of(spec_file, query, how)))
    on_answers: dict[object, Problem] = {}
    for _, problem in problems:
        if isinstance(problem, Problem):
            on_answers[problem.key] = problem
    # A dictionary keeps the order in which the queries come to their problems.
    distinct = list(on_answers.values())
    results = (fan_out or InTurn()).map(partial(solution_of, cache=cache, gap=gap), distinct)
    solutions: dict[object, Made | Refused] = {}
    designs: dict[str, Made] = {}
    for query, problem in problems:
        watch(query)
        with refusing():
            if isinstance(problem, Design | StatisticDesign):
                designs[query.name] = problem
                continue
            if problem.key not in solutions:
                is_on_answer = isinstance(problem, Problem)
                solutions[problem.key] = (
                    next(results) if is_on_answer else solved(problem, cache, gap)
                )
            made = solutions[problem.key]
            if isinstance(made, Refused):
                if instead is None or query.name not in instead:
                    raise made.error()
                made = instead[query.name]
            designs[query.name] = accepted(query, made, gap) if is_judged else made
    return designs
