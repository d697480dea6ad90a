"""Independent work in batches: in turn, in threads or processes of this machine, or on Dask.

What is handed out is a function of this package and plain data; results come back by value, in
order. An error comes back as a result too: a traceback would carry values into a cluster's logs.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from release.errors import DesignError, ReleaseError, SpecError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")


def batched(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """The items, so many at once."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


BATCH = 100
"""Items sent at once: a Dask task costs some milliseconds, a small design less."""

CONNECT_SECONDS = 20
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:\d+", re.ASCII)


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
    """A way to do many things. ``leaves`` is whether what is handed out leaves this machine."""

    @property
    def leaves(self) -> bool:
        """Whether items go to other machines."""
        ...

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

    leaves: bool = False

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`FanOut` has it."""
        for item in items:
            yield from batch_of(function, [item])


@dataclass(frozen=True)
class Local:
    """In threads or processes of this machine."""

    executor: Executor
    workers: int
    leaves: bool = False

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`FanOut` has it; some batches for each worker, so that all end together."""
        size = max(1, min(BATCH, len(items) // (4 * self.workers)))
        batches = [self.executor.submit(batch_of, function, part) for part in batched(items, size)]
        for batch in batches:
            try:
                yield from batch.result()
            except BrokenExecutor:
                raise ReleaseError("--jobs: a process was killed; run again") from None


@dataclass(frozen=True)
class OnDask:
    """On the workers of a Dask cluster, which need this package installed."""

    client: Client
    leaves: bool = True

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`FanOut` has it."""
        workers = max(1, len(self.client.scheduler_info()["workers"]))
        size = max(1, min(BATCH, len(items) // (4 * workers)))
        futures = [
            self.client.submit(batch_of, function, list(part), pure=False, retries=2)
            for part in batched(items, size)
        ]
        try:
            for future in futures:
                yield from self._result(future)
        finally:
            self.client.cancel(futures)  # type: ignore[no-untyped-call]  # Dask's

    def _result(self, future: Any) -> list[Any]:
        try:
            found: list[Any] = future.result()
        except Exception as error:
            raise ReleaseError(f"the cluster lost a batch ({type(error).__name__})") from None
        return found


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


@contextmanager
def dask(scheduler: str) -> Iterator[FanOut]:
    """The Dask cluster of a scheduler, such as ``tcp://10.0.0.5:8786``.

    Raises:
        SpecError: Dask is not installed, or nobody answers there.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise SpecError("--scheduler", "needs Dask; pip install 'dp-release[dask]'") from error
    if not _ADDRESS.fullmatch(scheduler):
        raise SpecError("--scheduler", f"{scheduler!r} is none; write tcp://host:8786")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask's
    except (OSError, ValueError) as error:
        raise SpecError("--scheduler", f"nobody answers at {scheduler!r}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise SpecError("--scheduler", f"the cluster {scheduler!r} has no workers") from error
        yield OnDask(client)
