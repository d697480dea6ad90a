"""The loss function of a query."""

from __future__ import annotations

from release.exact.losses import Loss, joint_loss, table_loss
from release.spec.guarantees import TableLoss
from release.spec.query import Query


def loss_of(query: Query) -> Loss:
    """The loss function that the spec names for ``query``."""
    if isinstance(query.loss, TableLoss):
        return table_loss(tuple(query.loss.table))
    return joint_loss(query.loss, query.answers.parts)
