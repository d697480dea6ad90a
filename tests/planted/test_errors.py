"""The texts that errors and leaks replace stand in the package, once each."""

from __future__ import annotations

from collections import Counter

from tests.audit.leaks import LEAKS
from tests.conftest import PROJECT
from tests.planted.errors import ERRORS, SeenBy
from tests.planted.runner import place_of, planted


def test_every_error_can_be_planted() -> None:
    for error in ERRORS:
        text = place_of(error.module, PROJECT).read_text("utf-8")
        compile(planted(error, text), error.module, "exec")
    assert max(Counter(error.name for error in ERRORS).values()) == 1
    by_files = [error for error in ERRORS if error.seen_by is SeenBy.FILES]
    assert sum(error.is_private for error in by_files) >= 40


def test_every_leak_can_be_planted() -> None:
    for leak in LEAKS:
        text = (PROJECT / "release" / leak.module).read_text("utf-8")
        assert text.count(leak.old) == 1, leak.name
        compile(text.replace(leak.old, leak.new), leak.module, "exec")
