"""Malformed and hostile input: an error of ours in one line or a valid result; never a traceback.

Random input comes from Hypothesis, at the doors through which bytes of others come in: specs, CSV,
Parquet, the JSON of a release, ledger entries, proofs, envelopes, notes.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rfc8785
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_release_verify.digests import SUMS
from dp_release_verify.signatures import SignatureError
from release.budget.ledger import open_proof, replay
from release.cli.main import main
from release.errors import ReleaseError, SpecError
from release.job import auditor_bundle
from release.queries.read import parse_spec, read_spec
from release.records.signing import PublicKey, open_note
from release.verification.verifier import verify
from tests.answers import answer, load
from tests.conftest import PROJECT
from tests.small import UNSIGNED, Row, Small, query, table_of
from tests.verifier.made import seal

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
KEY = PublicKey("example.org/dp", bytes(32))

many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.sampled_from(["global", "1/0", "nan", "-1", "../x", "count", [1, [2]], {"declared": []}]),
)


def places_in(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values of a nested plain object."""
    found = [path] if path else []
    if isinstance(plain, dict | list):
        pairs = plain.items() if isinstance(plain, dict) else enumerate(plain)
        for key, value in pairs:
            found += places_in(value, (*path, key))
    return found


def with_change(plain: Any, data: st.DataObject) -> Any:
    """One value is replaced by something odd, or taken away, or one is added."""
    changed = json.loads(json.dumps(plain))
    path = data.draw(st.sampled_from(places_in(changed)))
    at = changed
    for step in path[:-1]:
        at = at[step]
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if how == "remove":
        del at[path[-1]]
    elif how == "add" and isinstance(at, dict):
        at[data.draw(st.text(max_size=6))] = data.draw(odd)
    else:
        at[path[-1]] = data.draw(odd)
    return changed


@many
@given(st.data())
def test_a_spec_with_odd_values(data: st.DataObject) -> None:
    plain = Small([], [query("count"), query("mode"), query("binned")]).plain()
    for _ in range(data.draw(st.integers(1, 3))):
        plain = with_change(plain, data)
    try:
        parse_spec(yaml.safe_dump(plain).encode())
    except SpecError as error:
        assert "\n" not in str(error)


@many
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_a_spec_of_any_bytes(text: bytes) -> None:
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    assert "\n" not in str(error.value)


@many
@given(st.data())
def test_any_bytes_in_place_of_signed_files(data: st.DataObject) -> None:
    some = data.draw(st.binary(max_size=300))
    with pytest.raises(ReleaseError):
        open_proof(some, (KEY,))
    with pytest.raises(SignatureError):
        open_note(some.decode("latin-1"), (KEY,))
    with pytest.raises(SignatureError):
        PublicKey.of(some.decode("latin-1"))


@settings(many, max_examples=60)
@given(data=st.data())
def test_a_ledger_of_odd_entries(tmp_path: Path, data: st.DataObject) -> None:
    entry = {
        "seq": 0,
        "prev": "sha256:" + "0" * 64,
        "kind": "genesis",
        "origin": KEY.name,
        "scopes": [{"scope": "s", "epsilon": "1", "delta": "0"}],
        "keys": [str(KEY)],
        "date": "2024-01-01",
    }
    changed = with_change(entry, data)
    folder = tmp_path / "ledger"
    folder.mkdir(exist_ok=True)
    try:
        text = rfc8785.dumps(changed)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        text = json.dumps(changed).encode()
    (folder / "00000000.json").write_bytes(text)
    try:
        replay(folder)
    except ReleaseError as error:
        assert "\n" not in str(error)


@settings(many, max_examples=60)
@given(data=st.data())
def test_a_release_record_with_odd_values(
    ami_release: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """With the sums made to fit, as a forger would."""
    public = tmp_path / "public" / ami_release.name
    if not public.exists():
        shutil.copytree(ami_release, public)
    names = ["release.json", "keys.json", "mechanisms/heavy_evenings.json"]
    name = data.draw(st.sampled_from(names))
    good = (public / name).read_bytes()
    changed = with_change(json.loads(good), data)
    try:
        text = rfc8785.dumps(changed)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        text = json.dumps(changed).encode()
    (public / name).write_bytes(text)
    before = (public / SUMS).read_bytes()
    seal(public)
    try:
        verify(public, auditor_bundle(ami_release))
    except ReleaseError:
        pass
    finally:
        (public / name).write_bytes(good)
        (public / SUMS).write_bytes(before)


@settings(many, max_examples=60)
@given(data=st.data())
def test_tables_whose_bytes_were_changed(tmp_path: Path, data: st.DataObject) -> None:
    """Parquet footers and pages, CSV headers and rows: read, or refused without a value."""
    ending = data.draw(st.sampled_from(["parquet", "csv"]))
    rows = [{**row, "place": "secret-place"} for row in ROWS]
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(table_of(rows), path)
    else:
        pa.csv.write_csv(table_of(rows), path)
    good = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # Half of the hits are aimed at the footer.
        start = data.draw(st.sampled_from([0, max(0, len(good) - 600)]))
        place = data.draw(st.integers(start, len(good) - 1))
        good[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        good = good[: data.draw(st.integers(0, len(good)))]
    path.write_bytes(good)
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(Small([], [query("count"), query("mode")]).plain(path.name)))
    spec_file = read_spec(spec)
    try:
        with load(spec_file) as tables:
            answer(tables, spec_file)
    except ReleaseError as error:
        assert "secret" not in str(error)
        assert "\n" not in str(error)


@pytest.mark.skipif(find_spec("atheris") is None, reason="needs atheris: the extra fuzz")
def test_inputs_that_are_led_by_coverage(ami_release: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("spec.yaml", "release.json", "mechanisms/heavy_evenings.json"):
        shutil.copy(ami_release / name, corpus)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_parsers", str(corpus), "20"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path])},
    )
    assert done.returncode == 0, done.stderr[-2000:]


def run(capsys: pytest.CaptureFixture[str], spec: Path, out: Path) -> tuple[int, list[str]]:
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(spec), "--out", str(out)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, [line for line in shown.err.splitlines() if "error: " in line]


def spec_with(folder: Path, **tables: Any) -> Path:
    plain = Small(ROWS, [query("count")]).plain()
    plain["tables"]["rows"] |= tables
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain))
    return path


@pytest.mark.parametrize(
    "release_id", ["../escape", "..", ".hidden", "a/b", "/abs", "a\\b", "A", ""]
)
def test_a_release_id_cannot_leave_the_output_folder(
    release_id: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain = Small(ROWS, [query("count")]).plain()
    plain["release"]["id"] = release_id
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(plain))
    status, lines = run(capsys, tmp_path / "spec.yaml", tmp_path / "deep" / "out")
    assert status == 2
    assert "release.id" in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("name", ["../../x", "x/y", "X", "select;", "a b", "ä", "q" * 100])
def test_the_name_of_a_query_is_a_plain_name(name: str) -> None:
    with pytest.raises(SpecError, match=r"queries\[0\]\.name"):
        parse_spec(yaml.safe_dump(Small([], [query("count", name=name)]).plain()).encode())


@pytest.mark.parametrize(
    "sql",
    [
        "read_text('/etc/hostname') = ''",
        "(SELECT count(*) FROM read_csv('/etc/passwd')) > 0",
        "getenv('HOME') = ''",
        "wh > 0; COPY rows TO '/tmp/stolen'",
        "wh > 0) OR (SELECT 1 FROM pragma_database_list()) = 1",
        "'a' = current_setting('temp_directory')",
        "query('SELECT 1') IS NOT NULL",
    ],
)
def test_sql_of_a_spec_reads_nothing_but_its_row(
    sql: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = Small(ROWS, [query("count", where=sql)]).write(tmp_path)
    status, lines = run(capsys, spec, tmp_path / "out")
    assert (status, len(lines)) == (2, 1)
    assert not Path("/tmp/stolen").exists()  # noqa: S108 - where the attack would write


def test_a_header_of_a_million_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    header = ",".join(["unit,place,day,kind,wh", *(f"c{i}" for i in range(10**6))])
    (tmp_path / "wide.csv").write_text(f"{header}\n")
    table = pa.table({f"c{i}": [1] for i in range(20_000)})
    pq.write_table(table, tmp_path / "wide.parquet")
    for name in ("wide.csv", "wide.parquet"):
        status, lines = run(capsys, spec_with(tmp_path, path=name), tmp_path / "out")
        assert status == 2
        assert len(lines) == 1
        assert "keep those that are declared" in lines[0]
        assert len(lines[0]) < 300


def test_a_parquet_file_that_grows_when_it_is_read(tmp_path: Path, ami_release: Path) -> None:
    """Ten million equal answers in a few hundred kilobytes, in place of a released table."""
    public = tmp_path / ami_release.name
    shutil.copytree(ami_release, public)
    path = public / "data" / "heavy_evenings.parquet"
    schema = pq.read_schema(path).remove_metadata()
    options = {"compression": "gzip", "store_schema": False, "use_dictionary": False}
    zeros = [0] * 10**7
    row = pa.table([["c00"] * 10**7, zeros, zeros, zeros, zeros], schema=schema)
    with pq.ParquetWriter(path, schema, write_statistics=False, **options) as writer:
        writer.write_table(row, row_group_size=10**7)
    data = path.read_bytes()
    assert len(data) < 2_000_000
    seal(public)
    with pytest.raises(ReleaseError, match="rows"):
        verify(public)


ODD_KEYS = ["it's", 'say "so"', "a,b", "\u0645\u0643\u0629", "two words", "=1+1", "<b>"]


def test_keys_of_every_kind_are_kept_apart_and_shown_as_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Quotes, commas, other directions, formulas, markup: keys like others."""
    rows: list[Row] = [
        {"unit": f"u{i}", "place": key, "day": 1, "kind": 0, "wh": 1}
        for i, key in enumerate(ODD_KEYS)
    ]
    spec = Small(rows, [query("count", sensitivity="global")]).plain()
    spec["keys"]["place"] = ODD_KEYS
    pq.write_table(table_of(rows), tmp_path / "rows.parquet")
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    spec_file = read_spec(tmp_path / "spec.yaml")
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [1] * len(ODD_KEYS)
    assert run(capsys, tmp_path / "spec.yaml", tmp_path / "out")[0] == 0
    public = tmp_path / "out" / "public" / "small"
    assert verify(public, None, UNSIGNED).status == 0
    assert "<b>" not in (public / "report.html").read_text("utf-8").partition("<h1")[2]


@pytest.mark.parametrize(
    "key", ["two\nlines", "tab\t", "nul\0", "right\u202eto left", "no\u00a0break", ""]
)
def test_keys_that_do_not_show_as_they_are_are_refused(key: str, tmp_path: Path) -> None:
    plain = Small(ROWS, [query("count")]).plain()
    plain["keys"]["place"] = ["a", key]
    (tmp_path / "spec.yaml").write_text(json.dumps(plain))
    with pytest.raises(SpecError, match=r"keys\.place"):
        read_spec(tmp_path / "spec.yaml")


def test_numbers_that_are_none_and_dates_out_of_range(tmp_path: Path) -> None:
    """NaN and infinity meet no condition on numbers; the year 9999 is a date like others."""
    table = pa.table(
        {
            "unit": [f"u{i}" for i in range(5)],
            "place": ["a"] * 5,
            "day": pa.array([datetime.date(9999, 12, 31)] * 4 + [datetime.date(1, 1, 1)]),
            "volt": [float("nan"), float("inf"), -float("inf"), 1.5, None],
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    plain = Small([], [query("count", by=["day"], where="volt < 2 AND volt > -2")]).plain()
    columns = {"unit": "string", "place": "string", "day": "date", "volt": "number"}
    plain["tables"]["rows"]["columns"] = columns
    plain["keys"] = {"day": [datetime.date(9999, 12, 31), datetime.date(1, 1, 1)]}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(plain))
    spec_file = read_spec(tmp_path / "spec.yaml")
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [0, 1]
