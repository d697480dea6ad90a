"""``dp-release ledger …``: making, reading and steering a ledger, and the keys that sign for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from release.errors import SpecError
from release.exact.numbers import format_exact, parse_exact

if TYPE_CHECKING:
    from release.budget.ledger import Ledger, Replayed, ScopeCap

app = typer.Typer(
    name="ledger",
    help="Make, read and steer the ledger that releases are charged to.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Out = Annotated[Path, typer.Option("--out", help="The folder that holds the releases.")]
KeyFile = Annotated[
    Path, typer.Option("--key", envvar="DP_RELEASE_KEY", help="The file of the signing key.")
]
Scopes = Annotated[
    list[str],
    typer.Option(
        "--scope",
        help="A scope and its caps: NAME:EPSILON:DELTA, and for each period of a calendar "
        ":day|month|year:EPSILON:DELTA. Give it once for each scope.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


OtherKey = Annotated[
    str, typer.Argument(metavar="KEY", help="The key: its private file, or the public key.")
]

REFUNDED = "given up, refunded"

keys = typer.Typer(
    help="Signing keys: make one, add one to a ledger, retire one.", rich_markup_mode=None
)
app.add_typer(keys, name="key")


@app.command()
def init(
    out: Out,
    key: KeyFile,
    scope: Scopes,
    origin: Annotated[
        str, typer.Option(help="The ledger's name, such as example.org/releases; it never changes.")
    ],
) -> None:
    """Make a ledger in OUT/ledger with the caps of its scopes.

    Example: dp-release ledger init --out out --key k --origin example.org/dp --scope lcl:4:0.01
    """
    from release.budget.ledger import create_ledger
    from release.bundle.publish import LEDGER
    from release.records.signing import PublicKey, SignatureError, read_key

    signer = read_key(key)
    try:
        PublicKey(origin, bytes(32))
    except SignatureError as error:
        raise SpecError("--origin", "write a name without spaces and plus signs") from error
    caps = tuple(parse_cap(text) for text in scope)
    create_ledger(out / LEDGER, signer, origin, caps, _today())
    typer.echo(f"made  {out / LEDGER}")
    typer.echo(f"key   {signer.public(origin)}")
    typer.echo("Give the key to your auditors: dp-release verify … --trust KEY")


@app.command()
def show(
    out: Out,
    as_json: AsJson = False,
    at_delta: Annotated[
        str | None,
        typer.Option(
            help="Show too, as information, the tighter ε at this δ by privacy-loss distributions."
        ),
    ] = None,
) -> None:
    """Show what each scope has spent and may spend, and what became of each release.

    Example: dp-release ledger show --out out --at-delta 0.000001
    """
    ledger = _read(out)
    state = ledger.state
    releases = _releases(ledger)
    tighter = {} if at_delta is None else _tighter(releases, sorted(state.caps), at_delta)
    scopes = [
        {
            "scope": name,
            "spent": {"epsilon": format_exact(spent.epsilon), "delta": format_exact(spent.delta)},
            "cap": cap.model_dump(mode="json"),
        }
        | ({"tighter": tighter[name]} if name in tighter else {})
        for name, cap in sorted(state.caps.items())
        for spent in [state.spent(name)]
    ]
    if as_json:
        plain = {"origin": state.origin, "entries": state.size, "scopes": scopes}
        plain |= {"keys": list(map(str, state.keys)), "releases": releases}
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    typer.echo(f"{state.origin}: {state.size} entries")
    for name, cap in sorted(state.caps.items()):
        spent = state.spent(name)
        typer.echo(
            f"  {name}: ε {format_exact(spent.epsilon)} of {cap.epsilon}, "
            f"δ {format_exact(spent.delta)} of {cap.delta}{_period(cap)}"
        )
        if name in tighter:
            typer.echo(
                f"    for information: at δ {at_delta} all its charges together keep "
                f"ε {tighter[name]['epsilon']} (privacy-loss distributions; not what is enforced)"
            )
    for one in releases:
        typer.echo(
            f"  {one['date']}  {one['release_id']}  {one['scope']}  ε {one['epsilon']}, "
            f"δ {one['delta']}  {one['state']}"
        )


@app.command()
def check(
    out: Out,
    trust: Annotated[
        str | None, typer.Option(help="The curator's public key, or the file that holds it.")
    ] = None,
    since: Annotated[
        Path | None, typer.Option(help="An older checkpoint, to see that nothing was taken back.")
    ] = None,
) -> None:
    """Check every entry, every cap, and that all of it is signed for.

    Example: dp-release ledger check --out out --since kept/checkpoint
    """
    from release.budget.ledger import CHECKPOINT, check_checkpoint, keys_at, read_checkpoint
    from release.bundle.publish import LEDGER
    from release.records.signing import SignatureError, open_note, read_public_key

    ledger = _read(out)
    if trust is not None and (key := read_public_key(trust)) not in keys_at(ledger, 1):
        try:
            open_note(read_checkpoint(out / LEDGER / CHECKPOINT), (key,))
        except SignatureError as error:
            raise SpecError("--trust", "neither began this ledger nor signs for it") from error
    if since is not None:
        check_checkpoint(read_checkpoint(since), ledger)
    typer.echo(f"{ledger.state.origin}: {ledger.state.size} entries follow and are signed for")


@app.command()
def policy(out: Out, key: KeyFile, scope: Scopes) -> None:
    """Set the caps of scopes, new ones or others for old ones.

    Example: dp-release ledger policy --out out --key dp.key --scope lcl:8:0.01:year:4:0.01
    """
    from release.budget.ledger import policy as set_cap

    ledger = _writable(out, key)
    for cap in [parse_cap(text) for text in scope]:
        ledger.append(set_cap(cap, _today()))
        typer.echo(f"{cap.scope}: ε at most {cap.epsilon}, δ at most {cap.delta}{_period(cap)}")


@keys.command("new")
def new_key(
    file: Annotated[Path, typer.Argument(help="The file to make; it must not be there yet.")],
) -> None:
    """Make a signing key: a file of mode 0600. Keep it apart from what you publish.

    Example: dp-release ledger key new ~/dp-release.key
    """
    from release.records.signing import create_key

    create_key(file)
    typer.echo(f"made  {file}  (secret: whoever has it can sign in your name)")


@keys.command("add")
def add_key(out: Out, key: KeyFile, other: OtherKey) -> None:
    """Let another key sign for the ledger too; signed by a key that does already.

    Example: dp-release ledger key add next.key --out out --key dp.key
    """
    _change_key("add", out, key, other)


@keys.command("retire")
def retire_key(out: Out, key: KeyFile, other: OtherKey) -> None:
    """Let a key sign for the ledger no longer; signed by a key that stays.

    Example: dp-release ledger key retire old.key --out out --key dp.key
    """
    _change_key("retire", out, key, other)


def _change_key(action: Literal["add", "retire"], out: Path, key: Path, other: str) -> None:
    from release.budget.ledger import change_key
    from release.records.signing import read_key, read_public_key

    ledger = _writable(out, key)
    origin = _read(out).state.origin
    try:
        is_private = b"PRIVATE" in Path(other).read_bytes()[:100]
    except OSError:
        is_private = False
    public = read_key(Path(other)).public(origin) if is_private else read_public_key(other)
    ledger.append(change_key(action, public, ledger.signer, _today()))
    typer.echo(f"{'added' if action == 'add' else 'retired'}  {public}")


@app.command()
def withdraw(
    release_id: Annotated[str, typer.Argument(help="The id of a public release.")],
    out: Out,
    key: KeyFile,
) -> None:
    """Say in the ledger that a release is taken back. It stays paid for, and its files stay.

    Example: dp-release ledger withdraw ami-2013-01-05 --out out --key dp.key
    """
    from release.budget.ledger import withdraw as take_back

    _writable(out, key).append(take_back(release_id, _today()))
    typer.echo(f"{release_id}: withdrawn; verify refuses it from now on where the ledger is given")


def parse_cap(text: str) -> ScopeCap:
    """``NAME:EPSILON:DELTA`` or ``NAME:EPSILON:DELTA:PERIOD:EPSILON:DELTA``.

    Raises:
        SpecError: another shape.
    """
    from pydantic import ValidationError

    from release.budget.ledger import PeriodCap, ScopeCap

    parts = text.split(":")
    try:
        if len(parts) not in (3, 6):
            raise ValueError("not three or six parts")
        figures = [*parts[1:3], *parts[4:6]]
        epsilons = [format_exact(parse_exact(figure)) for figure in figures]
        period = None
        if len(parts) == 6:
            period = PeriodCap.model_validate(
                {"every": parts[3], "epsilon": epsilons[2], "delta": epsilons[3]}
            )
        return ScopeCap(scope=parts[0], epsilon=epsilons[0], delta=epsilons[1], period=period)
    except (ValueError, ValidationError) as error:
        raise SpecError(
            "--scope", f"found {text!r}; write NAME:EPSILON:DELTA[:day|month|year:EPSILON:DELTA]"
        ) from error


def _period(cap: ScopeCap) -> str:
    if cap.period is None:
        return ""
    return f"; each {cap.period.every} ε {cap.period.epsilon}, δ {cap.period.delta}"


def _tighter(
    releases: list[dict[str, str]], scopes: list[str], at_delta: str
) -> dict[str, dict[str, str]]:
    """The composition of what each scope has been charged, by privacy-loss distributions.

    Raises:
        SpecError: ``at_delta`` is no exact number from 0 to below 1.
    """
    from release.budget.composition import composed_epsilon
    from release.budget.ledger import Spent

    try:
        delta = parse_exact(at_delta)
    except ValueError as error:
        raise SpecError("--at-delta", str(error)) from error
    if not 0 <= delta < 1:
        raise SpecError("--at-delta", f"found {at_delta}; write a number from 0 to below 1")
    found = {}
    for scope in scopes:
        charges = [
            Spent(parse_exact(one["epsilon"]), parse_exact(one["delta"]))
            for one in releases
            if one["scope"] == scope and one["state"] != REFUNDED
        ]
        found[scope] = {"delta": at_delta, "epsilon": f"{composed_epsilon(charges, delta):.6g}"}
    return found


def _releases(ledger: Replayed) -> list[dict[str, str]]:
    """Every reserve, and what became of it."""
    from release.budget.ledger import Abort, Commit, Reserve, Withdraw

    found: list[dict[str, str]] = []
    last: dict[str, dict[str, str]] = {}
    for entry in ledger.entries:
        if isinstance(entry, Reserve):
            one = {name: str(getattr(entry, name)) for name in ("date", "release_id", "scope")}
            one |= {"epsilon": entry.epsilon, "delta": entry.delta, "state": "at work"}
            last[entry.release_id] = one
            found.append(one)
        elif isinstance(entry, Commit):
            last[entry.release_id]["state"] = "public"
        elif isinstance(entry, Abort):
            last[entry.release_id]["state"] = "given up, drawn" if entry.drawn else REFUNDED
        elif isinstance(entry, Withdraw):
            last[entry.release_id]["state"] = "withdrawn"
    return found


def _read(out: Path) -> Replayed:
    from release.budget.ledger import read_ledger
    from release.bundle.publish import LEDGER

    return read_ledger(out / LEDGER)


def _writable(out: Path, key: Path) -> Ledger:
    from release.budget.ledger import Ledger
    from release.bundle.publish import LEDGER
    from release.records.signing import read_key

    return Ledger(out / LEDGER, read_key(key))


def _today() -> str:
    from release.budget.ledger import today

    return today().isoformat()
