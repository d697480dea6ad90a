"""Signing keys in files: PKCS#8 of mode 0600, encrypted or not.

Who may read such a file may sign. So a file that others can read is refused, and the passphrase of
an encrypted one comes from a file of its own, or from a person.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from getpass import getpass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from dp_release_verify.signatures import LONGEST_KEY
from release.errors import SpecError, StorageError
from release.records.files import storage_errors, write_file
from release.records.signing import PublicKey

_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
OPENED_BY = "DP_RELEASE_PASSPHRASE"
"""The variable that names the file with the passphrase of the signing key."""


@dataclass(frozen=True, repr=False)
class FileSigner:
    """A private key in the memory of this process; its representation shows nothing."""

    private: Ed25519PrivateKey

    def __repr__(self) -> str:
        return "FileSigner(secret)"

    def public(self, name: str) -> PublicKey:
        """The public key under the name of a ledger."""
        return PublicKey(name, self.private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The signature of ``message``: 64 bytes, equal for equal messages."""
        return self.private.sign(message)


def create_key(path: Path, passphrase: bytes | None = None) -> FileSigner:
    """Generate a private key in a new file of mode 0600; an existing file is never overwritten.

    With a ``passphrase`` the file is encrypted (PKCS#8, AES-256), and only who has both can sign.

    Raises:
        StorageError: the file exists or cannot be written.
    """
    private = Ed25519PrivateKey.generate()
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    # Looked at before: after a failure nobody can tell whose file it is.
    existed = path.exists()
    try:
        with storage_errors(path, "the key"):
            write_file(path, pem, 0o600)
    except StorageError:
        # A key that was written in part is removed, but never an older file.
        if not existed:
            path.unlink(missing_ok=True)
        raise
    return FileSigner(private)


_PUBLIC = re.compile(rb"[^+\s]+\+[0-9a-f]{8}\+")
"""How a public key begins: name+hash+key."""


def forbidden_mode(path: Path) -> int:
    """The permission bits that the file of a private key may not have."""
    # A systemd credential lies in a folder that only its service can enter. An access list grants
    # the service's user the file, which the mode shows as a permission of the group.
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return 0o037 if folder and path.parent.resolve() == Path(folder).resolve() else 0o077


def read_key_file(path: Path) -> FileSigner:
    """The private key in a file, which may be encrypted: :func:`read_passphrase`.

    Raises:
        SpecError: the file holds no Ed25519 key, or other users may read it; its passphrase is
            not given, or is another one.
    """
    pem = _secret("--key", path, "the file of the signing key")
    passphrase = read_passphrase(path) if _ENCRYPTED in pem else None
    try:
        private = load_pem_private_key(pem, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if passphrase is not None:
            raise SpecError(OPENED_BY, f"it does not open {path}; give that key's own") from error
        raise SpecError(
            "--key", f"{path} is no private key; create one: dp-release ledger key new"
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise SpecError("--key", f"{path} is no Ed25519 key; create one: dp-release ledger key new")
    return FileSigner(private)


def read_passphrase(path: Path) -> bytes:
    """The passphrase of a key file: from the file that the environment names, or asked for.

    The variable holds a path and never the passphrase, because other processes can read it.

    Raises:
        SpecError: nothing names a file and nobody can be asked; others may read that file.
    """
    named = os.environ.get(OPENED_BY)
    if named:
        lines = _secret(OPENED_BY, Path(named), "the file of the passphrase").splitlines()
        if lines and lines[0]:
            return lines[0]
        raise SpecError(OPENED_BY, f"{named} begins with an empty line; write the passphrase there")
    if not sys.stdin.isatty():
        raise SpecError(OPENED_BY, f"name the file that holds the passphrase of {path}")
    return _asked(path)


@cache
def _asked(path: Path) -> bytes:
    """Asked once a process, which reads its key several times."""
    return getpass(f"passphrase of {path}: ").encode()


def new_passphrase(path: Path) -> bytes:
    """The passphrase of a key file to come; on a terminal it is asked for twice.

    Raises:
        SpecError: as :func:`read_passphrase`; it is empty, or was not written twice.
    """
    passphrase = read_passphrase(path)
    if not os.environ.get(OPENED_BY) and getpass("the same again: ").encode() != passphrase:
        raise SpecError("passphrase", "the two differ; begin again")
    if not passphrase:
        raise SpecError("passphrase", "it is empty; leave --encrypt out, or write one")
    return passphrase


def _secret(field: str, path: Path, what: str) -> bytes:
    """The bytes of a short file that nobody else may read."""
    try:
        with path.open("rb") as file:
            # The mode of the file that was opened: under its path another could stand by now.
            mode, data = os.fstat(file.fileno()).st_mode, file.read(LONGEST_KEY + 1)
    except OSError as error:
        raise SpecError(field, f"{path} cannot be read; pass {what}") from error
    if _PUBLIC.match(data):
        raise SpecError(field, f"{path} is a public key; pass {what}")
    if mode & forbidden_mode(path):
        raise SpecError(field, f"others may read {path}; chmod 600 it")
    if len(data) > LONGEST_KEY:
        raise SpecError(field, f"{path} is too long for a key; pass {what}")
    return data
