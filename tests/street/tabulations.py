"""Tabulations: small hierarchies of places, with a few attributes and groupings."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.street.specs import SCOPE, Case, Plain, exact, log_uniform, release_info
from tests.street.tables import KINDS, make_street


def geography(rng: Random, places: list[str]) -> str:
    """A public file of areas: every place lies in a region."""
    regions = rng.randint(1, 3)
    lines = ["region,place"]
    lines += [f"r{number % regions},{place}" for number, place in enumerate(places)]
    return "\n".join(lines) + "\n"


def margins(rng: Random, names: list[str]) -> list[list[str]]:
    """Some margins of a level: the total, single attributes, and at times two together."""
    chosen: list[list[str]] = [[]] if rng.random() < 0.8 else []
    chosen += [[name] for name in names if rng.random() < 0.6]
    return chosen or [[names[0]]]


def tabulation_case(seed: int, rng: Random) -> Case:
    """Units by place, with two or three attributes, from one budget."""
    street = make_street(rng, most_units=2000, one_row=True)
    attributes: dict[str, Any] = {"kind": list(KINDS)}
    if rng.random() < 0.7:
        attributes["quarter"] = list("nesw")
    if rng.random() < 0.4:
        attributes["rating"] = {"range": [0, 10]}
    names = list(attributes)
    tabulation: Plain = {
        "name": "people",
        "table": "visits",
        "hierarchy": {"file": "areas.csv", "levels": ["region", "place"]},
        "attributes": attributes,
    }
    if rng.random() < 0.5:
        classes = {"wheels": list(KINDS[:3]), "else": list(KINDS[3:])}
        tabulation["groupings"] = {"way": {"of": "kind", "classes": classes}}
        names = ["way", *names]
    together = [names[0], names[-1]]
    region = margins(rng, names)
    if rng.random() < 0.6 and together[0] != together[1] and set(together) != {"way", "kind"}:
        region.append(together)
    tabulation["publish"] = {"region": region, "place": margins(rng, names)}
    is_large = rng.random() < 0.35
    epsilon = rng.uniform(40, 60) if is_large else log_uniform(rng, 0.2, 10)
    delta = rng.choice(("0", "0", "0.000001", "0.0001"))
    privacy = {
        "unit": street.unit,
        "neighbors": rng.choice(("add_remove", "add_remove", "replace_one")),
        "max_rows_per_unit": 1,
    }
    read = {street.unit, "place", *attributes}
    spec = {
        "spec": "dp-release/spec/v1",
        "release": release_info(),
        "tables": {
            "visits": {
                "path": street.main.file,
                "columns": {n: k for n, k in street.main.columns.items() if n in read},
            }
        },
        "privacy": privacy,
        "budget": {"scope": SCOPE, "epsilon": exact(epsilon), "delta": delta},
        "tabulations": [tabulation],
    }
    files = {"areas.csv": geography(rng, street.places)}
    ledger = rng.choice((None, None, "1"))
    return Case(seed, street, spec, files=files, budget="shared", ledger=ledger, is_large=is_large)
