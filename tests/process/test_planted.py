"""Planted errors are refused by whom they should be, and the samples by nobody."""

from __future__ import annotations

import datetime
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import yaml

from release.budget.ledger import ScopeCap
from release.budget.store import create_ledger
from release.job import Options
from release.records.keys.files import create_key
from release.spec.periods import Period, parse_period
from release.street import run_release
from tests import sample
from tests.attempts import Tried
from tests.conftest import PROJECT
from tests.every import every
from tests.planted.errors import ERRORS, Planted, SeenBy
from tests.planted.runner import CLEAN, Outcome, asked, run
from tests.planted.specs import SPECS

NEVER = {"over", "twice", "thrice", "monthly", "banded", "chosen"}
"""Specs that the package refuses before it publishes."""

TRIED = ERRORS[:: every(8)]

DATA = ["ami", "ami_levels", "census", "nightly", "persons"]
EXAMPLES = ["kinds", "peaks", "per_unit", "persons"]


def test_planted_errors_are_stopped_by_whom_they_should_be(
    tmp_path: Path, record_property: Tried
) -> None:
    """One test, so that several processes do not plant all of them each."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run(TRIED, tmp_path):
        found[outcome.error].append(outcome)
    check_that_nothing_is_refused_without_an_error(found)
    counts = check_that_what_the_files_show_is_refused(found)
    check_that_what_an_audit_has_to_find_is_in_no_file(found)
    check_that_residuals_alone_show_missing_noise(found)
    counts["unseen"] = len([*of(SeenBy.AUDIT), *of(SeenBy.NOBODY)])
    counts["residuals"] = len(of(SeenBy.RESIDUALS))
    for name, count in counts.items():
        record_property(name, count)


def of(seen_by: SeenBy) -> list[Planted]:
    return [error for error in TRIED if error.seen_by is seen_by]


def check_that_nothing_is_refused_without_an_error(found: dict[str, list[Outcome]]) -> None:
    outcomes = {outcome.spec: outcome for outcome in found[CLEAN]}
    assert {name for name, outcome in outcomes.items() if outcome.run} == NEVER
    for name in SPECS.keys() - NEVER:
        assert outcomes[name] == Outcome(CLEAN, name)


def check_that_what_the_files_show_is_refused(found: dict[str, list[Outcome]]) -> Counter[str]:
    wrong = []
    counts: Counter[str] = Counter()
    for error in of(SeenBy.FILES):
        published = [outcome for outcome in found[error.name] if not outcome.run]
        clean = any(outcome.clean for outcome in published)
        alone = any(outcome.alone for outcome in published)
        # A guarantee that is false has to show in the files, whoever reads them.
        if published and not (clean and (alone or not error.is_private)):
            wrong.append(error.name)
        own = any(outcome.own for outcome in published)
        counts.update({"tried": 1, "run": not published, "own": own})
        counts.update({"clean": clean, "alone": alone})
    assert wrong == []
    return counts


def check_that_what_an_audit_has_to_find_is_in_no_file(found: dict[str, list[Outcome]]) -> None:
    for error in (*of(SeenBy.AUDIT), *of(SeenBy.NOBODY)):
        for outcome in found[error.name]:
            assert outcome == Outcome(error.name, outcome.spec)


def check_that_residuals_alone_show_missing_noise(found: dict[str, list[Outcome]]) -> None:
    """A run verifies its draw before it publishes, so that no verifier is asked."""
    for error in of(SeenBy.RESIDUALS):
        for outcome in found[error.name]:
            assert "residuals: found " in outcome.run


def both_agree(public: Path, out: Path) -> None:
    """A release is accepted with all that there is beside it, and from its files alone."""
    auditor = out / "auditor" / public.name
    assert asked(public, auditor, out) == ("", "")


def signed(spec: Path, folder: Path, period: Period | None = None) -> Path:
    """Publish with a ledger; the public folder, with the key beside the output."""
    signer = create_key(folder / "key")
    scope = yaml.safe_load(spec.read_text("utf-8"))["budget"]["scope"]
    cap = ScopeCap(scope=scope, epsilon="100", delta="0.9")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2026-11-01")
    (folder / "key.pub").write_text(f"{signer.public('example.org/dp')}\n", "utf-8")
    day = datetime.date(2026, 11, 22)
    options = Options(key=folder / "key", period=period)
    return run_release(spec, folder / "out", published=day, options=options).public


@pytest.mark.parametrize(
    "spec",
    [f"data/{name}.yaml" for name in DATA]
    + [f"docs/reference/example/{name}.yaml" for name in EXAMPLES],
)
def test_both_accept_what_the_samples_publish(spec: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "schemas", tmp_path / "schemas")
    # The examples of the reference read the sample tables, too.
    for folder in {PROJECT / "data", (PROJECT / spec).parent}:
        shutil.copytree(folder, tmp_path / folder.relative_to(PROJECT))
    period = parse_period("2024-01-05") if "nightly" in spec else None
    public = signed(tmp_path / spec, tmp_path, period)
    both_agree(public, tmp_path / "out")


def test_both_accept_the_release_of_the_tests(tmp_path: Path) -> None:
    sample.make(tmp_path / "out")
    shutil.copy(tmp_path / "out" / "key.pub", tmp_path / "key.pub")
    both_agree(tmp_path / "out" / "public" / "small", tmp_path / "out")
