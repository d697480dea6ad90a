"""Independent work in batches: in turn, or in threads or processes of this machine.

What is handed out is a function of this package and plain data; results come back by value, in
order. An error comes back as a result too: a traceback would carry values.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import Protocol, TypeVar

from release.errors import DesignError, ReleaseError, SpecError

T = TypeVar("T")
R = TypeVar("R")


def batched(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """The items, so many at once."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


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
    """A way to do many things on this machine."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """``function`` of each item, in order; batches are worked on at once."""
        ...


def batch_of(function: Callable[[T], R], items: Sequence[T]) -> list[R | Refused]:
    """A batch in turn, each refusal as a result."""
    found: list[R | Refused] = []
    for item in items:
        try:
            found.append(function(item))
        except ReleaseError as error:
            found.append(Refused(type(error).__name__, str(error)))
        except Exception as error:
            kind = type(error).__name__
            found.append(Refused(kind, f"internal error ({kind})"))
    return found


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
        """As :class:`FanOut` has it; some batches for each worker, so that all end together."""
        size = max(1, min(BATCH, len(items) // (4 * self.workers)))
        batches = [self.executor.submit(batch_of, function, part) for part in batched(items, size)]
        for batch in batches:
            try:
                yield from batch.result()
            except BrokenExecutor:
                raise ReleaseError("--jobs: a process was killed; run again") from None


@contextmanager
def threads(workers: int) -> Iterator[FanOut]:
    """So many threads: for work in solvers, which let go of Python's lock."""
    with ThreadPoolExecutor(workers) as executor:
        yield Local(executor, workers)


@contextmanager
def processes(workers: int) -> Iterator[FanOut]:
    """So many processes; each starts anew, for an engine's threads do not survive a fork."""
    executor = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_let_the_parent_be_interrupted
    )
    try:
        yield Local(executor, workers)
    except BaseException:
        # Whoever is interrupted, or refused, does not wait for what nobody will look at.
        running = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        raise
    executor.shutdown()


def _let_the_parent_be_interrupted() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
