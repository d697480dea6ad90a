"""Wrong draws, one or more of each family: copies that publish more than their mechanism says.

Each is planted in what a family publishes, or in one of its noises, and shown by a small spec that
names the family. What reads true values after the noise was added is among them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.audit.runner import Job
from tests.planted.specs import WEAK, count, plain
from tests.small import query

_ONE = {"sensitivity": "global", "by": []}

Write = Callable[[Path], Path]


def _asked(one: dict[str, Any], rows: int = 1, **fields: Any) -> Write:
    return plain([one | _ONE], max_rows_per_unit=rows, **fields)


def _mode(mechanism: str, categories: int) -> Write:
    fields = {"domain": {"cyclic": categories}, "noise": "on_statistic", "mechanism": mechanism}
    return _asked(query("mode", name="commonest") | fields)


def _top(mechanism: str, rows: int = 1, **fields: Any) -> Write:
    top = query("count", name="tops", of="kind", domain={"cyclic": 3}, mechanism=mechanism, k=1)
    return _asked(top | {"kind": "top"} | fields, rows)


def _quantiles(mechanism: str, bins: int) -> Write:
    asked = query("binned", name="ranks", statistic="quantiles", at=["0.25", "0.75"])
    asked |= {"bins": {"low": 0, "high": bins, "count": bins}, "mechanism": mechanism}
    del asked["clamp"]
    return _asked(asked)


_SUM = query("binned", name="summed", noise="on_statistic", clamp=[0, 4])
_STATISTICS = "exact/statistics"

DRAWS = (
    Job(
        "integer: a true 0 stays 0",
        "exact/integers/mechanism.py",
        "np.where(below, 0, inside)))",
        "np.where(below | (answers == 0), 0, inside)))",
        _asked(count("line")),
    ),
    Job(
        "integer: noise to one side",
        "exact/integers/noise.py",
        "uniform = random_below_power(self.total.bit_length() - 1, count, source)",
        "uniform = random_below_power(self.total.bit_length() - 2, count, source)",
        _asked(count("line")),
    ),
    Job(
        "modular: half the noise",
        "exact/modular.py",
        "draw_noise(self.pmf, answers.size, source))",
        "draw_noise(self.pmf, answers.size, source) // 2)",
        _asked(count("ring", mechanism="modular")),
    ),
    Job(
        "channel: a true 0 stays 0",
        "exact/mechanism.py",
        "        return draw_codes(answers, self.row, self.total, source)",
        "        return draw_codes(answers, self.row, self.total, source) * (answers > 0)",
        _asked(count("table", mechanism="channel", guarantee=WEAK)),
    ),
    Job(
        "sums: half the noise",
        f"{_STATISTICS}/sums.py",
        "np.clip(held + noise, -REACH, REACH)",
        "np.clip(held + noise // 2, -REACH, REACH)",
        _asked(_SUM),
    ),
    Job(
        "permute_and_flip: a gap too little",
        f"{_STATISTICS}/permute_and_flip.py",
        "(gaps >= 0) & (coins >= gaps)",
        "(gaps >= 0) & (coins >= 2 * gaps)",
        _mode("permute_and_flip", 3),
    ),
    Job(
        "exponential_mechanism: gaps count twice",
        f"{_STATISTICS}/exponential.py",
        "coins >= np.take_along_axis(gaps[waiting], proposed, axis=1)",
        "coins >= 2 * np.take_along_axis(gaps[waiting], proposed, axis=1)",
        _mode("exponential_mechanism", 3),
    ),
    Job(
        "two_categories: gaps count whole",
        f"{_STATISTICS}/gap_table.py",
        "source) >= gaps // 2\n",
        "source) >= gaps\n",
        _mode("two_categories", 2),
    ),
    Job(
        "gap_table: the leader is published",
        f"{_STATISTICS}/gap_table.py",
        ".sum(axis=1, keepdims=True)\n        return np.take_along_axis(order, place, axis=1)",
        ".sum(axis=1, keepdims=True) * 0\n        return np.take_along_axis(order, place, axis=1)",
        _mode("gap_table", 3),
    ),
    Job(
        "top_histogram: the true counts beside the members",
        f"{_STATISTICS}/top/histogram.py",
        "shown = noisy if is_whole else np.take_along_axis(noisy, codes, axis=1)",
        "shown = statistics if is_whole else np.take_along_axis(statistics, codes, axis=1)",
        _top("top_histogram", counts=True),
    ),
    Job(
        "top_histogram: all true counts",
        f"{_STATISTICS}/top/histogram.py",
        "shown = noisy if is_whole else np.take_along_axis(noisy, codes, axis=1)",
        "shown = statistics if is_whole else np.take_along_axis(statistics, codes, axis=1)",
        _top("top_histogram", histogram=True),
    ),
    Job(
        "top_histogram: ties by true counts",
        f"{_STATISTICS}/top/histogram.py",
        "codes = largest(noisy, self.members)",
        "codes = largest(noisy * 2**20 + statistics, self.members)",
        _top("top_histogram"),
    ),
    Job(
        "top_histogram: ties of two categories by true counts",
        f"{_STATISTICS}/top/histogram.py",
        "codes = largest(noisy, self.members)",
        "codes = largest(noisy * 2**20 + statistics, self.members)",
        _top("top_histogram", domain={"cyclic": 2}),
    ),
    Job(
        "top_histogram: half the noise",
        f"{_STATISTICS}/top/histogram.py",
        "self.noise.draw(statistics.size, source).reshape(statistics.shape)",
        "self.noise.draw(statistics.size, source).reshape(statistics.shape) // 2",
        _top("top_histogram"),
    ),
    Job(
        "top_canonical: the likeliest set",
        f"{_STATISTICS}/top/canonical.py",
        "_uniform_below(sum(map(_class_weight, classes)), source)",
        "_uniform_below(sum(map(_class_weight, classes)), source) // 2",
        _top("top_canonical", rows=2),
    ),
    Job(
        "top_peeled: gaps of half the size",
        f"{_STATISTICS}/top/peeled.py",
        "best - counts), self.ratio, source)",
        "2 * (best - counts)), self.ratio, source)",
        _top("top_peeled", rows=2),
    ),
    Job(
        "joint_quantiles: the fullest point",
        f"{_STATISTICS}/joint_quantiles.py",
        "draw_path(self._paths(rows), source) // self.sublevels",
        "draw_path(self._paths(rows), source) // self.sublevels * (rows[0] > 0)",
        _quantiles("joint_quantiles", 3),
    ),
    Job(
        "quantile_tree: points without noise",
        f"{_STATISTICS}/quantile_tree.py",
        "points = self._noisy(rows, source)",
        "points = rows.astype(np.float64)",
        _quantiles("quantile_tree", 5),
    ),
    Job(
        "quantile_tree: blocks without noise",
        f"{_STATISTICS}/quantile_tree.py",
        "blocks = self._noisy(np.add.reduceat(rows, starts, axis=1), source)",
        "blocks = np.add.reduceat(rows, starts, axis=1).astype(np.float64)",
        _quantiles("quantile_tree", 200),
    ),
    Job(
        "quantile_tree: true counts are added to the estimates",
        f"{_STATISTICS}/quantile_tree.py",
        "read_off(self._estimated(part, source), self.shares)",
        "read_off(self._estimated(part, source) + part / 8, self.shares)",
        _quantiles("quantile_tree", 5),
    ),
)
