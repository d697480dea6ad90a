"""A season of nightly releases, with kills and a machine that is put back in time.

``python -m tests.year`` (``make year``) is the whole year; this is what the suite has time for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.year import Year, check, simulate


@pytest.mark.parametrize("rule", ["basic", "pld"])
@pytest.mark.nightly
def test_a_season_of_nights_ends_when_its_budget_does(
    tmp_path: Path, rule: Literal["basic", "pld"]
) -> None:
    year = Year(
        tmp_path,
        nights=44,
        kills=6,
        affordable=32,
        rule=rule,
        # Of an exact plan the slots are taken by two machines in turn.
        machines=2 if rule == "pld" else 1,
        late=frozenset({4, 11}),
        never=frozenset({7}),
        revised=frozenset({3, 9}),
    )
    simulate(year)
    check(year)
