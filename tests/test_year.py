"""A season of nightly releases, with kills and a machine that is put back in time.

``python -m tests.year`` (``make year``) is the whole year; this is what the suite has time for.
"""

from __future__ import annotations

from pathlib import Path

from release.journal import FIELDS, read_journal
from release.ledger import Abort, Reserve, read_ledger
from release.operations import left_behind, verify_each
from release.stores import fetch, open_store
from tests.year import CHARGE, Year, simulate


def test_a_season_of_nights_ends_when_its_budget_does(tmp_path: Path) -> None:
    year = Year(tmp_path, nights=60, kills=7, affordable=52)
    simulate(year)
    out = year.place.out
    ledger = read_ledger(out / "ledger")
    lost = sum(isinstance(entry, Abort) and entry.drawn for entry in ledger.entries)
    public = sorted(path.name for path in (out / "public").iterdir())
    # Every charge is a release or a loss, and together they are the cap, to the last.
    assert len(public) + lost == year.affordable
    assert ledger.state.spent("tests").epsilon == year.affordable * CHARGE
    refunded = sum(isinstance(entry, Abort) and not entry.drawn for entry in ledger.entries)
    reserves = sum(isinstance(entry, Reserve) for entry in ledger.entries)
    assert reserves == year.affordable + refunded
    assert year.ended["budget spent"] >= 3
    assert set(year.refused) <= {"BudgetError"}
    assert set(ledger.state.committed) == set(public)
    # Nothing is left of any run, and all of it verifies, here and in the store.
    assert left_behind(out) == ()
    assert sorted(path.name for path in out.iterdir()) == ["auditor", "ledger", "public"]
    verdicts = verify_each(out)
    assert {name for name, _ in verdicts} == set(public)
    assert not [told for _, told in verdicts if told.startswith("refused")]
    store = open_store(str(tmp_path / "store"), "--to")
    assert store.names("public") == public
    fetch(store, public[-1], tmp_path / "back" / public[-1])
    # Neither memory nor disk grows with the years before, but for what is published.
    assert max(year.memory[-10:]) < 1.2 * max(year.memory[:10])
    per_release = [(year.disk[b] - year.disk[a]) / (b - a) for a, b in ((10, 25), (35, 50))]
    assert per_release[1] < 1.2 * per_release[0]
    # The log holds codes and identifiers, whatever happened.
    lines = read_journal(tmp_path / "log.jsonl")
    assert len(lines) > 10 * len(public)
    assert {name for line in lines for name in line} <= {"time", "code", *FIELDS}
