"""The areas of a tabulation: how files are read and refused, and how areas lie in each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.errors import SpecError
from release.spec.declarations import ColumnType
from release.tabulations.spec.areas import NamedAreas, nested, read_areas

LEVELS = ("state", "county", "tract")
LINES = "hi,north,t2\nhi,north,t1\nak,west,t3\n"
KINDS = {"tract": ColumnType.STRING, "person": ColumnType.STRING}


def read(
    folder: Path,
    data: bytes,
    kind: ColumnType = ColumnType.STRING,
    levels: tuple[str, ...] = LEVELS,
) -> NamedAreas:
    path = folder / "areas.csv"
    path.write_bytes(data)
    return read_areas("tabulations[0].hierarchy", path, levels, {**KINDS, "tract": kind})


def same(one: NamedAreas, other: NamedAreas) -> bool:
    parents = zip(one.areas.parents, other.areas.parents, strict=True)
    return one.names == other.names and all(np.array_equal(a, b) for a, b in parents)


@pytest.mark.parametrize(
    ("data", "at", "says"),
    [
        (b"", "file", "has no column 'state'"),
        (b"\n" + LINES.encode(), "file", "has no column 'state'"),
        (LINES.encode(), "file", "has no column 'state'"),
        (b"state,county,tract\n", "file", "names no area"),
        (b"state,county\nhi,north\n", "file", "has no column 'tract'"),
        (b"state,county,tract,state\nhi,n,t,hi\n", "file", "has the column 'state' twice"),
        (b"state, county,tract\nhi,n,t\n", "file", "has no column 'county'"),
        (b"state,county,tract\nhi,n,t\nhi,n\n", "file", "line 3 of areas.csv has 2 values for 3"),
        (b"state,county,tract\nhi,n,t,x\n", "file", "line 2 of areas.csv has 4 values for 3"),
        (b"state,county,tract\nhi,n,t\n\n", "file", "line 3 of areas.csv has 0 values"),
        (b'state,county,tract\nhi,n,"t\n1"\n', "file", "line 2 of areas.csv has a line break"),
        (b'state,county,tract\nhi,n,"t\n', "file", "cannot be read as UTF-8 CSV"),
        (b'state,county,tract\nhi,n,"t"1\n', "file", "cannot be read as UTF-8 CSV"),
        (b"state,county,tract\nhi,n,\xff\n", "file", "cannot be read as UTF-8 CSV"),
        ("state,county,tract\nhi,n,t\n".encode("utf-16"), "file", "cannot be read as UTF-8 CSV"),
        (b"state,county,tract\nhi,n," + b"t" * 200_000, "file", "cannot be read as UTF-8 CSV"),
        (b"state,county,tract\nhi,n,t1\nhi,,t2\n", "file (line 3)", "the county is empty"),
        (b"state,county,tract\nhi,n,t\t1\n", "file (line 2)", "the tract is empty or not print"),
        (b"state,county,tract\nhi,n,t1\nhi,n,t1\n", "file", "the tract 't1' stands twice"),
        (
            b"state,county,tract\nhi,n,t1\nak,n,t2\n",
            "file",
            "the county 'n' lies in the state 'ak' and in 'hi'",
        ),
        (
            b"state,county,tract\nhi,n,t1\nhi,s,t1\n",
            "file",
            "the tract 't1' lies in the county 'n' and in 's'",
        ),
    ],
)
def test_refuses_a_file_in_one_line(tmp_path: Path, data: bytes, at: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        read(tmp_path, data)
    assert error.value.field == f"tabulations[0].hierarchy.{at}"
    assert says in error.value.problem
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing.csv", "there is no missing.csv; correct the path"),
        (".", "cannot be read as UTF-8 CSV"),
        ("a\0b", "cannot be read as UTF-8 CSV"),
    ],
)
def test_refuses_a_path_that_is_no_file(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        read_areas("hierarchy", tmp_path / name, LEVELS, {})


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("00123", ColumnType.INTEGER, "or declare 'tract' a string"),
        ("+1", ColumnType.INTEGER, "or declare 'tract' a string"),
        ("9007199254740992", ColumnType.INTEGER, "within ±"),
        ("20240131", ColumnType.DATE, "write 2024-01-31"),
    ],
)
def test_names_are_written_as_their_column_has_them(
    tmp_path: Path, name: str, kind: ColumnType, says: str
) -> None:
    data = f"state,county,tract\nhi,n,{name}\n".encode()
    with pytest.raises(SpecError) as error:
        read(tmp_path, data, kind)
    assert error.value.field == "tabulations[0].hierarchy.file (line 2)"
    assert says in error.value.problem
    # Text takes it as it is.
    assert read(tmp_path, data).names[-1] == (name,)


def test_spellings_of_one_file_are_equal(tmp_path: Path) -> None:
    plain = read(tmp_path, b"state,county,tract\n" + LINES.encode())
    assert plain.names == (("ak", "hi"), ("west", "north"), ("t3", "t1", "t2"))
    others = [
        "\ufeffstate,county,tract\n" + LINES,
        ("state,county,tract\n" + LINES).replace("\n", "\r\n"),
        '"state","county",tract\n' + LINES.replace("north", '"north"'),
        "county,note,tract,state\nnorth,x,t2,hi\nnorth,,t1,hi\nwest,x,t3,ak",
    ]
    for text in others:
        assert same(read(tmp_path, text.encode()), plain)


def test_names_keep_blanks_commas_and_quotes(tmp_path: Path) -> None:
    named = read(tmp_path, b'tract\n"St. John, 1"\n t\n"say ""a"""\n', levels=("tract",))
    assert named.names == ((" t", "St. John, 1", 'say "a"'),)
    assert named.areas.parents[0].tolist() == [0, 0, 0]


def test_a_large_file_is_read(tmp_path: Path) -> None:
    lines = [f"s{number % 7},c{number % 77},t{number}" for number in range(10**5)]
    named = read(tmp_path, ("state,county,tract\n" + "\n".join(lines)).encode())
    assert [named.areas.size(level) for level in range(3)] == [7, 77, 10**5]
    assert named.areas.children(1).sum() == 10**5


@st.composite
def hierarchies(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Lines of one to four levels; an area can be called as one of another level."""
    depth = draw(st.integers(1, 4))
    lines: list[tuple[str, ...]] = [()]
    for _ in range(depth):
        sizes = draw(st.lists(st.integers(1, 3), min_size=len(lines), max_size=len(lines)))
        names = iter(draw(st.permutations([f"n{number}" for number in range(sum(sizes))])))
        below = []
        for line, size in zip(lines, sizes, strict=True):
            below += [(*line, next(names)) for _ in range(size)]
        lines = below
    return lines


@given(st.data())
def test_areas_do_not_depend_on_the_order_of_lines(data: st.DataObject) -> None:
    lines = data.draw(hierarchies())
    levels = [f"level {depth}" for depth in range(len(lines[0]))]
    named = nested("file", levels, lines)
    assert same(named, nested("file", levels, data.draw(st.permutations(lines))))
    for level in range(len(levels)):
        paths = sorted({line[: level + 1] for line in lines})
        assert named.names[level] == tuple(path[-1] for path in paths)


@given(hierarchies())
def test_places_are_those_of_the_lines(lines: list[tuple[str, ...]]) -> None:
    levels = [f"level {depth}" for depth in range(len(lines[0]))]
    named = nested("file", levels, lines)
    for level in range(len(levels)):
        within = {line[level]: line for line in lines}
        for upper in range(level + 1):
            names = [named.names[upper][place] for place in named.places(level, upper)]
            assert names == [within[name][upper] for name in named.names[level]]
