"""Every library of every extra has a license that the extra allows."""

from __future__ import annotations

from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from release.bundle.software import closure
from supply.licenses import UNKNOWN, allowed, is_allowed, license_of, table
from supply.locks import PYTHONS, read
from supply.make import requirements

REMEDY = "choose another library, or allow it in supply/licenses.toml with the reason"


def metadata(**fields: str) -> Message:
    message = Message()
    message["Name"] = "made-up"
    for name, text in fields.items():
        message[name.replace("_", "-")] = text
    return message


@pytest.mark.parametrize("extra", requirements())
def test_installed_libraries_have_an_allowed_license(extra: str) -> None:
    libraries = closure([extra])
    assert "numpy" in libraries
    for name in libraries:
        license_ = license_of(distribution(name).metadata)
        assert is_allowed(license_, allowed(extra)), f"{extra}: {name} has {license_}; {REMEDY}"


@pytest.mark.parametrize("python", PYTHONS)
def test_locked_libraries_have_an_allowed_license(python: str) -> None:
    for pin in read(python):
        for extra in pin.extras:
            message = f"{extra}: {pin} has {pin.license}; {REMEDY}"
            assert is_allowed(pin.license, allowed(extra)), message


def test_the_locks_say_what_the_installed_metadata_say() -> None:
    compared = 0
    for pin in read("3.11"):
        try:
            found = distribution(pin.name).metadata
        except PackageNotFoundError:
            continue
        if found["Version"] == pin.version:
            assert license_of(found) == pin.license, pin
            compared += 1
    assert compared > 20


def test_the_table_names_only_libraries_and_extras_that_exist() -> None:
    names = {pin.name for python in PYTHONS for pin in read(python)}
    assert set(table()["libraries"]) <= names
    assert set(table()["allowed"]) <= set(requirements())


def test_licenses_are_allowed_for_a_reason() -> None:
    used = " ".join(pin.license for python in PYTHONS for pin in read(python)).split()
    used = [word.strip("()") for word in used]
    for extra in table()["allowed"]:
        for license_ in table()["allowed"][extra]:
            assert license_ in used, f"{license_} is allowed for {extra}, and nothing has it"


@pytest.mark.parametrize(
    ("fields", "license_"),
    [
        (
            {"License_Expression": "mit or apache-2.0", "License": "GPL-3.0-only"},
            "MIT OR Apache-2.0",
        ),
        ({"License": "ISC"}, "ISC"),
        ({"License": "free as in beer"}, UNKNOWN),
        ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, UNKNOWN),
        ({"Classifier": "License :: OSI Approved"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_metadata_name_a_license(fields: dict[str, str], license_: str) -> None:
    assert license_of(metadata(**fields)) == license_


def test_two_classifiers_are_left_to_a_person() -> None:
    message = metadata(Classifier="License :: OSI Approved :: MIT License")
    message["Classifier"] = "License :: OSI Approved :: Apache Software License"
    assert license_of(message) == UNKNOWN


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("ISC AND MIT", True),
        ("GPL-3.0-only AND ISC OR MIT", True),
        ("GPL-3.0-only AND (ISC OR MIT)", False),
        ("ISC AND (GPL-3.0-only OR MIT)", True),
        ("Apache-2.0 WITH LLVM-exception", False),
        (UNKNOWN, False),
    ],
)
def test_an_expression_is_allowed_by_one_choice(expression: str, answer: bool) -> None:
    assert is_allowed(expression, {"MIT", "ISC", "Apache-2.0", UNKNOWN}) is answer
