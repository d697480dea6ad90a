"""Bills of materials follow from the locks, and are CycloneDX."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from supply.locks import PYTHONS, read, select
from supply.sbom import bill


@pytest.mark.parametrize("python", PYTHONS)
def test_a_bill_has_each_library_of_the_lock_once(python: str) -> None:
    pins = select(read(python), ["flows"])
    plain = json.loads(bill(python, ["flows"], pins))
    assert (plain["bomFormat"], plain["specVersion"]) == ("CycloneDX", "1.6")
    components = plain["components"]
    assert [(each["name"], each["version"]) for each in components] == [
        (pin.name, pin.version) for pin in pins
    ]
    for pin, each in zip(pins, components, strict=True):
        assert each["purl"] == f"pkg:pypi/{pin.name}@{pin.version}"
        assert len(each["licenses"]) == 1
        references = each["externalReferences"]
        assert [entry["hashes"][0]["content"] for entry in references] == list(pin.hashes)


def test_a_bill_has_the_same_bytes_for_the_same_content() -> None:
    pins = select(read("3.11"), ["fast", "flows"])
    text = bill("3.11", ["flows", "fast"], reversed(pins))
    assert text == bill("3.11", ["fast", "flows"], pins)
    others = {
        bill("3.12", ["fast", "flows"], pins),
        bill("3.11", ["fast"], pins),
        bill("3.11", ["fast", "flows"], [replace(pins[0], version="0"), *pins[1:]]),
    }
    numbers = {json.loads(each)["serialNumber"] for each in (text, *others)}
    assert len(numbers) == 4
