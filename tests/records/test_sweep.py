"""What deliveries leave aside in a folder that is a store, and when it is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from release.records.stores import open_store

DAY = 86400


def test_only_what_was_left_aside_long_ago_is_removed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "--store")
    store.put("ledger/00000000.json", b"entry")
    (tmp_path / ".part-old").mkdir()
    (tmp_path / ".part-new").mkdir()
    aside = {"ledger/.put-old", ".put-old", ".part-old/file", "ledger/.put-new", ".part-new/file"}
    for name in aside:
        (tmp_path / name).write_bytes(b"half")
    for path in tmp_path.rglob("*"):
        if not path.name.endswith("-new"):
            os.utime(path, (0, time.time() - 2 * DAY))
    store.sweep()
    assert store.names("") == [".part-new/file", "ledger/.put-new", "ledger/00000000.json"]
    assert not (tmp_path / ".part-old").exists()


def test_a_missing_folder_is_swept_without_an_error(tmp_path: Path) -> None:
    open_store(str(tmp_path / "none"), "--store").sweep()
    assert list(tmp_path.iterdir()) == []
