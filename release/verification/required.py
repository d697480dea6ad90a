"""What an auditor can require of a release. Apart, so that the command line loads nothing else."""

from __future__ import annotations

from enum import StrEnum


class Required(StrEnum):
    """The evidence of its curator that a release needs to count as verified."""

    SIGNATURE = "signature"
    NONE = "none"
