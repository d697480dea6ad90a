"""Who runs a release, who approved it, and when: for the log and for ``audit.json``.

The names are what the environment says, and no proof of identity. Nothing of this enters the public
bundle or the ledger.
"""

from __future__ import annotations

import datetime
import os
import pwd
import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

ACTOR, APPROVER = "DP_RELEASE_ACTOR", "DP_RELEASE_APPROVER"
"""The variables that name them."""
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}"
UNREADABLE = "?"
INSTANT_PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"
"""The time of day in UTC, to the second."""

PersonName: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^({NAME_PATTERN}|\?)$"), Field(description="a name, or `?`")
]


Instant: TypeAlias = Annotated[str, StringConstraints(pattern=INSTANT_PATTERN)]


@dataclass(frozen=True)
class People:
    """Who runs, and who approved, where somebody is named."""

    actor: str
    approver: str | None


def people() -> People:
    """The people of this process: of its variables, else the user of the operating system."""
    approver = os.environ.get(APPROVER)
    return People(
        _name(os.environ.get(ACTOR) or _user()), None if not approver else _name(approver)
    )


def now() -> str:
    """The time of the clock, as an :data:`Instant`."""
    return datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _user() -> str:
    # Not getpass.getuser: that believes variables which everybody sets.
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _name(text: str) -> str:
    """The name, if it is one word: a line of the log has no room for a sentence."""
    return text if re.fullmatch(NAME_PATTERN, text, re.ASCII) else UNREADABLE
