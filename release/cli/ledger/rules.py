"""The rules of scopes on the command line: ``--scope``, ``--rule`` and ``--planned``.

A scope is NAME:EPSILON:DELTA. Its rule is ``basic`` unless ``--rule NAME=…`` says otherwise, and
the slots of a plan are given by ``--planned NAME=…``, in the order of preference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli.plan_output import plain_amounts
from release.errors import SpecError
from release.exact.numbers import format_exact, parse_exact

if TYPE_CHECKING:
    from release.budget.ledger import ScopeCap

Scopes = Annotated[
    list[str],
    typer.Option(
        "--scope",
        help="A scope and its caps: NAME:EPSILON:DELTA, and for each period of a calendar "
        ":day|month|year:EPSILON:DELTA. Give it once for each scope.",
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="How the releases of a scope compose, for ever: NAME=pld, exactly within a plan, or "
        "NAME=renyi_filter:ORDER[:CUTS], chosen as one goes; without it they add up. CUTS is "
        "the part of δ for what moments leave out, by default a thousandth.",
    ),
]
Planned = Annotated[
    list[str] | None,
    typer.Option(
        "--planned",
        help="A slot of a plan: NAME=TIMESxSLOT:EPSILON:DELTA, with :declared at its end for "
        "instance-specific releases, or NAME=TIMESxSLOT@FILE with a privacy profile. Give it "
        "once for each slot; a release takes the first free one that it fits.",
    ),
]

_SLOT = re.compile(
    r"(?P<times>[1-9][0-9]{0,5})x(?P<name>[^:@]+)"
    r"(?:@(?P<file>.+)|:(?P<epsilon>[^:]+):(?P<delta>[^:]+)(?P<declared>:declared)?)"
)
_CUTS = Fraction(1, 1000)
"""The share of δ that a filter keeps for cuts unless told otherwise."""


def parse_caps(
    scopes: Sequence[str], rules: Sequence[str] | None, planned: Sequence[str] | None
) -> tuple[ScopeCap, ...]:
    """The caps of scopes by the three options.

    Raises:
        SpecError: another shape, a rule or a slot of a scope that is not named, or a plan without
            its rule.
        StorageError: the file of a profile cannot be read.
    """
    named = [text.partition(":")[0] for text in scopes]
    by_scope: dict[str, str] = {}
    for text in rules or ():
        scope, rule = _assigned("--rule", text, named)
        if by_scope.setdefault(scope, rule) != rule:
            raise SpecError("--rule", f"scope {scope!r} has two rules; a scope has one for ever")
    slots: dict[str, list[dict[str, Any]]] = {}
    for text in planned or ():
        scope, slot = _assigned("--planned", text, named)
        if by_scope.get(scope) != "pld":
            raise SpecError("--planned", f"scope {scope!r} has no plan; add --rule {scope}=pld")
        slots.setdefault(scope, []).append(_slot(slot))
    caps = []
    for scope, text in zip(named, scopes, strict=True):
        caps.append(_with_rule(parse_cap(text), by_scope.get(scope), slots.get(scope)))
    return tuple(caps)


def _assigned(option: str, text: str, scopes: Sequence[str]) -> tuple[str, str]:
    scope, equals, rest = text.partition("=")
    if not equals or scope not in scopes:
        names = ", ".join(scopes)
        raise SpecError(option, f"found {text!r}; begin with a scope of --scope and = ({names})")
    return scope, rest


def _with_rule(cap: ScopeCap, rule: str | None, slots: list[dict[str, Any]] | None) -> ScopeCap:
    from pydantic import ValidationError

    if rule is None:
        return cap
    plain: dict[str, Any] = {**cap.model_dump(mode="json"), **_rule(cap, rule)}
    if plain["rule"] == "pld" and slots is None:
        raise SpecError(
            "--rule", f"scope {cap.scope!r} has no slot; add --planned {cap.scope}=TIMESxSLOT:…"
        )
    try:
        return type(cap).model_validate({**plain, **({"planned": slots} if slots else {})})
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise SpecError("--rule", f"scope {cap.scope!r}: {reason}") from error


def _rule(cap: ScopeCap, text: str) -> dict[str, Any]:
    name, *parts = text.split(":")
    if name in ("basic", "pld") and not parts:
        return {"rule": name}
    try:
        if name != "renyi_filter" or len(parts) not in (1, 2):
            raise ValueError("no rule")
        cuts = parse_exact(parts[1]) if len(parts) == 2 else parse_exact(cap.delta) * _CUTS
        return {"rule": name, "order": int(parts[0]), "cuts": format_exact(cuts)}
    except ValueError as error:
        raise SpecError(
            "--rule", f"found {text!r}; write basic, pld or renyi_filter:ORDER[:CUTS]"
        ) from error


def _slot(text: str) -> dict[str, Any]:
    match = _SLOT.fullmatch(text)
    try:
        if match is None:
            raise ValueError("no slot")
        plain: dict[str, Any] = {"name": match["name"], "times": int(match["times"])}
        if match["file"] is not None:
            return {**plain, "profile": read_profile(Path(match["file"]))}
        amounts = _amounts(match["epsilon"], match["delta"])
        return {**plain, **amounts, "declared": match["declared"] is not None}
    except ValueError as error:
        raise SpecError(
            "--planned",
            f"found {text!r}; write TIMESxSLOT:EPSILON:DELTA[:declared] or TIMESxSLOT@FILE",
        ) from error


def read_profile(path: Path) -> dict[str, Any]:
    """The privacy profile in a JSON file, which may be a mechanism file: its step and values.

    Raises:
        SpecError: the file cannot be read, or holds no profile.
    """
    from release.budget.caps import SlotProfile

    try:
        plain = json.loads(path.read_bytes())
    except OSError as error:
        raise SpecError("--planned", f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError("--planned", f"{path}: no JSON; name the file of a profile") from error
    plain = plain.get("profile", plain) if isinstance(plain, dict) else plain
    if not isinstance(plain, dict) or not {"step", "values"} <= plain.keys():
        raise SpecError("--planned", f"{path}: no profile with step and values in it")
    try:
        slots = SlotProfile.model_validate({"step": plain["step"], "values": plain["values"]})
    except ValueError as error:
        problem = "its step is a number as text, and its values are whole and never rise"
        raise SpecError("--planned", f"{path}: no profile; {problem}") from error
    return SlotProfile.around(slots.to_profile()).model_dump()


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
        period = None
        if len(parts) == 6:
            period = PeriodCap.model_validate({"every": parts[3], **_amounts(*parts[4:])})
        lifetime = _amounts(*parts[1:3])
        return ScopeCap.model_validate({"scope": parts[0], **lifetime, "period": period})
    except (ValueError, ValidationError) as error:
        raise SpecError(
            "--scope",
            f"found {text!r}; write NAME:EPSILON:DELTA, such as homes:4:0, or with the caps of "
            "each day, month or year behind them: homes:4:0:month:1:0",
        ) from error


def _amounts(epsilon: str, delta: str) -> dict[str, str]:
    # An entry has one text for each number: 0.50 and 1/2 become 0.5.
    return plain_amounts(parse_exact(epsilon), parse_exact(delta))


def shown_period(cap: ScopeCap) -> str:
    """The cap of each period, as the rest of a line."""
    if cap.period is None:
        return ""
    return f"; each {cap.period.every} ε {cap.period.epsilon}, δ {cap.period.delta}"
