"""Keys that others hold: a signer in another process, reached by ``--key SCHEME:TEXT``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.errors import LedgerError, SpecError
from release.records.keys.files import FileSigner, create_key
from release.records.keys.outside import OutsideSigner, read_key, scheme_of
from release.records.signing import PublicKey
from release.verification.evidence import Trust
from release.verification.keys import read_trusted
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.small import Small, query

SEED = bytes(range(32))
OWN = FileSigner(Ed25519PrivateKey.from_private_bytes(SEED))

# The daemon alone has the key: it answers a request of one byte (P or S) and the message.
DAEMON = """
import socket, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(sys.argv[2]))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("up", flush=True)
while True:
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as request:
        kind, message = request.read(1), request.read()
        public = key.public_key().public_bytes_raw()
        connection.sendall(public if kind == b"P" else key.sign(message))
"""

CLIENT = """
import socket
from release.records.signing import PublicKey

class Daemon:
    def __init__(self, path):
        self.path = path

    def ask(self, request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                return answer.read()

    def public(self, name):
        return PublicKey(name, self.ask(b"P"))

    def sign(self, message):
        return self.ask(b"S" + message)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with an installed plug-in ``vault`` and the process that holds its key."""
    installed = tmp_path / "installed"
    metadata = installed / "vault-1.dist-info"
    metadata.mkdir(parents=True)
    (installed / "vault_client.py").write_text(CLIENT)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vault\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[dp_release.signer]\nvault=vault_client:Daemon\n")
    command = [sys.executable, "-c", DAEMON, str(tmp_path / "socket"), SEED.hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"up\n"
        yield tmp_path
        daemon.kill()


def call(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(place / "installed"), str(PROJECT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "release", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=place, env=environment
    )


def test_a_release_is_signed_by_a_key_that_no_file_here_holds(place: Path) -> None:
    rows = [{"unit": f"u{i}", "place": "a", "day": 1, "kind": 1, "wh": 1} for i in range(4)]
    spec = Small(rows, [query("count", by=[], sensitivity="global")]).write(place)
    scope = yaml.safe_load(spec.read_text())["budget"]["scope"]
    key = f"--key=vault:{place / 'socket'}"
    made = call(
        place, "ledger", "init", "--out=out", key, "--origin=a.example/dp", f"--scope={scope}:9:0.1"
    )
    assert made.returncode == 0, made.stderr
    run = call(place, "run", str(spec), "--out=out", key)
    assert run.returncode == 0, run.stderr
    ledger = place / "out" / "ledger"
    trusted = (OWN.public("a.example/dp"),)
    trust = Trust(ledger, keys=read_trusted(map(str, trusted)))
    assert verify(place / "out" / "public" / "small", None, trust).status == 0
    doctor = call(place, "doctor", "--out=out", key, "--drill")
    assert doctor.returncode == 0, doctor.stdout
    assert "rotation: a new key signs" in doctor.stdout
    # The key itself is nowhere: neither as bytes nor as the text of a file.
    for path in place.rglob("*"):
        if path.is_file():
            assert SEED not in path.read_bytes()


def test_a_daemon_that_is_down_costs_nothing_and_is_one_line(place: Path) -> None:
    made = call(
        place, "ledger", "init", "--out=out", "--key=vault:nowhere", "--origin=a.example/dp",
        "--scope=s:9:0",
    )  # fmt: skip
    assert made.returncode == 2
    assert made.stderr == ("error: --key: the signer 'vault' has no key there; see that it is up\n")
    assert not (place / "out").exists()


def test_a_scheme_that_nobody_provides_is_named() -> None:
    with pytest.raises(SpecError, match="nothing that signs as 'hsm' is installed"):
        read_key(Path("hsm:slot=1"))


class _Other:
    """Signs with another key than the one that it names."""

    def public(self, name: str) -> PublicKey:
        return OWN.public(name)

    def sign(self, message: bytes) -> bytes:
        return FileSigner(Ed25519PrivateKey.from_private_bytes(SEED[::-1])).sign(message)


class _Down(_Other):
    def sign(self, message: bytes) -> bytes:
        raise ConnectionError("PIN 1234 was refused")


@pytest.mark.parametrize("signer", [_Other(), _Down()])
def test_what_comes_back_is_checked_before_it_is_used(signer: _Other) -> None:
    outside = OutsideSigner("vault", signer, OWN.public("any").raw)
    with pytest.raises(LedgerError, match="no valid signature") as refusal:
        outside.sign(b"message")
    assert "1234" not in str(refusal.value)


def test_a_file_with_a_colon_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signer = create_key(Path("vault:key"))
    assert scheme_of(Path("vault:key")) is None
    assert read_key(Path("vault:key")).public("n") == signer.public("n")
    assert scheme_of(Path("vault:other")) == ("vault", "other")
    assert scheme_of(Path("C:key")) is None
