"""The records of tabulations: one canonical form, and nothing but its fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from pydantic import ValidationError

from release.records.models import canonical, parse
from release.records.tabulations import TabulationRecord

SHA = "0" * 64


def output(path: str, rows: int) -> dict[str, Any]:
    return {"path": path, "sha256": SHA, "rows": rows}


def plain() -> dict[str, Any]:
    return {
        "name": "census",
        "table": "persons",
        "noise": "geometric",
        "objective": "3.25",
        "levels": [
            {
                "level": "state",
                "areas": 1,
                "margins": [[], ["race", "age"]],
                "output": output("data/census_state.parquet", 7),
            }
        ],
        "measured": [
            {
                "name": "census_state_race_age",
                "level": "state",
                "margin": ["race", "age"],
                "cells": 6,
                "definition": "pure",
                "epsilon": "0.5",
                "delta": "0",
                "charge": {"epsilon": "0.5", "delta": "0"},
                "mechanism_file": {"path": "mechanisms/census.json", "sha256": SHA},
                "output": output("measurements/census_state_race_age.parquet", 6),
            }
        ],
        "declared": [
            {"level": "state", "margin": [], "output": output("measurements/d.parquet", 1)}
        ],
    }


def test_a_record_has_one_form() -> None:
    data = rfc8785.dumps(plain())
    record = parse(TabulationRecord, data)
    assert canonical(record) == data
    assert record.measured[0].charge.epsilon == "0.5"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("noise",), "laplace"),
        (("note",), "hello"),
        (("levels",), []),
        (("measured",), []),
        (("declared",), None),
        (("levels", 0, "margins"), []),
        (("levels", 0, "areas"), 0),
        (("levels", 0, "rows"), 7),
        (("measured", 0, "cells"), "6"),
        (("measured", 0, "epsilon"), "-1"),
        (("measured", 0, "definition"), "gaussian"),
        (("measured", 0, "mechanism_file"), {"commitment": "hmac-sha256:" + SHA}),
        (("measured", 0, "mechanism_file", "path"), "../mechanism.json"),
        (("declared", 0, "output", "sha256"), "0"),
    ],
)
def test_what_is_no_record_is_refused(path: tuple[str | int, ...], value: object) -> None:
    changed: Any = plain()
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ValidationError):
        parse(TabulationRecord, json.dumps(changed, sort_keys=True, separators=(",", ":")).encode())
