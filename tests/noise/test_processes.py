"""Fan-out: the same laws wherever they are solved, and nothing confidential on its way there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from release.cli.main import main
from release.cli.options import fan_out
from release.errors import DesignError, ReleaseError, SpecError
from release.exact.channel import Channel
from release.job import Job, Options, auditor_bundle, walk
from release.noise.processes import FanOut, InTurn, Local, Refused, batch_of, processes, threads
from release.noise.stage import Problem
from release.noise.unseen import Unseen
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.street import between, run_release
from tests.small import MARKED, MARKS, Row, Small, check_unmarked, query

T = TypeVar("T")
R = TypeVar("R")

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
QUERIES = [
    query("count", name="worst", sensitivity="global", loss="squared"),
    query("count", name="same_again", sensitivity="global", loss="squared"),
    query("count", name="seen"),
    query("mode", name="seen_mode", by=["day"]),
    query("binned", name="worst_level", sensitivity="global"),
]


def spec_of(folder: Path) -> SpecFile:
    return read_spec(Small(ROWS, QUERIES).write(folder))


def designs(spec_file: SpecFile, out: FanOut | None) -> list[Any]:
    with Job(Options(fan_out=out)) as job:
        job.take(Unseen.of(spec_file))
        walk(between("share", "design"), job)
        walk(between("load", "fit"), job)
        return [run.design for run in job.runs]


def weights(found: Sequence[Any]) -> list[Any]:
    return [Channel.of_mechanism(design.mechanism).rows.tolist() for design in found]


def test_laws_are_the_same_wherever_they_are_solved(tmp_path: Path) -> None:
    spec_file = spec_of(tmp_path)
    expected = weights(designs(spec_file, None))
    ways: list[AbstractContextManager[FanOut]] = [threads(2), processes(2)]
    for way in ways:
        with way as out:
            assert weights(designs(spec_file, out)) == expected


@dataclass
class Watched:
    """Work in turn that tells what came to it."""

    came: list[Problem] = field(default_factory=list)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """Remember the items, and do them here."""
        self.came += [item for item in items if isinstance(item, Problem)]
        return InTurn().map(function, items)


def test_equal_problems_are_handed_out_once(tmp_path: Path) -> None:
    spec_file, out = spec_of(tmp_path), Watched()
    found = designs(spec_file, out)
    assert weights(found) == weights(designs(spec_file, None))
    assert {problem.is_empirical for problem in out.came} == {True, False}
    assert len({repr(problem.key) for problem in out.came}) == len(out.came) < len(found)


def fails(number: int) -> int:
    if number == 2:
        raise DesignError("two has no law")
    if number == 3:
        raise ValueError("quagzil-17")
    return number * number


def test_a_failure_in_a_batch_is_a_result_without_values() -> None:
    expected = [0, 1, Refused("DesignError", "two has no law"),
                Refused("ValueError", "internal error (ValueError)"), 16]  # fmt: skip
    assert batch_of(fails, range(5)) == expected
    with processes(2) as out:
        assert list(out.map(fails, range(5))) == expected
    assert isinstance(expected[2], Refused)
    assert isinstance(expected[2].error(), DesignError)
    assert isinstance(Refused("SpecError", "x").error(), SpecError)


def dies(pid: int, number: int) -> int:
    if number == 7 and os.getpid() != pid:
        os._exit(9)
    return number


def test_a_process_that_is_killed_is_one_line() -> None:
    with processes(2) as out, pytest.raises(ReleaseError, match="--jobs: a process was killed"):
        list(out.map(partial(dies, os.getpid()), range(20)))


def test_the_commands_work_in_processes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release has the same mechanisms with ``--jobs`` as without, and verifies."""
    # With a cache, the second run would read what the first one solved.
    monkeypatch.setenv("DP_RELEASE_CACHE", "")
    spec, out = str(Small(MARKED, QUERIES).write(tmp_path)), str(tmp_path / "out")
    alone = run_release(Path(spec), tmp_path / "alone").public
    for command in (["run", spec, "--out", out], ["verify", out, "--require", "none"]):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--jobs", "2"])
        assert stopped.value.code == 0
    public = tmp_path / "out" / "public" / "small"
    assert mechanisms(public) == mechanisms(alone)
    check_unmarked(public)
    shown = "".join(capfd.readouterr())
    assert "small  VERIFIED\n" in shown
    for mark in MARKS:
        assert mark.decode() not in shown
    with fan_out(2) as several, fan_out(1) as one:
        assert (type(several), one) == (Local, None)


def mechanisms(public: Path) -> dict[str, Any]:
    """The published and the confidential laws of a release."""
    auditor = auditor_bundle(public)
    assert auditor is not None
    files = [*public.glob("mechanisms/*.json"), *auditor.glob("*.json")]
    # Equal mechanisms share one file.
    assert len(files) == len(QUERIES) - 1
    laws = {path.name: json.loads(path.read_bytes()) for path in files}
    # An opened law stands beside the key of its commitment.
    return {name: law.get("law", law) for name, law in laws.items()}
