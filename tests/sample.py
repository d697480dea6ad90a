"""Makes the sample release of the present formats anew: ``python -m tests.sample``.

Run it when a format changes on purpose. ``tests/formats`` keeps the release, and every later
version has to read it.
"""

from __future__ import annotations

import datetime
import shutil
import tempfile
from pathlib import Path

from release.budget.ledger import ScopeCap
from release.budget.store import create_ledger
from release.job import Options
from release.records.keys.files import create_key
from release.street import run_release
from tests.small import Small, query

FOLDER = Path(__file__).parent / "formats" / "v1"
ORIGIN, DAY = "example.org/dp", datetime.date(2026, 11, 22)
ROWS = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]
QUERIES = [
    query("count", sensitivity="global"),
    query("mode"),
    query("binned", sensitivity="global", mechanism="channel"),
    query("mode", sensitivity="global", noise="on_statistic", name="commonest"),
    query("binned", sensitivity="global", noise="on_statistic", name="total"),
]


def make(folder: Path) -> None:
    """Publish the sample below ``folder``, with its ledger and the public key."""
    with tempfile.TemporaryDirectory() as aside:
        spec = Small(ROWS, QUERIES).write(Path(aside))
        key = Path(aside) / "key"
        signer = create_key(key)
        caps = (ScopeCap(scope="tests", epsilon="100", delta="0"),)
        create_ledger(folder / "ledger", signer, ORIGIN, caps, DAY.isoformat())
        run_release(spec, folder, published=DAY, options=Options(key=key))
    (folder / "key.pub").write_text(f"{signer.public(ORIGIN)}\n", "utf-8")


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    make(FOLDER)
