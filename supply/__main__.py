"""The commands of the supply: ``python -m supply lock|pins|environment|sbom|verifier``.

``lock`` makes the locks anew. The others read a lock: ``pins`` prints what pip installs for some
extras, ``environment`` the text whose SHA-256 a release names, ``sbom`` a bill of materials.
``verifier`` writes the verifier as one file, and prints its SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from supply.locks import LockError, entries, environment, read, running, select
from supply.one_file import verifier_file


def main() -> int:
    """Run one command; the status is 1 where it fails."""
    parser = argparse.ArgumentParser(prog="python -m supply", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lock").add_argument("--upgrade", action="store_true")
    commands.add_parser("verifier").add_argument("file", type=Path)
    for name in ("pins", "environment", "sbom"):
        command = commands.add_parser(name)
        command.add_argument("--python", default=running(), help="3.11, 3.12 or 3.13")
        command.add_argument("extras", nargs="*", help="beside the core")
    given = parser.parse_args()
    try:
        sys.stdout.write(_output(given))
    except LockError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _output(given: argparse.Namespace) -> str:
    if given.command == "lock":
        from supply.make import make_locks

        make_locks(upgrade=given.upgrade)
        return ""
    if given.command == "verifier":
        data = verifier_file(Path(__file__).parent.parent)
        given.file.parent.mkdir(parents=True, exist_ok=True)
        given.file.write_bytes(data)
        return f"{hashlib.sha256(data).hexdigest()}  {given.file}\n"
    pins = select(read(given.python), given.extras)
    if given.command == "pins":
        return entries(pins)
    if given.command == "environment":
        return environment(pins)
    # Only this one needs what the locks themselves install.
    from supply.sbom import bill

    return bill(given.python, given.extras, pins)


if __name__ == "__main__":
    sys.exit(main())
