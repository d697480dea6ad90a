"""The sensitivity of a query: by which differences one unit can move its answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from release.exact.domain import Group, Shift


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
