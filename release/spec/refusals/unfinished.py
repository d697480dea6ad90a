"""The fields of a spec that a curator has not yet filled in: those with ``TODO(curator)``.

``dp-release init`` writes the mark. A published spec cannot be corrected, so none may carry it.
"""

from __future__ import annotations

from collections.abc import Iterator

from release.errors import SpecError
from release.spec.model import Spec

TODO = "TODO(curator)"
"""The mark of a text that only the curator can write."""


def unfinished(spec: Spec) -> tuple[str, ...]:
    """The paths of all fields whose text holds the mark, in the order of the spec."""
    # Once a strategy is found, counts of tabulations stand among the queries: of no kind of a file.
    return tuple(_marked("", spec.model_dump(mode="json", warnings=False)))


def check_finished(spec: Spec) -> None:
    """Refuse a spec with unfinished fields.

    Raises:
        SpecError: it names the first such field, and the others.
    """
    paths = unfinished(spec)
    if paths:
        more = f"; so do {', '.join(paths[1:])}" if paths[1:] else ""
        raise SpecError(paths[0], f"says {TODO}; write what is meant{more}")


def _marked(path: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{path}.{key}" if path else str(key)
            # The names of tables and columns are the curator's too, and are published.
            if TODO in str(key):
                yield place
            yield from _marked(place, item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marked(f"{path}[{index}]", item)
    elif isinstance(value, str) and TODO in value:
        yield path
