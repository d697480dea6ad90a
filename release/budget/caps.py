"""The caps of a scope, and the rule by which its charges amount to something (format.md, 6.2).

``basic`` adds charges up. ``pld`` composes releases exactly, within a plan of slots. With
``renyi_filter`` one integer order bounds releases that are chosen as one goes. The latter two are
fixed when the scope is created.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from release.exact.composition.distribution import UNIT
from release.exact.composition.grid import LONGEST
from release.exact.composition.profile import Profile
from release.exact.composition.renyi import HIGHEST_ORDER
from release.exact.numbers import MAX_EPSILON, format_exact
from release.records.models import Delta, Digits, Epsilon, Exact, Record
from release.spec.named import names_of

# Lengths are bounded, because a ledger may come from somebody else.
ScopeName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)
]
Scope: TypeAlias = Annotated[ScopeName, Field(description="the account that pays")]
SlotName: TypeAlias = Annotated[ScopeName, Field(description="the name of a slot of the plan")]
Rule: TypeAlias = Literal["basic", "pld", "renyi_filter"]

MOST_SLOTS, MOST_TIMES = 1000, 10**5


def amount(text: str) -> Fraction:
    """The exact value of an ε or δ as entries hold it."""
    # The parser of specs bounds the length of a number; a sum of charges may exceed that bound.
    return Fraction(text)


class PeriodCap(Record):
    """The cap of a scope for each calendar day, month or year."""

    every: Literal["day", "month", "year"] = Field(description="the length of a period")
    epsilon: Epsilon
    delta: Delta


ROOM = 10**10
"""So much, 10⁻¹⁸, a slot lies above the profile that it is made of.

The profile of a release is composed and rounded upward once more before it is compared with a slot.
"""


class SlotProfile(Record):
    """A privacy profile: bounds of δ at the losses 0, ``step``, 2·``step`` and so on."""

    step: Exact = Field(description="the distance of two privacy losses")
    values: list[Digits] = Field(
        min_length=1, max_length=LONGEST + 1, description="δ in units of 10^-28, never rising"
    )

    @model_validator(mode="after")
    def _is_profile(self) -> SlotProfile:
        self.to_profile()
        return self

    @classmethod
    def around(cls, profile: Profile) -> SlotProfile:
        """The profile with :data:`ROOM` above it."""
        values = [str(min(UNIT, value + ROOM)) for value in profile.values]
        return cls(step=format_exact(profile.step), values=values)

    def to_profile(self) -> Profile:
        """The profile.

        Raises:
            ValueError: the values are not those of one.
        """
        return Profile(amount(self.step), tuple(map(int, self.values)))


class PlannedSlot(Record):
    """A place in the plan of a scope: what a release that takes it may amount to at most."""

    name: SlotName
    times: int = Field(ge=1, le=MOST_TIMES, description="how many releases may take it")
    epsilon: Epsilon | None = Field(default=None, description="ε of any release that takes it")
    delta: Delta | None = Field(default=None, description="δ of any release that takes it")
    profile: SlotProfile | None = Field(
        default=None, description="in place of ε and δ: the privacy profile of such a release"
    )
    declared: bool = Field(
        default=False,
        description="for releases that have no profile: ε and δ are added to the certified total",
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> PlannedSlot:
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError("a slot has both ε and δ, or a profile")
        if (self.epsilon is None) == (self.profile is None):
            raise ValueError("a slot has either ε and δ, or a profile")
        if self.declared and self.profile is not None:
            raise ValueError("a declared slot has ε and δ")
        if self.epsilon is not None and amount(self.epsilon) > MAX_EPSILON:
            raise ValueError(f"the ε of a slot is at most {MAX_EPSILON}")
        return self

    @model_serializer(mode="wrap")
    def _short(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_defaults(plain(self), {"epsilon", "delta", "profile", "declared"})


class ScopeCap(Record):
    """The caps of a scope: for its lifetime, and perhaps for each period; and its rule."""

    scope: Scope
    epsilon: Epsilon
    delta: Delta
    period: PeriodCap | None = Field(default=None, description="the cap of each calendar period")
    rule: Rule = Field(
        default="basic",
        description="how releases compose: they add up; exactly, within a plan; or by a filter",
    )
    planned: list[PlannedSlot] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_SLOTS,
        description="of `pld`: the slots that releases may take, in the order of preference",
    )
    order: int | None = Field(
        default=None, ge=2, le=HIGHEST_ORDER, description="of `renyi_filter`: the order α"
    )
    cuts: Delta | None = Field(
        default=None,
        description="of `renyi_filter`: the part of δ for outputs that moments leave out",
    )

    @model_validator(mode="after")
    def _fits_its_rule(self) -> ScopeCap:
        if (self.planned is not None) != (self.rule == "pld"):
            raise ValueError("the rule pld, and no other, has a plan")
        is_filter = self.rule == "renyi_filter"
        if {self.order is not None, self.cuts is not None} != {is_filter}:
            raise ValueError("the rule renyi_filter, and no other, has an order and cuts")
        if self.rule != "basic" and (self.period is not None or amount(self.delta) >= 1):
            raise ValueError("only the rule basic has caps of periods, or a δ of 1")
        names = names_of(self.planned or ())
        if len(set(names)) != len(names):
            raise ValueError("two slots have one name")
        if self.cuts is not None and amount(self.cuts) >= amount(self.delta):
            raise ValueError("the cuts are less than δ")
        if self.order is not None and amount(self.epsilon) > MAX_EPSILON:
            raise ValueError(f"the ε of a filter is at most {MAX_EPSILON}")
        return self

    # A field that has no value is absent.
    @model_serializer(mode="wrap")
    def _short(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_defaults(plain(self), {"period", "rule", "planned", "order", "cuts"})


def _without_defaults(plain: dict[str, Any], names: set[str]) -> dict[str, Any]:
    fields = {}
    for name, value in plain.items():
        if name not in names or (value is not None and value is not False and value != "basic"):
            fields[name] = value
    return fields
