"""The plan of a tabulation as texts and as plain data.

Standard errors are rounded to four digits; a bound below a strategy is rounded down.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context
from typing import Any

from release.exact.numbers import format_exact, format_up
from release.noise.tables.measured import Strategy
from release.planning.tabulations.plan import TablePlan, TabulationPlan

HEADS = ["level", "margin", "cells", "measured with", "mean standard error", "gain if left out"]

_DIGITS = 4


def sentences(planned: TabulationPlan) -> list[str]:
    """What noise is taken, how good that is, and what it costs."""
    strategy = planned.strategy
    taken = "Gaussian" if strategy.family == "gaussian" else strategy.family
    lines = [
        f"{taken} noise on {len(strategy.noises)} tables of {planned.units}; ε = "
        f"{format_exact(strategy.epsilon)}, δ = {format_exact(strategy.delta)} for all together",
        f"mean standard error of the published tables: {_both(planned)}",
    ]
    if not planned.has_gains and not planned.is_pinned:
        lines.append("--drop-one searches for what is gained where a table is left out")
    return lines


def table_rows(planned: TabulationPlan) -> list[list[str]]:
    """A row for each table under :data:`HEADS`."""
    rows = []
    for table in planned.tables:
        margin = " × ".join(table.margin) or "total"
        error = f"{table.error:.{_DIGITS}g} {planned.units}"
        gain = _gain(table.gain) if table.is_published else "not published"
        rows.append([table.level, margin, str(table.cells), _measured_with(table), error, gain])
    return rows


def plain_tabulation(planned: TabulationPlan) -> dict[str, Any]:
    """The plan as plain data: ε, δ and variances as exact text, errors and gaps as floats."""
    strategy = planned.strategy
    return {
        "name": planned.name,
        "units": planned.units,
        "noise": strategy.family,
        "mean_standard_error": strategy.objective,
        "epsilon": format_exact(strategy.epsilon),
        "delta": format_exact(strategy.delta),
        "strategies": [_plain_strategy(one) for one in _strategies(planned)],
        "has_gains": planned.has_gains,
        "tables": list(map(_plain_table, planned.tables)),
    }


def _strategies(planned: TabulationPlan) -> list[Strategy]:
    both = planned.choice.geometric, planned.choice.gaussian
    return [strategy for strategy in both if strategy is not None]


def _both(planned: TabulationPlan) -> str:
    """Both objectives beside each other, and what is known of how good each is."""
    texts = []
    for strategy in _strategies(planned):
        name = "Gaussian" if strategy.family == "gaussian" else strategy.family
        found = f"{strategy.objective:.{_DIGITS}g}"
        texts.append(f"{name} {found} ({_known(planned, strategy)})")
    return ", ".join(texts)


def _known(planned: TabulationPlan, strategy: Strategy) -> str:
    if strategy.gap is not None:
        return f"no Gaussian split is below {_down(strategy.objective * (1 - strategy.gap))}"
    return "with the tables of the spec" if planned.is_pinned else "best found"


def _down(value: float) -> str:
    """The number to four digits, rounded down."""
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return f"{context.create_decimal_from_float(value):f}"


def _measured_with(table: TablePlan) -> str:
    if table.variance is None:
        return "-"
    if not table.variance:
        return "no noise"
    if table.cost is not None:
        return f"ε = {format_up(table.cost, 6)}"
    return f"variance {float(table.variance):.{_DIGITS}g}"


def _gain(gain: float | None) -> str:
    if gain is None:
        return "-"
    # A search ends within rounding of the same strategy: less than a thousandth is none.
    return "0" if abs(gain) < 5e-4 else f"{gain:.3f}"


def _plain_strategy(strategy: Strategy) -> dict[str, Any]:
    return {
        "noise": strategy.family,
        "mean_standard_error": strategy.objective,
        "gap": strategy.gap,
        "epsilon": format_exact(strategy.epsilon),
        "delta": format_exact(strategy.delta),
    }


def _plain_table(table: TablePlan) -> dict[str, Any]:
    return {
        "level": table.level,
        "margin": list(table.margin),
        "cells": table.cells,
        "published": table.is_published,
        "epsilon": None if table.cost is None else format_exact(table.cost),
        "noise_variance": None if table.variance is None else float(table.variance),
        "mean_standard_error": table.error,
        "gain_if_left_out": table.gain,
    }
