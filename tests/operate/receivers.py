"""Who is told: a real webhook and a real mailbox on loopback."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Webhook:
    """The address of a webhook, what came to it, and the status with which it answers."""

    address: str = ""
    came: list[dict[str, str]] = field(default_factory=list)
    status: int = 200

    @property
    def titles(self) -> list[str]:
        """The titles of what was taken, oldest first."""
        return [one["title"].removeprefix("dp-release: ") for one in self.came]


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook that takes what is posted, or refuses it."""
    found = Webhook()

    class Takes(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Remember it."""
            text = self.rfile.read(int(self.headers["Content-Length"]))
            if found.status == 200:
                found.came.append(json.loads(text))
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, *given: object) -> None:
            """Silence."""

    with _serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Takes)) as port:
        found.address = f"json://127.0.0.1:{port}/ops"
        yield found


@contextmanager
def mailbox() -> Iterator[tuple[str, list[str]]]:
    """The address of a mailbox, and the messages that came to it."""
    came: list[str] = []

    class Takes(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            """As much of SMTP as a client needs."""
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                word = line.strip().upper()[:4]
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(self.rfile.readline, b".\r\n")
                    came.append(b"".join(lines).decode())
                self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 well\r\n")
                if word == b"QUIT":
                    return

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Takes)
    server.daemon_threads = True
    with _serving(server) as port:
        yield (
            f"mailto://127.0.0.1:{port}?from=dp@example.org&to=ops@example.org&mode=insecure",
            came,
        )


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
