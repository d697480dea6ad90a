"""Licenses of libraries, as SPDX expressions, and whether each extra allows them.

A library's own metadata is read: its expression, else its classifiers, else its text, where that
is short and unmistakable. ``licenses.toml`` lists what each extra allows, and the licenses of
libraries whose metadata name none, with who said so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from email.message import Message
from importlib.metadata import PackageMetadata
from typing import Any, TypeAlias

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from supply.locks import CORE, FOLDER

UNKNOWN = "unknown"
Metadata: TypeAlias = PackageMetadata | Message

_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "Artistic License": "Artistic-1.0-Perl",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Classifiers that mean one license; "BSD License" may mean two, so the text has to say which."""


def table() -> dict[str, Any]:
    """The content of ``licenses.toml``."""
    with (FOLDER / "licenses.toml").open("rb") as file:
        return tomllib.load(file)


def license_of(metadata: Metadata) -> str:
    """The license of a library as an SPDX expression; ``unknown`` where nothing says it."""
    name = canonicalize_name(metadata["Name"])
    read_by_hand: dict[str, dict[str, str]] = table()["libraries"]
    if name in read_by_hand:
        return read_by_hand[name]["license"]
    for text in (metadata["License-Expression"], metadata["License"]):
        try:
            return str(canonicalize_license_expression(text or ""))
        except InvalidLicenseExpression:
            continue
    classifiers = []
    for line in metadata.get_all("Classifier") or []:
        if line.startswith("License :: ") and line != "License :: OSI Approved":
            classifiers.append(line.rpartition(" :: ")[2])
    # Two classifiers may mean a choice or two duties; then a person has to read the files.
    return _CLASSIFIERS.get(classifiers[0], UNKNOWN) if len(classifiers) == 1 else UNKNOWN


def allowed(extra: str) -> frozenset[str]:
    """The licenses that an extra allows: its own, and those of the core."""
    lists: dict[str, list[str]] = table()["allowed"]
    return frozenset(lists[CORE]) | frozenset(lists.get(extra, ()))


def is_allowed(expression: str, licenses: Collection[str]) -> bool:
    """Whether a choice that ``expression`` offers needs none but ``licenses``.

    ``OR`` offers a choice, ``AND`` asks for both and binds closer. A license ``WITH`` an exception
    counts as one license of that whole name.
    """
    if expression == UNKNOWN:
        return False
    tokens = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression)
    answer = _any_of(tokens, licenses)
    return answer and not tokens


def _any_of(tokens: list[str], licenses: Collection[str]) -> bool:
    answer = _all_of(tokens, licenses)
    while tokens and tokens[0] == "OR":
        tokens.pop(0)
        # Both sides are read to their end, whatever the first one says.
        answer = _all_of(tokens, licenses) or answer
    return answer


def _all_of(tokens: list[str], licenses: Collection[str]) -> bool:
    answer = _term(tokens, licenses)
    while tokens and tokens[0] == "AND":
        tokens.pop(0)
        answer = _term(tokens, licenses) and answer
    return answer


def _term(tokens: list[str], licenses: Collection[str]) -> bool:
    head = tokens.pop(0)
    if head != "(":
        return head in licenses
    answer = _any_of(tokens, licenses)
    tokens.pop(0)
    return answer
