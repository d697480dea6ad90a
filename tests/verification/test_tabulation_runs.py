"""Random tabulations from spec to verdict: what is published adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tabulated import run_and_check


@pytest.mark.parametrize("seed", range(24))
def test_random_tabulations_are_published_and_add_up(seed: int, tmp_path: Path) -> None:
    run_and_check(seed, tmp_path)


def test_sums_are_compared(tmp_path: Path) -> None:
    assert run_and_check(2, tmp_path) > 20
