"""What changed in a spec since the last release of its series.

Both specs are public, so anybody can compute it. A series is the releases of one template, told by
their ids: a period, and ``-r2`` for a newer version. What follows from the period alone, such as a
day in a condition, is no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from release.bundle.opened import SPEC
from release.errors import SpecError
from release.operate.versions import split_version
from release.spec.load import spec_plain
from release.spec.periods import Period, parse_period

_PERIOD = re.compile(r"\d{4}(?:-\d\d-\d\d|-w\d\d|-q[1-4]|-\d\d)?(?!\d)", re.ASCII)
_LONGEST = 120
# A spec has at most 4 MiB, and some letters of it are longer in JSON.
_LARGEST = 2**26
# How a release is described, where its tables lie, and what reads them, is another matter.
_LEFT_OUT = re.compile(r"(?:release|spec|engine)(?:\..*)?|tables\.[^.]*\.path", re.DOTALL)

Leaves: TypeAlias = dict[str, str]
"""The values of a spec as JSON, by their path."""


@dataclass(frozen=True)
class Change:
    """A part of a spec, and its JSON before and after; None where it is not there."""

    part: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        return f"{_shown(self.part)}: {_shown(self.before)} → {_shown(self.after)}"


def _shown(text: str | None) -> str:
    """A text of somebody's spec for a terminal: without control characters, and not long."""
    if text is None:
        return "nothing"
    plain = text if text.isascii() and text.isprintable() else json.dumps(text)[1:-1]
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


@dataclass(frozen=True)
class _Place:
    """The place of a release in its series."""

    series: str
    period: Period | None
    version: int

    @property
    def rank(self) -> tuple[str, int]:
        """Later releases have larger ones."""
        return ("" if self.period is None else self.period.start.isoformat(), self.version)


def _place(release_id: str) -> _Place:
    stem, number = split_version(release_id)
    matches = list(_PERIOD.finditer(stem))
    # From the end: the name of a series may hold a year of its own.
    for match in reversed(matches):
        try:
            period = parse_period(match[0])
        except SpecError:
            continue
        series = f"{stem[: match.start()]}{{period}}{stem[match.end() :]}"
        return _Place(series, period, number)
    return _Place(stem, None, number)


def predecessor(public: Path) -> Path | None:
    """The release of the series before the one in ``public``, of those beside it."""
    own, before = _place(public.name), None
    for folder in public.resolve().parent.iterdir():
        place = _place(folder.name)
        is_earlier = place.series == own.series and place.rank < own.rank
        if is_earlier and (folder / SPEC).is_file():
            before = max(before or folder, folder, key=lambda release: _place(release.name).rank)
    return before


def changes(before: Path, after: Path) -> tuple[Change, ...]:
    """What differs between the specs of two releases of a series, by their public folders.

    Raises:
        OSError, ValueError: a spec cannot be read.
    """
    old, new = _leaves(before), _leaves(after)
    differing = []
    for part in sorted(old.keys() | new.keys()):
        if old.get(part) != new.get(part):
            differing.append(Change(part, old.get(part), new.get(part)))
    return tuple(differing)


def changes_since_last(public: Path) -> tuple[str | None, tuple[Change, ...]]:
    """The id of the release before, and what has changed since; None where there is none.

    A neighbor whose files cannot be read counts as none: this is a remark, and no check.
    """
    try:
        before = predecessor(public)
        return (None, ()) if before is None else (before.name, changes(before, public))
    except (OSError, ValueError, RecursionError, SpecError):
        return None, ()


def _leaves(public: Path) -> Leaves:
    path = public / SPEC
    if path.stat().st_size > _LARGEST:
        raise ValueError("more than any spec has")
    # As plain data: comments, quotes and the order of fields are no change.
    plain = spec_plain(path.read_bytes())
    period = _place(public.resolve().name).period
    leaves = {}
    for part, value in _walked("", plain):
        if not _LEFT_OUT.fullmatch(part):
            leaves[part] = _without_period(value, period)
    return leaves


def _walked(part: str, value: Any) -> Iterator[tuple[str, str]]:
    """The leaves of a value; objects in lists go by their names, other lists are leaves."""
    members: dict[str, Any] = {}
    if isinstance(value, dict):
        members = value
    elif isinstance(value, list) and value and all(map(_is_named, value)):
        members = {member["name"]: member for member in value}
    if not members:
        yield part, json.dumps(value, sort_keys=True)
    for name, member in members.items():
        yield from _walked(f"{part}.{name}" if part else name, member)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _without_period(text: str, period: Period | None) -> str:
    """The text with a placeholder for the period, as the template has it."""
    if period is None:
        return text
    text = text.replace(str(period), "{period}")
    text = text.replace(period.start.isoformat(), "{period_start}")
    return text.replace(period.end.isoformat(), "{period_end}")
