"""How far a release is vouched for: a store that the ledger names, and witnesses that saw it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.cli.main import main
from tests.small import Row, Small, query
from tests.stores import s3_server

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]


@dataclass(frozen=True)
class Office:
    """A folder with keys, a ledger that names a store, and a release."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def dp(self, *words: str | Path) -> tuple[int, str]:
        """A command: its status, and all that it printed."""
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, words)))
        shown = self.capsys.readouterr()
        assert "internal" not in shown.err
        return int(ended.value.code or 0), shown.out + shown.err

    def done(self, *words: str | Path) -> str:
        """A command that succeeds."""
        status, told = self.dp(*words)
        assert status == 0, told
        return told

    @property
    def public(self) -> Path:
        """The release."""
        return self.folder / "out" / "public" / "small"

    def verified(self, *more: str | Path) -> tuple[int, str]:
        """The status of a verification with the curator's key and the ledger, and its text."""
        ledger = self.folder / "out" / "ledger"
        key = ("--trust", self.folder / "curator")
        return self.dp("verify", self.public, *key, "--ledger", ledger, *more)


@pytest.fixture
def office(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Office:
    return opened(tmp_path, capsys, str(tmp_path / "store"))


def opened(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> Office:
    made = Office(tmp_path, capsys)
    out, key = tmp_path / "out", tmp_path / "key"
    spec = Small(ROWS, [query("count", sensitivity="global", by=[])]).write(tmp_path)
    made.done("ledger", "key", "new", key)
    words = ("--out", out, "--key", key, "--origin", "example.org/dp", "--scope", "tests:9:0")
    told = made.done("ledger", "init", *words, "--store", store)
    (public,) = re.findall(r"^key +(\S+)$", told, re.MULTILINE)
    (tmp_path / "curator").write_text(public, "utf-8")
    made.done("run", spec, "--out", out, "--key", key)
    return made


def test_a_named_store_has_to_agree_with_the_ledger(office: Office) -> None:
    status, told = office.verified("--require", "paid")
    assert (status, "verified (paid)" in told) == (0, True)
    assert re.search(r"^  - provenance\.store: .* holds the entries of the ledger", told, re.M)
    # The same ledger, but for its last entry, was put in the store by another machine.
    claims = sorted((office.folder / "store" / "ledger").glob("*.entry"))
    last = claims[-1].read_bytes()
    claims[-1].write_bytes(last.replace(b'"kind":"commit"', b'"kind":"abort" '))
    status, told = office.verified("--json")
    plain = json.loads(told.splitlines()[0])
    assert (status, plain["identifier"]) == (1, "provenance.store")
    claims[-1].unlink()
    status, told = office.verified("--require", "paid")
    assert (status, "verified (paid)" in told) == (3, False)
    assert "it lacks the last entry" in told


def test_a_store_that_does_not_answer_is_missed_where_payment_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server(monkeypatch) as store:
        office = opened(tmp_path, capsys, f"{store}/{tmp_path.name}")
        assert office.verified("--require", "paid")[0] == 0
    # The server is gone.
    for asked, expected in (("paid", 3), ("signed", 0), ("none", 0)):
        status, told = office.verified("--require", asked)
        assert status == expected, told
        assert "(signed)" in told
        assert "whether the ledger's store has the same entries: it cannot be read" in told


def test_the_store_of_an_untrusted_ledger_is_not_looked_up(office: Office) -> None:
    shutil.rmtree(office.folder / "store")
    ledger = office.folder / "out" / "ledger"
    told = office.done("verify", office.public, "--ledger", ledger, "--require", "none")
    assert "its address is of a ledger that no trusted key vouches for" in told
    assert "(unsigned)" in told


def test_a_trusted_witness_makes_a_release_witnessed(office: Office) -> None:
    ledger, key = office.folder / "out" / "ledger", office.folder / "witness.key"
    office.done("ledger", "key", "new", key)
    named = ("--key", key, "--name", "witness.example/office")
    told = office.done("ledger", "cosign", ledger, *named)
    (witness,) = re.findall(r"(witness\.example/office\+\S+)", told)
    assert office.verified("--require", "witnessed")[0] == 3
    status, told = office.verified("--require", "witnessed", "--witness", witness)
    assert (status, "verified (witnessed)" in told) == (0, True), told
    assert re.search(r"witness\.example/office saw the ledger of [0-9]+ entries on 20", told)
    # Without the ledger nothing shows that the release was paid for.
    alone = ("--trust", office.folder / "curator", "--witness", witness)
    assert office.dp("verify", office.public, *alone, "--require", "witnessed")[0] == 3
    # A line that the witness did not sign is refused.
    checkpoint = ledger / "checkpoint"
    text = checkpoint.read_text("utf-8")
    line = next(line for line in text.splitlines() if "witness.example" in line)
    other = line[:-4] + ("AAA=" if not line.endswith("AAA=") else "BBB=")
    checkpoint.write_text(text.replace(line, other), "utf-8")
    status, told = office.verified("--witness", witness)
    assert status == 1
    assert "checkpoint" in told
