"""The OpenMetrics file: read by a parser of another project, from fixed fields alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from release.budget.entries import ReleaseCharge
from release.budget.ledger import (
    Ledger,
    ScopeCap,
    abort,
    commit,
    create_ledger,
    replay,
    reserve,
    skip,
)
from release.errors import DataError
from release.operate.journal import Code, Journal
from release.operate.log.file import read_log
from release.operate.log.metrics import metrics_text, rounded_down, rounded_up
from release.records.keys.files import create_key

parser = pytest.importorskip("prometheus_client.openmetrics.parser")

DAY = "2024-01-01"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    signer = create_key(tmp_path / "key")
    caps = (
        ScopeCap(scope="s", epsilon="1", delta="0.1"),
        ScopeCap(scope="other", epsilon="3", delta="0"),
    )
    create_ledger(tmp_path / "ledger", signer, "example.org/dp", caps, DAY)
    ledger = Ledger(tmp_path / "ledger", signer)
    third = ReleaseCharge.of(Fraction(1, 3), Fraction(0))
    for name in ("a", "b", "c", "d"):
        ledger.append(reserve("s" if name != "d" else "other", name, third, DAY))
        if name == "a":
            ledger.append(commit(name, b"x", DAY))
        elif name == "b":
            ledger.append(abort(name, DAY, drawn=True, reason="cut-off"))
        elif name == "c":
            ledger.append(abort(name, DAY, drawn=False, reason="storage"))
    ledger.append(skip("e", "no data", DAY))
    return ledger


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_what_the_ledger_says(ledger: Ledger) -> None:
    found = samples(metrics_text(replay(ledger.folder), ()))
    assert found["dp_release_ledger_entries", ()] == 9
    states = {labels[0][1]: n for (name, labels), n in found.items() if name.endswith("_releases")}
    assert states == {"public": 1, "withdrawn": 0, "revised": 0, "skipped": 1, "running": 1}
    aborts = {labels: n for (name, labels), n in found.items() if "_aborts" in name}
    assert aborts == {
        (("drawn", "no"), ("reason", "storage")): 1,
        (("drawn", "yes"), ("reason", "cut-off")): 1,
    }
    # Two thirds of ε stand: the third that was not drawn was given back.
    spent = found["dp_release_charged", (("amount", "epsilon"), ("scope", "s"))]
    assert Fraction(spent) >= Fraction(2, 3)
    left = found["dp_release_left_ratio", (("rule", "basic"), ("scope", "s"))]
    assert Fraction(left) <= Fraction(1, 3)
    assert found["dp_release_cap", (("amount", "delta"), ("scope", "s"))] == pytest.approx(0.1)


def test_what_the_log_says(ledger: Ledger, tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "log"))
    for _ in range(2):
        with pytest.raises(DataError), journal.told(spec="x.yaml"):
            raise DataError("quagzil")
    journal.tell(Code.PUBLISHED, release_id="a")
    lines = read_log([tmp_path / "log"])
    text = metrics_text(replay(ledger.folder), lines)
    found = samples(text)
    assert found["dp_release_refusals_total", (("reason", "data"),)] == 2
    assert found["dp_release_refusals_total", (("reason", "storage"),)] == 0
    name = "dp_release_last_end_timestamp_seconds"
    assert found[name, (("code", "published"),)] >= found[name, (("code", "refused"),)] > 1.7e9
    assert "quagzil" not in text
    assert text.endswith("# EOF\n")


def test_the_fields_are_fixed(ledger: Ledger, tmp_path: Path) -> None:
    Journal(str(tmp_path / "log")).tell(Code.CAUGHT_UP, ended="done")
    found = samples(metrics_text(replay(ledger.folder), read_log([tmp_path / "log"])))
    assert {name for name, _ in found} == {
        "dp_release_ledger_entries",
        "dp_release_releases",
        "dp_release_aborts_total",
        "dp_release_cap",
        "dp_release_charged",
        "dp_release_left_ratio",
        "dp_release_refusals_total",
        "dp_release_last_end_timestamp_seconds",
    }
    keys = {key for _, labels in found for key, _ in labels}
    assert keys == {"state", "reason", "drawn", "scope", "amount", "rule", "code"}


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1, 8)])
def test_floats_are_rounded_to_the_safe_side(value: Fraction) -> None:
    assert Fraction(rounded_down(value)) <= value <= Fraction(rounded_up(value))
    assert rounded_up(value) - rounded_down(value) <= 2**-52
