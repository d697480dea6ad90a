"""The file of a log: appended to under a lock, healed after a crash, checked as a chain.

A crash can leave a part of a line. The next line begins on a line of its own, and nothing that was
written is removed. Beside the log lies ``<log>.last``, a copy of its last line: lines that are
taken away from the end show there. Where both were put back to an older state, a ledger shows it:
each release that it commits has a line (:func:`ends_missing`).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify.signatures import SignatureError
from release.budget.entries import Commit, Entry
from release.bundle.evidence.line import NOTHING, Code, LogLine, hash_of, parse_line
from release.bundle.evidence.signed import check_signature
from release.errors import SpecError, VerificationError
from release.records.files import lock, sync_file
from release.records.signing import PublicKey

_LONGEST = 2**12
"""More bytes than a line of ours can have."""
_PAUSES = (0.1,) * 50
"""Seconds between tries for the lock: a log must hold no run up."""


def last_copy(path: Path) -> Path:
    """The file that holds a copy of the last line of a log."""
    return path.with_name(f"{path.name}.last")


def append(path: Path, fill: Callable[[int, str], bytes]) -> None:
    """Append the line that ``fill`` makes of its number and the hash of the line before.

    What is no plain file, such as a terminal, gets the line of number 0.

    Raises:
        OSError: the file cannot be written, or its lock stays held.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.write(descriptor, fill(0, NOTHING) + b"\n")
            return
        lock(descriptor, _PAUSES)
        tail, is_torn = _tail(descriptor)
        data = fill(*_after(tail, _copied(path)))
        # One write, so that a crash leaves a part of one line and never of two.
        os.write(descriptor, (b"\n" if is_torn else b"") + data + b"\n")
        os.fsync(descriptor)
        _copy(path, data)
    finally:
        os.close(descriptor)


def _tail(descriptor: int) -> tuple[list[bytes], bool]:
    """The last lines, and whether the very last one lacks its end."""
    size = os.fstat(descriptor).st_size
    start = max(0, size - 4 * _LONGEST)
    data = os.pread(descriptor, size - start, start)
    return data.split(b"\n"), bool(data) and not data.endswith(b"\n")


def _after(tail: list[bytes], copied: bytes) -> tuple[int, str]:
    """The number and the predecessor of the next line."""
    readable = []
    for data in (*tail, copied):
        line = _read(data)
        # The first piece of the tail is the end of some line, and a crash leaves pieces too.
        if line is not None:
            readable.append((line.number, data))
    if not readable:
        return 0, NOTHING
    # If lines were taken away, the copy is newer: the gap is to stay visible.
    number, data = max(readable)
    return number + 1, hash_of(data)


def _read(data: bytes) -> LogLine | None:
    try:
        return parse_line(data)
    except (ValueError, RecursionError):
        return None


def _copied(path: Path) -> bytes:
    with suppress(OSError):
        return last_copy(path).read_bytes()
    return b""


def _copy(path: Path, data: bytes) -> None:
    # After the line itself: a crash in between leaves an older copy, which is no fault.
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "wb") as file:
            file.write(data)
        sync_file(aside)
        aside.replace(last_copy(path))
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


@dataclass(frozen=True)
class Checked:
    """A log whose lines follow from each other.

    ``unsigned`` and ``torn`` count lines without a signature, and parts of lines that crashes left.
    """

    lines: tuple[LogLine, ...]
    unsigned: int
    torn: int


def read_log(paths: Sequence[Path]) -> tuple[LogLine, ...]:
    """The lines of a log, which may lie in several files, oldest first; nothing is checked.

    Raises:
        SpecError: a file cannot be read.
    """
    lines = (_read(data) for _, _, data in _numbered(paths))
    return tuple(line for line in lines if line is not None)


def check_log(paths: Sequence[Path], keys: tuple[PublicKey, ...]) -> Checked:
    """Check that each line follows from the one before, none is missing, and signatures hold.

    With no keys signatures are not checked.

    Raises:
        VerificationError: a line was changed, removed, moved or added.
        SpecError: a file cannot be read.
    """
    lines: list[LogLine] = []
    prev, unsigned, torn = NOTHING, 0, 0
    for path, place, data in _numbered(paths):
        line = _read(data)
        if line is None:
            # Not refused here: if it was a line, the number after it does not follow.
            torn += 1
            continue
        at = f"{path.name}:{place}"
        _expect(at, "number", line.number, len(lines))
        _expect(at, "prev", line.prev, prev)
        if line.signature is None:
            unsigned += 1
        elif keys:
            try:
                check_signature(line, keys)
            except SignatureError as error:
                raise VerificationError(at, "signature", str(error), "that of a key") from error
        lines.append(line)
        prev = hash_of(data)
    _check_end(paths[-1], lines)
    return Checked(tuple(lines), unsigned, torn)


def _check_end(path: Path, lines: list[LogLine]) -> None:
    """Check that the copy of the last line is one of the lines."""
    copy = last_copy(path)
    if not lines and not copy.exists():
        return
    last = _read(_copied(path))
    if last is None:
        raise VerificationError(copy.name, "file", "nothing, or no line", "the log's last line")
    # One line may have been written after it when the machine went down.
    if not len(lines) - 2 <= last.number < len(lines):
        expected = f"line {last.number}, which was written"
        raise VerificationError(path.name, "end", f"{len(lines)} lines", expected)
    _expect(copy.name, "line", last, lines[last.number])


def _numbered(paths: Sequence[Path]) -> Iterator[tuple[Path, int, bytes]]:
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SpecError("LOG", f"{path} cannot be read ({error.strerror})") from error
        for place, line in enumerate(data.split(b"\n"), 1):
            if line:
                yield path, place, line


def _expect(at: str, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise VerificationError(at, what, str(found), str(expected))


def ends_missing(lines: Sequence[LogLine], entries: Sequence[Entry]) -> tuple[str, ...]:
    """The releases that a ledger commits on a day after the log's first one, without a line."""
    if not lines:
        return ()
    reported = {line.release_id for line in lines if line.code in (Code.PUBLISHED, Code.RECOVERED)}
    first = lines[0].time[:10]
    committed = (entry for entry in entries if isinstance(entry, Commit))
    # Of the first day it is not known what came before the log.
    return tuple(
        entry.release_id
        for entry in committed
        if entry.date > first and entry.release_id not in reported
    )
