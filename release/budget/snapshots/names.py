"""The names of past releases in sorted records of one length, so that a look-up parses none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dp_release_verify.digests import sha256

_NAME, _RECORD = 16, 17
PUBLIC, WITHDRAWN, SKIPPED, CHARGED, REVISED = b"\x01", b"\x02", b"\x03", b"\x04", b"\x05"
"""What became of a release; ``CHARGED`` is one given up after its draw, and nothing later."""


@dataclass(frozen=True)
class PastNames:
    """What became of the releases up to some entry, open reserves left out.

    ``records`` holds 17 bytes a release, sorted: the first 16 bytes of the SHA-256 of its name,
    then its mark.
    """

    records: bytes = b""

    def mark(self, name: str) -> bytes:
        """The mark of a release; empty where the name is not among these."""
        digest = _digest(name)
        start = self._position(digest)
        record = self.records[start : start + _RECORD]
        return record[_NAME:] if record[:_NAME] == digest else b""

    def with_marks(self, changes: Mapping[str, bytes]) -> PastNames:
        """These names and further ones; a mark takes the place of an older one."""
        marks = {_digest(name): mark for name, mark in changes.items()}
        # Only the later names are sorted: the others are copied in pieces, however many they are.
        pieces, copied = [], 0
        for digest in sorted(marks):
            start = self._position(digest)
            pieces += [self.records[copied:start], digest, marks[digest]]
            is_known = self.records[start : start + _NAME] == digest
            copied = start + _RECORD if is_known else start
        return PastNames(b"".join([*pieces, self.records[copied:]]))

    def _position(self, digest: bytes) -> int:
        """Where the record of a name is, or would be."""
        low, high = 0, len(self.records) // _RECORD
        while low < high:
            middle = (low + high) // 2
            start = middle * _RECORD
            if self.records[start : start + _NAME] < digest:
                low = middle + 1
            else:
                high = middle
        return low * _RECORD


def _digest(name: str) -> bytes:
    return bytes.fromhex(sha256(name.encode()))[:_NAME]
