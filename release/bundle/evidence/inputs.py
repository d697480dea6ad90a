"""``audit.json`` of the auditor's half: when and by whom a release was made, and from what.

Times, people and counts of rows depend on more than the spec, and some on the table. So they go to
the auditor alone, and only where a run asks for them: reading the inputs once more takes time,
which no public file tells. The record names the entry of the ledger that paid, and the key of the
ledger signs it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dp_release_verify import forms
from dp_release_verify.digests import commit_chunks, encoded
from release.bundle.evidence.people import now, people
from release.errors import DataError
from release.records.signing import Signer

if TYPE_CHECKING:
    from release.spec.load import SpecFile
    from release.tables.formats.base import Source

VARIABLE = "DP_RELEASE_AUDIT"
"""A run writes the record if this variable is not empty."""

_CHUNK = 2**20


@dataclass(frozen=True, repr=False)
class Noted:
    """Confidential: what was noted of the inputs of a run, and when."""

    began: str
    inputs: tuple[forms.Input, ...]
    set_aside: tuple[forms.SetAside, ...] | None
    left_out: tuple[forms.LeftOut, ...] | None

    def __repr__(self) -> str:
        return "Noted(confidential)"


def is_asked() -> bool:
    """Whether the environment asks for the record."""
    return bool(os.environ.get(VARIABLE))


def note(
    spec_file: SpecFile,
    began: str,
    set_aside: Callable[[str], dict[tuple[str, str], int]] | None,
    left_out: Sequence[forms.LeftOut] | None,
) -> Noted:
    """Note the inputs of a run; ``set_aside`` counts what was set aside of a table.

    ``left_out`` is what the answers leave out of the tables, where it was counted.

    Raises:
        ReleaseError: a file cannot be read any more.
    """
    from release.tables.sources import find_sources

    inputs, aside = [], []
    for name, source in find_sources(spec_file).items():
        inputs.append(forms.Input(name, list(_commitments(name, source))))
        counts = {} if set_aside is None else set_aside(name)
        for (rule, column), count in sorted(counts.items()):
            # The format has no count of 0.
            if count:
                aside.append(forms.SetAside(name, rule, column, count))
    return Noted(
        began,
        tuple(inputs),
        None if set_aside is None else tuple(aside),
        None if left_out is None else tuple(left_out),
    )


def _commitments(name: str, source: Source) -> Iterator[forms.FileOpening]:
    for file in source.files:
        # Without a random key, whoever saw the value could try likely tables one by one.
        key = secrets.token_bytes(32)
        try:
            commitment = commit_chunks(key, _chunks(file, source))
        except OSError as error:
            raise DataError(f"tables.{name}.path: a file cannot be read again") from error
        yield forms.FileOpening(key.hex(), commitment)


def _chunks(file: Path, source: Source) -> Iterator[bytes]:
    if source.filesystem is None:
        # Piece by piece: a table may be larger than the memory.
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
        return
    with closing(source.filesystem.open_input_stream(str(file))) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def audit_bytes(
    release_id: str, noted: Noted, reserve: tuple[int, str] | None, signer: Signer | None
) -> bytes:
    """The bytes of ``audit.json``; ``reserve`` is the number of the entry, and its run."""
    who = people()
    entry, run = reserve or (None, None)
    audit = forms.Audit(
        schema="dp-release/audit/v1",
        release_id=release_id,
        began=noted.began,
        prepared=now(),
        actor=who.actor,
        inputs=list(noted.inputs),
        approver=who.approver,
        entry=entry,
        run=run,
        set_aside=None if noted.set_aside is None else list(noted.set_aside),
        left_out=None if noted.left_out is None else list(noted.left_out),
    )
    # Signed is what the entry of a ledger paid for: without one nobody could say whose key it is.
    if signer is not None and entry is not None:
        signature = encoded(signer.sign(forms.dumps(replace(audit, signature=""))))
        audit = replace(audit, signature=signature)
    return forms.dumps(audit)
