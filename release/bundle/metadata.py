"""The description of a release for other tools: ``datapackage.json`` (Data Package v2).

It follows from what was asked and made, and from the sizes and sums of the tables. Sources are
titles, never paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dp_release_verify import canonical, forms
from dp_release_verify.digests import sha256_of_file
from release.bundle.about import release_title
from release.bundle.tables.intervals import END_TITLES, INTERVAL
from release.exact.domain import AnswerDomain, Topology
from release.exact.numbers import format_exact
from release.spec.declarations import ColumnType
from release.spec.model import Spec
from release.spec.query import PlainQuery, Query, spoken
from release.tabulations.files.descriptions import table_files

DATAPACKAGE = "datapackage.json"

_KEY_TYPES = {ColumnType.INTEGER: "integer", ColumnType.DATE: "date"}

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


@dataclass(frozen=True)
class Described:
    """A table as it lies in the folder.

    Attributes:
        size: in bytes.
        sha256: its digest, in hex.
        columns: the types of its columns, as Arrow calls them.
    """

    size: int
    sha256: str
    columns: Mapping[str, str]


def described(public: Path) -> dict[str, Described]:
    """The released tables of a public folder, by their names."""
    found = {}
    for path in sorted((public / "data").glob("*.parquet")):
        schema = pq.read_schema(path)
        columns = {field.name: str(field.type) for field in schema}
        found[path.stem] = Described(path.stat().st_size, sha256_of_file(path), columns)
    return found


def datapackage(
    spec: Spec,
    made: forms.Made,
    published: str,
    tables: Mapping[str, Described],
) -> bytes:
    """``datapackage.json``, canonical.

    Args:
        spec: what was asked.
        made: what was made.
        published: the day, as YYYY-MM-DD.
        tables: as :func:`described`.
    """
    resources = []
    for query in spec.released:
        title = query.title or spoken(query.name)
        kinds = spec.table_columns(query.table)
        schema = _table_schema(query, kinds, tables[query.name].columns)
        resources.append(_resource(query.name, title, tables[query.name], schema))
    profile = f"{_PROFILE}tableschema.json"
    for declared, tabulation in zip(spec.tabulations, made.tabulations or (), strict=True):
        for file in table_files(declared, tabulation):
            resources.append(
                _resource(file.name, file.title, tables[file.name], file.schema(profile))
            )
    # A declared number is exact, and nobody may take it for a noisy one.
    has_facts = any(declared.facts for declared in spec.tabulations)
    noisy = "every number but those declared" if has_facts else "every answer"
    about, total = spec.release, made.total
    purpose = about.purpose or release_title(about)
    package: dict[str, Any] = {
        "$schema": f"{_PROFILE}datapackage.json",
        "name": about.id,
        "title": release_title(about),
        "description": (
            f"{purpose}. Released under {total.definition} differential privacy, "
            f"epsilon {format_exact(total.epsilon)}, delta {format_exact(total.delta)}; "
            f"{noisy} has noise."
        ),
        # A version has dots, and a release has no other than its day.
        "version": published.replace("-", "."),
        # Table names only: a path would say how the curator's files are laid out.
        "sources": [{"title": spoken(name)} for name in spec.tables],
        "resources": resources,
    }
    if about.license is not None:
        package["licenses"] = [_license(about.license)]
    if about.curator is not None:
        package["contributors"] = [{"title": about.curator, "roles": ["publisher"]}]
    return canonical.dumps(package)


def _resource(name: str, title: str, file: Described, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "path": f"data/{name}.parquet",
        "type": "table",
        "title": title,
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "schema": schema,
    }


def _license(name: str) -> dict[str, str]:
    """A license by its identifier, or by its title where it has none."""
    # The profile demands a name; the title beside it says what was meant.
    is_identifier = re.fullmatch(r"[A-Za-z0-9._-]*", name) is not None
    return {"name": name} if is_identifier else {"name": "notspecified", "title": name}


def _table_schema(
    query: Query, kinds: Mapping[str, ColumnType], columns_of_file: Mapping[str, str]
) -> dict[str, Any]:
    required: dict[str, Any] = {"required": True}
    fields: list[dict[str, Any]] = []
    for column in query.by:
        kind = _KEY_TYPES.get(kinds[column], "string")
        fields.append({"name": column, "type": kind, "title": column, "constraints": required})
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
    for name in INTERVAL:
        if name in columns_of_file:
            kind = "integer" if columns_of_file[name] == "int64" else "number"
            fields.append(
                {"name": name, "type": kind, "title": END_TITLES[name], "constraints": required}
            )
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
