"""What a query asks of its noise beyond guarantee and loss: prior, worst case, constraints.

A prior or the worst true answer changes which mechanism loses least, and a constraint which pmfs
are allowed. Parameters fix numbers of a paper's noise. All of it is public, and none of it enters
the guarantee: that is proved on the integers that are published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from release.errors import SpecError, unknown_name
from release.exact.channel import MOST_ROWS
from release.exact.losses import COST_POWERS, LossName, prior_loss
from release.exact.numbers import parse_exact
from release.spec.guarantees import Objective
from release.spec.mechanisms import BEST, MECHANISMS
from release.spec.named import by_name
from release.spec.query import Query

ZERO_MEAN, MONOTONE, MEAN_SQUARE, EQUAL = "zero_mean", "monotone", "mean_square", "equal"

_FORMS = 'zero_mean, monotone, "mean_square <= 4" or "equal 1 -1"'
# Seven digits: modular noise has a weight for each answer, of which there are 10^6 at most.
_EQUAL = re.compile(r"equal( -?[0-9]{1,7}){2,100}")
_MEAN_SQUARE = re.compile(r"mean_square *<= *(\S+)")


@dataclass(frozen=True)
class Demand:
    """A constraint on the pmf of modular noise (Kadam et al. 2024, footnote 4), as it is written.

    ``noise`` are the values of ``equal``; ``cap`` is that of ``mean_square``.
    """

    kind: str
    noise: tuple[int, ...] = ()
    cap: Fraction = Fraction(0)


def demand_of(field: str, text: str) -> Demand:
    """The constraint in a text; ``field`` is where it was written.

    Raises:
        SpecError: the text is none.
    """
    if text in (ZERO_MEAN, MONOTONE):
        return Demand(text)
    if _EQUAL.fullmatch(text):
        return Demand(EQUAL, tuple(map(int, text.split()[1:])))
    capped = _MEAN_SQUARE.fullmatch(text)
    if capped is None:
        raise SpecError(field, f"found {text[:60]!r}; write {_FORMS}")
    try:
        return Demand(MEAN_SQUARE, cap=parse_exact(capped[1]))
    except ValueError as error:
        raise SpecError(field, f"found {capped[1][:60]!r}; {error}") from None


def demands_of(query: Query) -> tuple[Demand, ...]:
    """The constraints of a query of a spec that was checked."""
    return tuple(demand_of("constraints", text) for text in query.constraints)


def check_demands(at: str, query: Query) -> None:
    """Refuse what does not go with the answers, the loss or the mechanism.

    Raises:
        SpecError: it does not; the message names the field below ``at``.
    """
    stated = {
        "parameters": query.parameters,
        "prior": query.prior,
        "constraints": query.constraints,
        "objective": query.objective is not Objective.MEAN,
    }
    demanded = list(filter(stated.get, stated))
    if not demanded:
        _check_needed(at, query)
        return
    if query.guarantee is None or query.is_on_statistic:
        raise SpecError(
            f"{at}.{demanded[0]}",
            "is for noise on the answer with a guarantee of its own; leave it out",
        )
    if len(query.answers.parts) > 1 and set(demanded) - {"parameters"}:
        raise SpecError(f"{at}.{demanded[-1]}", "is for a query of one part; leave it out")
    _check_parameters(f"{at}.parameters", query)
    _check_prior(f"{at}.prior", query)
    _check_objective(f"{at}.objective", query)
    _check_constraints(f"{at}.constraints", query)
    _check_needed(at, query)


def _check_needed(at: str, query: Query) -> None:
    entry = MECHANISMS.get(query.mechanism)
    if entry is not None and entry.needs_prior and query.prior is None:
        raise SpecError(f"{at}.prior", f"missing; {entry.name!r} needs the pmf of true answers")


def _check_parameters(at: str, query: Query) -> None:
    entry = MECHANISMS.get(query.mechanism)
    parameters = entry.parameters if entry is not None else ()
    known = by_name(parameters)
    for name, value in query.parameters.items():
        if not known:
            raise SpecError(at, f"{query.mechanism!r} has none; leave it out")
        if name not in known:
            raise SpecError(f"{at}.{name[:60]}", unknown_name(name, known))
        try:
            known[name].check(value)
        except ValueError as error:
            raise SpecError(f"{at}.{name}", str(error)) from None


def _check_prior(at: str, query: Query) -> None:
    if query.prior is None:
        return
    size = query.answers.size
    if query.objective is not Objective.MEAN:
        raise SpecError(at, "the worst case has no prior; keep one of prior and objective")
    if not isinstance(query.loss, LossName):
        raise SpecError(at, "a table of costs is the same at every true answer; leave it out")
    if size > MOST_ROWS or len(query.prior) != size:
        most = f"; a prior takes at most {MOST_ROWS:,}" if size > MOST_ROWS else ""
        raise SpecError(at, f"{len(query.prior)} probabilities for {size} answers{most}")
    # For its refusals: what is no pmf, or has too large a denominator, is refused before a run.
    try:
        prior_loss(query.loss, query.answers.parts[0].topology, tuple(query.prior))
    except ValueError as error:
        raise SpecError(at, str(error)) from None


def _check_objective(at: str, query: Query) -> None:
    if query.objective is Objective.MEAN:
        return
    if not isinstance(query.loss, LossName) or query.loss not in COST_POWERS:
        raise SpecError(at, "worst_case needs the loss error_rate, absolute or squared")
    # The costs at the worst true answer are a table of answers by noise values; other mechanisms
    # than modular noise compute them without it.
    wraps = query.mechanism != BEST and MECHANISMS[query.mechanism].can_wrap
    if wraps and query.answers.has_order and query.answers.size > MOST_ROWS:
        raise SpecError(at, f"worst_case reaches {MOST_ROWS:,} answers of {query.mechanism}")


def _check_constraints(at: str, query: Query) -> None:
    if not query.constraints:
        return
    if query.mechanism != "modular":
        raise SpecError(at, "shape the pmf of modular noise; write mechanism: modular")
    size = query.answers.size
    for place, text in enumerate(query.constraints):
        demand = demand_of(f"{at}[{place}]", text)
        # Modulo the number of answers it would be another noise value, or the same one twice.
        if max(map(abs, demand.noise), default=0) >= size:
            raise SpecError(f"{at}[{place}]", f"noise is within ±{size - 1}; name such values")
