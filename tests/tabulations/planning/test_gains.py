"""What leaving a table out gains, beside plans of specs that leave it out."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.noise.design import GAP
from release.noise.processes import InTurn
from release.noise.unseen import find_unseen
from release.planning.plan import make_plan
from release.tabulations.planning.gains import without
from release.tabulations.planning.text import sentences
from tests.tabulations.planning.small import spec_of
from tests.tabulations.strategy import dense

CROSSED: dict[str, list[list[str]]] = {
    "county": [["sex"], ["age"]],
    "tract": [["age"], ["sex"]],
}
WEIGHTS = {"county": 3.0, "tract": 1.0}
IMPORTANCE = {"county": "3", "tract": "1"}


def test_gains_are_those_of_specs_without_the_table(tmp_path: Path) -> None:
    (planned,) = make_plan(spec_of(tmp_path, CROSSED, importance=IMPORTANCE)).tabulations
    assert planned.has_gains
    for left_out in planned.tables:
        rest = [table for table in planned.tables if table is not left_out]
        weights = [WEIGHTS[table.level] for table in rest]
        errors = [table.error for table in rest]
        now = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
        own = CROSSED[left_out.level]
        others = [margin for margin in own if tuple(margin) != left_out.margin]
        publish = {**CROSSED, left_out.level: others}
        chosen = find_unseen(spec_of(tmp_path, publish, importance=IMPORTANCE), None, GAP)
        then = chosen.choices["pl"].best.objective
        assert left_out.gain == pytest.approx(now - then, abs=1e-9)
    assert max(table.gain or 0 for table in planned.tables) > 0.05


def test_a_table_alone_has_no_gain(tmp_path: Path) -> None:
    (planned,) = make_plan(spec_of(tmp_path, {"tract": [["sex"]]})).tabulations
    assert [table.gain for table in planned.tables] == [None]


def test_large_tabulations_are_searched_when_asked(tmp_path: Path) -> None:
    publish: dict[str, list[list[str]]] = {
        "county": [["sex"], ["age"]],
        "tract": [["sex", "age"], []],
    }
    spec_file = spec_of(tmp_path, publish, delta="0.000001", strategy={"noise": "geometric"})
    (planned,) = make_plan(spec_file).tabulations
    assert not planned.has_gains
    assert {table.gain for table in planned.tables} == {None}
    (planned,) = make_plan(spec_file, drop_one=InTurn()).tabulations
    assert planned.has_gains
    assert None not in {table.gain for table in planned.tables if table.is_published}
    detail = next(table for table in planned.tables if table.margin == ("sex", "age"))
    # Without it nothing as fine is measured, and sex and age are measured one by one.
    assert detail.gain is not None
    assert detail.gain < -0.1
    assert "; below 0 it rises" in sentences(planned)[-1]


def test_a_margin_that_nothing_publishes_is_not_measured() -> None:
    publication = dense.CASES["detail at the top"]
    left = without(publication, (0, 0))
    assert left.margins == (dense.FIRST, dense.TOTAL)
    assert left.importance == {(0, 1): 1.0, (1, 0): 2.0, (1, 1): 1.0}
    assert set(left.moves) == {(level, margin) for level in (0, 1) for margin in (0, 1)}
    # The total is published by another level too, and stays.
    assert without(publication, (1, 2)).margins == publication.margins
