"""The units and the Compose file: checked by their own tools where these are, and by ours."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from release.budget.ledger import ScopeCap, create_ledger
from release.cli.main import app
from release.records.keys.files import create_key
from supply.locks import read, running
from tests.conftest import PROJECT
from tests.process.test_wheel import FILES, FOLDERS
from tests.spec.test_periods import template

DEPLOY = PROJECT / "deploy"
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")])


def check_call(words: list[str]) -> None:
    """The command line takes these arguments: every option is there, and none is missing."""
    command = typer.main.get_command(app)
    context = command.make_context("dp-release", ["--help"], resilient_parsing=True)
    found = command.get_command(context, words[0])  # type: ignore[attr-defined]  # a group
    assert found is not None, words
    found.make_context(words[0], words[1:])


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for unit in UNITS:
        for line in re.findall(r"^Exec\w+=(.*)$", unit.read_text("utf-8"), re.MULTILINE):
            words = shlex.split(line)
            if words[0].endswith("/dp-release"):
                found.append((unit.name, words[1:]))
    for name, service in yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))[
        "services"
    ].items():
        if service["command"][0] == "dp-release":
            found.append((name, service["command"][1:]))
    return found


@pytest.mark.parametrize(("where", "words"), commands(), ids=lambda value: str(value)[:40])
def test_every_call_is_one_that_the_command_line_takes(where: str, words: list[str]) -> None:
    check_call(words)


def test_there_are_calls_to_check() -> None:
    assert len(commands()) == 4
    with pytest.raises(Exception, match="No such option"):
        check_call(["recover", "--out", "x", "--everything"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_units(unit: Path, tmp_path: Path) -> None:
    for one in UNITS:
        text = re.sub(r"/opt/dp-release/bin/[a-z-]+", "/bin/true", one.read_text("utf-8"))
        (tmp_path / one.name).write_text(text, "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)],  # noqa: S607 - by name
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "dp-release" in line or "prefect" in line]
    assert ours == []


def test_compose_understands_the_file() -> None:
    tool = shutil.which("docker-compose")
    if tool is None:
        pytest.skip("Compose is not here")
    named = {"IMAGE": "x", "FOLDER": "/srv", "TABLES": "/tables", "KEY": "/key"}
    given = {f"DP_RELEASE_{name}": value for name, value in named.items()}
    done = subprocess.run(
        [tool, "-f", str(DEPLOY / "compose.yaml"), "config"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **given},
    )
    assert done.returncode == 0, done.stderr
    served = yaml.safe_load(done.stdout)["services"]["serve"]
    assert "/tables:/tables:ro" in str(served["volumes"])


def test_what_compose_needs_is_declared() -> None:
    plain = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    for service in plain["services"].values():
        assert set(service.get("depends_on", {})) <= plain["services"].keys()
        assert set(service.get("secrets", [])) <= plain["secrets"].keys()
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0] if not volume.startswith("$") else ""
            assert source in {"", *plain["volumes"]}, volume
        assert service["environment"]["DO_NOT_TRACK"] == "1"
    ports = [p for s in plain["services"].values() for p in s.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def deployments() -> dict[str, dict[str, Any]]:
    plain = yaml.safe_load((DEPLOY / "prefect.yaml").read_text("utf-8"))
    return {one["name"]: one for one in plain["deployments"]}


@pytest.mark.parametrize("name", ["nightly", "census", "verify"])
def test_a_deployment_names_a_flow_and_its_parameters(name: str) -> None:
    one = deployments()[name]
    module, _, flow_name = one["entrypoint"].rpartition(".")
    flow = getattr(importlib.import_module(module), flow_name)
    known = flow.parameters.properties
    assert one["parameters"].keys() <= known.keys()
    assert set(flow.parameters.required or ()) <= one["parameters"].keys()
    # The log of a run may not hold tracebacks, whose messages quote values.
    settings = one["work_pool"]["job_variables"]["env"]
    assert settings["PREFECT_LOGGING_LEVEL"] == "CRITICAL"
    if name != "verify":
        assert one["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}


def test_there_is_no_other_deployment() -> None:
    assert list(deployments()) == ["nightly", "census", "verify"]


LOADS = """
import sys
from prefect.flows import load_flow_from_entrypoint
for entrypoint in sys.argv[1:]:
    print(load_flow_from_entrypoint(entrypoint).name)
"""


def test_every_flow_is_loaded_by_its_path(tmp_path: Path) -> None:
    """From elsewhere, as a worker does; no file of the folder hides a package."""
    entrypoints = []
    for one in deployments().values():
        module, _, name = one["entrypoint"].rpartition(".")
        entrypoints.append(f"{PROJECT / module.replace('.', '/')}.py:{name}")
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *entrypoints],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**settings, "HOME": str(tmp_path)},
    )
    assert done.stdout.split() == ["dp-release-scheduled", "dp-release", "dp-release-verify"], (
        done.stderr
    )


SERVICES = sorted(DEPLOY.glob("*.service"))
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not here"
)


@needs_systemd
@pytest.mark.parametrize("unit", SERVICES, ids=lambda path: path.name)
def test_a_unit_is_hardly_exposed(unit: Path) -> None:
    words = ["systemd-analyze", "security", "--offline=true", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= 3.0


def system_calls(*groups: str) -> set[str]:
    """The calls of groups that systemd names, which may contain further groups."""
    found: set[str] = set()
    for group in groups:
        done = subprocess.run(
            ["systemd-analyze", "syscall-filter", group],  # noqa: S607 - by name
            capture_output=True,
            text=True,
            check=True,
        )
        words = [line.strip() for line in done.stdout.splitlines()[1:]]
        words = [word for word in words if word and not word.startswith("#")]
        found |= {word for word in words if not word.startswith("@")}
        found |= system_calls(*(word for word in words if word.startswith("@")))
    return found


@needs_systemd
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here")
@pytest.mark.nightly
def test_a_night_makes_only_calls_that_its_unit_allows(tmp_path: Path) -> None:
    """Traced: system calls, kinds of sockets, and the places that are written to."""
    unit = (DEPLOY / "dp-release.service").read_text("utf-8")
    granted, denied = re.findall(r"^SystemCallFilter=(\S+)$", unit, re.MULTILINE)
    allowed = system_calls(granted) - system_calls(denied.removeprefix("~"))
    families = re.findall(r"^RestrictAddressFamilies=(.*)$", unit, re.MULTILINE)[0].split()
    place, cache, scratch = tmp_path / "srv", tmp_path / "cache", tmp_path / "tmp"
    for folder in (place, cache, scratch):
        folder.mkdir()
    spec = template(place)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="9", delta="0")
    create_ledger(place / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    words = ["catch-up", str(spec), "--since", "2024-01-03", "--out", str(place / "out")]
    trace = tmp_path / "trace"
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", str(trace), sys.executable, "-m", "release", *words,  # noqa: S607
         "--key", str(tmp_path / "key")],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "DP_RELEASE_CACHE": str(cache), "TMPDIR": str(scratch),
             "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"},
    )  # fmt: skip
    assert "1 released" in done.stdout, done.stdout + done.stderr
    text = trace.read_text("utf-8", "replace")
    calls = set(re.findall(r"^\d+ +([a-z0-9_]+)\(", text, re.MULTILINE))
    assert {"openat", "renameat2"} & calls
    assert calls <= allowed, calls - allowed
    assert set(re.findall(r"socket\((AF_[A-Z0-9]+)", text)) <= {*families}
    opened = re.findall(r'openat\(\S+, "([^"]+)", [A-Z_|]*(?:O_WRONLY|O_RDWR|O_CREAT)', text)
    places = ("/dev/", "/proc/self/", *map(str, (place, cache, scratch)))
    assert not [path for path in opened if path.startswith("/") and not path.startswith(places)]
    assert any(path.startswith(str(place / "out")) for path in opened)


def test_the_image_holds_what_the_wheel_is_made_of_by_the_lock() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    copied = {word for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE)
              for word in line.split()}  # fmt: skip
    assert copied == {*FILES, *FOLDERS, "supply"}
    (extras,) = re.findall(r'^ARG EXTRAS="(.*)"$', text, re.MULTILINE)
    assert {*extras.split()} <= {extra for pin in read(running()) for extra in pin.extras}
    assert "--no-deps --require-hashes --requirement pins.txt" in text
    assert re.search(r"^USER [1-9]", text, re.MULTILINE)
    assert text.count("FROM ") == 2
