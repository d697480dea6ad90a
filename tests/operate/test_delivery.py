"""Stores: what is delivered is whole or not there, and nothing is put over anything.

In a folder, in memory, and on an S3-compatible server that runs here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest
import yaml

from release.budget.ledger import Ledger, ScopeCap, create_ledger, read_ledger
from release.errors import LedgerError, ReleaseError, SpecError, StorageError
from release.job import Options, auditor_bundle
from release.operate.delivery import (
    check_witness,
    deliver,
    deliver_ledger,
    fetch,
    restore,
    restore_releases,
)
from release.operate.operations import Place, Run, deliver_all, left_behind, recover, release_period
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.stores import Folder, Objects, Store, open_store
from release.street import run_release
from release.verification.evidence import Trust
from release.verification.keys import read_trusted
from release.verification.verifier import verify
from tests.small import Row, Small, query
from tests.stores import s3_server

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
QUERIES = [query("count", sensitivity="global", by=[]), query("mode", by=[])]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as uri:
        yield uri


@pytest.fixture(params=["local", "memory", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new folder in each kind of store."""
    if request.param == "local":
        return str(tmp_path / "store")
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"{request.getfixturevalue('s3')}/{tmp_path.name}"


@pytest.fixture(params=["memory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """A store without a rename."""
    s3 = "memory:/" if request.param == "memory" else request.getfixturevalue("s3")
    store = open_store(f"{s3}/{tmp_path.name}", "--to")
    assert isinstance(store, Objects)
    return store


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A spec, a key and a ledger."""
    Small(ROWS, QUERIES).write(tmp_path)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    create_ledger(tmp_path / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    return Place(tmp_path / "out", tmp_path / "key")


def release(place: Place, name: str = "small") -> Path:
    spec = place.out.parent / "spec.yaml"
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["release"]["id"] = name
    spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return release_period(spec, None, Run(place)).public


def test_a_release_goes_to_a_store_and_comes_back_the_same(
    uri: str, place: Place, tmp_path: Path
) -> None:
    store = open_store(uri, "--to")
    public = release(replace(place, store=store))
    assert not deliver(public, store)  # it is there already
    fetch(store, "small", tmp_path / "back" / "small")
    files = {p.relative_to(public): p.read_bytes() for p in public.rglob("*") if p.is_file()}
    back = tmp_path / "back" / "small"
    assert {p.relative_to(back): p.read_bytes() for p in back.rglob("*") if p.is_file()} == files
    assert len(files) > 8
    keys = read_trusted([str(read_key(tmp_path / "key").public("example.org/dp"))])
    assert verify(back, auditor_bundle(public), Trust(None, keys)).release_id == "small"
    # The auditor's folder never leaves.
    names = store.names("")
    assert not [name for name in names if "auditor" in name or name.endswith("the_mode.json")]
    assert {name.partition("/")[0] for name in names} == {"ledger", "public"}


class Cut(Objects):
    """A store whose connection ends after some writes."""

    left = 0

    def put(self, name: str, data: bytes) -> None:
        """Put, as long as it lasts."""
        if Cut.left <= 0:
            raise StorageError("cut off")
        Cut.left -= 1
        super().put(name, data)


def cut_off(store: Objects) -> Cut:
    return Cut(store.label, store.root, store.objects, store.prefix)


def delete(store: Store, name: str) -> None:
    """Delete a file as somebody with access to the store might."""
    if isinstance(store, Objects):
        obstore.delete(store.objects, f"{store.prefix}/{name}")
    else:
        Path(store.path(name)).unlink()


def test_a_delivery_that_is_cut_off_anywhere_shows_nothing_and_goes_on(
    objects: Objects, place: Place, tmp_path: Path
) -> None:
    public, store = release(place), objects
    cut = cut_off(store)
    writes = 0
    while True:
        Cut.left = writes
        shutil.rmtree(tmp_path / "back", ignore_errors=True)
        try:
            assert deliver(public, cut)
            break
        except StorageError:
            assert store.read("public/small/SHA256SUMS") is None
            with pytest.raises(StorageError, match="is not there, or its delivery has not ended"):
                fetch(store, "small", tmp_path / "back")
            assert not (tmp_path / "back").exists()
        writes += 1
        if writes > 50:
            pytest.fail("deliveries do not end")
        for name in store.names("public/small"):
            delete(store, f"public/small/{name}")
    assert writes >= 9
    fetch(store, "small", tmp_path / "back")


def test_a_copy_that_dies_before_its_rename_is_not_there(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, store = release(place), open_store(str(tmp_path / "store"), "--to")

    def dies(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(Path, "rename", dies)
        deliver(public, store)
    assert not (tmp_path / "store" / "public" / "small").exists()
    assert deliver(public, store)
    assert [path.name for path in (tmp_path / "store" / "public").iterdir()] == ["small"]


def test_nothing_is_put_over_another_release(uri: str, place: Place, tmp_path: Path) -> None:
    store = open_store(uri, "--to")
    deliver(release(place), store)
    other = run_release(tmp_path / "spec.yaml", tmp_path / "other").public
    with pytest.raises(StorageError, match="another 'small' is there already"):
        deliver(other, store)
    with pytest.raises(StorageError, match="holds other bytes; nothing is put over it"):
        store.put("public/small/release.json", b"{}")


def test_a_store_that_lies_is_found_out(uri: str, place: Place, tmp_path: Path) -> None:
    store = open_store(uri, "--to")
    public = release(place)
    deliver(public, store)
    store.replace("public/small/report.html", b"<p>nothing to see</p>")
    with pytest.raises(StorageError, match=r"report.html does not match its sum"):
        fetch(store, "small", tmp_path / "back")
    store.replace("public/small/SHA256SUMS", b"0" * 64 + b"  ../../key\n")
    with pytest.raises(StorageError, match="is not a list of its files"):
        fetch(store, "small", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_machine_that_was_put_back_in_time_is_refused_and_restored(
    uri: str, place: Place, tmp_path: Path
) -> None:
    store = open_store(uri, "--to")
    place = replace(place, store=store)
    release(place, "one")
    shutil.copytree(place.out, tmp_path / "snapshot")
    release(place, "two")
    after = read_ledger(place.out / "ledger")
    shutil.rmtree(place.out)
    (tmp_path / "snapshot").rename(place.out)
    # By itself the old ledger is in order: only the store knows better.
    assert read_ledger(place.out / "ledger").state.size < after.state.size
    with pytest.raises(LedgerError, match="put back to an older state: dp-release rest"):
        release(place, "three")
    assert read_ledger(place.out / "ledger").state.size < after.state.size
    found = restore(store, place.out)
    assert (found.entries, found.releases) == (2, ("two",))
    assert read_ledger(place.out / "ledger").files == after.files
    assert verify(place.out / "public" / "two", None, Trust(place.out / "ledger")).release_id
    assert sorted(path.name for path in place.out.iterdir()) == ["auditor", "ledger", "public"]
    release(place, "three")
    assert restore(store, place.out).entries == 0


def test_a_fork_of_the_ledger_is_refused(uri: str, place: Place, tmp_path: Path) -> None:
    store = open_store(uri, "--to")
    shutil.copytree(place.out, tmp_path / "fork")
    release(replace(place, store=store), "one")
    fork = Place(tmp_path / "fork", place.key)
    release(fork, "two")
    with pytest.raises(LedgerError, match="does not agree with"):
        check_witness(fork.out / "ledger", store)
    with pytest.raises(LedgerError, match="this ledger is not the beginning of the one there"):
        restore(store, fork.out)
    with pytest.raises(LedgerError):
        deliver_all(replace(fork, store=store))


def test_a_machine_that_was_lost_comes_back_with_a_key_to_trust(
    uri: str, place: Place, tmp_path: Path
) -> None:
    store = open_store(uri, "--to")
    release(replace(place, store=store))
    with pytest.raises(LedgerError, match="say whose to trust"):
        restore(store, tmp_path / "new")
    stranger = create_key(tmp_path / "other").public("example.org/dp")
    with pytest.raises(LedgerError, match="does not sign for its ledger"):
        restore(store, tmp_path / "new", stranger)
    own = read_key(tmp_path / "key").public("example.org/dp")
    assert restore(store, tmp_path / "new", own).releases == ("small",)
    trust = Trust(tmp_path / "new" / "ledger")
    assert verify(tmp_path / "new" / "public" / "small", None, trust).refusal is None


def test_a_failed_delivery_is_made_up_for_by_the_next_run(
    place: Place, s3: str, tmp_path: Path
) -> None:
    store = open_store(f"{s3}/{tmp_path.name}", "--to")
    assert isinstance(store, Objects)
    Cut.left = 3
    with pytest.raises(StorageError):
        release(replace(place, store=cut_off(store)), "one")
    assert (place.out / "public" / "one").is_dir()  # published and charged here, once
    release(replace(place, store=store), "two")
    assert {name.split("/")[0] for name in store.names("public")} == {"one", "two"}
    fetch(store, "one", tmp_path / "back")


def test_what_a_run_left_behind_is_recovered(place: Place) -> None:
    from release.budget.entries import Spent
    from release.budget.ledger import reserve

    assert place.key is not None
    ledger = Ledger(place.out / "ledger", read_key(place.key))
    ledger.append(reserve("tests", "lost", Spent(), "2024-01-02"))
    assert left_behind(place.out) == ("lost",)
    assert recover(place, "lost") == "given up"
    assert left_behind(place.out) == ()
    release(place)
    assert recover(place, "small") == "public"


TABLES = ["readings.parquet", "folder", "folder/*.parquet", "readings.csv", "days"]


@pytest.mark.parametrize("path", TABLES)
def test_tables_are_read_where_they_lie(path: str, s3: str, tmp_path: Path) -> None:
    """The same integers from the store as from this machine: every kind of layout."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    from release.queries.read import read_spec
    from tests.answers import answer, load
    from tests.small import table_of

    table, root = table_of(ROWS), tmp_path / "tables"
    for name in ("folder", "days/day=1", "days/day=2"):
        (root / name).mkdir(parents=True)
    pq.write_table(table, root / "readings.parquet", row_group_size=2)
    pq.write_table(table.slice(0, 4), root / "folder" / "a.parquet")
    pq.write_table(table.slice(4), root / "folder" / "b.parquet")
    pyarrow.csv.write_csv(table, root / "readings.csv")
    for day in (1, 2):
        part = table.slice(4 * (day - 1), 4).drop_columns("day")
        pq.write_table(part, root / f"days/day={day}" / "part-0.parquet")
    store = open_store(f"{s3}/{tmp_path.name}", "--to")
    for file in root.rglob("*.*"):
        if file.is_file():
            store.put(str(file.relative_to(root)), file.read_bytes())
    everything = [
        query("count", by=["place", "day"]),
        query("mode", by=["day"]),
        query("binned", where="day = 1"),
    ]
    found: list[list[list[int]]] = []
    for base in (str(root), f"{s3}/{tmp_path.name}"):
        plain = Small(ROWS, everything).plain(f"{base}/{path}")
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
        spec_file = read_spec(tmp_path / "spec.yaml")
        with load(spec_file) as tables:
            found.append([one.codes.tolist() for one in answer(tables, spec_file)])
    assert found[0] == found[1]
    assert any(any(codes) for codes in found[0])


def spec_with(path: str, folder: Path, **changes: Any) -> Path:
    plain = Small(ROWS, QUERIES).plain(path)
    plain["tables"]["rows"] |= changes
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    return folder / "spec.yaml"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("s3://office/nothing.parquet", r"tables.rows.path: no file 's3://office/nothing.parquet'"),
        ("s3://key:secret@office/rows.parquet", "a path with credentials"),
        ("s3://elsewhere/rows.parquet", "tables.rows.path|the store cannot be read"),
        ("nowhere://office/rows.parquet", "tables.rows.path: nowhere://office/rows.parquet "),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(
    path: str, told: str, s3: str, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match=told) as refused:
        run_release(spec_with(path, tmp_path), tmp_path / "out", options=Options())
    assert "secret@" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_kind_of_store_that_there_is_not_is_refused(tmp_path: Path) -> None:
    for text in ("nowhere://x", "s3:///folder", "https://example.org/x"):
        with pytest.raises(SpecError, match=r"--to: .*cannot be opened as a store; write a folder"):
            open_store(text, "--to")
    with pytest.raises(SpecError, match=r"--to: s3://office has options after '\?'") as refused:
        open_store("s3://office?secret_key=12345", "--to")
    assert "12345" not in str(refused.value)


def test_a_table_in_a_store_that_changes_meanwhile_is_refused(s3: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from release.errors import DataError
    from release.queries.read import read_spec
    from tests.answers import answer, load
    from tests.small import table_of

    store = open_store(f"{s3}/{tmp_path.name}", "--to")
    pq.write_table(table_of(ROWS), tmp_path / "a.parquet")
    pq.write_table(table_of(ROWS[1:]), tmp_path / "b.parquet")
    store.replace("a.parquet", (tmp_path / "a.parquet").read_bytes())
    spec_file = read_spec(spec_with(f"{s3}/{tmp_path.name}/a.parquet", tmp_path))
    with load(spec_file) as tables:
        store.replace("a.parquet", (tmp_path / "b.parquet").read_bytes())
        with pytest.raises(DataError, match="changed while it was read"):
            answer(tables, spec_file)


def test_a_ledger_delivered_in_part_is_a_witness_too(
    uri: str, place: Place, tmp_path: Path
) -> None:
    """Cut off between the entries and their checkpoint, and then put back in time."""
    store = open_store(uri, "--to")
    own = replace(place, store=store)
    release(own, "one")
    shutil.copytree(place.out, tmp_path / "snapshot")
    release(place, "two")
    for number in (3, 4):
        name = f"{number:08}.json"
        store.put(f"ledger/{name}", (place.out / "ledger" / name).read_bytes())
    shutil.rmtree(place.out)
    (tmp_path / "snapshot").rename(place.out)
    for without in (False, True):
        if without:
            delete(store, "ledger/checkpoint")
        with pytest.raises(LedgerError, match=r"00000003.json is not an entry of this ledger"):
            release(own, "three")
    assert len(read_ledger(place.out / "ledger").files) == 3


def test_a_torn_entry_in_a_store_is_found(uri: str, place: Place) -> None:
    store = open_store(uri, "--to")
    release(replace(place, store=store))
    store.replace("ledger/00000001.json", b'{"se')
    with pytest.raises(LedgerError, match=r"00000001.json is not an entry of this ledger"):
        deliver_all(replace(place, store=store))


def test_without_its_ledger_nothing_goes_to_a_store_that_has_one(
    uri: str, place: Place, tmp_path: Path
) -> None:
    store = open_store(uri, "--to")
    release(replace(place, store=store))
    poor = Place(tmp_path / "poor", None, store)
    with pytest.raises(LedgerError, match="nothing would pay for a release"):
        release_period(tmp_path / "spec.yaml", None, Run(poor))
    assert not (tmp_path / "poor").exists()


def test_a_forged_release_is_not_restored(uri: str, place: Place, tmp_path: Path) -> None:
    from dp_release_verify.digests import sha256

    store = open_store(uri, "--to")
    public = release(replace(place, store=store))
    for forged in (b"<h1>forged</h1>", None):
        sums = (public / "SHA256SUMS").read_bytes()
        if forged is None:
            sums = b""
        else:
            store.replace("public/small/report.html", forged)
            old = sha256((public / "report.html").read_bytes())
            sums = sums.replace(old.encode(), sha256(forged).encode())
        store.replace("public/small/SHA256SUMS", sums)
        key = read_key(tmp_path / "key").public("example.org/dp")
        with pytest.raises(ReleaseError):
            restore(store, tmp_path / "new", key)
        assert not (tmp_path / "new" / "public").exists()


def test_what_a_killed_restore_has_left_stops_no_later_one(uri: str, place: Place) -> None:
    store = open_store(uri, "--to")
    release(replace(place, store=store))
    shutil.rmtree(place.out / "public" / "small")
    begun = place.out / ".restored" / "small"
    begun.mkdir(parents=True)
    (begun / "report.html").write_bytes(b"half")
    assert restore_releases(store, place.out) == ("small",)
    assert not (place.out / ".restored").exists()


def test_a_withdrawn_release_is_not_restored(uri: str, place: Place) -> None:
    from release.budget.ledger import withdraw

    store = open_store(uri, "--to")
    own = replace(place, store=store)
    public = release(own)
    assert place.key is not None
    ledger = Ledger(place.out / "ledger", read_key(place.key))
    ledger.append(withdraw("small", "2024-01-01"))
    shutil.rmtree(public)
    assert restore(store, place.out).releases == ()


def test_two_deliveries_at_once_publish_one_whole_release(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins, and ends, when the first is about to rename; the first finds it there."""
    public, store = release(place), open_store(str(tmp_path / "store"), "--to")
    rename = Path.rename
    seen: list[Path] = []

    def second_first(self: Path, target: Path) -> Path:
        if not seen:
            seen.append(self)
            assert deliver(public, store)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_first)
    assert not deliver(public, store)
    assert len(seen) == 1
    fetch(store, "small", tmp_path / "back")
    assert sorted(p.name for p in (tmp_path / "store").iterdir()) == ["public"]


@pytest.mark.parametrize("told", ["another 'small' is there already", "without SHA256SUMS"])
def test_a_delivery_that_finds_its_place_taken_says_by_what(
    told: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another release of this name, or by a folder that is none, before the first can rename."""
    public, store = release(place), open_store(str(tmp_path / "store"), "--to")
    taken = tmp_path / "store" / "public" / "small"
    rename = Path.rename

    def other_first(self: Path, target: Path) -> Path:
        taken.mkdir()
        (taken / ("SHA256SUMS" if "another" in told else "notes")).write_bytes(b"another's")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", other_first)
    with pytest.raises(StorageError, match=told):
        deliver(public, store)
    assert len(list(taken.iterdir())) == 1
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["public"]


def test_a_release_that_comes_between_two_looks_is_there_already(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine renames it into place right after this one has found no sums."""
    public, store = release(place), open_store(str(tmp_path / "store"), "--to")
    read = Folder.read

    def then_delivered(self: Folder, name: str) -> bytes | None:
        result = read(self, name)
        monkeypatch.setattr(Folder, "read", read)
        assert deliver(public, store)
        return result

    monkeypatch.setattr(Folder, "read", then_delivered)
    assert not deliver(public, store)
    fetch(store, "small", tmp_path / "back")


def test_of_two_that_deliver_a_ledger_at_once_the_longer_one_stays(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine delivers a longer one when the first is about to put its checkpoint."""
    uri = (tmp_path / "store").as_uri()
    store = open_store(uri, "--to")
    other, own = place.out / "ledger", tmp_path / "own" / "ledger"
    Ledger(other, read_key(tmp_path / "key")).name_store(uri, "2024-01-01")
    shutil.copytree(other, own)
    replace_file = Path.replace

    def longer_first(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace_file)
        release(place)
        deliver_ledger(other, store)
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", longer_first)
    deliver_ledger(own, store)
    assert len(read_ledger(own).files) == 2
    assert len(read_ledger(other).files) == 4
    assert read_ledger(tmp_path / "store" / "ledger").files == read_ledger(other).files


def test_a_folder_that_is_not_a_release_is_not_taken_for_one(place: Place, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"), "--to")
    release(place)
    (tmp_path / "store" / "public" / "small").mkdir(parents=True)
    with pytest.raises(StorageError, match="is there without SHA256SUMS; remove it"):
        deliver_all(replace(place, store=store))
    (tmp_path / "store" / "public" / "small").rmdir()
    (place.out / "public" / ".DS_Store").write_bytes(b"")
    assert deliver_all(replace(place, store=store)) == ("small",)


@pytest.mark.parametrize("text", ["", " ", "s3://key:secret@bucket/x", "dir://x", "data://x"])
def test_a_place_that_is_none_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(ReleaseError) as refused:
        open_store(text, "--to").read("x")
    assert "secret" not in str(refused.value)


def test_globs_in_a_store_stay_within_a_folder() -> None:
    from release.tables.sources import _matching

    for pattern, yes, no in (
        ("*.parquet", "a.parquet", "old/a.parquet"),
        ("**/*.parquet", "x/y/a.parquet", "a.csv"),
        ("day=?/[ab].parquet", "day=1/b.parquet", "day=12/b.parquet"),
        ("[!a].parquet", "b.parquet", "a.parquet"),
    ):
        assert _matching(pattern).fullmatch(yes), pattern
        assert not _matching(pattern).fullmatch(no), pattern
