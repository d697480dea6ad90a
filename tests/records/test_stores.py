"""Stores: one writer wins a name, names mean the same everywhere, nothing secret is shown."""

from __future__ import annotations

import http.server
import os
import socket
import stat
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from release.errors import StorageError
from release.records import stores
from release.records.stores import Folder, Objects, Store, open_store
from tests.stores import s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as uri:
        yield uri


@pytest.fixture(params=["folder", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A new folder in each kind of store."""
    if request.param == "folder":
        return open_store(str(tmp_path / "a b%20c#1é"), "--to")
    if request.param == "memory":
        return open_store(f"memory://{tmp_path.name}/x", "--to")
    return open_store(f"{request.getfixturevalue('s3')}/{tmp_path.name}", "--to")


def test_a_name_is_created_once(store: Store) -> None:
    assert store.create("ledger/1", b"one")
    assert store.create("ledger/1", b"one")  # whoever wrote it, these bytes are there
    assert not store.create("ledger/1", b"two")
    with pytest.raises(StorageError, match="ledger/1 holds other bytes; nothing is put over it"):
        store.put("ledger/1", b"two")
    assert store.read("ledger/1") == b"one"
    store.replace("ledger/1", b"")
    assert store.read("ledger/1") == b""


def test_of_writers_at_once_one_wins(store: Store) -> None:
    for turn in range(5):
        texts = [f"{turn} {writer}".encode() for writer in range(8)]
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda text, turn=turn: store.create(f"race/{turn}", text), texts))
        assert sum(won) == 1
        assert store.read(f"race/{turn}") == texts[won.index(True)]
    assert store.names("race") == [str(turn) for turn in range(5)]


def test_of_two_that_replace_a_file_at_once_both_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins, and ends, when the first is about to put its file in place."""
    store = open_store(str(tmp_path), "--to")
    replace = Path.replace

    def second_first(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        store.replace("ledger/checkpoint", b"the second")
        assert store.read("ledger/checkpoint") == b"the second"
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", second_first)
    store.replace("ledger/checkpoint", b"the first")
    assert store.read("ledger/checkpoint") == b"the first"
    assert store.names("") == ["ledger/checkpoint"]


def test_a_file_is_replaced_as_a_whole_however_many_write_it(store: Store) -> None:
    texts = [bytes([letter]) * 5000 for letter in b"abcdefgh"]
    store.replace("checkpoint", texts[0])

    def write_and_read(text: bytes) -> set[bytes | None]:
        seen = set()
        for _ in range(10):
            store.replace("checkpoint", text)
            seen.add(store.read("checkpoint"))
        return seen

    with ThreadPoolExecutor(len(texts)) as pool:
        seen = set().union(*pool.map(write_and_read, texts))
    assert seen <= set(texts)
    assert store.names("") == ["checkpoint"]


def test_a_listing_is_whole_though_temporary_files_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file goes after it was listed, another after it was first looked at."""
    for name in ("00000000.json", ".put-1", ".put-2", "checkpoint"):
        (tmp_path / name).write_bytes(b"12345")
    stat_of = Path.stat

    def goes(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.name == ".put-1":
            self.unlink(missing_ok=True)
        result = stat_of(self, follow_symlinks=follow_symlinks)
        if self.name == ".put-2":
            self.unlink()
        return result

    monkeypatch.setattr(Path, "stat", goes)
    sizes = open_store(str(tmp_path), "--to").sizes("")
    assert {name for name in sizes if not name.startswith(".put-")} == {
        "00000000.json",
        "checkpoint",
    }
    assert ".put-1" not in sizes


def test_names_mean_the_same_in_every_store(store: Store) -> None:
    names = ["a.json", "day=2024-01-05/p q%20.parquet", "é/z", "é/zz/deep"]
    for name in names:
        store.put(name, name.encode())
    assert store.names("") == sorted(names)
    assert store.names("é") == ["z", "zz/deep"]
    assert store.sizes("") == {"a.json": 6}
    assert store.sizes("é") == {"z": 4}
    assert store.sizes("nothing") == {}
    assert store.names("nothing") == []
    for name in names:
        assert store.read(name) == name.encode()
        assert store.is_file(name)
    for name in ("é", "nothing", "a.json/below", ""):
        assert store.read(name) is None
        assert not store.is_file(name)


def test_a_single_file_is_a_store_with_one_name(store: Store) -> None:
    store.put("folder/file", b"x")
    file = open_store(f"{store.label}/folder/file", "path")
    assert file.is_file("")
    assert file.read("") == b"x"


def test_a_stamp_changes_with_the_bytes_alone(store: Store) -> None:
    """Also where the size stays and the clock has whole seconds."""
    paths = [store.path("a")]
    store.replace("a", b"one")
    before = store.stamps(paths)
    assert store.stamps(paths) == before
    store.replace("a", b"two")
    assert store.stamps(paths) != before
    with pytest.raises(StorageError):
        store.stamps([store.path("nothing")])


def test_a_copy_is_for_its_owner_alone(store: Store, tmp_path: Path) -> None:
    data = os.urandom(3 * 2**20)
    store.put("table", data)
    before = os.umask(0)
    try:
        store.copy_out(store.path("table"), tmp_path / "private" / "table")
    finally:
        os.umask(before)
    assert (tmp_path / "private" / "table").read_bytes() == data
    assert stat.S_IMODE((tmp_path / "private" / "table").stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0, 0o077])
def test_files_of_a_folder_can_be_read_by_all(umask: int, tmp_path: Path) -> None:
    store = open_store((tmp_path / "shared").as_uri(), "--to")
    assert isinstance(store, Folder)
    before = os.umask(umask)
    try:
        store.put("ledger/a", b"x")
        store.replace("ledger/b", b"x")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"shared": 0o755, "ledger": 0o755, "a": 0o644, "b": 0o644}


def test_a_failure_shows_neither_address_nor_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "tokenofmine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9/tokenofmine")
    store = open_store("s3://bucket/folder", "--to")
    assert isinstance(store, Objects)
    with pytest.raises(StorageError, match=r"s3://bucket/folder: the store cannot be ") as refused:
        store.put("x", b"x")
    shown = "".join(traceback.format_exception(refused.value))
    assert "tokenofmine" not in shown + repr(store)
    assert "127.0.0.1" not in shown


@pytest.mark.parametrize(
    ("status", "reason"),
    [(403, "it answered 403, access is denied"), (500, "it answered 500"), (0, "no connection")],
)
def test_a_failure_says_which(status: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Refuse, with a text that is not to be shown."""
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"tokenofmine status code: 200")

        def log_message(self, *given: object) -> None:
            """Silence."""

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    port = listener.server_address[1]
    if status:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
    else:
        listener.server_close()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tokenofmine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    with pytest.raises(StorageError) as refused:
        open_store("s3://bucket/folder", "--to").read("x")
    assert str(refused.value) == f"s3://bucket/folder: the store cannot be read ({reason})"
    if status:
        listener.shutdown()
        listener.server_close()


def test_a_store_that_never_answers_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_TIMEOUT", "1s")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tokenofmine")
    # The kernel accepts connections for it, and nobody reads them.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(StorageError) as refused:
            open_store("s3://bucket/folder", "--to").read("x")
    assert str(refused.value) == "s3://bucket/folder: the store cannot be read (time-out)"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    store = open_store(str(tmp_path / "file"), "--to")
    for write in (store.put, store.replace):
        with pytest.raises(StorageError, match="a delivery cannot be written"):
            write("ledger/a", b"x")
