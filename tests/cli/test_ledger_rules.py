"""The rules of scopes on the command line: what is written, what is shown, what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from release.budget.ledger import Ledger, ReleaseCharge, Spent, read_ledger, reserve
from release.budget.spending import composed_epsilon
from release.cli.ledger.rules import parse_caps
from release.cli.main import app
from release.errors import BudgetError, LedgerError, SpecError
from release.exact.numbers import format_exact, format_up
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from tests.small import Row, Small, query

CURVE = {"step": "0.05", "values": ["300000000000000000000000000", "0"]}
SCOPES = ["--scope", "y:4.7:0.000001", "--scope", "f:5:0.000001", "--scope", "a:1:0"]
RULES = ["--rule", "y=pld", "--rule", "f=renyi_filter:6", "--rule", "a=basic"]
SLOTS = ["--planned", "y=365xnight:0.05:0", "--planned", "y=2xseen:0.01:0:declared"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A ledger with a scope of each rule, and two releases in each."""
    create_key(tmp_path / "key")
    options = ["--key", tmp_path / "key", "--origin", "example.org/dp"]
    done = run("init", "--out", tmp_path / "out", *options, *SCOPES, *RULES, *SLOTS)
    assert done.exit_code == 0, done.output
    ledger = Ledger(tmp_path / "out" / "ledger", read_key(tmp_path / "key"))
    for scope in "yfa":
        for number in range(2):
            charge = ReleaseCharge.of(Fraction("0.05"), Fraction(0))
            ledger.append(reserve(scope, f"{scope}{number}", charge, "2024-03-01"))
    return tmp_path / "out"


def test_a_scope_shows_its_rule_and_what_is_left(out: Path) -> None:
    shown = run("show", "--out", out).output
    assert "  a: ε 0.1 of 1, δ 0 of 0\n" in shown
    assert "  f: renyi_filter, amounts to ε = 0.1 of 5 at δ = 0.000001, by the filter of" in shown
    two = composed_epsilon([Spent(Fraction("0.05"))] * 2, Fraction(1, 10**6))
    assert two is not None
    taken = f"which amount to ε = {format_up(two, 6)} at δ = 0.000001"
    assert f"  y: pld, has taken 2 of 367 slots, {taken}; the whole plan" in shown
    assert "the whole plan to 4.633449 of 4.7, of which ε 0.02 is added as declared" in shown
    assert "    left: 363 of 365 x night, 2 of 2 x seen\n" in shown
    scopes: dict[str, Any] = {}
    for scope in json.loads(run("show", "--out", out, "--json").output)["scopes"]:
        scopes[scope["scope"]] = scope
    assert [scopes[name]["rule"] for name in "afy"] == ["basic", "renyi_filter", "pld"]
    assert scopes["y"]["slots"] == [
        {"name": "night", "times": 365, "used": 2},
        {"name": "seen", "times": 2, "used": 0},
    ]
    assert scopes["y"]["planned"]["epsilon"].startswith("4.633448")
    assert scopes["y"]["certified"] == {"epsilon": format_exact(two), "delta": "0.000001"}
    assert scopes["f"]["cap"]["cuts"] == "0.000000001"
    assert run("check", "--out", out).exit_code == 0


def test_at_delta_is_told_of_sums_alone(out: Path) -> None:
    shown = run("show", "--out", out, "--at-delta", "0.001").output
    assert shown.count("at δ 0.001") == 1


def test_the_pictures_are_of_every_scope(out: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", tmp_path / "y.svg"
    done = run("show", "--out", out, "--html", page, "--picture", picture, "--of", "y")
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert text.count("<svg") == 3
    assert picture.read_text("utf-8") in text
    assert "let through at most" in text
    for wrong in ([], ["--of", "z"]):
        done = run("show", "--out", out, "--picture", picture, *wrong)
        assert isinstance(done.exception, SpecError)
    done = run("show", "--out", out, "--picture", tmp_path / "no" / "y.svg", "--of", "y")
    assert "--picture: cannot be written" in str(done.exception)


def test_a_new_scope_can_have_any_rule_and_an_old_one_none(out: Path) -> None:
    key = out.parent / "key"
    (out.parent / "curve.json").write_text(json.dumps({"mechanism": "m", "profile": CURVE}))
    slot = f"z=3xn@{out.parent / 'curve.json'}"
    options = ["--out", out, "--key", key]
    done = run("policy", *options, "--scope", "z:1:0.001", "--rule", "z=pld", "--planned", slot)
    assert done.output == "z: ε at most 1, δ at most 0.001, pld\n"
    caps = read_ledger(out / "ledger").state.caps
    assert caps["z"].planned is not None
    assert caps["z"].planned[0].profile is not None
    done = run("policy", *options, "--scope", "y:9:0.000001")
    assert isinstance(done.exception, LedgerError)
    assert "add a new scope" in str(done.exception)
    # A plan beyond the cap is refused before anything is written.
    more = ["--rule", "x=pld", "--planned", "x=9xn:0.5:0"]
    size = read_ledger(out / "ledger").state.size
    done = run("policy", *options, "--scope", "x:1:0.001", *more)
    assert isinstance(done.exception, BudgetError)
    assert read_ledger(out / "ledger").state.size == size


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"rules": ["t=pld"]}, "--rule"),
        ({"rules": ["pld"]}, "--rule"),
        ({"rules": ["s=zcdp"]}, "--rule"),
        ({"rules": ["s=pld:6"]}, "--rule"),
        ({"rules": ["s=pld"]}, "--rule"),
        ({"rules": ["s=renyi_filter"]}, "--rule"),
        ({"rules": ["s=renyi_filter:six"]}, "--rule"),
        ({"rules": ["s=renyi_filter:1"]}, "--rule"),
        ({"rules": ["s=renyi_filter:6:0.1"]}, "--rule"),
        ({"rules": ["s=renyi_filter:6", "s=renyi_filter:7"]}, "--rule"),
        ({"planned": ["s=1xn:0.1:0"]}, "--planned"),
        ({"rules": ["s=renyi_filter:6"], "planned": ["s=1xn:0.1:0"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=0xn:0.1:0"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=n:0.1:0"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=1xn:0.1"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=1xn:1e-1:0"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=1xn:0.1:0:seen"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=1xn@nowhere.json"]}, "--planned"),
        ({"rules": ["s=pld"], "planned": ["s=1xn:0.1:0", "s=1xn:0.1:0"]}, "--rule"),
        ({"rules": ["s=pld"], "planned": ["s=999999xn:0.1:0"]}, "--rule"),
    ],
)
def test_what_is_no_rule_is_refused_in_a_line(options: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refusal:
        parse_caps(["s:1:0.001"], options.get("rules"), options.get("planned"))
    assert refusal.value.field == field
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"profile": 3}', '{"step": "1"}', "[" * 10**5])
def test_a_file_without_a_profile_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(SpecError, match="--planned"):
        parse_caps(["s:1:0.001"], ["s=pld"], [f"s=1xn@{tmp_path / 'p.json'}"])


def test_values_that_are_no_profile_are_refused(tmp_path: Path) -> None:
    for curve in ({**CURVE, "values": ["1", "2"]}, {**CURVE, "step": "0"}, {**CURVE, "step": 1}):
        (tmp_path / "p.json").write_text(json.dumps(curve))
        with pytest.raises(SpecError, match=r"--planned: .*no profile"):
            parse_caps(["s:1:0.001"], ["s=pld"], [f"s=1xn@{tmp_path / 'p.json'}"])


def test_a_release_fits_the_slot_that_its_plan_has_written(tmp_path: Path) -> None:
    guarantee = {"definition": "approximate", "epsilon": "0.2", "delta": "0.00001"}
    counts = []
    for name in ("first", "second"):
        count = query("count", name=name, sensitivity="global", guarantee=guarantee, loss="squared")
        counts.append(count | {"domain": {"integers": {}}})
    rows: list[Row] = [{"unit": "u", "place": "a", "day": 1, "kind": 1, "wh": 1}]
    (tmp_path / "spec").mkdir()
    small = Small(rows, counts, max_rows_per_unit=2, budget=("2", "0.001"))
    spec = str(small.write(tmp_path / "spec"))
    out, key, curve = (str(tmp_path / name) for name in ("out", "key", "curve.json"))
    created = ["--origin", "example.org/dp", "--scope", "tests:0.8:0.001", "--rule", "tests=pld"]
    for words in (
        ["plan", spec, "--profile", curve],
        ["ledger", "key", "new", key],
        [
            "ledger",
            "init",
            "--out",
            out,
            "--key",
            key,
            *created,
            "--planned",
            f"tests=1xit@{curve}",
        ],
        ["run", spec, "--out", out, "--key", key],
        ["verify", f"{out}/public/small", "--ledger", f"{out}/ledger", "--require", "none"],
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.exception)
    account = read_ledger(Path(out) / "ledger").state.accounts["tests"]
    certified, _ = account.certified()
    # Charges add up to 1.6: two queries of two cells, left and entered.
    assert certified is not None
    assert certified < Fraction("0.8")


def test_a_filter_keeps_a_thousandth_of_delta_for_cuts() -> None:
    (cap,) = parse_caps(["s:1:0.001"], ["s=renyi_filter:6"], None)
    assert (cap.order, cap.cuts) == (6, "0.000001")
    (cap,) = parse_caps(["s:1:0.001"], ["s=renyi_filter:6:0.0002"], None)
    assert cap.cuts == "0.0002"
