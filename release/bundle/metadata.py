"""Descriptions for other tools: ``datapackage.json`` (Data Package v2) and ``registry.yaml``.

Both follow from ``release.json``, the spec and the sums of the public files alone, so a verifier
writes them again and compares every byte. Sources are titles, never paths. ``registry.yaml`` marks
what only the curator knows with ``TODO(curator)`` (docs/design/format.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import rfc8785
import yaml

from release.bundle.statements import rests_on, tabulation_rests_on
from release.bundle.tabulations.descriptions import (
    domain_text,
    mechanism_text,
    table_files,
    unprotected_text,
)
from release.exact.domain import AnswerDomain, Topology
from release.records.models import QueryRecord, ReleaseRecord
from release.spec.model import Spec
from release.spec.named import names_of
from release.spec.query import PlainQuery, Query, spoken
from release.spec.refusals.unfinished import TODO

DATAPACKAGE, REGISTRY = "datapackage.json", "registry.yaml"

MOST_LABELS = 10_000
"""Longer lists of labels or edges are left out of descriptions; release.json has the domain."""


_PROFILE = "https://datapackage.org/profiles/2.0/"


def field_facts(query: Query) -> list[dict[str, Any]]:
    """What is known of each answer column, in their order: title, unit, scale, labels, edges."""
    return list(map(_facts, query.column_parts, query.column_domains))


def _facts(query: PlainQuery, domain: AnswerDomain) -> dict[str, Any]:
    facts: dict[str, Any] = {"title": query.title or spoken(query.name)}
    if query.units is not None:
        facts["unit"] = query.units
    facts["scale"] = query.scale
    facts |= query.facts()
    facts["topology"] = domain.topology.value
    if domain.size > MOST_LABELS:
        return facts
    if domain.topology is Topology.NOMINAL:
        facts["labels"] = list(domain.labels)
    elif (edges := query.edges()) is not None:
        facts["edges"] = list(edges)
    return facts


def table_sizes(public: Path, record: ReleaseRecord) -> dict[str, int]:
    """The bytes of each released table by its path in the public bundle."""
    return {output.path: (public / output.path).stat().st_size for output in record.outputs}


def datapackage(spec: Spec, record: ReleaseRecord, sizes: dict[str, int]) -> bytes:
    """``datapackage.json``, canonical; ``sizes`` as :func:`table_sizes`."""
    # Byte for byte as docs/design/format.md, 5.5, has it: a verifier compares the whole file.
    resources = []
    for query, entry in zip(spec.released, record.queries, strict=True):
        resources.append(
            {
                "name": entry.name,
                "path": entry.output.path,
                "type": "table",
                "title": query.title or spoken(query.name),
                "format": "parquet",
                "mediatype": "application/vnd.apache.parquet",
                "bytes": sizes[entry.output.path],
                "hash": f"sha256:{entry.output.sha256}",
                "schema": _table_schema(query),
            }
        )
    for declared, tabulation in zip(spec.tabulations, record.tabulations or (), strict=True):
        for file in table_files(declared, tabulation):
            profile = f"{_PROFILE}tableschema.json"
            resources.append(file.resource(sizes[file.output.path], profile))
    # A declared number is exact, and nobody may take it for a noisy one.
    noisy = "every number but those declared" if _has_facts(spec) else "every answer"
    package: dict[str, Any] = {
        "$schema": f"{_PROFILE}datapackage.json",
        "name": record.release_id,
        "title": record.title,
        "description": (
            f"{record.purpose}. Released under {record.guarantee.definition} differential privacy, "
            f"epsilon {record.guarantee.epsilon}, delta {record.guarantee.delta}; "
            f"{noisy} has noise."
        ),
        # A version has dots, and a release has no other than its day.
        "version": record.published.replace("-", "."),
        "licenses": [_license(record.license)],
        "contributors": [{"title": record.curator, "roles": ["publisher"]}],
        # Table names only: a path would say how the curator's files are laid out.
        "sources": [{"title": spoken(name)} for name in spec.tables],
        "resources": resources,
    }
    return rfc8785.dumps(package)


def _license(name: str) -> dict[str, str]:
    """A license by its identifier, or by its title where it has none."""
    # The profile demands a name; the title beside it says what was meant.
    is_identifier = re.fullmatch(r"[A-Za-z0-9._-]*", name) is not None
    return {"name": name} if is_identifier else {"name": "notspecified", "title": name}


def _table_schema(query: Query) -> dict[str, Any]:
    required: dict[str, Any] = {"required": True}
    fields: list[dict[str, Any]] = []
    for column in query.by:
        fields.append({"name": column, "type": "string", "title": column, "constraints": required})
    columns = zip(query.columns, query.column_domains, field_facts(query), strict=True)
    for name, domain, facts in columns:
        labels = domain.labels
        constraints = dict(required)
        if isinstance(labels[0], str):
            kind = "string"
            if len(labels) <= MOST_LABELS:
                constraints["enum"] = list(labels)
        else:
            kind = "integer"
            constraints |= {"minimum": labels[0], "maximum": labels[-1]}
        fields.append({"name": name, "type": kind, **facts, "constraints": constraints})
    bounds = {"minimum": 0, "maximum": query.answers.size - 1}
    for name in query.outcome_columns:
        if name.startswith("answer_code"):
            fields.append(_drawn(name, "number of the answer in the domain", bounds))
        else:
            fields.append(_drawn(name, spoken(name), {}))
    schema: dict[str, Any] = {"$schema": f"{_PROFILE}tableschema.json", "fields": fields}
    if query.by:
        schema["primaryKey"] = list(query.by)
    return schema


def _drawn(name: str, title: str, bounds: dict[str, int]) -> dict[str, Any]:
    constraints: dict[str, Any] = {"required": True, **bounds}
    return {"name": name, "type": "integer", "title": title, "constraints": constraints}


def _has_facts(spec: Spec) -> bool:
    return any(declared.facts for declared in spec.tabulations)


def _worst_case(spec: Spec) -> str:
    scope = "for every table of the declared domain"
    rests = [*map(partial(rests_on, spec), spec.released)]
    rests += map(partial(tabulation_rests_on, spec), spec.tabulations)
    if any(rests):
        return f"{scope}, provided that its conditions are evaluated as published"
    return scope


# The registry has no word for probabilistic DP; the details that follow define it.
_RULES = {
    "basic-v1": "charges add up in exact rationals",
    "pld-v1": "privacy profiles compose exactly, every rounding upward",
}

_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "probabilistic": "Custom"}


def registry(spec: Spec, record: ReleaseRecord) -> bytes:
    """``registry.yaml``: one record for the public registry of deployments."""
    tabulations = record.tabulations or []
    names = ", ".join(names_of([*record.queries, *tabulations]))
    domains = [f"{query.name}: {query.kind}" for query in spec.released]
    mechanisms = list(map(_mechanism, spec.released, record.queries))
    # Byte for byte as docs/design/format.md, 5.6, has it.
    sections = {
        "basic": {
            "name": record.title,
            "data_curators": [record.curator],
            "intended_use": record.purpose,
            "data_product_type": "tables of noisy answers (Parquet)",
            "data_product_region": TODO,
            "description": f"{record.title}, {record.period}: {names}",
            "publication_date": record.published,
            "data_product_sector": TODO,
        },
        "dp_variant": {
            "variant_name": _VARIANTS[record.guarantee.definition],
            "data_domain": _both(domains, map(domain_text, spec.tabulations)),
            "unprotected_quantities": _unprotected(spec),
        },
        "privacy_loss": _privacy_loss(spec, record),
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "the curator holds the confidential table and adds the noise",
            "actors": f"{record.curator} (curator), auditors, the public",
            "release_type": TODO,
            "release_type_details": f"period {record.period}, budget scope {record.ledger.scope}",
            "data_source_type": TODO,
            "data_source_type_details": ", ".join(spec.tables),
            "access_type": TODO,
            "access_type_details": f"license {record.license}",
        },
        "accounting": {
            "post_processing": record.post_processing or "none",
            "composition": f"{record.composition.rule}: {_RULES[record.composition.rule]}",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": record.privacy.enforced_by,
            "mechanisms": _both(mechanisms, map(mechanism_text, tabulations)),
            "justification": _justified(spec),
        },
        "administrative": {
            "sources": [record.contact],
            "notes": f"made by dp-release {record.software.dp_release}",
            "registry_authors": [TODO],
        },
    }
    # The safe dumper, whose bytes do not depend on whether libyaml is installed; the width is part
    # of the format, as a verifier compares all bytes.
    text: str = yaml.safe_dump(sections, sort_keys=False, allow_unicode=True, width=100)
    return text.encode()


def _both(queries: Iterable[str], tabulations: Iterable[str]) -> str:
    """What is said of queries, then of each tabulation."""
    return "; ".join(filter(None, [", ".join(queries), *tabulations]))


def _privacy_loss(spec: Spec, record: ReleaseRecord) -> dict[str, Any]:
    guarantee = record.guarantee
    is_worst_case = guarantee.kind == "worst-case"
    scope = _worst_case(spec) if is_worst_case else "for the neighbors of this very table"
    details = f"{guarantee.definition} differential privacy of the whole release, {scope}"
    if guarantee.definition == "probabilistic":
        details += "; probabilistic: with chance 1 - delta the privacy loss is at most epsilon"
    return {
        "privacy_unit": record.privacy.unit,
        "privacy_unit_details": record.privacy.adjacency_text,
        "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "privacy_parameters_details": details,
    }


def _mechanism(query: Query, entry: QueryRecord) -> str:
    pinned = query.mechanism not in {"best", entry.mechanism}
    return f"{query.name}: {entry.mechanism}{f' ({query.mechanism})' if pinned else ''}"


def _justified(spec: Spec) -> str:
    reasons = []
    if spec.released:
        reasons.append("least expected loss under the guarantee")
    if spec.tabulations:
        reasons.append("of tabulations the least mean standard error that was found")
    reasons.append("see the mechanisms and the report")
    pinned, strategies = [], []
    for query in spec.released:
        if query.mechanism != "best":
            pinned.append(query.name)
    for declared in spec.tabulations:
        if declared.strategy is not None:
            strategies.append(declared.name)
    if pinned:
        reasons.append(f"of {', '.join(pinned)} the spec names the mechanism")
    if strategies:
        reasons.append(f"of {', '.join(strategies)} the spec says what is measured")
    return "; ".join(reasons)


def _unprotected(spec: Spec) -> str:
    columns: set[str] = set()
    for query in spec.released:
        columns |= set(query.by)
    quantities = []
    if columns:
        quantities.append(f"the key sets of {', '.join(sorted(columns))}")
    if spec.privacy.fixed:
        fixed = ", ".join(spec.privacy.fixed)
        quantities.append(f"the fixed columns {fixed} of a {spec.privacy.unit}")
    quantities += map(unprotected_text, spec.tabulations)
    return "; ".join(quantities) or "none"
