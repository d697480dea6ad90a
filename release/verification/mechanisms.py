"""Proves one mechanism file: the integers against the claimed guarantee, in exact arithmetic.

Every figure of the file is computed again: δ under both definitions, the objective, the accuracy.
Only a lower bound that is marked as the solver's is taken from the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from release.bundle.statements import accuracy_of, epsilon_everywhere
from release.errors import VerificationError
from release.exact.bounds import Multipliers, lower_bound
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.losses import Loss, WorstCaseLoss, power_of
from release.exact.mechanism import BoundOf, Mechanism
from release.exact.numbers import format_down, format_exact, format_up
from release.exact.privacy import Deltas
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import constraints_of
from release.records.mechanisms import MechanismRecord
from release.spec.demands import demands_of
from release.spec.losses import loss_of
from release.spec.mechanisms import BEST, MECHANISMS
from release.spec.query import Query
from release.spec.shares import target_of


def expect(file: str, check: str, actual: object, expected: object) -> None:
    """Refuse an actual value that differs from the expected one."""
    if actual != expected:
        raise VerificationError(file, check, excerpt(actual), excerpt(expected))


def excerpt(value: object) -> str:
    """A value for a message, cut where it is long."""
    # repr also escapes control characters, which a hostile file could send to a terminal.
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def check_mechanism(file: str, record: MechanismRecord, query: Query) -> Sensitivity:
    """Prove one mechanism file against the query of the spec; returns its sensitivity.

    Raises:
        VerificationError: no mechanism, another mechanism or guarantee than the spec names, or a
            guarantee that it does not satisfy.
    """
    _check_named(file, record, query)
    domain = query.answers
    expect(file, "query", record.query, Path(file).stem)
    expect(file, "group", tuple(record.group), domain.group.moduli)
    mechanism, sensitivity = _parsed(file, record)
    expect(file, "answers", mechanism.answers, domain.size)
    _check_guarantee(file, record, query, mechanism, sensitivity)
    for name, computed in accuracy_of(mechanism, domain):
        stated = getattr(record.accuracy, name)
        _expect_near(file, f"accuracy.{name}", stated, Fraction(computed), mechanism.tolerance)
    loss = loss_of(query)
    try:
        objective = mechanism.objective(loss, domain)
    except ValueError as error:
        raise VerificationError(file, "design.loss", record.design.loss, str(error)) from error
    _check_design(file, record, loss.plain_name, objective, mechanism.tolerance)
    if query.seeks_least:
        _check_target(file, objective, query)
    _check_bound(file, record, loss, mechanism, sensitivity)
    _check_constraints(file, mechanism, query)
    return sensitivity


def _check_target(file: str, objective: Fraction, query: Query) -> None:
    """Check that the expected loss meets the target for which the least ε or δ was sought."""
    cap = target_of("target", query).cap
    if objective > cap:
        raise VerificationError(file, "target", format_up(objective, 12), f"at most {cap}")


def _check_constraints(file: str, mechanism: Mechanism, query: Query) -> None:
    """Check that the pmf of modular noise is within a tolerance of what the spec demands."""
    if not query.constraints:
        return
    pmf = mechanism.modular_noise
    for constraint in constraints_of(demands_of(query), query.answers):
        if pmf is None or not constraint.holds(pmf):
            raise VerificationError(file, "constraints", constraint.name, "one that holds")


def _expect_near(file: str, check: str, stated: str, computed: Fraction, share: Fraction) -> None:
    """Refuse a figure that is further than ``share`` from the computed one, which is rounded."""
    allowed = share * max(Fraction(1), computed)
    if abs(Fraction(stated) - computed) > allowed:
        raise VerificationError(file, check, excerpt(stated), format_up(computed, 18))


def _check_named(file: str, record: MechanismRecord, query: Query) -> None:
    """Check that the file has the mechanism that the spec names."""
    if query.mechanism == BEST:
        if query.answers.has_order and MECHANISMS[record.mechanism].can_wrap:
            # It can publish one end of an order for the other: only the spec may choose that.
            raise VerificationError(
                file, "mechanism", repr(record.mechanism), "one that cannot wrap round an order"
            )
    elif MECHANISMS[query.mechanism].is_baseline:
        expect(file, "design.method", record.design.method, f"baseline {query.mechanism}")
    else:
        expect(file, "mechanism", record.mechanism, query.mechanism)


def _parsed(file: str, record: MechanismRecord) -> tuple[Mechanism, Sensitivity]:
    """The exact mechanism and its sensitivity, which the file lists in canonical order."""
    # Before anything is built: a hostile file could name more than memory or a day can hold.
    most = len(str(record.MAX_TOTAL))
    if record.comparisons > record.MAX_COMPARISONS or len(record.total) > most:
        raise VerificationError(
            file,
            "size",
            f"{record.comparisons} comparisons, a total of {len(record.total)} digits",
            f"at most {record.MAX_COMPARISONS} comparisons, and totals up to {record.MAX_TOTAL}",
        )
    try:
        mechanism, sensitivity = record.to_mechanism(), record.to_sensitivity()
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "weights", str(error), "a mechanism") from error
    if mechanism.total > record.MAX_TOTAL:
        raise VerificationError(file, "total", record.total, f"at most {record.MAX_TOTAL}")
    if not sensitivity.shifts:
        raise VerificationError(file, "sensitivity", "none", "some: there is nothing to prove")
    # One order and no duplicates: equal mechanisms have equal bytes, as a commitment needs.
    for field, expected in record.own_fields(mechanism, sensitivity).items():
        expect(file, f"{field} (complete, sorted)", getattr(record, field), expected)
    return mechanism, sensitivity


def _check_guarantee(
    file: str,
    record: MechanismRecord,
    query: Query,
    mechanism: Mechanism,
    sensitivity: Sensitivity,
) -> None:
    """Check that the file repeats the guarantee of the spec, and that the integers satisfy it."""
    claimed = query.claimed
    expect(file, "definition", record.guarantee.definition, claimed.definition.value)
    expect(file, "epsilon", record.guarantee.epsilon, format_exact(claimed.epsilon))
    expect(file, "delta", record.guarantee.delta, format_exact(claimed.delta))
    # From the integers of the file, never from its figures: these are compared afterwards.
    deltas = mechanism.deltas(sensitivity, claimed.epsilon)
    delta = deltas.under(claimed.definition)
    if not delta <= claimed.delta:
        raise VerificationError(
            file, "δ", format_up(delta, 12), f"at most {format_exact(claimed.delta)}"
        )
    _check_recomputed(file, record, deltas, epsilon_everywhere(mechanism))


def _check_recomputed(file: str, record: MechanismRecord, deltas: Deltas, everywhere: str) -> None:
    stated = record.recomputed
    probabilistic = format_exact(deltas.probabilistic)
    expect(file, "delta_probabilistic", stated.delta_probabilistic, probabilistic)
    expect(file, "delta_approximate", stated.delta_approximate, format_up(deltas.approximate, 60))
    expect(file, "epsilon_everywhere", stated.epsilon_everywhere, everywhere)


def _check_design(
    file: str, record: MechanismRecord, loss: str, objective: Fraction, tolerance: Fraction
) -> None:
    expect(file, "design.loss", record.design.loss, loss)
    rounded = Fraction(format_up(objective, 18))
    _expect_near(file, "design.objective", record.design.objective, rounded, tolerance)
    if record.design.bound_of != BoundOf.INTEGERS.value:
        expect(file, "design.bounded_loss", record.design.bounded_loss, record.design.objective)
    bounded = Fraction(record.design.bounded_loss)
    bound = Fraction(record.design.lower_bound)
    if bound > bounded:
        raise VerificationError(file, "design.lower_bound", str(bound), "at most the bounded loss")
    expect(file, "design.gap", record.design.gap, format_exact(bounded - bound))


def _check_bound(
    file: str,
    record: MechanismRecord,
    loss: Loss | WorstCaseLoss,
    mechanism: Mechanism,
    sensitivity: Sensitivity,
) -> None:
    """Prove the lower bound of noise on the integers: no solver has to be trusted for it."""
    if record.design.bound_of != BoundOf.INTEGERS.value:
        return
    if not isinstance(mechanism, IntegerMechanism):
        raise VerificationError(file, "design.bound_of", record.design.bound_of, "another class")
    power = power_of(loss)
    # Of the noise before it is clamped: the bound is one of noise, and clamping loses no more.
    noise_loss = format_up(mechanism.noise.moment(power), 18)
    expect(file, "design.bounded_loss", record.design.bounded_loss, noise_loss)
    if record.design.bound == "proved":
        proved = _proved_bound(file, record, sensitivity.distances or (), power)
        if Fraction(record.design.lower_bound) > proved:
            raise VerificationError(
                file, "design.lower_bound", record.design.lower_bound, format_down(proved, 18)
            )


def _proved_bound(file: str, record: MechanismRecord, steps: Sequence[int], power: int) -> Fraction:
    """The lower bound by the formulas, or from the multipliers of the file."""
    epsilon, delta = Fraction(record.guarantee.epsilon), Fraction(record.guarantee.delta)
    proved = lower_bound(steps, epsilon, delta, power)
    if not record.design.multipliers:
        return proved
    tables = {table.distance: tuple(map(int, table.prices)) for table in record.design.multipliers}
    try:
        multipliers = Multipliers(tables)
    except ValueError as error:
        raise VerificationError(file, "design.multipliers", str(error), "multipliers") from error
    # Prices of a distance that neighbors never have would prove nothing.
    expect(file, "design.multipliers.distance", set(tables) - set(steps), set())
    return max(proved, multipliers.lower_bound(epsilon, delta, power))
