"""The street as Prefect keeps it: edges between tasks, artifacts, retries, and the run's name."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROJECT, log_lines
from tests.small import MARKED, MARKS, Small, query

STREET = (
    "read", "open", "accept", "design", "price", "find", "rehearse", "load", "answer", "move",
    "fit", "prepare", "charge", "keep", "draw", "bundle", "verify", "commit", "publish", "confirm",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, prefect_home: Path) -> Path:
    shutil.copytree(prefect_home, tmp_path / "home")
    return tmp_path / "home"


def run(arguments: list[str], home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, check=False, cwd=PROJECT,
        env={**settings, "HOME": str(home), **more},
    )  # fmt: skip


def kept(home: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / ".prefect" / "prefect.db")) as database:
        return database.execute(statement).fetchall()


def test_a_run_is_a_chain_of_tasks_with_public_artifacts_and_one_name(
    tmp_path: Path, home: Path
) -> None:
    spec = Small(MARKED, [query("count", sensitivity="global"), query("mode")]).write(tmp_path)
    log = tmp_path / "log.jsonl"
    arguments = ["-m", "flows.run", str(spec), "--out", str(tmp_path / "out")]
    done = run(arguments, home, DP_RELEASE_LOG=str(log))
    assert done.returncode == 0, done.stderr

    # Task runs are recorded one after the other, so the order of their starts is the street.
    tasks = kept(home, "SELECT id, name, task_inputs FROM task_run ORDER BY start_time")
    # Prefect adds a suffix to the name of a task.
    assert [name.rsplit("-", 1)[0] for _, name, _ in tasks] == list(STREET)
    previous: list[str] = []
    for identifier, name, inputs in tasks:
        waited = [own["id"] for own in json.loads(inputs).get("wait_for", [])]
        assert [text.replace("-", "") for text in waited] == previous, name
        previous = [str(identifier).replace("-", "")]

    artifacts = {key for (key,) in kept(home, "SELECT key FROM artifact")}
    of_stages = {"read", "open", "charge", "prepare", "publish", "confirm"}
    assert artifacts == of_stages | {"queries-small", "verdict-small", "report-small"}
    for (data,) in kept(home, "SELECT data FROM artifact"):
        assert not any(mark.decode() in str(data) for mark in MARKS)

    ((own,),) = [kept(home, "SELECT id FROM flow_run")]
    names = {line["run"] for line in log_lines(log)}
    assert names == {str(own[0]).replace("-", "")}


RETRYING = """
import sys
import flows.run
from flows.environment import quiet_flow, set_environment
from release.errors import DataError, StorageError
from release.job import Access, Job, Options, Stage

set_environment()
flows.run.RETRY_SECONDS = 0
calls = {"deliver": 0, "load": 0, "draw": 0}

def fails_twice(job):
    calls["deliver"] += 1
    if calls["deliver"] < 3:
        raise StorageError("the store does not answer")

def is_refused(job):
    calls["load"] += 1
    raise DataError("tables.rows: no")

def breaks(job):
    calls["draw"] += 1
    raise StorageError("the disk is full")

def stage(name, does):
    return Stage(name, name, Access.RELEASE, does)

@quiet_flow(name="stages")
def stages():
    tasks = flows.run.Tasks()
    job = Job(Options())
    tasks(stage("deliver", fails_twice), job)
    for name, function in (("load", is_refused), ("draw", breaks)):
        try:
            tasks(stage(name, function), job)
        except (DataError, StorageError):
            continue
        raise AssertionError(name)

stages()
print(calls)
"""


def test_what_is_harmless_is_tried_again_and_the_draw_never(home: Path) -> None:
    done = run(["-c", RETRYING], home)
    assert done.returncode == 0, done.stderr
    # A refusal is not retried either: it will not be over in some seconds.
    assert done.stdout.splitlines()[-1] == str({"deliver": 3, "load": 1, "draw": 1})


def test_a_server_that_is_down_is_one_line(tmp_path: Path, home: Path) -> None:
    spec = Small(MARKED, [query("mode")]).write(tmp_path)
    arguments = ["-m", "flows.run", str(spec), "--out", str(tmp_path / "out")]
    done = run(arguments, home, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: Prefect's server does not start or does not answer; see PREFECT_API_URL, "
        "or run it without Prefect: dp-release run"
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
