"""The verbs of the package: exact numbers in, one line for what cannot be meant."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import release
from release.errors import DesignError, SpecError


def test_a_mechanism_is_one_line() -> None:
    made = release.design(answers=24, topology="cyclic", sensitivity=[1], epsilon=1, loss="squared")
    assert made.is_within()
    # f(0) of the closed form for the error rate: (E - 1)/(E + 1) up to the ends of the circle.
    rate = release.design(24, "cyclic", sensitivity=[1], epsilon=1)
    assert float(1 - rate.objective) == pytest.approx(0.46212, abs=1e-4)
    ordered = release.design(25, "ordered", sensitivity=[1], epsilon="1", loss="squared")
    assert float(ordered.objective) == pytest.approx(1.6470, abs=1e-4)
    delta = release.design(24, "cyclic", sensitivity=[1], epsilon=Fraction(1), delta="0.01")
    assert delta.guarantee.definition.value == "approximate"
    assert delta.objective < rate.objective


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"epsilon": 0.1},
            'epsilon: found 0.1; write an integer, a Fraction, or text such as "0.1"',
        ),
        ({"epsilon": "0,1"}, "epsilon: not an exact number"),
        ({"epsilon": -1}, "epsilon: found -1; write a number of at least 0"),
        ({"epsilon": True}, "epsilon: found True"),
        ({"epsilon": 1, "delta": 0.5}, "delta: found 0.5"),
        ({"epsilon": 1, "topology": "round"}, "design: "),
        ({"epsilon": 1, "loss": "cubic"}, "design: "),
        ({"epsilon": 1, "answers": 1}, "design: "),
    ],
)
def test_what_cannot_be_meant_is_one_line(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as refused:
        release.design(**{"answers": 24, "topology": "cyclic", "sensitivity": [1], **arguments})
    assert str(refused.value).startswith(told)


def test_names_are_there_and_errors_are_ours(tmp_path: Path) -> None:
    assert set(release.__all__) <= set(dir(release))
    assert release.DesignError is DesignError
    with pytest.raises(AttributeError):
        _ = release.nothing  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match="cannot be read"):
        release.plan(str(tmp_path / "nowhere.yaml"))
