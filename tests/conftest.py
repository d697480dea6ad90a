"""What several tests share: places, small releases, and the real tables where they are present."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).parent.parent
SHARED = PROJECT.parent / "shared" / "data"

# Solvers and engines start slowly now and then; a deadline would make that a failure.
settings.register_profile(
    "dp-release", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("dp-release")


@pytest.fixture(autouse=True)
def _no_cache_of_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests solve; the laws in the home of whoever runs them are neither read nor added to."""
    monkeypatch.setenv("DP_RELEASE_CACHE", "")


@pytest.fixture(scope="session")
def ami_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public folder of one run of the sample spec; tests copy it before they change it.

    With modular noise throughout: these tests change single weights of a law.
    """
    from release.pipeline import run_release

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
