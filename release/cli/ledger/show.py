"""What ``dp-release ledger show`` prints: scopes under their rules, and the state of releases."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import options as opt
from release.cli.console import echo, print_json
from release.cli.ledger.rules import shown_period
from release.cli.plan_output import plain_amounts, write_page
from release.errors import SpecError, StorageError
from release.exact.numbers import exact, format_exact, format_up, parse_exact

if TYPE_CHECKING:
    from release.budget.ledger import Account, Replayed
    from release.budget.rules.planned import PlannedAccount

AtDelta = Annotated[
    str | None, typer.Option(help="Also show the ε that all charges of a scope have at this δ.")
]
Picture = Annotated[
    Path | None, typer.Option(help="An SVG file to write: δ at every ε, spent and planned.")
]
PicturedScope = Annotated[
    str | None, typer.Option("--of", help="The scope of the picture, where there are several.")
]

REFUNDED = "given up, refunded"
NO_SCOPE = "-"
CERTIFIED = "certified, for charges fixed in advance"


def show(
    out: opt.Out,
    as_json: opt.AsJson = False,
    at_delta: AtDelta = None,
    html: opt.Html = None,
    picture: Picture = None,
    scope: PicturedScope = None,
) -> None:
    """Show what each scope has spent and may spend by its rule, and the state of each release.

    Example: dp-release ledger show --out out --at-delta 0.000001
    """
    ledger = read(out)
    state, releases = ledger.state, _releases(ledger)
    composed: dict[str, dict[str, str | None]] = {}
    if at_delta is not None:
        sums = [name for name, cap in sorted(state.caps.items()) if cap.rule == "basic"]
        composed = _composed(releases, sums, at_delta)
    # The files come first: where one cannot be written, nothing else is printed.
    _write_pictures(ledger, html, picture, scope)
    if as_json:
        plain = {"origin": state.origin, "entries": state.size, "store": state.store}
        plain |= {"scopes": _plain_scopes(ledger, composed)}
        plain |= {"keys": list(map(str, state.keys)), "releases": releases}
        print_json(plain)
        return
    echo(f"{state.origin}: {state.size} entries")
    if state.store is not None:
        echo(f"  store: {state.store}")
    for name, account in sorted(state.accounts.items()):
        echo(f"  {name}: {_scope_line(account)}")
        if name in composed:
            echo(f"    at δ {at_delta} {_together(composed[name]['epsilon'])}")
    for entry in releases:
        echo(
            f"  {entry['date']}  {entry['release_id']}  {entry['scope']}  ε {entry['epsilon']}, "
            f"δ {entry['delta']}  {entry['state']}"
        )


def read(out: Path) -> Replayed:
    """The ledger of an output folder, every entry checked."""
    from release.budget.ledger import read_ledger
    from release.bundle.publish import LEDGER

    return read_ledger(out / LEDGER)


def _scope_line(account: Account) -> str:
    cap, spent = account.cap, account.spent()
    if cap.rule != "basic":
        return f"{cap.rule}, {account.summary()}\n    left: {account.left()}"
    return (
        f"ε {format_exact(spent.epsilon)} of {cap.epsilon}, "
        f"δ {format_exact(spent.delta)} of {cap.delta}{shown_period(cap)}"
    )


def _plain_scopes(
    ledger: Replayed, composed: dict[str, dict[str, str | None]]
) -> list[dict[str, Any]]:
    from release.budget.rules.planned import PlannedAccount

    scopes = []
    for name, account in sorted(ledger.state.accounts.items()):
        spent, (epsilon, delta) = account.spent(), account.certified()
        plain: dict[str, Any] = {
            "scope": name,
            "rule": account.cap.rule,
            "spent": plain_amounts(spent.epsilon, spent.delta),
            "certified": plain_amounts(epsilon or Fraction(0), delta),
            "left": account.left(),
            "cap": account.cap.model_dump(mode="json", exclude={"planned"}),
        }
        if isinstance(account, PlannedAccount):
            plain |= _plain_plan(account)
        if name in composed:
            plain["composed"] = composed[name]
        scopes.append(plain)
    return scopes


def _plain_plan(account: PlannedAccount) -> dict[str, Any]:
    """The slots of a plan without their profiles, and what all of them amount to."""
    slots = []
    for slot, used in zip(account.plan.slots, account.uses, strict=True):
        slots.append({"name": slot.name, "times": slot.times, "used": used})
    whole = account.planned or Fraction(0)
    return {"slots": slots, "planned": plain_amounts(whole, parse_exact(account.cap.delta))}


def _write_pictures(
    ledger: Replayed, html: Path | None, picture: Path | None, scope: str | None
) -> None:
    from release.cli.ledger import picture as ledger_picture

    if html is not None:
        write_page(html, ledger_picture.ledger_html(ledger))
    if picture is None:
        return
    names = sorted(ledger.state.accounts)
    if scope is None and len(names) == 1:
        scope = names[0]
    if scope not in names:
        raise SpecError("--of", f"name the scope of the picture: {', '.join(names)}")
    try:
        picture.write_text(ledger_picture.scope_svg(ledger, scope), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--picture: cannot be written: {error.strerror}") from error


def _composed(
    releases: list[dict[str, str]], scopes: list[str], at_delta: str
) -> dict[str, dict[str, str | None]]:
    """The exact composition of the charges of each scope, rounded up to six decimal places."""
    from release.budget.ledger import Spent
    from release.budget.spending import composed_epsilon

    delta = exact("--at-delta", at_delta)
    if not delta < 1:
        raise SpecError("--at-delta", f"found {at_delta}; write a number from 0 to below 1")
    charges: defaultdict[str, list[Spent]] = defaultdict(list)
    for entry in releases:
        # A refunded release drew no noise, so nothing of it could be seen.
        if entry["state"] != REFUNDED:
            charge = Spent(parse_exact(entry["epsilon"]), parse_exact(entry["delta"]))
            charges[entry["scope"]].append(charge)
    composed: dict[str, dict[str, str | None]] = {}
    for scope in scopes:
        epsilon = composed_epsilon(charges[scope], delta)
        shown = None if epsilon is None else format_up(epsilon, 6)
        composed[scope] = {"delta": at_delta, "epsilon": shown, "basis": CERTIFIED}
    return composed


def _together(epsilon: str | None) -> str:
    if epsilon is None:
        return "no ε holds for all its charges together: they fail with a larger δ"
    return (
        f"all its charges together satisfy ε {epsilon} ({CERTIFIED}; the sum is what is enforced)"
    )


def _releases(ledger: Replayed) -> list[dict[str, str]]:
    """Every reserved charge and every skip, oldest first, and the state of the release."""
    from release.budget.ledger import Abort, Commit, Reserve, Revise, Skip, Withdraw

    releases: list[dict[str, str]] = []
    latest: dict[str, dict[str, str]] = {}
    for entry in ledger.entries:
        if isinstance(entry, Reserve):
            release = {"date": entry.date, "release_id": entry.release_id, "scope": entry.scope}
            release |= {"epsilon": entry.epsilon, "delta": entry.delta, "state": "at work"}
            # An id can be reserved again after an abort: later entries mean the latest charge.
            latest[entry.release_id] = release
            releases.append(release)
        elif isinstance(entry, Commit):
            latest[entry.release_id]["state"] = "public"
        elif isinstance(entry, Abort):
            latest[entry.release_id]["state"] = "given up, drawn" if entry.drawn else REFUNDED
        elif isinstance(entry, Withdraw):
            latest[entry.release_id]["state"] = "withdrawn"
        elif isinstance(entry, Revise):
            latest[entry.release_id]["state"] = f"revised by {entry.by}: {entry.reason}"
        elif isinstance(entry, Skip):
            skipped = {"date": entry.date, "release_id": entry.release_id, "scope": NO_SCOPE}
            skipped |= {"epsilon": "0", "delta": "0", "state": f"skipped: {entry.reason}"}
            releases.append(skipped)
    return releases
