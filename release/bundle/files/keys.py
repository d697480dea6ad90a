"""``keys.json``: every key set and every list of areas, in full and in the order of the rows."""

from __future__ import annotations

from dp_release_verify import forms
from release.spec.declarations import ColumnType
from release.spec.load import SpecFile
from release.tabulations.spec.opened import OpenTabulation


def keys_of(spec_file: SpecFile) -> forms.Keys:
    """The key sets of all columns that a published question has in ``by``, and all areas."""
    keys: dict[str, list[forms.Label]] = {}
    for query in spec_file.spec.released:
        kinds = spec_file.spec.table_columns(query.table)
        for column in query.by:
            texts = spec_file.keys[column]
            is_number = kinds[column] is ColumnType.INTEGER
            keys[column] = [int(text) for text in texts] if is_number else list(texts)
    areas = {opened.name: _areas(opened) for opened in spec_file.tabulations}
    return forms.Keys("dp-release/keys/v1", keys, areas or None)


def _areas(opened: OpenTabulation) -> forms.Areas:
    named, lowest = opened.named, len(opened.levels) - 1
    columns = []
    for level in range(lowest + 1):
        names = named.names[level]
        columns.append([names[place] for place in named.places(lowest, level).tolist()])
    rows = sorted(list(row) for row in zip(*columns, strict=True))
    return forms.Areas(list(opened.levels), rows)
