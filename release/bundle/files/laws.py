"""The law of a mechanism as it is published: whole numbers, and nothing that the question says.

What a reader can work out from the question, such as how far one unit moves an answer, stands in no
file (docs/design/format.md, 5). So a law becomes a mechanism again only with its question.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dp_release_verify import forms
from release.exact.channel import Channel
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.mechanism import BoundOf, Mechanism
from release.exact.modular import Modular
from release.exact.numbers import format_down
from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram
from release.exact.statistics.top.peeled import PeeledTop
from release.queries.registry import statistic_of
from release.queries.statistics import Counts, Ranks, Statistic
from release.spec.model import Spec
from release.spec.query import Query

if TYPE_CHECKING:
    # Whoever reads a release loads no solver.
    from release.noise.families import AnyDesign
    from release.noise.on_statistic import StatisticDesign

AnyMechanism: TypeAlias = Mechanism | StatisticMechanism


def law_of(design: AnyDesign | StatisticDesign) -> forms.Law:
    """The law of a designed mechanism, with the bound that is proved of its loss."""
    law = design.mechanism.law()
    return replace(law, bound=_bound(design)) if isinstance(law, forms.IntegersLaw) else law


def _bound(design: Any) -> forms.Bound | None:
    """The loss that no noise on the integers is below, where that is proved."""
    bound = Fraction(format_down(design.lower_bound, 18))
    is_proved = design.bound_proved and design.bound_of is BoundOf.INTEGERS
    if not is_proved or bound == 0:
        return None
    multipliers = {} if design.multipliers is None else design.multipliers.of
    prices = [forms.Price(distance, list(own)) for distance, own in multipliers.items()]
    return forms.Bound(bound, prices or None)


def found_of(mechanism: Mechanism, sensitivity: Sensitivity) -> forms.Found:
    """How far neighbors of the very table move an answer, for the auditor alone."""
    if isinstance(mechanism, Modular) or sensitivity.distances is None:
        return forms.Found(differences=[list(shift) for shift in sensitivity.shifts])
    return forms.Found(distances=sorted(sensitivity.distances))


def mechanism_of(spec: Spec, query: Query, law: Any) -> AnyMechanism:
    """The mechanism that a public law is for the question that it answers.

    Args:
        spec: the spec of the question.
        query: the question.
        law: one of the forms of :data:`dp_release_verify.forms.LAWS`.

    Raises:
        ValueError, OverflowError: the integers are no mechanism of this question.
    """
    if isinstance(law, forms.IntegersLaw):
        low, high = _runs(law.ends.low), _runs(law.ends.high)
        return IntegerMechanism(IntegerNoise.of_law(law.noise), query.answers.size, low, high)
    if isinstance(law, forms.ModularLaw):
        return Modular(_pmf(query, law.weights))
    if isinstance(law, forms.ChannelLaw):
        return Channel.of(law.rows)
    if not query.is_on_statistic:
        raise ValueError(f"{law.family} is noise on a statistic, and {query.name} has none")
    return _statistic_mechanism(statistic_of(spec, query), law)


def _statistic_mechanism(  # noqa: PLR0911 - one return a family
    statistic: Statistic, law: Any
) -> StatisticMechanism:
    if isinstance(law, forms.GapLaw):
        return GapTable(statistic.inputs, law.cap, np.array(law.weights, dtype=np.int64))
    if isinstance(law, forms.SumsLaw):
        return NoisySums(IntegerNoise.of_law(law.noise), statistic.inputs, statistic.spread)
    if isinstance(statistic, Ranks):
        about = statistic.inputs, statistic.shares
        if isinstance(law, forms.TreeLaw):
            return QuantileTree(*about, statistic.rows, statistic.replaces, law.block, law.ratio)
        return JointQuantiles(*about, statistic.spread, law.ratio)
    if isinstance(statistic, Counts):
        if law.family == CanonicalTop.family:
            return CanonicalTop(statistic.bounds, statistic.members, law.ratio)
        if law.family == PeeledTop.family:
            return PeeledTop(statistic.bounds, statistic.members, law.ratio)
        histogram = NoisyHistogram(statistic.bounds, law.ratio)
        return HistogramTop(histogram, statistic.members, statistic.published)
    if law.family == TwoCategories.family:
        return TwoCategories(law.ratio)
    if law.family == ExponentialMechanism.family:
        return ExponentialMechanism(statistic.inputs, statistic.spread, law.ratio)
    if law.family == PermuteAndFlip.family:
        return PermuteAndFlip(statistic.inputs, statistic.spread, law.ratio)
    raise ValueError(f"{law.family} does not answer this question")


def _runs(pairs: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((length, shift) for length, shift in pairs)


def _pmf(query: Query, weights: list[int]) -> Pmf:
    total = sum(weights)
    # Weights beyond 64 bits are held as Python's integers.
    dtype: Any = np.int64 if total <= 2**62 else object
    return Pmf(query.answers.group, np.array(weights, dtype=dtype), total)
