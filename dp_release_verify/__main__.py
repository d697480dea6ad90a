"""The command ``python -m dp_release_verify FOLDER``: verifies a release, and prints a verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dp_release_verify.checks import EVIDENCE, verify
from dp_release_verify.errors import WrongCall
from dp_release_verify.provenance import Trust
from dp_release_verify.signatures import (
    CURATOR,
    WITNESS,
    SignatureError,
    VerifierKey,
    key_text,
    read_key,
)
from dp_release_verify.verdict import WRONG_CALL, Verdict, escaped, worst


def _keys(words: list[str], algorithm: int) -> tuple[VerifierKey, ...]:
    """Each key is its text, or the file that holds it."""
    found = []
    for word in words:
        try:
            found.append(read_key(key_text(word), algorithm))
        except (SignatureError, OSError, ValueError) as error:
            # It may be the secret half, so it is not shown.
            raise WrongCall("--trust, --witness: write name+hint+base64, or its file") from error
    return tuple(found)


def _folders(given: Path) -> list[Path]:
    """The release of a folder, or all releases of an output folder."""
    if (given / "SHA256SUMS").exists():
        return [given]
    public = given / "public" if (given / "public").is_dir() else given
    found = sorted(each.parent for each in public.glob("*/SHA256SUMS"))
    return found or [given]


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="dp-release-verify", description="Verifies releases from their files alone."
    )
    parser.add_argument("folder", type=Path, help="a release, or a folder of releases")
    parser.add_argument("--auditor", type=Path, help="the auditor's folder, if you have it")
    parser.add_argument("--ledger", type=Path, help="the folder of the ledger")
    parser.add_argument("--trust", action="append", default=[], help="a key that you trust")
    parser.add_argument("--witness", action="append", default=[], help="the key of a witness")
    parser.add_argument("--checkpoint", type=Path, help="an older checkpoint that you kept")
    parser.add_argument("--require", choices=EVIDENCE, default="signed")
    parser.add_argument("-v", "--verbose", action="store_true", help="every finding")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    given = parser.parse_args(arguments)
    try:
        for folder in (given.folder, given.auditor, given.ledger):
            if folder is not None and not folder.is_dir():
                raise WrongCall(f"{folder}: no such folder")
        keys, witnesses = _keys(given.trust, CURATOR), _keys(given.witness, WITNESS)
        trust = Trust(keys, witnesses, given.ledger)
        older = None if given.checkpoint is None else given.checkpoint.read_text("utf-8")
    except (WrongCall, OSError, ValueError) as error:
        sys.stderr.write(f"error: {escaped(str(error))}\n")
        return WRONG_CALL
    verdicts = []
    for folder in _folders(given.folder):
        verdicts.append(verify(folder, given.auditor, trust, given.require, older))
    _show(verdicts, as_json=given.json, verbose=given.verbose)
    return worst([verdict.status for verdict in verdicts])


def _show(verdicts: list[Verdict], *, as_json: bool, verbose: bool) -> None:
    if as_json:
        plain = [verdict.plain() for verdict in verdicts]
        text = json.dumps(plain[0] if len(plain) == 1 else plain, ensure_ascii=True, indent=1)
    else:
        text = "\n".join(line for each in verdicts for line in each.lines(verbose=verbose))
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def command() -> None:
    """The command ``dp-release-verify``; ends with the exit status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()
