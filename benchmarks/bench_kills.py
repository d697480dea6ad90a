"""What random kills cost: runs of ``data/nightly.yaml``, each killed at a random moment.

Every run is a forked process with a fresh ledger, which has loaded all modules beforehand: a run
that loads them takes ten times as long, and few kills would fall on what is measured. The moment of
a kill is uniform over the time that a whole run takes. After a kill ``recover`` does what the next
run would do first, and the ledger tells whether a charge was lost: an abort after the draw.

``python -m benchmarks.bench_kills [KILLS] [SEED]``
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from release.budget.ledger import Abort, Commit, ScopeCap, create_ledger, read_ledger
from release.job import Options
from release.operate.operations import Place, recover_all
from release.records.keys.files import create_key
from release.spec.periods import parse_period
from release.street import run_release

SPEC = Path(__file__).parent.parent / "data" / "nightly.yaml"
DAY = "2012-07-02"


def fresh(folder: Path) -> Place:
    """An output folder with a key and a ledger that can pay for a few runs."""
    signer = create_key(folder / "key")
    cap = ScopeCap(scope="evenings", epsilon="10", delta="0")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2012-01-01")
    return Place(folder / "out", folder / "key")


def begin(place: Place) -> int:
    """Begin a run in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            options = Options(key=place.key, period=parse_period(DAY))
            run_release(SPEC, place.out, options=options)
            status = 0
        finally:
            os._exit(status)
    return child


def load_modules(place: Place) -> None:
    """Import what a whole run imports, without running one here: no thread survives a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        run_release(SPEC, place.out, options=Options(key=place.key, period=parse_period(DAY)))
        with os.fdopen(writing, "w") as pipe:
            json.dump(list(sys.modules), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        names = json.load(pipe)
    os.waitpid(child, 0)
    for name in names:
        # Some are made while the program runs, and cannot be imported.
        with suppress(Exception):
            importlib.import_module(name)


def outcome(place: Place) -> str:
    """How the ledger saw a killed run end, after recovering it."""
    child = os.fork()
    if child == 0:
        recover_all(place)
        os._exit(0)
    os.waitpid(child, 0)
    last = read_ledger(place.out / "ledger").entries[-1]
    if isinstance(last, Abort):
        return "a charge lost" if last.drawn else "given back"
    return "published" if isinstance(last, Commit) else "before the charge"


def main(kills: int, seed: int) -> None:
    """Kill runs until so many kills have hit, and print what they cost."""
    chance = random.Random(seed)  # noqa: S311 - when to kill, not noise
    outcomes: Counter[str] = Counter()
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "modules").mkdir()
        load_modules(fresh(base / "modules"))
        times = []
        for number in range(5):
            (base / f"whole{number}").mkdir()
            place = fresh(base / f"whole{number}")
            begun = time.monotonic()
            if os.waitpid(begin(place), 0)[1] != 0:
                raise SystemExit("a run that is not killed fails")
            times.append(time.monotonic() - begun)
        # The median: the load of other programs makes single runs slow.
        whole = sorted(times)[2]
        while outcomes.total() < kills:
            (base / str(runs)).mkdir()
            place = fresh(base / str(runs))
            child = begin(place)
            time.sleep(chance.uniform(0, whole))
            os.kill(child, signal.SIGKILL)
            runs += 1
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL:
                outcomes[outcome(place)] += 1
    print(f"{outcomes.total()} kills in {runs} runs of {whole:.2f} s")
    for name, count in outcomes.most_common():
        print(f"{count:5} {name}")


if __name__ == "__main__":
    main(*(int(text) for text in (sys.argv[1:] + ["100", "1"][len(sys.argv) - 1 :])))
