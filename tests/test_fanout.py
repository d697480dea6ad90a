"""Fan-out: the same laws wherever they are solved, and nothing confidential on its way there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from release.designing import Problem
from release.errors import DesignError, ReleaseError, SpecError
from release.fanout import FanOut, InTurn, Refused, batch_of, dask, processes, threads
from release.pipeline import Options, answer, design, find_differences, load
from release.reading import SpecFile, read_spec
from tests.small import Row, Small, query

T = TypeVar("T")
R = TypeVar("R")

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
QUERIES = [
    query("count", name="worst", differences="structural", loss="squared"),
    query("count", name="same_again", differences="structural", loss="squared"),
    query("count", name="seen"),
    query("mode", name="seen_mode", by=["day"]),
    query("level", name="worst_level", differences="structural"),
]


def spec_of(folder: Path, **engine: str) -> SpecFile:
    plain = Small(ROWS, QUERIES).plain()
    Small(ROWS, QUERIES).write(folder)
    if engine:
        plain["engine"] = engine
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    return read_spec(folder / "spec.yaml")


def designs(spec_file: SpecFile, out: FanOut | None) -> list[Any]:
    with load(spec_file) as tables:
        differences = find_differences(answer(tables, spec_file), spec_file)
    return list(design(differences, spec_file, replace(Options(), fan_out=out)))


def cluster_of(workers: int) -> Any:
    """Workers of this machine; its page of figures takes any free port."""
    from distributed import LocalCluster

    return LocalCluster(  # type: ignore[no-untyped-call]  # Dask's
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(2) as made:
        yield made


def weights(found: Sequence[Any]) -> list[Any]:
    return [
        one.law.weights.tolist() if hasattr(one, "law") else one.channel.rows.tolist()
        for one in found
    ]


def test_laws_are_the_same_wherever_they_are_solved(tmp_path: Path, cluster: Any) -> None:
    spec_file = spec_of(tmp_path)
    expected = weights(designs(spec_file, None))
    ways: list[AbstractContextManager[FanOut]] = [
        threads(2),
        processes(2),
        dask(cluster.scheduler_address),
    ]
    for way in ways:
        with way as out:
            assert weights(designs(spec_file, out)) == expected


@dataclass
class Watched:
    """A cluster elsewhere that tells what came to it."""

    leaves: bool = True
    came: list[Problem] = field(default_factory=list)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """Remember the items, and do them here."""
        self.came += [item for item in items if isinstance(item, Problem)]
        return InTurn().map(function, items)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [({}, {False}), ({"backend": "duckdb"}, {False}), ({"cluster": "inside"}, {True, False})],
)
def test_seen_differences_leave_only_where_the_cluster_is_inside(
    engine: dict[str, str], expected: set[bool], tmp_path: Path
) -> None:
    spec_file, out = spec_of(tmp_path, **engine), Watched()
    found = designs(spec_file, out)
    assert {problem.seen for problem in out.came} == expected
    assert weights(found) == weights(designs(spec_file, None))
    # Equal problems are handed out once.
    assert len({repr(problem.key) for problem in out.came}) == len(out.came)
    here = Watched(leaves=False)
    designs(spec_file, here)
    assert {problem.seen for problem in here.came} == {True, False}


def fails(number: int) -> int:
    if number == 2:
        raise DesignError("two has no law")
    if number == 3:
        raise ValueError("quagzil-17")
    return number * number


def test_a_failure_in_a_batch_is_a_result_without_values(cluster: Any) -> None:
    expected = [0, 1, Refused("DesignError", "two has no law"),
                Refused("ValueError", "internal error (ValueError)"), 16]  # fmt: skip
    assert batch_of(fails, range(5)) == expected
    with dask(cluster.scheduler_address) as out:
        assert list(out.map(fails, range(5))) == expected
    with processes(2) as out:
        assert list(out.map(fails, range(5))) == expected
    assert isinstance(expected[2], Refused)
    assert isinstance(expected[2].error(), DesignError)
    assert isinstance(Refused("SpecError", "x").error(), SpecError)


def dies(pid: int, number: int) -> int:
    if number == 7 and os.getpid() != pid:
        os._exit(9)
    return number


def test_a_cluster_that_loses_its_workers_is_one_line() -> None:
    with (
        cluster_of(1) as lost,
        dask(lost.scheduler_address) as out,
        pytest.raises(ReleaseError, match="the cluster lost a batch"),
    ):
        list(out.map(partial(dies, os.getpid()), range(20)))


def test_a_scheduler_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.fanout.CONNECT_SECONDS", 1)
    with pytest.raises(SpecError, match="--scheduler: nobody answers"), dask("tcp://127.0.0.1:9"):
        pass
