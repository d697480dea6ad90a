"""Reading a contract that a spec names: a contract file, or a Frictionless Table Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError

from release.errors import SpecError, no_file
from release.spec.contracts.model import Contract
from release.spec.contracts.table_schema import contract_of
from release.spec.declarations import ColumnType
from release.spec.refusals.shape import shape_error

_MOST_BYTES = 2**20
"""Bytes of a contract file."""


def read_contract(field: str, path: Path, declared: Mapping[str, ColumnType]) -> Contract:
    """Read a contract for a table with the ``declared`` columns.

    A file with ``fields`` and without ``contract`` is a Table Schema.

    Raises:
        SpecError: the file cannot be read, or is no contract; the message names the field.
    """
    plain = _plain(field, path)
    # Told apart by what is in it: a Table Schema has no name of its version.
    if isinstance(plain, dict) and "fields" in plain and "contract" not in plain:
        return contract_of(f"{field}: {path.name}", plain, declared)
    try:
        return Contract.model_validate(plain)
    except ValidationError as error:
        raise shape_error(Contract, error, f"{field}: {path.name}, ") from error


def _plain(field: str, path: Path) -> object:
    is_json = path.suffix.lower() == ".json"
    try:
        with path.open("rb") as file:
            octets = file.read(_MOST_BYTES + 1)
        if len(octets) > _MOST_BYTES:
            raise SpecError(field, f"{path.name} has more than {_MOST_BYTES} bytes; shorten it")
        text = octets.decode("utf-8")
        # YAML refuses the tabs that many programs write into JSON.
        return json.loads(text) if is_json else yaml.safe_load(text)
    except FileNotFoundError as error:
        raise SpecError(field, no_file(path)) from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        kind = "JSON" if is_json else "YAML"
        raise SpecError(field, f"{path.name} cannot be read as {kind}") from error
