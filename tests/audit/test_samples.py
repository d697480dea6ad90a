"""The audit of the sample specs, on few tables: some tens of CPU seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dp_release_audit.audit import AuditOptions, audit
from dp_release_audit.verdict import Verdict
from release.spec.periods import parse_period
from tests.conftest import PROJECT


def audited(spec: Path, options: AuditOptions) -> Verdict:
    """The verdict of an audit that says nothing meanwhile."""
    return audit(spec, options, lambda finished, total, what: None)


@pytest.mark.nightly
def test_tables_of_a_census_are_held_and_come_near() -> None:
    """A tabulation, whose measured tables share one budget."""
    verdict = audited(PROJECT / "data" / "census.yaml", AuditOptions(16, 2, processes=0))
    assert verdict.findings == []
    assert float(verdict.epsilon) == 1
    assert 0.99 < verdict.attained <= 1 + 1e-9


def test_a_night_of_a_template_is_held_and_comes_near() -> None:
    """Three conditions at once, and two drawn answers that are published as one."""
    options = AuditOptions(16, 2, processes=0, period=parse_period("2013-01-06"))
    verdict = audited(PROJECT / "data" / "nightly.yaml", options)
    assert verdict.findings == []
    assert 0.495 < verdict.attained <= 0.5 + 1e-9
    assert verdict.unmeasured == []
