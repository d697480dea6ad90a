"""Keys that others hold, as a hardware module does: ``--key SCHEME:TEXT`` names one.

The scheme is the name of an entry point of the group ``dp_release.signer``. It is a function from
the text after the colon to a :class:`release.records.signing.Signer`. The private key stays where
it is. What comes back is not trusted: every signature is checked under the public key before it is
used, because a ledger that ends with a wrong one could not be continued.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from dp_release_verify.signatures import SignatureError
from release.errors import LedgerError, SpecError
from release.records.keys.files import read_key_file
from release.records.signing import PublicKey, Signer

GROUP = "dp_release.signer"
# Two letters or more, because one with a colon is a drive of Windows.
_SCHEME = re.compile(r"([a-z][a-z0-9-]+):(.*)", re.DOTALL)


@dataclass(frozen=True, repr=False)
class OutsideSigner:
    """A signer of somebody else's, under the one public key that it named first."""

    scheme: str
    signer: Signer
    raw: bytes

    def __repr__(self) -> str:
        return f"OutsideSigner({self.scheme})"

    def public(self, name: str) -> PublicKey:
        """The public key under the name of a ledger."""
        return PublicKey(name, self.raw)

    def sign(self, message: bytes) -> bytes:
        """The signature of ``message``, checked.

        Raises:
            LedgerError: it did not sign, or signed something else or with another key.
        """
        try:
            signature = self.signer.sign(message)
            self.public("any").verify(signature, message)
        # Whatever a plug-in raises; its text may quote a PIN, so it is not repeated.
        except Exception as error:
            raise LedgerError(
                f"--key {self.scheme}: the signer gave no valid signature; see that it is up"
            ) from error
        return signature


def scheme_of(place: Path) -> tuple[str, str] | None:
    """The scheme and the text of a key that others hold; None of a file."""
    match = _SCHEME.fullmatch(str(place))
    # A file may have a colon in its name.
    return None if match is None or place.exists() else (match[1], match[2])


def read_key(place: Path) -> Signer:
    """The signer that ``--key`` names: a file, or SCHEME:TEXT.

    Raises:
        SpecError: as :func:`read_key_file`; nothing is installed for the scheme, or it has no key.
    """
    outside = scheme_of(place)
    return read_key_file(place) if outside is None else _outside(*outside)


def _outside(scheme: str, text: str) -> OutsideSigner:
    signers = tuple(entry_points(group=GROUP, name=scheme))
    if not signers:
        raise SpecError(
            "--key",
            f"nothing that signs as {scheme!r} is installed; pass the file of a key, or install "
            f"what provides {GROUP}: {scheme}",
        )
    try:
        signer = signers[0].load()(text)
        return OutsideSigner(scheme, signer, signer.public("any").raw)
    except (SpecError, SignatureError):
        raise
    except Exception as error:
        raise SpecError(
            "--key", f"the signer {scheme!r} has no key there; see that it is up"
        ) from error
