"""``dp-release ledger key …``: creates signing keys, and adds them to a ledger or retires them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from release.cli import options as opt
from release.cli.console import echo
from release.cli.ledger.changing import day_in_utc, writable
from release.cli.ledger.show import read

keys = typer.Typer(
    help="Signing keys: create one, add one to a ledger, retire one.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

NewKeyFile = Annotated[Path, typer.Argument(help="The file to create; it must not exist yet.")]

Encrypt = Annotated[
    bool,
    typer.Option(
        "--encrypt", help="Encrypt it: the passphrase is asked for, or $DP_RELEASE_PASSPHRASE's."
    ),
]

SubjectKey = Annotated[
    str, typer.Argument(metavar="KEY", help="The key: its private file, or the public key.")
]


@keys.command("new")
def new_key(file: NewKeyFile, encrypt: Encrypt = False) -> None:
    """Create a signing key: a file of mode 0600. Store it apart from what you publish.

    Example: dp-release ledger key new ~/dp-release.key
    """
    from release.records.keys.files import create_key, new_passphrase

    create_key(file, new_passphrase(file) if encrypt else None)
    echo(f"created  {file}  (secret: whoever has it can sign in your name)")


@keys.command("add")
def add_key(out: opt.Out, key: opt.SigningKey, subject: SubjectKey) -> None:
    """Add a key to those that sign for the ledger; signed by a key that already does.

    Example: dp-release ledger key add next.key --out out --key dp.key
    """
    _change_key("add", out, key, subject)


@keys.command("retire")
def retire_key(out: opt.Out, key: opt.SigningKey, subject: SubjectKey) -> None:
    """Remove a key from those that sign for the ledger; signed by a key that stays.

    Example: dp-release ledger key retire old.key --out out --key dp.key
    """
    _change_key("retire", out, key, subject)


def _change_key(action: Literal["add", "retire"], out: Path, key: Path, subject: str) -> None:
    from release.budget.ledger import change_key
    from release.records.keys.outside import read_key
    from release.records.signing import read_public_key

    ledger = writable(out, key)
    # A public key carries the origin in its text, a private one only its own bytes.
    origin = read(out).state.origin
    try:
        is_private = b"PRIVATE" in Path(subject).read_bytes()[:100]
    except OSError:
        # The text of a public key is no path, and may be too long for one.
        is_private = False
    public = read_key(Path(subject)).public(origin) if is_private else read_public_key(subject)
    ledger.append(change_key(action, public, ledger.signer, day_in_utc()))
    echo(f"{'added' if action == 'add' else 'retired'}  {public}")
