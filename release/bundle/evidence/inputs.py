"""The audit record of a run: commitments to its inputs, what was set aside, and who ran it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dp_release_verify.digests import commit_chunks
from release.bundle.evidence.people import now, people
from release.bundle.evidence.record import AuditRecord, InputRecord, LeftOut, SetAside
from release.bundle.evidence.signed import signed
from release.errors import DataError
from release.records.models import Opening, canonical
from release.records.signing import Signer

if TYPE_CHECKING:
    from release.spec.load import SpecFile
    from release.tables.sources import Source

VARIABLE = "DP_RELEASE_AUDIT"
"""A run writes the record if this variable is not empty."""

_CHUNK = 2**20


@dataclass(frozen=True, repr=False)
class Noted:
    """Confidential: what was noted of the inputs of a run, and when."""

    began: str
    inputs: tuple[InputRecord, ...]
    set_aside: tuple[SetAside, ...] | None
    left_out: tuple[LeftOut, ...] | None

    def __repr__(self) -> str:
        return "Noted(confidential)"


def is_asked() -> bool:
    """Whether the environment asks for the record."""
    return bool(os.environ.get(VARIABLE))


def note(
    spec_file: SpecFile,
    began: str,
    set_aside: Callable[[str], dict[tuple[str, str], int]] | None,
    left_out: Sequence[LeftOut] | None,
) -> Noted:
    """Note the inputs of a run; ``set_aside`` counts what was set aside of a table.

    ``left_out`` is what the answers leave out of the tables, where it was counted.

    Raises:
        ReleaseError: a file cannot be read any more.
    """
    from release.tables.sources import find_sources

    inputs, aside = [], []
    for name, source in find_sources(spec_file).items():
        inputs.append(InputRecord(table=name, files=list(_commitments(name, source))))
        counts = {} if set_aside is None else set_aside(name)
        for (rule, column), count in sorted(counts.items()):
            # The format has no count of 0.
            if count:
                aside.append(SetAside(table=name, rule=rule, column=column, count=count))
    return Noted(
        began,
        tuple(inputs),
        None if set_aside is None else tuple(aside),
        None if left_out is None else tuple(left_out),
    )


def _commitments(name: str, source: Source) -> Iterator[Opening]:
    for file in source.files:
        # Without a random key, whoever saw the value could try likely tables one by one.
        key = secrets.token_bytes(32)
        try:
            commitment = commit_chunks(key, _chunks(file, source))
        except OSError as error:
            raise DataError(f"tables.{name}.path: a file cannot be read again") from error
        yield Opening(key=key.hex(), commitment=commitment)


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
    sequence, run = reserve or (None, None)
    record = AuditRecord(
        schema="dp-release/audit/v1",
        release_id=release_id,
        sequence=sequence,
        run=run,
        began=noted.began,
        prepared=now(),
        actor=who.actor,
        approver=who.approver,
        inputs=list(noted.inputs),
        set_aside=None if noted.set_aside is None else list(noted.set_aside),
        left_out=None if noted.left_out is None else list(noted.left_out),
    )
    return canonical(signed(record, signer))
