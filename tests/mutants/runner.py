"""Runs the tests against each mutant, in a child of a process that is set up once."""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn, TypeAlias

import pytest

from tests.mutants.changes import PROJECT, Module, Mutant
from tests.mutants.live import caches, forget_properties, import_anew, put_in_place

OUTCOMES = PROJECT / "out" / "mutants.jsonl"
LONGEST = 6.0
"""Seconds of the processor: no test that takes longer is run against mutants."""
SLOWED = 4.0
"""The trace makes a test take so many times as long, at most: one that takes longer is too long."""
LONG_ENOUGH = 40.0
"""Seconds of the processor: a mutant that tests of so long together pass survives."""
PATIENCE = 8.0
"""A test hangs that computes for so many times its usual time, and so many seconds more."""
TO_IMPORT = 25.0
"""Seconds of the processor for what stands before the first test of a child, and after the last."""
IDLE = 3.0
"""A test is given up after so many times the seconds that it may compute for, and then tried again
without the mutant: only if it ends in that time, the mutant has made it wait."""
MEMORY = 16 * 2**30
"""Address space of a child, in bytes: a mutant may build a very long list."""
ENOUGH = 20_000
"""Lines of a function to trace in a test: a long loop executes no others."""
TRACED = 20.0
"""Seconds of the processor to trace a test for: a test of so long repeats itself."""
SURVIVED = {"survived", "unreached"}
OPTIONS = ("-s", "-p", "no:cacheprovider", "-p", "no:xdist")

Result: TypeAlias = tuple[int, bool]
"""Number of a test, and whether it passed."""
Tell: TypeAlias = Callable[[Result], object]
IN_PLACE: Result = (-1, True)
"""What comes before the first result: the mutant is in place."""
ENOUGH_TESTS: Result = (-2, True)
"""What stands behind the last result: a child that says nothing has hung or crashed."""


class Outcomes:
    """The stored outcomes: one JSON object a line, of which the last of a mutant is valid."""

    def __init__(self) -> None:
        tests = [
            path
            for path in (PROJECT / "tests").rglob("*.py")
            if path.parent != Path(__file__).parent
        ]
        whole = b"".join(path.read_bytes() for path in sorted(tests))
        self._tests = hashlib.sha256(whole).hexdigest()
        lines = OUTCOMES.read_text("utf-8").splitlines() if OUTCOMES.exists() else []
        self._stored = {tuple(line["key"]): line for line in map(json.loads, lines)}

    def add(self, module: Module, mutant: Mutant, outcome: dict[str, Any]) -> None:
        """Store an outcome."""
        line = {"key": mutant.key, "module": module.digest, "tests": self._tests, **outcome}
        self._stored[mutant.key] = line
        OUTCOMES.parent.mkdir(exist_ok=True)
        with OUTCOMES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def of(self, module: Module, mutant: Mutant) -> str | None:
        """The outcome of a mutant, None if there is none or it holds no longer."""
        line = self._stored.get(mutant.key)
        if line is None or line["module"] != module.digest:
            return None
        holds = line["outcome"] not in SURVIVED or line["tests"] == self._tests
        return str(line["outcome"]) if holds else None


class Runner:
    """The pytest plugin that runs the tests once, and then against every mutant."""

    def __init__(self, chosen: list[tuple[Module, Mutant]], outcomes: Outcomes) -> None:
        self._chosen = chosen
        self._outcomes = outcomes
        self._files = {str(module.path): module.file for module, _ in chosen}
        self._changed: defaultdict[str, set[int]] = defaultdict(set)
        for module, mutant in chosen:
            self._changed[module.file].update(mutant.place.lines)
        self._items: list[pytest.Item] = []
        self._live: list[FunctionType] = []
        self._caches: list[Any] = []
        self._seconds: dict[int, float] = {}
        self._runs: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        self._kills: Counter[tuple[str, int]] = Counter()
        self._fit: dict[tuple[int, str], bool] = {}
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        self._items = session.items
        self._live = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
        self._caches = caches()
        for number in range(len(self._items)):
            self._learn(number)
        left_out = len(self._items) - len(self._seconds)
        say(
            f"{len(self._items)} tests of {_computed():.0f} s of the processor, {left_out} too long"
        )
        self._forget()
        forget_properties()
        # Or the collector of each child would touch, and so copy, all memory that it shares.
        gc.collect()
        gc.freeze()
        for number, (module, mutant) in enumerate(self._chosen, 1):
            self._outcomes.add(module, mutant, self._judge(module, mutant))
            if number % 50 == 0:
                say(f"{number} of {len(self._chosen)} mutants")
        return True

    def _run(self, number: int, following: int | None = None) -> None:
        item = self._items[number]
        # What is next decides which fixtures stay; of the session, none but its own.
        then = item.session if following is None else self._items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=then)

    def _forget(self) -> None:
        for cache in self._caches:
            cache.cache_clear()

    def _learn(self, number: int) -> None:
        """Run a test under a trace: which of the changed lines it executes."""
        lines: set[tuple[str, int]] = set()
        events: Counter[CodeType] = Counter()
        awaited: dict[CodeType, set[int]] = {}
        end = time.process_time() + TRACED

        def trace(frame: FrameType, event: str, _: object) -> Any:
            code = frame.f_code
            file = self._files.get(code.co_filename)
            if file is None:
                return None
            if code not in awaited:
                lines.add((file, code.co_firstlineno))
                own = {line for _, _, line in code.co_lines() if line is not None}
                awaited[code] = own & self._changed[file]
            if event == "line" and frame.f_lineno in awaited[code]:
                lines.add((file, frame.f_lineno))
                awaited[code].discard(frame.f_lineno)
            events[code] += 1
            if not awaited[code] or events[code] > ENOUGH or time.process_time() > end:
                frame.f_trace_lines = False
                return None
            return trace

        self._forget()
        before = _computed()
        threading.settrace(trace)
        sys.settrace(trace)
        self._run(number)
        sys.settrace(None)
        threading.settrace(None)
        if self._failed:
            pytest.exit(f"{self._items[number].nodeid} fails without a mutant", 3)
        took = _computed() - before
        if LONGEST < took <= SLOWED * LONGEST:
            before = _computed()
            self._run(number)
            took = _computed() - before
        if took <= LONGEST:
            self._seconds[number] = took
        for line in lines:
            self._runs[line].add(number)

    def _judges_of(self, module: Module, mutant: Mutant) -> set[int]:
        """The tests that execute the changed lines."""
        outside, within = mutant.place.code is None, mutant.place.lines
        numbers: set[int] = set()
        for (file, line), tests in self._runs.items():
            if file == module.file and (outside or line in within):
                numbers |= tests
        if outside:
            # What is executed on import shows in whatever uses it: in any test of the room.
            room = f"{_room_of_tests(module)}/"
            numbers |= {n for n, item in enumerate(self._items) if item.nodeid.startswith(room)}
        return numbers

    def _judge(self, module: Module, mutant: Mutant) -> dict[str, Any]:
        """Run the tests of a mutant, first those that are quick and have failed before."""
        judges = self._judges_of(module, mutant) & set(self._seconds)
        order = self._order(module, judges)
        if not order:
            return {"outcome": "unreached"}
        limits = {number: self._limit(number) for number in order}
        results: list[Result] = []
        if mutant.place.code is not None:
            work = partial(self._exchanged, module, mutant, limits)
            results = self._child(work, [TO_IMPORT, *limits.values(), TO_IMPORT])
        is_anew = not results
        if is_anew:
            limits = self._first(module, limits)
            if not limits:
                return {"outcome": "unreached"}
            order = list(limits)
            work = partial(self._imported, module, mutant, limits)
            # The first test waits for the imports of all of them.
            results = self._child(work, [TO_IMPORT, TO_IMPORT, *limits.values()])
        last = results[-1] if results else IN_PLACE
        if last == ENOUGH_TESTS:
            return {"outcome": "survived", "judges": len(results) - 2}
        by = order[max(1, min(len(results), len(order))) - 1] if last[1] else last[0]
        if last[1]:
            # It may have waited for the machine alone, and then it waits now as well.
            self._fit.pop((by, module.file if is_anew else ""), None)
        if not self._passes(by, module if is_anew else None):
            return self._judge(module, mutant)
        self._kills[module.file, by] += 1
        outcome = "hung or crashed" if last[1] else "killed"
        return {"outcome": outcome, "by": self._items[by].nodeid}

    def _limit(self, number: int) -> float:
        return PATIENCE * (1 + self._seconds[number])

    def _first(self, module: Module, limits: dict[int, float]) -> dict[int, float]:
        """Those of long enough together that do not fail for the new import of a module alone."""
        fit = [number for number in limits if self._fit.get((number, module.file), True)]
        seconds = accumulate(self._seconds[number] for number in fit)
        pairs = zip(fit, seconds, strict=True)
        return {number: limits[number] for number, total in pairs if total <= LONG_ENOUGH}

    def _passes(self, number: int, anew: Module | None) -> bool:
        """Whether a test passes in a child without a mutant: what fails there judges nothing.

        What passes only without the new import of a module judges other mutants of it.
        """
        case, limit = (number, anew.file if anew else ""), self._limit(number)
        if case in self._fit:
            return self._fit[case]
        if anew:
            work = partial(self._imported, anew, None, {number: limit})
            results = self._child(work, [TO_IMPORT, TO_IMPORT])
        else:
            results = self._child(partial(self._each, {number: limit}), [limit])
        self._fit[case] = bool(results) and results[-1] in {(number, True), ENOUGH_TESTS}
        if self._fit[case]:
            return True
        item = self._items[number]
        say(f"fails in a child without a mutant: {item.nodeid}")
        # What waits for ever may do so for threads that no child has; then its neighbors do too.
        waits = not results or results[-1] == IN_PLACE
        for other in list(self._seconds):
            if other == number or (waits and self._items[other].path == item.path):
                self._fit[other, case[1]] = False
                if not anew:
                    del self._seconds[other]
        return False

    def _order(self, module: Module, numbers: set[int]) -> list[int]:
        """A file at a time, which shares fixtures: quick ones, the module's own, what killed."""
        own_tests = f"{_room_of_tests(module)}/test_{module.path.name}"
        first: defaultdict[Path, float] = defaultdict(lambda: math.inf)
        ranks = {}
        for number in numbers:
            item = self._items[number]
            likely = 10 if item.nodeid.startswith(own_tests) else 1
            kills = 1 + self._kills[module.file, number]
            ranks[number] = (self._seconds[number] + 0.01) / likely / kills
            first[item.path] = min(first[item.path], ranks[number])
        paths = {number: self._items[number].path for number in numbers}
        return sorted(numbers, key=lambda n: (first[paths[n]], paths[n], ranks[n]))

    def _each(self, limits: dict[int, float], tell: Tell) -> bool:
        """Whether all tests pass; the process ends if one computes for more than its limit."""
        following: list[int | None] = [*list(limits)[1:], None]
        end = _computed() + LONG_ENOUGH
        for (number, limit), then in zip(limits.items(), following, strict=True):
            self._failed = False
            _compute_no_longer_than(limit)
            self._run(number, then)
            tell((number, not self._failed))
            if self._failed:
                return False
            if _computed() > end:
                return True
        return True

    def _exchanged(
        self, module: Module, mutant: Mutant, limits: dict[int, float], tell: Tell
    ) -> None:
        if put_in_place(module, mutant, self._live):
            tell(IN_PLACE)
            if self._each(limits, tell):
                tell(ENOUGH_TESTS)

    def _imported(
        self, module: Module, mutant: Mutant | None, limits: dict[int, float], tell: Tell
    ) -> None:
        _compute_no_longer_than(TO_IMPORT)
        import_anew(module, mutant)
        tell(IN_PLACE)
        temporary = self._items[0].config.option.basetemp
        names = {self._items[number].nodeid: number for number in limits}
        told = _Told(names, limits, tell)
        options = [*OPTIONS, "-x", f"--basetemp={temporary}", *names]
        if pytest.main(options, plugins=[told]) == 0:
            tell(ENOUGH_TESTS)
        elif not told.failed:
            # Nothing that the tests import has come so far.
            tell((next(iter(limits)), False))

    def _child(self, work: Callable[[Tell], object], limits: list[float]) -> list[Result]:
        """The results of ``work`` in a child, up to the first that is not there in time.

        ``limits`` are in seconds of the processor, which the child holds itself to, so that other
        programs of the machine make no test hang. What waits for ever is given up by the clock.
        """
        read, write = os.pipe()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            if (child := os.fork()) == 0:
                self._be_child(work, write, Path(temporary))
            os.close(write)
            results: list[Result] = []
            with os.fdopen(read, "rb", buffering=0) as pipe:
                for limit in limits:
                    ready, _, _ = select.select([pipe], [], [], IDLE * limit)
                    if not (line := pipe.readline() if ready else b""):
                        break
                    results.append(tuple(json.loads(line)))
            # The child leads a group of what its tests have started.
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return results

    def _be_child(self, work: Callable[[Tell], object], write: int, temporary: Path) -> NoReturn:
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            config = self._items[0].config
            config.option.basetemp = temporary / "new"
            config._tmp_path_factory._basetemp = temporary  # type: ignore[attr-defined]
            work(lambda result: os.write(write, json.dumps(result).encode() + b"\n"))
        finally:
            os._exit(0)


class _Told:
    """Tells the results of a session of its own, test by test."""

    def __init__(self, names: dict[str, int], limits: dict[int, float], tell: Tell) -> None:
        self._names, self._limits, self._tell = names, limits, tell
        self.failed = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limit what the test may compute."""
        _compute_no_longer_than(self._limits[self._names[nodeid]])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed |= report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Tell how the test ended."""
        self._tell((self._names[nodeid], not self.failed))


def _room_of_tests(module: Module) -> str:
    """The folder of the tests of a module, which lies as the module does."""
    return Path("tests", *Path(module.file).parent.parts[1:]).as_posix()


def _computed() -> float:
    """Seconds of the processor that this process and its ended children have used."""
    return sum(os.times()[:4])


def _compute_no_longer_than(seconds: float) -> None:
    """Let the system end this process after so many more seconds of the processor."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    end = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, hard))


def say(line: str) -> None:
    """Print a line for whoever waits."""
    print(line, flush=True)  # noqa: T201
