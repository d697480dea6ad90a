"""What is said of how near answers are, against draws and exact chances in the worst case."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from release.exact.domain import Codes
from release.exact.statistics.nearness import Nearness
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.queries.on_statistic import OnStatisticQuery
from release.spec.declarations import Relation
from release.spec.kinds import AnyQuery
from tests.exact.statistics.test_permute_and_flip import stream
from tests.small import query

GLOBAL = {"sensitivity": "global", "noise": "on_statistic"}
NOMINAL = {"nominal": list("abcdefgh")}
TOP = query("count", of="kind", domain=NOMINAL, sensitivity="global") | {"kind": "top", "k": 3}
QUARTILES = query(
    "count", of="wh", domain={"ordered": {"min": 0, "max": 999}}, sensitivity="global"
) | {"kind": "quantiles", "at": ["1/4", "1/2", "3/4"]}
DRAWS = 4000


def told(
    plain: dict[str, Any], relation: Relation = Relation.ADD_REMOVE
) -> tuple[OnStatisticQuery, StatisticDesign, Nearness]:
    asked = TypeAdapter(AnyQuery).validate_python(plain)
    assert isinstance(asked, OnStatisticQuery)
    statistic = asked.statistic(1, relation)
    design = design_on_statistic(statistic, asked.mechanism, asked.claimed.to_guarantee())
    return asked, design, design.mechanism.nearness(asked.wording)


def drawn(design: StatisticDesign, statistics: list[int]) -> Codes:
    return design.mechanism.draw(np.tile(statistics, (DRAWS, 1)), stream("nearness"))


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_lead_of_a_mode_is_enough_and_one_less_is_not(size: int, relation: Relation) -> None:
    _, design, nearness = told(
        query("mode", domain={"nominal": list("abcdefgh")[:size]}, **GLOBAL), relation
    )
    lead = int(nearness.near)
    chances = []
    for here in (lead, lead - 2):
        found = drawn(design, [50 + here, *[50] * (size - 1)])
        chances.append((found == 0).mean())
    assert chances[0] >= 0.95 - 0.015
    assert chances[1] < 0.95
    assert f"by {lead} units" in nearness.sentence


@pytest.mark.parametrize("mechanism", ["top_histogram", "top_canonical", "top_peeled"])
def test_all_of_a_top_are_found_at_the_lead(mechanism: str) -> None:
    _, design, nearness = told(TOP | {"mechanism": mechanism})
    lead = int(nearness.near)
    found = np.sort(drawn(design, [100 + lead] * 3 + [100] * 5), axis=1)
    assert (found == [0, 1, 2]).all(axis=1).mean() >= 0.95 - 0.015
    assert "if all 3 lead every other category" in nearness.sentence


def test_a_top_of_one_is_said_in_the_singular() -> None:
    _, _, nearness = told(TOP | {"k": 1})
    assert nearness.sentence.startswith("a category that leads every other by ")


def test_the_rank_of_a_median() -> None:
    asked, design, nearness = told(query("binned", statistic="median", **GLOBAL))
    far = int(nearness.near)
    # One bin has the middle rank; all others lie as far off as is told.
    assert asked.wording.scores_a_row == 2
    found = drawn(design, [-2 * far, 0, *[-2 * far] * 4])
    assert (found == 1).mean() >= 0.95 - 0.015


def test_ranks_of_quartiles_where_values_are_spread_evenly() -> None:
    _, design, nearness = told(QUARTILES)
    rows = np.full(1000, 3)
    found = design.mechanism.draw(np.tile(rows, (300, 1)), stream("ranks"))
    off = np.abs(3 * found - [750, 1500, 2250])
    assert (off <= nearness.near + 3).mean(axis=0).min() >= 0.95 - 0.04


def test_the_error_of_a_mean_at_the_end_of_its_range() -> None:
    """Where all rows have the lowest value one noise alone decides, as the sentence has it."""
    bins = {"low": 0, "high": 1000, "count": 1000}
    _, design, nearness = told(
        query("binned", statistic="mean", clamp=[0, 1000], bins=bins, **GLOBAL)
    )
    noisy = drawn(design, [500_000, 500_000])
    middle = 1000 * noisy[:, 0] / noisy.sum(axis=1)
    assert (np.abs(middle - 500) <= nearness.near).mean() >= 0.95
    low = drawn(design, [0, 1_000_000])
    assert (np.abs(1000 * low[:, 0] / low.sum(axis=1)) <= nearness.near * 1.05).mean() >= 0.94


def test_the_error_of_a_sum() -> None:
    _, design, nearness = told(query("binned", **GLOBAL))
    off = np.abs(drawn(design, [0]))
    assert (off <= nearness.near).mean() >= 0.95 - 0.015
    assert (off < nearness.near - 1).mean() < 0.95
    assert Fraction(nearness.near).denominator == 1
