"""What a plan says of a whole release, of many like it, and of one more table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release.budget.entries import Spent


@dataclass(frozen=True)
class Totals:
    """What equal releases amount to under three rules.

    Attributes:
        releases: how many they are.
        added: basic composition: the sum of their ε and of their δ.
        zcdp: ε by zero-concentrated differential privacy, rounded; None where there is none.
        exact: ε composed exactly, which is proved; None where no ε has so small a δ.
    """

    releases: int
    added: Spent
    zcdp: float | None
    # A rational: it is proved, and a float could round it down.
    exact: Fraction | None


@dataclass(frozen=True)
class OneMore:
    """By how much ε grows if the release has one more query like ``query``; as :class:`Totals`."""

    query: str
    added: Fraction
    zcdp: float | None
    exact: Fraction | None


@dataclass(frozen=True)
class Growth:
    """By which share the noise of all others grows if one more query like ``query`` joins them."""

    query: str
    share: float


@dataclass(frozen=True)
class SharedNoise:
    """The noise of equal queries that share a budget, and what other rules would leave them.

    Attributes:
        queries: their names.
        measure: what the figures are: a standard deviation, a mean error or an error rate of one
            answer far from the ends of the domain, in codes; or the pure ε of one cell.
        added: where the ε of all queries add up; None where the budget is too small for that.
        zcdp: Gaussian noise by zero-concentrated differential privacy; None as above.
        exact: the noise of the release.
    """

    queries: tuple[str, ...]
    measure: str
    added: float | None
    zcdp: float | None
    exact: float


@dataclass(frozen=True)
class TogetherPlan:
    """The public queries of a release together.

    Attributes:
        delta: the δ at which every ε is read: that of the spec, or 10⁻⁶ where that is 0.
        release: what the release amounts to.
        season: many releases like it, where a number was asked for.
        course: on the way to the season: 1, 2, 4 and so on of them.
        one_more: what one more query costs, where guarantees are declared.
        noise: of the queries that share the budget, equal ones together.
        growth: what one more share costs the others.
    """

    delta: Fraction
    release: Totals
    season: Totals | None = None
    course: tuple[Totals, ...] = ()
    one_more: OneMore | None = None
    noise: tuple[SharedNoise, ...] = ()
    growth: Growth | None = None
