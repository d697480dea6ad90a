"""Which mechanism answers a query: all that fit it, compared on public parameters.

``best`` takes the mechanism with the least expected loss under the loss function of the spec and a
uniform prior over the answers, or one that is simpler and loses at most a thousandth more; its
notes give the losses of the others. Only public parameters
enter: the domain, the guarantee, the loss function, and sensitivity that follows from the spec.
Under empirical sensitivity the first three alone decide, because the mechanism's name is public.

On answers in order, modular noise can publish one end of the domain for the other. A mean over
all true answers hides that, so ``best`` never takes it there: the spec has to name it.

On answers without an order (circles, categories), no mechanism loses less than the best modular
noise where the guarantee is pure or approximate: the mean of a mechanism's translates satisfies
what it satisfies, loses as much, and is modular (docs/design/mathematics.md). For a probabilistic
δ > 0 that does not hold, and the bound is one of modular noise only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from release.errors import DesignError
from release.exact.domain import JointDomain
from release.noise.design import GAIN, Asked
from release.noise.families import AnyDesign, Solvers, family_at
from release.noise.solvers.on_integers import in_proportion
from release.records.notes import ranking
from release.spec.mechanisms import BEST, MECHANISMS, chosen_unseen

WRAPS = (
    "only modular noise is left for these answers, which can publish the one end of an order for "
    "the other; write mechanism: modular to accept that"
)


def choose(question: Asked, mechanism: str = BEST, solvers: Solvers | None = None) -> AnyDesign:
    """The mechanism that the spec names, or the best of all that fit; proved.

    Raises:
        DesignError: it cannot satisfy the guarantee.
    """
    solvers = solvers or Solvers()
    if mechanism != BEST:
        return family_at(mechanism).design(mechanism, question, solvers)
    designs, failures = compare(question, solvers, tuple(candidates(question)))
    return best_of(question, designs, failures)


def best_of(
    question: Asked, designs: dict[str, AnyDesign], failures: Sequence[tuple[str, str]] = ()
) -> AnyDesign:
    """The candidate of ``designs`` that loses least, with the bound that holds for all.

    Raises:
        DesignError: there is none; ``failures`` say why.
    """
    eligible = [designs[name] for name in candidates(question) if name in designs]
    if not eligible:
        raise DesignError(failures[0][1] if failures else WRAPS)
    # The sort is stable: of equal losses the simpler mechanism comes first.
    ranked = sorted(eligible, key=lambda design: design.objective)
    # Of mechanisms that are about as good, the simplest: the order of the registry.
    enough = ranked[0].objective / (1 - GAIN)
    winner = next(design for design in eligible if design.objective <= enough)
    notes = (*winner.notes, _comparison(winner, ranked))
    compared = tuple((design.name, design.objective) for design in ranked)
    chosen = replace(winner, is_named=False, notes=notes, compared=compared)
    # At one ε it may lose a little more, and its charge is the smaller one.
    proportional = in_proportion(question)
    if proportional is not None:
        return proportional
    if not MECHANISMS[winner.name].is_baseline:
        return chosen
    # A baseline has no bound of its own. Without a family whose bound holds for all, 0 bounds every
    # loss, and that is proved.
    for design in ranked:
        if family_at(design.name).bounds(question):
            bound = min(design.lower_bound, winner.objective)
            return replace(chosen, lower_bound=bound, bound_proved=design.bound_proved)
    return chosen


def family_of(question: Asked, mechanism: str, *, is_empirical: bool) -> str:
    """The name of the mechanism to design, which the spec gives, or ``best``.

    Under empirical sensitivity ``best`` is resolved from public parameters only.

    Raises:
        DesignError: ``best`` would be modular noise on answers in order.
    """
    if mechanism != BEST or not is_empirical:
        return mechanism
    name = chosen_unseen(question.domain, question.loss_name, question.guarantee)
    if name is None:
        raise DesignError(WRAPS)
    return name


def compare(
    question: Asked, solvers: Solvers, names: Sequence[str] | None = None
) -> tuple[dict[str, AnyDesign], list[tuple[str, str]]]:
    """The design of each mechanism that fits, by name, and the reason of each that has none.

    Without ``names`` those of :func:`fitting`.
    """
    designs: dict[str, AnyDesign] = {}
    failures = []
    for name in fitting(question) if names is None else names:
        try:
            designs[name] = family_at(name).design(name, question, solvers)
        except DesignError as error:
            # One mechanism that cannot be made is no reason to refuse the query.
            failures.append((name, str(error)))
    return designs, failures


def candidates(question: Asked) -> Iterator[str]:
    """The mechanisms that ``best`` may take."""
    for name in fitting(question):
        entry = MECHANISMS[name]
        if not (question.wraps and entry.can_wrap) and entry.law is None:
            yield name


def fitting(question: Asked) -> Iterator[str]:
    """The mechanisms that can answer the query, with those that only a spec may name."""
    for name, entry in MECHANISMS.items():
        unmet = (
            entry.is_baseline and isinstance(question.domain, JointDomain),
            entry.needs_order and not question.is_line,
            entry.needs_rows and not question.has_rows,
            entry.needs_epsilon and not question.guarantee.epsilon,
            entry.needs_delta and not question.guarantee.delta,
            entry.needs_prior and question.loss.prior is None,
        )
        if not any(unmet) and family_at(name).fits(name, question):
            yield name


def _comparison(winner: AnyDesign, ranked: Sequence[AnyDesign]) -> str:
    """Which mechanism won, and by how much."""
    losses = [(design.name, float(design.objective)) for design in ranked]
    loss = winner.loss.plain_name
    if len(ranked) == 1 or ranked[0].objective == 0:
        return ranking(loss, losses, winner.name)
    # Not ranked[1]: a simpler winner may lose a little more than the first.
    second = next(design for design in ranked if design is not winner)
    times = second.objective / winner.objective
    near = abs(times - 1) < GAIN
    return ranking(loss, losses, winner.name, second.name, 1 if near else float(times))
