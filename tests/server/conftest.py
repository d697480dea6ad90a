"""What tests with a Prefect server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.servers import Server, running, server_in


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Iterator[Server]:
    """A server that runs for all tests of a module."""
    found = server_in(tmp_path_factory.mktemp("server") / "home", prefect_home)
    with running(found):
        yield found
