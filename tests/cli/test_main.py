"""The command line: one clear line for bad input, the promised status, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from release.cli.console import is_worth_a_line
from release.cli.main import main
from release.version import VERSION
from tests.conftest import PROJECT
from tests.small import UNSIGNED, Row, Small, query, table_of, write_rows

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run a command in this process: exit status, standard output, standard error."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, shown.out, shown.err


def refused(capsys: pytest.CaptureFixture[str], status: int, spec: Path, out: Path) -> str:
    """Run a release that has to be refused; the one error line."""
    before = sorted(str(p) for p in out.rglob("*")) if out.exists() else None
    code, printed, errors = run(capsys, "run", spec, "--out", out)
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert code == status, errors
    assert len(lines) == 1, errors
    assert errors.splitlines()[-1] == lines[0]
    assert printed == ""
    after = sorted(str(p) for p in out.rglob("*")) if out.exists() else None
    assert before == after
    return lines[0]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return Small(ROWS, [query("mode"), query("count")]).write(tmp_path)


def test_the_version_names_the_software_by_hash(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    assert run(capsys, "--version") == (0, f"dp-release {VERSION}\n", "")
    status, printed, _ = run(capsys, "run", small, "--out", tmp_path / "out")
    assert status == 0, printed
    record = json.loads((tmp_path / "out" / "public" / "small" / "release.json").read_bytes())
    used = record["software"]
    for words in (("--version", "-v"), ("-v", "--version")):
        status, printed, errors = run(capsys, *words)
        assert (status, errors) == (0, "")
        assert printed.splitlines() == [
            f"dp-release {VERSION}",
            f"source {used['source']}",
        ]


def test_a_release_is_run_and_verified(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    code, printed, _ = run(capsys, "run", small, "--out", tmp_path / "out", "--json")
    assert code == 0
    result = json.loads(printed)
    public, auditor = Path(result["public"]), Path(result["auditor"])
    assert run(capsys, "verify", public)[0] == 5
    for half in (auditor, auditor.parent):
        opened = ("verify", public, "--auditor", half, "--json")
        assert run(capsys, *opened)[0] == 3
        code, printed, _ = run(capsys, *opened, "--require", "none")
        assert code == 0
        assert json.loads(printed)["verdict"] == "VERIFIED"
    # The auditor's folders of an output folder are read; without them the guarantee is not proved.
    assert run(capsys, "verify", tmp_path / "out")[:2] == (3, "small  VERIFIED, unsigned\n")
    assert run(capsys, "verify", public, public)[0] == 5
    assert auditor.stat().st_mode & 0o777 == 0o700
    assert auditor.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("total", [1, 7, 20, 21, 4999, 10_000])
def test_of_very_many_queries_a_log_tells_of_some(total: int) -> None:
    shown = [done for done in range(total) if is_worth_a_line(done, total)]
    assert shown[0] == 0
    assert len(shown) == min(total, 20)


def test_a_worst_case_release_needs_no_auditor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = Small(ROWS, [query("count", sensitivity="global")]).write(tmp_path)
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0
    assert not (tmp_path / "out" / "auditor").exists()
    public = tmp_path / "out" / "public" / "small"
    assert run(capsys, "verify", public)[0] == 3
    for option in ("--auditor", "--ledger"):
        code, _, told = run(capsys, "verify", public, option, tmp_path / "none")
        assert (code, f"{option}: no folder" in told) == (2, True), told
    code, printed, _ = run(capsys, "verify", public, "--require", "none")
    assert code == 0
    assert "for every table that fits" in printed


def test_a_release_is_described_in_the_forms_of_others(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    assert run(capsys, "run", small, "--out", tmp_path / "out")[0] == 0
    public = tmp_path / "out" / "public" / "small"
    statement = json.loads(run(capsys, "report", public, "--as", "in-toto")[1])
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    written = {}
    for path in public.rglob("*"):
        if path.is_file() and not path.name.startswith("SHA256SUMS"):
            written[path.relative_to(public).as_posix()] = sha256(path.read_bytes()).hexdigest()
    assert subjects == written
    draft = yaml.safe_load(run(capsys, "report", public, "--as", "registry")[1])
    assert draft["basic"]["name"]
    assert run(capsys, "report", public, "--as", "other")[0] == 2


def test_a_report_says_how_near_answers_from_a_statistic_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = query("mode", sensitivity="global", noise="on_statistic")
    assert (
        run(capsys, "run", Small(ROWS, [asked]).write(tmp_path), "--out", tmp_path / "out")[0] == 0
    )
    printed = run(capsys, "report", tmp_path / "out")[1]
    assert re.search(r"^[a-z_]+: a category that leads every other by \d+ ", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "SPEC: missing; give the release spec"),
        (["run", "spec.yaml"], "--out: missing; give the folder"),
        (["run", "spec.yaml", "--out", "o", "--seed", "1"], "--seed: no such option"),
        (["publish"], "publish: no such command; use run"),
        (["run", "nowhere.yaml", "--out", "o"], "nowhere.yaml: no such file"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, _, errors = run(capsys, *arguments)
    assert code == 2
    line = errors.splitlines()[-1]
    assert line.startswith("error: ")
    assert says in line


def edited(spec: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    plain = yaml.safe_load(spec.read_text("utf-8"))
    change(plain)
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    return spec


def test_a_missing_table(capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").unlink()
    line = refused(capsys, 2, small, tmp_path / "out")
    assert "tables.rows.path: no file 'rows.parquet' beside the spec" in line


@pytest.mark.parametrize("name", ["rows.txt", "rows*.parquet"])
def test_a_path_of_no_known_kind(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "rows.parquet").rename(tmp_path / "rows.txt")
    spec = edited(small, lambda plain: plain["tables"]["rows"].update(path=name))
    assert "tables.rows.path" in refused(capsys, 2, spec, tmp_path / "out")


def test_a_column_of_the_wrong_type(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    table = table_of(ROWS)
    text = pa.array([str(value) for value in table.column("wh").to_pylist()])
    index = table.schema.get_field_index("wh")
    pq.write_table(table.set_column(index, "wh", text), tmp_path / "rows.parquet")
    line = refused(capsys, 2, small, tmp_path / "out")
    assert "tables.rows.columns.wh: declared integer, but rows.parquet has string" in line


def test_a_missing_column(capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path) -> None:
    pq.write_table(table_of(ROWS).drop_columns(["wh"]), tmp_path / "rows.parquet")
    line = refused(capsys, 2, small, tmp_path / "out")
    assert "tables.rows.columns.wh: rows.parquet has no such column; it has unit, place" in line


def test_a_file_that_is_no_parquet(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 secret-4711 PAR1")
    line = refused(capsys, 1, small, tmp_path / "out")
    assert "not a readable Parquet file" in line
    assert "4711" not in line


def test_a_truncated_parquet_page(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(bytes(data))
    assert "tables.rows" in refused(capsys, 1, small, tmp_path / "out")


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("u9,a,1,2", "HAVE FEWER FIELDS THAN THE HEADER, AND ARE LEFT OUT"),
        ("u9,a,1,2,3,4", "HAVE MORE FIELDS THAN THE HEADER, AND ARE LEFT OUT"),
        ("u9,a,1,2,secret-4711", "wh: 1 value is not an integer, and is missing"),
        ('"u9,a,1,2,3', "HAVE A QUOTE THAT IS NOT CLOSED, OR WITHIN A FIELD"),
        (",a,1,2,3", "unit: 1 more row has no unit, and is left out"),
    ],
)
def test_a_csv_with_a_broken_row(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path, broken: str, says: str
) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, ROWS)
    spec = edited(small, lambda plain: plain["tables"]["rows"].update(path="rows.csv"))
    assert run(capsys, "run", spec, "--out", tmp_path / "first")[0] == 0
    path.write_text(path.read_text("utf-8") + broken + "\n", "utf-8")
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0
    status, told, _ = run(capsys, "check", spec)
    assert status == 0
    assert says in told
    assert "4711" not in told


def at_path(name: str, plain: dict[str, Any]) -> None:
    plain["tables"]["rows"]["path"] = name


def test_csv_and_parquet_give_the_same_answers(tmp_path: Path) -> None:
    from release.queries.read import read_spec
    from tests.answers import answer, load

    rows = [*ROWS, {"unit": "u9", "place": None, "day": None, "kind": None, "wh": None}]
    queries = [query("mode", weight="wh"), query("count"), query("binned", statistic="mean")]
    found = []
    for name in ("rows.parquet", "rows.csv"):
        spec = Small(rows, queries).write(tmp_path)
        write_rows(tmp_path / name, rows)
        # Columns are taken by name: another order in the file changes nothing.
        if name.endswith("csv"):
            table = table_of(rows).select(["wh", "kind", "day", "place", "unit"])
            pa.csv.write_csv(table, tmp_path / name)
        spec_file = read_spec(edited(spec, partial(at_path, name)))
        with load(spec_file) as tables:
            found.append([one.codes.tolist() for one in answer(tables, spec_file)])
    assert found[0] == found[1]


def test_a_glob_reads_all_its_files(tmp_path: Path) -> None:
    from release.queries.read import read_spec
    from tests.answers import answer, load

    spec = Small(ROWS, [query("count", by=[], domain={"ordered": {"min": 0, "max": 20}})]).write(
        tmp_path
    )
    (tmp_path / "rows.parquet").unlink()
    write_rows(tmp_path / "part-1.parquet", ROWS[:4])
    write_rows(tmp_path / "part-2.parquet", ROWS[4:])
    edited(spec, lambda plain: plain["tables"]["rows"].update(path="part-*.parquet"))
    spec_file = read_spec(spec)
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [9]


def test_groups_outside_the_key_set_are_left_out_and_absent_ones_answered(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As ``docs/privacy.md`` says: the cells come from the public keys, never from the data."""
    rows = [{**row, "place": "c"} for row in ROWS]
    spec = Small(rows, [query("count", sensitivity="global")]).write(tmp_path)
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0
    released = pq.read_table(tmp_path / "out/public/small/data/the_count.parquet")
    assert released.column("place").to_pylist() == ["a", "b"]


def test_an_output_folder_that_has_the_release(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(capsys, "run", small, "--out", out)[0] == 0
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert "'small' is published there already" in refused(capsys, 2, small, out)
    assert before == {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}


def test_an_output_folder_that_is_a_file(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("here already", "utf-8")
    assert "is a file; name a folder" in refused(capsys, 2, small, tmp_path / "out")
    assert (tmp_path / "out").read_text("utf-8") == "here already"


def test_a_law_that_nobody_could_check_is_refused_before_it_is_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mode = query("mode", sensitivity="global", domain={"cyclic": 40_000}, by=[])
    spec = Small(ROWS, [mode]).write(tmp_path)
    assert "declare a smaller domain" in refused(capsys, 1, spec, tmp_path / "out")


def test_too_many_pairs_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("release.queries.reached._MOST_PAIRS", 100)
    spec = Small(ROWS, [query("mode", weight="wh", by=[])]).write(tmp_path)
    assert "replacement: domain" in refused(capsys, 1, spec, tmp_path / "out")


def test_a_release_over_its_budget(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    spec = edited(small, lambda plain: plain["budget"].update(epsilon="0.5"))
    line = refused(capsys, 1, spec, tmp_path / "out")
    assert "budget.epsilon: the queries charge 4, the cap is 0.5" in line


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("wh >", "not an SQL expression"),
        ("wh + 1", "the condition is of type integer"),
        ("what > 1", "'what' is not there; did you mean 'wh'? known are"),
        ("wh > (SELECT max(wh) FROM rows)", "a subquery is not allowed"),
        ("sum(wh) OVER () > 1", "a window function is not allowed"),
        ("max(wh) > 1", "the function max is not allowed"),
        ("random() < 0.5", "the function random is not allowed"),
        ("age(TIMESTAMP '2020-01-01') > INTERVAL 1 YEAR", "the function age is not allowed"),
        ("json_serialize_plan('select 1', optimize := true) LIKE '%'", "json_serialize_plan"),
        ("hash(wh) > 0 AND version() = ''", "the function hash is not allowed"),
        ("CAST('2020-01-01' AS TIMESTAMPTZ) IS NULL", "is not allowed in a cast"),
        ("current_setting('threads') = '1'", "the function current_setting is not allowed"),
        ("1 = 1) UNION SELECT (2", "not an SQL expression: see line 1, character"),
        ("true); DROP TABLE x; SELECT (1", "one expression"),
        ("true); SELECT (1", "one expression"),
        ("$1", "a parameter is not allowed"),
        ("COLUMNS(*)", "the function columns is not allowed"),
        ("place > 3", "'>' compares"),
    ],
)
def test_conditions_look_at_one_row_only(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path, where: str, says: str
) -> None:
    spec = edited(small, lambda plain: plain["queries"][0].update(where=where))
    line = refused(capsys, 2, spec, tmp_path / "out")
    assert line.startswith("error: queries[0].where: ")
    assert says in line


def test_a_condition_that_fails_on_a_row_does_not_tell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A cast that one row breaks would otherwise stop the release: a fact about that row."""
    rows = [*ROWS, {"unit": "x", "place": "a", "day": 1, "kind": 0, "wh": 0}]
    where = "CAST(substring(unit, 2) AS INTEGER) >= 0"
    spec = Small(rows, [query("count", where=where)]).write(tmp_path)
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0


def test_comments_and_newlines_in_a_condition_do_no_harm(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = "wh > 2 -- a remark\n AND kind IN (1, 2) /* another */"
    spec = Small(ROWS, [query("count", where=where)]).write(tmp_path)
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0


def command(spec: Path, out: Path, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    arguments = [sys.executable, "-m", "release", "run", str(spec), "--out", str(out)]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # kwargs as given
        arguments, capture_output=True, text=True, check=False, cwd=PROJECT, **kwargs
    )


AT_THE_END = """
import atexit, sys, tempfile, threading, time
import release.cli.main as own
kept = tempfile.TemporaryDirectory()
atexit.register(print, "atexit", end="")
def main():
    print("printed")
    if sys.argv[1] == "thread":
        threading.Thread(target=lambda: (time.sleep(0.5), print("thread"))).start()
    raise SystemExit(3)
own.main = main
own.process()
"""


@pytest.mark.parametrize(
    ("argument", "printed"), [("", "printed\natexit"), ("thread", "printed\nthread\natexit")]
)
def test_a_process_ends_after_its_threads_and_with_all_that_was_said(
    argument: str, printed: str, tmp_path: Path
) -> None:
    """Python's own clean-up is left out, and nothing that anybody sees."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, argument],
        capture_output=True, text=True, check=False, cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (3, printed, "")
    assert list(tmp_path.iterdir()) == []


def left_behind(out: Path) -> list[str]:
    return sorted(str(path) for path in out.rglob("*")) if out.exists() else []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full to know the platform")
@pytest.mark.parametrize(("limit", "is_drawn"), [(0, False), (1000, False), (8_000, True)])
def test_a_full_disk_leaves_nothing(
    small: Path, tmp_path: Path, limit: int, is_drawn: bool
) -> None:
    """A limit on the size of files stands for the full disk: writing fails in the middle.

    Only what was drawn stays, privately, and the next run publishes it.
    """

    def no_space() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    # DuckDB and matplotlib may want scratch files of their own; these are on another disk in life.
    done = command(small, tmp_path / "out", preexec_fn=no_space)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 1, done.stderr
    assert len(lines) == 1
    assert "Traceback" not in done.stderr
    assert is_only_a_draw(tmp_path / "out") == is_drawn
    if is_drawn:
        assert command(small, tmp_path / "out").returncode == 0
        assert names(tmp_path / "out") == ["auditor", "public"]
    else:
        assert left_behind(tmp_path / "out") == []


def is_only_a_draw(out: Path) -> bool:
    """Whether nothing is left but what a run has drawn."""
    work = out / ".work-small"
    if not work.exists() or names(out) != [work.name]:
        return False
    return names(work) == ["drawing", "drawn", "prepared"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_disk_leaves_nothing(small: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    done = command(small, locked / "out")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert left_behind(locked) == []


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mount") is None, reason="needs root to mount a small disk"
)
@pytest.mark.parametrize("options", ["size=32k", "ro"])
def test_a_small_or_read_only_file_system_leaves_nothing(
    small: Path, tmp_path: Path, options: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)],  # noqa: S607 - the system's
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        done = command(small, disk / "out")
        assert done.returncode == 1, done.stderr
        line = done.stderr.splitlines()[-1]
        assert line.startswith("error: ")
        assert "No space left" in line or "Read-only" in line or "verify" in line
        assert left_behind(disk) == [] or is_only_a_draw(disk / "out")
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607 - as above


def test_help_shows_an_example_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("run", "verify"):
        code, printed, _ = run(capsys, name, "--help")
        assert code == 0
        assert f"Example: dp-release {name}" in printed


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("duckdb", "pulp", "highspy", "prefect", "matplotlib", "pyarrow", "numpy", "pydantic")
    code = f"import release, release.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout.strip() == "[]"


def test_a_command_starts_without_what_chooses_mechanisms_or_signs() -> None:
    late = ("release.noise", "release.queries", "cryptography")
    code = (
        f"import release.cli.main, sys; print([m for m in sys.modules if m.startswith({late!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout.strip() == "[]"


def test_reading_a_released_table_leaves_arrow_none_of_pythons_memory() -> None:
    """A thread of Arrow's that frees such memory while Python ends aborts the process."""
    from release.bundle.tables.parquet import source_of

    data = bytes(range(256)) * 1000
    held = sys.getrefcount(data)
    source = source_of(data)
    assert sys.getrefcount(data) == held
    assert source.read() == data


def test_two_runs_at_once_publish_one_release_whole(small: Path, tmp_path: Path) -> None:
    from release.job import auditor_bundle
    from release.verification.verifier import verify

    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "release", "run", str(small), "--out", str(out)]
    runs = [
        subprocess.Popen(arguments, cwd=PROJECT, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [run.communicate()[1] for run in runs]
    codes = sorted(run.returncode for run in runs)
    assert codes.count(0) == 1, told
    assert set(codes) <= {0, 1, 2}
    public = out / "public" / "small"
    assert verify(public, auditor_bundle(public), UNSIGNED).status == 0
    assert sorted(path.name for path in out.iterdir()) == ["auditor", "public"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_an_interrupted_run_leaves_nothing(small: Path, tmp_path: Path, name: str) -> None:
    import signal

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["-v", "run", str(small), "--out", str(tmp_path / "out")]
    run = subprocess.Popen(
        [sys.executable, "-m", "release", *words],
        cwd=PROJECT,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert run.stderr is not None
    while "answering" not in run.stderr.readline():
        assert run.poll() is None
    run.send_signal(getattr(signal, name))
    rest = run.communicate()[1]
    if run.returncode != 0:  # it may have been done already
        assert run.returncode == 1
        assert rest.splitlines()[-1].startswith("error: ")
        assert left_behind(tmp_path / "out") == []
    assert left_behind(scratch) == []


def test_the_public_half_can_be_read_whatever_the_umask(small: Path, tmp_path: Path) -> None:
    done = command(small, tmp_path / "out", umask=0o077)
    assert done.returncode == 0, done.stderr
    public = tmp_path / "out" / "public" / "small"
    for path in (public, public / "data", public / "release.json"):
        assert path.stat().st_mode & 0o444 == 0o444, path


def test_columns_that_differ_in_case_only_are_refused(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    def add(plain: dict[str, Any]) -> None:
        plain["tables"]["rows"]["columns"]["WH"] = "integer"

    line = refused(capsys, 2, edited(small, add), tmp_path / "out")
    assert "differs from 'WH' in case only" in line


def test_large_unit_numbers_stay_apart(tmp_path: Path) -> None:
    """Units beyond 2^31 are no measurements: clamping them would merge them into one."""
    from release.queries.read import read_spec
    from tests.answers import answer, load

    spec = Small([], [query("count", by=[], domain={"ordered": {"min": 0, "max": 20}})])
    path = edited(
        spec.write(tmp_path), lambda p: p["tables"]["rows"]["columns"].update(unit="integer")
    )
    units = pa.array([3_000_000_000 + i for i in range(9)], pa.int64())
    table = table_of(ROWS).set_column(0, "unit", units)
    pq.write_table(table, tmp_path / "rows.parquet")
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [9]


def test_a_join_orders_rows_by_all_columns(tmp_path: Path) -> None:
    """Rows that differ in joined columns only: what is kept may not depend on their order."""
    from release.queries.read import read_spec
    from tests.answers import answer, load

    small = Small(ROWS, [query("count", by=["size"], sensitivity="global", max_rows_per_unit=1)])
    path = small.write(tmp_path)

    def join(plain: dict[str, Any]) -> None:
        plain["tables"]["rows"]["join"] = {"table": "homes"}
        plain["tables"]["homes"] = {
            "path": "homes.parquet",
            "columns": {"unit": "string", "size": "integer"},
        }
        plain["keys"]["size"] = [0, 1]

    edited(path, join)
    homes = [(f"u{i}", size) for i in range(9) for size in (0, 1)]
    found = []
    for order in (homes, homes[::-1]):
        table = pa.table({"unit": [u for u, _ in order], "size": [s for _, s in order]})
        pq.write_table(table, tmp_path / "homes.parquet")
        spec_file = read_spec(path)
        with load(spec_file) as tables:
            found.append(answer(tables, spec_file)[0].codes.tolist())
    assert found[0] == found[1]
    # A sample of each unit, and not always its row of the smaller size.
    assert min(found[0]) > 0


def test_units_of_two_types_are_refused(
    capsys: pytest.CaptureFixture[str], small: Path, tmp_path: Path
) -> None:
    def add(plain: dict[str, Any]) -> None:
        homes = {"path": "homes.parquet", "columns": {"unit": "integer"}}
        plain["tables"]["homes"] = homes

    line = refused(capsys, 2, edited(small, add), tmp_path / "out")
    assert "privacy.unit: declare it string in every table, or integer in every table" in line


def test_fixed_columns_may_not_decide_empirical_queries(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = Small(ROWS, [query("count", where="place = 'a'")], fixed=["place"]).write(tmp_path)
    assert "'place' is fixed" in refused(capsys, 2, spec, tmp_path / "out")


def test_a_table_in_which_nothing_moves_still_gets_noise(tmp_path: Path) -> None:
    from release.job import auditor_bundle
    from release.street import run_release
    from release.verification.verifier import verify

    other = query("count", name="by_channel", mechanism="channel")
    public = run_release(
        Small([], [query("count", mechanism="modular"), query("mode"), other]).write(tmp_path),
        tmp_path,
    ).public
    auditor = auditor_bundle(public)
    assert auditor is not None
    assert verify(public, auditor, UNSIGNED).status == 0
    ring = json.loads((auditor / "the_count.json").read_bytes())
    assert ring["sensitivity"]["differences"] == [[1], [5]]
    assert sum(weight != "0" for weight in ring["law"]["weights"]) > 1
    channel = json.loads((auditor / "by_channel.json").read_bytes())
    assert channel["sensitivity"]["distances"] == [1]
    assert sum(weight != "0" for weight in channel["law"]["rows"][0]) > 1
