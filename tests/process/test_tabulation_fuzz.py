"""Random tabulations from spec to verdict: many, and strategies that are searched for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every import every
from tests.tabulated import run_and_check


@pytest.mark.parametrize("part", range(0, 4, every(4)))
def test_many_random_tabulations_are_published_and_add_up(part: int, tmp_path: Path) -> None:
    compared = 0
    for seed in range(1000 + part, 1040, 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        compared += run_and_check(seed, folder)
    assert compared > 200


@pytest.mark.parametrize("seed", range(2000, 2004))
def test_found_strategies_publish_tables_that_add_up(seed: int, tmp_path: Path) -> None:
    run_and_check(seed, tmp_path, is_pinned=False)
