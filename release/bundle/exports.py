"""Descriptions of a release in the forms of others, made on demand from its public folder.

None is part of a release: each follows from it. ``registry`` is a record for the public registry of
deployments, and marks with ``TODO(curator)`` what only the curator knows. ``in_toto`` is a
Statement v1 of in-toto, whose subjects are the files with their SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import yaml

from dp_release_verify import canonical, forms
from release.bundle.about import release_title
from release.bundle.opened import PublicRelease
from release.bundle.statements import (
    ENFORCED_BY,
    adjacency_text,
    guarantee_kind,
    post_processing,
    rests_on,
    tabulation_rests_on,
)
from release.exact.numbers import format_exact
from release.spec.mechanisms import BEST
from release.spec.model import Spec
from release.spec.named import names_of
from release.spec.refusals.unfinished import TODO
from release.tabulations.files.descriptions import domain_text, mechanism_text, unprotected_text
from release.tabulations.files.entries import family_of


def in_toto(opened: PublicRelease) -> bytes:
    """The in-toto Statement v1 of a release, canonical and unsigned."""
    subjects = []
    for name, digest in sorted(opened.sums.items()):
        subjects.append({"name": name, "digest": {"sha256": digest}})
    total, paid = opened.made.total, opened.made.ledger
    predicate: dict[str, Any] = {
        "release_id": opened.name,
        "scope": opened.spec.budget.scope,
        "epsilon": format_exact(total.epsilon),
        "delta": format_exact(total.delta),
    }
    if paid is not None:
        predicate["entry"] = paid.entry
    return canonical.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subjects,
            "predicateType": "dp-release/release/v1",
            "predicate": predicate,
        }
    )


def _worst_case(spec: Spec) -> str:
    scope = "for every table of the declared domain"
    rests = [*map(partial(rests_on, spec), spec.released)]
    rests += map(partial(tabulation_rests_on, spec), spec.tabulations)
    if any(rests):
        return f"{scope}, provided that its conditions are evaluated as published"
    return scope


# The registry has no word for probabilistic DP; the details that follow define it.
_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "probabilistic": "Custom"}

_ADDED = "charges add up in exact rationals"
_COMPOSED = "privacy profiles compose exactly, every rounding upward"


def registry(opened: PublicRelease) -> bytes:
    """``registry.yaml``: one record for the public registry of deployments."""
    spec, record, made = opened.spec, opened.record, opened.made
    about, tabulations = spec.release, opened.tabulations
    names = ", ".join(names_of([*made.queries, *tabulations]))
    domains = [f"{query.name}: {query.kind}" for query in spec.released]
    mechanisms = [_mechanism(opened, query) for query in made.queries]
    noises = [_noise(opened, tabulation) for tabulation in tabulations]
    sections = {
        "basic": {
            "name": release_title(about),
            "data_curators": [about.curator or TODO],
            "intended_use": about.purpose or TODO,
            "data_product_type": "tables of noisy answers (Parquet)",
            "data_product_region": TODO,
            "description": f"{release_title(about)}, {about.period or TODO}: {names}",
            "publication_date": record.published,
            "data_product_sector": TODO,
        },
        "dp_variant": {
            "variant_name": _VARIANTS[made.total.definition],
            "data_domain": _both(domains, map(domain_text, spec.tabulations)),
            "unprotected_quantities": _unprotected(spec),
        },
        "privacy_loss": _privacy_loss(spec, made.total),
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "the curator holds the confidential table and adds the noise",
            "actors": f"{about.curator or TODO} (curator), auditors, the public",
            "release_type": TODO,
            "release_type_details": (
                f"period {about.period or TODO}, budget scope {spec.budget.scope}"
            ),
            "data_source_type": TODO,
            "data_source_type_details": ", ".join(spec.tables),
            "access_type": TODO,
            "access_type_details": f"license {about.license or TODO}",
        },
        "accounting": {
            "post_processing": post_processing(spec) or "none",
            "composition": _COMPOSED if spec.composes_exactly else _ADDED,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": ENFORCED_BY,
            "mechanisms": _both(mechanisms, noises),
            "justification": _justified(spec),
        },
        "administrative": {
            "sources": [about.contact or TODO],
            "notes": f"made by dp-release {record.software.dp_release}",
            "registry_authors": [TODO],
        },
    }
    text: str = yaml.safe_dump(sections, sort_keys=False, allow_unicode=True, width=100)
    return text.encode()


def _both(queries: Iterable[str], tabulations: Iterable[str]) -> str:
    """What is said of queries, then of each tabulation."""
    return "; ".join(filter(None, [", ".join(queries), *tabulations]))


def _privacy_loss(spec: Spec, total: forms.Claim) -> dict[str, Any]:
    is_worst_case = guarantee_kind(spec.released) == "worst-case"
    scope = _worst_case(spec) if is_worst_case else "for the neighbors of this very table"
    details = f"{total.definition} differential privacy of the whole release, {scope}"
    if total.definition == "probabilistic":
        details += "; probabilistic: with chance 1 - delta the privacy loss is at most epsilon"
    return {
        "privacy_unit": spec.privacy.unit,
        "privacy_unit_details": adjacency_text(spec.privacy),
        "privacy_parameters": {
            "epsilon": format_exact(total.epsilon),
            "delta": format_exact(total.delta),
        },
        "privacy_parameters_details": details,
    }


def _mechanism(opened: PublicRelease, made: forms.MadeQuery) -> str:
    if made.mechanism is None:
        return f"{made.name}: committed"
    family: str = opened.law(made.mechanism).family
    named = opened.query(made.name).mechanism
    return f"{made.name}: {family}{'' if named in {BEST, family} else f' ({named})'}"


def _noise(opened: PublicRelease, tabulation: forms.MadeTabulation) -> str:
    family = family_of(list(map(opened.noise, tabulation.measured)))
    return mechanism_text(tabulation.name, family, len(tabulation.measured))


def _justified(spec: Spec) -> str:
    reasons = []
    if spec.released:
        reasons.append("least expected loss under the guarantee")
    if spec.tabulations:
        reasons.append("of tabulations the least mean standard error that was found")
    reasons.append("see the mechanisms and the report")
    pinned, strategies = [], []
    for query in spec.released:
        if query.mechanism != BEST:
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
