"""Which mechanism answers a query: all that fit it, compared on what is public.

``best`` takes the mechanism that loses least under the spec's own loss and a uniform prior over the
answers, and its notes say what the others lose. Only public things enter: the declared domain, the
guarantee, the loss, and differences that follow from the declaration. Of differences seen in a
table nothing may show in the choice, because the mechanism's name is public: there the domain, the
loss and the guarantee alone decide.

On answers in order, modular noise can publish the one end of the domain for the other. A mean over
all true answers hides that, so ``best`` never takes it there: the spec has to name it.

On answers without an order (circles, categories), no mechanism loses less than the best modular
noise where the guarantee is pure or approximate: the mean of a mechanism's translates satisfies
what it satisfies, loses as much, and is modular (docs/design/mathematics.md). For a probabilistic
δ > 0 that does not hold, and the bound is one of modular noise only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from release.errors import DesignError
from release.exact.domain import JointDomain
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers, family_at
from release.spec.mechanisms import BEST, MECHANISMS, chosen_unseen

WRAPS = (
    "only modular noise is left for these answers, which can publish the one end of an order for "
    "the other; write mechanism: modular to accept that"
)


def choose(asked: Asked, mechanism: str = BEST, solvers: Solvers | None = None) -> AnyDesign:
    """The mechanism that the spec names, or the best of all that fit; proved.

    Raises:
        DesignError: it cannot satisfy the guarantee.
    """
    solvers = solvers or Solvers()
    if mechanism != BEST:
        return family_at(mechanism).design(mechanism, asked, solvers)
    designs, failures = compare(asked, solvers, tuple(candidates(asked)))
    return best_of(asked, designs, failures)


def best_of(
    asked: Asked, designs: dict[str, AnyDesign], failures: Sequence[tuple[str, str]] = ()
) -> AnyDesign:
    """The candidate of ``designs`` that loses least, with the bound that holds for all.

    Raises:
        DesignError: there is none; ``failures`` say why.
    """
    eligible = [designs[name] for name in candidates(asked) if name in designs]
    if not eligible:
        raise DesignError(failures[0][1] if failures else WRAPS)
    ranked = sorted(eligible, key=lambda design: design.objective)
    winner = ranked[0]
    bounding = next((d for d in ranked if family_at(d.name).bounds(asked)), None)
    return replace(
        winner,
        is_named=False,
        lower_bound=Fraction(0)
        if bounding is None
        else min(bounding.lower_bound, winner.objective),
        bound_proved=bounding is None or bounding.bound_proved,
        notes=(*winner.notes, _comparison(ranked)),
        compared=tuple((design.name, design.objective) for design in ranked),
    )


def family_of(asked: Asked, mechanism: str, *, is_empirical: bool) -> str:
    """The name of the mechanism to design, which the spec gives, or ``best``.

    Under empirical sensitivity ``best`` is resolved from public parameters only.

    Raises:
        DesignError: ``best`` would be modular noise on answers in order.
    """
    if mechanism != BEST or not is_empirical:
        return mechanism
    name = chosen_unseen(asked.domain, asked.loss_name, asked.guarantee)
    if name is None:
        raise DesignError(WRAPS)
    return name


def compare(
    asked: Asked, solvers: Solvers, names: Sequence[str] | None = None
) -> tuple[dict[str, AnyDesign], list[tuple[str, str]]]:
    """The design of each mechanism that fits, by name, and why some have none.

    Of ``names`` where they are given.
    """
    designs: dict[str, AnyDesign] = {}
    failures = []
    for name in fitting(asked):
        if names is not None and name not in names:
            continue
        try:
            designs[name] = family_at(name).design(name, asked, solvers)
        except DesignError as error:
            failures.append((name, str(error)))
    return designs, failures


def candidates(asked: Asked) -> Iterator[str]:
    """The mechanisms that ``best`` may take."""
    for name in fitting(asked):
        if not (asked.wraps and MECHANISMS[name].can_wrap):
            yield name


def fitting(asked: Asked) -> Iterator[str]:
    """The mechanisms that can answer the query, those that only a spec may name among them."""
    for name, entry in MECHANISMS.items():
        if entry.is_baseline and isinstance(asked.domain, JointDomain):
            continue
        if entry.needs_order and not asked.is_line:
            continue
        if entry.needs_epsilon and not asked.guarantee.epsilon:
            continue
        if entry.needs_delta and not asked.guarantee.delta:
            continue
        if family_at(name).fits(name, asked):
            yield name


def _comparison(ranked: Sequence[AnyDesign]) -> str:
    """Which mechanism won, and by how much."""
    first = ranked[0]
    losses = ", ".join(f"{design.name} {_short(design.objective)}" for design in ranked)
    told = f"best of {len(ranked)} by {first.loss.name} loss: {losses}"
    if len(ranked) == 1 or first.objective == 0:
        return told
    second = ranked[1]
    times = second.objective / first.objective
    share = "as much as" if times < 1 + Fraction(1, 10**5) else f"{float(times):.5g} times what"
    return f"{told}; the next, {second.name}, loses {share} {first.name} loses"


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"
