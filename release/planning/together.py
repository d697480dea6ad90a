"""What a release amounts to under three rules of composition, and many like it.

The exact figure is proved, with every rounding upward; that by zCDP is a rounded comparison
(:mod:`release.planning.zcdp`). Queries whose mechanism depends on the table have no profile: under
each rule their charges are added (docs/design/mathematics.md, 2.19).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from release.budget.composed import Together, step_for
from release.budget.cost import Charge, release_step, touched_cells
from release.budget.entries import Spent
from release.budget.profiles import profiles_on
from release.errors import SpecError
from release.exact.composition.distribution import LossDistribution
from release.exact.numbers import MAX_EPSILON, format_exact, format_up
from release.noise.cache import DesignCache
from release.noise.composed.share import UNUSED
from release.noise.shares import asked_of_budget
from release.planning.plan import Plan
from release.planning.shared_noise import growth_by_one_more, shared_noise
from release.planning.totals import OneMore, TogetherPlan, Totals
from release.planning.zcdp import Concentrated, concentrated
from release.spec.load import SpecFile
from release.spec.shares import shared

READ_AT = Fraction(1, 10**6)
"""The δ at which an ε is read where the spec has none: with none at all charges add up."""

MOST_RELEASES = 100_000
"""The longest season."""


def check_season(releases: int | None) -> None:
    """Refuse a number of releases that is none.

    Raises:
        SpecError: it is not a number from 2 to :data:`MOST_RELEASES`.
    """
    is_number = isinstance(releases, int) and not isinstance(releases, bool)
    if releases is not None and not (is_number and 2 <= releases <= MOST_RELEASES):
        raise SpecError("--season", f"write a number of releases from 2 to {MOST_RELEASES}")


def plan_together(
    spec_file: SpecFile,
    plan: Plan,
    season: int | None = None,
    cache: DesignCache | None = None,
    gap: Fraction = Fraction(0),
) -> TogetherPlan | None:
    """The figures of all public queries together; None where there are none.

    Args:
        spec_file: the spec as it was written.
        plan: its plan.
        season: how many releases like this one.
        cache: mechanisms of queries that declare a guarantee beside shares.
        gap: as for the release.
    """
    if not plan.public:
        return None
    rules = _Rules.of(plan)
    release = rules.totals(1, rules.together.losses, rules.added + rules.declared)
    totals = TogetherPlan(rules.delta, release)
    if season is not None:
        course = tuple(rules.course(season))
        totals = replace(totals, season=course[-1], course=course)
    # One more query in a shared budget costs no ε: it costs the others noise.
    shares = None if plan.unseen is None else plan.unseen.shared
    if shares is None or not shared(spec_file.spec):
        return replace(totals, one_more=rules.one_more())
    budget = asked_of_budget(spec_file, cache, gap)
    # Where charges add up one more share takes its part from all others, and that is no news.
    growth = None if shares.is_added else growth_by_one_more(budget, shares.designs)
    return replace(
        totals,
        noise=shared_noise(budget, shares.designs, shares.added),
        growth=growth,
    )


def use_of_budget(spec_file: SpecFile, plan: Plan) -> str | None:
    """What part of the budget shares and targets use, and why not more; None without any."""
    shares = None if plan.unseen is None else plan.unseen.shared
    if shares is None or not plan.public or not shared(spec_file.spec):
        return None
    cap = plan.cap_epsilon
    used = f"{float(plan.epsilon / cap):.1%}".replace("%", " %")
    sentence = f"the release uses {used} of ε = {format_exact(cap)}"
    if plan.epsilon >= cap * (1 - UNUSED):
        return sentence
    if not any(query.share is not None for query in plan.spec_file.spec.queries):
        return f"{sentence}: the targets need no more"
    if not shares.is_added:
        return f"{sentence}: no more noise can be taken away in 62 bits"
    parts = sum((charge.epsilon for _, charge in _charges(plan, are_public=True)), Fraction(0))
    if parts >= cap * (1 - UNUSED):
        return f"{sentence}: their charges add up to {format_up(parts, 6)}, and compose to less"
    return f"{sentence}: no query takes more than ε = {MAX_EPSILON}"


def _charges(plan: Plan, *, are_public: bool) -> list[tuple[str, Charge]]:
    """The charge of each query by its name; once, also where two cases are planned."""
    charges: dict[str, Charge] = {}
    for planned in plan.queries:
        if planned.query.is_empirical is not are_public:
            charges[planned.query.name] = planned.charge
    for statistic in plan.on_statistic:
        if are_public:
            charges[statistic.query.name] = statistic.charge
    for tabulation in plan.tabulations:
        for measured in tabulation.measured:
            if are_public:
                charges[measured.query.name] = measured.charge
    return list(charges.items())


def _sum(charges: Sequence[tuple[str, Charge]]) -> Spent:
    total = Spent(Fraction(0), Fraction(0))
    for _, charge in charges:
        total += Spent(charge.epsilon, charge.delta)
    return total


@dataclass(frozen=True)
class _Rules:
    """The public queries of a plan under three rules, and the charges of the others.

    ``added`` is the charge of public queries by addition, ``declared`` that of the others.
    """

    plan: Plan
    delta: Fraction
    together: Together
    concentrated: Concentrated
    added: Spent
    declared: Spent

    @classmethod
    def of(cls, plan: Plan) -> _Rules:
        spec_file = plan.spec_file
        together = plan.composed or profiles_on(spec_file, plan.public, release_step(spec_file))
        rho = Concentrated()
        # Equal queries have equal profiles, and ρ is found by hundreds of orders: once for each.
        for profile, times in Counter(together.profiles).items():
            rho += concentrated(profile.distribution()).times(times)
        added = _sum(_charges(plan, are_public=True))
        declared = _sum(_charges(plan, are_public=False))
        return cls(plan, spec_file.spec.budget.delta or READ_AT, together, rho, added, declared)

    def totals(self, releases: int, losses: LossDistribution, single: Spent) -> Totals:
        """The totals of so many releases, whose public queries lose ``losses`` in all.

        ``single`` is what one of them counts for where they are added up.
        """
        times = Fraction(releases)
        # Instance-specific queries have no profile: their δ is added, the rest is for the profiles.
        delta = self.delta - times * self.declared.delta
        zcdp = exact = None
        if delta >= 0:
            zcdp = self.concentrated.times(releases).epsilon_at(float(delta))
            exact = losses.epsilon_at(delta)
        # Masses that are folded or rounded count as δ, so that the sum can be the smaller one.
        if times * self.added.delta <= delta:
            basic = times * self.added.epsilon
            exact = basic if exact is None else min(exact, basic)
            zcdp = float(basic) if zcdp is None else min(zcdp, float(basic))
        more = times * self.declared.epsilon
        return Totals(
            releases,
            Spent(times * single.epsilon, times * single.delta),
            None if zcdp is None else zcdp + float(more),
            None if exact is None else exact + more,
        )

    def course(self, season: int) -> list[Totals]:
        """The totals of 1, 2, 4 and so on releases, and of the whole season at last."""
        step = self._season_step(season)
        single = profiles_on(self.plan.spec_file, self.plan.public, step).losses
        power = single
        charged = Spent(self.plan.epsilon, self.plan.delta)
        course, count = [], 1
        # Squaring: a season of n releases takes log n compositions.
        while 2 * count <= season:
            course.append(self.totals(count, power, charged))
            count, power = 2 * count, power.composed(power)
        # The last power is the longest part of the season; the rest of it is composed anew.
        rest = season - count
        if rest:
            course.append(self.totals(count, power, charged))
            power = power.composed(single.repeated(rest))
        return [*course, self.totals(season, power, charged)]

    def _season_step(self, season: int) -> Fraction:
        """A grid for so many releases: that of one is finer than the season's ε needs."""
        spec_file = self.plan.spec_file
        estimate = self.concentrated.times(season).epsilon_at(float(self.delta))
        # Charges of many releases add up to far more ε than they compose to.
        cap = season * self.added.epsilon
        if estimate:
            cap = min(cap, Fraction(ceil(estimate * 1000), 1000)) or Fraction(1)
        cells, claimed = 0, set()
        for query, _, _ in self.plan.public:
            cells += touched_cells(spec_file, query)
            if not query.is_shared:
                claimed.add(query.claimed.epsilon)
        return step_for(claimed, cap or Fraction(1), season * cells)

    def one_more(self) -> OneMore | None:
        """What one more query costs that is like the count of the largest charge."""
        charges = dict(_charges(self.plan, are_public=True))
        queries = [query for query, _, _ in self.plan.public]
        # A count if there is one, whatever the others charge: readers know what it is.
        like = max(queries, key=lambda query: (query.kind == "count", charges[query.name].epsilon))
        profile = self.together.profiles[queries.index(like)]
        charge = charges[like.name]
        more = replace(
            self,
            together=replace(self.together, profiles=(*self.together.profiles, profile)),
            concentrated=self.concentrated + concentrated(profile.distribution()),
            added=self.added + Spent(charge.epsilon, charge.delta),
        )
        now = self.totals(1, self.together.losses, self.added)
        then = more.totals(1, more.together.losses, more.added)
        zcdp = exact = None
        if now.zcdp is not None and then.zcdp is not None:
            zcdp = then.zcdp - now.zcdp
        if now.exact is not None and then.exact is not None:
            exact = then.exact - now.exact
        return OneMore(like.name, charge.epsilon, zcdp, exact)
