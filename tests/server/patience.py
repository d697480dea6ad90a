"""Asking a Prefect server that is busy: it answers 503 where its SQLite database is locked.

The transaction was rolled back then, and Prefect's own client asks again too. Every other answer
counts at once.
"""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable
from typing import TypeVar

from release.errors import SpecError

_BUSY = 503
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

Answer = TypeVar("Answer")


def patiently(ask: Callable[[], Answer], pauses: tuple[float, ...] = _PAUSES) -> Answer:
    """What the server answers; after each pause, in seconds, it is asked again if it was busy."""
    for pause in pauses:
        try:
            return ask()
        except (urllib.error.HTTPError, SpecError) as error:
            if not _was_busy(error):
                raise
        time.sleep(pause)
    return ask()


def _was_busy(error: BaseException) -> bool:
    # Apart, because a frame that an error passes through must not hold its open answer.
    answer = answer_of(error)
    if answer is None or answer.code != _BUSY:
        return False
    answer.close()
    return True


def answer_of(error: BaseException) -> urllib.error.HTTPError | None:
    """What the server has answered, if it has; a refusal of the product keeps it as its cause."""
    told = error.__cause__ if isinstance(error, SpecError) else error
    return told if isinstance(told, urllib.error.HTTPError) else None
