"""The least ε or δ at a stated loss in a run (Kadam et al. 2024, (15))."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from release.errors import DesignError, SpecError, VerificationError
from release.noise.design import GAP
from release.noise.least import with_least
from release.noise.select import choose
from release.noise.stage import asked_of
from release.planning.plan import make_plan
from release.queries.read import parse_spec, read_spec
from release.queries.registry import sensitivity_without_data
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query
from tests.verifier.made import edit

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": 0} for i in range(20)
]


def asked(target: str, **guarantee: str) -> dict[str, Any]:
    """A mode of four categories, whose error rate has a closed form."""
    plain = query("mode", name="asked", sensitivity="global", target=target)
    return plain | {"guarantee": {"definition": "approximate", "epsilon": "2"} | guarantee}


def small(plain: dict[str, Any]) -> Small:
    return Small(ROWS, [plain], max_rows_per_unit=1)


def error_rate(epsilon: float, delta: float) -> float:
    """(1 - δ)·3/(e^ε + 3): randomised response with four categories, mixed with the truth."""
    return (1 - delta) * 3 / (math.exp(epsilon) + 3)


@pytest.mark.parametrize(
    ("given", "name", "found"),
    [
        # 3/(e^ε + 3)·0.9 ≤ 0.3 from ε = ln 6 = 1.7918 on.
        ({"delta": "0.1", "least": "epsilon"}, "epsilon", "1.8"),
        # 3/(e² + 3) = 0.28876, so (1 - δ) ≤ 0.25/0.28876 from δ = 0.1343 on.
        ({"delta": "0.5", "least": "delta"}, "delta", "0.135"),
    ],
)
def test_a_run_claims_the_least_that_meets_the_target(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
    name: str,
    found: str,
) -> None:
    cap = "0.3" if name == "epsilon" else "0.25"
    plain = asked(f"error_rate <= {cap}", **given)
    path = small(plain).write(tmp_path)
    public = run_release(path, tmp_path / "out").public
    made = json.loads((public / "release.json").read_bytes())["made"]
    (record,) = made["queries"]
    assert record[name] == found
    at = {key: float(record[key]) for key in ("epsilon", "delta")}
    assert error_rate(**at) <= float(cap)
    step = 0.01 if name == "epsilon" else 0.001
    assert error_rate(**(at | {name: at[name] - step})) > float(cap)
    assert "step" not in made
    assert verify(public, None, UNSIGNED).status == 0
    (planned,) = make_plan(read_spec(path)).queries
    assert getattr(planned.query.claimed, name) == Fraction(found)


def test_a_larger_claim_than_the_spec_allows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = asked("error_rate <= 0.25", delta="0.5", least="delta")
    public = run_release(small(plain).write(tmp_path), tmp_path / "out").public
    edit(public, "release.json", lambda plain: plain["made"]["queries"][0].update(delta="0.6"))
    with pytest.raises(VerificationError, match=r"made\.asked"):
        verify(public, None, UNSIGNED)


def test_answers_in_order_meet_a_target_by_their_own_guarantee(tmp_path: Path) -> None:
    """No shared budget: the charge is what the query claims, and the loss that at the ends too."""
    plain = query("count", name="asked", sensitivity="global", target="absolute <= 0.5")
    plain["guarantee"] = {"definition": "pure", "epsilon": "5", "least": "epsilon"}
    path = small(plain).write(tmp_path)
    spec_file = read_spec(path)
    (found,) = with_least(spec_file, None, GAP).spec.queries
    assert found.guarantee is not None
    question = asked_of(found, sensitivity_without_data(spec_file.spec, found))
    assert float(choose(question).objective) <= 0.5
    less = found.guarantee.model_copy(
        update={"epsilon": found.guarantee.epsilon - Fraction(1, 100)}
    )
    before = found.model_copy(update={"guarantee": less})
    question = asked_of(before, sensitivity_without_data(spec_file.spec, before))
    assert float(choose(question).objective) > 0.5


def test_a_target_out_of_reach_is_refused_before_a_table_is_read(tmp_path: Path) -> None:
    plain = asked("error_rate <= 0.1", delta="0.2", least="delta")
    path = small(plain).write(tmp_path)
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(DesignError, match=r"no delta up to 0.2 meets error_rate <= 0.1: the loss"):
        run_release(path, tmp_path / "out")


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        (asked("error_rate <= 0.1", delta="0.2"), "keep one of guarantee, share and target"),
        (asked("error_rate <= 0.1", least="delta"), "guarantee.least: delta is 0; none is less"),
        (asked("0.1", delta="0.2", least="delta"), "target: found '0.1'"),
        (asked("error_rate <= 0.1", delta="0.2", least="both"), "guarantee.least"),
        (asked("error_rate <= 0.1", delta="0.2", least="delta") | {"target": None}, "missing; lea"),
        (
            asked("error_rate <= 0.1", delta="0.2", least="delta") | {"sensitivity": "empirical"},
            "is met before the table is read; write sensitivity: global",
        ),
        (
            asked("error_rate <= 0.1", delta="0.2", least="delta") | {"loss": "squared"},
            "says another; leave loss out",
        ),
    ],
)
def test_what_has_no_least_is_refused(plain: dict[str, Any], told: str) -> None:
    given = {name: value for name, value in plain.items() if value is not None}
    with pytest.raises(SpecError) as refused:
        parse_spec(json.dumps(small(given).plain()).encode())
    assert told in str(refused.value)
