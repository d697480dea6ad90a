"""Targets: caps on an expected loss, such as ``absolute <= 5``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release.errors import SpecError
from release.exact.losses import LossName
from release.exact.numbers import parse_exact


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
