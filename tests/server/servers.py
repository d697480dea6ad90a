"""Prefect servers on loopback, each a process with a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from release.operate.findings import Finding
from release.operate.operations import Place
from release.operate.prefect_drift import disagreements
from tests.server.patience import patiently

BIN = Path(sys.executable).parent


@dataclass
class Server:
    """A Prefect server with a home of its own."""

    api: str
    home: Path
    environment: dict[str, str]

    def post(self, path: str, asked: dict[str, Any]) -> Any:
        """Ask it."""
        request = urllib.request.Request(
            f"{self.api}/{path}", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        return self._answer(request)

    def delete(self, path: str) -> None:
        """Make it forget something."""
        self._answer(urllib.request.Request(f"{self.api}/{path}", method="DELETE"))

    def _answer(self, request: urllib.request.Request) -> Any:
        def ask() -> bytes:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return bytes(answer.read())

        text = patiently(ask)
        return json.loads(text) if text else None

    def disagreements(self, place: Place) -> list[Finding]:
        """What it believes that is not so."""
        return patiently(lambda: list(disagreements(place, self.api)))

    def runs(self, flow: str = "dp-release-scheduled") -> list[dict[str, Any]]:
        """Its runs of a flow, oldest first."""
        found = self.post(
            "flow_runs/filter",
            {"flows": {"name": {"any_": [flow]}}, "sort": "EXPECTED_START_TIME_ASC"},
        )
        return list(found)

    def start(self, *command: str, **more: str) -> subprocess.Popen[bytes]:
        """A process of this server's."""
        name = Path(command[0]).name
        with (self.home / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={**self.environment, **more},
                start_new_session=True,
            )

    def run(self, *command: str, **more: str) -> str:
        """A command to its end; what it printed."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
            env={**self.environment, **more},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def wait_for(what: Callable[[], object], seconds: float, told: str) -> Any:
    """Until it is so; a server that is too busy to answer is asked again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(TimeoutError):
            found = what()
            if found:
                return found
        # The server works for each question, on the cores that it shares with what is waited for.
        time.sleep(1)
    pytest.fail(f"{told}: not in {seconds} s")


@contextmanager
def stopping(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, and all that it has started."""
    try:
        yield process
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, number)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    continue
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def server_in(home: Path, prepared: Path) -> Server:
    """A server that is not started yet, on a free port; its home is a copy of a prepared one."""
    shutil.copytree(prepared, home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    api = f"http://127.0.0.1:{port}/api"
    environment = kept | {
        "HOME": str(home),
        "PREFECT_HOME": str(home / ".prefect"),
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_API_SERVICES_LATE_RUNS_LOOP_SECONDS": "2",
        "PREFECT_API_SERVICES_SCHEDULER_LOOP_SECONDS": "10",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_RUNNER_POLL_FREQUENCY": "2",
    }
    return Server(api, home, environment)


@contextmanager
def running(server: Server, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The server, answering."""
    words = ["server", "start", "--host", "127.0.0.1", "--port", server.api.split(":")[2][:-4]]

    def healthy() -> bool:
        try:
            with urllib.request.urlopen(f"{server.api}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    with stopping(server.start("prefect", *words, PREFECT_API_URL="", **more)) as process:
        wait_for(healthy, 120, "the server")
        yield process
