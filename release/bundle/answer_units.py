"""The unit in which people read the errors of a query: rows, hours, Wh, bins or codes.

Mechanisms and JSON count errors in codes. Plans, reports and pictures multiply them by what one
code is worth. This is display only: nothing here enters a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.domain import AnswerDomain, Topology
from release.spec.query import PlainQuery, Query


@dataclass(frozen=True)
class AnswerUnit:
    """What one code of an answer is worth: ``scale`` of the unit ``word``, such as 50 Wh."""

    scale: int
    word: str

    @property
    def axis(self) -> str:
        """The label of an axis of errors."""
        if self == CODES:
            return "places between published and true answer in the list"
        return f"published minus true answer, in {self.word}"

    def amount(self, codes: Fraction | int) -> str:
        """An error of so many codes with its unit; whole codes exactly, fractions to 4 digits."""
        error = self.scale * codes
        figure = str(error) if isinstance(error, int) else f"{float(error):.4g}"
        word = _SINGULAR.get(self.word, self.word) if error == 1 else self.word
        return f"{figure} {word}"


_SINGULAR = {
    **{"rows": "row", "units": "unit", "bins": "bin", "steps": "step", "codes": "code"},
    # What specs often count.
    **{"people": "person", "persons": "person", "homes": "home", "households": "household"},
    **{"hours": "hour", "minutes": "minute", "days": "day"},
}
CODES = AnswerUnit(1, "codes")


def answer_unit(query: Query) -> AnswerUnit:
    """What one code of the answer of ``query`` is worth.

    It is the difference of neighboring labels in the ``units`` of the spec where all these
    differences are equal. Without ``units`` it is one row or privacy unit of a count, one bin, or
    one step. It is :data:`CODES` for categories and tuples, whose codes have no common distance.
    """
    if not isinstance(query, PlainQuery) or query.answers.topology is Topology.NOMINAL:
        return CODES
    spacing = _spacing(query.answers)
    if query.units is not None and spacing is not None:
        return AnswerUnit(spacing, query.units)
    return AnswerUnit(1, query.step_word)


def _spacing(answers: AnswerDomain) -> int | None:
    """The difference of neighboring labels; None where the labels are not evenly spaced."""
    if answers.topology is Topology.CYCLIC:
        return 1
    if isinstance(answers.labels, range):
        return answers.labels.step
    # Edges of bins are integers: where the width is none, their differences are not all equal.
    differences = np.unique(np.diff(np.array(answers.labels, dtype=np.int64)))
    return int(differences[0]) if differences.size == 1 else None
