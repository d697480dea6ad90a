"""Unforeseen faults at the edge: one line with an identifier, and places without values."""

from __future__ import annotations

import pytest

from release.cli.console import fault_of, guarded
from release.cli.main import main
from release.errors import SpecError

CONFIDENTIAL = "quagzil-17"


def fails(deeper: int) -> int:
    if deeper:
        return fails(deeper - 1)
    try:
        return int(CONFIDENTIAL)
    except ValueError as error:
        raise KeyError(CONFIDENTIAL) from error


def caught(deeper: int) -> Exception:
    try:
        fails(deeper)
    except KeyError as error:
        return error
    raise AssertionError


def test_a_fault_has_an_identifier_and_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: fails(1)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    head, identifier, kind = line.rsplit(" ", 2)
    assert (head, kind) == ("error: internal error", "(KeyError)")
    assert guarded(lambda: fails(1), debug=True) == 1
    told = capsys.readouterr().err
    assert CONFIDENTIAL not in told
    first, *places = told.splitlines()
    assert first.startswith("error: internal error ")
    assert places[0] == "KeyError"
    assert "ValueError" in places
    assert sum(" in fails" in place for place in places) == 3
    assert all(place.startswith("  ") or place.isidentifier() for place in places)
    # The same fault is known again; another one has another identifier.
    assert len(identifier) == 8
    assert fault_of(caught(1)) == fault_of(caught(1)) != fault_of(caught(2))


def test_work_that_no_memory_holds_ends_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: len(bytes(2**62))) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "error: this takes more memory than the system gives; nothing was finished"


def test_an_error_of_ours_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def refuses() -> int:
        raise SpecError("queries", "none")

    assert guarded(refuses, debug=True) == 2
    assert capsys.readouterr().err == "error: queries: none\n"


def test_an_error_of_ours_shows_no_places_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-vv", "plan", "/nowhere/at/all.yaml"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")


def test_twice_verbose_shows_where_a_fault_arose(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from release.operate import doctor

    # A fault that nobody foresaw, for which the product cannot have a way in.
    monkeypatch.setattr(doctor, "examine", lambda *_: fails(1))
    for words, is_shown in ((["doctor"], False), (["doctor", "-vv"], True)):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--out", "/nowhere/at/all"])
        assert ended.value.code == 1
        shown = capsys.readouterr().err
        assert CONFIDENTIAL not in shown
        assert shown.startswith("error: internal error ")
        assert (" in fails" in shown) is is_shown
