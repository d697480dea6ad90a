"""What a curator has still to write in a spec: its fields that say ``TODO(curator)``.

``dp-release init`` writes the mark. A release that carried it would be public for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from release.errors import SpecError
from release.spec.model import Spec

TODO = "TODO(curator)"
"""The mark of what only the curator knows."""


def unfinished(spec: Spec) -> tuple[str, ...]:
    """The paths of all fields whose text holds the mark, in the order of the spec."""
    return tuple(_marked("", spec.model_dump(mode="json")))


def check_finished(spec: Spec) -> None:
    """Refuse a spec with something left to write.

    Raises:
        SpecError: it names the first such field, and the others.
    """
    first, *others = unfinished(spec) or ("",)
    if first:
        more = f"; so do {', '.join(others)}" if others else ""
        raise SpecError(first, f"says {TODO}; write what is meant{more}")


def _marked(path: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            place = f"{path}.{key}" if path else str(key)
            if TODO in str(key):
                yield place
            yield from _marked(place, one)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _marked(f"{path}[{index}]", one)
    elif isinstance(value, str) and TODO in value:
        yield path
