"""The loss function of a query, and caps on its expected value: targets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.errors import SpecError
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName, joint_loss, table_loss
from release.exact.numbers import parse_exact
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


@dataclass(frozen=True)
class Target:
    """A cap on an expected loss, in the unit of the loss."""

    loss: LossName
    cap: Fraction


def parse_target(field: str, text: str) -> Target:
    """The target in a text.

    Raises:
        SpecError: the text is no target; ``field`` is where it was written.
    """
    words = text.replace("<=", " <= ").split()
    names = [name.value for name in LossName]
    if len(words) != 3 or words[0] not in names or words[1] != "<=":
        raise SpecError(field, f'write a loss and its cap, such as "error_rate <= 0.2"; {names}')
    try:
        return Target(LossName(words[0]), parse_exact(words[2]))
    except ValueError as error:
        raise SpecError(field, str(error)) from None
