"""The words on intervals in released tables, against the estimates of every possible answer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import release
from release.analysis.estimation import estimate, likelihood
from release.bundle.tables.parquet import FACTS, parquet_bytes, stated_facts
from release.errors import VerificationError
from release.exact.domain import AnswerDomain
from release.queries.read import parse_spec
from tests.sample import ROWS
from tests.small import Small, joint, mechanism_of, part, query
from tests.verifier.made import seal, verdict_of

GLOBAL = {"sensitivity": "global"}
ON_SUMS = {"noise": "on_statistic", **GLOBAL}
QUERIES = [
    query("count", units="homes", **GLOBAL),
    query("count", name="clamped", mechanism="geometric_clamped", **GLOBAL),
    query("count", name="wide", domain={"ordered": {"min": 0, "max": 5000}}, **GLOBAL),
    query("count", name="open", domain={"integers": {}}, units="homes", **GLOBAL),
    query("mode", name="round", domain={"cyclic": 24}, units="hours", **GLOBAL),
    query("binned", mechanism="channel", **GLOBAL),
    query("on_grid", units="half kWh", **GLOBAL),
    query("binned", name="total", **ON_SUMS),
    query("on_grid", name="grid_total", units="half kWh", **ON_SUMS),
    query("on_grid", name="mean", statistic="mean", **ON_SUMS),
    query("mode", name="chosen", **ON_SUMS),
    query("mode", name="named", of="place", domain={"nominal": ["a", "b", "c"]}, **GLOBAL),
    query("mode", name="private"),
    part("one", "count"),
    part("two", "mode"),
    joint("one", "two", name="both", **GLOBAL),
]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("intervals")
    return release.run(Small(ROWS, QUERIES).write(place), place / "out").public


def facts(public: Path, name: str) -> list[dict[str, str]]:
    """What the file says of each of its columns."""
    schema = pq.read_schema(public / "data" / f"{name}.parquet")
    return [stated_facts(schema, column) for column in schema.names]


def words(public: Path, name: str) -> str | None:
    """What the file says of the intervals of answers."""
    (text,) = {each.get("interval") for each in facts(public, name) if "scale" in each}
    return text


def test_scales_are_levels_of_measurement(public: Path) -> None:
    scales: dict[str, set[str]] = {}
    for name in release.open(public):
        for each in facts(public, name):
            if "scale" in each:
                scales.setdefault(each["scale"], set()).add(name)
    assert scales == {
        "ratio": {"the_count", "clamped", "wide", "open", "both"},
        "interval": {"the_binned", "the_on_grid", "total", "grid_total", "mean"},
        "cyclic": {"round", "chosen", "private", "both"},
        "nominal": {"named"},
    }


PROMISE = "95% confidence, at every true answer (at most 3 rows read of each unit)"
STEPS = {"the_on_grid": 2, "grid_total": 2}
UNITS = {
    **{"the_count": "homes", "open": "homes", "clamped": "rows", "wide": "rows", "round": "hours"},
    **{
        "the_binned": "bins",
        "total": "units of total",
        "the_on_grid": "half kWh",
        "grid_total": "half kWh",
    },
}


@pytest.mark.parametrize("name", ["the_count", "clamped", "round", "the_binned", "the_on_grid"])
def test_the_words_hold_the_estimate_of_every_answer(name: str, public: Path) -> None:
    """The farthest true answer of the intervals that a reader computes, in floats."""
    queries = parse_spec((public / "spec.yaml").read_bytes()).released
    (own,) = (each for each in queries if each.name == name)
    assert isinstance(own.answers, AnswerDomain)
    table, labels = likelihood(mechanism_of(public, name)), list(own.answers.labels)
    codes = np.flatnonzero(np.isfinite(table).any(axis=0))
    size, reach = own.answers.size, 0
    for code, cell in zip(codes.tolist(), estimate(codes, table, own.answers).cells, strict=True):
        low, high = labels.index(cell.low), labels.index(cell.high)
        for true in range(low, high + 1 if low <= high else high + 1 + size):
            apart = abs(true % size - code)
            reach = max(reach, min(apart, size - apart) if name == "round" else apart)
    amount = reach * STEPS.get(name, 1)
    expected = f"at most ±{amount} {UNITS[name]}: {PROMISE}"
    assert words(public, name) == expected
    assert 0 < reach < size


@pytest.mark.parametrize("name", ["wide", "open", "total", "grid_total"])
def test_the_words_are_how_far_frames_reach(name: str, public: Path) -> None:
    table = release.open(public)[name]
    frame, text = table.to_pandas(), words(public, name)
    assert frame.attrs["interval"] == text
    match = re.fullmatch(r"at most ±(\d+) (.*): (95% .*)", str(text))
    assert match
    assert match[2] == UNITS[name]
    assert match[3] == PROMISE
    amount = int(match[1])
    # Of a sum the middle is the noisy sum, and not the bin that it lies in.
    middle = frame["noisy_sum"] if "total" in name else frame["answer"]
    below, above = middle - frame["low"], frame["high"] - middle
    assert max(below.max(), above.max()) <= amount
    if name in ("total", "grid_total"):
        assert (above == amount).all()
        assert (below == amount).all()


def test_a_mean_has_no_figure_and_the_rest_no_words(public: Path) -> None:
    assert mechanism_of(public, "mean").family == "noisy_sums"
    assert words(public, "mean") == PROMISE
    # Of a mechanism that depends on the table nothing may be said.
    for name in ("private", "chosen", "named", "both"):
        assert words(public, name) is None


def test_the_columns_of_the_file_are_the_intervals_of_estimates(public: Path) -> None:
    with_ends = set()
    for name, table in release.open(public).items():
        columns = table.to_arrow().column_names
        assert ("low" in columns) == ("high" in columns)
        if "low" not in columns:
            continue
        with_ends.add(name)
        estimates = table.estimates()
        assert estimates is not None
        assert table.to_arrow().column("low").to_pylist() == estimates.column("low")
        assert table.to_arrow().column("high").to_pylist() == estimates.column("high")
    numbers = {"the_count", "clamped", "wide", "open", "the_binned", "the_on_grid", "round"}
    assert with_ends == numbers | {"total", "grid_total", "mean"}


@pytest.mark.parametrize("name", ["the_count", "mean", "the_on_grid"])
def test_an_interval_that_was_moved_is_refused(name: str, public: Path, tmp_path: Path) -> None:
    """By the publisher's programs; the files alone prove no interval."""
    moved = tmp_path / "moved"
    shutil.copytree(public, moved)
    path = moved / "data" / f"{name}.parquet"
    table = pq.read_table(path)
    entries = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    facts = json.loads(entries.pop(FACTS))["fields"]
    place = table.column_names.index("high")
    field = table.schema.field(place)
    wider = pc.cast(pc.add(table.column("high"), 1), field.type)
    path.write_bytes(parquet_bytes(table.set_column(place, field, wider), entries, facts))
    seal(moved)
    assert verdict_of(moved).refusal is None
    with pytest.raises(VerificationError, match=f"data/{name}.parquet: high"):
        release.verify(moved, require="none")
