"""Whether a run publishes a mechanism, and the reason why it does not."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from release.errors import DesignError
from release.exact.numbers import format_up
from release.noise.design import GAP
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.spec.query import Query

Made: TypeAlias = AnyDesign | StatisticDesign
"""A mechanism with its proved guarantee."""


UNNOTICED = Fraction(1, 1000)
"""Of the cheapest error, in the mean: what a better mechanism may save without a proof."""


def accepted(query: Query, design: Made, gap: Fraction) -> Made:
    """The mechanism, where a run publishes it.

    Raises:
        DesignError: it does not.
    """
    reason = None if isinstance(design, StatisticDesign) else refusal(query, design, gap)
    if reason is not None:
        raise DesignError(reason)
    return design


def refusal(query: Query, design: AnyDesign, gap: Fraction = GAP) -> str | None:
    """Why a run does not publish this mechanism; None where it does.

    Either the answers would carry no information, or another mechanism might lose less by more than
    ``gap``.
    """
    # Under empirical sensitivity the reason holds no number, and a constant mechanism is published:
    # that the best one is constant depends on what was seen in the table.
    if query.is_empirical:
        if design.is_within(gap) or (_is_pure(design) and query.claimed.delta):
            return None
        return (
            f"query {query.name}: another mechanism might save too much of the expected loss; "
            "choose another domain or loss, or accept that with --accept-gap"
        )
    if design.mechanism.is_constant():
        return (
            f"query {query.name}: the best mechanism publishes the same whatever the true answer "
            "is, so its charge would buy nothing; raise epsilon"
        )
    # Where no better use of a δ was found, a mechanism that needs none is charged none.
    if design.is_within(gap) or (_is_pure(design) and query.claimed.delta):
        return None
    # Nobody would notice the better one: at a large ε solvers prove no more than this.
    if design.gap <= design.loss.least * UNNOTICED:
        return None
    share = format_up(design.gap / design.bounded_loss, 3)
    return (
        f"query {query.name}: another mechanism might save up to {share} of the expected loss of "
        f"this one ({design.method}); choose another domain or loss, or accept that with "
        f"--accept-gap {share}"
    )


def _is_pure(design: AnyDesign) -> bool:
    """Whether it satisfies its guarantee without any δ."""
    return design.deltas.approximate == 0
