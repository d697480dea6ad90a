"""A standalone Spark cluster of one's own: a master and workers as processes, on loopback."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.conftest import PROJECT

_CLASS = "org.apache.spark.deploy"


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Cluster:
    """The address of the master, the processes, and the folder in which all of them write."""

    folder: Path
    address: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, kind: str, *arguments: str, waits_for: str) -> None:
        """Start a process, and wait for a line of its log."""
        log = self.folder / f"{name}.log"
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "disks" / name),
            "SPARK_WORKER_DIR": str(self.folder / name),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])
            ),
        }
        command = [str(home / "bin" / "spark-class"), f"{_CLASS}.{kind}", *arguments]
        with log.open("wb") as output:
            # A session of its own, so that a kill takes its executors too.
            self.processes[name] = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )
        end = time.monotonic() + 120
        while waits_for not in log.read_text("utf-8", "replace"):
            assert self.processes[name].poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < end, f"{name} is not up"
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """Kill a process and all that it has started, as a power cut would."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: int = 1100) -> Iterator[Cluster]:
    """A master and some workers of one core and so many MiB each."""
    port = free_port()
    for name in ("master", *(f"worker{number}" for number in range(workers))):
        (folder / "disks" / name).mkdir(parents=True)
    here = Cluster(folder, f"spark://127.0.0.1:{port}")
    try:
        here.start(
            "master", "master.Master", "--host", "127.0.0.1", "--port", str(port),
            "--webui-port", str(free_port()), waits_for="I have been elected leader",
        )  # fmt: skip
        for number in range(workers):
            here.start(
                f"worker{number}", "worker.Worker", "--host", "127.0.0.1", "--cores", "1",
                "--memory", f"{memory}m", "--webui-port", str(free_port()), here.address,
                waits_for="Successfully registered",
            )  # fmt: skip
        yield here
    finally:
        for name in list(here.processes):
            here.kill(name)


def marked_files(folder: Path, marks: re.Pattern[bytes]) -> list[str]:
    """The files below a folder whose bytes hold a mark."""
    marked = []
    for path in folder.rglob("*"):
        if path.is_file() and marks.search(path.read_bytes()):
            marked.append(str(path.relative_to(folder)))
    return marked
