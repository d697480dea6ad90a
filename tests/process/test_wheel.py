"""The wheel by itself: samples and schemas inside, one line for a missing extra, every extra."""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.bundle.software import software, source_text
from supply.locks import entries, read, running, select
from tests.conftest import PROJECT
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]

EXTRAS = {
    "flows": ["prefect", "flows.scheduled"],
    "fast": ["ortools.sat.python.cp_model"],
    "postgresql": ["adbc_driver_postgresql.dbapi"],
    "spark": ["pyspark.sql"],
    "fuzz": ["atheris"],
    "bench": ["opendp.prelude", "psutil"],
    "browser": ["axe_playwright_python"],
    "site": ["mkdocs", "mkdocstrings", "mkdocstrings_handlers.python"],
    "notify": ["apprise"],
    "lock": ["uv"],
    "dev": ["pytest", "hypothesis", "frictionless", "moto", "nbclient", "polars", "scipy"],
}
"""What can be imported where an extra is installed."""


def called(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of the checkout."""
    kept = {
        k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("PREFECT")
    }
    settings = {**kept, "HOME": str(cwd), **environment}
    return subprocess.run(
        list(map(str, words)), cwd=cwd, env=settings, capture_output=True, text=True, check=False
    )


installs = pytest.mark.skipif(
    "INSTALLS" not in os.environ, reason="fetches some hundred libraries; make installs"
)


FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in")
FOLDERS = ("release", "dp_release_verify", "flows", "data", "schemas")


def built(source: Path, made: Path) -> Path:
    """The wheel of a folder, which the build writes into."""
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made)
    done = called(*pip, source, cwd=made)
    if "No matching distribution found for setuptools" in done.stderr:
        pytest.skip("needs an index of packages: a build asks for setuptools")
    assert done.returncode == 0, done.stderr
    (found,) = made.glob("*.whl")
    return found


def copied(name: str, place: Path) -> None:
    shutil.copytree(PROJECT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what the repository holds."""
    source = tmp_path_factory.mktemp("source")
    for name in FILES:
        shutil.copy(PROJECT / name, source / name)
    for name in FOLDERS:
        copied(name, source)
    return built(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel, and the libraries of this one."""
    place = tmp_path_factory.mktemp("alone")
    venv.create(place / "venv", symlinks=True)
    python = place / "venv" / "bin" / "python"
    own = Path(
        called(
            python, "-c", "import site; print(site.getsitepackages()[0])", cwd=place
        ).stdout.strip()
    )
    install(wheel, own)
    # A path of a .pth file comes after the wheel, and its own .pth files do not count.
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    (own / "sitecustomize.py").write_text(BLOCKING, "utf-8")
    return python


BLOCKING = """
import os, sys
sys.path[:0] = filter(None, [os.environ.get("BESIDE")])
for name in filter(None, os.environ.get("BLOCKED", "").split(",")):
    sys.modules[name] = None
"""


def install(wheel: Path, packages: Path) -> None:
    """Put a wheel beside others."""
    target = ("--target", packages, "--no-deps", "--no-index", "--quiet")
    done = called(sys.executable, "-m", "pip", "install", *target, wheel, cwd=packages)
    assert done.returncode == 0, done.stderr


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_has_its_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        text = archive.read(name).decode()
    assert "dp-release = release.cli.main:process" in text
    assert "dp-release-verify = dp_release_verify.__main__:command" in text


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["License-Expression"] == "Apache-2.0"
    assert told.get_all("License-File") == ["LICENSE"]
    assert told["Requires-Python"] == ">=3.11"
    assert "differential privacy" in told["Keywords"].split(",")
    classifiers = told.get_all("Classifier") or []
    assert "Programming Language :: Python :: 3.11" in classifiers
    # A classifier of a licence beside the expression is refused by the index.
    assert not [one for one in classifiers if one.startswith("License ::")]
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(told.get_all("Provides-Extra") or []) == set(extras["optional-dependencies"])
    assert set(EXTRAS) == set(extras["optional-dependencies"])


def test_the_description_holds_no_link_that_leads_nowhere(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["Description-Content-Type"] == "text/markdown"
    text = told.get_payload()
    assert isinstance(text, str)
    assert text.count("## ") == (PROJECT / "README.md").read_text("utf-8").count("## ")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith("https:")] == []


def test_the_samples_and_the_schemas_are_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = [name for name in archive.namelist() if name.startswith("release/samples/")]
        for name in inside:
            source = PROJECT / Path(name).relative_to("release/samples")
            assert archive.read(name) == source.read_bytes()
        names = {Path(name).name for name in inside}
        assert {"ami.yaml", "persons.parquet", "spec.schema.json", "persons.yaml"} <= names
        assert sum(archive.getinfo(name).file_size for name in inside) < 800_000
        others = ("supply", "tests", "research", "dp_release_audit")
        assert not [name for name in archive.namelist() if name.startswith(others)]


def test_a_wheel_and_a_checkout_have_the_same_sources(
    wheel: Path, alone: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert source_text(tmp_path) == source_text(PROJECT)
    path = tmp_path / "release" / "py.typed"
    path.write_bytes(b"partial\n")
    assert source_text(tmp_path) != source_text(PROJECT)
    # What a run from the wheel puts into release.json, and a run from here.
    program = "from release.bundle.software import software; print(software().source)"
    printed = called(alone, "-c", program, cwd=tmp_path.parent).stdout.strip()
    assert printed == software().source


def test_the_demo_runs_from_the_wheel_alone(alone: Path, tmp_path: Path) -> None:
    program = "import release; print(release.__file__)"
    assert str(alone.parent.parent) in called(alone, "-c", program, cwd=tmp_path).stdout
    optional = "prefect,pyspark,ortools,scipy,matplotlib,pytest"
    done = called(alone, "-m", "release", "demo", cwd=tmp_path, BLOCKED=optional)
    assert done.returncode == 0, done.stderr
    assert "ami-2013-01-05   VERIFIED   exit 0" in done.stdout
    program = """
import json
from importlib import resources
schemas = resources.files("release") / "samples" / "schemas"
print(json.loads((schemas / "spec.schema.json").read_text("utf-8"))["$schema"])
"""
    found = called(alone, "-c", program, cwd=tmp_path).stdout
    assert found == "https://json-schema.org/draft/2020-12/schema\n"


@pytest.fixture
def beside(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path of Python with the packages that stand beside the product's."""
    packages = tmp_path_factory.mktemp("beside")
    for name in ("dp_release_audit", "research"):
        source = tmp_path_factory.mktemp("source")
        copied(name, source)
        install(built(source / name, tmp_path_factory.mktemp("wheel")), packages)
    return str(packages)


@pytest.mark.nightly
def test_the_figures_are_drawn_by_a_package_of_their_own(
    alone: Path, beside: str, tmp_path: Path
) -> None:
    """The list without matplotlib; a sheet, and one of a sample, with it; results as data."""
    here: dict[str, Any] = {"cwd": tmp_path, "BESIDE": beside}
    listed = called(alone, "-m", "research", "--list", BLOCKED="matplotlib,scipy", **here)
    assert listed.returncode == 0, listed.stderr
    assert {"kadam-05", "beyond-large"} <= set(listed.stdout.split())
    program = "from research.__main__ import run; run()"
    names = ("kadam-13", "kadam-14")
    drawn = called(alone, "-c", program, *names, "--jobs", "1", "--out", "o", **here)
    assert drawn.returncode == 0, drawn.stderr
    made = {path.name for path in (tmp_path / "o").iterdir()}
    assert made >= {"index.md", "contact-sheet.png", "kadam-13.png", "kadam-14.csv"}
    assert "## What holds" in (tmp_path / "o" / "index.md").read_text("utf-8")
    missing = called(alone, "-m", "research", "kadam-13", BLOCKED="matplotlib", **here)
    assert missing.returncode == 2
    assert missing.stderr == "error: drawing needs matplotlib; pip install matplotlib\n"


def test_the_audit_is_a_package_of_its_own(alone: Path, beside: str, tmp_path: Path) -> None:
    spec = Small(ROWS, [query("count", sensitivity="global")]).write(tmp_path)
    words = ("-m", "release", "audit", spec, "--tables", "8", "--runs", "2")
    missing = called(alone, *words, cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.splitlines()[-1] == (
        "error: audit: is a package of its own; pip install dp-release-audit"
    )
    done = called(alone, *words, cwd=tmp_path, BESIDE=beside)
    assert done.returncode == 0, done.stderr
    assert "held" in done.stdout


RUN = "-m release run data/ami.yaml --out o"
SERVE = "-m release serve out-demo/data/nightly.yaml --out o --since 2013-01-06 --cron"


@pytest.mark.parametrize(
    ("extra", "library", "words"),
    [
        ("flows", "prefect", [*SERVE.split(), "15 3 * * *"]),
        ("flows", "prefect", ["-m", "flows.run", "spec.yaml", "--out", "o"]),
        ("flows", "prefect", ["-m", "flows.verify", "o"]),
        ("spark", "pyspark", [*RUN.split(), "--spark", "local[1]"]),
        ("postgresql", "adbc_driver_postgresql", [*RUN.replace("data/ami", "server").split()]),
    ],
    ids=["serve", "flow", "flow of verify", "spark", "server"],
)
def test_a_missing_extra_is_one_line_that_names_it(
    alone: Path, tmp_path: Path, extra: str, library: str, words: list[str]
) -> None:
    for folder in ("data", "schemas"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
        shutil.copytree(PROJECT / folder, tmp_path / "out-demo" / folder)
    small = Small(ROWS, [query("mode", sensitivity="global")]).plain("postgresql:///energy")
    small["tables"]["rows"]["relation"] = "readings"
    (tmp_path / "server.yaml").write_text(yaml.safe_dump(small), "utf-8")
    done = called(alone, *words, cwd=tmp_path, BLOCKED=library)
    lines = [line for line in done.stderr.splitlines() if "reading" not in line]
    assert done.returncode == 2, done.stderr
    assert lines[-1].startswith("error: ")
    assert lines[-1].endswith(f"pip install 'dp-release[{extra}]'")
    assert "Traceback" not in done.stderr


def test_without_ortools_mechanisms_are_found_all_the_same(alone: Path, tmp_path: Path) -> None:
    """The extra ``fast`` only saves time: what is proved does not depend on it."""
    program = """
import release
asked = {"sensitivity": [1], "epsilon": 1, "delta": "0.01", "definition": "probabilistic"}
print(release.design(8, **asked).objective)
"""
    with_it = called(alone, "-c", program, cwd=tmp_path)
    without = called(alone, "-c", program, cwd=tmp_path, BLOCKED="ortools")
    assert without.returncode == 0, without.stderr
    assert without.stdout == with_it.stdout


def test_importing_flows_changes_no_environment_variable(alone: Path, tmp_path: Path) -> None:
    program = """
import json, os
before = dict(os.environ)
import flows, flows.artifacts, flows.run, flows.scheduled, flows.verify
from prefect.settings import get_current_settings
settings = get_current_settings()
after = dict(os.environ)
flows.environment.set_environment()
print(json.dumps([
    sorted(set(before.items()) ^ set(after.items())),
    settings.server.analytics_enabled, settings.logging.level, os.environ["DO_NOT_TRACK"],
]))
"""
    done = called(alone, "-c", program, cwd=tmp_path)
    # In force all the same: Prefect was imported with them, and a run sets them.
    assert json.loads(done.stdout) == [[], False, "CRITICAL", "1"]


def locked(place: Path, *extras: str) -> Path:
    """The Python of an environment with the libraries of the lock, each file held to its hash."""
    python = place / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(place / "venv", with_pip=True)
    pins = place / "pins.txt"
    pins.write_text(entries(select(read(running()), extras)), "utf-8")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes")
    done = called(python, *install, "--requirement", pins, cwd=place)
    if "No matching distribution" in done.stderr:
        pytest.skip("needs an index of packages that has those of the lock")
    assert done.returncode == 0, done.stderr
    return python


@installs
def test_a_release_names_the_lock_that_its_environment_was_installed_from(
    wheel: Path, tmp_path: Path
) -> None:
    python = locked(tmp_path)
    done = called(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    spec = Small(ROWS, [query("count")]).write(tmp_path)
    done = called(python, "-m", "release", "run", spec, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "public" / "small" / "release.json").read_bytes())
    # What an auditor does, in a checkout: python -m supply environment | sha256sum
    supply = ("-S", "-m", "supply", "environment")
    text = called(sys.executable, *supply, cwd=PROJECT).stdout
    assert text.startswith("annotated-")
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert record["software"]["environment"] == {"extras": [], "sha256": digest}
    assert record["software"]["source"] == software().source
    done = called(python, "-m", "pip", "check", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@installs
def test_every_extra_can_be_installed(wheel: Path, tmp_path: Path) -> None:
    """The core in a fresh environment, by itself; then all extras at once, which have to agree."""
    python = locked(tmp_path)
    done = called(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = called(python, "-m", "release", "demo", cwd=tmp_path)
    assert "verified (paid)" in done.stdout, done.stderr
    locked(tmp_path, *EXTRAS)
    for extra, modules in EXTRAS.items():
        done = called(python, "-c", f"import {', '.join(modules)}", cwd=tmp_path)
        assert done.returncode == 0, f"{extra}: {done.stderr}"
    done = called(python, "-m", "pip", "check", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
