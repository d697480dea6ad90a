"""Opens a ledger to be changed by its signing key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from release.budget.ledger import Ledger


def writable(out: Path, key: Path) -> Ledger:
    """The ledger in OUT, with the key that signs its next entries."""
    from release.budget.ledger import Ledger
    from release.bundle.publish import LEDGER
    from release.records.keys.outside import read_key

    return Ledger(out / LEDGER, read_key(key))


def day_in_utc() -> str:
    """Today's date, as entries have it."""
    from release.budget.ledger import today

    # The day in UTC: the entries of a ledger come from machines in any time zone.
    return today().isoformat()
