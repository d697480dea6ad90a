"""Schedules on a real Prefect server on loopback: one that fires, is late, is killed, is spent.

The server, the process that serves, the worker and every run are processes of their own. What
Prefect believes is held against the ledger and the folders at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from release.budget.ledger import Abort, ScopeCap, create_ledger, read_ledger
from release.operate.findings import Level
from release.operate.operations import Place, left_behind, recover
from release.records.keys.files import create_key
from tests.conftest import PROJECT
from tests.operate.receivers import webhook
from tests.server.servers import BIN, Server, running, server_in, stopping, wait_for
from tests.small import MARKED as ROWS
from tests.small import Small, check_unmarked, query


def place_in(folder: Path, affordable: int) -> Place:
    """A template for any day, a key, and a ledger that can pay for some."""
    small = Small(ROWS, [query("count", by=[]), query("mode", sensitivity="global", by=[])])
    folder.mkdir(parents=True)
    small.write(folder)
    plain = small.plain()
    plain["release"] |= {"id": "day-{period}", "period": "{period}"}
    plain["queries"][0]["where"] = "DATE '{period}' > DATE '2000-01-01'"
    plain["budget"] |= {"scope": f"scope-{affordable}"}
    (folder / "nightly.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    signer = create_key(folder / "signing.key")
    cap = ScopeCap(scope=f"scope-{affordable}", epsilon=str(2 * affordable), delta="0")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    return Place(folder / "out", folder / "signing.key")


def days_ago(days: int) -> str:
    return (datetime.now(tz=UTC).date() - timedelta(days=days)).isoformat()


def serving(server: Server, place: Place, since: str, cron: str, **more: str) -> list[str]:
    folder = place.out.parent
    words = ["dp-release", "serve", str(folder / "nightly.yaml"), "--cron", cron]
    words += ["--since", since, "--out", str(place.out), "--key", str(place.key)]
    return [*words, *(word for name, value in more.items() for word in (f"--{name}", value))]


def public(place: Place) -> list[str]:
    folder = place.out / "public"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def channels(folder: Path, *addresses: str) -> str:
    """A private file of addresses."""
    path = folder / "channels"
    path.touch(0o600)
    path.write_text("\n".join(addresses) + "\n", "utf-8")
    return str(path)


FAILS = """
import sys
import flows.scheduled as own
def fails(*given, **named):
    raise ValueError("quagzil-17")
setattr(own, sys.argv[1], fails)
spec, out, key, since = sys.argv[2:]
state = own.scheduled_flow(spec, out, since, key, return_state=True)
print(state.name, state.message)
"""


def ends_of_foreign_exceptions(server: Server, place: Place) -> list[str]:
    """What a run ends with where something of ours, or around it, breaks with a value in hand."""
    words = [str(place.out.parent / "nightly.yaml"), str(place.out), str(place.key), days_ago(1)]
    told = [
        server.run("python", "-c", FAILS, where, *words)
        for where in ("release_due", "release_period")
    ]
    return [one.splitlines()[-1] for one in told]


def test_a_cron_schedule_fires_catches_up_and_stops_with_its_budget(
    server: Server, tmp_path: Path
) -> None:
    """Five periods are due, and the scope can pay for three."""
    place = place_in(tmp_path / "spent", affordable=3)
    words = serving(server, place, days_ago(5), "* * * * *")
    # Nobody would be told of what goes wrong, and nobody would notice: refused at once.
    nobody = channels(tmp_path, "prefect://custom-webhook/nobody")
    refused = server.start(*words, "--notify", nobody)
    assert refused.wait(60) == 2
    told = (server.home / "dp-release.log").read_text("utf-8").splitlines()
    assert told[-1] == (
        "error: --notify: the server has no block 'custom-webhook/nobody'; prefect block ls"
    )
    told_to = tmp_path / "told.jsonl"
    with stopping(server.start(*words, "--notify", channels(tmp_path, f"file://{told_to}"))):
        # While it waits for its minute: exceptions end as their kind alone.
        foreign = ends_of_foreign_exceptions(server, place_in(tmp_path / "fails", affordable=9))
        assert [re.sub("[0-9a-f]{8}", "#", line) for line in foreign] == [
            "Failed error: internal error # (ValueError)",
            "Failed 0 released, 1 refused: error: internal error (ValueError)",
        ]
        ended = wait_for(
            lambda: [one for one in server.runs() if one["state_name"] == "BudgetSpent"],
            150,
            "the end of the budget",
        )
    told = (server.home / "dp-release.log").read_text("utf-8").splitlines()
    rehearsed = f"nightly.yaml: {days_ago(5)} was rehearsed, and would not be refused"
    assert any(line.startswith(rehearsed) for line in told), told
    # The terminal shows the reason of a failure, and not Prefect's alone.
    reason = f"nightly.yaml: {days_ago(2)}: error: budget.epsilon: scope 'scope-3' has spent 6"
    assert any(reason in line for line in told), told
    (run,) = ended
    titles = [json.loads(line)["title"] for line in told_to.read_text("utf-8").splitlines()]
    released = [f"day-{days_ago(days)}: released" for days in (5, 4, 3)]
    assert titles == [*released, "nightly.yaml: budget spent"]
    assert run["state_type"] == "CANCELLED"
    assert run["state"]["message"].startswith(
        "3 released, 1 refused; its schedule is paused: error: budget.epsilon: scope 'scope-3'"
    )
    assert public(place) == [f"day-{days_ago(days)}" for days in (5, 4, 3)]
    (deployment,) = server.post("deployments/filter", {"flows": {"name": {}}, "limit": 9})
    assert deployment["paused"]
    # Each period is a run of its own, with its period as a parameter, and nothing of the table.
    runs = server.runs("dp-release-period")
    ours = [one for one in runs if one["parameters"]["out"] == str(place.out)]
    states = {one["name"]: one["state_name"] for one in ours}
    assert states == {
        **{days_ago(days): "Completed" for days in (5, 4, 3)},
        days_ago(2): "Failed",
    }
    artifacts = server.post("artifacts/filter", {})
    keys = {one["key"] for one in artifacts}
    assert {f"{kind}-day-{days_ago(5)}" for kind in ("queries", "verdict", "report")} <= keys
    (table,) = [one for one in artifacts if one["key"] == f"queries-day-{days_ago(5)}"]
    by_query = {row["query"]: row["error"] for row in json.loads(table["data"])}
    assert by_query["the_count"] == "in the auditor's folder"
    assert by_query["the_mode"].endswith("steps on average")
    check_unmarked(server.home)
    assert not [one for one in server.disagreements(place) if one.level is Level.FAULT]


def kill_run(identifier: str) -> None:
    """Kill the process of a flow run, which a worker has put into a group of its own."""
    killed = 0
    for process in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"FLOW_RUN_ID={identifier}".encode() in process.read_bytes():
                os.kill(int(process.parent.name), signal.SIGKILL)
                killed += 1
    assert killed


def deployed(server: Server, place: Place) -> str:
    """The deployment of ``deploy/prefect.yaml``, on a process work pool; its identifier."""
    folder = place.out.parent
    shutil.copy(PROJECT / "deploy" / "prefect.yaml", folder / "prefect.yaml")
    server.run("prefect", "work-pool", "create", "dp-release", "--type", "process", "--overwrite")
    done = subprocess.run(
        [str(BIN / "prefect"), "--no-prompt", "deploy", "--all"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**server.environment, "DP_RELEASE_FOLDER": str(folder)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = server.post("deployments/filter", {"deployments": {"name": {"any_": ["nightly"]}}})
    (one,) = [d for d in found if d["parameters"]["out"] == str(place.out)]
    return str(one["id"])


@pytest.mark.nightly
def test_a_late_run_a_killed_one_and_what_prefect_believes(  # noqa: PLR0915 - one long story
    server: Server, tmp_path: Path
) -> None:
    """On a worker: due before there was one, killed in mid-draw, caught up with, and orphaned."""
    place = place_in(tmp_path / "worker", affordable=40)
    mark = tmp_path / "die"
    with ExitStack() as stack:
        hook = stack.enter_context(webhook())
        ops = stack.enter_context(webhook())
        address = ops.address.replace("json://", "http://")
        server.run(
            "python", "-c",
            "from prefect.blocks.notifications import CustomWebhookNotificationBlock as B; "
            "told = {'title': '{{subject}}', 'message': '{{body}}'}; "
            f"B(name='ops', url={address!r}, json_data=told).save('ops')",
        )  # fmt: skip
        notify = channels(tmp_path, hook.address, "prefect://custom-webhook/ops")
        identifier = deployed(server, place)
        since = days_ago(2)
        given = {"parameters": {"since": since, "notify": notify}}
        past = (datetime.now(tz=UTC) - timedelta(minutes=3)).isoformat()
        scheduled = {"type": "SCHEDULED", "state_details": {"scheduled_time": past}}
        path = f"deployments/{identifier}/create_flow_run"
        first = server.post(path, {**given, "state": scheduled})["id"]

        def state_of(run: str) -> str:
            (found,) = server.post("flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
            return str(found["state_name"])

        # Nobody is there to run it.
        wait_for(lambda: state_of(first) == "Late", 90, "late")
        assert public(place) == []
        # It is killed in mid-draw once there is a worker.
        mark.touch()
        killing = str(PROJECT / "tests" / "killing")
        worker = stack.enter_context(
            stopping(
                server.start(
                    "prefect", "worker", "start", "--pool", "dp-release", "--type", "process",
                    DIE_IN_DRAW=str(mark), PYTHONPATH=killing,
                )
            )
        )  # fmt: skip
        wait_for(lambda: state_of(first) == "Crashed", 120, "crashed")
        assert not mark.exists()
        # Whoever watched the run has recovered it: drawn, so not refunded, and nothing is left.
        wait_for(lambda: left_behind(place.out) == (), 60, "recovered")
        entries = read_ledger(place.out / "ledger").entries
        assert [entry.drawn for entry in entries if isinstance(entry, Abort)] == [True]
        lost = f"day-{since}: crashed during its draw"
        wait_for(lambda: hook.titles == ops.titles == [lost], 30, "notified")
        # The next run waits as long as somebody else is at work in the scope. Nobody holds a lock
        # then; it is at work all the same, and nobody calls it killed, however long it takes.
        slot = {"slots": 1, "names": ["dp-release.scope-40"]}

        def taken() -> bool:
            with suppress(urllib.error.HTTPError):
                server.post("v2/concurrency_limits/increment", {**slot, "mode": "concurrency"})
                return True
            return False

        # The killed run's comes free when its lease ends.
        wait_for(taken, 240, "the slot")
        second = server.post(path, given)["id"]
        wait_for(lambda: state_of(second) == "Running", 120, "running")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("release.operate.prefect_drift._RECENT", timedelta(0))
            faults = [
                one.message for one in server.disagreements(place) if one.level is Level.FAULT
            ]
        # It catches up; the lost charge stays.
        server.post("v2/concurrency_limits/decrement", slot)
        wait_for(lambda: state_of(second) == "Completed", 120, "completed")
        assert not [told for told in faults if told.startswith("run ")]
        assert public(place) == [f"day-{days_ago(days)}" for days in (2, 1)]
        assert read_ledger(place.out / "ledger").state.spent("scope-40").epsilon == 6
        # One is cancelled from the dashboard in mid-draw: ended, recovered, told.
        mark.write_text("wait")
        given["parameters"]["since"] = days_ago(3)
        cancelled = server.post(path, given)["id"]
        wait_for(lambda: not mark.exists(), 120, "drawing")
        cancelling = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
        server.post(f"flow_runs/{cancelled}/set_state", cancelling)
        wait_for(lambda: state_of(cancelled) == "Cancelled", 120, "cancelled")
        wait_for(lambda: left_behind(place.out) == (), 60, "recovered")
        entries = read_ledger(place.out / "ledger").entries
        assert [entry.drawn for entry in entries if isinstance(entry, Abort)] == [True, True]
        # The last notices: both periods of the second run, and the cost of the cancelled one.
        expected = [lost, *(f"day-{days_ago(days)}: released" for days in (2, 1))]
        expected.append(f"day-{days_ago(3)}: crashed during its draw")
        wait_for(lambda: len(hook.titles + ops.titles) >= 8, 60, "notified")
        assert hook.titles == ops.titles == expected
        # Worker and run are killed together: nobody tells Prefect, which believes on.
        mark.write_text("wait")
        third = server.post(path, given)["id"]
        wait_for(lambda: not mark.exists(), 120, "drawing")
        assert not [one for one in server.disagreements(place) if one.level is Level.FAULT]
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        kill_run(third)
    assert state_of(third) == "Running"
    reported = [one.message for one in server.disagreements(place)]
    assert len([told for told in reported if "no process is at work: it was killed" in told]) == 2
    # The ledger and the folders alone tell the truth, and are put right by them alone.
    (left,) = left_behind(place.out)
    assert left == f"day-{days_ago(3)}"
    assert recover(place, left) == "given up"
    entries = read_ledger(place.out / "ledger").entries
    assert [entry.drawn for entry in entries if isinstance(entry, Abort)] == [True, True, True]
    # Records that are lost, of a release that is there.
    for one in server.runs("dp-release-period"):
        if one["name"] == days_ago(2):
            server.delete(f"flow_runs/{one['id']}")
    reported = [one.message for one in server.disagreements(place)]
    assert any(f"day-{days_ago(2)} is public; there is no record" in told for told in reported)


def unit_environment(unit: str) -> dict[str, str]:
    """What a unit of ours tells Prefect, but for where its home is."""
    text = (PROJECT / "deploy" / unit).read_text("utf-8")
    words = " ".join(re.findall(r"^Environment=(.*)$", text, re.MULTILINE)).split()
    found = dict(word.split("=", 1) for word in words)
    return {name: value for name, value in found.items() if name != "PREFECT_HOME"}


RUN_IT = """
import sys
from flows.scheduled import scheduled_flow
spec, out, key, since = sys.argv[1:]
state = scheduled_flow(spec, out, since, key, return_state=True)
print(state.name, state.message)
"""


@pytest.mark.nightly
def test_one_run_in_a_scope_whatever_the_spec_and_the_server(
    tmp_path: Path, prefect_home: Path
) -> None:
    """The second spec waits for the first; after a kill of it and of the server its slot is free.

    The server keeps leases as the unit that we ship tells it to.
    """
    server = server_in(tmp_path / "home", prefect_home)
    places = [place_in(tmp_path / name, affordable=9) for name in ("one", "two")]
    mark = tmp_path / "die"
    told = unit_environment("prefect-server.service")

    def begin(place: Place, **more: str) -> subprocess.Popen[bytes]:
        words = [str(place.out.parent / "nightly.yaml"), str(place.out), str(place.key)]
        return server.start("python", "-c", RUN_IT, *words, days_ago(1), **more)

    def slots() -> int:
        limit = server.post("v2/concurrency_limits/filter", {})
        return sum(int(one["active_slots"]) for one in limit)

    with ExitStack() as stack:
        first_server = stack.enter_context(running(server, **told))
        mark.write_text("wait")
        killing = str(PROJECT / "tests" / "killing")
        first = stack.enter_context(
            stopping(begin(places[0], DIE_IN_DRAW=str(mark), PYTHONPATH=killing))
        )
        wait_for(lambda: not mark.exists(), 120, "drawing")
        second = stack.enter_context(stopping(begin(places[1])))
        wait_for(lambda: len(server.runs()) == 2, 60, "the second run")
        time.sleep(5)
        assert second.poll() is None
        assert read_ledger(places[1].out / "ledger").state.spent("scope-9").epsilon == 0
        assert slots() == 1
        for process in (second, first, first_server):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with running(server, **told):
        # The slot is still taken: nobody has given it back.
        assert slots() == 1
        with stopping(begin(places[1])) as third:
            wait_for(lambda: third.poll() is not None, 240, "the third run")
    assert public(places[1]) == [f"day-{days_ago(1)}"]
    assert "Completed 1 released, 0 refused" in (server.home / "python.log").read_text("utf-8")
    assert left_behind(places[0].out) == (f"day-{days_ago(1)}",)


@pytest.mark.nightly
def test_a_server_that_is_down_is_told_by_the_process_that_serves(
    tmp_path: Path, prefect_home: Path
) -> None:
    """Once; what is loaded from the server cannot tell it, and everything goes on afterwards."""
    server = server_in(tmp_path / "home", prefect_home)
    place = place_in(tmp_path / "down", affordable=9)
    told = unit_environment("prefect-server.service")
    with ExitStack() as stack:
        first = stack.enter_context(running(server, **told))
        hook = stack.enter_context(webhook())
        server.run(
            "python", "-c",
            "from prefect.blocks.notifications import CustomWebhookNotificationBlock as B; "
            "B(name='ops', url='http://127.0.0.1:9', json_data={'x': '{{body}}'}).save('ops')",
        )  # fmt: skip
        notify = channels(tmp_path, "prefect://custom-webhook/ops", hook.address)
        words = serving(server, place, days_ago(1), "* * * * *", notify=notify)
        served = stack.enter_context(stopping(server.start(*words)))
        wait_for(lambda: hook.titles, 150, "a release")
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        down = "Prefect at 127.0.0.1: server down"
        wait_for(lambda: down in hook.titles, 150, "told")
        assert served.poll() is None
        stack.enter_context(running(server, **told))
        # A later run is as good as any before.
        shutil.rmtree(place.out / "public" / f"day-{days_ago(1)}")
        lost = f"day-{days_ago(1)}: needs somebody"
        wait_for(lambda: lost in hook.titles, 240, "told")
    assert hook.titles == [f"day-{days_ago(1)}: released", down, lost]
