"""Whole releases under each rule of a scope: run, published, verified, held against the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dp_release_verify.digests import PROOF, SUMS
from release.budget.ledger import (
    Entry,
    PlannedSlot,
    Reserve,
    ScopeCap,
    State,
    commit,
    create_ledger,
    ledger_proof,
    read_ledger,
)
from release.errors import BudgetError, VerificationError
from release.job import Options
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.street import run_release
from release.verification.evidence import Trust
from release.verification.keys import read_trusted
from release.verification.verifier import verify
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
COUNT = query("count", by=[], sensitivity="global")
SEEN = query("count", by=[])
FILTER = ScopeCap(
    scope="tests", epsilon="30", delta="0.001", rule="renyi_filter", order=3, cuts="0.0001"
)


def plan(*slots: PlannedSlot) -> ScopeCap:
    return ScopeCap(scope="tests", epsilon="30", delta="0.001", rule="pld", planned=list(slots))


def slot(name: str, epsilon: str, *, declared: bool = False) -> PlannedSlot:
    return PlannedSlot(name=name, times=2, epsilon=epsilon, delta="0", declared=declared)


def set_up(folder: Path, cap: ScopeCap, count: dict[str, object], slot: str | None = None) -> Path:
    """A spec with one count that charges ε = 1, and a ledger with this scope."""
    spec = Small(ROWS, [count]).write(folder)
    plain = yaml.safe_load(spec.read_text("utf-8"))
    if slot is not None:
        plain["budget"]["slot"] = slot
    spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    signer = create_key(folder / "key")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    return spec


def release(folder: Path, spec: Path) -> tuple[Path, Reserve]:
    """Run and verify; the public folder, and the reserve."""
    published = run_release(spec, folder / "out", options=Options(key=folder / "key"))
    assert published.verdict is not None
    entry = read_ledger(folder / "out" / "ledger").entries[1]
    assert isinstance(entry, Reserve)
    return published.public, entry


@pytest.mark.parametrize(("named", "taken"), [(None, "loose"), ("looser", "looser")])
def test_a_release_takes_a_slot_and_is_verified(
    named: str | None, taken: str, tmp_path: Path
) -> None:
    slots = slot("tight", "0.5"), slot("loose", "3"), slot("looser", "4")
    spec = set_up(tmp_path, plan(*slots), COUNT, named)
    public, entry = release(tmp_path, spec)
    assert (entry.slot, entry.moment) == (taken, None)
    record = json.loads((public / "release.json").read_bytes())
    assert record["made"]["total"]["epsilon"] == entry.epsilon
    assert "slots = 1 spent of 6, 5 left" in (public / "report.html").read_text("utf-8")


def test_a_release_that_fits_no_slot_draws_nothing(tmp_path: Path) -> None:
    spec = set_up(tmp_path, plan(slot("tight", "0.5")), COUNT)
    with pytest.raises(BudgetError, match="fits no free slot of scope 'tests'"):
        release(tmp_path, spec)
    assert len(read_ledger(tmp_path / "out" / "ledger").entries) == 1
    assert not (tmp_path / "out" / "public").exists()


def test_a_release_takes_its_moment_from_a_filter(tmp_path: Path) -> None:
    _, entry = release(tmp_path, set_up(tmp_path, FILTER, COUNT))
    assert entry.slot is None
    assert entry.moment is not None


@pytest.mark.parametrize("cap", [FILTER, plan(slot("night", "9"))])
def test_an_instance_specific_release_needs_a_declared_slot(cap: ScopeCap, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="instance-specific"):
        release(tmp_path, set_up(tmp_path, cap, SEEN))


def test_a_declared_slot_takes_an_instance_specific_release(tmp_path: Path) -> None:
    cap = plan(slot("night", "9"), slot("seen", "2", declared=True))
    _, entry = release(tmp_path, set_up(tmp_path, cap, SEEN))
    assert entry.slot == "seen"


@pytest.mark.parametrize("rule", ["pld", "renyi_filter"])
def test_a_reserve_that_was_too_small_for_its_release_is_refused(rule: str, tmp_path: Path) -> None:
    """A curator, who holds the key, writes a ledger with a smaller slot or moment."""
    cap = plan(slot("tight", "0.5"), slot("loose", "3")) if rule == "pld" else FILTER
    public, honest = release(tmp_path, set_up(tmp_path, cap, COUNT))
    smaller = {"slot": "tight"} if rule == "pld" else {"moment": "1.5"}
    for change in ({}, smaller):
        forged, signer = tmp_path / f"forged-{len(change)}", read_key(tmp_path / "key")
        ledger = create_ledger(forged, signer, "example.org/dp", (cap,), "2024-01-01")

        def same(state: State, change: dict[str, str] = change) -> Entry:
            return honest.model_copy(update={"prev": state.head, **change})

        ledger.append(same)
        ledger.append(commit("small", (public / SUMS).read_bytes(), honest.date))
        (public / PROOF).write_bytes(ledger_proof(ledger.recover(), "small", forged))
        trust = Trust(forged, read_trusted([str(signer.public("example.org/dp"))]))
        if not change:
            assert verify(public, None, trust).status == 0
            continue
        with pytest.raises(VerificationError, match=r"slot|moment") as refusal:
            verify(public, None, trust)
        assert refusal.value.identifier == "ledger.paid"
