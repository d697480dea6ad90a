"""The models of what a query asks of its mechanism: guarantee, loss function, sensitivity."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from release.exact.channel import probabilistic_fits
from release.exact.domain import AnswerDomain, JointDomain, Shift
from release.exact.losses import LossName
from release.exact.privacy import Definition, Guarantee
from release.spec.domains import MAX_ANSWERS, Exact, Model, one_of


class GuaranteeSpec(Model):
    """The guarantee that a query claims for one cell."""

    definition: Definition = Field(
        default=Definition.PURE,
        strict=False,
        description="the definition that δ refers to; `pure` where δ is 0 and none is written",
    )
    epsilon: Exact = Field(description="ε of one cell")
    delta: Exact = Field(default=Fraction(0), description="δ of one cell; 0 for a pure guarantee")
    # Only where the spec says so: the approximate guarantee is weaker, and nobody reads it unasked.
    fallback: Literal["approximate"] | None = Field(
        default=None,
        description="claim the weaker approximate guarantee where a probabilistic one is out of "
        "reach: more than 64 answers in order",
    )

    least: Literal["epsilon", "delta"] | None = Field(
        default=None,
        description="with a `target`: claim the least of it that meets the target, at most what "
        "is written",
    )

    @model_validator(mode="after")
    def _check(self) -> GuaranteeSpec:
        if self.delta and "definition" not in self.model_fields_set:
            raise ValueError("a δ above 0 needs its definition: approximate or probabilistic")
        # Refuses what is no guarantee, such as a pure one with δ above 0.
        self.to_guarantee()
        if self.fallback is not None and self.definition is not Definition.PROBABILISTIC:
            raise ValueError("fallback is for a probabilistic guarantee; leave it out")
        return self

    def within_reach(self, domain: AnswerDomain | JointDomain) -> GuaranteeSpec:
        """The guarantee, or the approximate one where the spec falls back on it for ``domain``."""
        if self.fallback is None or probabilistic_fits(domain):
            return self
        return GuaranteeSpec(
            definition=Definition.APPROXIMATE,
            epsilon=self.epsilon,
            delta=self.delta,
            least=self.least,
        )

    def to_guarantee(self) -> Guarantee:
        """The guarantee as :mod:`release.exact` computes with it."""
        return Guarantee(self.definition, self.epsilon, self.delta)


class TableLoss(Model):
    """A loss function of the curator's own, as a table of costs."""

    table: list[Exact] = Field(description="the cost of each noise value 0..n, as exact numbers")


LossSpec: TypeAlias = Annotated[
    Annotated[LossName, Field(strict=False), Tag("name")] | Annotated[TableLoss, Tag("table")],
    one_of(name="a loss by name", table="{table: [costs]}"),
]


class Objective(StrEnum):
    """What of the expected losses at the true answers is least: their mean, or the largest."""

    MEAN = "mean"
    WORST_CASE = "worst_case"


class Source(StrEnum):
    """Where the sensitivity of a query comes from.

    ``empirical``: from this table, so that the guarantee is instance-specific. ``global``: from the
    declared domain and bounds, for every table.
    """

    EMPIRICAL = "empirical"
    GLOBAL = "global"


def _vectors_or_codes(value: object) -> str:
    # By the first alone: a list of both kinds is refused by the model of the one that it chooses.
    first = value[0] if isinstance(value, list) and value else None
    return "vectors" if isinstance(first, list) else "codes"


class DeclaredSensitivity(Model):
    """Sensitivity declared by the spec, and enforced by reading fewer rows.

    The differences of a tuple are lists with a coordinate for each part.
    """

    declared: Annotated[
        Annotated[list[int], Tag("codes")] | Annotated[list[list[int]], Tag("vectors")],
        Discriminator(_vectors_or_codes),
        Field(min_length=1, max_length=MAX_ANSWERS),
    ] = Field(description="the differences in codes; the negative of each is added")

    @property
    def shifts(self) -> list[Shift]:
        """One tuple of coordinates for each difference."""
        shifts: list[Shift] = []
        for shift in self.declared:
            # A code is the one coordinate of a plain answer.
            shifts.append((shift,) if isinstance(shift, int) else tuple(shift))
        return shifts


SensitivitySpec: TypeAlias = Annotated[
    Annotated[Source, Field(strict=False), Tag("name")]
    | Annotated[DeclaredSensitivity, Tag("declared")],
    one_of(name="empirical, global", declared="{declared: [1, 2]}"),
]
