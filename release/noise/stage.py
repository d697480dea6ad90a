"""The design stage: a proved mechanism for each query, equal problems solved once.

Problems are independent, so they can be handed out (:mod:`release.noise.processes`). Differences
that were seen in a table are confidential, and so is a law that shows them: such problems are kept
out of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from release.errors import DesignError
from release.exact.losses import LossName
from release.exact.numbers import format_up
from release.exact.privacy import MAX_WORK, Definition
from release.exact.sensitivity import Sensitivity
from release.noise.cache import DesignCache
from release.noise.processes import FanOut, InTurn, Refused
from release.noise.select import Asked, Chosen, Solvers, choose, family_of
from release.noise.solve import GAP
from release.noise.solvers.remapped import REMAPPED
from release.spec.load import SpecFile
from release.spec.losses import loss_of
from release.spec.model import Query, answer_domain


@dataclass(frozen=True)
class Problem:
    """What a mechanism is chosen for, and whether its differences were seen in a table."""

    asked: Asked
    mechanism: str
    seen: bool

    @property
    def key(self) -> object:
        """Equal for problems with the same solution."""
        asked = self.asked
        topologies = tuple(part.topology for part in asked.domain.parts)
        loss = (asked.loss_name, asked.loss.name, asked.loss.numerators.tobytes())
        return (asked.sensitivity, asked.guarantee, topologies, loss, self.mechanism, self.seen)


def problem_of(query: Query, found: Sensitivity) -> Problem:
    """The problem of a query, as the spec has it.

    Raises:
        DesignError: its proof is more than a verifier does.
    """
    seen = query.is_empirical
    if found.group.size * len(found.shifts) > MAX_WORK:
        told = "the seen" if seen else str(len(found.shifts))
        raise DesignError(
            f"query {query.name}: {found.group.size} answers and {told} "
            f"differences are more than a verifier checks ({MAX_WORK} pairs); declare a "
            "smaller domain"
        )
    return Problem(asked_of(query, found), query.mechanism.value, seen)


def asked_of(query: Query, sensitivity: Sensitivity) -> Asked:
    """What a mechanism is chosen for, as the spec has it."""
    name = query.loss if isinstance(query.loss, LossName) else None
    guarantee = query.promised.to_guarantee()
    return Asked(answer_domain(query), sensitivity, guarantee, loss_of(query), name)


def solvers_of(cache: DesignCache | None, gap: Fraction) -> Solvers:
    """Who solves programs: the cache where there is one."""
    return Solvers(gap=gap) if cache is None else Solvers(cache.design, cache.channel, gap)


def solved(problem: Problem, cache: DesignCache | None, gap: Fraction) -> Chosen:
    """The mechanism of a problem.

    Raises:
        DesignError: none can be proved to keep the promise.
    """
    family = family_of(problem.asked, problem.mechanism, seen=problem.seen)
    return choose(problem.asked, family, solvers_of(None if problem.seen else cache, gap))


def design_all(
    sensitivity: Sequence[Sensitivity],
    spec_file: SpecFile,
    watched: Callable[[], Iterator[Query]],
    cache: DesignCache | None,
    gap: Fraction,
    fan_out: FanOut | None = None,
) -> tuple[Chosen, ...]:
    """A proved law for each query; equal problems are solved once.

    ``watched`` gives the released queries, telling whoever watches of each.

    Raises:
        DesignError: a law could not be proved, or not to be within the ``gap`` that is accepted.
    """
    problems = [
        problem_of(query, found)
        for query, found in zip(spec_file.spec.released, sensitivity, strict=True)
    ]
    out = fan_out or InTurn()
    # In the order in which the queries come to them.
    distinct = list({problem.key: problem for problem in problems}.values())
    solve = partial(solved, cache=cache, gap=gap)
    solved_in_order = out.map(solve, distinct)
    made: dict[object, Chosen] = {}
    designs = []
    for query, problem in zip(watched(), problems, strict=True):
        key = problem.key
        if key not in made:
            result = next(solved_in_order)
            if isinstance(result, Refused):
                raise result.error()
            made[key] = result
        _check_near_enough(query, made[key], gap)
        designs.append(made[key])
    return tuple(designs)


def refusal(query: Query, made: Chosen, gap: Fraction = GAP) -> str | None:
    """Why a run does not publish this mechanism: another might lose less by more than ``gap``."""
    if made.is_within(gap):
        return None
    # Of differences that were seen nothing may show, a number least of all.
    share = format_up(made.gap / made.objective, 3)
    might = "too much" if query.is_empirical else f"up to {share}"
    accept = "--accept-gap" if query.is_empirical else f"--accept-gap {share}"
    # Where neighbors are one step apart the remapped geometric is the best of all pure channels.
    pure = made.method == REMAPPED and made.sensitivity.apart == (1,)
    weaker = pure and query.promised.definition is not Definition.PURE
    other = "choose another domain or loss"
    if weaker:
        other = "write definition: pure, which it satisfies"
    return (
        f"query {query.name}: another mechanism might save {might} of the loss of the one found "
        f"({made.method}); {other}, or accept that with {accept}"
    )


def _check_near_enough(query: Query, made: Chosen, gap: Fraction) -> None:
    told = refusal(query, made, gap)
    if told is not None:
        raise DesignError(told)
