"""Whether the Prefect server answers and can notify, seen from the process that serves."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from prefect.settings import PREFECT_API_URL

from release.errors import SpecError
from release.operate.notices.notice import End, Notice
from release.operate.notices.outbox import Outbox

SECONDS, FAILURES = 20.0, 3
"""How often the server is asked, and after how many failures in turn it is down."""


def server_down() -> Notice:
    """The notice that the Prefect server of the environment does not answer."""
    return Notice(End.SERVER_DOWN, _host(), "no run begins, and nothing is charged")


@contextmanager
def watched_server(told: Outbox, seconds: float = SECONDS) -> Iterator[None]:
    """Ask the server now and then while the block runs; tell people once when it is down.

    The outbox has channels of its own: a notifier that is loaded from the server is down with it.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(told, seconds, ended), daemon=True)
    if told.channels:
        thread.start()
    try:
        yield
    finally:
        ended.set()


def _watch(outbox: Outbox, seconds: float, ended: threading.Event) -> None:
    failures = 0
    while not ended.wait(seconds):
        if _answers():
            if failures >= FAILURES:
                outbox.over({End.SERVER_DOWN}, _host())
            failures = 0
            continue
        failures += 1
        if failures == FAILURES:
            outbox.tell(server_down())


def _answers() -> bool:
    api = PREFECT_API_URL.value()
    # Without an address Prefect starts a server in this process.
    if api is None:
        return True
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=10) as answer:  # noqa: S310 - Prefect's
            return bool(answer.status == 200)
    except OSError:
        return False


def _host() -> str:
    # Without what may stand before and after it: a user, a password, a path.
    return f"Prefect at {urlsplit(PREFECT_API_URL.value() or '').hostname or 'this machine'}"


def notify_of(block: str) -> Callable[..., Any]:
    """The function that sends a text and its subject by a notification block.

    Raises:
        SpecError: the server has no such block, or it cannot notify.
    """
    from prefect.blocks.core import Block

    try:
        notifier: Any = Block.load(block)
    except ValueError:
        raise SpecError(
            "--notify", f"the server has no block {block!r}; prefect block ls"
        ) from None
    notify = getattr(notifier, "notify", None)
    if not callable(notify):
        raise SpecError("--notify", f"the block {block!r} cannot notify; name a notification block")
    found: Callable[..., Any] = notify
    return found
