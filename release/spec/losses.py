"""The loss function of a query."""

from __future__ import annotations

import numpy as np

from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName, joint_loss, table_loss
from release.spec.domains import MAX_ANSWERS
from release.spec.guarantees import TableLoss
from release.spec.query import Query


def loss_of(query: Query) -> Loss:
    """The loss function that the spec names for ``query``."""
    if isinstance(query.loss, TableLoss):
        return table_loss(tuple(query.loss.table))
    return loss_on(query.loss, query.answers)


def loss_on(name: LossName, domain: AnswerDomain | JointDomain) -> Loss:
    """A named loss on the answers of a query."""
    if domain.size > MAX_ANSWERS:
        # Of so many answers in order only noise on the integers makes use, which reads the name.
        return Loss(name.value, np.array([0, 1], dtype=np.int64))
    return joint_loss(name, domain.parts)
