"""A tiny tabulation: two counties with three tracts, by sex and age."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from release.queries.read import read_spec
from release.spec.load import SpecFile
from tests.tabulated import plain_spec

COLUMNS = {"person_id": "string", "tract": "string", "sex": "string", "age": "string"}
AREAS = "county,tract\nk1,t1\nk1,t2\nk2,t3\n"
BOTH: dict[str, Any] = {"county": [[], ["sex"]], "tract": [[], ["sex"]]}


def write_public(folder: Path) -> None:
    """The areas, key files, and a table without rows."""
    (folder / "areas.csv").write_text(AREAS)
    (folder / "sex.csv").write_text("sex\nf\nm\n")
    (folder / "age.csv").write_text("age\nyoung\nold\n")
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    pq.write_table(schema.empty_table(), folder / "persons.parquet")


def written(
    folder: Path,
    publish: dict[str, Any],
    *,
    delta: str = "0",
    neighbors: str = "add_remove",
    queries: list[dict[str, Any]] | None = None,
    **fields: Any,
) -> Path:
    """A spec with one tabulation, and its public files; ``fields`` are the tabulation's."""
    write_public(folder)
    tabulation = {
        "name": "pl",
        "table": "persons",
        "units": "persons",
        "hierarchy": {"file": "areas.csv", "levels": list(publish)},
        "attributes": {"sex": ["f", "m"], "age": ["old", "young"]},
        "publish": publish,
    }
    spec = plain_spec(
        [tabulation | fields],
        columns=COLUMNS,
        neighbors=neighbors,
        budget=("2", delta),
        unit="person_id",
    )
    spec["queries"] = queries or []
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def spec_of(folder: Path, publish: dict[str, Any], **fields: Any) -> SpecFile:
    """As :func:`written`, read."""
    return read_spec(written(folder, publish, **fields))
