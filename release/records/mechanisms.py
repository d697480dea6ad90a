"""The files of mechanisms, ``mechanisms/<query>.json``: one model for each family.

What all families have in common is :class:`MechanismRecord`. A family adds the integers of its
mechanism and of the differences for which the guarantee is proved, and says how both are read and
written (docs/design/format.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.records.models import (
    GROUP,
    VERSION,
    Accuracy,
    DesignRecord,
    Digits,
    GuaranteeRecord,
    Pair,
    Recomputed,
    Record,
)


class MechanismRecord(Record, ABC):
    """What the files of all families have in common."""

    MAX_TOTAL: ClassVar[int] = 2**62
    """The largest total that a file may have."""

    schema_: Literal["dp-release/mechanism/v1"] = Field(alias="schema", description=VERSION)
    query: str = Field(description="the name of the query")
    mechanism: str = Field(description="the family of the mechanism")
    group: list[int] = Field(min_length=1, max_length=8, description=GROUP)
    total: Digits = Field(description="the sum of the weights, a power of two")
    directed: Literal[False] = Field(description="false: the differences have both signs")
    guarantee: GuaranteeRecord = Field(description="the claimed guarantee of one cell")
    recomputed: Recomputed = Field(description="the guarantee that the weights satisfy")
    design: DesignRecord = Field(description="how the mechanism was found")
    accuracy: Accuracy = Field(description="the errors that a reader can expect")

    @property
    @abstractmethod
    def comparisons(self) -> int:
        """How many pairs of masses the proof of the guarantee compares."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What the mechanism is and what was proved over, as a report begins to say it."""

    @abstractmethod
    def to_mechanism(self) -> Mechanism:
        """The exact mechanism.

        Raises:
            ValueError, OverflowError: the integers are no mechanism.
        """

    @abstractmethod
    def to_sensitivity(self) -> Sensitivity:
        """The differences of the file, completed to a set that neighbors can have.

        Raises:
            ValueError, OverflowError: they are no differences of these answers.
        """

    @classmethod
    @abstractmethod
    def own_fields(cls, mechanism: Any, sensitivity: Sensitivity) -> dict[str, Any]:
        """The fields that the family adds; ``mechanism`` is one of its mechanisms."""


class ModularRecord(MechanismRecord):
    """Modular noise: the weights of its pmf, and the differences of the query."""

    MAX_TOTAL = 10**78

    mechanism: Literal["modular"] = Field(description="modular noise")
    weights: list[Digits] = Field(description="the weight of each noise value, in row-major order")
    sensitivity: list[list[int]] = Field(description="the differences, closed under negation")

    @property
    def comparisons(self) -> int:
        """One for each element and difference."""
        return len(self.weights) * max(1, len(self.sensitivity))

    @property
    def sentence(self) -> str:
        """As :attr:`MechanismRecord.sentence`."""
        sizes = " × ".join(map(str, self.group))
        differences = len(self.sensitivity)
        return f"Modular noise: one pmf on {sizes} answers, proved for {differences} differences"

    def to_mechanism(self) -> Modular:
        """As :meth:`MechanismRecord.to_mechanism`."""
        weights = [int(weight) for weight in self.weights]
        total = int(self.total)
        dtype: Any = np.int64 if max(weights) < 2**62 and total <= 2**62 else object
        return Modular(Pmf(Group(tuple(self.group)), np.array(weights, dtype=dtype), total))

    def to_sensitivity(self) -> Sensitivity:
        """As :meth:`MechanismRecord.to_sensitivity`."""
        shifts = map(tuple, self.sensitivity)
        return Sensitivity.of(Group(tuple(self.group)), shifts)

    @classmethod
    def own_fields(cls, mechanism: Modular, sensitivity: Sensitivity) -> dict[str, Any]:
        """As :meth:`MechanismRecord.own_fields`."""
        return {
            "weights": [str(weight) for weight in mechanism.pmf.weights.tolist()],
            "sensitivity": [list(shift) for shift in sensitivity.shifts],
        }


class ChannelRecord(MechanismRecord):
    """A channel: its rows, and the pairs of answers that neighbors can have."""

    mechanism: Literal["channel"] = Field(description="a channel")
    rows: list[list[Digits]] = Field(description="the weights of published answers, by true answer")
    pairs: list[Pair] = Field(description="the codes of neighboring answers, in both orders")

    @property
    def comparisons(self) -> int:
        """One for each pair and published answer."""
        return len(self.rows) * max(1, len(self.pairs))

    @property
    def sentence(self) -> str:
        """As :attr:`MechanismRecord.sentence`."""
        return (
            f"A channel: one pmf for each of {self.group[0]} true answers, proved over "
            f"{len(self.pairs)} ordered pairs of neighboring answers"
        )

    def to_mechanism(self) -> Channel:
        """As :meth:`MechanismRecord.to_mechanism`."""
        channel = Channel.of([[int(weight) for weight in row] for row in self.rows])
        if channel.total != int(self.total):
            raise ValueError("the weights of a row do not add up to the total")
        if channel.rows.shape != (self.group[0], self.group[0]):
            raise ValueError("a channel has a row and a column for each answer")
        return channel

    def to_sensitivity(self) -> Sensitivity:
        """As :meth:`MechanismRecord.to_sensitivity`; a pair stands for all as far apart."""
        return Sensitivity.on_line(self.group[0], (a - b for a, b in self.pairs))

    @classmethod
    def own_fields(cls, mechanism: Channel, sensitivity: Sensitivity) -> dict[str, Any]:
        """As :meth:`MechanismRecord.own_fields`."""
        pairs = sensitivity.pairs(mechanism.answers)
        return {
            "rows": [[str(weight) for weight in row] for row in mechanism.rows.tolist()],
            "pairs": [list(pair) for pair in pairs],
        }
