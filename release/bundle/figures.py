"""What a report says of a mechanism beside its law: how it was found, how near it is to the best.

None of it is in a published file but the report: a reader can work it out, or has to take it on
trust. A run that is cut off keeps it with its draw.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from release.bundle.statements import epsilon_everywhere
from release.exact.numbers import format_down, format_exact, format_up
from release.noise.families import AnyDesign
from release.records.models import Exact, ExactOrInfinite, Record

NEVER_OCCURS = "some published values never occur: ε between some two answers is infinite"


class Figures(Record):
    """How a mechanism on answers was found, and what it loses."""

    method: str = Field(description="the method of the solver, or `baseline` and its name")
    loss: str = Field(description="the loss function of the spec")
    objective: Exact = Field(
        description="the expected loss under the prior, or at the worst true answer"
    )
    bound_of: Literal["every mechanism", "modular noise", "noise on the integers"] = Field(
        description="the mechanisms with this guarantee of which the lower bound speaks"
    )
    bounded_loss: Exact = Field(
        description="the loss that is bounded: the objective, or of noise on the integers its "
        "expected loss far from both ends"
    )
    lower_bound: Exact = Field(description="none of these mechanisms has a smaller one")
    bound: Literal["proved", "solver"] = Field(
        description="whether the bound is proved, or claimed by a solver"
    )
    gap: Exact = Field(description="the bounded loss less the lower bound, of these two texts")
    notes: list[str] = Field(description="remarks, such as the expected loss of other mechanisms")
    delta: Exact = Field(description="the approximate δ that the law keeps, rounded up")
    epsilon_everywhere: ExactOrInfinite = Field(description="the pure ε between any two answers")


def figures_of(design: AnyDesign) -> Figures:
    """The figures of a designed mechanism, recomputed from its integers."""
    everywhere = epsilon_everywhere(design.mechanism)
    bounded, bound = format_up(design.bounded_loss, 18), format_down(design.lower_bound, 18)
    return Figures(
        method=design.method,
        loss=design.loss.plain_name,
        objective=format_up(design.objective, 18),
        bound_of=design.bound_of.value,
        bounded_loss=bounded,
        lower_bound=bound,
        bound="proved" if design.bound_proved else "solver",
        # Of the two figures as they are written, so that nobody has to allow for rounding.
        gap=format_exact(Fraction(bounded) - Fraction(bound)),
        notes=[*design.notes, *([NEVER_OCCURS] if everywhere == "inf" else [])],
        # Sums of powers of e may need any number of digits; up never understates a δ.
        delta=format_up(design.deltas.approximate, 60),
        epsilon_everywhere=everywhere,
    )
