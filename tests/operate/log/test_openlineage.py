"""OpenLineage events of a log: of the published structure, and one end for each begin."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from release.errors import BudgetError, SpecError
from release.operate.journal import Code, Journal
from release.operate.log.file import read_log
from release.operate.log.openlineage import events

# What the specification of OpenLineage asks of a run event and its facets, in our own words:
# https://openlineage.io/apidocs/openapi, schema RunEvent.
jsonschema: Any = pytest.importorskip("jsonschema")

Schema = dict[str, Any]

FACET: Schema = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {
        "_producer": {"type": "string", "format": "uri"},
        "_schemaURL": {"type": "string", "format": "uri"},
    },
}
JOB: Schema = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {"namespace": {"type": "string"}, "name": {"type": "string"}},
}
RUN: Schema = {
    "type": "object",
    "required": ["runId"],
    "properties": {"runId": {"type": "string", "format": "uuid"}},
}
PARENT: Schema = {**FACET, "required": [*FACET["required"], "run", "job"]}
ERROR: Schema = {**FACET, "required": [*FACET["required"], "message", "programmingLanguage"]}
EVENT: Schema = {
    "type": "object",
    "required": ["run", "job", "eventTime", "producer", "schemaURL"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "run": {
            **RUN,
            "properties": {
                **RUN["properties"],
                "facets": {
                    "type": "object",
                    "properties": {
                        "parent": {**PARENT, "properties": {"run": RUN, "job": JOB}},
                        "errorMessage": ERROR,
                    },
                    "additionalProperties": FACET,
                },
            },
        },
        "job": JOB,
        "inputs": {"type": "array", "items": JOB},
        "outputs": {"type": "array", "items": JOB},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri"},
    },
}


def journal(folder: Path, run: int = 0) -> Journal:
    return Journal(str(folder / "log"), uuid.UUID(int=run).hex)


def of_log(folder: Path) -> list[dict[str, Any]]:
    found = list(events(read_log([folder / "log"])))
    check = jsonschema.Draft202012Validator(EVENT, format_checker=jsonschema.FormatChecker())
    for event in found:
        check.validate(event)
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [event["eventType"] for event in found]


def test_a_release_starts_and_completes(tmp_path: Path) -> None:
    with journal(tmp_path).told(spec="nightly.yaml", period="2024-01-05") as done:
        journal(tmp_path).tell(Code.STAGE, stage="draw")
        done(tmp_path / "n-2024-01-05")
    found = of_log(tmp_path)
    assert kinds(found) == ["START", "COMPLETE"]
    assert found[0]["run"]["runId"] == found[1]["run"]["runId"]
    assert found[0]["job"] == {"namespace": "dp-release", "name": "nightly.yaml"}
    assert found[1]["outputs"] == [{"namespace": "dp-release", "name": "n-2024-01-05"}]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (SpecError("x", "quagzil"), "FAIL", "spec"),
        (BudgetError("x", scope_ended=True), "FAIL", "budget-spent"),
        (ValueError("quagzil"), "FAIL", "internal"),
        (KeyboardInterrupt(), "ABORT", "interrupted"),
    ],
)
def test_a_refusal_fails_and_an_interruption_aborts(
    error: BaseException, kind: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(type(error)), journal(tmp_path).told(spec="nightly.yaml"):
        raise error
    found = of_log(tmp_path)
    assert kinds(found) == ["START", kind]
    assert found[1]["run"]["facets"]["errorMessage"]["message"] == message
    assert "quagzil" not in str(found)


@pytest.mark.parametrize(("ended", "kind"), [("given-up", "ABORT"), ("published", "COMPLETE")])
def test_a_run_that_was_killed_ends_where_it_is_recovered(
    ended: str, kind: str, tmp_path: Path
) -> None:
    killed, later = journal(tmp_path, 1), journal(tmp_path, 2)
    killed.tell(Code.STARTED, spec="nightly.yaml")
    killed.tell(Code.STAGE, stage="draw", release_id="n-2024-01-05")
    assert kinds(of_log(tmp_path)) == ["START"]
    later.tell(Code.RECOVERED, release_id="n-2024-01-04", ended=ended)
    later.tell(Code.RECOVERED, release_id="n-2024-01-05", ended=ended)
    found = of_log(tmp_path)
    assert kinds(found) == ["START", kind]
    assert found[0]["run"]["runId"] == found[1]["run"]["runId"]


def test_each_period_of_one_run_is_a_run_below_it(tmp_path: Path) -> None:
    own = journal(tmp_path, 7)
    for day in ("2024-01-05", "2024-01-06"):
        with own.told(spec="nightly.yaml", period=day) as done:
            done(tmp_path / f"n-{day}")
    found = of_log(tmp_path)
    assert kinds(found) == ["START", "COMPLETE"] * 2
    assert len({event["run"]["runId"] for event in found}) == 2
    parents = {event["run"]["facets"]["parent"]["run"]["runId"] for event in found}
    assert parents == {str(uuid.UUID(int=7))}
