"""What a Prefect server believes of our runs, held against the ledger and the folders.

Prefect's records are a dashboard: a killed run stays ``Running`` for ever, records of tasks and
runs get lost, and a temporary server outlives a killed process. None of that is followed here; it
is told, with what is true. The server is asked over HTTP, and Prefect itself is not imported.
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
from typing import Any

from release.budget.ledger import replay
from release.bundle.publish import LEDGER, is_at_work
from release.errors import ReleaseError, SpecError
from release.operate.doctor import Finding, fault, look, well
from release.operate.operations import Place, public_names
from release.operate.schedule import Schedule
from release.spec.periods import parse_period

_FLOWS = ["dp-release-period", "dp-release-scheduled"]
_AT_ONCE = 200
_RUN_IS = b"PREFECT__FLOW_RUN_ID="
_AT_WORK = {"RUNNING", "PENDING", "CANCELLING"}
_ENDED_BADLY = {"FAILED", "CRASHED", "CANCELLED"}


def wrong_beliefs(place: Place, api: str) -> Iterator[Finding]:
    """Every record of Prefect's that is not so, and every release that it has no record of.

    Raises:
        SpecError: nobody answers at ``api``.
    """
    runs = [run for run in flow_runs(api) if _is_ours(run, place.out)]
    wrong, known = 0, set()
    last: dict[str, dict[str, Any]] = {}
    withdrawn, alive = _withdrawn(place), _alive(runs)
    for run in runs:
        release_id = _release_of(run)
        state, name = str(run["state_type"]), str(run["name"])
        if release_id is None:
            if state in _AT_WORK and not alive(run) and not _anybody_at_work(place.out):
                told = f"run {name} is {state} there; no process is at work: it was killed"
                yield _finding(run, told)
                wrong += 1
            continue
        known.add(release_id)
        last[release_id] = run
    for release_id, run in sorted(last.items()):
        state, name = str(run["state_type"]), str(run["name"])
        public = (place.out / "public" / release_id).is_dir()
        wrongly: str | None = None
        if state in _AT_WORK and not alive(run) and not is_at_work(place.out, release_id):
            became = "it is public" if public else "nothing is public"
            wrongly = f"no process is at work: it was killed, and {became}"
        elif state == "COMPLETED" and not public and release_id not in withdrawn:
            wrongly = "nothing is public"
        elif state in _ENDED_BADLY and public:
            wrongly = "it is public and paid for"
        if wrongly is not None:
            yield _finding(run, f"{release_id} is {state} there (run {name}); {wrongly}")
            wrong += 1
    for name in public_names(place.out) if runs else ():
        if name not in known:
            yield look("prefect", f"{name} is public; there is no record of its run there")
            wrong += 1
    if not wrong:
        if not runs:
            yield look("prefect", f"no run there is about {place.out.resolve()}")
            return
        yield well("prefect", f"{len(runs)} runs there, and nothing believed that is not so")


_RECENT = datetime.timedelta(minutes=10)


def _finding(run: dict[str, Any], told: str) -> Finding:
    """A fault; of a state that is new only something to look at again, for it may be on its way."""
    try:
        since = datetime.datetime.fromisoformat(str(run["state"]["timestamp"]))
        recent = datetime.datetime.now(tz=datetime.UTC) - since < _RECENT
    except (KeyError, TypeError, ValueError):
        recent = False
    return look("prefect", f"{told} (look again)") if recent else fault("prefect", told)


def _withdrawn(place: Place) -> set[str]:
    folder = place.out / LEDGER
    return replay(folder).state.withdrawn if folder.is_dir() else set()


def flow_runs(api: str) -> Iterator[dict[str, Any]]:
    """All runs of our flows, oldest first.

    Raises:
        SpecError: nobody answers at ``api``.
    """
    offset = 0
    while True:
        asked = {
            "flows": {"name": {"any_": _FLOWS}},
            "flow_runs": {"state": {"type": {"not_any_": ["SCHEDULED"]}}},
            "sort": "EXPECTED_START_TIME_ASC",
            "limit": _AT_ONCE,
            "offset": offset,
        }
        some = _post(f"{api.rstrip('/')}/flow_runs/filter", asked)
        yield from some
        if len(some) < _AT_ONCE:
            return
        offset += _AT_ONCE


def _post(url: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
    if not url.startswith(("http://", "https://")):
        raise SpecError("--prefect", f"{url!r} is no address; write http://127.0.0.1:4200/api")
    request = urllib.request.Request(  # noqa: S310 - checked above
        url, json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - as above
            found = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SpecError("--prefect", f"no Prefect server answers at {url!r}") from error
    if not isinstance(found, list):
        raise SpecError("--prefect", f"{url!r} does not answer as a Prefect server does")
    return found


def _is_ours(run: dict[str, Any], out: Path) -> bool:
    """Whether a run is about this output folder."""
    told = (run.get("parameters") or {}).get("out")
    return isinstance(told, str) and Path(told).resolve() == out.resolve()


def _release_of(run: dict[str, Any]) -> str | None:
    """The release that a run is about, by its parameters; None where it is about several."""
    given = run.get("parameters") or {}
    if "period" not in given:
        return None
    if given.get("release_id"):
        return str(given["release_id"])
    try:
        period = parse_period(str(given["period"]))
        return Schedule(Path(str(given["spec"])), period).release_ids()(period)
    except ReleaseError:
        return None


def _alive(runs: list[dict[str, Any]]) -> Callable[[dict[str, Any]], bool]:
    """Whether a run has a process here: waiting and delivering too, when no release is locked.

    Workers and ``serve`` give the process of a run its identifier. The run of a period has that of
    the run which it is a part of, so it is alive where it began after one that is.
    """
    here = set(_flow_runs_here())
    starts = [run.get("start_time") for run in runs if run.get("id") in here]
    first = min((str(start) for start in starts if start), default=None)

    def alive(run: dict[str, Any]) -> bool:
        part = "period" in (run.get("parameters") or {})
        after = first is not None and str(run.get("start_time") or "") >= first
        return run.get("id") in here or (part and after)

    return alive


def _flow_runs_here() -> Iterator[str]:
    """The flow runs that have a process of this user's on this machine; on Linux only."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = environment.read_bytes().split(b"\0")
        except OSError:
            continue
        yield from (
            word.removeprefix(_RUN_IS).decode("ascii", "replace")
            for word in words
            if word.startswith(_RUN_IS)
        )


def _anybody_at_work(out: Path) -> bool:
    return any(is_at_work(out, path.name.removeprefix(".work-")) for path in out.glob(".work-*"))


def orphans() -> Iterator[Finding]:
    """Temporary Prefect servers whose run is gone; on Linux only."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            status = (folder / "status").read_text("utf-8")
            own = folder.stat().st_uid == os.getuid()
        except OSError:
            continue
        parent = re.search(r"^PPid:\s+(\d+)$", status, re.MULTILINE)
        server = any(word.startswith(b"prefect.server.api.server:") for word in words)
        if own and server and parent and parent[1] == "1":
            yield look(
                "prefect",
                f"a temporary server (process {folder.name}) outlived its run and knows nothing "
                f"that the ledger does not; kill {folder.name}",
            )
