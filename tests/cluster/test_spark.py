"""Tables on Spark: the same integers as on one machine, of every kind of query.

What the tasks do is tried on many random tables without a cluster; the cluster itself, two worker
threads of this machine, on a few tables with every kind of query and layout.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_release_audit.audit import AuditOptions, audit
from release.errors import DataError, SpecError
from release.queries.engines import spark
from release.queries.engines.base import HereTables
from release.queries.engines.spark import (
    Fragment,
    ReadBucket,
    SparkTables,
    TaskResult,
    _unpacked,
    added,
    count_bucket,
    read_bucket,
    rows_by_group,
    split_rows,
)
from release.queries.profiles import PROFILES, merged
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.tables.duckdb import Engine
from release.tables.formats.parquet import datasets_of
from release.tables.sources import find_sources
from release.verification.verifier import verify
from tests.answers import answer, load
from tests.conftest import PROJECT
from tests.queries.test_kinds import smalls
from tests.small import UNSIGNED, Row, Small, joint, part, query, sensitivities, table_of, truths
from tests.tabulations.measure.test_measuring import HOMES, World, counted_again, person, worlds

SPARK = Engine(spark="local[2]")
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")


def of_buckets(
    spec_file: SpecFile, buckets: int, chance: random.Random, read: ReadBucket
) -> list[TaskResult]:
    """What tasks find, with nothing between but a shuffle."""
    sources, spec = find_sources(spec_file), spec_file.spec
    fragments = [
        Fragment(name, number, group)
        for name, source in sources.items()
        for number, groups in enumerate(rows_by_group(datasets_of(name, spec.tables[name], source)))
        for group in range(len(groups))
    ]
    shuffled = defaultdict(list)
    for bucket, blob in split_rows(fragments, spec_file, sources, buckets):
        shuffled[bucket].append((bucket, blob))
    results: list[TaskResult] = []
    for blobs in shuffled.values():
        chance.shuffle(blobs)
        results += read(blobs, spec_file, Engine())
    return results


def in_buckets(spec_file: SpecFile, buckets: int, chance: random.Random) -> dict[str, pa.Table]:
    """The profiles of every query as tasks find them."""
    read = defaultdict(list)
    for what, name, data in of_buckets(spec_file, buckets, chance, read_bucket):
        assert what == "profiles"
        read[name].append(_unpacked(data))
    return {query.name: merged(read[query.name]) for query in spec_file.spec.released}


@settings(max_examples=6)
@given(smalls(), st.integers(1, 9), st.randoms(use_true_random=False))
def test_units_in_buckets_have_the_profiles_of_the_whole_table(
    small: Small, buckets: int, chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = small.write(Path(folder))
        pq.write_table(table_of(small.rows), path.with_name("rows.parquet"), row_group_size=3)
        spec_file = read_spec(path)
        found = in_buckets(spec_file, buckets, chance)
        with HereTables(spec_file) as tables:
            for one in spec_file.spec.released:
                expected = tables.profiles(one)
                assert found[one.name].to_pylist() == expected.to_pylist(), one.name


@settings(max_examples=12)
@given(worlds(), st.integers(1, 9), st.randoms(use_true_random=False))
def test_units_in_buckets_have_the_counts_of_the_whole_table(
    world: World, buckets: int, chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec_file = world.write(Path(folder))
        opened = spec_file.tabulations[0]
        cells = dict(enumerate(opened.finest))
        count = partial(count_bucket, opened=opened, cells=cells)
        results = of_buckets(spec_file, buckets, chance, count)
        counts = added(results, opened, cells)
        found = {level: own.tolist() for level, own in counts.items()}
        assert found == counted_again(world, opened, cells)


@needs_java
def test_spark_counts_a_tabulation(tmp_path: Path) -> None:
    rows = [person(f"p{number % 9}", age=(1, 17, 18, 40)[number % 4]) for number in range(20)]
    world = World(rows, HOMES, attributes=("sex", "age", "minor", "kind"))
    spec_file = world.write(tmp_path)
    opened = spec_file.tabulations[0]
    cells = dict(enumerate(opened.finest))
    with load(spec_file, SPARK) as tables:
        counts = tables.counts(opened, cells)
    found = {level: own.tolist() for level, own in counts.items()}
    assert found == counted_again(world, opened, cells)
    assert counts[0].sum() == 9


@needs_java
def test_a_tabulation_is_checked_before_spark_starts(tmp_path: Path) -> None:
    spec_file = World([], HOMES).write(tmp_path)
    opened = spec_file.tabulations[0]
    declared = opened.declared.model_copy(update={"where": "extra"})
    wrong = replace(spec_file, tabulations=(replace(opened, declared=declared),))
    with pytest.raises(SpecError, match=r"^tabulations\[0\]\.where: "):
        load(wrong, SPARK)


def test_nothing_read_is_no_profile() -> None:
    assert merged([]).equals(PROFILES.empty_table())
    assert merged([PROFILES.empty_table()] * 2).num_rows == 0


CHANCE = random.Random(7)  # noqa: S311 - a table
ROWS: list[Row] = [
    {
        "unit": f"quagzil-{i}",
        "place": "abx"[i % 3],
        "day": CHANCE.choice([1, 2, 3]),
        "kind": CHANCE.choice([0, 1, 2, 3, 7, None]),
        "wh": CHANCE.choice([None, *range(-8, 19)]),
    }
    for i in range(60)
    for _ in range(CHANCE.randint(1, 5))
]
COUNTED = "SELECT place, count(*) AS answer FROM rows GROUP BY place"
ON_STATISTIC: dict[str, str] = {"sensitivity": "global", "noise": "on_statistic"}
EVERY_KIND: list[dict[str, Any]] = [
    query("count", name="rows_here"),
    query("count", name="units_here", of="unit", by=["place", "day"]),
    query("count", name="big", where="heavy AND wh % 3 = 1", sensitivity="global"),
    query("mode", name="commonest", by=["day"]),
    query("mode", name="heaviest", weight="wh"),
    *(query("binned", name=m, statistic=m) for m in ("sum", "mean", "min", "max", "median")),
    query("on_grid"),
    joint("part_count", "part_mode", name="both"),
    query("count", name="own", where="unit < 'quagzil-3'") | {"kind": "sql", "sql": COUNTED},
    query("mode", name="by_units", **ON_STATISTIC),
    query("binned", name="middle", statistic="median", **ON_STATISTIC),
    query("binned", name="two_sums", statistic="mean", **ON_STATISTIC),
    query("count", name="tops", of="kind", domain={"cyclic": 4}, sensitivity="global")
    | {"kind": "top", "k": 2},
    query("count", name="quarters", of="wh", sensitivity="global")
    | {"kind": "quantiles", "at": ["1/4", "3/4"]},
    part("part_count", "count"),
    part("part_mode", "mode"),
]


def everything(folder: Path, **changes: Any) -> Path:
    """Every kind over a table in partitions, joined with another, with a derived column."""
    fixed = changes.get("fixed", [])
    statements = not fixed and "attribute" not in changes
    kinds = [one for one in EVERY_KIND if one["kind"] != "sql" or statements]
    small = Small(ROWS, kinds, max_cells_per_unit=2, fixed=fixed)
    table = table_of(ROWS).append_column("label", pa.array(["q"] * len(ROWS)).dictionary_encode())
    for day in (1, 2, 3):
        here = folder / "rows" / f"day={day}"
        here.mkdir(parents=True, exist_ok=True)
        own = table.filter(pa.compute.equal(table.column("day"), day))
        pq.write_table(own.drop_columns(["day", "place"]), here / "a.parquet", row_group_size=9)
    homes = dict.fromkeys((row["unit"], row["place"]) for row in ROWS)
    columns = {"unit": [u for u, _ in homes], "place": [p for _, p in homes]}
    pq.write_table(pa.table(columns), folder / "homes.parquet")
    plain = small.plain("rows")
    rows = plain["tables"]["rows"]
    del rows["columns"]["place"]
    rows["columns"]["label"] = "string"
    rows["join"] = {"table": "homes"}
    rows["derive"]["heavy"] = {"type": "boolean", "sql": "label = 'q' AND wh > 4"}
    plain["tables"]["homes"] = {
        "path": "homes.parquet",
        "columns": {"unit": "string", "place": "string"},
    }
    plain["privacy"] |= changes
    if "attribute" in changes:
        plain["keys"]["unit"] = sorted({row["unit"] for row in ROWS})
        own = query("mode", name="own_kind", by=["unit"], sensitivity="global")
        del own["noise"]
        plain["queries"].append(own | {"kind": "per_unit"})
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return folder / "spec.yaml"


RELATIONS: list[dict[str, Any]] = [
    {"neighbors": "replace_one", "fixed": ["place"]},
    {"neighbors": "add_remove", "fixed": []},
    {"neighbors": "attribute", "fixed": [], "attribute": "kind"},
]


@needs_java
def test_spark_gives_the_same_integers_of_every_kind(tmp_path: Path) -> None:
    """Of each relation, one after another in one process.

    Spark keeps its folders as long as its JVM lives: each must be private, and gone by the next.
    """
    kinds = set()
    for privacy in RELATIONS:
        here = tmp_path / str(privacy["neighbors"])
        spec_file = read_spec(everything(here, **privacy))
        with HereTables(spec_file) as tables:
            answered = answer(tables, spec_file)
        expected = truths(answered, spec_file)
        found = sensitivities(answered, spec_file)
        scratch = here / "private" / "scratch"
        scratch.parent.mkdir()
        with SparkTables(spec_file, "local[2]", Engine("1.5GB"), scratch) as on_spark:
            answered = answer(on_spark, spec_file)
            assert list(scratch.glob("blockmgr-*"))
            assert scratch.stat().st_mode & 0o077 == 0
        assert not any(scratch.parent.iterdir())
        assert truths(answered, spec_file) == expected
        assert sensitivities(answered, spec_file) == found
        assert sum(any(map(np.any, cells)) for cells in expected) >= 10
        kinds |= {one.kind for one in spec_file.spec.released}
    assert kinds == {
        *("count", "mode", "per_unit", "tuple", "sql"),
        *("sum", "mean", "min", "max", "median", "top", "quantiles"),
    }
    assert not any((tmp_path / "replace_one" / "private").iterdir())


@needs_java
def test_an_audit_has_one_spark_for_all_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def counted(master: str, scratch: Path, engine: Engine) -> Any:
        starts.append(master)
        return start(master, scratch, engine)

    start = spark._start
    monkeypatch.setattr(spark, "_start", counted)
    counts = [query("count", by=[], sensitivity="global")]
    spec = Small([], counts, max_rows_per_unit=1).write(tmp_path)
    options = AuditOptions(8, 2, processes=0, spark="local[1]")
    verdict = audit(spec, options, lambda finished, total, what: None)
    assert verdict.findings == []
    assert verdict.tried.tables >= 8
    assert 0.99 < verdict.attained <= 1 + 1e-9
    assert starts == ["local[1]"]


@needs_java
def test_a_release_on_spark_verifies_and_leaves_nothing_of_the_table(tmp_path: Path) -> None:
    spec = everything(tmp_path)
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "release", "run", str(spec), "--out", str(tmp_path / "out"),
         "--spark", "local[2]"],
        capture_output=True, text=True, check=False, cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    public = tmp_path / "out" / "public" / "small"
    assert verify(public, tmp_path / "out" / "auditor" / "small", UNSIGNED).status == 0
    shown = done.stdout + done.stderr
    assert "quagzil" not in shown
    assert "Spark" not in shown
    assert "WARN" not in shown
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["auditor", "public"]
    assert not list((tmp_path / "temporary").glob("dp-release-*"))


def test_a_memory_limit_that_is_none_is_refused_before_a_jvm_starts(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--memory-limit: 'plenty' is no size"):
        load(read_spec(everything(tmp_path)), Engine("plenty", spark="local[2]"))


@needs_java
def test_a_statement_on_an_empty_table_is_answered_too(tmp_path: Path) -> None:
    own = query("count", name="own") | {"kind": "sql", "sql": COUNTED}
    path = Small([], [own]).write(tmp_path)
    spec_file = read_spec(path)
    for engine in (Engine(), SPARK):
        with load(spec_file, engine) as tables:
            assert answer(tables, spec_file)[0].codes.tolist() == [0, 0]


@needs_java
def test_what_fails_in_a_task_is_one_line_without_values(tmp_path: Path) -> None:
    spec = everything(tmp_path)
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["tables"]["rows"]["contract"] = "contract.yaml"
    # Of a worst-case query a refusal would tell of the table.
    plain["queries"] = plain["queries"][:2]
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(CONTRACT), "utf-8")
    spec_file = read_spec(spec)
    with load(spec_file, SPARK) as tables, pytest.raises(DataError) as refused:
        answer(tables, spec_file)
    told = str(refused.value)
    assert told.startswith("tables.rows.contract: values of 'wh' break their contract")
    assert "quagzil" not in told
    # A file that breaks in a task: only the kind of error is told.
    whole = tmp_path / "rows" / "day=1" / "a.parquet"
    data = bytearray(whole.read_bytes())
    del plain["tables"]["rows"]["contract"]
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    data[4:200] = b"\xff" * 196
    whole.write_bytes(bytes(data))
    with load(read_spec(spec), SPARK) as tables, pytest.raises(DataError) as refused:
        answer(tables, spec_file)
    assert str(refused.value) == "tables: a task could not read them"


CONTRACT = {
    "contract": "dp-release/table/v1",
    "table": "rows",
    "description": "x",
    "unit": "unit",
    "unique": [],
    "columns": {
        "wh": {
            "meaning": "x",
            "measure": "none",
            "type": "integer",
            "nullable": True,
            "maximum": 17,
            "on_violation": "refuse",
        }
    },
}


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("spark://10.0.0.1:7077", "engine.cluster: rows would leave this machine"),
        ("local[2]", "tables.rows.path: Spark reads Parquet; convert the table"),
    ],
)
def test_what_spark_may_not_read_is_refused(master: str, told: str, tmp_path: Path) -> None:
    small = Small(ROWS, [query("count")])
    spec = small.write(tmp_path)
    if master == "local[2]":
        import pyarrow.csv

        pyarrow.csv.write_csv(table_of(ROWS), tmp_path / "rows.csv")
        spec.write_text(yaml.safe_dump(small.plain("rows.csv")), "utf-8")
    with pytest.raises(SpecError, match=told):
        load(read_spec(spec), Engine(spark=master))


# PySpark leaves the pipe of a JVM that did not start to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@needs_java
def test_a_master_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    plain = Small(ROWS, [query("count")]).plain()
    plain["engine"] = {"backend": "spark", "cluster": "inside"}
    Small(ROWS, []).write(tmp_path)
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    with pytest.raises(SpecError, match="--spark: Spark does not start at 'nonsense'"):
        load(read_spec(tmp_path / "spec.yaml"), Engine(spark="nonsense"))
