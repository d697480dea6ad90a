"""Prefect flows over the stages of :mod:`release`.

Importing the package sets Prefect's environment, which Prefect reads when it is imported.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)


def _ensure_home() -> None:
    """Give Prefect a folder that can be written: its own, or else a temporary one."""
    home = Path(os.environ.get("PREFECT_HOME") or Path("~/.prefect").expanduser())
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="dp-release-prefect-"))
    os.environ["PREFECT_HOME"] = str(home)


_ensure_home()
