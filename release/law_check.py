"""Proving one law file: the integers against the promise, in exact arithmetic.

Everything the file says of itself is computed again: δ under both definitions, the objective, the
accuracy. Only a lower bound marked as the solver's stays its word.
"""

from __future__ import annotations

from fractions import Fraction

from release.agreement import accuracy_of, epsilon_everywhere, loss_of
from release.errors import VerificationError
from release.exact import format_exact, format_up, parse_exact
from release.guarantee import Definition, Differences, Guarantee, deltas
from release.log import LawRecord
from release.spec import Query, answer_domain

MAX_WORK = 10**9
"""Elements times differences of a law; beyond it a check would take minutes."""

MAX_TOTAL_DIGITS = 78


def expect(file: str, check: str, found: object, expected: object) -> None:
    """Refuse what was found unless it is what was expected."""
    if found != expected:
        raise VerificationError(file, check, shown(found), shown(expected))


def shown(value: object) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def check_law(file: str, record: LawRecord, query: Query) -> Differences:
    """Prove one law file against the query of the spec; its differences.

    Raises:
        VerificationError: not a law, not the promise of the spec, or a promise it does not keep.
    """
    domain = answer_domain(query)
    work = domain.size * max(1, len(record.differences))
    if work > MAX_WORK or len(record.total) > MAX_TOTAL_DIGITS:
        raise VerificationError(
            file, "size", f"{work} comparisons", f"at most {MAX_WORK}, totals below 2^256"
        )
    expect(file, "query", record.query, query.name)
    expect(file, "group", tuple(record.group), domain.group.moduli)
    expect(file, "directed", record.directed, False)
    try:
        law, differences = record.to_law(), record.to_differences()
        closed = Differences.of(domain.group, differences.shifts)
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "weights", str(error), "a law") from error
    expect(file, "differences (closed, sorted, without zero)", differences, closed)
    promised = query.promised
    expect(file, "definition", record.guarantee.definition, promised.definition.value)
    expect(file, "epsilon", record.guarantee.epsilon, format_exact(promised.epsilon))
    expect(file, "delta", record.guarantee.delta, format_exact(promised.delta))
    guarantee = Guarantee(
        Definition(record.guarantee.definition),
        parse_exact(record.guarantee.epsilon),
        parse_exact(record.guarantee.delta),
    )
    found = deltas(law, differences, guarantee.epsilon)
    kept = found.under(guarantee.definition)
    if not kept <= guarantee.delta:
        raise VerificationError(
            file, "δ", format_up(kept, 12), f"at most {format_exact(guarantee.delta)}"
        )
    if law.mass(0) == 1:
        raise VerificationError(file, "weights", "no noise at all", "a law with noise")
    loss = loss_of(query)
    objective, bound = loss.of(law), Fraction(record.design.lower_bound)
    expect(file, "design.loss", record.design.loss, loss.name)
    expect(file, "design.objective", record.design.objective, format_up(objective, 18))
    expect(file, "accuracy", record.accuracy, accuracy_of(law, domain.parts))
    if bound > objective:
        raise VerificationError(file, "design.lower_bound", str(bound), "at most the objective")
    said = record.recomputed
    expect(file, "delta_probabilistic", Fraction(said.delta_probabilistic), found.probabilistic)
    expect(file, "delta_approximate", said.delta_approximate, format_up(found.approximate, 60))
    expect(file, "epsilon_all_differences", said.epsilon_all_differences, epsilon_everywhere(law))
    return differences
