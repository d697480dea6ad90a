"""The units and the Compose file: checked by their own tools where these are, and by ours."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main
import yaml

from release.cli.main import app
from tests.conftest import PROJECT

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


def test_the_deployment_names_a_flow_and_its_parameters() -> None:
    from flows.scheduled import scheduled_flow

    plain = yaml.safe_load((DEPLOY / "prefect.yaml").read_text("utf-8"))
    (one,) = plain["deployments"]
    module, _, name = one["entrypoint"].rpartition(".")
    assert (module, name) == ("flows.scheduled", scheduled_flow.fn.__name__)
    known = scheduled_flow.parameters.properties
    assert one["parameters"].keys() <= known.keys()
    assert set(scheduled_flow.parameters.required or ()) <= one["parameters"].keys()
    assert one["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
