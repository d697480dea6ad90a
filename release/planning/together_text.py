"""The figures of all queries together as texts and as plain data.

Proved figures are rounded up, or exact; those by zCDP and of noise are rounded.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

from release.budget.entries import Spent
from release.exact.numbers import format_exact, format_up
from release.planning.totals import SharedNoise, TogetherPlan, Totals

Table: TypeAlias = tuple[list[str], list[list[str]]]
"""The heads of the columns, and the rows."""

_RULES = ("added up", "zCDP (rounded)", "composed exactly")


def epsilon_table(together: TogetherPlan) -> Table:
    """ε under three rules: of the release, of a season, and of one more query."""
    rows = []
    for totals in filter(None, (together.release, together.season)):
        rows.append([_releases(totals), *_epsilons(totals, together.delta)])
    more = together.one_more
    if more is not None:
        zcdp = "-" if more.zcdp is None else f"+{_figure(more.zcdp)}"
        figures = f"+{_up(more.added)}", zcdp, _up(more.exact, "+")
        rows.append([f"one more like {more.query}", *figures])
    return [f"ε at δ = {format_exact(together.delta)}", *_RULES], rows


def noise_table(together: TogetherPlan) -> Table:
    """The noise of queries that share the budget; no rows where none do."""
    rows = []
    for row in together.noise:
        figures = map(_figure_or_none, (row.added, row.zcdp, row.exact))
        rows.append([_names(row), row.measure, *figures])
    return ["noise of one answer", "measured by", *_RULES[:2], "this spec"], rows


def growth_sentence(together: TogetherPlan) -> str | None:
    """What one more share costs the others; None where there is none."""
    if together.growth is None:
        return None
    like, percent = together.growth.query, 100 * together.growth.share
    return (
        f"one more share of weight 1 like {like}: the noise of the others grows by "
        f"{_figure(percent)} %"
    )


def plain_together(together: TogetherPlan) -> dict[str, Any]:
    """The figures as plain data: proved ones as exact text, rounded ones as floats."""
    season, more, growth = together.season, together.one_more, together.growth
    plain_more = None
    if more is not None:
        plain_more = {
            "query": more.query,
            "added": format_exact(more.added),
            "zcdp": more.zcdp,
            "exact": None if more.exact is None else format_exact(more.exact),
        }
    return {
        "delta": format_exact(together.delta),
        "release": _plain_totals(together.release),
        "season": None if season is None else _plain_totals(season),
        "course": list(map(_plain_totals, together.course)),
        "one_more": plain_more,
        "noise": list(map(_plain_noise, together.noise)),
        "growth": None if growth is None else {"query": growth.query, "share": growth.share},
    }


def _plain_totals(totals: Totals) -> dict[str, Any]:
    return {
        "releases": totals.releases,
        "added": {
            "epsilon": format_exact(totals.added.epsilon),
            "delta": format_exact(totals.added.delta),
        },
        "zcdp": totals.zcdp,
        "exact": None if totals.exact is None else format_exact(totals.exact),
    }


def _plain_noise(row: SharedNoise) -> dict[str, Any]:
    figures = {"added": row.added, "zcdp": row.zcdp, "exact": row.exact}
    return {"queries": list(row.queries), "measure": row.measure, **figures}


def _releases(totals: Totals) -> str:
    return "this release" if totals.releases == 1 else f"{totals.releases} releases like it"


def _epsilons(totals: Totals, delta: Fraction) -> list[str]:
    # Proved figures are rounded up; that of zCDP is of floats, and rounded to the nearest.
    return [_added_up(totals.added, delta), _figure_or_none(totals.zcdp), _up(totals.exact)]


def _added_up(added: Spent, delta: Fraction) -> str:
    """The sum of ε, and that of δ where it exceeds the one at which the others are read."""
    epsilon = _up(added.epsilon)
    return epsilon if added.delta <= delta else f"{epsilon} at δ = {_up(added.delta)}"


def _up(value: Fraction | None, sign: str = "") -> str:
    """A bound, rounded up; "-" where there is none."""
    return "-" if value is None else sign + format_up(value, 6)


def _figure(value: float) -> str:
    return f"{value:.4g}"


def _figure_or_none(value: float | None) -> str:
    return "-" if value is None else _figure(value)


def _names(row: SharedNoise) -> str:
    further = len(row.queries) - 1
    if not further:
        return row.queries[0]
    return f"{row.queries[0]} and {further} other{'s' if further > 1 else ''}"
