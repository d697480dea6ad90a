"""A release on a real cluster: a master and two workers as processes of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from release.queries.read import read_spec
from release.tables.duckdb import Engine
from tests.answers import answer, load
from tests.cluster.clusters import Cluster, cluster, marked_files
from tests.cluster.test_spark import everything
from tests.conftest import PROJECT
from tests.small import Row, Small, query, truths

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    # With encryption PySpark sends what it distributes by a socket that it leaves to be collected.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket"),
]

MARKS = re.compile(rb"quagzil")
MEMORY = "600MiB"


def declared(spec: Path) -> Path:
    """The spec, with rows allowed on the cluster."""
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["engine"] = {"backend": "spark", "cluster": "inside"}
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    return spec


def run(spec: Path, out: Path, address: str, temporary: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(temporary), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "release", "run", str(spec), "--out", str(out)]
    return subprocess.Popen(
        [*command, "--spark", address, "--memory-limit", MEMORY],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=PROJECT, env=environment,
    )  # fmt: skip


def many_rows(folder: Path) -> Path:
    """A table in so many row groups that a job over it takes some seconds."""
    rows: list[Row] = [
        {"unit": f"quagzil-{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9}
        for i in range(400)
    ]
    spec = declared(Small(rows, [query("count", sensitivity="global")]).write(folder))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, spec.with_name("rows.parquet"), row_group_size=2)
    return spec


@pytest.mark.nightly
def test_two_workers_give_the_integers_of_one_machine_in_silence(tmp_path: Path) -> None:
    spec = declared(everything(tmp_path / "spec"))
    spec_file = read_spec(spec)
    with load(spec_file, Engine()) as tables:
        expected = truths(answer(tables, spec_file), spec_file)
    with cluster(tmp_path / "cluster") as workers:
        (tmp_path / "temporary").mkdir()
        engine = Engine(MEMORY, spark=workers.address)
        with load(spec_file, engine) as tables:
            assert truths(answer(tables, spec_file), spec_file) == expected
        process = run(spec, tmp_path / "out", workers.address, tmp_path / "temporary")
        told = "".join(process.communicate(timeout=300))
        assert process.returncode == 0, told
        assert "quagzil" not in told
        logs = list((tmp_path / "cluster").glob("worker*/app-*/*/std*"))
        assert len(logs) >= 4
        assert [path for path in logs if b"INFO" in path.read_bytes()] == []
        assert marked_files(tmp_path / "cluster", MARKS) == []
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.nightly
def test_a_worker_killed_in_mid_shuffle_costs_time_alone(tmp_path: Path) -> None:
    spec = many_rows(tmp_path)
    spec_file = read_spec(spec)
    with load(spec_file, Engine()) as tables:
        (there,) = answer(tables, spec_file)
    with cluster(tmp_path / "cluster") as workers:
        (tmp_path / "temporary").mkdir()
        process = run(spec, tmp_path / "out", workers.address, tmp_path / "temporary")
        victim = _first_at_the_shuffle(workers, process)
        workers.kill(victim)
        told = "".join(process.communicate(timeout=300))
        assert process.returncode == 0, told
        # Files of the killed one are still on its disk, and nobody can read a name in them.
        assert _shuffled(workers, victim)
        assert marked_files(tmp_path / "cluster", MARKS) == []
        with load(spec_file, Engine(MEMORY, spark=workers.address)) as tables:
            (here,) = answer(tables, spec_file)
    assert here.codes.tolist() == there.codes.tolist()


def _shuffled(workers: Cluster, name: str) -> list[Path]:
    """The files with shuffled rows on a worker's disk."""
    files = (workers.folder / "disks" / name).rglob("shuffle_*.data")
    return [path for path in files if path.stat().st_size]


def _first_at_the_shuffle(workers: Cluster, process: subprocess.Popen[str]) -> str:
    """The first worker that has written rows for others to its disk."""
    end = time.monotonic() + 200
    while time.monotonic() < end:
        for name in ("worker0", "worker1"):
            if _shuffled(workers, name):
                return name
        assert process.poll() is None, "it ended before its shuffle"
        time.sleep(0.01)
    raise AssertionError("nothing was shuffled")


def test_a_cluster_without_room_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.queries.engines.spark._WAIT_SECONDS", 5)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    spec_file = read_spec(many_rows(tmp_path))
    with (
        cluster(tmp_path / "cluster", workers=1, memory=700) as workers,
        pytest.raises(Exception, match="has had a core and 2048 MiB free for 5 s"),
    ):
        load(spec_file, Engine("2GiB", spark=workers.address))
