"""The text of a checkpoint from its entries, for tests that forge one."""

from __future__ import annotations

from dp_release_verify.digests import encoded
from dp_release_verify.merkle import root


def checkpoint_text(origin: str, leaves: list[bytes]) -> str:
    """The three lines of a checkpoint (C2SP tlog-checkpoint)."""
    return f"{origin}\n{len(leaves)}\n{encoded(root(leaves))}\n"
