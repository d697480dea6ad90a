"""CPU milliseconds of an append to ledgers of 10³, 10⁴ and 10⁵ entries, beside a full replay.

Half of the entries reserve, half commit, a day each 100 releases. An append begins as a new process
does: no entry is parsed in advance. Run it: ``python benchmarks/bench_ledger.py [ENTRIES ...]``.
"""

from __future__ import annotations

import datetime
import statistics
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.checkpoint import CHECKPOINT, checkpoint_of
from release.budget.entries import Entry
from release.budget.ledger import (
    Ledger,
    ScopeCap,
    Spent,
    commit,
    create_ledger,
    read_ledger,
    reserve,
)
from release.budget.snapshots.snapshot import EVERY
from release.budget.state import State, entry_file, read_entry, replay
from release.records.keys.files import FileSigner
from release.records.models import canonical
from release.records.signing import sign_note

ORIGIN = "example.org/benchmark"
CHARGE = Spent(Fraction(1, 1000), Fraction(1, 10**9))
APPENDS = 2 * EVERY


def main(sizes: list[int]) -> None:
    """Print a line for each number of entries."""
    print("entries   append ms: median   mean   largest   ×first   full replay ms")
    first = 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            ledger = built(Path(folder) / "ledger", size)
            # The first append finds no snapshot, and leaves one.
            append(ledger, size)
            times = [append(ledger, size + number) for number in range(1, APPENDS + 1)]
            read_entry.cache_clear()
            before = time.process_time()
            read_ledger(ledger.folder)
            full = 1000 * (time.process_time() - before)
        mean = statistics.mean(times)
        first = first or mean
        print(
            f"{size:7} {statistics.median(times):19.1f} {mean:6.1f} {max(times):9.1f}"
            f" {mean / first:8.2f} {full:16.0f}",
            flush=True,
        )


def built(folder: Path, size: int) -> Ledger:
    """A ledger of ``size`` entries, written without a sync for each."""
    signer = FileSigner(Ed25519PrivateKey.generate())
    cap = ScopeCap(scope="s", epsilon="1000", delta="0.1")
    ledger = create_ledger(folder, signer, ORIGIN, (cap,), day(0))
    state = replay(folder).state
    for number in range(1, size):
        entry = entry_of(state, number)
        data = canonical(entry)
        state.follow(entry, data)
        (folder / entry_file(number)).write_bytes(data)
    note = sign_note(checkpoint_of(replay(folder)), signer, ORIGIN)
    (folder / CHECKPOINT).write_text(note)
    return ledger


def append(ledger: Ledger, number: int) -> float:
    """Append an entry; the CPU milliseconds that it took."""
    read_entry.cache_clear()
    before = time.process_time()
    ledger.append(lambda state: entry_of(state, number))
    return 1000 * (time.process_time() - before)


def entry_of(state: State, number: int) -> Entry:
    """The entry of a number: each release is reserved, then committed."""
    date = day(number)
    if state.running:
        return commit(next(iter(state.running)), b"", date)(state)
    return reserve("s", f"evenings-{number:06}", CHARGE, date)(state)


def day(number: int) -> str:
    """The day of an entry, in the past."""
    return (datetime.date(2020, 1, 1) + datetime.timedelta(days=number // 200)).isoformat()


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [10**3, 10**4, 10**5])
