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


def _urandom(size: int) -> bytes:
    mark = os.environ.get("DIE_IN_DRAW", "")
    if mark and os.path.exists(mark):  # noqa: PTH110 - nothing is imported here that need not be
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_globals.get("__name__") == "release.exact.sampling":
                with open(mark) as told:  # noqa: PTH123 - as above
                    waits = told.read() == "wait"
                os.unlink(mark)  # noqa: PTH108 - as above
                if waits:
                    time.sleep(600)
                os.kill(os.getpid(), signal.SIGKILL)
            frame = frame.f_back
    return _given(size)


os.urandom = _urandom
