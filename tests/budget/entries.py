"""Entries of a ledger, of which a test names what it is about."""

from __future__ import annotations

from typing import Any

from release.budget.entries import Reserve


def reservation(seq: int = 1, **fields: Any) -> Reserve:
    """A reservation of nothing in scope ``s``, but for the ``fields``."""
    plain = {
        "prev": "sha256:" + "0" * 64,
        "date": "2024-03-01",
        "kind": "reserve",
        "scope": "s",
        "release_id": "r",
        "epsilon": "0",
        "delta": "0",
    }
    return Reserve(seq=seq, **(plain | fields))
