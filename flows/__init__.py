"""Prefect flows over the stages of :mod:`release`.

Importing the package gives Prefect its settings, which it reads when it is imported itself.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Its telemetry would leave the machine, and its start-up collides with its own database; its log
# may not hold tracebacks, whose messages quote values.
SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_CLI_PROMPT": "false",
}
os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})


def _have_home() -> None:
    """Give Prefect a folder that can be written: its own, or a passing one where there is none."""
    home = Path(os.environ.get("PREFECT_HOME") or Path("~/.prefect").expanduser())
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="dp-release-prefect-"))
    os.environ["PREFECT_HOME"] = str(home)


_have_home()
