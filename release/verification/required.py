"""How far a release is vouched for, and how far an auditor requires it to be.

Apart, so that the command line loads nothing else.
"""

from __future__ import annotations

from enum import StrEnum


class Evidence(StrEnum):
    """How far a release is vouched for; each level has what the ones before it have.

    ``unsigned``: by no key that the auditor trusts. ``signed``: such a key signed for every file,
    and for a ledger that holds the commit of the release. ``paid``: that ledger was replayed, it
    reserved the charge and keeps every cap, and its store, where it names one, agrees.
    ``witnessed``: a witness that the auditor trusts has seen the ledger's checkpoint.
    """

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    PAID = "paid"
    WITNESSED = "witnessed"

    @property
    def rank(self) -> int:
        """The number of levels below it."""
        return list(Evidence).index(self)


class Required(StrEnum):
    """The least evidence that an auditor accepts."""

    NONE = "none"
    SIGNED = "signed"
    PAID = "paid"
    WITNESSED = "witnessed"

    def is_met(self, evidence: Evidence) -> bool:
        """Whether a release with this evidence is accepted."""
        return self is Required.NONE or evidence.rank >= Evidence(self.value).rank
