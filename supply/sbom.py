"""Bills of materials: CycloneDX 1.6 in JSON, one for the core with some extras, from a lock.

The bytes follow from the lock and the version of dp-release alone: no time, no random number, no
machine. Each file of a library is a reference of its own with its SHA-256, because the hashes of a
component are those of one file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from packaging.utils import canonicalize_name

from release.version import VERSION
from supply.licenses import UNKNOWN
from supply.locks import Pin, environment

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "dp-release")


def bill(python: str, extras: Iterable[str], pins: Iterable[Pin]) -> str:
    """The bill of ``pins``, which are those of the core and ``extras``, in canonical order."""
    pins, extras = sorted(pins, key=lambda pin: pin.name), sorted(set(extras))
    named = f"dp-release[{','.join(extras)}]" if extras else "dp-release"
    # The same content has the same number, as the standard asks of a serial number.
    content = f"{named} {VERSION} python{python}\n{environment(pins)}"
    plain = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": _purl("dp-release", VERSION),
                "name": "dp-release",
                "version": VERSION,
                "purl": _purl("dp-release", VERSION),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
            "properties": [
                {"name": "dp-release:python", "value": python},
                {"name": "dp-release:extras", "value": " ".join(extras)},
            ],
        },
        "components": list(map(_component, pins)),
    }
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def _component(pin: Pin) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": _purl(pin.name, pin.version),
        "name": pin.name,
        "version": pin.version,
        "purl": _purl(pin.name, pin.version),
        **({"licenses": [_license(pin.license)]} if pin.license != UNKNOWN else {}),
        "externalReferences": [_file(pin, digest) for digest in pin.hashes],
    }


def _file(pin: Pin, digest: str) -> dict[str, Any]:
    # A file has no address here: which index it comes from is its user's choice.
    hashes = [{"alg": "SHA-256", "content": digest}]
    return {"type": "distribution", "url": _purl(pin.name, pin.version), "hashes": hashes}


def _license(expression: str) -> dict[str, Any]:
    if " " in expression or expression.startswith("LicenseRef-"):
        return {"expression": expression}
    return {"license": {"id": expression}}


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{canonicalize_name(name)}@{version}"
