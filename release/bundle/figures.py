"""What a report says of a mechanism beside its law: how it was found, how near it is to the best.

None of it is in a published file but the report: a reader can work it out, or has to take it on
trust. A run that is cut off keeps it with its draw.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from release.bundle.statements import epsilon_everywhere
from release.exact.channel import Channel
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_down, format_exact, format_up
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop
from release.exact.statistics.top.peeled import PeeledTop
from release.noise.families import AnyDesign
from release.records.models import Exact, ExactOrInfinite, Record
from release.spec.query import Query

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


def sentence_of(query: Query, mechanism: Mechanism, sensitivity: Sensitivity) -> str:
    """A mechanism on answers and the extent of its proof: how a report begins to describe it."""
    answers = query.answers.size
    match mechanism:
        case IntegerMechanism():
            ends = "clamped and remapped" if mechanism.low or mechanism.high else "clamped"
            farthest = max(sensitivity.distances or (0,))
            return (
                f"Noise on the integers, {ends} to {answers} answers in order, proved for "
                f"neighbors up to {farthest} apart"
            )
        case Channel():
            pairs = len(sensitivity.pairs(answers))
            return (
                f"A channel: one pmf for each of {answers} true answers, proved over {pairs} "
                "ordered pairs of neighboring answers"
            )
    sizes = " × ".join(map(str, query.answers.group.moduli))
    differences = len(sensitivity.shifts)
    return f"Modular noise: one pmf on {sizes} answers, proved for {differences} differences"


def sentence_on_statistic(  # noqa: PLR0911 - one return a family
    mechanism: StatisticMechanism,
) -> str:
    """As :func:`sentence_of`, of a mechanism on a statistic."""
    match mechanism:
        case PermuteAndFlip() | ExponentialMechanism():
            how = "permute-and-flip"
            if isinstance(mechanism, ExponentialMechanism):
                how = "the exponential mechanism"
            return (
                f"A selection among {mechanism.candidates} candidates by {how}, proved for scores "
                f"that one unit moves within a range of {mechanism.spread}"
            )
        case TwoCategories():
            return (
                "A choice between two categories by their gap, proved for one unit that is replaced"
            )
        case GapTable():
            return (
                f"A choice among {mechanism.categories} categories by their gaps up to "
                f"{mechanism.cap}, proved for one unit that is replaced"
            )
        case JointQuantiles():
            return (
                f"{len(mechanism.shares)} quantiles on {mechanism.candidates} points, drawn "
                f"together, proved for scores that one unit moves by up to {mechanism.spread}"
            )
        case QuantileTree():
            blocks = f" and of blocks of {mechanism.block}" if mechanism.block > 1 else ""
            return (
                f"{len(mechanism.shares)} quantiles read off noisy counts of "
                f"{mechanism.candidates} points{blocks}, proved for units of up to "
                f"{mechanism.rows} rows"
            )
        case NoisySums():
            what = "the sum" if mechanism.sums == 1 else f"each of {mechanism.sums} sums"
            return (
                f"Noise on {what} of a cell, proved for units that move them by "
                f"{mechanism.spread} together"
            )
        case HistogramTop():
            of = _of_categories(mechanism.histogram.bounds)
            return f"The {mechanism.members} largest noisy counts {of}"
        case CanonicalTop():
            return (
                f"One draw from all sets of {mechanism.members} {_of_categories(mechanism.bounds)}"
            )
        case PeeledTop():
            of = _of_categories(mechanism.bounds)
            return f"{mechanism.members} selections, one after the other, {of}"
    raise TypeError(f"{mechanism.family} has no sentence")


def _of_categories(bounds: CountBounds) -> str:
    return (
        f"of {bounds.categories} categories, proved for units that move their counts by "
        f"{bounds.norm} together"
    )
