"""A process with the package imported, of which each command of a page is a fork.

    python -m tests.docs.warm SOCKET

A page shows some thirty commands, and each would spend most of its time on imports. The command
``dp-release`` that :func:`write_command` writes hands its arguments, environment and streams to the
process that listens at the socket; the fork runs ``release`` as ``python -m release`` does. A
signal that ends a command is passed on to its fork.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import release

STREAMS = (0, 1, 2)
LIBRARIES = (
    *("duckdb", "jinja2", "matplotlib.backends.backend_svg", "matplotlib.figure", "pandas"),
    *("pulp", "pyarrow.dataset", "pyarrow.parquet", "rich.live", "sqlglot"),
)
"""What commands import on use."""

CLIENT = """
import json, os, signal, socket, sys
told = json.dumps({{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}})
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(told.encode()).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(told.encode())
    pid = int.from_bytes(server.recv(8), "big")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    status = server.recv(1)
sys.exit(status[0] if status else "the command's process was killed")
"""


def write_command(folder: Path, address: Path) -> None:
    """Write ``dp-release`` into a new folder, as a client of the process at an address."""
    folder.mkdir()
    client = folder / "client.py"
    client.write_text(CLIENT.format(address=str(address)), "utf-8")
    path = folder / "dp-release"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{client}" "$@"\n', "utf-8")
    path.chmod(0o755)


@contextmanager
def listening(folder: Path) -> Iterator[Path]:
    """A process that listens until the block ends; the address of its socket."""
    address = folder / "warm"
    with subprocess.Popen([sys.executable, "-m", "tests.docs.warm", str(address)]) as process:
        try:
            while not address.exists() and process.poll() is None:
                time.sleep(0.05)
            assert process.poll() is None, "it did not start"
            yield address
        finally:
            process.terminate()


def asked(connection: socket.socket) -> list[str]:
    """Become the process of a command: its streams, folder and environment; its arguments."""
    head, streams, _, _ = socket.recv_fds(connection, 8, len(STREAMS))
    size = int.from_bytes(head, "big")
    text = b""
    while len(text) < size:
        text += connection.recv(size - len(text))
    told = json.loads(text)
    for stream, own in zip(streams, STREAMS, strict=True):
        os.dup2(stream, own)
        os.close(stream)
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environment"])
    return list(told["words"])


def serve(server: socket.socket) -> list[str]:
    """Fork for each command; returns in the forks alone, with the command's arguments."""
    # The system forgets each first fork as it ends.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = server.accept()
        # The first fork waits for the second and answers with its status.
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        server.close()
        words = asked(connection)
        if child := os.fork():
            connection.sendall(child.to_bytes(8, "big"))
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            connection.sendall(bytes([code]) if code >= 0 else b"")
            os._exit(0)
        connection.close()
        return words


def main() -> None:
    """Import, listen, and in a fork be the command."""
    own = [module.name for module in pkgutil.walk_packages(release.__path__, "release.")]
    for name in (*own, *LIBRARIES):
        if name != "release.__main__":
            importlib.import_module(name)
    address = Path(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as server:
        # Renamed once it listens: whoever sees the address can connect.
        server.bind(f"{address}.part")
        server.listen()
        Path(f"{address}.part").rename(address)
        words = serve(server)
    sys.argv = ["dp-release", *words]
    runpy.run_module("release", run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
