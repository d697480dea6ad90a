"""Prefect flows over the stages of :mod:`release`.

Importing the package loads Prefect and changes no environment variable; running a flow sets those
of :mod:`flows.environment`.
"""

from __future__ import annotations

from flows.environment import load_prefect

load_prefect()
