"""A busy server is asked again, a bounded number of times; any other answer counts at once."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from release.errors import SpecError
from release.operate.prefect_drift import flow_runs
from tests.server.patience import answer_of, patiently

PAUSES = (0.0, 0.0)


@contextmanager
def answering(*statuses: int) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn: its address, and what it was asked."""
    asked: list[str] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer with the next status."""
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(statuses[len(asked)])
            asked.append(self.path)
            self.end_headers()
            self.wfile.write(json.dumps([]).encode())

        def log_message(self, *given: object) -> None:
            """Silence."""

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}/api", asked
    finally:
        listener.shutdown()
        listener.server_close()


@contextmanager
def refused(kind: type[Exception], status: int) -> Iterator[None]:
    """The block ends with this exception, of an answer with this status."""
    with pytest.raises(kind) as told:
        yield
    answer = answer_of(told.value)
    assert answer is not None
    answer.close()
    assert answer.code == status


def ask(address: str) -> bytes:
    with urllib.request.urlopen(address, b"{}", timeout=30) as answer:
        return bytes(answer.read())


def test_a_busy_server_is_asked_until_it_answers() -> None:
    with answering(503, 503, 200) as (address, asked):
        assert patiently(lambda: ask(address), PAUSES) == b"[]"
    assert len(asked) == 3


def test_a_server_that_stays_busy_is_told_in_the_end() -> None:
    failure = refused(urllib.error.HTTPError, 503)
    with answering(503, 503, 503, 200) as (address, asked), failure:
        patiently(lambda: ask(address), PAUSES)
    assert len(asked) == 3


@pytest.mark.parametrize("status", [404, 409, 423, 500, 502])
def test_any_other_answer_counts_at_once(status: int) -> None:
    failure = refused(urllib.error.HTTPError, status)
    with answering(status, 200) as (address, asked), failure:
        patiently(lambda: ask(address), PAUSES)
    assert len(asked) == 1


def test_a_refusal_of_the_product_is_looked_at_for_its_cause() -> None:
    with answering(503, 200) as (address, asked):
        assert patiently(lambda: list(flow_runs(address)), PAUSES) == []
    assert len(asked) == 2
    failure = refused(SpecError, 500)
    with answering(500, 200) as (address, asked), failure:
        patiently(lambda: list(flow_runs(address)), PAUSES)
    assert len(asked) == 1
