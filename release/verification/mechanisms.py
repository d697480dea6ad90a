"""Proving one law file: the integers against the promise, in exact arithmetic.

Everything the file says of itself is computed again: δ under both definitions, the objective, the
accuracy. Only a lower bound marked as the solver's stays its word.
"""

from __future__ import annotations

from fractions import Fraction

from release.bundle.statements import (
    accuracy_of,
    channel_accuracy,
    channel_epsilon,
    channel_loss,
    epsilon_everywhere,
)
from release.errors import VerificationError
from release.exact.channel import channel_deltas, has_order, line_pairs
from release.exact.numbers import exp_bounds, format_exact, format_up
from release.exact.privacy import MAX_WORK, Deltas, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.records.models import ChannelRecord, LawRecord, NoiseRecord
from release.spec.losses import loss_of
from release.spec.model import Query, answer_domain

MAX_TOTAL_DIGITS = 78


def expect(file: str, check: str, found: object, expected: object) -> None:
    """Refuse what was found unless it is what was expected."""
    if found != expected:
        raise VerificationError(file, check, shown(found), shown(expected))


def shown(value: object) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def check_law(file: str, record: LawRecord | ChannelRecord, query: Query) -> Sensitivity:
    """Prove one law file against the query of the spec; its differences.

    Raises:
        VerificationError: not a law, not the promise of the spec, or a promise it does not keep.
    """
    pinned = query.mechanism.value
    if pinned in ("modular", "channel"):
        expect(file, "mechanism", record.mechanism, pinned)
    elif pinned != "best":
        expect(file, "design.method", record.design.method, f"baseline {pinned}")
    elif has_order(answer_domain(query)):
        # Modular noise can publish one end of an order for the other: only a spec may name it.
        expect(file, "mechanism", record.mechanism, "channel")
    if isinstance(record, ChannelRecord):
        return _check_channel(file, record, query)
    domain = answer_domain(query)
    work = domain.size * max(1, len(record.sensitivity))
    if work > MAX_WORK or len(record.total) > MAX_TOTAL_DIGITS:
        raise VerificationError(
            file,
            "size",
            f"{work} comparisons",
            f"at most {MAX_WORK}, totals of at most {MAX_TOTAL_DIGITS} digits",
        )
    expect(file, "query", record.query, query.name)
    expect(file, "group", tuple(record.group), domain.group.moduli)
    expect(file, "directed", record.directed, False)
    try:
        law, sensitivity = record.to_law(), record.to_sensitivity()
        closed = Sensitivity.of(domain.group, sensitivity.shifts)
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "weights", str(error), "a law") from error
    expect(file, "sensitivity (closed, sorted, without zero)", sensitivity, closed)
    _check_some(file, "sensitivity", len(sensitivity.shifts))
    guarantee = _promised(file, record, query)
    found = deltas(law, sensitivity, guarantee.epsilon)
    _check_kept(file, record, guarantee, found, epsilon_everywhere(law))
    if int(law.weights.max()) == law.total:
        raise VerificationError(file, "weights", "no noise at all", "a law with noise")
    expect(file, "accuracy", record.accuracy, accuracy_of(law, domain.parts))
    loss = loss_of(query)
    _check_design(file, record, loss.name, loss.of(law))
    return sensitivity


def _check_channel(file: str, record: ChannelRecord, query: Query) -> Sensitivity:
    """As :func:`check_law`; how far apart neighboring answers are is read from the pairs."""
    domain = answer_domain(query)
    work = domain.size * max(1, len(record.pairs))
    if not domain.is_line or work > MAX_WORK or int(record.total) > 2**62:
        raise VerificationError(
            file,
            "size",
            f"{work} comparisons",
            f"answers in order, at most {MAX_WORK}, and a total of at most 2^62",
        )
    expect(file, "rows", len(record.rows), domain.size)
    _check_some(file, "pairs", len(record.pairs))
    expect(file, "query", record.query, query.name)
    expect(file, "group", tuple(record.group), domain.group.moduli)
    expect(file, "directed", record.directed, False)
    try:
        channel = record.to_channel()
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "rows", str(error), "a channel") from error
    expect(file, "rows", channel.rows.shape, (domain.size, domain.size))
    sensitivity = Sensitivity.on_line(domain.size, (a - b for a, b in record.pairs))
    closed = line_pairs(domain.size, sensitivity.apart or ())
    found_pairs = tuple((a, b) for a, b in record.pairs)
    expect(file, "pairs (closed under moving both, sorted, both orders)", found_pairs, closed)
    guarantee = _promised(file, record, query)
    found = channel_deltas(channel, closed, exp_bounds(guarantee.epsilon)[0])
    _check_kept(file, record, guarantee, found, channel_epsilon(channel))
    if int(channel.rows.max()) == channel.total:
        raise VerificationError(file, "rows", "no noise at all", "a channel with noise")
    expect(file, "accuracy", record.accuracy, channel_accuracy(channel))
    try:
        objective = channel_loss(channel, query)
    except ValueError as error:
        raise VerificationError(file, "design.loss", record.design.loss, str(error)) from error
    _check_design(file, record, loss_of(query).name, objective)
    return sensitivity


def _check_some(file: str, check: str, found: int) -> None:
    if not found:
        raise VerificationError(file, check, "none", "some: with none there is nothing to prove")


def _promised(file: str, record: NoiseRecord, query: Query) -> Guarantee:
    """The promise of the spec, which the file has to repeat."""
    promised = query.promised
    expect(file, "definition", record.guarantee.definition, promised.definition.value)
    expect(file, "epsilon", record.guarantee.epsilon, format_exact(promised.epsilon))
    expect(file, "delta", record.guarantee.delta, format_exact(promised.delta))
    return promised.to_guarantee()


def _check_kept(
    file: str, record: NoiseRecord, guarantee: Guarantee, found: Deltas, everywhere: str
) -> None:
    kept = found.under(guarantee.definition)
    if not kept <= guarantee.delta:
        raise VerificationError(
            file, "δ", format_up(kept, 12), f"at most {format_exact(guarantee.delta)}"
        )
    said = record.recomputed
    expect(file, "delta_probabilistic", Fraction(said.delta_probabilistic), found.probabilistic)
    expect(file, "delta_approximate", said.delta_approximate, format_up(found.approximate, 60))
    expect(file, "epsilon_all_differences", said.epsilon_all_differences, everywhere)


def _check_design(file: str, record: NoiseRecord, loss: str, objective: Fraction) -> None:
    expect(file, "design.loss", record.design.loss, loss)
    expect(file, "design.objective", record.design.objective, format_up(objective, 18))
    bound, gap = Fraction(record.design.lower_bound), Fraction(record.design.gap)
    if bound > objective:
        raise VerificationError(file, "design.lower_bound", str(bound), "at most the objective")
    # Each of the three is rounded to 18 places.
    if abs(gap - (objective - bound)) > Fraction(3, 10**18):
        raise VerificationError(file, "design.gap", str(gap), "the objective less the bound")
