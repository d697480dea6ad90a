"""A PostgreSQL server of one's own, from Debian's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
IS_INSTALLED = bool(_FOUND)
# The server refuses to run as root.
_OTHER: dict[str, Any] = {"user": "postgres"} if os.getuid() == 0 else {}


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int

    def path(self, database: str = "postgres") -> str:
        """What a spec calls a database of it."""
        return f"postgresql://127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:
        """Enter as its owner."""
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.path(database).replace("//", "//postgres@"), autocommit=True)

    def run(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each in a transaction of its own."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started() -> Iterator[Server]:
    """A new server without databases of others, whose data are removed in the end."""
    # Not a folder of pytest's, which no other user may enter.
    folder = Path(tempfile.mkdtemp())
    if _OTHER:
        shutil.chown(folder, _OTHER["user"])
    given: dict[str, Any] = {
        **_OTHER,
        "cwd": folder,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    made = ["-D", folder / "data", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N"]
    subprocess.run(
        [str(_FOUND[-1] / "initdb"), *map(str, made), "--auth=trust"], check=True, **given
    )
    access = folder / "data" / "pg_hba.conf"
    access.write_text(
        "host all asked all scram-sha-256\nhost all all all trust\n" + access.read_text("utf-8")
    )
    port = _free_port()
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    place = ["-D", str(folder / "data"), "-k", str(folder), "-p", str(port)]
    process = subprocess.Popen(
        [str(_FOUND[-1] / "postgres"), *place, *settings],
        **given,
    )
    for _ in range(300):
        try:
            Server(port).run("SELECT 1")
            break
        except Exception:
            time.sleep(0.1)
    try:
        yield Server(port)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
