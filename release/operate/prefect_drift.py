"""Compares the run states a Prefect server reports with the ledger and the release folders.

Prefect's records are a dashboard: a killed run stays ``Running`` for ever, records of tasks and
runs get lost, and a temporary server outlives a killed process. The ledger is authoritative, so a
disagreement is reported and nothing follows it. The server is asked over HTTP; Prefect is not
imported.
"""

from __future__ import annotations

import datetime
import http.client
import json
import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from release.budget.ledger import replay
from release.bundle.publish import LEDGER, is_at_work
from release.errors import ReleaseError, SpecError
from release.operate.findings import Finding, fault, look, or_well
from release.operate.operations import Place, public_names
from release.operate.schedule import Schedule
from release.spec.periods import parse_period

_FLOWS = ["dp-release-period", "dp-release-scheduled"]
_AT_ONCE = 200
_RUN_IS = b"PREFECT__FLOW_RUN_ID="
_AT_WORK = {"RUNNING", "PENDING", "CANCELLING"}
_ENDED_BADLY = {"FAILED", "CRASHED", "CANCELLED"}
_RECENT = datetime.timedelta(minutes=10)

FlowRun: TypeAlias = dict[str, Any]
"""A flow run as the server describes it."""


def disagreements(place: Place, api: str) -> Iterator[Finding]:
    """Every run whose state is wrong, and every public release whose run is not recorded.

    Raises:
        SpecError: no Prefect server answers at ``api``.
    """
    runs = [run for run in flow_runs(api) if _is_ours(run, place.out)]
    if not runs:
        yield look("prefect", f"no run there is about {place.out.resolve()}")
        return
    summary = f"{len(runs)} runs there, all in agreement with the ledger and the folders"
    yield from or_well(_disagreements(place, runs), "prefect", summary)


def _disagreements(place: Place, runs: list[FlowRun]) -> Iterator[Finding]:
    is_alive = _alive(runs)
    last: dict[str, FlowRun] = {}
    for run in runs:
        release_id = _release_of(run)
        if release_id is not None:
            # Runs come oldest first; only the last attempt at a release says how it stands.
            last[release_id] = run
        elif _is_at_work(run) and not is_alive(run) and not _any_release_at_work(place.out):
            message = f"run {run['name']} is {run['state_type']} there"
            yield _finding(run, f"{message}; no process is at work: it was killed")
    folder = place.out / LEDGER
    withdrawn = replay(folder).state.withdrawn if folder.is_dir() else set()
    for release_id, run in sorted(last.items()):
        is_public = (place.out / "public" / release_id).is_dir()
        problem = ""
        if _is_at_work(run) and not is_alive(run) and not is_at_work(place.out, release_id):
            outcome = "it is public" if is_public else "nothing is public"
            problem = f"no process is at work: it was killed, and {outcome}"
        elif run["state_type"] == "COMPLETED" and not is_public and release_id not in withdrawn:
            problem = "nothing is public"
        elif run["state_type"] in _ENDED_BADLY and is_public:
            problem = "it is public and paid for"
        if problem:
            where = f"{release_id} is {run['state_type']} there (run {run['name']})"
            yield _finding(run, f"{where}; {problem}")
    for name in public_names(place.out):
        if name not in last:
            yield look("prefect", f"{name} is public; there is no record of its run there")


def _is_at_work(run: FlowRun) -> bool:
    return run["state_type"] in _AT_WORK


def _finding(run: FlowRun, message: str) -> Finding:
    """A fault; or where the state is recent, a remark, because it may be about to change."""
    try:
        since = datetime.datetime.fromisoformat(str(run["state"]["timestamp"]))
        recent = datetime.datetime.now(tz=datetime.UTC) - since < _RECENT
    except (KeyError, TypeError, ValueError):
        recent = False
    return look("prefect", f"{message} (look again)") if recent else fault("prefect", message)


def flow_runs(api: str) -> Iterator[FlowRun]:
    """All runs of our flows that have left their schedule, oldest first.

    Raises:
        SpecError: no Prefect server answers at ``api``.
    """
    offset = 0
    while True:
        query = {
            "flows": {"name": {"any_": _FLOWS}},
            "flow_runs": {"state": {"type": {"not_any_": ["SCHEDULED"]}}},
            "sort": "EXPECTED_START_TIME_ASC",
            "limit": _AT_ONCE,
            "offset": offset,
        }
        page = _post(f"{api.rstrip('/')}/flow_runs/filter", query)
        yield from page
        # The server caps a page at this size, and tells no total.
        if len(page) < _AT_ONCE:
            return
        offset += _AT_ONCE


def _post(url: str, query: dict[str, Any]) -> list[FlowRun]:
    # urlopen would read file: addresses too.
    if not url.startswith(("http://", "https://")):
        raise SpecError("--prefect", f"{url!r} is no address; write http://127.0.0.1:4200/api")
    request = urllib.request.Request(  # noqa: S310 - checked above
        url, json.dumps(query).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - as above
            runs = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SpecError("--prefect", f"no Prefect server answers at {url!r}") from error
    if not isinstance(runs, list):
        raise SpecError("--prefect", f"{url!r} does not answer as a Prefect server does")
    return runs


def _is_ours(run: FlowRun, out: Path) -> bool:
    folder = (run.get("parameters") or {}).get("out")
    return isinstance(folder, str) and Path(folder).resolve() == out.resolve()


def _release_of(run: FlowRun) -> str | None:
    """The release that a run is about, by its parameters; None where it is about several."""
    parameters = run.get("parameters") or {}
    if "period" not in parameters:
        return None
    if parameters.get("release_id"):
        return str(parameters["release_id"])
    # A run that somebody started by hand names the period alone.
    try:
        period = parse_period(str(parameters["period"]))
        return Schedule(Path(str(parameters["spec"])), period).release_ids()(period)
    except ReleaseError:
        return None


def _alive(runs: list[FlowRun]) -> Callable[[FlowRun], bool]:
    """Return whether a run has a process here, also while it waits or delivers without a lock.

    Workers and ``serve`` give the process of a run its identifier. The run of a period lives in the
    process of the scheduled run around it, so it is alive if it began after one that is.
    """
    here = set(_flow_runs_here())
    starts = [str(run["start_time"]) for run in runs if run.get("id") in here and _started(run)]
    first = min(starts, default=None)

    def alive(run: FlowRun) -> bool:
        is_period = "period" in (run.get("parameters") or {})
        # Times are ISO 8601 in UTC, so their texts compare as they do.
        is_later = first is not None and _started(run) >= first
        return run.get("id") in here or (is_period and is_later)

    return alive


def _started(run: FlowRun) -> str:
    return str(run.get("start_time") or "")


def _flow_runs_here() -> Iterator[str]:
    """The flow runs that have a process of this user on this machine; on Linux only."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            # The process has ended meanwhile, or belongs to another user.
            continue
        for variable in variables:
            if variable.startswith(_RUN_IS):
                yield variable.removeprefix(_RUN_IS).decode("ascii", "replace")


def _any_release_at_work(out: Path) -> bool:
    return any(is_at_work(out, path.name.removeprefix(".work-")) for path in out.glob(".work-*"))


def orphans() -> Iterator[Finding]:
    """Temporary Prefect servers whose run has ended; on Linux only."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            status = (folder / "status").read_text("utf-8")
            own = folder.stat().st_uid == os.getuid()
        except OSError:
            continue
        parent = re.search(r"^PPid:\s+(\d+)$", status, re.MULTILINE)
        server = any(word.startswith(b"prefect.server.api.server:") for word in words)
        # Process 1 adopts a process whose parent has died.
        if own and server and parent and parent[1] == "1":
            yield look(
                "prefect",
                f"a temporary server (process {folder.name}) outlived its run and knows nothing "
                f"that the ledger does not; kill {folder.name}",
            )
