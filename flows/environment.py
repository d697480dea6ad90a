"""Prefect's environment: in force while Prefect is loaded and while a flow runs, at no other time.

Prefect reads its settings once, when it is imported, and hands them on to the processes it starts.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from prefect import Flow

P = ParamSpec("P")
R = TypeVar("R")

# Telemetry would leave the machine, and at its start it collides with the server's own database.
# The log may hold no tracebacks, whose messages quote values.
SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_CLI_PROMPT": "false",
}

_MISSING = "flows need Prefect; pip install 'dp-release[flows]'"


def set_environment() -> None:
    """Set the environment of this process, as every flow does when it is run."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    os.environ["PREFECT_HOME"] = _home(os.environ.get("PREFECT_HOME"))


@cache
def _home(named: str | None) -> str:
    """A folder for Prefect that can be written: its own, or else a temporary one."""
    home = Path(named or Path("~/.prefect").expanduser())
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="dp-release-prefect-"))
    return str(home)


@contextmanager
def environment_for_prefect() -> Iterator[None]:
    """Set the environment while the block runs, and leave it as it was."""
    before = {name: os.environ.get(name) for name in (*SETTINGS, "PREFECT_HOME")}
    set_environment()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def load_prefect() -> None:
    """Import Prefect with our settings.

    Raises:
        ModuleNotFoundError: it is not installed; under ``python -m`` one line and status 2 instead.
    """
    with environment_for_prefect():
        try:
            import prefect  # noqa: F401 - what counts is that it reads its settings here
        except ModuleNotFoundError as error:
            # While Python looks for the module that -m names, that is all it has of the call.
            if sys.argv[:1] == ["-m"]:
                print(f"error: {_MISSING}", file=sys.stderr)  # noqa: T201 - the one line
                raise SystemExit(2) from None
            raise ModuleNotFoundError(_MISSING, name=error.name) from error


def quiet_flow(**options: Any) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Make a Prefect flow that keeps nothing, and tells nobody that it was defined."""
    from prefect import flow

    def define(function: Callable[P, R]) -> Flow[P, R]:
        with environment_for_prefect():
            decorated: Flow[P, R] = flow(
                persist_result=False, retries=0, log_prints=False, **options
            )(function)
        return decorated

    return define
