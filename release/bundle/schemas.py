"""The JSON Schemas in ``schemas/``, made from the models: ``python -m release.bundle.schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Union

from pydantic import BaseModel, RootModel, TypeAdapter

from release.budget.ledger import ENTRY
from release.bundle.evidence.line import LogLine
from release.bundle.evidence.record import AuditRecord
from release.records.models import FILES
from release.records.signing import Envelope, Statement
from release.spec.contracts.model import Contract
from release.spec.mechanisms import ON_STATISTIC, any_record_model, formats
from release.spec.model import Spec

FOLDER = Path(__file__).parent.parent.parent / "schemas"


def _any_mechanism() -> type[BaseModel]:
    """A mechanism of any family that has a file format."""
    models = tuple(map(any_record_model, (*formats(), *ON_STATISTIC)))
    union: Any = Union[models]  # noqa: UP007 - the members are known at run time only
    return RootModel[union]


def schema_texts() -> dict[str, str]:
    """The text of each schema by its file name."""
    models: dict[str, type[BaseModel]] = {
        "spec": Spec,
        "mechanism": _any_mechanism(),
        "contract": Contract,
        **FILES,
        "audit": AuditRecord,
        "log": LogLine,
        "attestation": Envelope,
        "statement": Statement,
    }
    adapters: dict[str, TypeAdapter[Any]] = {}
    for name, model in models.items():
        adapters[name] = TypeAdapter(model)
    adapters["ledger-entry"] = ENTRY
    texts = {}
    for name, adapter in adapters.items():
        schema = adapter.json_schema(by_alias=True, mode="validation")
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schema_texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
