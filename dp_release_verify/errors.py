"""How a check fails: the file, the place in it, what stands there, and what would be right."""

from __future__ import annotations

_LONGEST = 300


class Refused(Exception):  # noqa: N818 - a refusal is no fault of the program
    """A check failed, and the release is not what it says it is."""

    def __init__(self, file: str, place: str, found: object, needed: object) -> None:
        self.file = file
        self.place = place
        self.found = _shown(found)
        self.needed = _shown(needed)
        at = f"{file}: {place}" if place else file
        super().__init__(f"{at}: found {self.found}, expected {self.needed}")


class NotProved(Exception):  # noqa: N818 - no fault of the program
    """The page does not say how to prove this, so nothing is said of the guarantee."""


class WrongCall(Exception):  # noqa: N818 - no fault of the program
    """What was given is no folder, key or ledger."""


def refuse_unless(holds: bool, file: str, place: str, found: object, needed: object) -> None:
    """Refuse if a condition does not hold.

    Raises:
        Refused: it does not.
    """
    if not holds:
        raise Refused(file, place, found, needed)


def _shown(value: object) -> str:
    """A value as text that fits a line."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
