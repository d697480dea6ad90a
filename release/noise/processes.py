"""Independent work in batches: in turn, or in threads or processes of this machine.

A worker receives a function of this package and plain data; results come back by value, in order.
An error comes back as a result too: a traceback would carry confidential values.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Protocol, TypeVar

from release.errors import DesignError, ReleaseError, SpecError

T = TypeVar("T")
R = TypeVar("R")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in runs of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


BATCH = 100
"""Items sent to a process at once."""


@dataclass(frozen=True)
class Refused:
    """A refusal as a result: the name of our error, or of a foreign one, and the line."""

    kind: str
    line: str

    def error(self) -> ReleaseError:
        """The refusal as an error of ours."""
        if self.kind == "SpecError":
            return SpecError("", self.line)
        return DesignError(self.line) if self.kind == "DesignError" else ReleaseError(self.line)


class FanOut(Protocol):
    """A way to work on many items on this machine."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """``function`` of each item, in order; batches are worked on at once."""


def batch_of(function: Callable[[T], R], items: Sequence[T]) -> list[R | Refused]:
    """A batch in turn, each refusal as a result."""
    results: list[R | Refused] = []
    for item in items:
        try:
            results.append(function(item))
        except ReleaseError as error:
            results.append(Refused(type(error).__name__, str(error)))
        except Exception as error:
            # The message of a foreign error may hold a confidential value; its type holds none.
            kind = type(error).__name__
            results.append(Refused(kind, f"internal error ({kind})"))
    return results


@dataclass(frozen=True)
class InTurn:
    """One after another, in this process."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`FanOut` has it."""
        for item in items:
            yield from batch_of(function, [item])


@dataclass(frozen=True)
class Local:
    """In threads or processes of this machine."""

    executor: Executor
    workers: int

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`FanOut` has it."""
        # Some batches for each worker, so that all end at about the same time.
        size = max(1, min(BATCH, len(items) // (4 * self.workers)))
        batches = [self.executor.submit(batch_of, function, part) for part in batched(items, size)]
        for batch in batches:
            try:
                yield from batch.result()
            except BrokenExecutor:
                raise ReleaseError("--jobs: a process was killed; run again") from None


@contextmanager
def threads(workers: int) -> Iterator[FanOut]:
    """A pool of threads: for work in solvers, which release Python's lock."""
    with ThreadPoolExecutor(workers) as executor:
        yield Local(executor, workers)


@contextmanager
def processes(workers: int) -> Iterator[FanOut]:
    """A pool of processes, each started anew: an engine's threads do not survive a fork."""
    executor = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_let_the_parent_be_interrupted
    )
    try:
        yield Local(executor, workers)
    except BaseException:
        # After an interrupt or a refusal nobody reads the other results: do not wait for them.
        running = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        raise
    executor.shutdown()


def _let_the_parent_be_interrupted() -> None:
    # Ctrl-C reaches the whole process group; the parent alone answers it, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
