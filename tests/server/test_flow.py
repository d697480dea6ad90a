"""The Prefect flow: the same release, and nothing confidential in what Prefect keeps."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from release.job import auditor_bundle
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.process.test_twin_run import GLOBAL
from tests.server.servers import Server
from tests.small import MARKED as ROWS
from tests.small import MARKS, UNSIGNED, Row, Small, check_unmarked, joint, part, query, write_rows


def run_flow(
    spec: Path, out: Path, home: Path, server: Server | None = None
) -> subprocess.CompletedProcess[str]:
    """The flow as a process of its own; without a server, Prefect starts one for the run."""
    return run_module("flows.run", str(spec), "--out", str(out), home=home, server=server)


def run_module(
    *arguments: str, home: Path, server: Server | None = None
) -> subprocess.CompletedProcess[str]:
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    if server is not None:
        settings["PREFECT_API_URL"] = server.api
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**settings, "HOME": str(home)},
    )


COUNTED = "SELECT place, count(*) AS answer FROM rows GROUP BY place"

EVERY_KIND = [
    query("mode"),
    query("count", sensitivity="global"),
    query("binned"),
    query("count", name="own") | {"kind": "sql", "sql": COUNTED},
    joint("rows_here", "total", name="jointly"),
    part("rows_here", "count"),
    part("total", "binned"),
]


def test_the_flow_publishes_what_verifies_and_prefect_keeps_nothing_of_the_table(
    tmp_path: Path,
) -> None:
    """In an empty home, as on a machine where Prefect has not run yet."""
    home = tmp_path / "home"
    home.mkdir()
    spec = Small(ROWS, EVERY_KIND).write(tmp_path)
    done = run_flow(spec, tmp_path / "out", home)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(f"{q['name']} (") for q in EVERY_KIND] == [3, 3, 3, 3, 3, 0, 0]
    assert "small   VERIFIED   exit 0" in done.stdout
    assert "Traceback" not in done.stderr
    public = tmp_path / "out" / "public" / "small"
    assert verify(public, auditor_bundle(public), UNSIGNED).status == 0
    assert pq.read_table(public / "data" / "the_mode.parquet").num_rows == 2
    assert any(path.name == "prefect.db" for path in home.rglob("*") if path.is_file())
    check_unmarked(home)
    storage = home / ".prefect" / "storage"
    assert not storage.exists() or not any(storage.iterdir())
    shown = done.stdout + done.stderr
    for mark in MARKS:
        assert mark.decode() not in shown


def test_the_flow_publishes_the_values_of_units(tmp_path: Path, server: Server) -> None:
    own = query("mode", name="own", by=["unit"], sensitivity="global") | {"kind": "per_unit"}
    del own["noise"]
    spec = Small(ROWS, [own]).plain()
    spec["privacy"] |= {"neighbors": "attribute", "attribute": "kind"}
    spec["keys"]["unit"] = [f"quagzil-{i}" for i in range(9)]
    write_rows(tmp_path / "rows.parquet", ROWS)
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    done = run_flow(tmp_path / "spec.yaml", tmp_path / "out", tmp_path / "home", server)
    assert done.returncode == 0, done.stderr
    assert verify(tmp_path / "out" / "public" / "small", None, UNSIGNED).status == 0


def test_a_refusal_in_the_flow_is_one_line_with_the_same_status(
    tmp_path: Path, server: Server
) -> None:
    spec = Small(ROWS, [query("mode")]).write(tmp_path)
    (tmp_path / "rows.parquet").write_bytes(b"quagzil")
    done = run_flow(spec, tmp_path / "out", tmp_path / "home", server)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: tables.rows.path: rows.parquet is not a readable Parquet file"
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()


# What Prefect makes up by itself: identifiers, its clock (durations are times after 1970), and the
# names of runs.
OWN = re.compile(
    r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)?"
    r"|(?<=[a-z]-)[0-9a-f]{3}\b"
    r"|(?<=_run_time\": )[0-9.e-]+"
)


def words(text: str) -> str:
    """All words of a text without what is Prefect's own; it orders lists of resources by chance."""
    return " ".join(sorted(re.split(r"[^\w.:-]+", OWN.sub("own", text))))


def kept_by_prefect(home: Path) -> dict[str, list[str]]:
    """Every row of every table of Prefect's database, and every other file of its home."""
    database = home / ".prefect" / "prefect.db"
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(database)) as opened:
        (name,) = opened.execute("SELECT name FROM flow_run").fetchone()
        tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table.startswith("block_"):
                continue  # its own catalogue of what it can be connected with
            rows = opened.execute(f'SELECT * FROM "{table}"').fetchall()
            found[table] = sorted(words(repr(row).replace(name, "own")) for row in rows)
    for path in home.rglob("*"):
        if path.is_file() and not path.name.startswith("prefect.db"):
            # The cache of matplotlib lists the fonts of this machine.
            content = "" if "matplotlib" in path.parts else path.read_text("utf-8")
            found[str(path.relative_to(home))] = [words(content)]
    return found


NAMED = {"q4", "q9", "q11", "declared", "jointly", "rows_here", "commonest", "total"}
ONE_OF_EACH = [one for one in GLOBAL if one["name"] in NAMED]


def test_twin_runs_leave_prefect_the_same(tmp_path: Path, prefect_home: Path) -> None:
    """Worst-case spec, one unit replaced: its database, its files and the screen are equal.

    But for what Prefect makes up by itself. Draws are real: it is never told of them.
    """
    replaced = [
        *ROWS[1:],
        *({"unit": "quagzil-0", "place": "c", "day": None, "kind": 9, "wh": 7},) * 5,
    ]

    def kept(table: list[Row], name: str) -> dict[str, list[str]]:
        here = tmp_path / "run"
        shutil.copytree(prefect_home, here / "home")
        # One of each kind: of which query there are several makes no difference to Prefect.
        done = run_flow(Small(table, ONE_OF_EACH).write(here), here / "out", here / "home")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        here.rename(tmp_path / name)
        return kept_by_prefect(tmp_path / name / "home") | {"screen": [done.stdout]}

    for attempt in range(3):
        one, two = kept(ROWS, f"one {attempt}"), kept(replaced, f"two {attempt}")
        # On a busy machine Prefect's server may end before it has written its last events. What
        # differs by the table differs each time.
        if all(len(one.get(place, [])) == len(two[place]) for place in two):
            break
    assert len(one["task_run"]) > 5
    assert len(one["events"]) > 20
    for place in one.keys() | two.keys():
        assert one[place] == two[place], place


def test_releases_are_verified_by_a_flow(tmp_path: Path, server: Server) -> None:
    out, home = str(tmp_path / "out"), tmp_path / "home"
    done = run_flow(Small(ROWS, EVERY_KIND).write(tmp_path), tmp_path / "out", home, server)
    assert done.returncode == 0, done.stderr
    for asked, status, told in (
        ((), 3, "VERIFIED, unsigned"),
        (("--require", "none"), 0, "VERIFIED"),
    ):
        checked = run_module("flows.verify", out, *asked, home=home, server=server)
        assert checked.returncode == status, checked.stderr
        assert checked.stdout.startswith(f"small  {told}")
        assert "quagzil" not in checked.stdout + checked.stderr
    check_unmarked(home)
    check_unmarked(server.home)


@pytest.mark.parametrize("mark", MARKS)
def test_the_search_for_marks_finds_one_anywhere(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"\x00..." + mark[:-1])
    check_unmarked(tmp_path)
    (tmp_path / "a" / "b" / "file").write_bytes(b"\x00..." + mark + b"...")
    with pytest.raises(AssertionError, match="file"):
        check_unmarked(tmp_path)
