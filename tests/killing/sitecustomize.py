"""Put before everything else on the path of a process: it dies in mid-draw where a file says so.

Noise is drawn from ``os.urandom``; the first bytes that :mod:`release.exact.sampling` asks for
while the file ``$DIE_IN_DRAW`` is there are the last thing the process does; with ``wait`` in it,
it waits there to be killed. The file goes first, so that only one process dies.
"""

import os
import signal
import sys
import time
from types import FrameType

_given = os.urandom


def _modules(frame: FrameType | None) -> set[str]:
    """The modules of a frame and of its callers."""
    names = set()
    while frame is not None:
        names.add(str(frame.f_globals.get("__name__")))
        frame = frame.f_back
    return names


def _urandom(size: int) -> bytes:
    mark = os.environ.get("DIE_IN_DRAW", "")
    if mark and os.path.exists(mark):  # noqa: PTH110 - nothing is imported here that need not be
        frame: FrameType | None = sys._getframe(1)
        # What a rehearsal draws is noise on nothing.
        is_rehearsing = "release.rehearsal" in _modules(frame)
        while frame is not None:
            is_drawing = frame.f_globals.get("__name__") == "release.exact.sampling"
            if is_drawing and not is_rehearsing:
                with open(mark) as told:  # noqa: PTH123 - as above
                    waits = told.read() == "wait"
                os.unlink(mark)  # noqa: PTH108 - as above
                if waits:
                    time.sleep(600)
                os.kill(os.getpid(), signal.SIGKILL)
            frame = frame.f_back
    return _given(size)


os.urandom = _urandom
