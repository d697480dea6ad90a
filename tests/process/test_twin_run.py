"""The rules of privacy engineering: the twin run, and what may hold confidential values.

Twin run: two neighboring tables, released with the noisy answers frozen, under a worst-case spec.
Every byte written or printed must be equal, or something of the table got out another way.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dp_release_verify.digests import sha256
from release.at_work import Answered, AtWork
from release.budget.ledger import ScopeCap, create_ledger
from release.bundle import publish, write
from release.cli.console import one_line
from release.errors import DataError, ReleaseError
from release.job import Job, Options, Perform, Stage
from release.noise.design import GAP
from release.noise.stage import design_all
from release.noise.unseen import Unseen
from release.queries.contributions import Contributions, contributions
from release.queries.read import read_spec
from release.queries.sensitivity import empirical_sensitivity
from release.records.keys.files import FileSigner
from release.street import run_release
from release.tables.duckdb import Tables
from tests.answers import load
from tests.small import Row, Small, joint, part, query

T = TypeVar("T")

VECTORS = [[a, b] for a in range(-1, 2) for b in range(6)]

ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}


def of_every_table(plain: dict[str, Any], name: str) -> dict[str, Any]:
    """The query under global sensitivity, with its noise on the answer where that is a choice."""
    named = {**plain, "name": name, "sensitivity": "global"}
    return named if plain["kind"] in {"count", "per_unit"} else named | {"noise": "on_answer"}


GLOBAL = [
    of_every_table(q, f"q{i}")
    for i, q in enumerate(
        [
            query("count"),
            query("count", of="unit", by=["day"]),
            query("count", by=["place", "day"], where="wh > 4"),
            query("mode", weight="wh", by=[]),
            query("mode", by=["place", "day"], domain={"ordered": {"min": 1, "max": 3}}),
            query("binned", statistic="sum", by=["place", "day"]),
            *(query("binned", statistic=m) for m in ("mean", "min", "max", "median")),
            query("on_grid", by=["place", "day"]),
            query("on_grid", statistic="mean"),
        ]
    )
] + [
    *(query("binned", name=m, statistic=m, **ON_STATISTIC) for m in ("sum", "mean", "median")),
    query("binned", name="third", statistic="max", rank=3, **ON_STATISTIC),
    query("on_grid", name="real_mean", statistic="mean", **ON_STATISTIC),
    query("mode", name="by_units", by=["place", "day"], **ON_STATISTIC),
    query("mode", name="weighed", weight="wh", clamp=[0, 9], by=[], **ON_STATISTIC),
    query("count", name="tops", of="kind", domain={"cyclic": 4}, sensitivity="global")
    | {"kind": "top", "k": 2, "counts": True},
    query("count", name="counted", of="kind", domain={"cyclic": 4}, sensitivity="global")
    | {"kind": "top", "k": 2, "histogram": True},
    query("count", name="quarters", of="wh", sensitivity="global")
    | {"kind": "quantiles", "at": ["1/4", "3/4"]},
    query("count", name="declared", sensitivity={"declared": [1, 2]}),
    part("rows_here", "count", where="wh > 4"),
    part("commonest", "mode"),
    part("total", "binned", statistic="sum"),
    joint("rows_here", "commonest", "total", name="jointly", sensitivity="global"),
    part("energy", "on_grid"),
    joint("rows_here", "energy", name="with_real", sensitivity="global"),
    joint("rows_here", "total", name="vectors", sensitivity={"declared": VECTORS}),
]

ATTRIBUTE = [
    of_every_table(q, f"q{i}")
    for i, q in enumerate(
        [
            query("count", where="kind = 2"),
            query("count", of="unit", where="kind < 2", by=["place", "day"]),
            query("mode"),
            query("binned", statistic="sum", of="kind", clamp=[0, 3]),
            query("binned", statistic="median", of="kind", clamp=[0, 3]),
            query("mode", by=["unit"], of="kind") | {"kind": "per_unit"},
        ]
    )
] + [
    query("mode", name="by_units", **ON_STATISTIC),
    query("binned", name="middle", statistic="median", of="kind", clamp=[0, 3], **ON_STATISTIC),
    part("some", "count", where="kind = 2"),
    part("commonest", "mode"),
    joint("some", "commonest", name="jointly", sensitivity="global"),
]

HOMES: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": 2 * i}
    for i in range(8)
]

TWIN_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

# One unit is replaced: other values, another number of rows, values far outside every bound.
REPLACED: list[Row] = [
    *HOMES[1:],
    *(
        {"unit": "u0", "place": "c", "day": 2, "kind": kind, "wh": wh}
        for kind, wh in [(None, 10**9), (3, -(10**9)), (99, 0), (1, None), (2, 77), (2, 78)]
    ),
]


def frozen(stage: Stage, job: Job) -> None:
    """Performs a stage; the noisy answers are the same whatever the true ones are."""
    if stage.name != "draw":
        stage.does(job)
        return
    drawn = []
    for run in job.runs:
        if run.query.is_on_statistic:
            assert isinstance(run.contributed, Contributions)
            width = len(run.query.outcome_columns)
            codes = np.arange(width, dtype=np.int64)
            # Counts of a top do not rise, and those of a histogram are largest at its members.
            codes[2:] *= -1 if run.query.name in ("tops", "counted") else 1
            drawn.append(np.tile(codes, (len(run.contributed.cells.keys), 1)))
        else:
            drawn.append(np.arange(run.codes.size, dtype=np.int64) % 2)
    job.noisy = tuple(drawn)


FEW = [GLOBAL[0], GLOBAL[4]]
"""Enough for the planted leaks: what they leak shows in any query."""


def write_spec(rows: list[Row], relation: str, folder: Path) -> Path:
    """A worst-case spec with every kind of query that the relation allows, or with a few."""
    if relation in ("few", "missed"):
        path = Small(rows, FEW, fixed=["place"]).write(folder)
        plain = yaml.safe_load(path.read_text("utf-8"))
        plain["acceptance"] = [f"q4: p95 <= {2 if relation == 'few' else 0}"]
        path.write_text(yaml.safe_dump(plain), "utf-8")
        return path
    if relation != "attribute":
        return Small(rows, GLOBAL, neighbors=relation, fixed=["place"]).write(folder)
    path = Small(rows, ATTRIBUTE, max_rows_per_unit=2).write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["privacy"] |= {"neighbors": "attribute", "attribute": "kind"}
    plain["keys"]["unit"] = [f"u{i}" for i in range(6)]
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def everything(
    rows: list[Row], relation: str, folder: Path, perform: Perform = frozen
) -> dict[str, bytes]:
    """Every byte that a run of :func:`write_spec` writes or prints, by name."""
    return all_of_a_run(partial(write_spec, rows, relation), folder, perform)


def all_of_a_run(
    write_inputs: Callable[[Path], Path], folder: Path, perform: Perform = frozen
) -> dict[str, bytes]:
    """Every byte that a run writes or prints, by name; the inputs lie in a folder of their own."""
    inputs, out, scratch = folder / "in", folder / "out", folder / "scratch"
    for made in (inputs, scratch):
        made.mkdir(parents=True)
    spec = write_inputs(inputs)
    # The same key for both: what it signs is to be equal.
    pem = TWIN_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (inputs / "key").write_bytes(pem)
    (inputs / "key").chmod(0o600)
    cap = ScopeCap(scope="tests", epsilon="1000", delta="0.9")
    create_ledger(out / "ledger", FileSigner(TWIN_KEY), "example.org/dp", (cap,), "2024-01-01")
    before = {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    printed, complained = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complained),
    ):
        patch.setattr(tempfile, "tempdir", str(scratch))
        # A run's name is drawn at random, whatever the table holds.
        patch.setattr(publish, "new_run", "0".zfill(32).__str__)
        patch.chdir(folder)
        day = datetime.date(2024, 1, 1)
        key = folder / "in" / "key"
        try:
            run_release(spec, out, perform, published=day, options=Options(key=key))
        except ReleaseError as error:
            sys.stderr.write(one_line(error))
    assert before == {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    found = {"stdout": printed.getvalue().encode(), "stderr": complained.getvalue().encode()}
    for path in sorted(folder.rglob("*")):
        if inputs in (path, *path.parents):
            continue
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes() if path.is_file() else b"a folder"
    return found


@pytest.mark.parametrize(
    ("relation", "neighbors"),
    [
        ("few", [REPLACED]),
        ("replace_one", [REPLACED]),
        ("add_remove", [HOMES[1:]]),
        ("attribute", [[{**HOMES[0], "kind": k}, *HOMES[1:]] for k in (3, None, -(10**9))]),
    ],
)
def test_twin_runs_are_equal_byte_for_byte(
    relation: str, neighbors: list[list[Row]], tmp_path: Path
) -> None:
    one = everything(HOMES, relation, tmp_path / "one")
    assert len(one) > 15
    assert "out/ledger/00000002.json" in one
    assert b"error" not in one["stderr"]
    assert not [name for name in one if name.startswith("scratch/")]
    for number, neighbor in enumerate(neighbors):
        assert one == everything(neighbor, relation, tmp_path / f"two-{number}")


AUDIT = "out/auditor/small/audit.json"
EXCEPTIONS = {"began", "prepared", "inputs", "set_aside", "left_out", "signature"}
"""The fields of ``audit.json`` that may depend on the table: the only exceptions of a twin run."""


def test_only_named_fields_of_the_auditors_record_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = everything(HOMES, "few", tmp_path / "plain")
    assert AUDIT not in plain
    monkeypatch.setenv("DP_RELEASE_AUDIT", "1")
    runs = []
    for number, rows in enumerate([HOMES, REPLACED, [*HOMES, {**HOMES[0], "unit": None}]]):
        run = everything(rows, "few", tmp_path / str(number))
        record = json.loads(run.pop(AUDIT))
        # The folders that hold it are there because it was asked for.
        assert run.pop("out/auditor") == run.pop("out/auditor/small") == b"a folder"
        assert run == plain
        runs.append(record)
    assert [run["set_aside"] for run in runs] == [
        [],
        [],
        [{"table": "rows", "rule": "no unit", "column": "unit", "count": 1}],
    ]
    inputs = [run["inputs"][0]["files"][0] for run in runs]
    assert len({opened["commitment"] for opened in inputs}) == len(runs)
    kept = [{k: v for k, v in run.items() if k not in EXCEPTIONS} for run in runs]
    assert kept[0] == kept[1] == kept[2]
    assert kept[0].keys() == {"schema", "release_id", "entry", "run", "actor"}


def test_a_missed_acceptance_is_refused_alike(tmp_path: Path) -> None:
    one = everything(HOMES, "missed", tmp_path / "one")
    assert b"error: acceptance[0]: q4: p95 <= 0: missed" in one["stderr"]
    # What is created with the ledger, and no entry for a release.
    assert "out/ledger/00000001.json" not in one
    assert one == everything(REPLACED, "missed", tmp_path / "two")


def write_bounded(rows: list[Row], on_violation: str, folder: Path) -> Path:
    """The spec of ``few`` with a number and a time, under a contract that bounds all values."""
    path = write_spec(rows, "few", folder)
    table = pq.read_table(folder / "rows.parquet")
    start = datetime.datetime(2013, 1, 5)
    amounts = [row["wh"] or 0 for row in rows]
    table = table.append_column("kwh", pa.array([amount / 7 for amount in amounts]))
    moments = [start + datetime.timedelta(minutes=amount % 10**6) for amount in amounts]
    pq.write_table(table.append_column("at", pa.array(moments)), folder / "rows.parquet")
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["tables"]["rows"]["columns"] |= {"kwh": "number", "at": "timestamp"}
    plain["tables"]["rows"]["contract"] = "contract.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    bounds: dict[str, tuple[str, Any, Any]] = {
        "wh": ("integer", 1, 9),
        "kwh": ("number", 0.5, 1.25),
        "at": ("timestamp", "2013-01-05 00:02:00", "2013-01-05 00:08:00"),
    }
    columns = {}
    for name, (kind, low, high) in bounds.items():
        columns[name] = {
            "type": kind,
            "meaning": "x",
            "measure": "x",
            "nullable": True,
            "minimum": low,
            "maximum": high,
            "on_violation": on_violation,
        }
    about = {"contract": "dp-release/table/v1", "table": "x", "description": "x", "unit": "unit"}
    (folder / "contract.yaml").write_text(yaml.safe_dump(about | {"columns": columns}), "utf-8")
    return path


@pytest.mark.parametrize("on_violation", ["clamp", "drop"])
def test_twins_that_break_the_bounds_of_a_contract(on_violation: str, tmp_path: Path) -> None:
    """No row is beyond a bound in one table; in the others some of a unit, or all, are."""
    within = [row | {"wh": 4 + number % 4} for number, row in enumerate(HOMES)]
    one = all_of_a_run(partial(write_bounded, within, on_violation), tmp_path / "one", frozen)
    assert "out/ledger/00000002.json" in one
    assert b"error" not in one["stderr"]
    for number, rows in enumerate([[*within[1:], *REPLACED[-6:]], HOMES, REPLACED]):
        two = all_of_a_run(
            partial(write_bounded, rows, on_violation), tmp_path / f"two-{number}", frozen
        )
        assert one == two


Leak = Perform


def largest(tables: Tables) -> int:
    return int(tables.rows('SELECT max(wh) AS n FROM "wide rows"', "rows").column("n")[0].as_py())


def prints(told: Callable[[Tables], object]) -> Leak:
    """A line on the screen as the queries are answered."""

    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "answer":
            sys.stdout.write(f"{told(cast('Tables', job.tables))}\n")
        frozen(stage, job)

    return perform


def value_in_an_error(stage: Stage, job: Job) -> None:
    if stage.name == "answer":
        raise DataError(f"tables.rows: {largest(cast('Tables', job.tables))} is out of range")
    frozen(stage, job)


def file_left_behind(stage: Stage, job: Job) -> None:
    if stage.name == "draw":
        handle, path = tempfile.mkstemp()
        os.write(handle, bytes(job.runs[0].codes.tolist()))
        os.close(handle)
        Path(path).rename(Path(path).with_name("left"))
    frozen(stage, job)


def true_answers(stage: Stage, job: Job) -> None:
    if stage.name == "draw":
        job.noisy = tuple(run.codes for run in job.runs)
    else:
        frozen(stage, job)


def keys_from_the_data(stage: Stage, job: Job) -> None:
    frozen(stage, job)
    if stage.name == "read":
        spec_file = job.spec_file
        table = pq.read_table(spec_file.folder / "rows.parquet")
        found = tuple(sorted(table.column("place").unique().to_pylist()))
        job.take(Unseen.of(replace(spec_file, keys={**spec_file.keys, "place": found})))


def differences_from_the_data(stage: Stage, job: Job) -> None:
    """Those seen in the table stand in a public law."""
    if stage.name == "verify":
        trust(job.publication)
    frozen(stage, job)
    if stage.name == "fit":
        first, *others = job.runs
        assert isinstance(first.contributed, Contributions)
        seen = empirical_sensitivity(first.contributed, job.spec_file, first.query)
        made = design_all([(first.query, seen)], job.spec_file, None, GAP)[first.query.name]
        job.runs = (replace(first, design=made), *others)


def trust(publication: Any) -> None:
    """Let it publish what no verifier accepts: otherwise a twin run would never see it."""
    publication._verifying = lambda *_: None


def publishes(**patched: Callable[..., Any]) -> Leak:
    """Something else is written than should be; ``told`` keeps what the step before has seen."""

    def perform(stage: Stage, job: Job) -> None:
        if stage.name != "bundle":
            frozen(stage, job)
            return
        trust(job.publication)
        folder = job.spec_file.folder
        with pytest.MonkeyPatch.context() as patch:
            for place, leaking in patched.items():
                good = getattr(write, place)
                patch.setattr(write, place, lambda *a, g=good, f=leaking: f(folder, g, *a))
            frozen(stage, job)

    return perform


def unsorted(folder: Path, good: Callable[..., bytes], *arguments: Any) -> bytes:
    """Rows in the order in which the table names their places."""
    release_id, query, kinds, keys, noisy, words = arguments
    seen = pq.read_table(folder / "rows.parquet").column("place").unique().to_pylist()[::-1]
    if query.by == ["place"]:
        keys = tuple(sorted(keys, key=lambda key: seen.index(key[0])))
    return good(release_id, query, kinds, keys, noisy, words)


def with_a_dictionary(folder: Path, good: Callable[..., bytes], *arguments: Any) -> bytes:
    """A column of categories, among them one that was not released."""
    table = pq.read_table(io.BytesIO(good(*arguments)))
    seen = pq.read_table(folder / "rows.parquet").column("place").unique()
    places = pa.DictionaryArray.from_arrays(pa.array([0] * table.num_rows, pa.int32()), seen)
    sink = io.BytesIO()
    pq.write_table(table.append_column("more", places), sink)
    return sink.getvalue()


def with_a_digest(folder: Path, good: Callable[..., str], *arguments: Any) -> str:
    digest = sha256((folder / "rows.parquet").read_bytes())
    return f"{good(*arguments)}<!-- table sha256:{digest} -->"


LEAKS: dict[str, Leak] = {
    "a row count in the log": prints(
        lambda tables: tables.rows('SELECT count(*) AS n FROM "wide rows"', "rows").column("n")[0]
    ),
    "output in the order of the data": publishes(released_bytes=unsorted),
    "a category that was not released": publishes(released_bytes=with_a_dictionary),
    "a value in an error": value_in_an_error,
    "a bare digest": publishes(report_html=with_a_digest),
    "a duration": prints(lambda tables: f"took {time.perf_counter_ns()}"),
    "a key from the data": keys_from_the_data,
    "differences from the data": differences_from_the_data,
    "a file left behind": file_left_behind,
    "answers without noise": true_answers,
}


@pytest.mark.parametrize("name", LEAKS)
def test_twin_runs_catch_planted_leaks(name: str, tmp_path: Path) -> None:
    """The test of the test."""
    one = everything(HOMES, "few", tmp_path / "one", LEAKS[name])
    two = everything(REPLACED, "few", tmp_path / "two", LEAKS[name])
    assert one != two
    seen = {file for file in one.keys() | two.keys() if one.get(file) != two.get(file)}
    # What is leaked is there to be seen, and not an error of the leaking alone.
    assert not any(b"internal" in one[stream] + two[stream] for stream in ("stdout", "stderr"))
    assert seen - {"stderr"} or name == "a value in an error"


def test_confidential_objects_show_nothing(tmp_path: Path) -> None:
    spec_file = read_spec(Small(HOMES, GLOBAL).write(tmp_path))
    with load(spec_file) as tables:
        query_of = spec_file.spec.queries[0]
        contributed = contributions(tables.profiles(query_of), spec_file, query_of)
        assert repr(tables) == "Tables(confidential)"
        assert repr(contributed) == "Contributions(confidential)"
        answered = Answered(contributed, np.array([4711]))
        assert repr(answered) == "Answered(confidential)"
        assert repr(AtWork(query_of, answered=answered)) == "AtWork(confidential)"


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET temp_directory = '/tmp'",
        "SELECT * FROM 'https://example.org/x.parquet'",
    ],
)
def test_the_engine_is_locked(sql: str, tmp_path: Path) -> None:
    spec_file = read_spec(Small(HOMES, GLOBAL).write(tmp_path))
    with Tables(spec_file) as tables, pytest.raises(DataError) as error:
        tables.run(sql)
    assert "example.org" not in str(error.value)
