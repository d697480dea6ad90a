"""The draw of an interrupted run: rendered again it is the release that the run would have made."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dp_release_verify.digests import PROOF, SIGNATURE, SUMS
from dp_release_verify.verdict import REFUSED, VERIFIED
from release.budget.ledger import Abort, Commit, Reserve, ScopeCap, create_ledger, read_ledger
from release.bundle import drawn, publish, write
from release.bundle.drawn import Draw, decoded, encoded
from release.bundle.files.keys import keys_of
from release.errors import LedgerError, ReleaseError, SpecError
from release.exact.domain import Codes
from release.job import Job, Options, Stage, auditor_bundle
from release.operate.operations import Place, abandon, recover, verify_each
from release.records.keys.files import create_key
from release.street import run_release
from release.verification.verifier import own_trust, verify
from tests.small import MARKED, MARKS, Row, Small, query
from tests.tabulated import random_release

T = TypeVar("T")

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": i % 9}
    for i in range(20)
]
SIGNED = {SIGNATURE, PROOF, SUMS}
"""What is written after a release is staged."""

EVERY = [
    query("count", sensitivity="global"),
    query("count", sensitivity="global", name="again"),
    query("mode"),
    query("binned", sensitivity="global", mechanism="channel"),
    query("mode", sensitivity="global", noise="on_statistic", name="commonest"),
    query("binned", sensitivity="global", noise="on_statistic", name="total"),
]


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """The mode and the bytes of each file."""
    files = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in SIGNED:
            files[str(path.relative_to(folder))] = (path.stat().st_mode, path.read_bytes())
    return files


def rendered_again(spec: Path, place: Path, key: Path | None = None) -> None:
    """A run whose draw is also rendered from the working folder alone; both are equal."""
    again = place / "again"

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "bundle":
            work = next((place / "out").glob(".work-*"))
            assert (work / "drawn").stat().st_mode & 0o777 == 0o600
            Draw.read(work / "prepared", work / "drawn").write(again)
        stage.does(job)

    public = run_release(spec, place / "out", perform, options=Options(key=key)).public
    assert tree(public) == tree(again / "public")
    auditor = auditor_bundle(public)
    assert (auditor is not None) == (again / "auditor").exists()
    if auditor is not None:
        assert tree(auditor) == tree(again / "auditor")


def test_every_kind_of_mechanism_is_rendered_alike(tmp_path: Path) -> None:
    spec = Small(ROWS, EVERY).write(tmp_path)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="10000", delta="0.9")
    create_ledger(tmp_path / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    rendered_again(spec, tmp_path, tmp_path / "key")


def test_a_shared_budget_is_rendered_alike(tmp_path: Path) -> None:
    small = Small(ROWS, [query("count", sensitivity="global")], budget=("2", "0.000001"))
    spec = small.write(tmp_path)
    plain = yaml.safe_load(spec.read_text())
    own = plain["queries"][0]
    del own["guarantee"]
    own |= {"share": 1, "loss": "absolute"}
    plain["queries"].append({**own, "name": "other", "share": 2})
    spec.write_text(json.dumps(plain))
    rendered_again(spec, tmp_path)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_tabulation_is_rendered_alike(seed: int, tmp_path: Path) -> None:
    rendered_again(random_release(seed).write(tmp_path), tmp_path)


shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3)
arrays = shapes.flatmap(
    lambda shape: st.lists(
        st.integers(-(2**63), 2**63 - 1),
        min_size=int(np.prod(shape)),
        max_size=int(np.prod(shape)),
    ).map(lambda codes: np.array(codes, dtype=np.int64).reshape(shape))
)


@given(st.lists(arrays, max_size=4))
def test_codes_are_read_as_they_were_written(noisy: list[Codes]) -> None:
    again = decoded(encoded(noisy))
    assert [codes.shape for codes in again] == [codes.shape for codes in noisy]
    assert all(np.array_equal(*pair) for pair in zip(again, noisy, strict=True))


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int) -> None:
    data = bytearray(encoded([np.arange(5), np.zeros((2, 2), dtype=np.int64)]))
    data[place % len(data)] ^= change
    with pytest.raises(ValueError, match="damaged"):
        decoded(bytes(data))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a spec, a key and a ledger."""
    Small(MARKED, [query("count", by=[]), query("mode", by=[])]).write(tmp_path)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="10000", delta="0.9")
    create_ledger(tmp_path / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    return tmp_path


def release(place: Path, before_publish: Callable[[], None] = lambda: None) -> Path:
    """A run; ``before_publish`` is called once all is charged and drawn, and nothing is written."""

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "bundle":
            before_publish()
        stage.does(job)

    options = Options(key=place / "key")
    return run_release(place / "spec.yaml", place / "out", perform, options=options).public


def cut_off(place: Path) -> tuple[Codes, ...]:
    """Kill a run while it renders; what it has drawn."""
    child = os.fork()
    if child == 0:

        def die() -> None:
            write.datapackage = lambda *_: os._exit(9)  # type: ignore[attr-defined]

        release(place, die)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    return decoded((work_of(place) / "drawn").read_bytes())


def work_of(place: Path) -> Path:
    return place / "out" / ".work-small"


def kinds(place: Path) -> list[str]:
    """What the ledger says, without its beginning."""
    told: list[str] = []
    for entry in read_ledger(place / "out" / "ledger").entries:
        if isinstance(entry, Reserve | Commit):
            told.append(entry.kind)
        elif isinstance(entry, Abort):
            told.append("drawn" if entry.drawn else "refunded")
    return told


def published(public: Path, name: str) -> list[int]:
    codes: list[int] = pq.read_table(public / "data" / f"{name}.parquet")["answer_code"].to_pylist()
    return codes


def check_published(place: Path, noisy: tuple[Codes, ...]) -> None:
    """The numbers that were drawn are public, paid for once, and verify."""
    public = place / "out" / "public" / "small"
    for name, codes in zip(("the_count", "the_mode"), noisy, strict=True):
        assert published(public, name) == codes.ravel().tolist()
    assert kinds(place) == ["reserve", "commit"]
    assert verify(public, auditor_bundle(public), own_trust(place / "out" / "ledger")).status == 0
    assert not work_of(place).exists()


def test_the_next_run_publishes_what_was_drawn_and_reads_no_table(place: Path) -> None:
    noisy = cut_off(place)
    (place / "rows.parquet").unlink()
    release(place)
    check_published(place, noisy)


def test_recover_publishes_what_was_drawn(place: Path) -> None:
    noisy = cut_off(place)
    (place / "rows.parquet").unlink()
    assert recover(Place(place / "out", place / "key"), "small") == "published"
    check_published(place, noisy)


def test_a_full_disk_keeps_the_draw(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        with pytest.raises(ReleaseError, match="No space left"):
            release(place, lambda: patch.setattr(write, "datapackage", full))
        noisy = decoded((work_of(place) / "drawn").read_bytes())
        # Neither rows nor half a bundle wait for the next run.
        assert not (work_of(place) / "scratch").exists()
        assert not (work_of(place) / "part").exists()
        with pytest.raises(ReleaseError, match="No space left"):
            recover(Place(place / "out", place / "key"), "small")
    release(place)
    check_published(place, noisy)


def test_nothing_confidential_is_kept(place: Path) -> None:
    cut_off(place)
    kept = [work_of(place) / "drawn", *(work_of(place) / "prepared").rglob("*")]
    for path in kept:
        if path.is_file():
            assert not any(mark in path.read_bytes() for mark in MARKS), path
    assert work_of(place).stat().st_mode & 0o777 == 0o700


def cut_in_half(place: Path) -> None:
    path = work_of(place) / "drawn"
    path.write_bytes(path.read_bytes()[:-3])


def changed_mechanism(place: Path) -> None:
    path = next((work_of(place) / "prepared" / "auditor").rglob("*.json"))
    path.write_bytes(path.read_bytes() + b" ")


def lost_mechanisms(place: Path) -> None:
    shutil.rmtree(work_of(place) / "prepared")


def other_entry(place: Path) -> None:
    path = work_of(place) / "prepared" / drawn.RECORD
    path.write_bytes(path.read_bytes().replace(b'"sequence":1', b'"sequence":2'))


@pytest.mark.parametrize(
    "change",
    [cut_in_half, changed_mechanism, lost_mechanisms, other_entry],
)
def test_a_draw_that_does_not_fit_is_given_up_and_paid(
    change: Callable[[Path], None], place: Path
) -> None:
    cut_off(place)
    change(place)
    release(place)
    assert kinds(place) == ["reserve", "drawn", "reserve", "commit"]
    assert not work_of(place).exists()


def test_a_draw_is_published_for_the_spec_that_it_was_drawn_for(place: Path) -> None:
    noisy = cut_off(place)
    spec = place / "spec.yaml"
    spec.write_text(spec.read_text().replace("title: Small", "title: Other"))
    with pytest.raises(SpecError, match="has now been published; take a new id"):
        release(place)
    check_published(place, noisy)
    public = place / "out" / "public" / "small"
    assert "title: Small" in (public / "spec.yaml").read_text()


def test_a_later_version_publishes_what_an_earlier_one_has_drawn(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = cut_off(place)
    monkeypatch.setattr(drawn, "VERSION", "99.0")
    release(place)
    check_published(place, noisy)


def test_what_this_version_cannot_write_waits_for_one_that_can(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = cut_off(place)
    with monkeypatch.context() as patch:
        patch.setattr(write, "datapackage", lambda *_: 1 // 0)
        for _ in range(2):
            with pytest.raises(ReleaseError, match="its draw stays"):
                release(place)
    assert kinds(place) == ["reserve"]
    release(place)
    check_published(place, noisy)


def test_what_does_not_verify_is_not_committed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = cut_off(place)
    with monkeypatch.context() as patch:
        honest = keys_of
        patch.setattr(write, "keys_of", lambda *of: replace(honest(*of), keys={"place": ["x"]}))
        with pytest.raises(ReleaseError, match=r"keys\.json"):
            release(place)
    assert kinds(place) == ["reserve"]
    assert not (place / "out" / "public").exists()
    release(place)
    check_published(place, noisy)


def test_what_cannot_be_written_is_given_up_on_request(place: Path) -> None:
    cut_off(place)
    assert abandon(Place(place / "out", place / "key"), "small")
    assert kinds(place) == ["reserve", "drawn"]
    assert not work_of(place).exists()


def test_what_is_committed_is_not_given_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(publish, "ledger_proof", full)
        with pytest.raises(ReleaseError):
            release(place)
    assert kinds(place) == ["reserve", "commit"]
    with pytest.raises(LedgerError, match="is committed in the ledger"):
        abandon(Place(place / "out", place / "key"), "small")
    assert recover(Place(place / "out", place / "key"), "small") == "published"


def test_a_copy_under_another_name_does_not_pass_for_another_release(place: Path) -> None:
    public = release(place)
    shutil.copytree(public, public.parent / "newer")
    newer, small = verify_each(place / "out")
    assert (small.release_id, small.status) == ("small", VERIFIED)
    assert newer.status == REFUSED
    assert newer.words == "REFUSED: the folder holds the release small"


def test_a_page_that_fails_becomes_a_plain_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = release(place, lambda: monkeypatch.setattr(write, "report_html", lambda *_: 1 // 0))
    page = (public / "report.html").read_text("utf-8")
    assert "<h2>the_count</h2>" in page
    assert f"<td>{published(public, 'the_count')[0]}</td>" in page
    assert kinds(place) == ["reserve", "commit"]


def test_other_key_sets_are_another_spec(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("place\na\nb\n")
    spec = Small(ROWS, [query("count", sensitivity="global")]).write(tmp_path)
    plain = yaml.safe_load(spec.read_text())
    plain["keys"]["place"] = {"file": "places.csv"}
    spec.write_text(json.dumps(plain))

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "bundle":
            work = tmp_path / "out" / ".work-small"
            draw = Draw.read(work / "prepared", work / "drawn")
            (tmp_path / "places.csv").write_text("place\na\nc\n")
            with pytest.raises(SpecError, match="put it back as it was"):
                draw.write(tmp_path / "again")
            (tmp_path / "places.csv").write_text("place\na\nb\n")
        stage.does(job)

    run_release(spec, tmp_path / "out", perform)
