"""Tables of a PostgreSQL server, which the tests start themselves from Debian's packages."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.cli.console import one_line
from release.errors import ReleaseError
from release.queries.read import read_spec
from release.tables.duckdb import Tables, wide_table
from tests.postgresql import IS_INSTALLED, Server, started
from tests.process.test_twin_run import FEW, HOMES, REPLACED, all_of_a_run
from tests.small import MARKED, Row, Small, check_unmarked

pytestmark = pytest.mark.skipif(not IS_INSTALLED, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with started() as server:
        yield server


@pytest.fixture(autouse=True)
def as_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", "postgres")


def fill(server: Server, rows: list[Row], relation: str = "public.rows") -> None:
    """The rows of a small table in the server."""
    columns = ("unit", "place", "day", "kind", "wh")
    written = []
    for row in rows:
        values = [row.get(column) for column in columns]
        texts = ["NULL" if value is None else f"'{value}'" for value in values]
        written.append(f"({', '.join(texts)})")
    server.run(
        f"DROP TABLE IF EXISTS {relation} CASCADE",
        f"CREATE TABLE {relation} (unit text, place text, day int, kind int2, wh int8)",
        f"INSERT INTO {relation} VALUES {', '.join(written)}",
    )


def write_spec(server: Server, folder: Path, relation: str = "rows") -> Path:
    """A small spec whose table is in the server."""
    path = Small([], FEW, fixed=["place"]).write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    (folder / "rows.parquet").unlink()
    plain["tables"]["rows"] |= {"path": server.path(), "relation": relation}
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def changed(spec: Path, **table: Any) -> Path:
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["tables"]["rows"] |= table
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    return spec


def read(spec: Path) -> list[dict[str, Any]]:
    """All rows of a spec's first table, as queries see them."""
    spec_file = read_spec(spec)
    name = next(iter(spec_file.spec.tables))
    with Tables(spec_file) as tables:
        found = tables.rows(f"SELECT * FROM {wide_table(name)}", name).to_pylist()
    return sorted((dict(sorted(row.items())) for row in found), key=repr)


def test_a_table_of_a_server_is_the_same_as_its_file(server: Server, tmp_path: Path) -> None:
    fill(server, REPLACED)
    (tmp_path / "file").mkdir()
    (tmp_path / "server").mkdir()
    file = Small(REPLACED, FEW, fixed=["place"]).write(tmp_path / "file")
    spec = write_spec(server, tmp_path / "server")
    found = read(spec)
    assert len(found) == len(REPLACED)
    assert found == read(file)
    # A materialised view is stored, as a table is.
    server.run("CREATE MATERIALIZED VIEW kept_rows AS SELECT * FROM rows")
    assert read(changed(spec, relation="kept_rows")) == found
    server.run("DROP MATERIALIZED VIEW kept_rows")


def test_an_instant_of_a_server_is_local_time_of_the_declared_zone(
    server: Server, tmp_path: Path
) -> None:
    fill(server, REPLACED)
    server.run("ALTER TABLE rows ADD at timestamptz DEFAULT '2024-07-01T23:30:00Z'")
    spec = write_spec(server, tmp_path)
    columns = yaml.safe_load(spec.read_text("utf-8"))["tables"]["rows"]["columns"]
    for zone, hour in ((None, 23), ("Europe/London", 0), ("Asia/Kathmandu", 5)):
        at = "timestamp" if zone is None else {"type": "timestamp", "zone": zone}
        found = read(changed(spec, columns=columns | {"at": at}))
        assert {row["at"].hour for row in found} == {hour}


VALUES = {
    "n": ("numeric", "number", "0.1 1e999 -1e999 1e-999 -0.0 NaN 7 99999999999999999999.5"),
    "edge": ("numeric", "number", f"{2**1024 - 2**970} {2**1024 - 2**970 - 1} 4.94e-324 2.4e-324"),
    "f": ("float8", "number", "0.1 Infinity -Infinity NaN 5e-324 -0 1.7976931348623157e308"),
    "g": ("float4", "number", "0.5 -0.25 Infinity NaN 16777217"),
    "i": ("int8", "integer", "9223372036854775807 -9223372036854775808 0 2147483648"),
    "d": ("date", "date", "2024-02-29 infinity -infinity 0001-01-01 9999-12-31 10000-01-01"),
    "t": ("timestamp", "timestamp", "2024-02-29T12:00:00.123456 infinity 294276-12-31T00:00:00"),
    "b": ("bool", "boolean", "true false"),
    "s": ("text", "string", "ä 𝄞 \ufffd x"),
    "c": ("char(4)", "string", "ab abcd"),
    "z": ("timestamptz", "timestamp", "2024-02-29T12:00:00+02:00 0001-01-01T00:30:00+01:00"),
    "w": ("numeric", "integer", f"7 -7.0 2.5 99999999999 NaN {10**30} -{10**30}"),
    "v": ("float8", "integer", "7 2.5 NaN 1000000000000"),
    "y": ("timestamp", "date", "2024-02-29T00:00:00 2024-02-29T00:00:01"),
    "u": ("uuid", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "e": ("mood", "string", "calm loud"),
}  # fmt: skip


def test_every_value_means_what_its_text_means_in_a_csv_file(
    server: Server, tmp_path: Path
) -> None:
    """One row for each value; the texts of a CSV file take quite another way."""
    server.run("DROP TYPE IF EXISTS mood CASCADE", "CREATE TYPE mood AS ENUM ('calm', 'loud')")
    types = ", ".join(f"{column} {kind}" for column, (kind, _, _) in VALUES.items())
    server.run("DROP TABLE IF EXISTS measured", f"CREATE TABLE measured (unit text, {types})")
    lines = [",".join(["unit", *VALUES])]
    for column, (_, _, texts) in VALUES.items():
        for number, text in enumerate(texts.split(" ")):
            unit = f"{column}{number}"
            server.run(f"INSERT INTO measured (unit, {column}) VALUES ('{unit}', '{text}')")
            fields = [text if other == column else "" for other in VALUES]
            # As the server has it: a float of 32 bits is not the decimal number of its text.
            fields = ["16777216" if field == "16777217" else field for field in fields]
            lines.append(",".join([unit, *fields]))
    server.run("INSERT INTO measured (unit) VALUES ('none'), (NULL)")
    lines += [",".join(["none", *[""] * len(VALUES)])]
    spec = write_spec(server, tmp_path, "measured")
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["tables"]["rows"]["columns"] = {"unit": "string"} | {
        c: k for c, (_, k, _) in VALUES.items()
    }
    plain["queries"] = [{**plain["queries"][0], "by": [], "where": None}]
    plain["privacy"]["fixed"], plain["keys"] = [], {}
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    found = read(spec)
    (tmp_path / "measured.csv").write_text("\n".join(lines) + "\n", "utf-8")
    expected = read(changed(spec, path="measured.csv", relation=None))
    assert len(found) == len(lines) - 1
    for one, other in zip(found, expected, strict=True):
        assert repr(one) == repr(other)


def test_all_tables_are_of_one_moment(server: Server, tmp_path: Path) -> None:
    """Another session changes both tables between the reading of the first and of the second."""
    fill(server, HOMES)
    fill(server, HOMES, "public.more")
    spec = write_spec(server, tmp_path)
    plain = yaml.safe_load(spec.read_text("utf-8"))
    # Their order is that of their names, once they are written.
    plain["tables"]["first"] = copy.deepcopy(plain["tables"]["rows"]) | {"relation": "public.more"}
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    counts: list[int] = []

    def reading() -> None:
        with Tables(read_spec(spec)) as tables:
            for name in ("first", "rows"):
                query = f"SELECT count(*) AS n FROM {wide_table(name)}"
                counts.append(tables.rows(query, name).column("n")[0].as_py())

    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE rows IN ACCESS EXCLUSIVE MODE")
        reader = threading.Thread(target=reading)
        reader.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        with server.connect() as other, other.cursor() as looking:
            for _ in range(600):
                looking.execute(waiting)
                if looking.fetchone() == (1,):
                    break
                time.sleep(0.05)
            else:
                pytest.fail("the reader does not wait for the second table")
        for name in ("rows", "more"):
            cursor.execute(f"INSERT INTO {name} SELECT * FROM {name}")
        cursor.execute("COMMIT")
        reader.join()
    assert counts == [len(HOMES), len(HOMES)]
    counts.clear()
    reading()
    assert counts == [2 * len(HOMES), 2 * len(HOMES)]


REFUSED: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (("CREATE VIEW seen AS SELECT * FROM rows",), {"relation": "seen"},
     "tables.rows.relation: 'seen' is computed when it is read"),
    ((), {"relation": "nothing"}, "the database has no table 'nothing' in the schema 'public'"),
    ((), {"relation": "elsewhere.rows"}, "no table 'rows' in the schema 'elsewhere'"),
    ((), {"relation": None}, "needs relation"),
    (("ALTER TABLE rows DROP COLUMN kind",), {},
     "columns.kind: the relation has no such column; it has day, place"),
    (("ALTER TABLE rows ALTER kind TYPE text",), {},
     "columns.kind: declared integer, but the relation has text; correct the type"),
    (("ALTER TABLE rows ALTER day TYPE timestamptz USING now()",), {"columns.day": "date"},
     "columns.day: declared date, but the relation has timestamptz"),
    (("DROP ROLE IF EXISTS asked", "CREATE ROLE asked LOGIN PASSWORD 'right'"),
     {"env": {"PGUSER": "asked", "PGPASSWORD": "right"}}, "relation: the user may not read it"),
    (("CREATE ROLE partly LOGIN", "GRANT SELECT ON rows TO partly",
      "ALTER TABLE rows ENABLE ROW LEVEL SECURITY", "CREATE POLICY own ON rows USING (day = 1)"),
     {"env": {"PGUSER": "partly"}}, "relation: the user may not read it, or not all of its rows"),
    ((), {"env": {"PGUSER": "asked", "PGPASSWORD": "wrong-secret"}},
     "path: the server does not answer, or refuses; set PGUSER and PGPASSWORD"),
    ((), {"path": "postgresql://127.0.0.1:1/postgres"}, "does not answer, or refuses"),
    ((), {"path": "postgresql://me:secret@127.0.0.1/postgres"}, "credentials"),
    ((), {"path": "postgresql://127.0.0.1/postgres?user=me"},
     "path: write postgresql://SERVER/DATABASE"),
    ((), {"path": "postgresql://127.0.0.1"}, "path: write postgresql://SERVER/DATABASE"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "change", "told"), REFUSED, ids=lambda one: str(one)[:30])
def test_what_a_server_may_not_hand_over_is_one_line(
    statements: tuple[str, ...],
    change: dict[str, Any],
    told: str,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(server, HOMES)
    server.run(*statements)
    change = dict(change)
    for name, text in change.pop("env", {}).items():
        monkeypatch.setenv(name, text)
    spec = write_spec(server, tmp_path)
    plain = yaml.safe_load(spec.read_text("utf-8"))
    if "columns.day" in change:
        plain["tables"]["rows"]["columns"]["day"] = change.pop("columns.day")
        del plain["keys"]["day"]
        plain["queries"] = [plain["queries"][0] | {"by": ["place"], "where": None}]
        spec.write_text(yaml.safe_dump(plain), "utf-8")
    with pytest.raises(ReleaseError) as refusal:
        read(changed(spec, **change))
    line = one_line(refusal.value)
    assert told in line
    assert "secret" not in line
    assert "\n" not in line


def test_a_database_that_would_convert_texts_is_refused(server: Server, tmp_path: Path) -> None:
    made = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    server.run("DROP DATABASE IF EXISTS latin", made)
    spec = changed(write_spec(server, tmp_path), path=server.path("latin"))
    with pytest.raises(ReleaseError, match="the database has the encoding LATIN1"):
        read(spec)


def test_twin_runs_on_a_server_are_equal(server: Server, tmp_path: Path) -> None:
    """Nothing of the rows is in what is published, printed or left behind; nor of the password."""
    told = []
    for number, rows in enumerate([HOMES, REPLACED]):
        fill(server, rows)
        told.append(all_of_a_run(partial(write_spec, server), tmp_path / str(number)))
    assert b"error" not in told[0]["stderr"]
    assert told[0] == told[1]
    assert not [name for name in told[0] if name.startswith("scratch/")]


def test_no_row_of_a_server_is_left_on_the_disk(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, MARKED)
    server.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN PASSWORD 'quagzil-secret'")
    server.run("GRANT SELECT ON rows TO reader")
    monkeypatch.setenv("PGUSER", "reader")
    monkeypatch.setenv("PGPASSWORD", "quagzil-secret")
    all_of_a_run(partial(write_spec, server), tmp_path)
    check_unmarked(tmp_path)
