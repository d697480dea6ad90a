"""``dp-release ledger …``: creates, shows and changes a ledger and the keys that sign for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo
from release.cli.ledger.changing import day_in_utc, writable
from release.cli.ledger.keys import keys
from release.cli.ledger.rules import Planned, Rules, Scopes, parse_caps, shown_period
from release.cli.ledger.show import read, show
from release.errors import SpecError

app = typer.Typer(
    name="ledger",
    help="Create, show and change the ledger that releases are charged to.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(keys, name="key")
app.command()(show)

Origin = Annotated[
    str, typer.Option(help="The ledger's name, such as example.org/releases; it never changes.")
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="The store in which every entry is put first: a folder, s3://…"),
]
StoreUri = Annotated[str, typer.Argument(metavar="STORE", help="The store: a folder, s3://…")]
LedgerFolder = Annotated[Path, typer.Argument(metavar="LEDGER", help="The folder of the ledger.")]
WitnessName = Annotated[
    str, typer.Option("--name", help="Your name as a witness, such as witness.example/office.")
]
ReleaseId = Annotated[str, typer.Argument(help="The id of a public release.")]


@app.command()
def init(  # noqa: PLR0913 - one parameter for each option
    out: opt.Out,
    key: opt.SigningKey,
    scope: Scopes,
    origin: Origin,
    store: StoreOption = None,
    rule: Rules = None,
    planned: Planned = None,
) -> None:
    """Create a ledger in OUT/ledger with the caps and the rules of its scopes.

    Example: dp-release ledger init --out out --key k --origin example.org/dp --scope lcl:4:0.01

    A year of nights, composed exactly: dp-release ledger init --out out --key k --origin
    example.org/dp --scope lcl:4.7:0.000001 --rule lcl=pld --planned lcl=365xnight:0.05:0
    """
    from dp_release_verify.signatures import SignatureError
    from release.budget.ledger import create_ledger
    from release.bundle.publish import LEDGER
    from release.records.keys.outside import read_key
    from release.records.signing import PublicKey

    signer = read_key(key)
    try:
        # Any key serves: this checks the name alone, before a file is written.
        PublicKey(origin, bytes(32))
    except SignatureError as error:
        raise SpecError("--origin", "write a name without spaces and plus signs") from error
    caps = parse_caps(scope, rule, planned)
    uri = None if store is None else _store_uri(store)
    create_ledger(out / LEDGER, signer, origin, caps, day_in_utc())
    echo(f"created  {out / LEDGER}")
    if uri is not None:
        _name_store(out, key, uri)
    echo(f"key      {signer.public(origin)}")
    echo("Give the key to your auditors: dp-release verify … --trust KEY")


@app.command()
def check(out: opt.Out, trust: opt.CuratorKey = None, since: opt.OlderCheckpoint = None) -> None:
    """Check every entry, every cap and every signature of the ledger.

    Example: dp-release ledger check --out out --since kept/checkpoint
    """
    from dp_release_verify.signatures import SignatureError
    from release.budget.ledger import CHECKPOINT, check_checkpoint, keys_at, read_checkpoint
    from release.bundle.publish import LEDGER
    from release.records.signing import open_note, read_public_key

    # Reading replays the ledger: every entry and its signature are checked in it.
    ledger = read(out)
    if trust is not None and (key := read_public_key(trust)) not in keys_at(ledger, 1):
        # A key that was added later is trusted too, where it signs for the whole ledger.
        try:
            open_note(read_checkpoint(out / LEDGER / CHECKPOINT), (key,))
        except SignatureError as error:
            raise SpecError("--trust", "neither began this ledger nor signs for it") from error
    if since is not None:
        check_checkpoint(read_checkpoint(since), ledger)
    echo(f"{ledger.state.origin}: {ledger.state.size} entries follow and are signed for")


@app.command()
def policy(
    out: opt.Out,
    key: opt.SigningKey,
    scope: Scopes,
    rule: Rules = None,
    planned: Planned = None,
) -> None:
    """Add scopes, or set the caps of those that are there and add charges up.

    The rule of a scope never changes, and of other rules no cap does.

    Example: dp-release ledger policy --out out --key dp.key --scope lcl:8:0.01:year:4:0.01
    """
    from release.budget.ledger import policy as set_cap

    # All texts are read before the first entry: a wrong one must not leave half the change.
    caps = parse_caps(scope, rule, planned)
    ledger = writable(out, key)
    for cap in caps:
        ledger.append(set_cap(cap, day_in_utc()))
        told = "" if cap.rule == "basic" else f", {cap.rule}"
        echo(
            f"{cap.scope}: ε at most {cap.epsilon}, δ at most {cap.delta}{shown_period(cap)}{told}"
        )


@app.command("store")
def name_store(uri: StoreUri, out: opt.Out, key: opt.SigningKey) -> None:
    """Name the store in which every entry is put first, so that several machines can write.

    With the store that the ledger names already, put there what it has lost.

    Example: dp-release ledger store s3://office/releases --out out --key dp.key
    """
    _name_store(out, key, _store_uri(uri))


def _store_uri(text: str) -> str:
    from release.records.stores import is_uri, open_store

    # A path is made a URI, because each copy of the ledger has a working folder of its own.
    uri = text if is_uri(text) else Path(text).absolute().as_uri()
    open_store(uri, "--store")
    return uri.rstrip("/")


def _name_store(out: Path, key: Path, uri: str) -> None:
    from release.budget.ledger import named_store
    from release.bundle.publish import LEDGER
    from release.operate.delivery import deliver_ledger

    ledger = writable(out, key).name_store(uri, day_in_utc())
    store = named_store(ledger)
    if store is not None:
        # A machine that has lost everything restores from there, so the beginning is there too.
        deliver_ledger(out / LEDGER, store)
    echo(f"store    {uri}  (every entry is put there first)")


@app.command()
def cosign(folder: LedgerFolder, key: opt.SigningKey, name: WitnessName) -> None:
    """Sign as a witness, with a key of your own, that this ledger only grew since you last did.

    The line is added to LEDGER/checkpoint. What you signed last is kept beside your key.

    Example: dp-release ledger cosign out/ledger --key witness.key --name witness.example/office
    """
    from release.budget.witness import cosign_ledger
    from release.records.keys.outside import read_key

    witness, size = cosign_ledger(folder, read_key(key), name, key.with_name(f"{key.name}.seen"))
    echo(f"signed   {size} entries")
    echo(f"witness  {witness}")


@app.command()
def withdraw(release_id: ReleaseId, out: opt.Out, key: opt.SigningKey) -> None:
    """Record in the ledger that a release is withdrawn. Its charge and its files stay.

    Example: dp-release ledger withdraw ami-2013-01-05 --out out --key dp.key
    """
    from release.budget.ledger import withdraw as withdrawal

    writable(out, key).append(withdrawal(release_id, day_in_utc()))
    echo(f"{release_id}: withdrawn; verify refuses it from now on where the ledger is given")
