"""``dp-release demo``: a signed release of the samples in a new folder, and where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_main import run


def test_the_demo_publishes_a_release_that_verifies(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    status, printed, _ = run(capsys, "demo", "--out", folder)
    assert status == 0
    assert "ami-2013-01-05   VERIFIED   exit 0" in printed.splitlines()
    places = dict(line.split(None, 1) for line in printed.splitlines()[-5:])
    assert Path(places["report"]).is_file()
    for word in ("check", "next"):
        command, *arguments = places[word].split()
        assert command == "dp-release"
        assert run(capsys, *arguments)[0] == 0
    # The key lies beside the folder that is handed on, and not in it.
    assert run(capsys, "doctor", "--out", folder / "out", "--key", folder / "demo.key")[0] == 0


def test_the_demo_changes_no_folder_that_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("mine", "utf-8")
    status, _, errors = run(capsys, "demo", "--out", tmp_path)
    assert (status, errors) == (2, f"error: --out: {tmp_path} is not empty; name a new folder\n")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
