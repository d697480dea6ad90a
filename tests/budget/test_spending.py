"""The certified figure of the ledger, beside the exact composition of charges."""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb, exp
from pathlib import Path

import pytest
from typer.testing import CliRunner

from release.budget.ledger import Ledger, ScopeCap, Spent, abort, commit, create_ledger, reserve
from release.budget.spending import composed_epsilon
from release.cli.main import app
from release.exact.numbers import format_up
from release.records.keys.files import create_key
from release.records.keys.outside import read_key


def exact_delta(epsilon: float, times: int, at: float) -> float:
    """δ at ``at`` of pure randomised response run ``times`` over: Kairouz et al., Theorem 3.3."""
    keep, flip = exp(epsilon) / (1 + exp(epsilon)), 1 / (1 + exp(epsilon))
    return sum(
        comb(times, i)
        * max(0.0, keep ** (times - i) * flip**i - exp(at) * keep**i * flip ** (times - i))
        for i in range(times + 1)
    )


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 365), ("0.5", 40), ("1", 7), ("2", 1)])
def test_composition_is_that_of_randomised_response(epsilon: str, times: int) -> None:
    charges = [Spent(Fraction(epsilon))] * times
    found = composed_epsilon(charges, Fraction(1, 10**6))
    assert found is not None
    assert exact_delta(float(epsilon), times, float(found)) == pytest.approx(1e-6, rel=1e-6)
    assert found <= Fraction(epsilon) * times


def test_without_delta_the_sum_is_all_that_holds() -> None:
    charges = [Spent(Fraction("0.1")), Spent(Fraction("0.25")), Spent(Fraction("0.25"))]
    assert composed_epsilon(charges, Fraction(0)) == Fraction("0.6")
    assert composed_epsilon([], Fraction(0)) == 0
    leaking = [*charges, Spent(Fraction(0), Fraction(1, 100))]
    assert composed_epsilon(leaking, Fraction(1, 1000)) is None
    within = composed_epsilon(leaking, Fraction(1, 50))
    assert within is not None
    assert within < Fraction("0.6")
    for wrong in (Fraction(1), Fraction(-1, 2)):
        with pytest.raises(ValueError, match="at least 0 and below 1"):
            composed_epsilon(charges, wrong)


def test_rounding_does_not_lift_the_figure_above_the_sum() -> None:
    third, two = Spent(Fraction(1, 3)), Spent(Fraction(1, 3), Fraction(1, 100))
    assert composed_epsilon([third] * 2, Fraction(0)) == Fraction(2, 3)
    # So many that masses are folded, which a δ of 0 has no room for.
    assert composed_epsilon([third] * 500, Fraction(0)) == Fraction(500, 3)
    both = composed_epsilon([two] * 2, Fraction(2, 100))
    assert both is not None
    assert both <= Fraction(2, 3)
    # Below the sum of the δ the sum of the ε is no bound.
    assert composed_epsilon([two], Fraction(9, 1000)) is None


def test_the_ledger_tells_it_for_what_is_charged(tmp_path: Path) -> None:
    create_key(tmp_path / "key")
    caps = (
        ScopeCap(scope="s", epsilon="9", delta="0.1"),
        ScopeCap(scope="t", epsilon="1", delta="0"),
    )
    out, signer = tmp_path / "out", read_key(tmp_path / "key")
    create_ledger(out / "ledger", signer, "example.org/dp", caps, "2024-03-01")
    ledger, charge = Ledger(out / "ledger", signer), Spent(Fraction("0.1"))
    for name in ("a", "b", "c"):
        ledger.append(reserve("s", name, charge, "2024-03-01"))
    ledger.append(commit("a", b"x", "2024-03-01"))
    ledger.append(abort("b", "2024-03-01", drawn=True))
    ledger.append(abort("c", "2024-03-01", drawn=False))

    def show(*more: str) -> str:
        done = CliRunner().invoke(app, ["ledger", "show", "--out", str(out), *more])
        assert done.exit_code == 0, done.output
        return done.output

    two = composed_epsilon([charge] * 2, Fraction(1, 1000))
    assert two is not None
    shown, certified = format_up(two, 6), "certified, for charges fixed in advance"
    assert shown < "0.2"
    assert f"together satisfy ε {shown} ({certified}" in show("--at-delta", "0.001")
    scopes = json.loads(show("--at-delta", "0.001", "--json"))["scopes"]
    assert [one["composed"] for one in scopes] == [
        {"delta": "0.001", "epsilon": epsilon, "basis": certified} for epsilon in (shown, "0")
    ]
    assert "composed" not in show("--json")
    ledger.append(reserve("s", "d", Spent(Fraction(0), Fraction("0.01")), "2024-03-01"))
    assert "at δ 0.001 no ε holds for all its charges together" in show("--at-delta", "0.001")
    for wrong in ("1", "1e-6", "-1"):
        done = CliRunner().invoke(app, ["ledger", "show", "--out", str(out), "--at-delta", wrong])
        assert done.exit_code != 0
