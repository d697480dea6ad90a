"""Proves the file of a mechanism on a statistic: its rule, its spread and its guarantee."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from release.errors import VerificationError
from release.exact.numbers import format_exact
from release.exact.statistics.joint_quantiles import SUBLEVELS
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.sums import NoisySums
from release.queries.registry import statistic_of
from release.queries.statistics import Counts, Ranks
from release.records.mechanisms import AnyMechanismRecord
from release.records.statistics import JointQuantilesRecord, QuantileTreeRecord, StatisticRecord
from release.records.top import TopRecord
from release.spec.mechanisms import BEST
from release.spec.model import Spec
from release.spec.query import Query
from release.verification.mechanisms import expect


def check_statistic(file: str, record: AnyMechanismRecord, spec: Spec, query: Query) -> str:
    """Prove a mechanism on the statistic of ``query``; the finding as a sentence.

    Raises:
        VerificationError: another mechanism, bound or guarantee than the spec has, or a guarantee
            that the integers do not satisfy.
    """
    if not isinstance(record, StatisticRecord):
        raise VerificationError(file, "mechanism", record.mechanism, "one on statistics")
    # Step 30 of docs/design/format.md, 8.11, which stands for steps 31 to 40 here.
    statistic, claimed = statistic_of(spec, query), query.claimed
    expect(file, "query", record.query, Path(file).stem)
    # Any family will do for ``best``: each is proved by its own theorem, and none by its name.
    families = [name for name in statistic.families if query.mechanism in (BEST, name)]
    if record.mechanism not in families:
        raise VerificationError(file, "mechanism", record.mechanism, f"one of {list(families)}")
    expect(file, "definition", record.guarantee.definition, claimed.definition.value)
    expect(file, "epsilon", record.guarantee.epsilon, format_exact(claimed.epsilon))
    expect(file, "delta", record.guarantee.delta, format_exact(claimed.delta))
    # The spread follows from the spec alone: the range in which one unit moves the statistic.
    expect(file, "spread", record.spread, statistic.spread)
    if isinstance(statistic, Ranks) and isinstance(
        record, JointQuantilesRecord | QuantileTreeRecord
    ):
        expect(file, "shares", tuple(map(Fraction, record.shares)), statistic.shares)
    if isinstance(statistic, Ranks) and isinstance(record, QuantileTreeRecord):
        expect(file, "rows", record.rows, statistic.rows)
        expect(file, "replaced", record.replaced, statistic.replaces)
    if isinstance(record, JointQuantilesRecord):
        # More would make a draw's proof no longer, and a file no truer.
        expect(file, "sublevels", record.sublevels, SUBLEVELS)
    if isinstance(statistic, Counts) and isinstance(record, TopRecord):
        expect(file, "members", record.members, statistic.members)
        bounds = statistic.bounds
        expect(file, "categories", record.categories, bounds.categories)
        expect(file, "touched", record.touched, bounds.touched)
        expect(file, "weight", record.weight, bounds.weight)
        expect(file, "replaced", record.replaced, bounds.is_replaced)
    try:
        mechanism = record.to_mechanism()
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "integers", str(error), "a mechanism") from error
    expect(file, "inputs", mechanism.inputs, statistic.inputs)
    expect(file, "outputs", mechanism.outputs, len(query.outcome_columns))
    # One form of each mechanism: equal mechanisms have equal bytes.
    for field, expected in record.own_fields(mechanism).items():
        expect(file, field, getattr(record, field), expected)
    if not mechanism.satisfies(claimed.epsilon):
        raise VerificationError(
            file, "ε", "more", f"at most {format_exact(claimed.epsilon)}, by its integers"
        )
    _check_least(file, record, mechanism, claimed.epsilon)
    theorem = record.theorem.format(spread=record.spread)
    return (
        f"{query.name}: the mechanism satisfies pure ε = {format_exact(claimed.epsilon)} for every "
        f"table that fits the declaration, by {theorem}"
    )


def _check_least(
    file: str, record: StatisticRecord, mechanism: StatisticMechanism, epsilon: Fraction
) -> None:
    """Check that a mechanism with one parameter has no more noise than ε needs."""
    if isinstance(mechanism, NoisySums) and mechanism.sums > 1:
        least = NoisySums.geometric(epsilon, mechanism.sums, mechanism.spread)
        expect(file, "noise", mechanism.noise == least.noise, True)
    ratio = int(getattr(record, "ratio", "1"))
    # A ratio of less noise: the private ones are all those from the least one on.
    if ratio > 1 and record.model_copy(update={"ratio": str(ratio - 1)}).to_mechanism().satisfies(
        epsilon
    ):
        raise VerificationError(file, "ratio", str(ratio), "the least that satisfies ε")
