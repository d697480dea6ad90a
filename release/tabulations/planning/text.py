"""The plan of a tabulation as texts and as plain data.

Standard errors are rounded to four digits; a bound below a strategy is rounded down.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, TypeAlias

from release.exact.numbers import format_exact, format_up

if TYPE_CHECKING:
    # For their types alone: the command line loads this module at every start.
    from release.tabulations.planning.plan import TablePlan, TabulationPlan
    from release.tabulations.strategy.measured import Strategy

Table: TypeAlias = tuple[list[str], list[list[str]]]
"""The heads of the columns, and the rows."""

_DIGITS = 4

_LEAST = 5e-4
"""A smaller gain is shown as none: a search ends within rounding of the same strategy."""


def sentences(planned: TabulationPlan) -> list[str]:
    """What noise is taken, how good that is, and what it costs."""
    strategy = planned.strategy
    measured = len(strategy.noises)
    lines = [
        f"{_noise(strategy)} noise on {measured} {'table' if measured == 1 else 'tables'}; "
        f"together ε = {format_exact(strategy.epsilon)}, δ = {format_exact(strategy.delta)}",
        f"mean standard error of the published tables: {_both(planned)}",
    ]
    if planned.choice.left_out is not None:
        lines.append(planned.choice.left_out)
    if planned.has_gains:
        is_below = any((table.gain or 0.0) < -_LEAST for table in planned.tables)
        rises = "; below 0 it rises: what served the others is lost" if is_below else ""
        lines.append(
            "the gain is by how much the mean standard error of the other published tables falls "
            f"where this one is not published{rises}"
        )
    elif not planned.is_pinned:
        lines.append("plan --drop-one searches for what is gained where a table is left out")
    return lines


def table_of(planned: TabulationPlan) -> Table:
    """The heads of the columns, and a row for each table; gains only where they were found."""
    heads = ["level", "margin", "cells", "measured with", "standard error", "in 95 of 100"]
    rows = []
    for table in planned.tables:
        errors = [f"{table.error:.{_DIGITS}g} {planned.units}", _within(table)]
        row = [table.level, _margin(table), str(table.cells), _measured_with(table), *errors]
        rows.append([*row, _gain(table.gain)] if planned.has_gains else row)
    return [*heads, "gain if left out"] if planned.has_gains else heads, rows


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
        "strategies": list(map(_plain_strategy, _strategies(planned))),
        "has_gains": planned.has_gains,
        "tables": list(map(_plain_table, planned.tables)),
    }


def _strategies(planned: TabulationPlan) -> list[Strategy]:
    # A spec may ask for one noise alone, and without a δ there is none but geometric noise.
    both = planned.choice.geometric, planned.choice.gaussian
    return [strategy for strategy in both if strategy is not None]


def _both(planned: TabulationPlan) -> str:
    """Both objectives beside each other, and what is known of how good each is."""
    texts = []
    for strategy in _strategies(planned):
        objective = f"{strategy.objective:.{_DIGITS}g}"
        texts.append(f"{_noise(strategy)} {objective} ({_known(planned, strategy)})")
    return ", ".join(texts)


def _noise(strategy: Strategy) -> str:
    return "Gaussian" if strategy.family == "gaussian" else strategy.family


def _known(planned: TabulationPlan, strategy: Strategy) -> str:
    if strategy.gap is not None:
        return f"no Gaussian split is below {_down(strategy.objective * (1 - strategy.gap))}"
    return "with the tables of the spec" if planned.is_pinned else "best found"


def _down(value: float) -> str:
    """The number to four digits, rounded down."""
    # A lower bound may not be written higher than it is, and the format of floats rounds to even.
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return f"{context.create_decimal_from_float(value):f}"


def _margin(table: TablePlan) -> str:
    return table.text if table.is_published else f"{table.text} (not published)"


def _measured_with(table: TablePlan) -> str:
    if table.variance is None:
        return "-"
    if not table.variance:
        return "no noise"
    if table.cost is not None:
        return f"ε = {format_up(table.cost, 6)}"
    return f"variance {float(table.variance):.{_DIGITS}g}"


def _within(table: TablePlan) -> str:
    if table.margin_of_error is None:
        return "-"
    return f"±{table.margin_of_error:.3g}"


def _gain(gain: float | None) -> str:
    if gain is None:
        return "-"
    return "0" if abs(gain) < _LEAST else f"{gain:.3f}"


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
        "margin_of_error": table.margin_of_error,
        "gain_if_left_out": table.gain,
    }
