"""Starting specs with a tabulation: they read back as what the public files say."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release.errors import SpecError
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.refusals.unfinished import TODO, unfinished
from release.tabulations.planning.scaffold import starting_tabulation
from tests.tabulations.planning.small import write_public


@pytest.fixture
def public(tmp_path: Path) -> Path:
    write_public(tmp_path)
    return tmp_path


def start(folder: Path, *attributes: str, areas: str = "areas.csv") -> str:
    given = [f"{name}={folder / name}.csv" for name in attributes]
    return starting_tabulation(folder / "persons.parquet", folder / areas, given)


def read_back(folder: Path, text: str) -> SpecFile:
    (folder / "spec.yaml").write_text(text)
    return read_spec(folder / "spec.yaml")


def refusal(folder: Path, *attributes: str, areas: str = "areas.csv") -> str:
    with pytest.raises(SpecError) as caught:
        starting_tabulation(folder / "persons.parquet", folder / areas, attributes)
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    return line


def test_a_starting_spec_reads_back(public: Path) -> None:
    spec_file = read_back(public, start(public, "sex", "age"))
    (opened,) = spec_file.tabulations
    assert opened.levels == ("county", "tract")
    assert opened.named.names == (("k1", "k2"), ("t1", "t2", "t3"))
    assert opened.categories == {"sex": ("f", "m"), "age": ("old", "young")}
    names = [(one.level, one.names) for one in opened.published]
    each: list[tuple[str, ...]] = [(), ("sex",), ("age",), ("sex", "age")]
    assert names == list(itertools.product([0, 1], each))
    spec = spec_file.spec
    assert spec.queries == []
    assert spec.privacy.unit == "person_id"
    assert spec.privacy.max_rows_per_unit == 1
    assert spec.budget.epsilon == 1
    assert spec.budget.delta == 0
    assert all(path.startswith("release.") for path in unfinished(spec))


@pytest.mark.parametrize(("attributes", "margins"), [((), [()]), (("sex",), [(), ("sex",)])])
def test_few_attributes(
    public: Path, attributes: tuple[str, ...], margins: list[tuple[str, ...]]
) -> None:
    (opened,) = read_back(public, start(public, *attributes)).tabulations
    assert [one.names for one in opened.published_at(1)] == margins


def test_levels_are_ordered_by_their_areas(public: Path) -> None:
    """Whatever the order of columns; of two names of one level the table's is the lowest."""
    (public / "areas.csv").write_text(
        "tract,label,state,county\nt1,One,s,k1\nt2,Two,s,k1\nt3,Three,s,k2\n"
    )
    (opened,) = read_back(public, start(public)).tabulations
    assert opened.levels == ("state", "county", "label", "tract")


def test_every_choice_is_marked_and_no_line_is_long(public: Path) -> None:
    lines = start(public, "sex", "age").splitlines()
    assert max(map(len, lines)) <= 100
    after_marks = set()
    for line, after in itertools.pairwise(lines):
        if line.lstrip().startswith("#") and not after.lstrip().startswith("#"):
            after_marks.add(after.split(":")[0].strip())
    assert {"units", "levels", "attributes", "publish", "importance", "budget"} <= after_marks


def test_types_and_odd_names_come_back(tmp_path: Path) -> None:
    columns = [("id", pa.string()), ("a: b", pa.int64()), ("year", pa.int32())]
    columns += [("day", pa.date32()), ("no", pa.string())]
    pq.write_table(pa.schema(columns).empty_table(), tmp_path / "persons.parquet")
    (tmp_path / "areas.csv").write_text("{period},a: b\nyes,1\nyes,20\n#x,3\n")
    (tmp_path / "year.csv").write_text("year\n1999\n2001\n2000\n")
    (tmp_path / "day.csv").write_text("day\n2020-03-01\n2020-02-29\n")
    keys = ["null", "1", "a, b", "{c}", "- d", "é", *(f"key {n:03}" for n in range(40))]
    text = "".join(f'"{key}"\n' for key in keys)
    (tmp_path / "no.csv").write_text(f"no\n{text}", encoding="utf-8")
    written = start(tmp_path, "year", "day", "no")
    assert "year: {range: [1999, 2001]}" in written
    (opened,) = read_back(tmp_path, written).tabulations
    assert opened.categories["year"] == ("1999", "2000", "2001")
    assert opened.categories["day"] == ("2020-02-29", "2020-03-01")
    assert opened.categories["no"] == tuple(sorted(keys))
    assert opened.levels == ("{period}", "a: b")


def test_the_spec_may_stand_elsewhere(public: Path) -> None:
    (public / "specs").mkdir()
    text = starting_tabulation(
        public / "persons.parquet", public / "areas.csv", [], folder=public / "specs"
    )
    (public / "specs" / "spec.yaml").write_text(text)
    (opened,) = read_spec(public / "specs" / "spec.yaml").tabulations
    assert opened.declared.hierarchy.file == "../areas.csv"


def test_no_row_is_read(public: Path) -> None:
    """Two tables of one schema get one text, and a table whose rows are gone as well."""
    before, path = start(public, "sex"), public / "persons.parquet"
    rows = {name: ["private"] for name in pq.read_schema(path).names}
    pq.write_table(pa.table(rows), path, compression="none")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"private", b"PRIVATE"))
    assert start(public, "sex") == before


AREA_FILES = {
    "do not nest": ("levels do not nest", "county,tract\nk1,t1\nk2,t1\nk1,t2\nk2,t2\nk1,t3\n"),
    "not a column": ("is no column of the table", "county,track\nk1,t1\nk1,t2\n"),
    "twice": ("stands twice", "county,tract\nk1,t1\nk1,t1\nk2,t2\n"),
    "empty name": ("line 3", "county,tract\nk1,t1\nk1,\n"),
    "no areas": ("names no area", "county,tract\n"),
    "short line": ("line 2", "county,tract\nk1\n"),
    "no header": ("names its levels in line 1", "\n"),
    "many columns": ("names its levels in line 1", ",".join("abcdefghijklm") + "\n"),
    "column twice": ("twice; keep one", "tract,tract\nt1,t1\n"),
    "quote": ("cannot be read", '"county,tract\n'),
}


@pytest.mark.parametrize("case", AREA_FILES)
def test_areas_are_refused_in_one_line(public: Path, case: str) -> None:
    reason, text = AREA_FILES[case]
    (public / "areas.csv").write_text(text)
    line = refusal(public)
    assert line.startswith("--hierarchy")
    assert reason in line


def test_other_refusals_are_one_line(public: Path) -> None:
    assert "cannot be read" in refusal(public, areas="missing.csv")
    assert "COLUMN=KEYS.csv" in refusal(public, "sex")
    assert "COLUMN=KEYS.csv" in refusal(public, "sex=")
    assert "did you mean 'sex'" in refusal(public, f"sax={public / 'sex.csv'}")
    assert "there is no missing.csv" in refusal(public, f"sex={public / 'missing.csv'}")
    assert "has no column 'sex'" in refusal(public, f"sex={public / 'age.csv'}")
    sex = f"sex={public / 'sex.csv'}"
    assert "'sex' stands twice" in refusal(public, sex, sex)
    (public / "sex.csv").write_text("sex\nf\nf\n")
    assert "--attribute sex: a key stands twice" in refusal(public, sex)
    (public / "person_id.csv").write_text("person_id\np1\n")
    line = refusal(public, f"person_id={public / 'person_id.csv'}")
    assert "privacy unit is confidential" in line
    (public / f"{TODO}.csv").write_text("tract\nt1\n")
    assert re.search("--hierarchy: .*rename", refusal(public, areas=f"{TODO}.csv"))


def test_too_many_cells_are_refused(public: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("tract", pa.string()), ("age", pa.int64())])
    pq.write_table(schema.empty_table(), public / "persons.parquet")
    (public / "areas.csv").write_text("tract\n" + "".join(f"t{n}\n" for n in range(6000)))
    (public / "age.csv").write_text("age\n" + "".join(f"{n}\n" for n in range(6000)))
    assert "cells; at most" in refusal(public, f"age={public / 'age.csv'}")
