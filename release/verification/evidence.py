"""What an auditor was given to check a release with.

Apart, so that the command line loads nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dp_release_verify.signatures import VerifierKey


class Required(StrEnum):
    """The least evidence that an auditor asks for; each level has what the ones before it have.

    ``signed``: by a key that the auditor trusts. ``paid``: the ledger was replayed, and reserved
    the charge. ``witnessed``: a witness that the auditor trusts has seen the ledger.
    """

    NONE = "none"
    SIGNED = "signed"
    PAID = "paid"
    WITNESSED = "witnessed"


@dataclass(frozen=True)
class Trust:
    """The auditor's evidence: a ledger, keys of curator and witnesses, an older checkpoint.

    A ledger is replayed, but whoever forged a release may have written it too: only ``keys`` say
    who published it.
    """

    ledger: Path | None = None
    keys: tuple[VerifierKey, ...] = ()
    older: Path | None = None
    require: Required = Required.NONE
    witnesses: tuple[VerifierKey, ...] = ()
