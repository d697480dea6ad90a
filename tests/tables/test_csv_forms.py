"""CSV files as people have them: packed, of other marks and encodings, with lines before them."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import release
from release.errors import ReleaseError, SpecError
from release.queries.read import read_spec
from release.tables.duckdb import Tables
from tests.small import Small, query

COLUMNS = {"unit": "string", "wh": "number", "name": "string"}
ROWS = [("u1", 1.5, "Zoë"), ("u2", -20.25, "a; b, c"), ("u3", None, "x\ny"), ("u4", 1000.0, None)]


def spec_of(folder: Path, path: str, **table: Any) -> Path:
    plain = Small([], [query("count", of="unit", by=[], sensitivity="global")]).plain(path)
    plain["keys"] = {}
    plain["tables"]["rows"] |= {"columns": COLUMNS, **table}
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return folder / "spec.yaml"


def rows_of(spec: Path) -> Counter[tuple[Any, ...]]:
    with Tables(read_spec(spec)) as tables:
        given = tables.rows('SELECT * FROM "given rows"', "rows")
        return Counter(tuple(row.values()) for row in given.to_pylist())


def written(separator: str = ",", decimal: str = ".", before: str = "", header: bool = True) -> str:
    """The rows as CSV, quoted where needed."""
    lines = [separator.join(COLUMNS)] if header else []
    for unit, wh, name in ROWS:
        number = "" if wh is None else repr(wh).replace(".", decimal)
        number = f'"{number}"' if separator in number else number
        quoted = "" if name is None else f'"{name}"'
        lines.append(separator.join([unit, number, quoted]))
    return before + "\n".join(lines) + "\n"


def zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    octets: bytes = sink.getvalue().to_pybytes()
    return octets


FORMS: list[tuple[str, str, str, Callable[[bytes], bytes], dict[str, Any]]] = [
    ("rows.csv.gz", written(), "utf-8", gzip.compress, {}),
    ("rows.csv.zst", written(), "utf-8", zst, {}),
    ("rows.csv.bz2", written(), "utf-8", bz2.compress, {}),
    ("rows.txt", written(), "utf-8", bytes, {}),
    ("rows.tsv", written("\t"), "utf-8", bytes, {}),
    ("rows.TSV.GZ", written("\t"), "utf-8", gzip.compress, {}),
    ("rows.csv", written(";", ","), "utf-8-sig", bytes, {"separator": ";", "decimal": ","}),
    ("rows.csv", written(",", ","), "utf-8", bytes, {"decimal": ","}),
    ("rows.csv", written("|"), "cp1252", bytes, {"separator": "|", "encoding": "cp1252"}),
    ("rows.txt", written("\t"), "utf-16", bytes, {"separator": "\t", "encoding": "utf-16"}),
    ("rows.csv", written(before="Made in 2024\n\n"), "utf-8", bytes, {"skip": 2}),
    ("rows.csv", written(header=False), "utf-8-sig", bytes, {"header": list(COLUMNS)}),
]


@pytest.mark.parametrize("block", [11, 2**23])
@pytest.mark.parametrize(("name", "text", "encoding", "packed", "form"), FORMS)
def test_the_same_rows_in_every_form(
    name: str,
    text: str,
    encoding: str,
    packed: Callable[[bytes], bytes],
    form: dict[str, Any],
    block: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("release.tables.lines._BLOCK", block)
    (tmp_path / name).write_bytes(packed(text.encode(encoding)))
    assert rows_of(spec_of(tmp_path, name, **({"csv": form} if form else {}))) == Counter(ROWS)


def test_several_files_each_with_its_own_ending(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.csv").write_text(written(), "utf-8")
    (tmp_path / "rows" / "b.csv.gz").write_bytes(gzip.compress(written().encode()))
    assert rows_of(spec_of(tmp_path, "rows")) == Counter([*ROWS, *ROWS])


@pytest.mark.parametrize(
    ("body", "form", "says"),
    [
        (b"unit;wh;name\n", {}, r"rows.csv is separated by ';'; write csv: \{separator: \";\"\}"),
        (b"unit\twh\tname\n", {}, r"is separated by .\\t.; write csv: .separator: .\\t"),
        (b"unit,wh,n\xe4me\n", {}, r"is not UTF-8; name its encoding, such as .*cp1252"),
        ("unit,wh,name\n".encode("utf-16"), {}, r"is not UTF-8; .*encoding: utf-16"),
        (b"Unit,wh,name\n", {}, r"columns.unit: rows.csv has 'Unit'; write the name so"),
        (b"unit,wh\n", {}, r"columns.name: rows.csv has no such column; it has unit, wh"),
        (b"unit,wh,name,NAME\n", {}, r"2 columns of this name up to case; rename the others"),
        (b"Made in 2024\nunit,wh,name\n", {}, r"line 1 of rows.csv names none .*skip: lines"),
        (b"u1,secret,3\n", {}, r"or write csv: \{header: \[names\]\}"),
        (b"", {"separator": "ab"}, r"csv.separator: write one mark"),
        (b"", {"separator": "a"}, r"csv.separator: write one mark"),
        (b"", {"encoding": "rot13"}, r"csv.encoding: no encoding of text that is known"),
        (b"", {"encoding": "unicode_escape"}, r"csv.encoding: no encoding of text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_what_to_write(
    body: bytes, form: dict[str, Any], says: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_bytes(body)
    spec = spec_of(tmp_path, "rows.csv", **({"csv": form} if form else {}))
    with pytest.raises(SpecError, match=says) as caught:
        rows_of(spec)
    assert "secret" not in str(caught.value)


def test_forms_are_for_csv_files_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({name: ["1"] for name in COLUMNS}), tmp_path / "rows.parquet")
    for field, given in (("csv", {"decimal": ","}), ("missing", ["NA"])):
        with pytest.raises(SpecError, match=rf"tables.rows.{field}: is for CSV files"):
            rows_of(spec_of(tmp_path, "rows.parquet", **{field: given}))


@pytest.mark.parametrize("packed", [gzip.compress, zst])
def test_a_packed_file_that_is_cut_off_is_one_line(
    packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    name = "rows.csv.gz" if packed is gzip.compress else "rows.csv.zst"
    (tmp_path / name).write_bytes(packed(written().encode() * 1000)[:-40])
    with pytest.raises(ReleaseError, match=rf"{name} cannot be read"):
        rows_of(spec_of(tmp_path, name))


def test_words_for_what_is_missing_are_declared_and_told_apart(tmp_path: Path) -> None:
    body = 'unit,wh,name\nNA,1,x\nu2,NA,NA\nu3,many,-\nu4,,n/a\nu5,"3,5",x\n'
    (tmp_path / "rows.csv").write_text(body, "utf-8")
    as_it_is = spec_of(tmp_path, "rows.csv")
    assert rows_of(as_it_is) == Counter(
        [
            *(("NA", 1.0, "x"), ("u2", None, "NA"), ("u3", None, "-"), ("u4", None, "n/a")),
            ("u5", None, "x"),
        ]
    )
    # The curator is told that a unit, and a value, look like words for what is missing.
    told = {reason.words: reason.count for reason in release.check(as_it_is).left_out}
    assert told["of wh are words such as NA, and count as missing"] == 1
    assert told["of wh are numbers with a comma, and count as missing"] == 1
    assert told["of wh are not a number, and count as missing"] == 1
    assert told["of unit are words such as NA, and name a unit"] == 1
    declared = spec_of(tmp_path, "rows.csv", missing=["NA", "-"])
    assert rows_of(declared) == Counter(
        [("u2", None, None), ("u3", None, None), ("u4", None, "n/a"), ("u5", None, "x")]
    )
    told = {reason.words: reason.count for reason in release.check(declared).left_out}
    assert told["have no unit, and are left out"] == 1
    assert told["of wh are not a number, and count as missing"] == 1
    assert told["of wh are missing"] == 2


def test_a_run_of_a_packed_file_verifies(tmp_path: Path) -> None:
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(written(";", ",").encode()))
    spec = spec_of(tmp_path, "rows.csv.gz", csv={"separator": ";", "decimal": ","})
    words = [sys.executable, "-m", "release", "run", str(spec), "--out", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (public,) = (tmp_path / "out" / "public").iterdir()
    assert release.verify(public, require="none")
