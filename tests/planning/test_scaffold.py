"""A starting spec names what the schema names, is accepted as it stands, and tells of no row."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release.errors import SpecError, control_character
from release.planning.scaffold import starting_spec
from release.queries.kinds.count import CountQuery
from release.queries.read import parse_spec, read_spec
from release.spec.declarations import ColumnType, Relation
from release.spec.domains import Ordered
from release.spec.guarantees import Source
from release.spec.model import Spec
from release.spec.refusals.unfinished import TODO, unfinished
from release.tables.sources import find_source
from tests.conftest import PROJECT

ODD_NAMES = [
    "yes", "no", "null", "~", "1", "1e3", "0x1F", "2013-01-05", "a: b", "a #b", "#a", "- a", "? a",
    "*a", "&a", "!a", "<<", "=", "{a}", "[a", "a,b", "'", '"', "a'b\"c", "%a", "@a", "`a", "|", ">",
    " a ", "", "größe", "日付", "😀", "a\u2028b", "a\x85b", "a\x7fb", "\ufeffa", "\u202ea", "a\nb",
    "a\tb", "a\\n", "$unit", "${columns}", "{{ a }}", "rowid", "Filename",
    "{period}", "a{period_end}", "{{period}", "TODO(curator)", "ID", "id", "x" * 2000,
]  # fmt: skip
TYPES = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.dictionary(pa.int32(), pa.string()): "string",
    pa.int8(): "integer",
    pa.uint64(): "integer",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.timestamp("us"): "timestamp",
    pa.float32(): "number",
    pa.float64(): "number",
    pa.decimal128(10, 2): "number",
    pa.bool_(): "boolean",
    pa.timestamp("us", "Europe/London"): "timestamp",
    pa.binary(): None,
    pa.list_(pa.int64()): None,
    pa.struct([("secret\nname", pa.int64())]): None,
    pa.time32("s"): None,
    pa.null(): None,
}


def written(folder: Path, fields: list[tuple[str, Any]], name: str = "table.parquet") -> Path:
    pq.write_table(pa.schema(fields).empty_table(), folder / name)
    return folder / name


def csv_of(folder: Path, content: bytes) -> Path:
    (folder / "table.csv").write_bytes(content)
    return folder / "table.csv"


def accepted(text: str) -> Spec:
    """The spec, also with the examples that are commented out."""
    parse_spec(re.sub(r"(?m)^#(?=  - |    )", "", text).encode())
    return parse_spec(text.encode())


def columns_of(text: str) -> dict[str, str]:
    (table,) = accepted(text).tables.values()
    return {name: kind.value for name, kind in table.columns.items()}


def refusal(path: Path, unit: str | None = None) -> SpecError:
    with pytest.raises(SpecError) as caught:
        starting_spec(path, unit)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


@pytest.mark.parametrize(
    ("table", "spec", "unit"),
    [
        ("ami_readings", "ami.yaml", "household_id"),
        ("persons", "persons.yaml", "person_id"),
    ],
)
def test_the_samples_get_the_columns_their_specs_declare(table: str, spec: str, unit: str) -> None:
    text = starting_spec(PROJECT / "data" / f"{table}.parquet")
    plain = yaml.safe_load((PROJECT / "data" / spec).read_text("utf-8"))
    (declared,) = plain["tables"].values()
    assert columns_of(text) == declared["columns"]
    assert list(columns_of(text)) == list(declared["columns"])
    found = accepted(text)
    assert found.privacy.unit == unit
    assert found.release.id == table
    assert found.tables[table].path == declared["path"]


def test_the_placeholders_are_on_the_safe_side() -> None:
    spec = accepted(starting_spec(PROJECT / "data" / "ami_readings.parquet"))
    (query,) = spec.queries
    assert spec.privacy.neighbors is Relation.ADD_REMOVE
    assert (spec.privacy.fixed, spec.keys, query.by) == ([], {}, [])
    assert spec.budget.epsilon == 1
    assert spec.budget.delta == 0
    assert isinstance(query, CountQuery)
    assert isinstance(query.domain, Ordered)
    assert query.of == "household_id"
    assert query.domain.ordered.min == 0
    assert query.sensitivity is Source.GLOBAL
    assert query.claimed.to_guarantee().definition.value == "pure"
    assert query.mechanism == "best"


def test_every_choice_is_marked() -> None:
    """The line above a choice, or the lines it goes on for, say CHOOSE."""
    lines = starting_spec(PROJECT / "data" / "ami_readings.parquet").splitlines()
    marked = set()
    for line, after in itertools.pairwise(lines):
        if line.lstrip("# ").startswith("CHOOSE:"):
            marked.add("comment")
        if line.lstrip().startswith("#") and not after.lstrip().startswith("#"):
            marked.add(after.split(":")[0].strip())
    wanted = {"unit", "neighbors", "max_rows_per_unit", "budget", "keys", "comment"}
    assert wanted <= marked
    assert "  title: TODO(curator)" in lines
    written = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert len(written) - len(columns_of("\n".join(lines))) <= 20


def test_no_line_is_longer_than_the_house_allows() -> None:
    text = starting_spec(PROJECT / "data" / "persons.parquet")
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("names", "kinds", "unit"),
    [
        (["circuit_id", "household_id"], "ss", "household_id"),
        (["wh", "Household"], "is", "Household"),
        (["place", "meterId"], "ss", "meterId"),
        (["place", "ID"], "si", "ID"),
        (["paid", "grid"], "ss", "paid"),
        (["wh", "place"], "is", "place"),
        (["wh", "hour"], "ii", "wh"),
        (["person_day", "place"], "ds", "place"),
    ],
)
def test_a_unit_is_suggested(tmp_path: Path, names: list[str], kinds: str, unit: str) -> None:
    types = {"s": pa.string(), "i": pa.int64(), "d": pa.date32()}
    fields = [(name, types[kind]) for name, kind in zip(names, kinds, strict=True)]
    assert accepted(starting_spec(written(tmp_path, fields))).privacy.unit == unit


def test_a_unit_that_is_given_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, [("person_id", pa.string()), ("a: b", pa.int64())])
    assert accepted(starting_spec(path, "a: b")).privacy.unit == "a: b"


def test_a_unit_that_is_no_column_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = written(
        tmp_path, [("person_id", pa.string()), ("day", pa.date32()), ("b\u2028", pa.int8())]
    )
    error = refusal(path, "persn_id")
    assert error.field == "--unit"
    assert "did you mean 'person_id'" in str(error)
    assert 'known are "b\\L", person_id' in str(error)
    assert "'day' is a date column" in str(refusal(path, "day"))
    refusal(path, "a\nb")


@pytest.mark.parametrize("stored", TYPES, ids=str)
def test_types_are_those_that_reading_takes(tmp_path: Path, stored: pa.DataType) -> None:
    text = starting_spec(written(tmp_path, [("unit", pa.string()), ("it", stored)]))
    expected = TYPES[stored]
    assert columns_of(text) == {"unit": "string"} | ({"it": expected} if expected else {})
    is_instant = pa.types.is_timestamp(stored) and stored.tz is not None
    assert ("instants, in UTC" in text) == is_instant
    assert ("# Left out: it: " in text) is (expected is None)
    check_reads(tmp_path, text)


def check_reads(folder: Path, text: str) -> None:
    """What opens the table finds every declared column in a fitting type."""
    (folder / "spec.yaml").write_bytes(text.encode())
    spec_file = read_spec(folder / "spec.yaml")
    for name, table in spec_file.spec.tables.items():
        source = find_source(spec_file, name)
        source.format.check(name, table, source)


names = st.sampled_from(ODD_NAMES) | st.text(max_size=12) | st.from_regex(r"[a-c_#: ]{1,4}")


@given(st.lists(st.tuples(names, st.sampled_from(list(TYPES))), max_size=6))
def test_odd_columns_are_taken_or_refused_in_one_line(fields: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # With a column that can be the unit, so that most tables are taken.
        fields = [("unit", pa.string()), *fields]
        path = written(folder, fields)
        try:
            text = starting_spec(path)
        except SpecError as error:
            assert len(str(error).splitlines()) == 1
            return
        given_types = dict(fields)
        assert columns_of(text).items() <= {c: TYPES[t] for c, t in given_types.items()}.items()
        left_out = len(re.findall(r"(?m)^      # Left out: ", text))
        assert len(columns_of(text)) + left_out == len(fields)
        check_reads(folder, text)


@given(st.lists(names, min_size=1, max_size=6))
def test_odd_titles_of_a_csv_are_taken_or_refused_in_one_line(titles: list[str]) -> None:
    header = ",".join('"' + title.replace('"', '""') + '"' for title in titles)
    with tempfile.TemporaryDirectory() as name:
        try:
            text = starting_spec(csv_of(Path(name), header.encode() + b"\n"))
        except SpecError as error:
            assert len(str(error).splitlines()) == 1
            return
        # A byte order mark is no part of the first title, if it stands before the quotes only.
        assert set(columns_of(text)) <= set(titles)
        assert set(columns_of(text).values()) == {"string"}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ODD_NAMES
        if 0 < len(name) < 200 and TODO not in name and control_character(name) is None
    ],
)
def test_a_file_of_any_name(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, [("id", pa.string())], f"{name}.parquet")
    assert columns_of(starting_spec(path)) == {"id": "string"}


@pytest.mark.parametrize("name", ["data[1].parquet", "what?.parquet", "a*.parquet", "A.PARQUET"])
def test_a_file_whose_name_looks_like_a_pattern_is_found(tmp_path: Path, name: str) -> None:
    check_reads(tmp_path, starting_spec(written(tmp_path, [("id", pa.string())], name)))


def test_columns_no_spec_can_hold_are_left_out_with_the_reason(tmp_path: Path) -> None:
    fields = [("id", pa.string()), ("#a", pa.int8()), ("b\nc", pa.int8()), ("", pa.int8())]
    fields += [("D", pa.int8()), ("d", pa.int8()), ("e" * 2000, pa.int8())]
    text = starting_spec(written(tmp_path, fields))
    assert columns_of(text) == {"id": "string"}
    for start in ('"#a"', '"b\\nc"', '""', "D", "d", "e" * 60):
        assert f"      # Left out: {start}: " in text


@pytest.mark.parametrize("name", ["rowid", "Filename", "file_row_number", "see TODO(curator) 1"])
def test_a_name_that_a_run_would_refuse_is_left_out(tmp_path: Path, name: str) -> None:
    text = starting_spec(written(tmp_path, [("id", pa.string()), (name, pa.int64())]))
    assert columns_of(text) == {"id": "string"}
    assert f"      # Left out: {name}: " in text
    assert not [field for field in unfinished(accepted(text)) if field.startswith("tables")]


@pytest.mark.parametrize("name", ["{period}", "a {period_start} b", "{{period_end}}"])
def test_a_name_that_holds_a_placeholder_makes_no_template(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, [("id", pa.string()), (name, pa.int64())], f"{name}.parquet")
    text = starting_spec(path)
    assert columns_of(text) == {"id": "string", name: "integer"}
    check_reads(tmp_path, text)


def test_a_file_whose_name_marks_an_unfinished_spec_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [("id", pa.string())], "TODO(curator).parquet")
    assert "TABLE: its path holds TODO(curator)" in str(refusal(path))


def rows(seed: int, number: int) -> pa.Table:
    ids = [f"secret{seed}-{i}" for i in range(number)]
    hours = pa.array([None if i % 2 else seed * i for i in range(number)], pa.int64())
    return pa.table({"household_id": pa.array(ids, pa.string()), "hour": hours})


def test_tables_of_one_schema_get_the_same_text(tmp_path: Path) -> None:
    """Whatever the rows, how many, in what groups, with what statistics and metadata."""
    texts = set()
    for seed, number in ((1, 0), (2, 5), (3, 4000)):
        for statistics in (True, False):
            folder = tmp_path / f"{seed}{statistics}"
            folder.mkdir()
            table = rows(seed, number).replace_schema_metadata({"pandas": f"secret{seed}"})
            path = folder / "table.parquet"
            pq.write_table(table, path, write_statistics=statistics, row_group_size=1000)
            texts.add(starting_spec(path))
    (text,) = texts
    assert "secret" not in text


def test_of_a_parquet_file_only_the_footer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(rows(1, 4000), path)
    text, stored = starting_spec(path), path.read_bytes()
    footer = int.from_bytes(stored[-8:-4], "little") + 8
    path.write_bytes(stored[:4] + b"\xff" * (len(stored) - footer - 4) + stored[-footer:])
    assert starting_spec(path) == text
    with pytest.raises(OSError):
        pq.read_table(path)


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\n",
        b"\r\n",
        b"\nsecret,1\n",
        b"\r\nsecret,1,too,many\r\n",
        b"\n\xff\xfe\x00secret",
        b'\n"secret',
        b"\nsecret" * 100_000,
    ],
)
def test_of_a_csv_only_the_first_line_is_read(tmp_path: Path, rest: bytes) -> None:
    text = starting_spec(csv_of(tmp_path, b'\xef\xbb\xbfhousehold_id,"w, h"' + rest))
    assert columns_of(text) == {"household_id": "string", "w, h": "string"}
    assert "    # CHOOSE: a CSV file has no types" in text
    assert "secret" not in text
    alone = starting_spec(csv_of(tmp_path, b'household_id,"w, h"\n'))
    assert text == alone


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b" \r\nsecret\n",
        b"\xef\xbb\xbf",
        b'household_id,"wh\nsecret,1"\n',
        b"household_id,wh\rsecret,1\r",
        b"household_id\x00,wh\n",
        b"PK\x03\x04\x14\x00secret",
        b",,\n",
        b"x" * 2_000_000,
        b"a" * 200_000 + b"\n",
        b",".join(b"c%d" % i for i in range(10_001)),
    ],
)
def test_a_csv_without_a_header_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    error = refusal(csv_of(tmp_path, content))
    assert error.field == "TABLE"
    assert "secret" not in str(error)
    assert len(str(error)) < 300


@pytest.mark.parametrize("content", [b"", b"PAR1", b"secret" * 100, b"PAR1secretPAR1"])
def test_garbage_is_no_parquet_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(content)
    error = refusal(path)
    assert "give the path of one .parquet or .csv file" in str(error)
    assert "secret" not in str(error)


@given(st.data())
def test_a_damaged_footer_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.parquet"
        pq.write_table(rows(1, 3), path)
        stored = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            stored[-data.draw(st.integers(1, len(stored)))] = data.draw(st.integers(0, 255))
        path.write_bytes(stored)
        try:
            starting_spec(path)
        except SpecError as error:
            assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["none.parquet", "none.csv", "folder.csv", "folder.parquet", "a\0.csv", "a\0.parquet"]
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    assert "give the path of one .parquet or .csv file" in str(refusal(tmp_path / name))


@pytest.mark.parametrize(
    "name", ["table.db", "table", "table.xlsx", ".", "a\nb", "table.parquet.gz"]
)
def test_only_parquet_and_csv_are_taken(tmp_path: Path, name: str) -> None:
    assert ".parquet or .csv" in str(refusal(tmp_path / name))


def test_a_file_name_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_bytes(b"household_id\n")
    assert "path" in str(refusal(path))


@pytest.mark.parametrize(
    "fields", [[], [("wh", pa.float64())], [("ids", pa.list_(pa.string()))], [("#", pa.string())]]
)
def test_a_table_without_a_possible_unit_is_refused(
    tmp_path: Path, fields: list[tuple[str, Any]]
) -> None:
    assert "no column of a usable type" in str(refusal(written(tmp_path, fields)))


def test_examples_name_columns_that_are_there(tmp_path: Path) -> None:
    """A mode needs a second column, a level an integer one that is not the unit."""
    only = starting_spec(written(tmp_path, [("id", pa.int64()), ("kwh", pa.float64())]))
    assert "kind: mode" not in only
    assert "kind: level" not in only
    fields = [("id", pa.int64()), ("no", pa.string()), ("1", pa.int64()), ("w: h", pa.int64())]
    both = starting_spec(written(tmp_path, fields))
    assert 'kind: mode, of: "no",\n' in both
    assert 'kind: mean, of: "w: h",' in both
    # Each is right as it stands, once its marks are taken away.
    more = both[both.index("#  - {") :].replace("#  - ", "  - ").replace("#     ", "    ")
    plain = yaml.safe_load(both.replace("epsilon: 1}\nkeys", "epsilon: 9}\nkeys") + more)
    assert [one["kind"] for one in plain["queries"]] == ["count", "mode", "mean", "quantiles"]
    assert len(accepted(yaml.safe_dump(plain)).queries) == 4
    assert accepted(both).tables["table"].columns["1"] is ColumnType.INTEGER


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"home;at;kwh\n", 'csv: {separator: ";"}'),
        (b"home\tat\tkwh\n", 'csv: {separator: "\\t"}'),
        (b"home,at,k\xe4lte\n", "csv: {encoding: cp1252}"),
        ("home;at;kwh\n".encode("utf-16"), 'csv: {separator: ";", encoding: utf-16}'),
    ],
)
def test_how_a_csv_file_is_written_is_proposed_from_its_first_line(
    tmp_path: Path, content: bytes, says: str
) -> None:
    text = starting_spec(csv_of(tmp_path, content))
    assert says in text
    declared = yaml.safe_load(text)["tables"]["table"]
    assert len(declared["columns"]) == 3
    assert "NA" in declared["missing"]


def test_lines_before_the_header_are_passed_over(tmp_path: Path) -> None:
    path = csv_of(tmp_path, "Stadtwerke;;\nStand 2024;;\nZähler;Zeit;kWh\n".encode("cp1252"))
    assert "names 1 of 3 columns; where other lines stand before the header" in str(refusal(path))
    text = starting_spec(path, "Zähler", skip=2)
    assert 'csv: {separator: ";", skip: 2, encoding: cp1252}' in text


@pytest.mark.parametrize("line", [b"p00001,37,f", b"a,2024-01-05 10:00", b"x,1.5", b"x,3,-4"])
def test_a_first_line_that_looks_like_a_row_is_not_shown(tmp_path: Path, line: bytes) -> None:
    error = refusal(csv_of(tmp_path, line + b"\n"))
    assert "as a row has; write the names of the columns there" in str(error)
    assert not any(part in str(error) for part in ("p00001", "2024-01-05", "37"))
    # Years are names of columns in many tables.
    assert "2019" in starting_spec(csv_of(tmp_path, b"home,2019,2020\n"))
