"""What several tests share: places, small releases, and the real tables where they are present."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.every import every

PROJECT = Path(__file__).parent.parent
SHARED = PROJECT.parent / "shared" / "data"

# Solvers and engines start slowly now and then; a deadline would make that a failure.
settings.register_profile(
    "dp-release", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("dp-release")


# What takes longest begins first, so that nothing long is left over for one process at the end.
LONGEST = (
    # These fork, which is quick while a process is small.
    "publish",
    "planted",
    "year",
    "two_machines",
    # These wait for servers and clusters, while others compute.
    "serving",
    "flow",
    "standalone_cluster",
    "spark",
    "pages",
    "site",
    "figures",
    "machine_proofs",
    "documentation",
    "real_data",
    "twin_tabulations",
    "twin_pairs",
    "composition_script",
    "targets",
    "answer_integer",
    "kinds",
)


def flush_and_warm() -> None:
    """Before a fork: what is not written yet would be written twice, and pages compiled anew."""
    from release.bundle.report.page import templates

    sys.stdout.flush()
    templates().get_template("report.html")


def log_lines(path: Path) -> list[dict[str, str]]:
    """The lines of a journal, without those that a crash left incomplete."""
    lines = []
    for text in path.read_text("utf-8").splitlines():
        with suppress(ValueError):
            lines.append(json.loads(text))
    return lines


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs by night, and order the modules; tests of one keep their order."""
    if every(2) > 1:
        by_night = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=by_night)
        items[:] = [item for item in items if item not in by_night]
    rank = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests solve; the laws in the home of whoever runs them are neither read nor added to."""
    monkeypatch.setenv("DP_RELEASE_CACHE", "")
    # A JVM that lives for seconds has no use for the compiler that pays after minutes.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def laws_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of laws for all that shows commands, as for somebody who follows every page."""
    found = tmp_path_factory.getbasetemp().parent / "laws-of-pages"
    found.mkdir(mode=0o700, exist_ok=True)
    return found


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which Prefect has set its database up, made once for all; tests copy it."""
    place = tmp_path_factory.getbasetemp().parent / "prefect-home"
    with (place.parent / "prefect-home.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            made = place.with_name("prefect-home.part")
            made.mkdir()
            kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
            subprocess.run(
                [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
                check=True,
                capture_output=True,
                env={**kept, "HOME": str(made), "DO_NOT_TRACK": "1"},
            )
            made.rename(place)
    return place


@pytest.fixture(scope="session")
def ami_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public folder of one run of the sample spec; tests copy it before they change it.

    With modular noise throughout: these tests change single weights of a law.
    """
    from release.street import run_release

    place = tmp_path_factory.mktemp("ami")
    (place / "data").mkdir()
    shutil.copy(PROJECT / "data" / "ami_readings.parquet", place / "data")
    shutil.copytree(PROJECT / "schemas" / "tables", place / "schemas" / "tables")
    text = (PROJECT / "data" / "ami.yaml").read_text("utf-8")
    pinned = text.replace("    loss: squared\n", "    loss: squared\n    mechanism: modular\n")
    (place / "data" / "ami.yaml").write_text(pinned, "utf-8")
    return run_release(place / "data" / "ami.yaml", place).public


@pytest.fixture
def lcl_daily() -> Path:
    """The real daily readings."""
    return _real("lcl_daily")


@pytest.fixture
def lcl_halfhourly() -> Path:
    """The real half-hourly readings."""
    return _real("lcl_halfhourly")


def _real(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip(f"the real table {name} is not beside the project")
    return SHARED / name


@pytest.fixture
def census() -> Path:
    """The real persons of Hawaii, expanded from published counts."""
    return _real("census_pl94")


@pytest.fixture
def acs() -> Path:
    """The real records of the American Community Survey."""
    return _real("nist_acs_national2019")
