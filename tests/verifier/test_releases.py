"""Releases of ordinary specs are proved, and no edit of a field makes the verifier itself fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_release_verify import canonical
from dp_release_verify.verdict import NOT_PROVED, OWN_FAULT
from release.errors import ReleaseError
from release.street import run_release
from tests.street.specs import make_case
from tests.street.walk import write
from tests.verifier import made
from tests.verifier.made import seal

At = tuple[str | int, ...]

SEEDS = [1, 7, 46, 101, 144, 216]
"""Among these are values of units, shares, tuples, and a table that only measured counts refine."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_release_of_an_ordinary_spec_is_proved(seed: int, tmp_path: Path) -> None:
    try:
        release = run_release(write(make_case(seed), tmp_path), tmp_path / "out")
    except ReleaseError as refusal:
        pytest.skip(f"a spec that no run accepts: {refusal}")
    found = made.verdict_of(release.public, release.auditor)
    assert (found.refusal, found.status) == (None, 0)


def rename(plain: Any) -> None:
    """A law of a family that nobody knows."""
    plain["family"] = "better_noise"


def test_a_family_that_the_page_does_not_name_is_not_proved(tmp_path: Path) -> None:
    folder, auditor = made.small(tmp_path)
    for name in ("the_count", "flipped"):
        made.edit(folder, f"mechanisms/{name}.json", rename)
    found = made.verdict_of(folder, auditor)
    assert found.status == NOT_PROVED
    assert {"the_count", "flipped"} <= set(found.not_proved)
    assert "NOT PROVED: the_count, flipped" in found.lines()[0]


def test_a_committed_law_of_a_family_that_the_page_does_not_name_is_not_proved(
    tmp_path: Path,
) -> None:
    folder, auditor = made.small(tmp_path)
    (auditor / "audit.json").unlink(missing_ok=True)
    made.edit(auditor, "committed.json", lambda plain: rename(plain["law"]))
    (auditor / "SHA256SUMS").unlink()
    found = made.verdict_of(folder, auditor)
    assert (found.status, found.refusal) == (NOT_PROVED, None)
    assert found.not_proved == ["committed"]


def places(value: Any, at: At = ()) -> Iterator[At]:
    """Every field, and of long lists the first two and the last item."""
    if isinstance(value, dict):
        for name in value:
            yield (*at, name)
            yield from places(value[name], (*at, name))
    elif isinstance(value, list):
        for place in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield (*at, place)
            yield from places(value[place], (*at, place))


def others(value: Any) -> Iterator[Any]:
    """Values of other sizes, signs and types."""
    yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (0, value + 1, -value, canonical.LARGEST, str(value))
    elif isinstance(value, str):
        yield from ("", f"{value}x", 1)
        if canonical.NUMBER.fullmatch(value):
            number = Fraction(value)
            yield from (canonical.exact(number / 2), canonical.exact(number * 2), "0")
            yield from ("9" * 300, f"1/{10**300}")
    elif isinstance(value, list):
        yield from ([], [*value, *value[-1:]], value[::-1])
    elif isinstance(value, dict):
        yield from ({}, {**value, "more": 1})


def forgeries(plain: Any) -> Iterator[tuple[At, Any]]:
    """The value with each of its fields left out, or with another value."""
    for at in places(plain):
        copies = []
        for other in others(_at(plain, at)):
            changed = json.loads(json.dumps(plain))
            _at(changed, at[:-1])[at[-1]] = other
            copies.append(changed)
        left_out = json.loads(json.dumps(plain))
        del _at(left_out, at[:-1])[at[-1]]
        for changed in (*copies, left_out):
            yield at, changed


def _at(plain: Any, at: At) -> Any:
    for step in at:
        plain = plain[step]
    return plain


@pytest.mark.parametrize("which", ["several", "tables"])
def test_no_edit_of_a_field_makes_the_verifier_fail(which: str, tmp_path: Path) -> None:
    """Whatever a forger writes, with hashes made anew: a verdict, and never a fault of our own."""
    (tmp_path / "made").mkdir()
    auditor = None
    if which == "several":
        folder, auditor = made.small(tmp_path / "made")
    else:
        folder = made.tabulated(tmp_path / "made")
    tried = 0
    names = [path for path in folder.rglob("*.json") if path.name != "datapackage.json"]
    for path in sorted(names):
        data = path.read_bytes()
        for at, changed in forgeries(json.loads(data)):
            path.write_bytes(canonical.dumps(changed))
            seal(folder)
            found = made.verdict_of(folder, auditor)
            assert found.status != OWN_FAULT, (path.name, at, found.refusal)
            tried += 1
        path.write_bytes(data)
    seal(folder)
    assert made.verdict_of(folder, auditor).status == 0
    assert tried > 800
    shutil.rmtree(folder)
