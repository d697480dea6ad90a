"""The verifier in one file: what would take it an hour, or all memory, is refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from release.verification import standalone
from tests.sample import FOLDER

PUBLIC = FOLDER / "public" / "small"


def test_memory_that_does_not_suffice_is_a_refusal_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(standalone, "Release", fill)
    assert standalone.main([str(PUBLIC)]) == 1
    assert capsys.readouterr().out == "refused: a file is not of its form: MemoryError: \n"
