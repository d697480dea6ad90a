"""The log as OpenLineage run events, for a catalog of pipelines.

A release is a run of the job of its spec: START when it begins, then COMPLETE, FAIL with the reason
of a refusal, or ABORT where a person stopped it, or where a later run recovered what was cut off.
Its parent is the run that is in the log, which may be Prefect's. Events are of OpenLineage 2-0-2.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from release.bundle.evidence.line import Code, LogLine
from release.errors import Reason
from release.version import VERSION

PRODUCER = f"urn:dp-release:{VERSION}"
SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets/1-0-0"
NAMESPACE = "dp-release"
_UNNAMED = "release"
_GIVEN_UP = "given-up"


@dataclass
class _Begun:
    """A release that has begun and not ended yet."""

    line: LogLine
    release_id: str | None


def events(lines: Iterable[LogLine], namespace: str = NAMESPACE) -> Iterator[dict[str, Any]]:
    """The events of the log's releases, in the order of its lines."""
    begun: dict[str, _Begun] = {}
    for line in lines:
        run = line.run or ""
        if line.code is Code.STARTED:
            if run in begun:
                yield _event("ABORT", begun.pop(run), line, namespace)
            begun[run] = _Begun(line, line.release_id)
            yield _event("START", begun[run], line, namespace)
        elif line.code is Code.STAGE and run in begun:
            begun[run].release_id = line.release_id or begun[run].release_id
        elif line.code is Code.PUBLISHED and run in begun:
            begun[run].release_id = line.release_id
            yield _event("COMPLETE", begun.pop(run), line, namespace)
        elif line.code is Code.REFUSED and run in begun:
            kind = "ABORT" if line.reason is Reason.INTERRUPTED else "FAIL"
            yield _event(kind, begun.pop(run), line, namespace)
        elif line.code is Code.RECOVERED:
            for other in [run for run, own in begun.items() if own.release_id == line.release_id]:
                kind = "ABORT" if line.ended == _GIVEN_UP else "COMPLETE"
                yield _event(kind, begun.pop(other), line, namespace)


def _event(kind: str, begun: _Begun, at: LogLine, namespace: str) -> dict[str, Any]:
    job = {"namespace": namespace, "name": begun.line.spec or _UNNAMED}
    run = uuid.UUID(begun.line.run or "0" * 32)
    # One run of ours may release several periods, and each is a run of its own.
    own = uuid.uuid5(run, str(begun.line.number))
    facets: dict[str, Any] = {
        "parent": _facet("ParentRunFacet", run={"runId": str(run)}, job=job),
        "dpRelease_log": {
            "_producer": PRODUCER,
            "_schemaURL": "urn:dp-release:log:v1",
            "line": at.number,
            "actor": at.actor,
        },
    }
    if at.approver is not None:
        facets["dpRelease_log"]["approver"] = at.approver
    if at.reason is not None:
        facets["errorMessage"] = _facet(
            "ErrorMessageRunFacet", message=at.reason.value, programmingLanguage="Python"
        )
    outputs = []
    if kind == "COMPLETE" and begun.release_id is not None:
        outputs.append({"namespace": namespace, "name": begun.release_id})
    return {
        "eventType": kind,
        "eventTime": at.time,
        "run": {"runId": str(own), "facets": facets},
        "job": job,
        "inputs": [],
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": SCHEMA_URL,
    }


def _facet(name: str, **fields: Any) -> dict[str, Any]:
    url = f"{_FACETS}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **fields}
