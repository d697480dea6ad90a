"""Ledgers and signatures of releases, made by hand for tests of the verifier."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify import canonical, merkle
from dp_release_verify.digests import sha256
from dp_release_verify.signatures import CURATOR, SUMS_WORD, WITNESS, VerifierKey
from tests.verifier.made import seal

ORIGIN = "example.org/dp"
Plain = dict[str, Any]


def private_key(seed: int) -> Ed25519PrivateKey:
    """A key of a test."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(bytes([seed])).digest())


def public_key(key: Ed25519PrivateKey, name: str = ORIGIN, kind: int = CURATOR) -> VerifierKey:
    """Its public half, under a name."""
    return VerifierKey(name, key.public_key().public_bytes_raw(), kind)


def encoded(data: bytes) -> str:
    """Base64."""
    return base64.b64encode(data).decode()


def line(key: Ed25519PrivateKey, message: bytes, name: str = ORIGIN) -> str:
    """A signature line of a curator."""
    hint = public_key(key, name).hint
    return f"— {name} {encoded(hint + key.sign(message))}\n"


def witness_line(key: Ed25519PrivateKey, text: bytes, name: str, seconds: int) -> str:
    """A signature line of a witness."""
    message = f"cosignature/v1\ntime {seconds}\n".encode() + text
    hint = public_key(key, name, WITNESS).hint
    return f"— {name} {encoded(hint + seconds.to_bytes(8, 'big') + key.sign(message))}\n"


@dataclass
class Book:
    """A ledger that grows.

    Attributes:
        folder: where its entries lie.
        key: the key that signs.
        files: the bytes of the entries.
        witnesses: their names and keys.
    """

    folder: Path
    key: Ed25519PrivateKey
    files: list[bytes] = field(default_factory=list)
    witnesses: dict[str, Ed25519PrivateKey] = field(default_factory=dict)

    def add(self, kind: str, **fields: Any) -> Plain:
        """Write an entry."""
        before = sha256(self.files[-1]) if self.files else "0" * 64
        entry = {"seq": len(self.files), "prev": f"sha256:{before}", "date": "2026-11-28"}
        entry |= {"kind": kind, **fields}
        self.files.append(canonical.dumps(entry))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{entry['seq']:08}.json").write_bytes(self.files[-1])
        return entry

    def begin(self, **cap: Any) -> None:
        """The first entry, with one scope."""
        whole = {"scope": "tests", "epsilon": "1000", "delta": "0.9", **cap}
        keys = [str(public_key(self.key))]
        self.add("genesis", origin=ORIGIN, scopes=[whole], keys=keys)

    def checkpoint(self, size: int | None = None) -> str:
        """The signed checkpoint over the first entries."""
        size = len(self.files) if size is None else size
        leaves = [merkle.leaf_hash(data) for data in self.files[:size]]
        text = f"{ORIGIN}\n{size}\n{encoded(merkle.root(leaves))}\n"
        note = f"{text}\n{line(self.key, text.encode())}"
        for name, key in self.witnesses.items():
            note += witness_line(key, text.encode(), name, 1764300000)
        return note

    def sign(self) -> None:
        """Write the checkpoint over all entries."""
        (self.folder / "checkpoint").write_text(self.checkpoint(), "utf-8")

    def proof(self, place: int) -> bytes:
        """That an entry is in the signed tree."""
        leaves = [merkle.leaf_hash(data) for data in self.files]
        lines = ["c2sp.org/tlog-proof@v1", f"extra {encoded(self.files[place])}", f"index {place}"]
        lines += [encoded(each) for each in merkle.inclusion_proof(leaves, place)]
        return "\n".join([*lines, "", self.checkpoint()]).encode()


def record_of(folder: Path) -> Plain:
    """``release.json``."""
    plain: Plain = json.loads((folder / "release.json").read_bytes())
    return plain


def publish(folder: Path, book: Book, **reserve: Any) -> None:
    """Reserve, seal, commit and prove a release; entries go into the ledger."""
    record = record_of(folder)
    name, total = record["asked"]["release"]["id"], record["made"]["total"]
    charge = {"epsilon": total["epsilon"], "delta": total["delta"], "scope": "tests"}
    entry = book.add("reserve", release_id=name, **{**charge, **reserve})
    record["made"]["ledger"] = {"entry": entry["seq"]}
    (folder / "release.json").write_bytes(canonical.dumps(record))
    commit(folder, book)


def commit(folder: Path, book: Book) -> None:
    """Seal a release, and commit it to the ledger."""
    seal(folder)
    sums = (folder / "SHA256SUMS").read_bytes()
    block = line(book.key, SUMS_WORD + sums)
    (folder / "SHA256SUMS.sig").write_text(block, "utf-8")
    name = record_of(folder)["asked"]["release"]["id"]
    entry = book.add("commit", release_id=name, sums=f"sha256:{sha256(sums)}")
    book.sign()
    (folder / "ledger.proof").write_bytes(book.proof(entry["seq"]))
