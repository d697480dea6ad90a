"""The verifier in one file: what would take it an hour, or all memory, is refused at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from release.verification import standalone
from tests.sample import FOLDER
from tests.verification.standalone.alone import refused
from tests.verification.standalone.test_ledger import genesis, read

PUBLIC = FOLDER / "public" / "small"


def test_memory_that_does_not_suffice_is_a_refusal_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(standalone, "Release", fill)
    assert standalone.main([str(PUBLIC)]) == 1
    assert capsys.readouterr().out == "refused: a file is not of its form: MemoryError: \n"


def oversized(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**30 + 1)


def test_a_ledger_is_read_from_plain_files_alone(tmp_path: Path) -> None:
    read(tmp_path, genesis())
    place = tmp_path / "00000001.json"
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), oversized):
        make(place)
        with refused("00000001.json: file: found none or another, expected a plain file of at"):
            standalone.Ledger(tmp_path)
        place.rmdir() if place.is_dir() else place.unlink()


def test_a_checkpoint_is_a_plain_file(tmp_path: Path) -> None:
    for entry in (FOLDER / "ledger").glob("*.json"):
        (tmp_path / entry.name).write_bytes(entry.read_bytes())
    trust = standalone.Trust((), (), tmp_path)
    with refused("checkpoint: file: found none or another"):
        standalone.Release(PUBLIC, None, trust)
    os.mkfifo(tmp_path / "checkpoint")
    with refused("checkpoint: file: found none or another"):
        standalone.Release(PUBLIC, None, trust)
