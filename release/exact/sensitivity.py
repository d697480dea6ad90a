"""The sensitivity of a query: by which differences one unit can move its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from release.exact.domain import AnswerDomain, Group, Shift


def check_shifts(parts: Sequence[AnswerDomain], shifts: Iterable[Shift]) -> None:
    """Refuse what no two answers differ by; reduced it would mean another difference, or none.

    Each shift has a coordinate, with its sign, for each of the ``parts`` of an answer.

    Raises:
        ValueError: a coordinate is not below the number of its answers, or all are 0.
    """
    moves = False
    for shift in shifts:
        for step, part in zip(shift, parts, strict=True):
            moves = moves or step != 0
            if not abs(step) < part.size:
                raise ValueError(
                    f"found {step}; the largest difference of {part.size} {part.topology.value} "
                    f"answers is {part.size - 1}"
                )
    if not moves:
        raise ValueError("name at least one difference other than 0")


Pair: TypeAlias = tuple[int, int]
"""The codes of two true answers that neighbors can have."""


@dataclass(frozen=True)
class Sensitivity:
    """The set M of differences of a query's answers over all neighbors, without zero.

    Neighboring goes both ways, so M is closed under negation; ``directed`` keeps a one-sided set
    as it is, for reproducing the papers only (docs/design/mathematics.md).

    ``apart`` is how far neighboring answers lie from each other on the line, each at least 1,
    where the answers have an order. In M alone one step up and all the way down are the same.
    """

    group: Group
    shifts: tuple[Shift, ...]
    directed: bool = False
    apart: tuple[int, ...] | None = None

    @classmethod
    def of(cls, group: Group, shifts: Iterable[Shift], *, directed: bool = False) -> Sensitivity:
        """Reduce, drop zero, close under negation (unless ``directed``) and sort ``shifts``."""
        normal = {group.normal(shift) for shift in shifts}
        if not directed:
            normal |= {group.negative(shift) for shift in normal}
        normal.discard((0,) * len(group.moduli))
        return cls(group, tuple(sorted(normal)), directed)

    @classmethod
    def on_line(cls, size: int, steps: Iterable[int]) -> Sensitivity:
        """The differences of ``size`` answers in order, from ``steps`` with their sign."""
        apart = tuple(sorted({abs(step) for step in steps} - {0}))
        return replace(cls.of(Group((size,)), ((step,) for step in apart)), apart=apart)

    @classmethod
    def everything(cls, group: Group) -> Sensitivity:
        """All differences but zero: any answer may turn into any other."""
        return cls.of(group, (group.shift(element) for element in range(1, group.size)))

    @property
    def least_step(self) -> int:
        """The least distance of two neighboring answers, in codes; 1 where there is none."""
        if self.apart is not None:
            return min(self.apart, default=1)
        return min((self.group.element(shift) for shift in self.shifts), default=1)

    def pairs(self, answers: int) -> tuple[Pair, ...]:
        """The pairs of neighboring answers among ``answers``, both orders, ascending."""
        if self.apart is not None:
            return line_pairs(answers, self.apart)
        moved = [self.group.moved(shift).tolist() for shift in self.shifts]
        return tuple(sorted(pair for codes in moved for pair in enumerate(codes)))


def line_pairs(answers: int, steps: Iterable[int]) -> tuple[Pair, ...]:
    """The pairs of answers that are ``steps`` apart, both orders, on the line without wrapping."""
    apart = sorted({abs(step) for step in steps if step})
    moves = [*(-step for step in reversed(apart)), *apart]
    return tuple((a, a + move) for a in range(answers) for move in moves if 0 <= a + move < answers)
