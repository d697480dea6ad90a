"""What packages provide that import this one, and that it must not import: by entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from release.errors import SpecError


def plug_in(group: str, absent: SpecError, broken: SpecError | None = None) -> Any:
    """The plug-in that is installed for a group of entry points.

    Raises:
        SpecError: ``absent`` where none is; ``broken``, by default the same, where one lacks what
            it needs.
    """
    for entry in entry_points(group=group):
        try:
            return entry.load()
        except ImportError as error:
            raise broken or absent from error
    raise absent
