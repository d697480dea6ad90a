"""Processes that walk cases; one that hangs or dies costs its case alone."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import cast

from tests.street.found import Failure
from tests.street.summary import Outcome, try_case

MOST_SECONDS = 240.0
"""After so long a case has no end; the bound on the processor is far below."""


def work(pipe: Connection) -> None:
    """Try the cases whose seeds come through the pipe, until None comes."""
    while (seed := pipe.recv()) is not None:
        try:
            outcome, _ = try_case(seed)
        except Exception as error:
            line = f"{type(error).__name__}: {error}"
            failure = Failure(f"the street test itself: {type(error).__name__}", line)
            outcome = Outcome(seed, "failed", failures=(failure,))
        pipe.send(outcome)


class Worker:
    """A process that tries one case after the other; it may hang or die."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.seed: int | None = None
        self.since = 0.0

    def begin(self, seed: int) -> None:
        """Hand a case over."""
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def outcome(self) -> Outcome | None:
        """What the case came to, if it has ended; it also ends with the process, or too late."""
        seed = cast(int, self.seed)
        if self.pipe.poll():
            try:
                return cast(Outcome, self.pipe.recv())
            except (EOFError, OSError):
                self.process.join()
                failure = Failure("the process died", f"status {self.process.exitcode}")
                return Outcome(seed, "failed", failures=(failure,))
        if time.monotonic() - self.since > MOST_SECONDS:
            self.process.kill()
            failure = Failure("no end", f"none after {MOST_SECONDS:.0f} s")
            return Outcome(seed, "failed", failures=(failure,))
        return None

    def end(self) -> None:
        """Let the process go."""
        if self.process.is_alive():
            self.pipe.send(None)
        self.process.join()


def all_outcomes(seeds: list[int], workers: int) -> Iterator[Outcome]:
    """The outcomes of all cases, as they come."""
    waiting = list(reversed(seeds))
    crew = [Worker() for _ in range(min(workers, len(seeds)))]
    for worker in crew:
        worker.begin(waiting.pop())
    while crew:
        wait([worker.pipe for worker in crew], timeout=5)
        for number, worker in enumerate(crew):
            outcome = worker.outcome()
            if outcome is None:
                continue
            yield outcome
            if outcome.state == "failed":
                worker.process.kill()
                crew[number] = Worker()
            if waiting:
                crew[number].begin(waiting.pop())
            else:
                crew.pop(number).end()
            break
