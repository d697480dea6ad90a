"""Planted errors of different classes that make a guarantee false are found."""

from __future__ import annotations

import pytest

from tests.audit.runner import audited
from tests.every import every
from tests.planted.audited import NOT_FOUND, RUNS, TABLES, chosen, job
from tests.planted.errors import Planted

FINDABLE = [own for own in chosen() if own.name not in NOT_FOUND]


@pytest.mark.parametrize("error", FINDABLE[:: every(19)], ids=lambda own: own.name)
def test_a_planted_error_is_found(error: Planted) -> None:
    (found,) = audited([job(error)], TABLES, RUNS)
    assert found.is_found, found


def test_every_error_that_is_not_found_is_named() -> None:
    assert NOT_FOUND.keys() <= {own.name for own in chosen()}
