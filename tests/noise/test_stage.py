"""The design stage: what is never charged for, and equal problems that are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release.budget.ledger import ScopeCap, create_ledger, replay
from release.errors import DesignError
from release.job import Options, auditor_bundle
from release.planning.plan import make_plan
from release.queries.read import read_spec
from release.records.keys.files import create_key
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(9)
]


def middle_only(**fields: Any) -> dict[str, Any]:
    """A count whose best channel always publishes 2, the answer nearest to all others."""
    return query(
        "count",
        domain={"ordered": {"min": 0, "max": 4}},
        guarantee={"definition": "pure", "epsilon": "0.2"},
        loss="squared",
        **fields,
    )


@pytest.mark.parametrize("mechanism", ["best", "channel"])
def test_a_mechanism_that_never_depends_on_the_table_is_refused_before_the_charge(
    mechanism: str, tmp_path: Path
) -> None:
    """It was charged and published, and then did not verify."""
    counted = middle_only(sensitivity="global", mechanism=mechanism)
    spec = Small(ROWS, [counted], max_rows_per_unit=1).write(tmp_path)
    ledger, cap = tmp_path / "out" / "ledger", ScopeCap(scope="tests", epsilon="9", delta="0")
    create_ledger(ledger, create_key(tmp_path / "key"), "example.org/dp", (cap,), "2024-01-01")
    (refusal,) = make_plan(read_spec(spec)).refusals
    assert refusal.startswith("query the_count: the best mechanism publishes the same")
    assert refusal.endswith("raise epsilon")
    assert "\n" not in refusal
    with pytest.raises(DesignError) as refused:
        run_release(spec, tmp_path / "out", options=Options(key=tmp_path / "key"))
    assert str(refused.value) == refusal
    assert replay(ledger).state.spent("tests").epsilon == 0
    assert not (tmp_path / "out" / "public").exists()


@pytest.mark.parametrize("mechanism", ["best", "channel"])
def test_of_seen_differences_such_a_mechanism_is_published_and_verifies(
    mechanism: str, tmp_path: Path
) -> None:
    """A refusal would tell something of the differences, which only the table shows."""
    counted = middle_only(sensitivity="empirical", mechanism=mechanism)
    spec = Small(ROWS, [counted], max_rows_per_unit=1).write(tmp_path)
    assert make_plan(read_spec(spec)).refusals == ()
    public = run_release(spec, tmp_path / "out").public
    auditor = auditor_bundle(public)
    assert auditor is not None
    assert verify(public, auditor, UNSIGNED).status == 0
    rows = json.loads((auditor / "the_count.json").read_bytes())["law"]["rows"]
    assert all(int(row[2]) > 0.999 * 2**62 for row in rows)


def test_a_larger_epsilon_is_the_remedy(tmp_path: Path) -> None:
    counted = middle_only(sensitivity="global")
    counted["guarantee"]["epsilon"] = "2"
    spec = Small(ROWS, [counted], max_rows_per_unit=1).write(tmp_path)
    assert make_plan(read_spec(spec)).refusals == ()
    assert verify(run_release(spec, tmp_path / "out").public, None, UNSIGNED).status == 0


def test_tables_of_costs_with_equal_numerators_are_two_problems(tmp_path: Path) -> None:
    """The second was written with the loss of the first: charged, public, and not verified."""
    costs = {"whole": ["0", "1", "1", "1"], "half": ["0", "1/2", "1/2", "1/2"]}
    queries = [
        query("mode", name=name, sensitivity="global", loss={"table": table})
        for name, table in costs.items()
    ]
    spec = Small(ROWS, queries, max_rows_per_unit=1).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    assert verify(public, None, UNSIGNED).status == 0
    whole, half = (
        json.loads((public / "mechanisms" / f"{name}.json").read_bytes()) for name in costs
    )
    assert whole["weights"] == half["weights"]


@pytest.mark.parametrize("places", [30, 39])
def test_a_total_is_never_larger_than_a_verifier_reads(places: int, tmp_path: Path) -> None:
    """With a large ε beside a tiny δ totals had 320 bits: charged, public, and not verified."""
    guarantee = {
        "definition": "approximate",
        "epsilon": "100",
        "delta": f"0.{'0' * (places - 1)}1",
    }
    counted = query(
        "mode",
        sensitivity="global",
        domain={"cyclic": 24},
        loss="absolute",
        mechanism="modular",
        guarantee=guarantee,
    )
    spec = Small(ROWS, [counted], max_rows_per_unit=1).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    assert verify(public, None, UNSIGNED).status == 0
    weights = json.loads((public / "mechanisms" / "the_mode.json").read_bytes())["weights"]
    total = sum(map(int, weights))
    assert 2**62 < total <= 10**78
