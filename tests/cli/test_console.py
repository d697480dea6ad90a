"""What is shown of long work on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

SHOWN = """
import time
from release.cli.console import progress
with progress() as display:
    display.begin("measuring")
    time.sleep(0.4)
    display.end()
    display.begin("working")
    for number in range(30):
        display.watch(number, 30, "home")
        time.sleep(0.1)
    display.end()
"""


def on_a_terminal(*words: str) -> str:
    """What a command writes to a terminal of 100 columns, without colours and moves."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(
        words, stdin=follower, stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        written = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            written += part
        process.wait()
    os.close(leader)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


def test_long_work_has_a_bar_with_the_time_left() -> None:
    """Only where it is known: "0:00:00 left" stood beside a stage that was still at work."""
    lines = re.split(r"[\r\n]+", on_a_terminal(sys.executable, "-c", SHOWN))
    at_work = [line for line in lines if line and "✓" not in line]
    unknown = [line for line in at_work if "measuring" in line]
    known = [line for line in at_work if "working: home" in line]
    assert unknown
    assert not any("left" in line for line in unknown)
    assert any(
        re.search(r"working: home \(\d+ of 30\).*━.*about 0:0\d left", line) for line in known
    )
    done = [line for line in lines if "✓" in line]
    assert done
    assert not any("left" in line for line in done)
