"""The audit holds on correct code, and the command says so."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_release_audit.audit import AuditOptions, audit
from dp_release_audit.guarantees import Guarantees
from dp_release_audit.laws import CellLaw, Laws
from dp_release_audit.losses import CellPair, Composer
from dp_release_audit.program import Program
from dp_release_audit.tables import NOTHING, Case, Cases
from dp_release_audit.verdict import Verdict
from dp_release_audit.words import Law, Outcome
from release import rehearsal
from release.budget import cost
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.query import Query
from release.street import charges_of
from tests.cli.test_main import run
from tests.conftest import PROJECT
from tests.small import Small, query

GLOBAL = {"sensitivity": "global"}
ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}
WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}


def audited(folder: Path, *queries: dict[str, Any], **fields: Any) -> Verdict:
    """The verdict of a small audit; the table that the spec names is not there."""
    spec = Small([], list(queries), **fields).write(folder)
    (folder / "rows.parquet").unlink()
    return audit(spec, AuditOptions(32, 4, processes=0), lambda finished, total, what: None)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_a_count_is_held_and_comes_near_its_claim(neighbors: str, tmp_path: Path) -> None:
    verdict = audited(tmp_path, query("count", by=[], **GLOBAL), neighbors=neighbors)
    assert verdict.findings == []
    assert 0.99 * float(verdict.epsilon) < verdict.attained <= float(verdict.epsilon) + 1e-9
    assert verdict.tried.pairs >= 12


def test_delta_is_held_and_comes_near(tmp_path: Path) -> None:
    weak = query("count", mechanism="channel", guarantee=WEAK, by=[], **GLOBAL)
    verdict = audited(tmp_path, weak, max_rows_per_unit=1)
    assert verdict.findings == []
    assert 0.9 * float(verdict.delta) < verdict.least_delta <= float(verdict.delta) * 1.000001


def test_a_mode_of_three_comes_to_its_claim_and_not_beyond(tmp_path: Path) -> None:
    """Shares of draws would say more than ε; the table of its gaps states the chances."""
    nominal = {"of": "place", "domain": {"nominal": ["a", "b", "c"]}, "noise": "on_statistic"}
    asked = query("mode", by=[], guarantee={"definition": "pure", "epsilon": "2"}, **GLOBAL)
    verdict = audited(tmp_path, asked | nominal, max_rows_per_unit=1)
    assert verdict.findings == []
    assert 1.999 < verdict.attained <= 2 + 1e-9


def test_shares_of_draws_claim_no_loss_that_chance_explains() -> None:
    shares: dict[Outcome, Fraction] = {(0,): Fraction(79, 100), (1,): Fraction(21, 100)}
    here = CellLaw((Law(shares, Fraction(0), "sampled alone", Fraction(1, 10)),))
    swapped: dict[Outcome, Fraction] = {(0,): Fraction(21, 100), (1,): Fraction(79, 100)}
    there = CellLaw((Law(swapped, Fraction(0), "sampled alone", Fraction(1, 10)),))
    assert CellPair(here, there).attained == pytest.approx(math.log(0.69 / 0.31))
    exact = CellLaw((Law(shares, Fraction(0), "enumerated"),))
    reverse = CellLaw((Law(swapped, Fraction(0), "enumerated"),))
    assert CellPair(exact, reverse).attained == pytest.approx(math.log(79 / 21))


def test_what_was_left_out_of_a_law_is_no_loss() -> None:
    """An outcome that the neighbor's law lacks has at most the chance of what was left out."""
    rest = Fraction(1, 2**39)
    chances: dict[Outcome, Fraction] = {(0,): 1 - 100 * rest, (1,): 100 * rest}
    here = Law(chances, Fraction(0), "enumerated")
    there = Law({(0,): 1 - rest}, rest, "enumerated")
    cells = [CellPair(CellLaw((here,)), CellLaw((there,)))]
    loose, tight = (Composer().compose(cells, Fraction(epsilon)) for epsilon in (5, 1))
    assert loose.least_delta <= loose.slack
    assert tight.least_delta > tight.slack


def test_a_mean_with_wide_noise_is_measured(tmp_path: Path) -> None:
    pure = {"definition": "pure", "epsilon": "1/2"}
    bins = {"low": -3, "high": 3, "count": 3}
    mean = query("binned", statistic="mean", clamp=[-1, 2], bins=bins, by=[], guarantee=pure)
    verdict = audited(tmp_path, mean | ON_STATISTIC, max_rows_per_unit=2)
    assert verdict.findings == []
    assert verdict.exit_status == 0
    assert 0.49 < verdict.attained <= 0.5 + 1e-9


def test_noise_that_takes_too_much_work_is_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said against it, and the status is that of what could not be checked."""
    far = {"clamp": [0, 20_000], "bins": {"low": 0, "high": 20_000, "count": 2}}
    wide = query("binned", name="wide", by=[], **ON_STATISTIC, **far)
    near = query("count", name="near", by=[], **GLOBAL)
    spec = Small([], [wide, near], "add_remove", max_rows_per_unit=1).write(tmp_path)
    status, printed, _ = run(capsys, "audit", spec, "--tables", "8", "--runs", "2")
    assert status == 3
    lines = printed.splitlines()
    (reason,) = (line for line in lines if line.startswith("not measured: "))
    assert reason.startswith("not measured: wide: a word has more than 5000 limits")
    assert "larger epsilon" in reason
    assert "found:" not in printed
    assert lines[-1] == "small: held on all that was tried; not measured: wide"


def test_draws_too_few_to_show_a_loss_are_named(tmp_path: Path) -> None:
    """The tables differ, and so do the answers: more tables would not help."""
    pure = {"definition": "pure", "epsilon": "1/6000"}
    broad = query("count", name="broad", by=[], guarantee=pure, domain={"integers": {}}, **GLOBAL)
    small = Small([], [broad], neighbors="add_remove", max_rows_per_unit=1)
    program = Program(read_spec(small.write(tmp_path)), tmp_path)
    row = (("place", "a"), ("day", 1), ("kind", 1), ("wh", 1))
    case, neighbor = Case((NOTHING,)), Case(((("rows", (row,)),),))
    here, there = program.answers(case), program.answers(neighbor)
    charged, _ = charges_of(program.spec_file, here.runs)
    verdict = Verdict("small")
    guarantees = Guarantees(program.spec_file, charged, Laws(), verdict)
    guarantees.compare(case, neighbor, here, there, Cases(program.spec_file, 2, lambda own: 1))
    guarantees.name_hidden()
    assert verdict.findings == []
    assert verdict.reasons["broad"].startswith("5,000 draws of a cell have ")
    assert verdict.exit_status == 3


def test_a_brief_audit_ends_at_its_first_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a charge is told, which two neighbors show before any whole run is compared."""
    right = cost.moved_together

    def half(spec_file: SpecFile, query: Query) -> Fraction:
        return right(spec_file, query) / 2

    monkeypatch.setattr(cost, "moved_together", half)
    # The verifier would refuse it before anything is drawn.
    monkeypatch.setattr(rehearsal, "check_content", lambda *_: None)
    spec = Small([], [query("count", by=[], **GLOBAL)], "add_remove").write(tmp_path)
    options = AuditOptions(16, 2, processes=0, is_brief=True)
    verdict = audit(spec, options, lambda finished, total, what: None)
    assert verdict.findings[0].check == "the charge"
    assert verdict.tried.runs == 0
    assert verdict.tried.pairs < 16


def test_made_up_rows_keep_to_the_contract() -> None:
    """A row that breaks it is left out, and tables without rows tell nothing."""
    spec = PROJECT / "data" / "persons.yaml"
    verdict = audit(spec, AuditOptions(40, 2, processes=0), lambda finished, total, what: None)
    assert verdict.findings == []
    assert float(verdict.epsilon) == 3
    assert verdict.attained > 2.99


def test_empirical_sensitivity_is_held_for_what_was_seen(tmp_path: Path) -> None:
    verdict = audited(tmp_path, query("mode"))
    assert verdict.findings == []
    assert any("empirical" in note for note in verdict.notes)


def test_the_command_prints_its_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = Small([], [query("count", by=[], **GLOBAL)], max_rows_per_unit=1).write(tmp_path)
    status, printed, _ = run(capsys, "audit", spec, "--tables", "16", "--runs", "2", "--json")
    plain = json.loads(printed)
    assert (status, plain["held"]) == (0, True)
    assert plain["tried"]["runs"] >= 4


def test_an_audit_that_measures_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No row meets the condition, so that all tables have one answer."""
    never = query("count", name="never", by=[], where="kind < 1 AND kind > 2", **GLOBAL)
    spec = Small([], [never], max_rows_per_unit=1).write(tmp_path)
    few = ("--tables", "8", "--runs", "2")
    status, printed, _ = run(capsys, "audit", spec, *few)
    assert status == 3
    assert "not measured: never: no two of the tables" in printed
    assert printed.endswith("held on all that was tried; nothing was measured\n")
    always = query("count", name="always", by=[], **GLOBAL)
    both = Small([], [never, always], "add_remove", max_rows_per_unit=1)
    spec = both.write(tmp_path)
    status, printed, _ = run(capsys, "audit", spec, *few, "--json")
    assert (status, json.loads(printed)["unmeasured"]) == (0, ["never"])


def test_a_wrong_spec_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = Small([], [query("count", **GLOBAL)], budget=("1", "0")).write(tmp_path)
    status, printed, complained = run(capsys, "audit", spec, "--tables", "16", "--runs", "2")
    assert (status, printed) == (2, "")
    assert "budget.epsilon" in complained.splitlines()[-1]
