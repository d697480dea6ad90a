"""The files of mechanisms, ``mechanisms/<query>.json``: one model for each family.

All families share :class:`MechanismRecord`. A family adds the integers of its mechanism and of the
sensitivity for which the guarantee is proved, and methods to read and write both
(docs/design/format.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from itertools import starmap
from operator import sub
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Run, Tail, merged
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.privacy import MAX_WORK, Deltas
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
from release.records.profiles import ProfileRecord


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("not true or false")
    return value


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("null; leave the field out")
    return value


class AnyMechanismRecord(Record, ABC):
    """What the files of all mechanisms have in common, on answers and on statistics."""

    schema_: Literal["dp-release/mechanism/v1"] = Field(alias="schema", description=VERSION)
    query: str = Field(description="the name of the query")
    mechanism: str = Field(description="the family of the mechanism")
    guarantee: GuaranteeRecord = Field(description="the claimed guarantee of one cell")
    # Absent or an object: with null beside it one mechanism would have two files.
    profile: Annotated[ProfileRecord | None, BeforeValidator(_not_null)] = Field(
        default=None,
        description="δ at every ε, of all that one unit can change; in the public bundle only",
    )

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The mechanism and the extent of its proof: how a report begins to describe it."""

    @property
    @abstractmethod
    def deltas(self) -> Deltas:
        """Both δ, as the file states them."""

    @property
    @abstractmethod
    def loses_in_proportion(self) -> bool:
        """Whether a part of the change of one cell loses no more than that part of ε."""


class MechanismRecord(AnyMechanismRecord):
    """What the files of all families on answers have in common."""

    MAX_COMPARISONS: ClassVar[int] = MAX_WORK
    """The most comparisons that a verifier makes for a file."""

    MAX_TOTAL: ClassVar[int] = 2**62
    """The largest total that a file may have."""

    group: list[int] = Field(min_length=1, max_length=8, description=GROUP)
    total: Digits = Field(description="the sum of the weights, a power of two")
    # Zero is equal to false, and would be another file with the same meaning.
    directed: Annotated[Literal[False], BeforeValidator(_boolean)] = Field(
        description="false: the differences have both signs"
    )
    recomputed: Recomputed = Field(description="the guarantee that the weights satisfy")
    design: DesignRecord = Field(description="how the mechanism was found")
    accuracy: Accuracy = Field(description="the errors that a reader can expect")

    @property
    @abstractmethod
    def comparisons(self) -> int:
        """How many pairs of masses the proof of the guarantee compares."""

    @property
    def deltas(self) -> Deltas:
        """As :attr:`AnyMechanismRecord.deltas`."""
        return self.recomputed.deltas

    @property
    def loses_in_proportion(self) -> bool:
        """As :attr:`AnyMechanismRecord.loses_in_proportion`."""
        epsilon = Fraction(self.guarantee.epsilon)
        return self.to_mechanism().loses_in_proportion(self.to_sensitivity(), epsilon)

    @abstractmethod
    def to_mechanism(self) -> Mechanism:
        """The exact mechanism.

        Raises:
            ValueError, OverflowError: the integers are no mechanism.
        """

    @abstractmethod
    def to_sensitivity(self) -> Sensitivity:
        """The sensitivity of the file, completed to a set that neighbors can have.

        Raises:
            ValueError, OverflowError: it is no sensitivity of these answers.
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
        weights, total = list(map(int, self.weights)), int(self.total)
        # A forged weight beyond 64 bits is left to Pmf, which refuses it by the sum.
        dtype: Any = np.int64 if max([total, *weights]) <= 2**62 else object
        return Modular(Pmf(Group(tuple(self.group)), np.array(weights, dtype=dtype), total))

    def to_sensitivity(self) -> Sensitivity:
        """As :meth:`MechanismRecord.to_sensitivity`."""
        shifts = map(tuple, self.sensitivity)
        return Sensitivity.of(Group(tuple(self.group)), shifts)

    @classmethod
    def own_fields(cls, mechanism: Modular, sensitivity: Sensitivity) -> dict[str, Any]:
        """As :meth:`MechanismRecord.own_fields`."""
        return {
            "weights": list(map(str, mechanism.pmf.weights.tolist())),
            "sensitivity": list(map(list, sensitivity.shifts)),
        }


class TailRecord(Record):
    """A geometric tail: the last masses of an end, repeated, each time times a ratio."""

    period: int = Field(ge=1, description="how many masses repeat")
    ratio: Digits = Field(description="the ratio, in units of 2^-64")

    @classmethod
    def of(cls, tail: Tail) -> TailRecord:
        """The record of a tail."""
        return cls(period=tail.period, ratio=str(tail.ratio))

    def to_tail(self) -> Tail:
        """The exact tail.

        Raises:
            ValueError: the ratio is not between 0 and 1.
        """
        return Tail(self.period, int(self.ratio))


class NoiseRecord(Record):
    """Noise on the integers: runs of equal weights, and tails beyond them."""

    low: int = Field(description="the integer of the first weight")
    lengths: list[int] = Field(min_length=1, description="how many integers have each weight")
    weights: list[Digits] = Field(description="the weights, from the lowest integers upwards")
    left: TailRecord | None = Field(description="the tail below the runs; null without one")
    right: TailRecord | None = Field(description="the tail above the runs; null without one")

    def to_noise(self) -> IntegerNoise:
        """The exact noise.

        Raises:
            ValueError, OverflowError: the integers are no noise.
        """
        # Strict: of two lists of different lengths the longer one would be cut in silence.
        runs = tuple(zip(self.lengths, map(int, self.weights), strict=True))
        left = self.left.to_tail() if self.left else None
        right = self.right.to_tail() if self.right else None
        return IntegerNoise(self.low, runs, left, right)

    @classmethod
    def of(cls, noise: IntegerNoise) -> NoiseRecord:
        """The record of a noise; runs of one weight are joined."""
        lengths, weights = zip(*merged(noise.runs), strict=True)
        return cls(
            low=noise.low,
            lengths=list(lengths),
            weights=list(map(str, weights)),
            left=TailRecord.of(noise.left) if noise.left else None,
            right=TailRecord.of(noise.right) if noise.right else None,
        )


class IntegerRecord(MechanismRecord):
    """Noise on the integers, clamped to the answers, with the tables of both ends."""

    # Each compares two exact rationals, where the other families compare whole rows of integers.
    MAX_COMPARISONS = 10**6
    MAX_DISTANCES: ClassVar[int] = 10**6

    mechanism: Literal["integer"] = Field(description="noise on the integers")
    noise: NoiseRecord = Field(description="the noise")
    low_end: list[Pair] = Field(
        description="for the outcomes from 0 on, how many, and what is added to their codes"
    )
    high_end: list[Pair] = Field(description="the same for the last outcomes, ascending")
    distances: list[Pair] = Field(
        min_length=1,
        description="how far apart neighboring answers can be: intervals, both ends included",
    )

    @property
    def comparisons(self) -> int:
        """As the mechanism says."""
        # Integers that are no mechanism are refused where they are read; here they take no work.
        try:
            return self.to_mechanism().comparisons(self.to_sensitivity())
        except (ValueError, OverflowError):
            return 0

    @property
    def sentence(self) -> str:
        """As :attr:`MechanismRecord.sentence`."""
        ends = "clamped and remapped" if self.low_end or self.high_end else "clamped"
        return (
            f"Noise on the integers, {ends} to {self.group[0]} answers in order, proved for "
            f"neighbors up to {self.distances[-1][1]} apart"
        )

    def to_mechanism(self) -> IntegerMechanism:
        """As :meth:`MechanismRecord.to_mechanism`."""
        noise = self.noise.to_noise()
        if noise.total != int(self.total):
            raise ValueError("the weights do not add up to the total")
        return IntegerMechanism(noise, self.group[0], _runs(self.low_end), _runs(self.high_end))

    def to_sensitivity(self) -> Sensitivity:
        """As :meth:`MechanismRecord.to_sensitivity`."""
        before = number = 0
        for first, last in self.distances:
            if not before < first <= last < self.group[0]:
                raise ValueError("distances are ascending intervals from 1 on, below all answers")
            before, number = last, number + last - first + 1
        # Counted before they are listed: a forged interval could hold any number of distances.
        if number > self.MAX_DISTANCES:
            raise ValueError(f"more than {self.MAX_DISTANCES:,} distances")
        steps: list[int] = []
        for first, last in self.distances:
            steps.extend(range(first, last + 1))
        return Sensitivity.on_line(self.group[0], steps)

    @classmethod
    def own_fields(cls, mechanism: IntegerMechanism, sensitivity: Sensitivity) -> dict[str, Any]:
        """As :meth:`MechanismRecord.own_fields`."""
        return {
            "noise": NoiseRecord.of(mechanism.noise),
            # Joined, so that one mechanism has one file: a verifier compares the whole of it.
            "low_end": list(map(list, merged(mechanism.low))),
            "high_end": list(map(list, merged(mechanism.high))),
            "distances": intervals(sensitivity.distances or ()),
        }


def _runs(pairs: Sequence[Sequence[int]]) -> tuple[Run, ...]:
    """How many outcomes in a row, and what is added to them, from the lists of a file."""
    return tuple((length, shift) for length, shift in pairs)


def intervals(steps: Sequence[int]) -> list[list[int]]:
    """The runs of consecutive integers in ascending ``steps``: first and last of each."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][1] + 1:
            runs[-1][1] = step
        else:
            runs.append([step, step])
    return runs


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
        channel = Channel.of([list(map(int, row)) for row in self.rows])
        # The stated total takes part in the check of limits, so it has to be the true one.
        if channel.total != int(self.total):
            raise ValueError("the weights of a row do not add up to the total")
        if channel.rows.shape != (self.group[0], self.group[0]):
            raise ValueError("a channel has a row and a column for each answer")
        return channel

    def to_sensitivity(self) -> Sensitivity:
        """As :meth:`MechanismRecord.to_sensitivity`; a pair stands for all at its distance."""
        # A file that leaves pairs out is completed here, and then differs from its own fields.
        return Sensitivity.on_line(self.group[0], starmap(sub, self.pairs))

    @classmethod
    def own_fields(cls, mechanism: Channel, sensitivity: Sensitivity) -> dict[str, Any]:
        """As :meth:`MechanismRecord.own_fields`."""
        return {
            "rows": mechanism.rows.astype(str).tolist(),
            "pairs": list(map(list, sensitivity.pairs(mechanism.answers))),
        }
