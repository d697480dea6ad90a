"""Plans of tabulations: the figures beside a dense computation, and what the budget pays."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release.planning.plan import Plan, make_plan
from release.planning.recommend import make_advised_plan
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from release.tabulations.planning.plan import TabulationPlan
from release.tabulations.planning.text import sentences, table_of
from release.tabulations.strategy.publication import Publication, Table, moves_of_a_row
from tests.tabulations.planning.small import BOTH, spec_of
from tests.tabulations.strategy import dense

TOTAL = Margin((summed_out(2), summed_out(2)))
SEX = Margin((kept_whole(2), summed_out(2)))
AGE = Margin((summed_out(2), kept_whole(2)))
COUNT: dict[str, Any] = {
    "name": "persons",
    "kind": "count",
    "table": "persons",
    "by": [],
    "domain": {"ordered": {"min": 0, "max": 9}},
    "sensitivity": "global",
    "guarantee": {"definition": "pure", "epsilon": "1/2"},
    "loss": "absolute",
}
ONE: dict[str, Any] = {"tract": [["sex"]]}
OWN = {"definition": "pure", "epsilon": "1"}


def by_hand(margins: tuple[Margin, ...]) -> Publication:
    """The areas of the small tabulation below one root that is not published."""
    areas = dense.areas_of((2,), (2, 1))
    moves = moves_of_a_row(areas, margins, is_replaced=False)
    return Publication(areas, margins, dict.fromkeys(moves, 1.0), moves)


def only(plan: Plan) -> TabulationPlan:
    (planned,) = plan.tabulations
    return planned


def precisions(planned: TabulationPlan, margins: dict[tuple[str, ...], int]) -> dict[Table, float]:
    """One over the variance of two-sided geometric noise, from its ε alone."""
    found = {}
    for table in planned.tables:
        if table.cost is not None:
            level = 1 + ["county", "tract"].index(table.level)
            found[level, margins[table.margin]] = math.cosh(float(table.cost)) - 1
    return found


def test_errors_are_those_of_least_squares(tmp_path: Path) -> None:
    publish = {"county": [[], ["sex"]], "tract": [["sex"], ["age"]]}
    plan = make_plan(spec_of(tmp_path, publish))
    planned, places = only(plan), {(): 0, ("sex",): 1, ("age",): 2}
    publication = by_hand((TOTAL, SEX, AGE))
    expected = dense.errors(publication, precisions(planned, places))
    published = [table for table in planned.tables if table.is_published]
    found, errors = [], []
    for table in published:
        level = 1 + ["county", "tract"].index(table.level)
        found.append(table.error)
        errors.append(expected[level, places[table.margin]])
    assert found == pytest.approx(errors, rel=1e-4)
    assert planned.strategy.objective == pytest.approx(np.mean(errors), rel=1e-4)
    assert [(table.level, table.margin, table.cells) for table in published] == [
        ("county", (), 2),
        ("county", ("sex",), 4),
        ("tract", ("sex",), 6),
        ("tract", ("age",), 6),
    ]
    assert sum(table.cost or 0 for table in planned.tables) == 2
    assert plan.epsilon == 2
    assert plan.delta == 0
    assert not plan.is_over


def test_gaussian_noise_is_charged_together(tmp_path: Path) -> None:
    """Each table alone has an ε; their sum is far more than what all cost together."""
    pinned = {"noise": "gaussian"}
    spec_file = spec_of(tmp_path, BOTH, delta="0.000001", strategy=pinned)
    plan = make_plan(spec_file)
    planned, publication = only(plan), by_hand((TOTAL, SEX))
    places = {(): 0, ("sex",): 1}
    spread = {}
    for table in planned.tables:
        if table.variance is not None:
            level = 1 + ["county", "tract"].index(table.level)
            spread[level, places[table.margin]] = float(1 / table.variance)
    expected = dense.errors(publication, spread)
    for table in planned.tables:
        level = 1 + ["county", "tract"].index(table.level)
        assert table.error == pytest.approx(expected[level, places[table.margin]], rel=1e-4)
        assert table.cost is None
    alone = sum((measured.charge.epsilon for measured in planned.measured), Fraction(0))
    assert 1.9 < plan.epsilon <= 2
    assert plan.epsilon < alone
    assert plan.delta == Fraction(1, 10**6)
    (_, second, *_) = sentences(planned)
    assert "geometric" not in second
    least = float(second.split("below ")[1].rstrip(")"))
    gap = planned.strategy.gap
    assert gap is not None
    assert least <= planned.strategy.objective * (1 - gap) < least * 1.001
    assert all("variance" in row[3] or row[3] == "-" for row in table_of(planned)[1])


def test_both_noises_stand_beside_each_other(tmp_path: Path) -> None:
    planned = only(make_plan(spec_of(tmp_path, ONE, delta="0.000001")))
    geometric, gaussian = planned.choice.geometric, planned.choice.gaussian
    assert geometric is not None
    assert gaussian is not None
    second = sentences(planned)[1]
    assert f"geometric {geometric.objective:.4g} (best found), Gaussian" in second
    assert f"Gaussian {gaussian.objective:.4g} (no Gaussian split is below " in second


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A count and a tabulation, each with a guarantee."""
    folder = tmp_path_factory.mktemp("beside")
    spec_file = spec_of(folder, BOTH, queries=[COUNT], guarantee=OWN)
    return make_advised_plan(spec_file, season=3)


def test_queries_and_tabulations_are_charged_side_by_side(beside: Plan) -> None:
    plan = beside
    (query,) = plan.queries
    assert query.query.name == "persons"
    assert plan.epsilon == Fraction(3, 2)
    assert [made[0].name for made in plan.public] == [
        "persons",
        *(measured.query.name for measured in only(plan).measured),
    ]
    assert plan.together is not None
    assert plan.together.release.added.epsilon == Fraction(3, 2)
    assert plan.together.season is not None
    assert plan.together.season.added.epsilon == Fraction(9, 2)
    assert plan.profile().values


def test_a_season_of_tabulations_alone(tmp_path: Path) -> None:
    plan = make_advised_plan(spec_of(tmp_path, ONE, delta="0.000001"), season=4)
    assert plan.queries == ()
    assert plan.on_statistic == ()
    assert plan.together is not None
    assert plan.together.season is not None
    assert plan.together.season.added.epsilon == 4 * plan.epsilon
    assert plan.together.season.exact is not None
    assert plan.together.season.exact <= 8


def test_what_is_over_the_budget_is_said(tmp_path: Path) -> None:
    too_much = {"definition": "pure", "epsilon": "7/4"}
    plan = make_plan(spec_of(tmp_path, ONE, queries=[COUNT], guarantee=too_much))
    assert plan.epsilon == Fraction(9, 4)
    assert plan.is_over


def test_a_measured_table_need_not_be_published(tmp_path: Path) -> None:
    publish = {"county": [[]], "tract": [["sex"]]}
    tables = [
        {"level": "county", "margin": ["sex"], "share": "1"},
        {"level": "tract", "margin": ["sex"], "share": "3"},
    ]
    planned = only(make_plan(spec_of(tmp_path, publish, strategy={"tables": tables})))
    first, second, third = planned.tables
    assert (first.margin, first.cost, first.is_published) == ((), None, True)
    assert (second.margin, second.cost, second.is_published) == (("sex",), Fraction(1, 2), False)
    assert (third.margin, third.cost, third.is_published) == (("sex",), Fraction(3, 2), True)
    assert planned.strategy.objective == pytest.approx((first.error + third.error) / 2)
    expected = dense.errors(by_hand((TOTAL, SEX)), precisions(planned, {(): 0, ("sex",): 1}))
    assert first.error == pytest.approx(expected[1, 0], rel=1e-4)
    heads, rows = table_of(planned)
    assert "gain if left out" not in heads
    assert rows[1][1] == "sex (not published)"
    assert "(with the tables of the spec)" in sentences(planned)[1]
    assert not planned.has_gains
    assert "--drop-one" not in " ".join(sentences(planned))


def test_declared_numbers_have_no_noise(tmp_path: Path) -> None:
    publish = {"county": [[]], "tract": [["sex"]]}
    declared = {"level": "county", "margin": [], "file": "totals.csv"}
    (tmp_path / "totals.csv").write_text("county,count\nk1,10\nk2,7\n")
    planned = only(make_plan(spec_of(tmp_path, publish, constraints=[declared])))
    total, by_sex = planned.tables
    assert total.variance == 0
    assert total.error == 0
    assert total.cost is None
    assert by_sex.cost == 2
    assert by_sex.variance is not None
    assert float(by_sex.variance) == pytest.approx(1 / (math.cosh(2) - 1), rel=1e-4)
    assert [row[3] for row in table_of(planned)[1]] == ["no noise", "ε = 2"]
    assert [measured.query.name for measured in planned.measured] == ["pl_tract_sex"]


def test_the_frame_has_a_row_for_each_table(beside: Plan) -> None:
    plan, frame = beside, beside.to_pandas()
    own = frame[frame["query"] == "pl"]
    planned = only(plan)
    assert list(own["level"]) == ["county", "county", "tract", "tract"]
    assert list(own["margin"]) == ["total", "sex", "total", "sex"]
    assert list(own["mean_standard_error"]) == [table.error for table in planned.tables]
    assert own["charge_epsilon"].sum() == pytest.approx(1)
    assert list(own["gain_if_left_out"]) == [table.gain for table in planned.tables]
    assert len(frame[frame["query"] == "persons"]) > 1
