"""The JSON Schemas in ``schemas/``, made from the models: ``python -m release.bundle.schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dp_release_verify import forms
from release.bundle.evidence.line import LogLine
from release.spec.contracts.model import Contract
from release.spec.model import Spec

FOLDER = Path(__file__).parent.parent.parent / "schemas"

WRITTEN: dict[str, type[BaseModel]] = {"spec": Spec, "contract": Contract, "log": LogLine}
"""The models of files that people write, and of the log."""

FORMS: dict[str, Any] = {
    "release": forms.Release,
    "keys": forms.Keys,
    "mechanism": forms.Law,
    "opened": forms.Opened,
    "audit": forms.Audit,
    "ledger-entry": forms.AnyEntry,
}
"""The forms of the files of a release, of the auditor's folder and of a ledger."""


def schema_texts() -> dict[str, str]:
    """The text of each schema by its file name."""
    schemas = {}
    for name, model in WRITTEN.items():
        schemas[name] = TypeAdapter(model).json_schema(by_alias=True, mode="validation")
    for name, form in FORMS.items():
        schemas[name] = forms.schema(form)
    texts = {}
    for name, plain in schemas.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **plain}
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schema_texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
