"""The picture of the rooms: who imports whom, made from the imports. ``python docs/rooms.py``.

A row imports from the columns that have a number: how many of its modules do. Rooms stand in the
order of their floors, so that an import upwards would be a number right of the diagonal. The parts
of tabulations are counted in the rooms that use them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PICTURE = PROJECT / "docs" / "design" / "rooms.svg"
ROOMS = (
    *("errors", "exact", "records", "spec", "tables", "queries", "budget", "noise", "bundle"),
    *(
        "verification",
        "planning",
        "analysis",
        "facts",
        "street",
        "operate",
        "cli",
        "flows",
        "dp_release_audit",
        "research",
    ),
)
ABOVE = ("flows", "dp_release_audit", "research")
# Tabulations have one folder, from their spec to their report. Each part of it stands on the floor
# of the room that uses it, so that arrows keep their direction, and is counted there.
TABULATIONS = {
    "estimate": "exact",
    "spec": "spec",
    "measure": "queries",
    "strategy": "noise",
    "files": "bundle",
    "report": "bundle",
    "picture": "bundle",
    "planning": "planning",
    "frames": "analysis",
    "facts": "facts",
}
CELL, NAMES, TOP = 34, 110, 96


def room_of(module: str) -> str | None:
    """The room of a module of ours; None for the ground (version) and for others."""
    package, *rest = module.split(".")
    room = package if package in ABOVE else (rest[0] if package == "release" and rest else "")
    if room == "tabulations" and len(rest) > 1:
        room = TABULATIONS.get(rest[1], "")
    return room if room in ROOMS else None


def imports(path: Path) -> set[str]:
    """The rooms that a module imports from, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {room_of(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {room_of(alias.name) for alias in node.names}
    return {room for room in found if room is not None}


def counted() -> dict[tuple[str, str], int]:
    """For each pair of rooms, how many modules of the first import from the second."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for package in ("release", *ABOVE):
        for path in sorted((PROJECT / package).rglob("*.py")):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            room = room_of(".".join(parts))
            for other in imports(path) if room else ():
                if room and other != room:
                    counts[room, other] += 1
    return dict(counts)


def picture() -> str:
    """The matrix as SVG."""
    counts, size = counted(), len(ROOMS)
    width, height = NAMES + size * CELL + 12, TOP + size * CELL + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13" role="img" '
        f'aria-label="Which room imports from which: all numbers are left of the diagonal">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, room in enumerate(ROOMS):
        x, y = NAMES + place * CELL, TOP + place * CELL
        middle = x + CELL / 2
        lines += [
            f'<text x="{NAMES - 8}" y="{y + 22}" text-anchor="end">{room}</text>',
            f'<text transform="translate({middle + 4} {TOP - 8}) rotate(-60)">{room}</text>',
            f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#1f5582"/>',
        ]
    for (room, other), number in sorted(counts.items()):
        x, y = NAMES + ROOMS.index(other) * CELL, TOP + ROOMS.index(room) * CELL
        upwards = ROOMS.index(other) > ROOMS.index(room)
        lines += [
            f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" '
            f'fill="{"#e9a3a5" if upwards else "#d5e3ef"}"/>',
            f'<text x="{x + CELL / 2}" y="{y + 22}" text-anchor="middle">{number}</text>',
        ]
    for place in range(size + 1):
        x, y = NAMES + place * CELL, TOP + place * CELL
        lines += [
            f'<path d="M{x} {TOP}V{TOP + size * CELL}M{NAMES} {y}H{NAMES + size * CELL}" '
            'stroke="#c8c8c8" fill="none"/>'
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
