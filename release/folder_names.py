"""What the writer and the verifier of a release folder both have to compute.

Kept apart from :mod:`release.folder`, so that the verifier loads nothing that writes or solves.
"""

from __future__ import annotations

import hashlib
import hmac
from decimal import Context, Decimal
from fractions import Fraction

from release.exact import format_up
from release.law import Law
from release.spec import Relation

SUMS = "SHA256SUMS"


def epsilon_everywhere(law: Law) -> str:
    """The least ε of the law over all differences, rounded up; ``inf`` if there is none."""
    least, largest = int(law.weights.min()), int(law.weights.max())
    if least == 0:
        return "inf"
    context = Context(prec=40)
    logarithm = context.divide(Decimal(largest), Decimal(least)).ln(context)
    return format_up(Fraction(logarithm), 12)


def adjacency_text(unit: str, relation: Relation, fixed: list[str]) -> str:
    """The neighbouring relation in words."""
    keeps = f", which keeps its {' and '.join(fixed)}" if fixed else ""
    if relation is Relation.REPLACE_ONE:
        return f"all rows of one {unit} are replaced by those of another{keeps}"
    return f"all rows of one {unit} are removed, or those of a new one added{keeps}"


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal. Of public bytes only: confidential ones are committed with a key."""
    return hashlib.sha256(data).hexdigest()


def commit(key: bytes, data: bytes) -> str:
    """The salted commitment to ``data`` under a fresh 32-byte key (FORMAT.md §4)."""
    return "hmac-sha256:" + hmac.new(key, data, hashlib.sha256).hexdigest()
