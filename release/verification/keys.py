"""The keys that an auditor trusts, from their texts or from files that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dp_release_verify.signatures import (
    CURATOR,
    WITNESS,
    SignatureError,
    VerifierKey,
    key_text,
    read_key,
)
from release.errors import SpecError


def read_trusted(words: Iterable[str]) -> tuple[VerifierKey, ...]:
    """The keys of curators.

    Raises:
        SpecError: a word is neither a key nor a file that holds one.
    """
    return _keys("--trust", words, CURATOR)


def read_witnesses(words: Iterable[str]) -> tuple[VerifierKey, ...]:
    """The keys of witnesses.

    Raises:
        SpecError: as :func:`read_trusted`.
    """
    return _keys("--witness", words, WITNESS)


def _keys(field: str, words: Iterable[str], algorithm: int) -> tuple[VerifierKey, ...]:
    keys = []
    for word in words:
        try:
            keys.append(read_key(key_text(word), algorithm))
        except (SignatureError, OSError, ValueError) as error:
            # It may be the secret half, so it is not shown.
            if _is_secret(word):
                raise SpecError(field, "this is a secret key; give its public half") from None
            raise SpecError(field, "write name+hash+key, or the file that holds it") from error
    return tuple(keys)


def _is_secret(word: str) -> bool:
    """Whether it is a private key, or the file of one."""
    with suppress(OSError, ValueError):
        word = Path(word).read_bytes()[:1000].decode("ascii", "replace")
    return "PRIVATE KEY" in word
