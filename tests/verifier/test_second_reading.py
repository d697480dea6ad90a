"""The verifier against a second one that was written from the format page alone.

Its author saw the page and sample folders, and no line of this repository. Where the two differ,
one of them, or the page, is wrong; what one of them leaves out is listed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dp_release_verify import canonical
from dp_release_verify.verdict import NOT_PROVED
from release.errors import ReleaseError
from release.street import run_release
from tests.oracles import auditor
from tests.street.specs import make_case
from tests.street.walk import write
from tests.verifier import made
from tests.verifier.made import seal
from tests.verifier.test_releases import forgeries

STRIDE = 7
"""Of the forgeries every so many is tried: each takes both verifiers a moment."""

ONE_ALONE = ("sql", "tree", "path", "mechanism", "at")
"""What one of the two does not look at: conditions, and texts that bind nothing."""


def second(folder: Path, opened: Path | None) -> str:
    """Why the second verifier refuses a release; empty if it does not."""
    try:
        auditor.check(folder, opened)
    except auditor.Refused as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("seed", [3, 11, 46, 60, 77, 101, 144, 150])
def test_both_prove_the_release_of_an_ordinary_spec(seed: int, tmp_path: Path) -> None:
    try:
        release = run_release(write(make_case(seed), tmp_path), tmp_path / "out")
    except ReleaseError as refusal:
        pytest.skip(f"a spec that no run accepts: {refusal}")
    public, opened = release.public, release.auditor
    assert made.verdict_of(public, opened).status == 0
    assert second(public, opened) == ""


def test_both_refuse_the_same_edits_of_fields(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    folder, opened = made.small(tmp_path / "made")
    tried = 0
    for path in sorted(each for each in folder.rglob("*.json") if each.name != "datapackage.json"):
        data = path.read_bytes()
        for number, (at, changed) in enumerate(forgeries(json.loads(data))):
            names = [step for step in at if isinstance(step, str)]
            if number % STRIDE or set(names) & set(ONE_ALONE):
                continue
            path.write_bytes(canonical.dumps(changed))
            seal(folder)
            found: Any = made.verdict_of(folder, opened)
            if found.status == NOT_PROVED:
                # A family that the page does not name: the second one refuses it.
                continue
            reason = second(folder, opened)
            told = (path.name, at, found.refusal, reason)
            assert (found.refusal is None) == (reason == ""), told
            tried += 1
        path.write_bytes(data)
    assert tried > 100
