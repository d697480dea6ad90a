"""Mechanisms on statistics: designed in closed form from public bounds, and proved at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Protocol, cast

from release.errors import DesignError
from release.exact.privacy import Deltas, Guarantee
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import StatisticMechanism, least_ratio
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_choice import best_quantiles, best_tree
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.choice import best_top
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram
from release.exact.statistics.top.peeled import PeeledTop
from release.noise.cascade import cascade, public_cap
from release.noise.solvers.staircase import staircase
from release.queries.statistics import Counts, Ranks, Scores, Statistic
from release.spec.mechanisms import BEST, ON_STATISTIC


@dataclass(frozen=True)
class StatisticDesign:
    """A mechanism on a statistic with its proved guarantee, and the name by which a spec asks."""

    mechanism: StatisticMechanism
    guarantee: Guarantee
    name: str

    @property
    def sensitivity(self) -> None:
        """None: how far neighbors move a statistic follows from its question."""

    @property
    def deltas(self) -> Deltas:
        """Noise on statistics is pure, whatever the spec allows."""
        return Deltas(Fraction(0), Fraction(0))

    @property
    def loses_in_proportion(self) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`, at the claimed ε."""
        return self.mechanism.loses_in_proportion(self.guarantee.epsilon)


class Family(Protocol):
    """How one family of mechanisms on statistics is designed; ``name`` is its name in the spec."""

    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> StatisticMechanism | None:
        """Its mechanism of least noise at one charge; None where another family has to answer.

        Raises:
            ValueError: there is none for this ε in 64 bits.
        """
        ...


def design_on_statistic(
    statistic: Statistic,
    mechanism: str,
    guarantee: Guarantee,
    part: Fraction = Fraction(1),
) -> StatisticDesign:
    """The mechanism that the spec names, or the default of the statistic; proved.

    ``part`` is what one that loses in proportion is charged, as a part of what another one is. The
    default errs least at one charge.

    Raises:
        DesignError: it cannot satisfy the guarantee.
    """
    if mechanism not in (BEST, *statistic.families):
        raise DesignError(
            f"{mechanism} needs neighbors that replace a unit, and one row a unit; write best"
        )
    is_best = mechanism == BEST
    names = in_order(statistic, guarantee.epsilon, part) if is_best else (mechanism,)
    for name in names:
        try:
            candidate = family_at(name).design(name, statistic, guarantee.epsilon, part)
        except ValueError as error:
            raise DesignError(str(error)) from None
        if candidate is not None and candidate.satisfies(guarantee.epsilon):
            return StatisticDesign(candidate, guarantee, name)
    raise DesignError(f"{mechanism} could not be proved for the {guarantee}; write best")


def in_order(
    statistic: Statistic, epsilon: Fraction, part: Fraction = Fraction(1)
) -> tuple[str, ...]:
    """The mechanisms that can answer it, the best first, by public sizes alone."""
    if isinstance(statistic, Ranks):
        about = statistic.inputs, statistic.shares, statistic.rows
        best = best_quantiles(epsilon, *about, statistic.total, replaces=statistic.replaces)
    elif isinstance(statistic, Counts) and len(statistic.families) > 1:
        best = best_top(epsilon, statistic.bounds, statistic.members, statistic.total)
    elif isinstance(statistic, Scores) and part < 1:
        # A gap table errs a few hundredths less at one ε, and its charge is the larger one.
        best = PermuteAndFlip.family
    else:
        return statistic.families
    return (best, *(name for name in statistic.families if name != best))


def family_at(name: str) -> Family:
    """The family of the mechanism that a spec calls ``name``, loaded on use."""
    module, _, attribute = ON_STATISTIC[name].family.partition(":")
    return cast(Family, getattr(import_module(module), attribute))


class _PermuteAndFlip:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> PermuteAndFlip:
        return PermuteAndFlip.fitted(epsilon, statistic.inputs, statistic.spread)


class _ExponentialMechanism:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> ExponentialMechanism:
        return ExponentialMechanism.fitted(epsilon, statistic.inputs, statistic.spread)


class _NoisySums:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> NoisySums:
        if statistic.inputs > 1:
            return NoisySums.geometric(epsilon, statistic.inputs, statistic.spread)
        # One sum by itself has the least noise of all (T2).
        distances = range(1, statistic.spread + 1)
        stairs = NoisySums(staircase(distances, epsilon, 1).noise, 1, statistic.spread)
        if part == 1:
            return stairs
        # Geometric noise costs only a part of the charge: for that, stairs would be wider.
        geometric = NoisySums.geometric(epsilon, 1, statistic.spread)
        rival = staircase(distances, epsilon * part, 1)
        return geometric if geometric.noise.moment(1) <= rival.loss else stairs


class _TwoCategories:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> TwoCategories:
        return TwoCategories(least_ratio(epsilon, 1))


class _GapTable:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> GapTable | None:
        # Where ε is small a table would be too large, or is not private.
        cap = public_cap(statistic.inputs, epsilon)
        return None if cap is None else cascade(statistic.inputs, cap, epsilon)


class _Top:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> StatisticMechanism:
        if not isinstance(statistic, Counts):
            raise ValueError(f"{name} answers a top")
        bounds, members = statistic.bounds, statistic.members
        if name == CanonicalTop.family:
            return CanonicalTop.fitted(epsilon, bounds, members)
        if name == PeeledTop.family:
            return PeeledTop.fitted(epsilon, bounds, members)
        histogram = NoisyHistogram.fitted(epsilon, bounds)
        return HistogramTop(histogram, members, statistic.published)


class _Quantiles:
    def design(
        self, name: str, statistic: Statistic, epsilon: Fraction, part: Fraction
    ) -> JointQuantiles | QuantileTree:
        if not isinstance(statistic, Ranks):
            raise ValueError(f"{name} answers quantiles")
        if name == QuantileTree.family:
            about = statistic.inputs, statistic.shares, statistic.rows
            return best_tree(epsilon, *about, replaces=statistic.replaces)
        return JointQuantiles.with_spread(
            epsilon, statistic.inputs, statistic.shares, statistic.spread
        )


TOP, QUANTILES = _Top(), _Quantiles()
PERMUTE_AND_FLIP, NOISY_SUMS = _PermuteAndFlip(), _NoisySums()
EXPONENTIAL_MECHANISM = _ExponentialMechanism()
TWO_CATEGORIES, GAP_TABLE = _TwoCategories(), _GapTable()
