"""A run is rehearsed from its spec alone: what cannot be published is charged to nobody."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

import release
from dp_release_verify import forms
from release import rehearsal
from release.budget.ledger import Abort, Reserve, ScopeCap, create_ledger, read_ledger
from release.bundle import write
from release.bundle.files.asked import asked_of
from release.cli.report import print_published
from release.errors import ReleaseError, VerificationError
from release.job import Job, Options, Stage
from release.queries.read import read_spec
from release.records.keys.files import create_key
from release.street import decide, run_release
from release.verification.verifier import verify
from tests.sample import ROWS
from tests.small import MARKED, Small, query

T = TypeVar("T")
GLOBAL = {"sensitivity": "global"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a spec, a key and a ledger."""
    Small(MARKED, [query("count", **GLOBAL), query("mode")]).write(tmp_path)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="10000", delta="0.9")
    create_ledger(tmp_path / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    return tmp_path


def entries(place: Path) -> list[str]:
    found = read_ledger(place / "out" / "ledger").entries
    return [entry.kind for entry in found if isinstance(entry, Reserve | Abort)]


@pytest.mark.parametrize("part", ["released_bytes", "datapackage", "made_query", "asked_of"])
def test_a_fault_in_what_is_written_charges_nothing_and_opens_no_table(
    part: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise ValueError("quagzil")

    monkeypatch.setattr(write, part, broken)
    # A file that nothing can open as a table.
    (place / "rows.parquet").write_bytes(b"no table")
    with pytest.raises(ValueError, match="quagzil"):
        run_release(place / "spec.yaml", place / "out", options=Options(key=place / "key"))
    assert entries(place) == []
    assert sorted(path.name for path in (place / "out").iterdir()) == ["ledger"]


def test_what_no_verifier_accepts_charges_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misspelt(spec: Any) -> forms.Asked:
        asked = asked_of(spec)
        return replace(asked, privacy=replace(asked.privacy, unit="nobody"))

    monkeypatch.setattr(write, "asked_of", misspelt)
    # A file that nothing can open as a table.
    (place / "rows.parquet").write_bytes(b"no table")
    with pytest.raises(ReleaseError, match="would not verify, and nothing was read or charged"):
        run_release(place / "spec.yaml", place / "out", options=Options(key=place / "key"))
    assert entries(place) == []


def copied_rehearsal(place: Path, tmp_path: Path) -> Path:
    """The bundles of the rehearsal of a run, which removes them."""
    seen: list[Path] = []

    def perform(stage: Stage, job: Job) -> None:
        if stage.name != "rehearse":
            stage.does(job)
            return
        copies = tmp_path / "copies"

        def kept(path: Path, **_: object) -> None:
            # What is removed at the end of a rehearsal is copied first.
            if path.name == "rehearsal" and path.is_dir() and any(path.iterdir()):
                assert path.stat().st_mode & 0o777 == 0o700
                shutil.copytree(path, copies)
                seen.append(copies)
            removed(path, ignore_errors=True)

        removed = shutil.rmtree
        rehearsal.shutil.rmtree = kept  # type: ignore[attr-defined]
        try:
            stage.does(job)
        finally:
            rehearsal.shutil.rmtree = removed  # type: ignore[attr-defined]

    run_release(place / "spec.yaml", place / "out", perform, options=Options(key=place / "key"))
    (copies,) = seen
    return copies


def test_a_rehearsal_is_private_unsigned_and_no_release(place: Path, tmp_path: Path) -> None:
    copies = copied_rehearsal(place, tmp_path)
    public = copies / "0" / "public"
    record = json.loads((public / "release.json").read_bytes())
    assert (record["kind"], "ledger" in record["made"]) == ("REHEARSAL", False)
    assert not (public / "SHA256SUMS.sig").exists()
    with pytest.raises(VerificationError, match="REHEARSAL"):
        verify(public, copies / "0" / "auditor")
    assert not list((place / "out").glob(".work-*"))


def test_a_large_spec_is_rehearsed_with_fewer_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Small(ROWS, [query("count", by=["place"], **GLOBAL)]).write(tmp_path)
    plain = yaml.safe_load(path.read_text())
    plain["keys"]["place"] = [f"k{number}" for number in range(50)]
    path.write_text(yaml.safe_dump(plain))
    monkeypatch.setattr(rehearsal, "MOST_CELLS", 10)
    sizes: list[int] = []
    before = write.write_release

    def written(spec_file: Any, *arguments: Any, **options: Any) -> None:
        sizes.append(len(spec_file.keys["place"]))
        before(spec_file, *arguments, **options)

    monkeypatch.setattr("release.rehearsal.write_release", written)
    public = run_release(path, tmp_path / "out").public
    assert set(sizes) == {10}
    assert release.open(public)["the_count"].to_pandas().shape[0] == 50


def test_what_is_charged_is_decided_before_a_table_is_opened(place: Path) -> None:
    price = decide(read_spec(place / "spec.yaml"), Options()).price
    public = run_release(place / "spec.yaml", place / "out", options=Options(key=place / "key"))
    record = json.loads((public.public / "release.json").read_bytes())
    assert record["made"]["total"]["epsilon"] == str(price.epsilon)


def test_a_disk_without_room_for_the_draw_is_found_before_the_charge(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ReleaseError, match="No space left"):
        run_release(place / "spec.yaml", place / "out", options=Options(key=place / "key"))
    assert entries(place) == []


def test_an_earlier_run_that_lost_its_draw_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed between the mark and the draw: its charge stays, and the next run says so."""
    child = os.fork()
    if child == 0:

        def perform(stage: Stage, job: Job) -> None:
            if stage.name == "draw":
                job.source = lambda _: os._exit(9)
            stage.does(job)

        run_release(place / "spec.yaml", place / "out", perform, options=Options(key=place / "key"))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    published = run_release(place / "spec.yaml", place / "out", options=Options(key=place / "key"))
    print_published(published, place / "out", as_json=False)
    assert "an earlier run of it was cut off while it drew" in capsys.readouterr().out
    assert entries(place) == ["reserve", "abort", "reserve"]
