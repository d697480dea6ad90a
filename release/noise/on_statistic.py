"""Mechanisms on statistics: designed in closed form from public bounds, and proved at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release.errors import DesignError
from release.exact.privacy import Deltas, Guarantee
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_choice import best_quantiles
from release.exact.statistics.statistic import Counts, Ranks, Scores, Statistic
from release.exact.statistics.top.choice import best_top
from release.spec.mechanisms import BEST, mechanism_on_statistic


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
            candidate = mechanism_on_statistic(name).designed(statistic, guarantee.epsilon, part)
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
