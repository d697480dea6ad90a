"""Queries without a guarantee of their own: the budget is shared out among them.

A query with ``share`` or ``target`` gets its guarantee from the whole spec, before any table is
opened (:mod:`release.noise.composed`). From then on it stands in the spec like a declared one.
"""

from __future__ import annotations

from collections.abc import Mapping

from release.errors import SpecError
from release.exact.losses import LossName, line_fits
from release.spec.guarantees import GuaranteeSpec
from release.spec.losses import Target, parse_target
from release.spec.mechanisms import BEST
from release.spec.model import Spec
from release.spec.query import Query


def check_shared(spec: Spec, at: str, query: Query) -> None:
    """Refuse a share or a target that no noise can be found for.

    Raises:
        SpecError: the query also has a guarantee, its answers are neither in order nor decided by a
            statistic, its sensitivity is the table's, or the budget is composed by the basic rule.
    """
    if query.seeks_least:
        _check_least(at, query)
        return
    if not query.is_shared:
        return
    field = f"{at}.share" if query.share is not None else f"{at}.target"
    if query.guarantee is not None or (query.share is not None and query.target is not None):
        raise SpecError(field, "stands beside another; keep one of guarantee, share and target")
    if query.target is not None:
        # First: whatever else is wrong, the text is the curator's own.
        target_of(field, query)
    if spec.budget.composition == "basic":
        raise SpecError("budget.composition", "a budget that is shared out needs pld; leave it out")
    if query.is_empirical:
        raise SpecError(field, "noise is found before the table is read; write sensitivity: global")
    if query.mechanism != BEST:
        raise SpecError(f"{at}.mechanism", "is found with the share; leave it out")
    if query.share is not None and not query.share > 0:
        raise SpecError(field, "must be above 0")
    if not query.is_on_statistic and not line_fits(query.answers, query.loss):
        raise SpecError(
            field,
            "is for answers in order under the loss error_rate, absolute or squared, and for "
            "noise on a statistic; write a guarantee",
        )
    if query.target is not None:
        _check_target(field, query)


def _check_least(at: str, query: Query) -> None:
    field = f"{at}.target"
    if query.target is None:
        raise SpecError(field, 'missing; least needs a cap, such as "error_rate <= 0.2"')
    target = target_of(field, query)

    stated = query.claimed
    if stated.least is not None and not getattr(stated, stated.least):
        raise SpecError(f"{at}.guarantee.least", f"{stated.least} is 0; none is less, leave it out")
    if query.share is not None:
        raise SpecError(f"{at}.share", "stands beside a guarantee; keep one of them")
    if query.is_on_statistic:
        raise SpecError(field, "is for noise on the answer; leave it and least out")
    if query.is_empirical:
        raise SpecError(field, "is met before the table is read; write sensitivity: global")
    _check_cap_and_loss(field, query, target)


def _check_target(field: str, query: Query) -> None:
    target = target_of(field, query)
    if query.is_on_statistic:
        raise SpecError(field, "is for noise on answers in order; write a share or a guarantee")
    if target.loss not in (LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED):
        raise SpecError(field, "takes the loss error_rate, absolute or squared")
    _check_cap_and_loss(field, query, target)


def _check_cap_and_loss(field: str, query: Query, target: Target) -> None:
    if not target.cap > 0:
        raise SpecError(field, "must be above 0")
    if "loss" in query.model_fields_set and query.loss != target.loss:
        raise SpecError(
            field, f"is in {target.loss.value} loss, and loss says another; leave loss out"
        )


def target_of(field: str, query: Query) -> Target:
    """The target of a query that has one.

    Raises:
        SpecError: its text is no target.
        TypeError: the query has none.
    """
    if query.target is None:
        raise TypeError(f"{query.name} has no target")
    return parse_target(field, query.target)


def seeking(spec: Spec) -> tuple[Query, ...]:
    """The queries that claim the least ε or δ that meets their target."""
    return tuple(query for query in spec.queries if query.seeks_least)


def shared(spec: Spec) -> tuple[Query, ...]:
    """The queries whose guarantee is still to be found."""
    return tuple(query for query in spec.queries if query.is_shared and query.guarantee is None)


def with_found(spec: Spec, guarantees: Mapping[str, GuaranteeSpec]) -> Spec:
    """The spec with the guarantees that were found, by the name of the query."""
    queries: list[Query] = []
    # Copies: the spec that is published stays as it was written.
    for query in spec.queries:
        guarantee = guarantees.get(query.name, query.guarantee)
        queries.append(query.model_copy(update={"guarantee": guarantee}))
    return spec.model_copy(update={"queries": queries})


def with_target_losses(spec: Spec) -> Spec:
    """The spec in which the loss of a query with a target is that of the target."""
    queries = []
    for query in spec.queries:
        # What is capped is what is made small: one text, so that the two cannot differ.
        loss = None if query.target is None else target_of(spec.place_of(query), query).loss
        queries.append(query if loss is None else query.model_copy(update={"loss": loss}))
    return spec.model_copy(update={"queries": queries})
