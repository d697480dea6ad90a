"""The unit of errors: what one code is worth, for every kind of domain."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from release.bundle.answer_units import CODES, AnswerUnit, answer_unit
from release.spec.kinds import AnyQuery
from tests.small import joint, query

PLACES = {"nominal": ["a", "b"]}


@pytest.mark.parametrize(
    ("plain", "unit"),
    [
        (query("count"), AnswerUnit(1, "rows")),
        (query("count", of="unit"), AnswerUnit(1, "units")),
        (query("count", units="homes"), AnswerUnit(1, "homes")),
        (query("mode"), AnswerUnit(1, "steps")),
        (query("mode", units="hours"), AnswerUnit(1, "hours")),
        (query("mode", domain=PLACES, units="places"), CODES),
        # Twenty values in six bins: some are wider than others.
        (query("binned", units="Wh"), AnswerUnit(1, "bins")),
        (query("binned"), AnswerUnit(1, "bins")),
        (
            query("binned", bins={"low": -100, "high": 900, "count": 20}, units="Wh"),
            AnswerUnit(50, "Wh"),
        ),
        (query("on_grid"), AnswerUnit(1, "steps")),
        (query("on_grid", units="Wh"), AnswerUnit(2, "Wh")),
        (joint("one", "two", units="Wh"), CODES),
    ],
)
def test_a_code_is_worth_its_step_in_the_unit_of_the_answer(
    plain: dict[str, Any], unit: AnswerUnit
) -> None:
    asked = TypeAdapter(AnyQuery).validate_python(plain)
    assert answer_unit(asked) == unit
    if unit.word == plain.get("units") and plain["kind"] != "tuple":
        # What is claimed of the step holds for all neighboring labels.
        labels = np.array(asked.answers.parts[0].labels, dtype=np.int64)
        assert set(np.diff(labels).tolist()) == {unit.scale}


def test_whole_errors_are_exact_and_fractions_have_four_digits() -> None:
    assert AnswerUnit(50, "Wh").amount(123_457) == "6172850 Wh"
    assert AnswerUnit(50, "Wh").amount(Fraction(2, 3)) == "33.33 Wh"
    assert AnswerUnit(1, "rows").amount(1) == "1 row"
    assert AnswerUnit(1, "rows").amount(0) == "0 rows"
    # The words of a spec are taken as they are.
    assert AnswerUnit(1, "glass").amount(1) == "1 glass"
